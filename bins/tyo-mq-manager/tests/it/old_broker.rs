//! Against a broker that has the commands of the reference and no others.

use crate::program::{Program, list, text};
use crate::stage::Stage;

#[test]
fn a_dry_run_is_not_sent_since_it_would_be_done() {
    let stage = Stage::old();
    Program::admin(&stage, &["realm", "remove", "shop", "-n"]).fails(8);
    Program::admin(&stage, &["realm", "show", "shop"]).json();
}

#[test]
fn lists_come_from_the_settings() {
    let stage = Stage::old();
    let realms = Program::admin(&stage, &["realm", "list", "--prefix", "sh"]).json();
    assert_eq!(text(list(&realms, "realms")[0], &["realm"]), "shop");
    let tokens = Program::admin(&stage, &["token", "list", "-r", "*"]).json();
    assert_eq!(text(list(&tokens, "tokens")[0], &["role"]), "admin");
    Program::anonymous(&stage, &["request", "submit", "-r", "shop"]).succeeds();
    let requests = Program::admin(&stage, &["request", "list"]).json();
    assert_eq!(text(list(&requests, "requests")[0], &["realm"]), "shop");
    Program::admin(&stage, &["audit"]).fails(7);
}
