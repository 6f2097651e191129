//! Enrolment: a client asks, a manager decides, the token is good.

use std::process::Child;

use tyo_mq_auth::json::{Object, Value};

use crate::program::{Done, Program, at, list, object, text};
use crate::stage::Stage;

/// A client that waits for the decision on its request.
fn applicant(stage: &Stage, id: &str, more: &[&str]) -> Child {
    let args = [
        "request",
        "submit",
        "-r",
        "shop",
        "--client-id",
        id,
        "--wait",
        "--json",
    ];
    Program::anonymous(stage, &[&args[..], more].concat()).start()
}

/// The requests that wait, once there are so many.
fn waiting(stage: &Stage, number: usize) -> Object {
    loop {
        let listed = Program::admin(stage, &["request", "list"]).json();
        if list(&listed, "requests").len() == number {
            return listed;
        }
    }
}

#[test]
fn a_client_is_admitted() {
    let stage = Stage::new();
    let applicant = applicant(&stage, "till", &["--role", "consumer"]);
    let listed = waiting(&stage, 1);
    let request = list(&listed, "requests")[0];
    let id = text(request, &["request_id"]);
    assert_eq!(text(request, &["client_id"]), "till");
    let next = Program::admin(&stage, &["request", "next"]).json();
    assert_eq!(text(&next, &["request", "request_id"]), id);
    let tried = Program::admin(&stage, &["request", "approve", id, "-n"]).succeeds();
    assert_eq!(tried, format!("would approve request {id}\n"));
    let approved = Program::admin(&stage, &["request", "approve", id]).json();
    assert_eq!(text(&approved, &["request", "status"]), "approved");
    let done = Done::of(applicant.wait_with_output().unwrap());
    assert_eq!(done.exit, 0, "{done:?}");
    let done = object(&done.stdout);
    assert_eq!(
        (text(&done, &["status"]), text(&done, &["role"])),
        ("approved", "consumer")
    );
    let token = text(&done, &["client_token"]);
    let verified = Program::anonymous(&stage, &["auth", "verify"])
        .env("TYO_MQ_ADMIN_TOKEN", token)
        .json();
    assert_eq!(text(&verified, &["role"]), "consumer", "as it asked");
    Program::admin(&stage, &["request", "approve", id]).fails(5);
}

#[test]
fn a_client_is_turned_down() {
    let stage = Stage::new();
    let applicant = applicant(&stage, "till", &["--challenge-response", "{\"pin\":1}"]);
    let listed = waiting(&stage, 1);
    let request = list(&listed, "requests")[0];
    assert_eq!(
        at(request, &["challenge_response", "pin"]).as_number(),
        Some(1.0)
    );
    let id = text(request, &["request_id"]);
    Program::admin(
        &stage,
        &["request", "reject", id, "--reason", "who are you"],
    )
    .succeeds();
    let done = Done::of(applicant.wait_with_output().unwrap());
    assert_eq!(done.exit, 4, "{done:?}");
    assert!(done.stdout.contains("who are you"));
}

#[test]
fn nothing_waits() {
    let stage = Stage::new();
    let next = Program::admin(&stage, &["request", "next"]).succeeds();
    assert_eq!(next, "no requests wait\n");
    let list = Program::admin(&stage, &["request", "list"]).succeeds();
    assert_eq!(list, "no requests wait\n");
}

#[test]
fn a_name_cannot_drive_the_terminal() {
    let stage = Stage::new();
    let name = "\u{202e}nimda\u{200b}";
    Program::anonymous(
        &stage,
        &["request", "submit", "-r", "shop", "--client-name", name],
    )
    .succeeds();
    for args in [&["request", "list"][..], &["request", "next"]] {
        let shown = Program::admin(&stage, args).succeeds();
        assert!(shown.contains(r"\u{202e}nimda\u{200b}"), "{shown}");
    }
}

#[test]
fn watching_shows_each_once() {
    use std::io::{BufRead, BufReader};
    let stage = Stage::new();
    let watch = ["request", "watch", "--every", "10ms", "--json"];
    let mut watching = Program::admin(&stage, &watch).start();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    for client in ["a", "b"] {
        Program::anonymous(&stage, &["request", "submit", "--client-id", client]).succeeds();
        let shown = object(&lines.next().unwrap().unwrap());
        assert_eq!(text(&shown, &["client_id"]), client);
        assert_eq!(at(&shown, &["client_token"]), &Value::Null);
    }
    watching.kill().unwrap();
    watching.wait().unwrap();
}
