//! Words that must not stand in documents: paths of somebody's machine, hosts of registries, links to nothing.

use std::path::Path;

use super::Finding;

/// Folders of a machine; the last is fine in code.
const MACHINE_PATHS: [(&str, bool); 3] = [("/work/", false), ("/root/", false), ("/tmp/", true)];

/// Domains of package registries; a registry is named by its tool, not by its host.
const REGISTRIES: [(&str, &str); 5] = [
    ("crates", "io"),
    ("npmjs", "org"),
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("proxy.golang", "org"),
];

/// Paths of a machine in a document.
pub(super) fn machine_paths(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, prose, code) in lines(text) {
        for (folder, fine_in_code) in MACHINE_PATHS {
            if prose.contains(folder) || (code.contains(folder) && !fine_in_code) {
                findings.push(Finding::new(
                    "machine-path",
                    path,
                    format!("line {number} has {folder}"),
                ));
            }
        }
    }
    findings
}

/// Hosts of registries in any text.
pub(super) fn registry_hosts(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, domain) in REGISTRIES {
        let host = format!("{name}.{domain}");
        let found = text
            .lines()
            .enumerate()
            .find(|(_, line)| line.contains(&host));
        if let Some((index, _)) = found {
            findings.push(Finding::new(
                "registry-host",
                path,
                format!("line {} names {host}", index + 1),
            ));
        }
    }
    findings
}

/// Relative links of documents that lead nowhere.
pub(super) fn broken_links(root: &Path, texts: &[(String, String)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in texts.iter().filter(|(path, _)| path.ends_with(".md")) {
        let folder = root.join(path.rsplit_once('/').map_or("", |(folder, _)| folder));
        for (number, prose, _) in lines(text) {
            for link in links(&prose).filter(|link| !folder.join(link).exists()) {
                findings.push(Finding::new(
                    "broken-link",
                    path.clone(),
                    format!("line {number} links to {link}"),
                ));
            }
        }
    }
    findings
}

/// Files that the prose links to, without fragments.
fn links(prose: &str) -> impl Iterator<Item = &str> {
    let targets = prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'));
    targets
        .map(|(target, _)| target.split('#').next().unwrap_or_default())
        .filter(|target| !target.is_empty() && !target.contains(':'))
}

/// Each line's number, what of it is prose, and what is code.
fn lines(text: &str) -> impl Iterator<Item = (usize, String, String)> {
    let mut in_block = false;
    text.lines().enumerate().map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        if in_block || is_fence {
            return (index + 1, String::new(), line.to_owned());
        }
        let part = |wanted: usize| {
            let parts = line
                .split('`')
                .enumerate()
                .filter(|(part, _)| part % 2 == wanted);
            parts.map(|(_, text)| text).collect::<Vec<_>>().join("`")
        };
        (index + 1, part(0), part(1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: usize) {
        assert_eq!(machine_paths("a.md", text).len(), expected, "{text}");
    }

    #[test]
    fn temporary_folders_are_fine_in_code_only() {
        check("see /tmp/x", 1);
        check("see `/tmp/x`", 0);
        check("```sh\ncat /tmp/x\n```\n", 0);
        check("```sh\n```\nsee /tmp/x", 1);
    }

    #[test]
    fn somebody_s_folders_are_nowhere_fine() {
        check("see `/work/x`", 1);
        check("```sh\ncat /root/x\n```\n", 1);
        check("network/x and homework/", 0);
    }

    #[test]
    fn registries_are_not_named_by_host() {
        let host = ["https://registry", "npmjs", "org/ws"].join(".");
        assert_eq!(registry_hosts("package-lock.json", &host).len(), 1);
        assert!(registry_hosts("a.md", "npm install ws").is_empty());
    }

    #[test]
    fn links_are_relative_files() {
        let prose = "[a](b.md), [c](d/e.md#f), [g](https://example.com/h), [i](#j)";
        assert_eq!(links(prose).collect::<Vec<_>>(), ["b.md", "d/e.md"]);
        let texts = [(
            "README.md".to_owned(),
            "[x](no-such-file.md)\n`[y](z.md)`\n".to_owned(),
        )];
        assert_eq!(broken_links(Path::new("no-such-folder"), &texts).len(), 1);
    }
}
