//! What the global admin does: realms, tokens, settings, limits, clients, and the failures in between.

use tyo_mq_auth::json::Value;

use crate::program::{Program, at, list, object, text};
use crate::stage::{ADMIN_TOKEN, Stage};

#[track_caller]
fn succeeds(stage: &Stage, args: &[&str]) -> String {
    Program::admin(stage, args).succeeds()
}

fn realm(stage: &Stage, name: &str) -> tyo_mq_auth::json::Object {
    Program::admin(stage, &["realm", "show", name]).json()
}

#[test]
fn a_realm_from_its_creation_to_its_end() {
    let stage = Stage::new();
    let added = Program::admin(
        &stage,
        &[
            "realm",
            "add",
            "lab",
            "--ttl",
            "2h",
            "--generate-manager-key",
        ],
    )
    .json();
    assert_eq!(text(&added, &["manager_key"]).len(), 64);
    let shown = realm(&stage, "lab");
    assert_eq!(at(&shown, &["realm", "ephemeral"]), &Value::from(true));
    assert_eq!(
        at(&shown, &["realm", "manager_key_configured"]),
        &Value::from(true)
    );
    for (args, field, expected) in [
        (
            &["set-auth", "lab", "open"][..],
            "required",
            Value::from(false),
        ),
        (
            &["set-acceptance", "lab", "waived"],
            "require_acceptance",
            Value::from(false),
        ),
        (
            &["set-anonymous", "lab", "allow"],
            "allow_anonymous",
            Value::from(true),
        ),
        (
            &["set-e2ee", "lab", "required"],
            "e2ee",
            Value::from("required"),
        ),
        (
            &["set-lifetime", "lab", "permanent"],
            "ephemeral",
            Value::Null,
        ),
        (
            &["set-key", "lab", "--generate"],
            "key_configured",
            Value::from(true),
        ),
        (
            &["set-key", "lab", "--require-key", "true"],
            "require_key",
            Value::from(true),
        ),
        (
            &["set-key", "lab", "--require-key", "false"],
            "key_configured",
            Value::from(true),
        ),
        (
            &["set-key", "lab", "--clear"],
            "key_configured",
            Value::Null,
        ),
        (
            &["set-manager-key", "lab", "--clear", "--yes"],
            "manager_key_configured",
            Value::Null,
        ),
    ] {
        succeeds(&stage, &[&["realm"], args].concat());
        assert_eq!(
            at(&realm(&stage, "lab"), &["realm", field]),
            &expected,
            "{args:?}"
        );
    }
    succeeds(&stage, &["realm", "rename", "lab", "lab2", "-y"]);
    let listed = succeeds(&stage, &["realm", "list"]);
    assert!(
        listed.contains("lab2") && listed.contains("shop"),
        "{listed}"
    );
    succeeds(&stage, &["realm", "remove", "lab2", "--yes"]);
    Program::admin(&stage, &["realm", "show", "lab2"]).fails(5);
}

#[test]
fn failures_have_their_exit_codes() {
    let stage = Stage::new();
    let check = |args: &[&str], exit: i32| {
        Program::admin(&stage, args).fails(exit);
    };
    check(&["realm", "add", "shop"], 6);
    check(&["realm", "add", "x", "--ttl", "soon"], 7);
    check(&["realm", "set-key", "nowhere", "--generate"], 5);
    check(&["realm", "set-key", "shop"], 2);
    check(&["realm", "remove", "shop"], 10);
    check(&["realm", "remove", "default", "-y"], 7);
    check(&["token", "add"], 2);
    check(&["token", "revoke", &"0".repeat(64), "-y"], 5);
    check(&["settings", "reload", "--url", "http://127.0.0.1:1"], 3);
    check(&["settings", "get", "--url", "ftp://broker"], 2);
    check(&["backup", "copy.sqlite"], 8);
    check(&["stats", "--token-file", "/nowhere"], 1);
    Program::anonymous(&stage, &["stats"]).fails(4);
    let wrong = Program::anonymous(&stage, &["stats"]).env("TYO_MQ_ADMIN_TOKEN", "wrong");
    assert_eq!(text(&wrong.fails(4), &["kind"]), "not_permitted");
    let usage = Program::admin(&stage, &["realm", "bogus"]).run();
    assert_eq!((usage.exit, usage.stdout.as_str()), (2, ""));
    let silent = Program::admin(&stage, &[]).run();
    assert_eq!(silent.exit, 2, "no menu without a terminal");
}

