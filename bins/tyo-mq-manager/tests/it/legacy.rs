//! The reference's scripts by their names and flags.

use crate::program::{Program, object, text};
use crate::stage::{ADMIN_TOKEN, SHOP_KEY, Stage};

/// Host and port as the scripts take them.
fn flags(stage: &Stage) -> [String; 6] {
    let (host, port) = (
        stage.addr().ip().to_string(),
        stage.addr().port().to_string(),
    );
    let flag = |name: &str| name.to_owned();
    [flag("-h"), host, flag("-p"), port, flag("-s"), flag("http")]
}

fn script(stage: &Stage, args: &[&str]) -> Program {
    let flags = flags(stage);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Program::new(stage.home(), &[args, &flags].concat())
}

#[test]
fn the_admins_token_from_an_env_file() {
    let stage = Stage::new();
    let file = stage.file(
        "broker.env",
        &format!("# broker\nMQ_TOKEN=\"{ADMIN_TOKEN}\"\n"),
    );
    let args = ["admin-auth", "--env-file", &file, "--token-env", "MQ_TOKEN"];
    let said = script(&stage, &args).succeeds();
    let granted = object(said.strip_prefix("AUTH_OK ").unwrap());
    assert_eq!(
        (text(&granted, &["realm"]), text(&granted, &["role"])),
        ("*", "admin")
    );
    stage.file(".env", "TYO_MQ_ADMIN_TOKEN=wrong\n");
    let refused = script(&stage, &["admin-auth"]).run();
    assert_eq!(refused.exit, 1);
    assert!(
        refused.stdout.starts_with("AUTH_FAIL {\"code\":401,"),
        "{refused:?}"
    );
    // The environment goes before the file.
    script(&stage, &["admin-auth"])
        .env("TYO_MQ_ADMIN_TOKEN", ADMIN_TOKEN)
        .succeeds();
}

#[test]
fn from_a_request_to_a_decision() {
    let stage = Stage::new();
    let args = [
        "auth-request",
        "--realm",
        "shop",
        "--role",
        "consumer",
        "--client-id",
        "c",
        "--client-name",
        "n",
        "--client-token",
        "t-1",
    ];
    let submitted = object(&script(&stage, &args).succeeds());
    assert_eq!(text(&submitted, &["client_token"]), "t-1");
    assert_eq!(text(&submitted, &["status"]), "pending");
    let id = text(&submitted, &["request_id"]);
    let manager = |args: &[&str]| {
        let args = [&["auth-manager"], args].concat();
        script(&stage, &args).env("TYO_MQ_REALM_MANAGER_KEY", SHOP_KEY)
    };
    let next = object(&manager(&["next", "--realm", "shop"]).succeeds());
    assert_eq!(text(&next, &["request", "request_id"]), id);
    let approved = object(&manager(&["approve", id]).succeeds());
    assert_eq!(text(&approved, &["request", "role"]), "consumer");
    assert_eq!(manager(&["approve", id]).run().exit, 1);
    let refused = manager(&["reject", "nothing", "--reason", "r"]).run();
    assert_eq!((refused.exit, refused.stdout.as_str()), (1, ""));
    let unknown = manager(&["approve", id, "--bogus"]).run();
    assert_ne!(unknown.exit, 0);
}
