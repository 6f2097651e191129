//! What a realm's manager may do with the realm's key, and what not.

use tyo_mq_auth::json::Value;

use crate::program::{Program, at};
use crate::stage::{ADMIN_TOKEN, SHOP_KEY, Stage};

fn manager(stage: &Stage, args: &[&str]) -> Program {
    Program::anonymous(stage, args).env("TYO_MQ_REALM_MANAGER_KEY", SHOP_KEY)
}

#[test]
fn its_own_realm() {
    let stage = Stage::new();
    let answer = manager(&stage, &["realm", "set-acceptance", "shop", "waived"]).json();
    assert_eq!(
        at(
            &answer,
            &["settings", "realms", "shop", "require_acceptance"]
        ),
        &Value::from(false)
    );
    manager(&stage, &["realm", "set-key", "shop", "--generate"]).succeeds();
    manager(&stage, &["realm", "set-e2ee", "shop", "off"]).succeeds();
    manager(
        &stage,
        &["realm", "set-lifetime", "shop", "ephemeral", "--ttl", "1h"],
    )
    .succeeds();
    manager(&stage, &["request", "list", "-r", "shop"]).succeeds();
    manager(&stage, &["realm", "set-e2ee", "shop", "required", "-n"]).succeeds();
}

#[test]
fn nothing_else() {
    let stage = Stage::new();
    manager(&stage, &["realm", "set-acceptance", "default", "waived"]).fails(4);
    manager(&stage, &["request", "next", "-r", "default"]).fails(4);
    // What only the admin may sign is not signed with the realm's key.
    let refused = manager(&stage, &["realm", "add", "x"]).fails(4);
    assert_eq!(
        at(&refused, &["code"]),
        &Value::Null,
        "the broker was not asked"
    );
}

#[test]
fn who_signs_can_be_said() {
    let stage = Stage::new();
    let both = |args: &[&str]| manager(&stage, args).env("TYO_MQ_ADMIN_TOKEN", ADMIN_TOKEN);
    both(&["realm", "set-acceptance", "default", "waived"]).fails(4);
    both(&[
        "realm",
        "set-acceptance",
        "default",
        "waived",
        "--as",
        "admin",
    ])
    .succeeds();
    let file = stage.file("key", SHOP_KEY);
    Program::admin(
        &stage,
        &[
            "realm",
            "set-e2ee",
            "shop",
            "off",
            "--manager-key-file",
            &file,
            "--as",
            "realm",
        ],
    )
    .succeeds();
    Program::anonymous(
        &stage,
        &[
            "realm",
            "set-e2ee",
            "shop",
            "off",
            "--manager-key-file",
            "-",
        ],
    )
    .stdin(SHOP_KEY)
    .succeeds();
}
