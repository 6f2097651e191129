//! Runs the black-box case collection, which lives beside the repository, against a release build.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::conformance;
use crate::process;

/// Names the folder of the collection when it is not at the usual place.
pub(crate) const FOLDER_VARIABLE: &str = "TYO_MQ_CASES";

/// Kinds of cases that the broker is meant to pass now.
const KINDS: [&str; 30] = [
    "parser",
    "handshake-upgrade",
    "polling-concurrency",
    "websocket-framing",
    "binary-attachments",
    "unicode-escaping",
    "numbers",
    "topic-matching",
    "groups",
    "chunks",
    "ordering",
    "subscriptions",
    "reconnect-duplicate-names",
    "cors-origin",
    "http-smuggling",
    "isolation",
    "acks",
    "dlq",
    "ttl",
    "sqlite",
    "backpressure",
    "memory-growth",
    "timers-clock",
    "shutdown",
    "redis",
    "auth-replay",
    "jwt",
    "config-reload",
    "proxy-headers",
    "http-api",
];

/// Cases of those kinds that wait for a feature: (id, what it waits for).
const EXPECTED_LATER: [(&str, &str); 2] = [
    ("cluster-relay-resumes-after-redis-loss", "clusters"),
    ("remote-ticket-rules", "the /remote namespace"),
];

/// Runs the cases in scope, or all of them with `--all`; other arguments go to the runner.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let folder = match locate() {
        Ok(folder) => folder,
        Err(missing) => bail!("{missing}"),
    };
    if !process::is_available("python3", &["--version"]) {
        bail!("the case runner needs Python 3.9 or newer, and there is no `python3`");
    }
    let mut passed_on: Vec<&str> = args.iter().map(String::as_str).collect();
    let all = passed_on.iter().position(|arg| *arg == "--all");
    if let Some(index) = all {
        passed_on.remove(index);
    }
    let broker = conformance::build_broker()?;
    let mut command = process::command("python3");
    command
        .arg(folder.join("run.py"))
        .arg("--start")
        .arg(start_template(&broker));
    if all.is_none() {
        for (id, feature) in EXPECTED_LATER {
            println!("LATER {id} — waits for {feature}");
        }
        command.arg("--only").arg(in_scope(&folder)?.join(","));
    }
    process::run(command.args(passed_on))
}

/// The collection's folder, or what to say when there is none.
pub(crate) fn locate() -> std::result::Result<PathBuf, String> {
    let folder = match std::env::var_os(FOLDER_VARIABLE) {
        Some(folder) => PathBuf::from(folder),
        None => process::root().join("../shared/cases"),
    };
    if folder.join("run.py").is_file() {
        return Ok(folder);
    }
    Err(format!(
        "THE BLACK-BOX CASE COLLECTION IS NOT THERE: no run.py in {}; {FOLDER_VARIABLE} may name another folder",
        folder.display()
    ))
}

fn start_template(broker: &Path) -> String {
    let quoted = broker.display().to_string().replace('\'', r"'\''");
    format!("'{quoted}' --settings {{settings}} --port {{port}}")
}

/// Ids of the cases in `KINDS` without those expected later, sorted.
fn in_scope(folder: &Path) -> Result<Vec<String>> {
    let mut ids = BTreeSet::new();
    for kind in KINDS {
        let found = ids_in(&folder.join(kind))?;
        if found.is_empty() {
            println!("NO CASES of kind {kind} in {}", folder.display());
        }
        ids.extend(found);
    }
    for (id, _) in EXPECTED_LATER {
        if !ids.remove(id) {
            println!("NO CASE {id}, which is expected to pass later");
        }
    }
    if ids.is_empty() {
        bail!("no case of any kind in {}", folder.display());
    }
    Ok(ids.into_iter().collect())
}

/// A case's file is named like the case.
fn ids_in(folder: &Path) -> Result<Vec<String>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut ids = Vec::new();
    for entry in folder
        .read_dir()
        .with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            ids.extend(
                path.file_stem()
                    .map(|stem| stem.to_string_lossy().into_owned()),
            );
        }
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_command_keeps_its_placeholders_and_quotes_the_path() {
        let template = start_template(Path::new("/opt/my broker/it's"));
        assert_eq!(
            template,
            r"'/opt/my broker/it'\''s' --settings {settings} --port {port}"
        );
    }

    #[test]
    fn no_case_waits_for_two_things() {
        let ids: BTreeSet<&str> = EXPECTED_LATER.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids.len(), EXPECTED_LATER.len());
    }

    #[test]
    fn a_folder_that_is_not_there_holds_no_cases() {
        assert!(ids_in(Path::new("no/such/folder")).unwrap().is_empty());
        assert!(in_scope(Path::new("no/such/folder")).is_err());
    }
}