#[test]
fn a_dry_run_changes_nothing() {
    let stage = Stage::new();
    for args in [
        &["realm", "remove", "shop"][..],
        &["realm", "add", "new", "--generate-key"],
        &["realm", "set-manager-key", "shop", "--generate"],
        &["token", "add", "-r", "shop"],
        &["auth", "disable"],
        &["persistence", "set", "memory"],
    ] {
        let args = [args, &["--dry-run"]].concat();
        let answer = Program::admin(&stage, &args).json();
        assert_eq!(at(&answer, &["dry_run"]), &Value::from(true));
        for secret in ["key", "token", "manager_key"] {
            assert_eq!(
                at(&answer, &[secret]),
                &Value::Null,
                "no secret that is not good"
            );
        }
    }
    let said = succeeds(&stage, &["realm", "remove", "shop", "-n"]);
    assert_eq!(said, "would remove realm shop\n");
    realm(&stage, "shop");
    Program::admin(&stage, &["realm", "show", "new"]).fails(5);
    Program::admin(&stage, &["realm", "remove", "nowhere", "-n"]).fails(5);
}

#[test]
fn tokens_are_shown_once_and_revoked() {
    let stage = Stage::new();
    let add = [
        "token",
        "add",
        "-r",
        "shop",
        "--role",
        "consumer",
        "--client-id",
        "till-1",
    ];
    let added = Program::admin(&stage, &add).json();
    let token = text(&added, &["token"]).to_owned();
    assert_eq!(text(&added, &["added", "role"]), "consumer");
    let given = stage.file("token", "a token of our own\n");
    let add = [&add[..], &["--from-file", &given]].concat();
    let again = Program::admin(&stage, &add).json();
    assert_eq!(at(&again, &["token"]), &Value::Null, "the user has it");
    let verified = Program::anonymous(&stage, &["auth", "verify", "--token-env", "MINE"])
        .env("MINE", &token)
        .json();
    assert_eq!(
        (text(&verified, &["realm"]), text(&verified, &["role"])),
        ("shop", "consumer")
    );
    let listed = Program::admin(&stage, &["token", "list", "-r", "shop"]).json();
    assert_eq!(list(&listed, "tokens").len(), 2);
    let hash = text(list(&listed, "tokens")[0], &["token_hash"]).to_owned();
    Program::admin(&stage, &["token", "revoke", &hash]).fails(10);
    succeeds(&stage, &["token", "revoke", &hash, "--yes"]);
    succeeds(
        &stage,
        &[
            "token",
            "revoke",
            "--client-id",
            "till-1",
            "-r",
            "shop",
            "-y",
        ],
    );
    let listed = Program::admin(&stage, &["token", "list", "-r", "shop"]).json();
    assert!(list(&listed, "tokens").is_empty());
}

#[test]
fn the_last_admin_stays() {
    let stage = Stage::new();
    let listed = Program::admin(&stage, &["token", "list", "-r", "*"]).json();
    let hash = text(list(&listed, "tokens")[0], &["token_hash"]).to_owned();
    Program::admin(&stage, &["token", "revoke", &hash, "-y"]).fails(5);
    Program::admin(&stage, &["token", "revoke", &hash, "-y", "--allow-admin"]).fails(6);
}

#[test]
fn management_tokens() {
    let stage = Stage::new();
    let added = Program::admin(
        &stage,
        &[
            "mgmt-token",
            "add",
            "lab:",
            "--ephemeral-only",
            "--max-ttl",
            "1h",
        ],
    )
    .json();
    assert_eq!(text(&added, &["token"]).len(), 64);
    let listed = Program::admin(&stage, &["mgmt-token", "list"]).json();
    let tokens = list(&listed, "management_tokens");
    assert_eq!(text(tokens[0], &["realm_prefix"]), "lab:");
    let hash = text(tokens[0], &["token_hash"]);
    succeeds(&stage, &["mgmt-token", "revoke", hash, "-y"]);
    let listed = succeeds(&stage, &["mgmt-token", "list"]);
    assert_eq!(listed, "no management tokens\n");
}

#[test]
fn validators() {
    let stage = Stage::new();
    let secret = stage.file("secret", "s3cret");
    let set = ["external-auth", "set", "http://127.0.0.1:1/check"];
    succeeds(&stage, &[&set[..], &["--secret-file", &secret]].concat());
    succeeds(&stage, &[&set[..], &["--prefix", "lab:"]].concat());
    succeeds(&stage, &[&set[..], &["-r", "shop"]].concat());
    let listed = Program::admin(&stage, &["external-auth", "list"]).json();
    let scopes: Vec<_> = list(&listed, "validators")
        .into_iter()
        .map(|validator| text(validator, &["scope"]))
        .collect();
    assert_eq!(scopes, ["global", "prefix", "realm"]);
    assert!(!Value::from(listed).to_json().contains("s3cret"));
    for scope in [&[][..], &["--prefix", "lab:"], &["-r", "shop"]] {
        succeeds(&stage, &[&["external-auth", "clear", "-y"], scope].concat());
    }
    assert_eq!(
        succeeds(&stage, &["external-auth", "list"]),
        "no validators\n"
    );
}

