//! The menu at a terminal, with the real broker: from the first start to a client that is admitted, and all the ways out.

use std::os::unix::process::ExitStatusExt;

use crate::fresh::Fresh;
use crate::program::{Program, object, text};
use crate::terminal::Terminal;

/// What the menu asks.
const WHAT: &str = "What to do (Enter: list, 0: leave): ";

fn menu(broker: &Fresh, columns: u16) -> Terminal {
    Terminal::start(broker.home(), columns, &broker.url(), &["menu"])
}

/// The answer of a program that knows the broker's address and no secret.
fn anonymous(broker: &Fresh, args: &[&str]) -> Program {
    Program::new(broker.home(), args)
        .env("TYO_MQ_URL", &broker.url())
        .env("TYO_MQ_ENV_FILE", "/dev/null")
}

#[test]
fn from_the_first_start_to_an_admitted_client() {
    let broker = Fresh::start();
    let env = std::fs::read_to_string(broker.home().join(".env")).unwrap();
    assert!(env.starts_with("TYO_MQ_ADMIN_TOKEN="), "{env}");

    let mut menu = menu(&broker, 100);
    menu.shows("token    variable TYO_MQ_ADMIN_TOKEN");
    menu.answers(WHAT, "4");
    menu.answers("name of the realm: ", "shop");
    menu.answers("require authentication [Y/n]: ", "");
    menu.answers("does it end by itself [y/N]: ", "");
    menu.shows("authentication  required");
    menu.answers(WHAT, "9");
    menu.answers("realm (empty for any): ", "");
    menu.shows("no requests wait");

    let submit = ["request", "submit", "-r", "shop", "--role", "consumer"];
    let more = ["--client-id", "till-1", "--wait", "--json"];
    let client = anonymous(&broker, &[&submit[..], &more].concat()).start();
    let id = loop {
        menu.answers(WHAT, "24");
        let listed = menu.answers(WHAT, "");
        if let Some(line) = listed.lines().find(|line| line.contains("authreq-")) {
            assert!(line.contains("till-1"), "{line}");
            break line.split_whitespace().next().unwrap().to_owned();
        }
    };
    menu.answers(WHAT, "10");
    menu.answers("realm (empty for any): ", "shop");
    assert!(menu.answers("approve it [y/N]: ", "y").contains(&id));
    menu.answers("role (empty for what was asked for) [consumer]: ", "");
    menu.shows("approved");

    let done = client.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let answer = object(&String::from_utf8(done.stdout).unwrap());
    let verify = ["auth", "verify"];
    let granted = anonymous(&broker, &verify)
        .env("TYO_MQ_ADMIN_TOKEN", text(&answer, &["client_token"]))
        .json();
    assert_eq!(
        (text(&granted, &["realm"]), text(&granted, &["role"])),
        ("shop", "consumer")
    );
    menu.answers(WHAT, "0");
    assert!(menu.ends().success());
}

#[test]
fn slips_of_the_finger() {
    let broker = Fresh::start();
    let mut menu = menu(&broker, 80);
    for wrong in ["99", "-1", "approve"] {
        menu.answers(WHAT, wrong);
        menu.shows("there is no such entry; Enter shows the list");
    }
    menu.answers(WHAT, "4");
    menu.answers("name of the realm: ", "shop");
    menu.answers("require authentication [Y/n]: ", "maybe");
    menu.shows("neither y nor n; nothing was changed");
    menu.answers(WHAT, "12");
    menu.answers("id of the request: ", "nothing");
    menu.answers("role (empty for what was asked for): ", "");
    menu.shows("\"code\":404");
    menu.answers(WHAT, "");
    menu.shows(" 22) remove a realm");
    menu.answers(WHAT, "23");
    let listed = menu.answers(WHAT, "0");
    assert!(listed.contains("default"), "{listed}");
    assert!(!listed.contains("shop"), "{listed}");
    assert!(menu.ends().success());
}

