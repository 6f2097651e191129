//! Our own rules as a test: collects what breaks them, subtracts the allow-list, prints the rest.

mod allow;
mod dependencies;
mod direction;
mod files;
mod licence;
mod markdown;
mod purity;
mod source;

use anyhow::{Context, Result, bail};

use crate::metadata::Metadata;
use crate::process;

/// Exceptions, each with a reason; the list may only shrink.
const ALLOW_LIST: &str = "xtask/tidy-allow.txt";

/// Something that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    rule: &'static str,
    /// A path from the root, a package, or `path::function`.
    place: String,
    /// What the rule counts: lines, occurrences; 1 where it counts nothing.
    size: usize,
    message: String,
}

impl Finding {
    fn new(rule: &'static str, place: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            rule,
            place: place.into(),
            size: 1,
            message: message.into(),
        }
    }

    fn sized(self, size: usize) -> Self {
        Self { size, ..self }
    }
}

/// Checks every rule and fails if any is broken.
pub(crate) fn run() -> Result<()> {
    let root = process::root();
    let metadata = Metadata::load()?;
    let mut findings = direction::check(&direction::members(&metadata));
    findings.extend(purity::check()?);
    findings.extend(dependencies::check(&root, &metadata)?);
    findings.extend(files::crate_attributes(&root, &metadata)?);
    let texts = files::read_all(&root)?;
    for (path, text) in &texts {
        findings.extend(files::check(path, text));
    }
    findings.extend(markdown::broken_links(&root, &texts));
    let list = root.join(ALLOW_LIST);
    let list = std::fs::read_to_string(&list)
        .with_context(|| format!("cannot read {}", list.display()))?;
    report(allow::apply(&allow::parse(&list)?, findings), texts.len())
}

fn report(mut findings: Vec<Finding>, files: usize) -> Result<()> {
    findings.sort();
    for finding in &findings {
        println!("{}: {}: {}", finding.rule, finding.place, finding.message);
    }
    println!("tidy: {files} files, findings: {}", findings.len());
    if !findings.is_empty() {
        bail!("something breaks our rules");
    }
    Ok(())
}
