//! Counts instructions of small programs that do always the same: unlike times, they do not change with the machine's load.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::revision::Revision;
use crate::{conformance, process};

/// The program: an example of the server.
const EXAMPLE: &str = "instructions";

/// Where its source is.
const SOURCE: &str = "crates/tyo-mq-server/examples/instructions.rs";

/// How often an operation is carried out in the one run and in the other: the difference has no start in it.
const COUNTS: [u32; 2] = [1_000, 5_000];

const USAGE: &str = "\
usage: cargo xtask instructions [--only OPERATION,…] [--compare REVISION] [--json FILE]";

/// Counts ours, and those of another revision if asked.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let Some(options) = Options::parse(args)? else {
        println!("{USAGE}");
        return Ok(());
    };
    if !process::is_available("valgrind", &["--version"]) {
        bail!("there is no valgrind, which counts; Debian has it in the package valgrind");
    }
    let mut programs = vec![("ours".to_owned(), conformance::build_example(EXAMPLE)?)];
    if let Some(revision) = options.compare {
        let program = build_revision(&revision)?;
        programs.push((revision, program));
    }
    let known = process::capture(&mut process::command(&programs[0].1.display().to_string()))?;
    let known: Vec<&str> = known.lines().collect();
    if let Some(name) = options
        .only
        .iter()
        .find(|name| !known.contains(&name.as_str()))
    {
        bail!("no operation {name}; there are: {}", known.join(", "));
    }
    let mut rows = Vec::new();
    println!("| operation | instructions{}", head(&programs));
    for name in known {
        if options.only.is_empty() || options.only.iter().any(|only| only == name) {
            let counts = programs
                .iter()
                .map(|(_, program)| count_each(program, name));
            let row = (name.to_owned(), counts.collect::<Result<Vec<u64>>>()?);
            println!("{}", line(&row));
            rows.push(row);
        }
    }
    std::fs::write(&options.json, json_text(&programs, &rows))
        .with_context(|| format!("cannot write {}", options.json.display()))?;
    println!("written to {}", options.json.display());
    Ok(())
}

struct Options {
    only: Vec<String>,
    compare: Option<String>,
    json: PathBuf,
}

impl Options {
    /// Nothing if only help was asked for.
    fn parse(args: &[String]) -> Result<Option<Self>> {
        let mut options = Self {
            only: Vec::new(),
            compare: None,
            json: process::root().join("target/instructions.json"),
        };
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            let mut value = || args.next().with_context(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
                "--compare" => options.compare = Some(value()?.clone()),
                "--json" => options.json = value()?.into(),
                "--help" | "-h" => return Ok(None),
                other => bail!("unknown flag {other}\n{USAGE}"),
            }
        }
        Ok(Some(options))
    }
}

/// A revision from before the program existed gets today's.
fn build_revision(name: &str) -> Result<PathBuf> {
    let revision = Revision::check_out(name)?;
    let source = revision.tree.join(SOURCE);
    if !source.exists() {
        std::fs::copy(process::root().join(SOURCE), source)?;
    }
    let args = ["-p", "tyo-mq-server", "--example", EXAMPLE];
    revision.build(&args, &format!("examples/{EXAMPLE}"))
}

/// Instructions of one operation.
fn count_each(program: &Path, operation: &str) -> Result<u64> {
    let [few, many] = COUNTS;
    let once = count(program, operation, few)?;
    let more = count(program, operation, many)?;
    Ok(more.saturating_sub(once) / u64::from(many - few))
}

fn count(program: &Path, operation: &str, times: u32) -> Result<u64> {
    let output = process::command("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([operation, &times.to_string()])
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!(
            "{operation} ended with {} under valgrind:\n{said}",
            output.status
        );
    }
    collected(&said).with_context(|| format!("valgrind did not say what it counted:\n{said}"))
}

/// The sum in what callgrind says at its end.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

fn head(programs: &[(String, PathBuf)]) -> String {
    match programs.get(1) {
        Some((revision, _)) => format!(" | {revision} | ours is |\n|---|---|---|---|"),
        None => " |\n|---|---|".to_owned(),
    }
}

fn line((operation, counts): &(String, Vec<u64>)) -> String {
    let mut line = format!("| {operation} |");
    for count in counts {
        line.push_str(&format!(" {count} |"));
    }
    if let [ours, theirs] = counts.as_slice() {
        line.push_str(&format!(
            " {:.3}x |",
            *ours as f64 / (*theirs).max(1) as f64
        ));
    }
    line
}

fn json_text(programs: &[(String, PathBuf)], rows: &[(String, Vec<u64>)]) -> String {
    let rows = rows.iter().map(|(operation, counts)| {
        let named = programs
            .iter()
            .map(|(name, _)| name.clone())
            .zip(counts.iter().copied());
        let named: serde_json::Map<String, Value> =
            named.map(|(name, count)| (name, count.into())).collect();
        json!({ "operation": operation, "instructions": named })
    });
    format!("{:#}\n", Value::Array(rows.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_found() {
        let said = "==1== Events    : Ir\n==1== Collected : 1234567\n==1== \n";
        assert_eq!(collected(said), Some(1_234_567));
        assert_eq!(collected("==1== nothing"), None);
    }

    #[test]
    fn two_counts_have_a_ratio() {
        let check = |counts: &[u64], expected| {
            assert_eq!(line(&("ack".to_owned(), counts.to_vec())), expected);
        };
        check(&[90], "| ack | 90 |");
        check(&[90, 100], "| ack | 90 | 100 | 0.900x |");
    }

    #[test]
    fn wrong_flags_are_refused() {
        let parse =
            |line: &str| Options::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(parse("--only").is_err());
        assert!(parse("--nonsense").is_err());
        assert_eq!(
            parse("--compare main").unwrap().unwrap().compare.as_deref(),
            Some("main")
        );
    }
}