#[test]
fn ways_out() {
    let broker = Fresh::start();
    // Ctrl-D says no to one question, then to all.
    let mut left = menu(&broker, 80);
    left.answers(WHAT, "5");
    left.shows("name of the realm: ");
    left.keys("\u{4}");
    left.shows("standard input ended");
    left.shows(WHAT);
    left.keys("\u{4}");
    assert!(left.ends().success());

    for entry in ["", "5\n"] {
        let mut interrupted = menu(&broker, 80);
        interrupted.shows(WHAT);
        interrupted.keys(entry);
        if !entry.is_empty() {
            interrupted.shows("name of the realm: ");
        }
        interrupted.keys("\u{3}");
        assert_eq!(interrupted.ends().signal(), Some(SIGINT));
    }
}

#[test]
fn a_secret_is_not_shown() {
    let broker = Fresh::start();
    let token = token(&broker);
    let args = ["settings", "get", "--env-file", "/dev/null"];
    let start = || Terminal::start(broker.home(), 80, &broker.url(), &args);
    let mut asked = start();
    asked.shows("an admin's token (not shown): ");
    assert!(!asked.echoes());
    // A slip, taken back.
    asked.keys(&format!("x\u{7f}{token}\n"));
    asked.shows("\"enabled\": true");
    assert!(asked.ends().success());
    assert!(!asked.transcript().contains(&token));

    let mut interrupted = start();
    interrupted.shows("an admin's token (not shown): ");
    interrupted.keys("half of\u{3}");
    assert_eq!(interrupted.ends().signal(), Some(SIGINT));
    assert!(!interrupted.transcript().contains("half"));

    let mut left = start();
    left.shows("an admin's token (not shown): ");
    left.keys("\u{4}");
    assert_eq!(left.ends().code(), Some(10));
}

#[test]
fn ids_stay_in_one_piece() {
    let broker = Fresh::start();
    let submitted = anonymous(&broker, &["request", "submit"]).json();
    let id = text(&submitted, &["request_id"]);
    let mut menu = menu(&broker, 80);
    menu.answers(WHAT, "24");
    assert!(menu.shows(WHAT).contains(id));
    menu.keys("25\n");
    let shown = menu.shows(WHAT);
    let is_hash = |word: &str| word.len() == 64 && word.chars().all(|c| c.is_ascii_hexdigit());
    assert!(shown.split_whitespace().any(is_hash), "{shown}");
    menu.keys("0\n");
    assert!(menu.ends().success());
}

#[test]
fn a_narrow_terminal() {
    let broker = Fresh::start();
    let name = "warehouse-and-shop";
    let submit = ["request", "submit", "--client-id", "till-1", "-r", name];
    for _ in 0..2 {
        anonymous(&broker, &submit).succeeds();
    }
    let mut menu = menu(&broker, 40);
    menu.shows("token ");
    let list = menu.shows(WHAT);
    check_width(&list);
    menu.keys("4\n");
    menu.answers("name of the realm: ", name);
    menu.answers("require authentication [Y/n]: ", "");
    menu.answers("does it end by itself [y/N]: ", "");
    check_width(&menu.shows(WHAT));
    for (entry, expected) in [
        ("18", "connections: "),
        ("23", name),
        ("24", "till-1"),
        ("25", "admin"),
        ("26", "127.0.0.1"),
        ("29", "add_realm"),
    ] {
        menu.keys(&format!("{entry}\n"));
        let shown = menu.shows(WHAT);
        assert!(shown.contains(expected), "{entry}: {shown}");
        check_width(&shown);
    }
    menu.keys("24\n");
    let shown = menu.shows(WHAT);
    assert!(
        shown.contains("id      authreq-"),
        "an id in one piece: {shown}"
    );
    menu.keys("0\n");
    assert!(menu.ends().success());
}

/// No line is longer than the terminal is wide, and none is drawn over.
#[track_caller]
fn check_width(shown: &str) {
    assert!(!shown.contains('\u{1b}'), "{shown}");
    for line in shown.lines() {
        assert!(line.chars().count() <= 40, "{line:?} in {shown}");
    }
}

/// The admin's token that the first start made.
fn token(broker: &Fresh) -> String {
    let env = std::fs::read_to_string(broker.home().join(".env")).unwrap();
    let (_, value) = env.trim().split_once('=').unwrap();
    value.trim_matches('"').to_owned()
}

const SIGINT: i32 = 2;
