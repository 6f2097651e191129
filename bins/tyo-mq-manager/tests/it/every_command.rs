//! Every command that the help names, without a terminal and with `--json`, against the real broker: one document each, and
//! the exit code that it tells.

use std::collections::BTreeSet;

use tyo_mq_auth::json::{Object, Value};

use crate::fresh::Fresh;
use crate::program::{Program, object};

/// Command lines in an order in which each finds what it needs, and how they end. `{request_id}` and `{token_hash}` are the
/// last ones that an answer had.
const LINES: &[(&str, i32)] = &[
    ("auth verify", 0),
    ("auth enable", 0),
    ("auth strict on", 0),
    ("auth jwt-secret --generate", 0),
    ("auth hash-tokens", 0),
    ("settings get", 0),
    ("settings reload", 0),
    ("realm add lab --generate-manager-key --generate-key", 0),
    ("realm add lab", 6),
    ("realm add old --open --ttl 1h", 0),
    ("realm list", 0),
    ("realm show lab", 0),
    ("realm show nowhere", 5),
    ("realm rename old older", 10),
    ("realm rename old older --yes", 0),
    ("realm remove older --yes", 0),
    ("realm set-auth lab required", 0),
    ("realm set-key lab --generate --require-key true", 0),
    ("realm set-manager-key lab --generate --yes", 0),
    ("realm set-acceptance lab waived", 0),
    ("realm set-anonymous lab deny", 0),
    ("realm set-lifetime lab ephemeral --ttl 2h", 0),
    ("realm set-e2ee lab opportunistic", 0),
    ("token add -r lab --role consumer --client-id till", 0),
    ("token list -r lab", 0),
    ("token revoke {token_hash} --yes", 0),
    ("token revoke {token_hash} --yes", 5),
    ("request submit -r lab --client-id a", 0),
    ("request next -r lab", 0),
    ("request approve {request_id} --role producer", 0),
    ("request submit -r lab --client-id b", 0),
    ("request list", 0),
    ("request reject {request_id} --reason no", 0),
    ("request reject {request_id}", 5),
    ("client list", 0),
    ("client disconnect nobody --yes", 5),
    ("mgmt-token add lab: --ephemeral-only --max-ttl 1h", 0),
    ("mgmt-token list", 0),
    ("mgmt-token revoke {token_hash} --yes", 0),
    ("external-auth set http://127.0.0.1:1/ --prefix lab:", 0),
    ("external-auth list", 0),
    ("external-auth clear --prefix lab: --yes", 0),
    (
        "persistence set sqlite --filename kept.sqlite --option durability=full --yes",
        0,
    ),
    ("persistence set sqlite --filename ../kept.sqlite --yes", 7),
    ("persistence show", 0),
    ("limits set messages_per_second=100 -r lab", 0),
    ("limits get -r lab", 0),
    ("dlq list -r lab", 0),
    ("dlq show nothing", 5),
    ("dlq replay nothing", 5),
    ("dlq discard nothing --yes", 0),
    ("stats", 0),
    ("smoke-test", 0),
    ("audit --limit 5", 0),
    ("backup copy.sqlite", 0),
    ("backup copy.sqlite", 6),
    ("health", 0),
    ("metrics", 0),
    ("jwt mint -r lab --secret-env TYO_MQ_ADMIN_TOKEN", 0),
    ("proof sign AUTHORIZATION_NEXT", 0),
    ("context add here --token-env TYO_MQ_ADMIN_TOKEN", 0),
    ("context list", 0),
    ("context show here", 0),
    ("context use here", 0),
    ("context remove here", 0),
    ("auth disable --yes", 0),
];

/// These have no document of their own: a script of a shell, a dialogue, and one document a line.
const OTHERS: [&str; 3] = ["completion", "menu", "request watch"];

#[test]
fn answers_with_one_document() {
    let broker = Fresh::with_everything();
    let mut last = Object::new();
    for (line, exit) in LINES {
        let mut line = (*line).to_owned();
        for name in ["request_id", "token_hash"] {
            let id = last.get(name).and_then(Value::as_str).unwrap_or_default();
            line = line.replace(&format!("{{{name}}}"), id);
        }
        let args: Vec<&str> = line.split(' ').chain(["--json"]).collect();
        let done = Program::new(broker.home(), &args)
            .env("TYO_MQ_URL", &broker.url())
            .run();
        assert_eq!(done.exit, *exit, "{line}: {done:?}");
        let answer = object(&done.stdout);
        if !line.starts_with("proof") {
            let is_ok = answer.get("ok").and_then(Value::as_bool);
            assert_eq!(is_ok, Some(*exit == 0), "{line}: {done:?}");
        }
        remember(&mut last, &answer.into());
    }
    for file in ["copy.sqlite", "kept.sqlite"] {
        let is_there = broker.home().join(file).exists();
        assert!(is_there, "{file} is where the settings are");
    }
}

/// Keeps the ids of an answer, the last of each.
fn remember(last: &mut Object, value: &Value) {
    if let Some(object) = value.as_object() {
        for (name, value) in object.iter() {
            let name = name.to_lossy();
            if ["request_id", "token_hash"].contains(&name.as_str()) {
                last.set(&name, value.clone());
            }
            remember(last, value);
        }
    }
    for value in value.as_list().unwrap_or_default() {
        remember(last, value);
    }
}

#[test]
fn none_is_left_out() {
    let tried: BTreeSet<String> = LINES
        .iter()
        .map(|(line, _)| {
            let words: Vec<&str> = line.split(' ').collect();
            let is_group = !subcommands(&words[..1]).is_empty();
            words[..if is_group { 2 } else { 1 }].join(" ")
        })
        .chain(OTHERS.map(str::to_owned))
        .collect();
    let mut named = BTreeSet::new();
    for command in subcommands(&[]) {
        let inner = subcommands(&[&command]);
        if inner.is_empty() {
            named.insert(command);
        } else {
            named.extend(inner.iter().map(|inner| format!("{command} {inner}")));
        }
    }
    assert_eq!(named, tried);
}

/// The commands that the help of a command names.
fn subcommands(command: &[&str]) -> Vec<String> {
    let home = std::env::temp_dir();
    let help = Program::new(&home, &[command, &["--help"]].concat()).succeeds();
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help")
        .map(str::to_owned)
        .collect()
}
