//! A message through the real broker, with and without the right to send it.

use crate::fresh::Fresh;
use crate::program::{Program, text};

fn smoke_test(broker: &Fresh, args: &[&str]) -> Program {
    program(broker, &[&["smoke-test"], args].concat())
}

fn program(broker: &Fresh, args: &[&str]) -> Program {
    Program::new(broker.home(), args).env("TYO_MQ_URL", &broker.url())
}

#[test]
fn a_message_comes_round() {
    let broker = Fresh::start();
    let done = smoke_test(&broker, &[]).json();
    assert_eq!(
        (text(&done, &["realm"]), text(&done, &["role"])),
        ("*", "admin")
    );
    program(&broker, &["realm", "add", "shop"]).succeeds();
    let add = ["token", "add", "-r", "shop", "--role"];
    for (role, exit) in [("both", 0), ("consumer", 4), ("producer", 4)] {
        let added = program(&broker, &[&add[..], &[role]].concat()).json();
        let with_token = smoke_test(&broker, &["--client-token-env", "TOKEN"])
            .env("TOKEN", text(&added, &["token"]));
        if exit == 0 {
            assert_eq!(text(&with_token.json(), &["realm"]), "shop");
        } else {
            with_token.fails(exit);
        }
    }
}

#[test]
fn who_is_not_admitted_sends_none() {
    let broker = Fresh::start();
    // A new broker has an open realm for whoever says nothing.
    smoke_test(&broker, &["--no-token"]).succeeds();
    program(&broker, &["realm", "set-auth", "default", "required"]).succeeds();
    smoke_test(&broker, &["--no-token"]).fails(4);
    smoke_test(&broker, &["--no-token", "-r", "*"]).fails(4);
    let wrong = smoke_test(&broker, &["--client-token-env", "TOKEN"]).env("TOKEN", "wrong");
    let said = wrong.fails(4);
    assert!(text(&said, &["message"]).starts_with("authenticating: "));
    program(&broker, &["auth", "disable", "-y"]).succeeds();
    smoke_test(&broker, &["--no-token"]).succeeds();
}
