//! The allow-list: `RULE PLACE MAX REASON` a line. An entry that is not needed any more is itself a finding.

use anyhow::{Context, Result, bail};

use super::{ALLOW_LIST, Finding};

/// Rules that may have exceptions; the others have none.
const RULES: [&str; 3] = [
    super::files::FILE_LENGTH,
    super::files::FUNCTION_LENGTH,
    super::files::SLEEP,
];

/// One exception.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    rule: String,
    place: String,
    max: usize,
}

/// Reads the list; `#` starts a comment line.
pub(super) fn parse(text: &str) -> Result<Vec<Entry>> {
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|(index, line)| {
            entry(line).with_context(|| format!("{ALLOW_LIST}, line {}", index + 1))
        })
        .collect()
}

fn entry(line: &str) -> Result<Entry> {
    let mut words = line.split_whitespace();
    let (Some(rule), Some(place), Some(max)) = (words.next(), words.next(), words.next()) else {
        bail!("an entry is RULE PLACE MAX REASON");
    };
    if !RULES.contains(&rule) {
        bail!("`{rule}` has no exceptions; {} have", RULES.join(", "));
    }
    if words.next().is_none() {
        bail!("the reason is missing");
    }
    let max = max.parse().context("MAX is a number")?;
    Ok(Entry {
        rule: rule.to_owned(),
        place: place.to_owned(),
        max,
    })
}

/// Findings that no entry covers, and entries that cover nothing.
pub(super) fn apply(entries: &[Entry], findings: Vec<Finding>) -> Vec<Finding> {
    let stale = entries
        .iter()
        .filter(|entry| !findings.iter().any(|finding| entry.is_about(finding)));
    let mut rest: Vec<Finding> = stale
        .map(|entry| {
            let message = format!(
                "{} does not break {} any more: take it off {ALLOW_LIST}",
                entry.place, entry.rule
            );
            Finding::new("allow-list", entry.place.clone(), message)
        })
        .collect();
    let covers =
        |entry: &Entry, finding: &Finding| entry.is_about(finding) && finding.size <= entry.max;
    rest.extend(
        findings
            .into_iter()
            .filter(|finding| !entries.iter().any(|entry| covers(entry, finding))),
    );
    rest
}

impl Entry {
    fn is_about(&self, finding: &Finding) -> bool {
        self.rule == finding.rule && self.place == finding.place
    }
}

#[cfg(test)]
mod tests {
    use super::super::files::{FILE_LENGTH, FUNCTION_LENGTH};
    use super::*;

    #[track_caller]
    fn check(list: &str, findings: &[(&'static str, &str, usize)], left: &[&str]) {
        let findings = findings
            .iter()
            .map(|(rule, place, size)| Finding::new(rule, *place, "").sized(*size));
        let rest = apply(&parse(list).unwrap(), findings.collect());
        let rest: Vec<String> = rest
            .into_iter()
            .map(|finding| format!("{} {}", finding.rule, finding.place))
            .collect();
        assert_eq!(rest, left);
    }

    #[test]
    fn an_entry_covers_its_place_up_to_its_number() {
        let list = "# why\n\nfile-length a.rs 600 a table that reads best whole\n";
        check(list, &[(FILE_LENGTH, "a.rs", 600)], &[]);
        check(list, &[(FILE_LENGTH, "a.rs", 601)], &["file-length a.rs"]);
        check(
            list,
            &[(FILE_LENGTH, "a.rs", 510), (FUNCTION_LENGTH, "a.rs", 50)],
            &["function-length a.rs"],
        );
    }

    #[test]
    fn an_entry_that_is_not_needed_is_a_finding() {
        check("file-length a.rs 600 a table\n", &[], &["allow-list a.rs"]);
    }

    #[test]
    fn entries_need_a_known_rule_a_number_and_a_reason() {
        assert!(parse("first-line a.rs 1 because").is_err());
        assert!(parse("file-length a.rs many because").is_err());
        assert!(parse("file-length a.rs 600").is_err());
        assert!(parse("file-length a.rs").is_err());
    }
}