#[test]
fn settings_stats_limits_and_the_audit_trail() {
    let stage = Stage::new();
    let settings = object(&succeeds(&stage, &["settings", "get"]));
    assert_eq!(at(&settings, &["enabled"]), &Value::from(true));
    assert!(!Value::from(settings).to_json().contains(ADMIN_TOKEN));
    assert!(succeeds(&stage, &["persistence", "show"]).contains("memory"));
    let set = ["persistence", "set", "sqlite", "--option"];
    let said = succeeds(&stage, &[&set[..], &["durability=full", "-y"]].concat());
    assert!(said.contains("in sqlite now"), "{said}");
    Program::admin(&stage, &[&set[..], &["durability", "-y"]].concat()).fails(2);
    let stats = Program::admin(&stage, &["stats"]).json();
    assert!(
        at(&stats, &["stats", "connections_current"])
            .as_number()
            .is_some()
    );
    succeeds(
        &stage,
        &[
            "limits",
            "set",
            "messages_per_second=20",
            "bytes_burst=none",
        ],
    );
    let limits = Program::admin(&stage, &["limits", "get"]).json();
    assert_eq!(
        at(&limits, &["limits", "messages_per_second"]).as_number(),
        Some(20.0)
    );
    Program::admin(&stage, &["limits", "set", "bogus=1"]).fails(7);
    Program::admin(&stage, &["limits", "set", "bogus"]).fails(2);
    let audit = Program::admin(&stage, &["audit", "--limit", "2"]).run();
    assert_eq!(audit.exit, 0);
    assert!(audit.stdout.contains("set_limits"), "{audit:?}");
}

#[test]
fn strict_jwt_secret_and_digests() {
    let stage = Stage::new();
    succeeds(&stage, &["auth", "strict", "on"]);
    let made = Program::admin(&stage, &["auth", "jwt-secret", "--generate"]).json();
    assert_eq!(text(&made, &["jwt_secret"]).len(), 64);
    let settings = object(&succeeds(&stage, &["settings", "get"]));
    assert_eq!(at(&settings, &["strict"]), &Value::from(true));
    assert_eq!(text(&settings, &["jwt_secret"]), "<configured>");
    succeeds(&stage, &["auth", "jwt-secret", "--clear", "-y"]);
    succeeds(&stage, &["auth", "hash-tokens"]);
    succeeds(&stage, &["auth", "disable", "-y"]);
    succeeds(&stage, &["auth", "enable"]);
}

#[test]
fn clients_are_listed_and_disconnected() {
    let stage = Stage::new();
    let waits = ["request", "submit", "-r", "shop", "--wait", "--json"];
    let waiting = Program::anonymous(&stage, &waits).start();
    let sockets = || -> Vec<String> {
        let clients = Program::admin(&stage, &["client", "list"]).json();
        let clients = list(&clients, "clients").into_iter();
        clients
            .map(|client| text(client, &["socket"]).to_owned())
            .collect()
    };
    // The program that lists is a client, too, but another one each time.
    let socket = loop {
        let requests = Program::admin(&stage, &["request", "list"]).json();
        if list(&requests, "requests").is_empty() {
            continue;
        }
        let before = sockets();
        let stayed = sockets().into_iter().find(|socket| before.contains(socket));
        break stayed.unwrap();
    };
    Program::admin(&stage, &["client", "disconnect", "nobody", "-y"]).fails(5);
    succeeds(&stage, &["client", "disconnect", &socket, "-y"]);
    let ended = waiting.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(3), "its connection was lost");
}

#[test]
fn lists_fit_where_they_go_and_say_what_they_leave_out() {
    let stage = Stage::new();
    for n in 0..3 {
        succeeds(&stage, &["realm", "add", &format!("lab{n}")]);
    }
    let page = Program::admin(&stage, &["realm", "list", "--limit", "2"]).run();
    assert_eq!(page.stdout.lines().count(), 3, "{page:?}");
    assert_eq!(page.stderr, "2 of 5; go on with --offset 2\n");
    let prefixed = Program::admin(&stage, &["realm", "list", "--prefix", "lab"]).json();
    assert_eq!(list(&prefixed, "realms").len(), 3);
}
