//! What needs no broker: proofs, tokens, completion, help.

use crate::program::{Program, at, object, text};

#[track_caller]
fn check(key: &str, action: &str, timestamp: &str, nonce: &str, body: &str, signature: &str) {
    let home = tempfile::tempdir().unwrap();
    let args = [
        "proof",
        "sign",
        action,
        "--timestamp",
        timestamp,
        "--nonce",
        nonce,
        "--body",
        "-",
    ];
    let payload = Program::new(home.path(), &args)
        .env("TYO_MQ_ADMIN_TOKEN", key)
        .stdin(body)
        .succeeds();
    assert_eq!(text(&object(&payload), &["proof", "signature"]), signature);
}

#[test]
fn proofs() {
    check(
        "secret-admin",
        "AUTH_MANAGEMENT_COMMAND",
        "1760000000000",
        "00112233445566778899aabbccddeeff",
        r#"{"command":"get"}"#,
        "178e256275b480c5b981e1effcfa5908a3ac78b009396cf252b4396d996294fc",
    );
    check(
        "room-manager-key",
        "AUTHORIZATION_DECIDE",
        "1760000000123",
        "n-2",
        r#"{"request_id":"authreq-mgf0abcd-0123456789ab","approved":true,"role":"consumer","reason":null}"#,
        "b8be83c402c04a23029eddc5a7543769a1bdec63dcc29112523a6c6c862713e8",
    );
    check(
        "kłucz",
        "AUTH_MANAGEMENT_COMMAND",
        "1760000000456",
        "nonce-3",
        r#"{"z":[3,null,{"b":1,"a":"x/y\u2028<&>"}],"realm":"org:zo\u00eb\ud83d\ude80","ttl":1.0,"n":[1e21,1e-7,-0,0.1,12345678901234567890,1.5e300],"ctl":"a\u0001\b\t\n\f\r\u001f\"\\\u007f","10":1,"9":2,"\ud83d\ude00":"astral","\uffee":"bmp-high","command":"add_realm","e":{},"l":[]}"#,
        "5e7a81ae3dd9762d4c60ec1a19579a0b67afdaeaf8cf0f56a561fac2ac61f04c",
    );
    check(
        "secret-admin",
        "AUTHORIZATION_NEXT",
        "1760000000789",
        "abc",
        "{}",
        "77079c0f02fc97da93ef64a8611a8e613a7ef7fec2b6142ca149547cbe926230",
    );
}

#[test]
fn what_cannot_be_signed() {
    let home = tempfile::tempdir().unwrap();
    let sign = |args: &[&str]| {
        let args = [&["proof", "sign"], args].concat();
        Program::new(home.path(), &args).env("TYO_MQ_ADMIN_TOKEN", "k")
    };
    sign(&["PRODUCE"]).fails(2);
    sign(&["AUTHORIZATION_NEXT", "--body", "[]"]).fails(2);
    sign(&["AUTHORIZATION_NEXT", "--body", "{"]).fails(2);
}

#[test]
fn web_tokens() {
    let home = tempfile::tempdir().unwrap();
    let mint = |args: &[&str]| {
        let args = [&["jwt", "mint"], args].concat();
        Program::new(home.path(), &args).env("TYO_MQ_REALM_MANAGER_KEY", "k")
    };
    let minted = mint(&["-r", "alpha", "--expires", "1h", "--subject", "me"]).json();
    assert_eq!(text(&minted, &["token"]).split('.').count(), 3);
    let time = |name| at(&minted, &["claims", name]).as_number().unwrap();
    assert_eq!(time("exp") - time("iat"), 3600.0);
    assert_eq!(text(&minted, &["claims", "sub"]), "me");
    let endless = mint(&["-r", "alpha", "--expires", "never"]).json();
    assert!(at(&endless, &["claims", "exp"]).as_number().is_none());
    mint(&[]).fails(2);
    mint(&["-r", "alpha", "--role", "bogus"]).fails(2);
    mint(&["-r", "alpha", "--expires", "soon"]).fails(2);
}

#[test]
fn completion_in_bash() {
    let home = tempfile::tempdir().unwrap();
    let script = Program::new(home.path(), &["completion", "bash"]).succeeds();
    std::fs::write(home.path().join("completion"), script).unwrap();
    let complete = |words: &[&str]| {
        let typed = "source ./completion; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
            _tyo__mq__manager \"$1\" \"${@: -1}\" \"${@: -2:1}\"; echo \"${COMPREPLY[@]}\"";
        let done = std::process::Command::new("bash")
            .args(["-c", typed, "bash", "tyo-mq-manager"])
            .args(words)
            .current_dir(home.path())
            .output()
            .unwrap();
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete(&["re"]), "realm request");
    assert_eq!(
        complete(&["realm", "set-a"]),
        "set-auth set-acceptance set-anonymous"
    );
    assert_eq!(complete(&["realm", "set-auth", "lab", "r"]), "required");
    assert_eq!(complete(&["mgmt-token", "add", "--max"]), "--max-ttl");
    assert_eq!(complete(&["stats", "--as", ""]), "admin realm");
}

#[test]
fn completion_and_help() {
    let home = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = Program::new(home.path(), &["completion", shell]).succeeds();
        assert!(script.contains("set-manager-key"), "{shell}");
    }
    for args in [&["--help"][..], &["-h"], &["realm", "-h"], &["help", "dlq"]] {
        let help = Program::new(home.path(), args).succeeds();
        assert!(help.contains("Usage: tyo-mq-manager"), "{args:?}");
    }
}
