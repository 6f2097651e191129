//! Saved servers, and which of several addresses and secrets counts.

use std::os::unix::fs::PermissionsExt;

use crate::program::{Program, list, text};
use crate::stage::{ADMIN_TOKEN, Stage};

fn program(stage: &Stage, args: &[&str]) -> Program {
    Program::new(stage.home(), args)
}

#[test]
fn a_context_says_where_server_and_token_are() {
    let stage = Stage::new();
    let (url, file) = (stage.url(), stage.file("token", ADMIN_TOKEN));
    let add = [
        "context",
        "add",
        "here",
        "--url",
        &url,
        "--token-file",
        &file,
    ];
    program(&stage, &add).succeeds();
    let kept = stage.home().join(".config/tyo-mq/manager.json");
    let text_of_file = std::fs::read_to_string(&kept).unwrap();
    assert!(
        !text_of_file.contains(ADMIN_TOKEN),
        "it says where the token is"
    );
    let mode = std::fs::metadata(&kept).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The first one is the current one.
    program(&stage, &["stats"]).succeeds();
    program(&stage, &add).fails(6);
    program(
        &stage,
        &["context", "add", "there", "--url", "http://127.0.0.1:1"],
    )
    .succeeds();
    program(&stage, &["stats", "-c", "there"]).fails(4);
    program(&stage, &["context", "use", "there"]).succeeds();
    program(&stage, &["stats"]).fails(4);
    program(&stage, &["stats", "-c", "here"]).succeeds();
    program(&stage, &["stats"])
        .env("TYO_MQ_CONTEXT", "here")
        .succeeds();
    let contexts = program(&stage, &["context", "list"]).json();
    assert_eq!(text(list(&contexts, "contexts")[1], &["name"]), "there");
    program(&stage, &["context", "remove", "there"]).succeeds();
    program(&stage, &["context", "show"]).fails(5);
    program(&stage, &["context", "use", "there"]).fails(5);
    program(&stage, &["stats", "-c", "there"]).fails(5);
}

#[test]
fn a_token_is_kept_when_that_is_asked_for() {
    let stage = Stage::new();
    let url = stage.url();
    program(
        &stage,
        &["context", "add", "here", "--url", &url, "--store-token"],
    )
    .env("TYO_MQ_ADMIN_TOKEN", ADMIN_TOKEN)
    .succeeds();
    program(&stage, &["stats"]).succeeds();
    let shown = program(&stage, &["context", "show"]).succeeds();
    assert!(
        shown.contains("stored") && !shown.contains(ADMIN_TOKEN),
        "{shown}"
    );
}

#[test]
fn the_tokens_of_one_server_do_not_go_to_another() {
    let stage = Stage::new();
    let url = stage.url();
    program(
        &stage,
        &["context", "add", "here", "--url", &url, "--store-token"],
    )
    .env("TYO_MQ_ADMIN_TOKEN", ADMIN_TOKEN)
    .succeeds();
    // The address of a flag or variable has nothing to do with the current context.
    program(&stage, &["stats", "--url", &url]).fails(4);
    program(&stage, &["stats"]).env("TYO_MQ_URL", &url).fails(4);
    // A context's own token goes before one that happens to be in the environment.
    program(&stage, &["stats"])
        .env("TYO_MQ_ADMIN_TOKEN", "another")
        .succeeds();
    program(&stage, &["stats", "--token-env", "MINE"])
        .env("MINE", "another")
        .fails(4);
}

#[test]
fn a_file_that_is_broken_is_said_to_be() {
    let stage = Stage::new();
    let path = stage.file("contexts.json", "{");
    program(&stage, &["context", "list"])
        .env("TYO_MQ_MANAGER_CONFIG", &path)
        .fails(1);
}
