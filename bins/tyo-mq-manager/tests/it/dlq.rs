//! Dead letters. The real broker gets them from messages; here they are there from the start.

use crate::program::{Program, list, text};
use crate::stage::Stage;

#[test]
fn dead_letters_are_listed_shown_replayed_and_discarded() {
    let stage = Stage::new();
    if !stage.is_stand_in() {
        // What a broker without messages has.
        let listed = Program::admin(&stage, &["dlq", "list"]).succeeds();
        assert_eq!(listed, "no dead letters\n");
        return;
    }
    let listed = Program::admin(&stage, &["dlq", "list"]).json();
    assert_eq!(list(&listed, "entries").len(), 2);
    let shown = Program::admin(&stage, &["dlq", "list", "-r", "shop"]).succeeds();
    assert!(shown.contains("m-1") && !shown.contains("m-2"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "no orders to the terminal");
    let one = Program::admin(&stage, &["dlq", "show", "m-1"]).succeeds();
    assert!(one.contains("{\"n\":1}"), "{one}");
    Program::admin(&stage, &["dlq", "show", "m-9"]).fails(5);
    let replayed = Program::admin(&stage, &["dlq", "replay", "m-1"]).json();
    assert_eq!(
        text(list(&replayed, "results")[0], &["new_msg_id"]),
        "m-1-again"
    );
    Program::admin(&stage, &["dlq", "replay", "m-1"]).fails(5);
    Program::admin(&stage, &["dlq", "discard", "m-2"]).fails(10);
    Program::admin(&stage, &["dlq", "discard", "m-2", "-y"]).succeeds();
    let again = Program::admin(&stage, &["dlq", "discard", "m-2", "-y"]).succeeds();
    assert_eq!(again, "m-2 was not there\n");
    let listed = Program::admin(&stage, &["dlq", "list"]).succeeds();
    assert_eq!(listed, "no dead letters\n");
}
