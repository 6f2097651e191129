//! Licences, bans and duplicates of what we depend on, by the same `deny.toml` that cargo-deny reads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{Finding, licence};
use crate::metadata::{Metadata, Package};
use crate::process;

const FILE: &str = "deny.toml";

/// The part of `deny.toml` that we read.
#[derive(Debug, Deserialize)]
struct Policy {
    graph: Graph,
    licenses: Licences,
    bans: Bans,
}

#[derive(Debug, Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Licences {
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<Named>,
    skip: Vec<Named>,
}

/// `name` or `name@version`, with the reason why it is listed.
#[derive(Debug, Deserialize)]
struct Named {
    #[serde(rename = "crate")]
    package: String,
    reason: String,
}

/// Checks licences of all that is built for any platform, bans and duplicates of what ships on ours.
pub(super) fn check(root: &Path, everything: &Metadata) -> Result<Vec<Finding>> {
    let text =
        std::fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    let policy: Policy = toml::from_str(&text).with_context(|| format!("cannot use {FILE}"))?;
    let tree = shipped(&policy.graph.targets)?;
    let shipped: Vec<(&str, &str)> = tree
        .iter()
        .filter_map(|line| name_and_version(line))
        .collect();
    let mut findings = licences(&policy.licenses, &everything.packages);
    findings.extend(bans(&policy.bans.deny, &shipped));
    findings.extend(duplicates(&policy.bans.skip, &shipped));
    Ok(findings)
}

/// Every package that is built into ours or runs in our build: a line each, without those for tests.
fn shipped(platforms: &[String]) -> Result<BTreeSet<String>> {
    let mut lines = BTreeSet::new();
    for platform in platforms {
        let mut command = process::cargo();
        command.args([
            "tree",
            "--workspace",
            "-e",
            "normal,build",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ]);
        let tree = process::capture(command.args(["--target", platform]))?;
        lines.extend(
            tree.lines()
                .map(|line| line.trim_end_matches(" (*)").to_owned()),
        );
    }
    Ok(lines)
}

/// A line is `name vVERSION`, more may follow.
fn name_and_version(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

fn licences(policy: &Licences, packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let expression = package.license.as_deref().unwrap_or_default();
        if !licence::is_allowed(expression, &policy.allow) {
            let message =
                format!("its licence `{expression}` is not among those that {FILE} allows");
            findings.push(Finding::new("licence", package.name.clone(), message));
        }
    }
    findings
}

fn bans(banned: &[Named], shipped: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for entry in banned {
        for (name, version) in shipped
            .iter()
            .filter(|(name, version)| entry.is(name, version))
        {
            let message = format!("version {version} is banned: {}", entry.reason);
            findings.push(Finding::new("banned", *name, message));
        }
    }
    findings
}

fn duplicates(skipped: &[Named], shipped: &[(&str, &str)]) -> Vec<Finding> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, version) in shipped {
        versions.entry(name).or_default().insert(version);
    }
    let mut findings = Vec::new();
    for entry in skipped {
        let is_double = |name: &str| versions.get(name).is_some_and(|found| found.len() > 1);
        if !shipped
            .iter()
            .any(|(name, version)| entry.is(name, version) && is_double(name))
        {
            let message = format!("is no duplicate any more: take it off {FILE}");
            findings.push(Finding::new("duplicate", entry.package.clone(), message));
        }
    }
    for (name, found) in versions {
        let counted: Vec<&str> = found
            .into_iter()
            .filter(|version| !skipped.iter().any(|entry| entry.is(name, version)))
            .collect();
        if counted.len() > 1 {
            let message = format!("comes in versions {}", counted.join(" and "));
            findings.push(Finding::new("duplicate", name, message));
        }
    }
    findings
}

impl Named {
    fn is(&self, name: &str, version: &str) -> bool {
        match self.package.split_once('@') {
            Some((wanted, wanted_version)) => wanted == name && wanted_version == version,
            None => self.package == name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(package: &str) -> Named {
        Named {
            package: package.to_owned(),
            reason: "why".to_owned(),
        }
    }

    #[track_caller]
    fn check(skipped: &[&str], shipped: &[(&str, &str)], expected: &[&str]) {
        let skipped: Vec<Named> = skipped.iter().map(|package| named(package)).collect();
        let found: Vec<String> = duplicates(&skipped, shipped)
            .into_iter()
            .map(|finding| finding.place)
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_line_of_the_tree_has_a_name_and_a_version() {
        assert_eq!(
            name_and_version("syn v2.0.119 (proc-macro)"),
            Some(("syn", "2.0.119"))
        );
        assert_eq!(name_and_version(""), None);
    }

    #[test]
    fn two_versions_are_a_duplicate_unless_skipped() {
        check(
            &[],
            &[("syn", "2.0.1"), ("syn", "3.0.1"), ("http", "1.0.0")],
            &["syn"],
        );
        check(&["syn@2.0.1"], &[("syn", "2.0.1"), ("syn", "3.0.1")], &[]);
        check(
            &["syn@2.0.1"],
            &[("syn", "2.0.1"), ("syn", "3.0.1"), ("syn", "4.0.0")],
            &["syn"],
        );
    }

    #[test]
    fn a_skip_that_is_not_needed_is_a_finding() {
        check(&["syn@2.0.1"], &[("syn", "2.0.1")], &["syn@2.0.1"]);
        check(&["syn@2.0.0"], &[("syn", "3.0.1")], &["syn@2.0.0"]);
    }

    #[test]
    fn banned_packages_are_found_by_name_or_version() {
        let shipped = [("openssl", "0.10.1"), ("http", "1.0.0")];
        assert_eq!(bans(&[named("openssl")], &shipped).len(), 1);
        assert_eq!(bans(&[named("http@1.0.0")], &shipped).len(), 1);
        assert!(bans(&[named("http@0.2.0")], &shipped).is_empty());
    }
}
