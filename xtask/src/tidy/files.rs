//! Rules on single files: the first line, lengths, sleeps and ignored tests, crate attributes, words that leak.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::source::{self, Facts};
use super::{Finding, markdown};
use crate::metadata::Metadata;

pub(super) const FILE_LENGTH: &str = "file-length";
pub(super) const FUNCTION_LENGTH: &str = "function-length";
pub(super) const SLEEP: &str = "test-sleep";

/// Lines that a file may have before its tests.
const FILE_LINES: usize = 500;

/// Lines of code that a function's body may have.
const FUNCTION_LINES: usize = 40;

/// Folders that hold no source of ours.
const SKIPPED: [&str; 7] = [
    "target",
    "node_modules",
    ".git",
    ".cache",
    "corpus",
    "artifacts",
    "__pycache__",
];

/// Kinds of files that are read; lock files are not ours to word.
const EXTENSIONS: [&str; 13] = [
    "rs", "md", "toml", "json", "mjs", "js", "py", "go", "mod", "html", "sh", "yml", "txt",
];

/// Every text file of the project: path from the root with `/`, and its text; sorted.
pub(super) fn read_all(root: &Path) -> Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    read_folder(root, "", &mut texts)?;
    texts.sort();
    Ok(texts)
}

fn read_folder(folder: &Path, prefix: &str, texts: &mut Vec<(String, String)>) -> Result<()> {
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                read_folder(&entry.path(), &format!("{path}/"), texts)?;
            }
        } else if is_read(&path) {
            let text =
                fs::read_to_string(entry.path()).with_context(|| format!("cannot read {path}"))?;
            texts.push((path, text));
        }
    }
    Ok(())
}

fn is_read(path: &str) -> bool {
    path.starts_with(".ci/")
        || path
            .rsplit_once('.')
            .is_some_and(|(_, extension)| EXTENSIONS.contains(&extension))
}

/// What breaks a rule in one file.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = markdown::registry_hosts(path, text);
    if path.ends_with(".rs") {
        findings.extend(check_rust(path, text));
    } else if path.ends_with(".md") {
        findings.extend(markdown::machine_paths(path, text));
    }
    findings
}

fn check_rust(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !text.starts_with("//!") {
        findings.push(Finding::new(
            "first-line",
            path,
            "its first line is not `//!` and what the file is",
        ));
    }
    let is_test = is_test_file(path);
    let facts = match source::scan(text, is_test) {
        Ok(facts) => facts,
        Err(err) => return vec![Finding::new("unreadable", path, err)],
    };
    let lines = facts
        .tests_start
        .map_or_else(|| text.lines().count(), |line| line - 1);
    if !is_test && lines > FILE_LINES {
        let message = format!("{lines} lines without tests, {FILE_LINES} are allowed");
        findings.push(Finding::new(FILE_LENGTH, path, message).sized(lines));
    }
    for (name, lines) in facts
        .functions
        .iter()
        .filter(|(_, lines)| *lines > FUNCTION_LINES)
    {
        let message = format!("{lines} lines of code, {FUNCTION_LINES} are allowed");
        findings
            .push(Finding::new(FUNCTION_LENGTH, format!("{path}::{name}"), message).sized(*lines));
    }
    findings.extend(check_tests(path, &facts));
    findings
}

fn check_tests(path: &str, facts: &Facts) -> Vec<Finding> {
    let ignored = |line: &usize| {
        Finding::new(
            "ignored-test",
            path,
            format!("line {line} ignores a test or an example"),
        )
    };
    let mut findings: Vec<Finding> = facts.ignored.iter().map(ignored).collect();
    if !facts.sleeps.is_empty() {
        let message = format!(
            "tests sleep instead of waiting for an event, lines {:?}",
            facts.sleeps
        );
        findings.push(Finding::new(SLEEP, path, message).sized(facts.sleeps.len()));
    }
    findings
}

fn is_test_file(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let in_tests = folders
        .split('/')
        .any(|folder| matches!(folder, "tests" | "benches"));
    in_tests || name == "tests.rs" || name.ends_with("_tests.rs")
}

/// Each crate forbids unsafe code and takes the workspace's lints.
pub(super) fn crate_attributes(root: &Path, metadata: &Metadata) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for package in metadata.members() {
        let manifest: toml::Table = toml::from_str(&fs::read_to_string(&package.manifest_path)?)?;
        let inherits = manifest
            .get("lints")
            .and_then(|lints| lints.get("workspace")?.as_bool());
        if inherits != Some(true) {
            findings.push(Finding::new(
                "lints",
                package.name.clone(),
                "misses [lints] workspace = true",
            ));
        }
        for file in package.crate_roots() {
            let text = fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            if !text.contains("#![forbid(unsafe_code)]") {
                let place = file
                    .strip_prefix(root)
                    .unwrap_or(file)
                    .display()
                    .to_string();
                findings.push(Finding::new(
                    "unsafe-code",
                    place,
                    "misses #![forbid(unsafe_code)]",
                ));
            }
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_file(path: &str, text: &str, expected: &[(&str, usize)]) {
        let found: Vec<(&str, usize)> = check(path, text)
            .into_iter()
            .map(|finding| (finding.rule, finding.size))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_first_line_says_what_the_file_is() {
        check_file("a.rs", "//! What.\n", &[]);
        check_file("a.rs", "// What.\n", &[("first-line", 1)]);
        check_file("a.rs", "", &[("first-line", 1)]);
    }

    #[test]
    fn lines_before_the_tests_count() {
        let code = "//! What.\n".to_owned() + &"const A: u8 = 1;\n".repeat(FILE_LINES);
        check_file("a.rs", &code, &[(FILE_LENGTH, FILE_LINES + 1)]);
        check_file("src/tests.rs", &code, &[]);
        check_file("tests/it/a.rs", &code, &[]);
        let tested = "//! What.\n#[cfg(test)]\nmod tests {\n".to_owned()
            + &"const A: u8 = 1;\n".repeat(600)
            + "}\n";
        check_file("a.rs", &tested, &[]);
    }

    #[test]
    fn long_functions_are_named() {
        let text = format!(
            "//! What.\nfn a() {{\n{}}}\n",
            "b();\n".repeat(FUNCTION_LINES + 1)
        );
        check_file("a.rs", &text, &[(FUNCTION_LENGTH, FUNCTION_LINES + 1)]);
        assert_eq!(check("a.rs", &text)[0].place, "a.rs::a");
    }

    #[test]
    fn sleeps_in_tests_are_counted() {
        let text = "//! What.\n#[test]\nfn a() { sleep(x); sleep(y); }\n";
        check_file("a.rs", text, &[(SLEEP, 2)]);
        check_file(
            "tests/it/main.rs",
            "//! What.\nfn a() { sleep(x); }\n",
            &[(SLEEP, 1)],
        );
    }

    #[test]
    fn unreadable_source_is_a_finding() {
        check_file("a.rs", "//! What.\nfn a( {", &[("unreadable", 1)]);
    }
}
