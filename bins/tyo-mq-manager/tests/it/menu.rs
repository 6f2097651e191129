//! The menu, driven by lines.

use crate::program::Program;
use crate::stage::Stage;

#[track_caller]
fn run(stage: &Stage, lines: &str) -> String {
    let done = Program::admin(stage, &["menu"]).stdin(lines).run();
    assert_eq!(done.exit, 0, "{done:?}");
    done.stdout + &done.stderr
}

#[test]
fn realms() {
    let stage = Stage::new();
    // Add one that requires authentication and does not end, then open it, then list.
    let shown = run(&stage, "4\nlab\ny\nn\n7\nlab\n23\n0\n");
    assert!(shown.contains("broker   http://127.0.0.1:"), "{shown}");
    let line = shown.lines().find(|line| line.starts_with("lab ")).unwrap();
    assert!(line.contains("open"), "{line}");
    let shown = run(&stage, "22\nlab\nlap\n22\nlab\nlab\n0\n");
    assert!(
        shown.contains("nothing was changed"),
        "a wrong name: {shown}"
    );
    assert!(shown.contains("is removed"), "{shown}");
}

#[test]
fn requests() {
    let stage = Stage::new();
    for client in ["a", "b"] {
        let submit = ["request", "submit", "-r", "shop", "--client-id", client];
        Program::anonymous(&stage, &submit).succeeds();
    }
    let shown = run(
        &stage,
        "10\n\nn\n10\nshop\ny\nconsumer\n11\n\ny\nno\n9\n\n0\n",
    );
    assert!(
        shown.contains("approved") && shown.contains("rejected"),
        "{shown}"
    );
    assert!(shown.contains("no requests wait"), "{shown}");
}

#[test]
fn lists_of_one_realm() {
    let stage = Stage::new();
    let submit = ["request", "submit", "-r", "shop", "--client-id", "till"];
    Program::anonymous(&stage, &submit).succeeds();
    let shown = run(&stage, "9\ndefault\n0\n");
    assert!(shown.contains("no requests wait"), "{shown}");
    let shown = run(&stage, "9\nshop\n0\n");
    assert!(shown.contains("till"), "{shown}");
    let shown = run(&stage, "19\nnowhere\n0\n");
    assert!(shown.contains("no dead letters"), "{shown}");
}

#[test]
fn errors_come_back_to_the_menu() {
    let stage = Stage::new();
    let shown = run(&stage, "99\nx\n12\nnothing\n\n8\n18\n");
    assert!(shown.contains("there is no such entry"), "{shown}");
    assert!(shown.contains("\"code\":404"), "{shown}");
    assert!(shown.contains("the token is good"), "{shown}");
}

#[test]
fn every_entry_can_be_chosen() {
    let stage = Stage::new();
    for number in 1..=29 {
        // Names where something is asked, until nothing more is.
        let shown = run(&stage, &format!("{number}\nx\ny\ny\nx\nx\n0\n0\n"));
        assert!(!shown.contains("panicked"), "{number}: {shown}");
    }
}
