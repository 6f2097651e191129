//! Some crates must stay free of some packages, however far down these come in.

use anyhow::Result;

use super::Finding;
use crate::process;

const RULE: &str = "purity";

/// Packages that do I/O, keep time or run tasks.
const SHELL: [&str; 5] = ["tokio", "hyper", "rusqlite", "fred", "socket2"];

/// (package, what else it must not reach, each checked with the default features off).
const PURE: [(&str, &[&str]); 3] = [
    ("tyo-mq-codec", &[]),
    ("tyo-mq-protocol", &[]),
    ("tyo-mq-core", &["serde_json", "serde"]),
];

/// Asks cargo for the normal dependencies of each pure crate on every platform.
pub(super) fn check() -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (package, more) in PURE {
        let mut command = process::cargo();
        command.args([
            "tree",
            "-p",
            package,
            "--no-default-features",
            "-e",
            "normal",
            "--target",
            "all",
        ]);
        let tree = process::capture(command.args(["--prefix", "none", "--format", "{p}"]))?;
        findings.extend(impure(package, more, &tree));
    }
    Ok(findings)
}

/// `tree` has one package a line, its name first.
fn impure(package: &str, more: &[&str], tree: &str) -> Vec<Finding> {
    let mut names: Vec<&str> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    names.sort_unstable();
    names.dedup();
    let banned = names
        .into_iter()
        .filter(|name| SHELL.contains(name) || more.contains(name));
    banned
        .map(|name| {
            Finding::new(
                RULE,
                package,
                format!("reaches {name}, which it must not know"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banned_package_is_found_once_at_any_depth() {
        let tree = "tyo-mq-core v0.1.0\nbytes v1.0.0\ntokio v1.54.1\nserde_json v1.0.0\ntokio v1.54.1 (*)\n";
        assert_eq!(impure("tyo-mq-core", &["serde_json"], tree).len(), 2);
        assert_eq!(impure("tyo-mq-core", &[], tree).len(), 1);
        assert!(
            impure(
                "tyo-mq-core",
                &[],
                "tyo-mq-core v0.1.0\ntokio-util v0.7.0\n"
            )
            .is_empty()
        );
    }
}
