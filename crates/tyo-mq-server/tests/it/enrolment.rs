//! Clients ask for admission, managers look and decide; proofs hold once.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::Client;
use super::manager::{
    ADMIN, ask, authenticate, manage, now_ms, refused, settings, signed, signed_at,
};
use super::server::{Running, on_free_port};

const REQUEST: &str = "AUTHORIZATION_REQUEST";
const NEXT: &str = "AUTHORIZATION_NEXT";
const DECIDE: &str = "AUTHORIZATION_DECIDE";
const MANAGE: &str = "AUTH_MANAGEMENT_COMMAND";

fn request(client: &str, token: &str) -> String {
    json!({
        "realm": "req", "role": "consumer",
        "client_id": client, "client_name": "N", "client_token": token,
    })
    .to_string()
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn a_client_asks_is_approved_and_comes_in() {
    let server = Running::with(settings()).await;
    let mut client = Client::connect(server.addr).await;
    // The answer is the acknowledgement and an event.
    let answer = client.call(REQUEST, &request("c9", "t-9")).await;
    assert_eq!(
        parsed(&client.event("AUTHORIZATION_REQUEST_OK").await),
        answer
    );
    assert_eq!(answer["status"], "pending");
    let id = answer["request_id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("authreq-"), "{id}");

    let next = ask(&server, ADMIN, NEXT, json!({})).await;
    assert_eq!(next["request"]["request_id"], id);
    assert_eq!(
        next["request"]["client_token_hash"].as_str().unwrap().len(),
        64
    );
    assert!(!next.to_string().contains("t-9"), "{next}");

    let decision = json!({"request_id": id, "approved": true});
    let decided = ask(&server, ADMIN, DECIDE, decision.clone()).await;
    assert_eq!(decided["request"]["status"], "approved");
    let told = parsed(&client.event("AUTHORIZATION_APPROVED").await);
    assert_eq!(
        told,
        json!({"request_id": id, "realm": "req", "role": "consumer"})
    );
    let (_, answer) = authenticate(&server, r#"{"token":"t-9"}"#).await;
    assert_eq!(answer, "req/consumer");

    // It is decided: gone for the admin, and none of the realm's manager's.
    assert_eq!(
        ask(&server, ADMIN, DECIDE, decision.clone()).await["code"],
        404
    );
    assert_eq!(ask(&server, "mk-req", DECIDE, decision).await["code"], 401);
    assert_eq!(
        ask(&server, ADMIN, NEXT, json!({})).await["request"],
        Value::Null
    );
}

#[tokio::test]
async fn a_client_is_rejected_with_a_reason() {
    let server = Running::with(settings()).await;
    let mut client = Client::connect(server.addr).await;
    client
        .emit(REQUEST, &json!(request("c9", "t-9")).to_string())
        .await;
    let answer = parsed(&client.event("AUTHORIZATION_REQUEST_OK").await);
    let id = &answer["request_id"];
    let decision = json!({"request_id": id, "approved": false, "reason": "who?"});
    let decided = ask(&server, "mk-req", DECIDE, decision).await;
    assert_eq!(decided["request"]["decision_reason"], "who?");
    let told = parsed(&client.event("AUTHORIZATION_REJECTED").await);
    assert_eq!(told, json!({"request_id": id, "reason": "who?"}));
    assert_eq!(authenticate(&server, r#"{"token":"t-9"}"#).await.1, "401");
}

#[tokio::test]
async fn requests_that_cannot_be_taken() {
    let mut few = settings();
    few["limits"] = json!({"enabled": true, "max_pending_authorization_requests": 1});
    let server = Running::with(few).await;
    let mut client = Client::connect(server.addr).await;
    for (payload, code) in [
        (r#""no json""#.to_owned(), 400),
        (
            r#"{"realm":"req","client_id":"c","client_token":"t"}"#.to_owned(),
            400,
        ),
        (
            r#"{"realm":7,"client_id":"c","client_name":"n","client_token":"t"}"#.to_owned(),
            400,
        ),
    ] {
        let answer = client.call(REQUEST, &payload).await;
        assert_eq!(answer["code"], code, "{payload}");
        assert_eq!(
            parsed(&client.event("AUTHORIZATION_REQUEST_FAIL").await),
            answer
        );
    }
    let first = client.call(REQUEST, &request("a", "t-a")).await;
    assert_eq!(first["ok"], true);
    assert_eq!(
        client.call(REQUEST, &request("b", "t-b")).await["code"],
        429
    );
    // The same client's newer request takes the place of its older one.
    let second = client.call(REQUEST, &request("a", "t-a2")).await;
    assert_eq!(second["ok"], true);
    let old = json!({"request_id": first["request_id"], "approved": true});
    assert_eq!(ask(&server, ADMIN, DECIDE, old).await["code"], 404);
    // The bound may be raised while the broker runs.
    let more = json!({"max_pending_authorization_requests": 2});
    manage(&server, json!({"command": "set_limits", "limits": more})).await;
    assert_eq!(client.call(REQUEST, &request("b", "t-b")).await["ok"], true);
}

#[tokio::test]
async fn requests_with_odd_contents() {
    let server = Running::with(settings()).await;
    let mut client = Client::connect(server.addr).await;
    let good = parsed(&request("c", "t"));
    let long = "x".repeat(1 << 20);
    for (field, value) in [
        ("client_token", json!("")),
        ("client_token", json!(["t"])),
        ("client_token", json!(long)),
        ("client_id", json!(null)),
        ("client_id", json!("c\u{0}")),
        ("client_id", json!(long)),
        ("client_name", json!({})),
        ("client_name", json!("\u{1b}[2J")),
        ("client_name", json!(long)),
        ("realm", json!("")),
        ("realm", json!("a\nb")),
        ("realm", json!("x".repeat(257))),
        ("realm", json!(long)),
        ("challenge_response", json!(long)),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        let answer = client.call(REQUEST, &bad.to_string()).await;
        assert_eq!(answer["code"], 400, "{field}: {answer}");
        client.event("AUTHORIZATION_REQUEST_FAIL").await;
    }
    assert_eq!(
        ask(&server, ADMIN, NEXT, json!({})).await["request"],
        Value::Null
    );
    // A role that nobody knows is none; names of a script's objects are names.
    for (name, role, expected) in [
        ("__proto__", json!("emperor"), "both"),
        ("toString", json!(["admin"]), "both"),
        ("constructor", json!("manager"), "manager"),
    ] {
        let mut odd = good.clone();
        odd["realm"] = json!(name);
        odd["client_id"] = json!(name);
        odd["role"] = role;
        let answer = client.call(REQUEST, &odd.to_string()).await;
        assert_eq!(answer["ok"], true, "{odd}");
        let next = ask(&server, ADMIN, NEXT, json!({"realm": name})).await;
        assert_eq!(next["request"]["role"], expected, "{odd}");
    }
}

/// Who asks with a token that admits somebody already neither gets its grant nor changes it.
#[tokio::test]
async fn a_token_that_is_known_keeps_its_meaning() {
    let server = Running::with(settings()).await;
    for (token, meaning) in [("t-both", "req/both"), (ADMIN, "*/admin")] {
        let mut client = Client::connect(server.addr).await;
        let asked = client.call(REQUEST, &request("c", token)).await;
        let decision = json!({"request_id": asked["request_id"], "approved": true});
        assert_eq!(ask(&server, ADMIN, DECIDE, decision).await["code"], 409);
        let payload = json!({"token": token}).to_string();
        assert_eq!(authenticate(&server, &payload).await.1, meaning);
    }
}

#[tokio::test]
async fn a_realms_manager_sees_and_decides_what_is_the_realms() {
    let server = Running::with(settings()).await;
    let mut client = Client::connect(server.addr).await;
    let answer = client.call(REQUEST, &request("c9", "t-9")).await;
    let id = answer["request_id"].clone();
    let own = ask(&server, "mk-req", NEXT, json!({"realm": "req"})).await;
    assert_eq!(own["request"]["request_id"], id);
    for body in [json!({}), json!({"realm": "open"}), json!({"realm": "*"})] {
        assert_eq!(ask(&server, "mk-req", NEXT, body).await["code"], 401);
    }
    for role in ["manager", "admin"] {
        let decision = json!({"request_id": id, "approved": true, "role": role});
        assert_eq!(ask(&server, "mk-req", DECIDE, decision).await["code"], 403);
    }
    let wizard = json!({"request_id": id, "approved": true, "role": "wizard"});
    assert_eq!(ask(&server, ADMIN, DECIDE, wizard).await["code"], 400);
    let decision = json!({"request_id": id, "approved": true, "role": "both"});
    assert_eq!(ask(&server, "mk-req", DECIDE, decision).await["ok"], true);
    assert_eq!(
        authenticate(&server, r#"{"token":"t-9"}"#).await.1,
        "req/both"
    );
}

#[tokio::test]
async fn without_an_acknowledgement_the_answer_is_an_event() {
    let server = Running::with(settings()).await;
    let mut client = Client::connect(server.addr).await;
    let rows = [
        (
            NEXT,
            ADMIN,
            json!({}),
            "AUTHORIZATION_NEXT_RESULT",
            json!(null),
        ),
        (NEXT, "wrong", json!({}), "AUTHORIZATION_FAIL", json!(401)),
        (
            DECIDE,
            ADMIN,
            json!({"request_id": "x", "approved": true}),
            "AUTHORIZATION_FAIL",
            json!(404),
        ),
        (
            MANAGE,
            "wrong",
            json!({"command": "get"}),
            "AUTH_MANAGEMENT_FAIL",
            json!(401),
        ),
        (
            MANAGE,
            ADMIN,
            json!({"command": "get"}),
            "AUTH_MANAGEMENT_RESULT",
            json!(null),
        ),
        // Commands that ask nobody tell a failure in the payload.
        (
            MANAGE,
            ADMIN,
            json!({"command": "conquer"}),
            "AUTH_MANAGEMENT_RESULT",
            json!(400),
        ),
        (
            MANAGE,
            ADMIN,
            json!({"command": "remove_realm", "realm": "none"}),
            "AUTH_MANAGEMENT_RESULT",
            json!(404),
        ),
        (
            MANAGE,
            ADMIN,
            json!({"command": "dlq_list"}),
            "AUTH_MANAGEMENT_RESULT",
            json!(null),
        ),
        (
            MANAGE,
            ADMIN,
            json!({"command": "dlq_replay", "msg_id": "none"}),
            "AUTH_MANAGEMENT_FAIL",
            json!(404),
        ),
    ];
    for (event, secret, body, answer, code) in rows {
        client.emit(event, &signed(secret, event, &body)).await;
        let payload = parsed(&client.event(answer).await);
        assert_eq!(payload["ok"], code.is_null(), "{body}: {payload}");
        assert_eq!(
            payload.get("code").cloned().unwrap_or_default(),
            code,
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_proof_is_good_once_in_time_and_for_what_it_signs() {
    // With a file the broker remembers what was used, and takes proofs from before its start.
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("settings.json");
    std::fs::write(&file, on_free_port(settings()).to_string()).unwrap();
    let server = Running::with_file(&file, &[]).await;
    let mut client = Client::connect(server.addr).await;
    let get = json!({"command": "get"});
    let good = signed(ADMIN, MANAGE, &get);
    assert_eq!(client.call(MANAGE, &good).await["ok"], true);
    assert_eq!(client.call(MANAGE, &good).await["code"], 401);
    // Nor with the nonce in other clothes.
    let mut wrapped = parsed(&good);
    wrapped["proof"]["nonce"] = json!([wrapped["proof"]["nonce"]]);
    assert_eq!(client.call(MANAGE, &wrapped.to_string()).await["code"], 401);
    // A command that fails has used its proof, too.
    let failing = signed(ADMIN, MANAGE, &json!({"command": "conquer"}));
    assert_eq!(client.call(MANAGE, &failing).await["code"], 400);
    assert_eq!(client.call(MANAGE, &failing).await["code"], 401);

    for (seconds, is_good) in [(-301, false), (-299, true), (299, true), (302, false)] {
        let at_ms = now_ms().saturating_add_signed(seconds * 1000);
        let payload = signed_at(ADMIN, MANAGE, &get, at_ms, &format!("at {seconds}"));
        assert_eq!(
            client.call(MANAGE, &payload).await["ok"],
            is_good,
            "{seconds} s"
        );
    }

    let good = parsed(&signed(ADMIN, MANAGE, &get));
    let mut other_body = good.clone();
    other_body["body"]["command"] = json!("audit");
    let mut no_proof = good.clone();
    no_proof["proof"] = json!(null);
    let mut longer = good.clone();
    let signature = good["proof"]["signature"].as_str().unwrap();
    longer["proof"]["signature"] = json!(format!("{signature}00"));
    let as_text = json!(good.to_string());
    for payload in [other_body, no_proof, longer, as_text, json!(null), json!(7)] {
        let answer = client.call(MANAGE, &payload.to_string()).await;
        assert_eq!(answer["code"], 401, "{payload}");
    }
    // It was not used by any of them, and it is not good for another event.
    assert_eq!(client.call(NEXT, &good.to_string()).await["code"], 401);
    assert_eq!(client.call(MANAGE, &good.to_string()).await["ok"], true);
}

#[tokio::test]
async fn what_is_no_proof_however_near() {
    let server = Running::with(settings()).await;
    let mut client = Client::connect(server.addr).await;
    let get = json!({"command": "get"});
    let good = parsed(&signed(ADMIN, MANAGE, &get));
    let of = |name: &str| good["proof"][name].clone();
    let (at_ms, nonce, signature) = (of("timestamp"), of("nonce"), of("signature"));
    let text = signature.as_str().unwrap();
    let rows = [
        ("timestamp", json!(null)),
        ("timestamp", json!([at_ms])),
        ("timestamp", json!({})),
        ("timestamp", json!(true)),
        ("timestamp", json!("NaN")),
        ("timestamp", json!("Infinity")),
        ("timestamp", json!("0x1")),
        ("timestamp", json!(format!(" {at_ms}"))),
        ("timestamp", json!(format!("{at_ms}.5"))),
        ("timestamp", json!(-1)),
        ("timestamp", json!(1e300)),
        ("nonce", json!(null)),
        ("nonce", json!([nonce])),
        ("nonce", json!({"toString": nonce})),
        ("nonce", json!(true)),
        ("nonce", json!(7)),
        ("nonce", json!("n".repeat(129))),
        ("nonce", json!("n".repeat(200_000))),
        ("signature", json!(null)),
        ("signature", json!([text])),
        ("signature", json!("")),
        ("signature", json!(&text[..62])),
        ("signature", json!(format!("{text}00"))),
        ("signature", json!(format!(" {text}"))),
        ("signature", json!("0".repeat(64))),
        ("signature", json!("z".repeat(64))),
    ];
    for (name, value) in rows {
        let mut bad = good.clone();
        bad["proof"][name] = value;
        let answer = client.call(MANAGE, &bad.to_string()).await;
        assert_eq!(answer["code"], 401, "{name}: {:.200}", bad.to_string());
    }
    let huge = json!({"body": {"x": "x".repeat(1 << 20)}, "proof": good["proof"]});
    assert_eq!(client.call(MANAGE, &huge.to_string()).await["code"], 413);
    // JSON has no such number, and who sends it is gone.
    let raw = good.to_string();
    for (before, after) in [
        (
            format!(r#""timestamp":{at_ms}"#),
            r#""timestamp":1e400"#.to_owned(),
        ),
        // Of a field that comes twice the last one counts: another one than was signed, or none.
        (
            r#""command":"get""#.to_owned(),
            r#""command":"get","command":"audit""#.to_owned(),
        ),
        (
            format!(r#""nonce":{nonce}"#),
            format!(r#""nonce":{nonce},"nonce":null"#),
        ),
    ] {
        let bad = raw.replace(&before, &after);
        assert_ne!(bad, raw, "{before}");
        assert_eq!(client.call(MANAGE, &bad).await["code"], 401, "{after}");
    }
    // None of all that has used it up; in another order and as text it says the same.
    let same = format!(
        r#"{{"proof":{{"signature":"{}","timestamp":"{at_ms}","nonce":{nonce}}},"body":{get}}}"#,
        text.to_uppercase()
    );
    assert_eq!(client.call(MANAGE, &same).await["ok"], true);
    assert_eq!(client.call(MANAGE, &raw).await["code"], 401);
}

#[tokio::test]
async fn what_was_decided_and_used_outlives_the_broker() {
    let folder = TempDir::new().unwrap();
    for store in [json!(false), json!(folder.path().join("auth.sqlite"))] {
        let file = folder.path().join("settings.json");
        let mut block = on_free_port(settings());
        block["auth_store"] = store.clone();
        std::fs::write(&file, block.to_string()).unwrap();
        let server = Running::with_file(&file, &[]).await;
        let mut client = Client::connect(server.addr).await;
        let asked = client.call(REQUEST, &request("c9", "t-9")).await;
        let decision = json!({"request_id": asked["request_id"], "approved": true});
        assert_eq!(ask(&server, ADMIN, DECIDE, decision).await["ok"], true);
        let used = signed(ADMIN, MANAGE, &json!({"command": "get"}));
        assert_eq!(client.call(MANAGE, &used).await["ok"], true);
        drop(client);
        server.stop().await.unwrap();

        let server = Running::with_file(&file, &[]).await;
        assert_eq!(
            authenticate(&server, r#"{"token":"t-9"}"#).await.1,
            "req/consumer"
        );
        let mut client = Client::connect(server.addr).await;
        assert_eq!(client.call(MANAGE, &used).await["code"], 401, "{store}");
        server.stop().await.unwrap();
    }
    assert_all_private(&folder);
}

#[tokio::test]
async fn an_approved_token_stands_in_the_settings_file() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("settings.json");
    std::fs::write(&file, on_free_port(settings()).to_string()).unwrap();
    let server = Running::with_file(&file, &[]).await;
    let mut client = Client::connect(server.addr).await;
    let asked = client.call(REQUEST, &request("c9", "t-9")).await;
    let decision = json!({"request_id": asked["request_id"], "approved": true});
    assert_eq!(ask(&server, ADMIN, DECIDE, decision).await["ok"], true);
    let written = parsed(&std::fs::read_to_string(&file).unwrap());
    let tokens = written["auth"]["tokens"].as_array().unwrap();
    let entry = tokens
        .iter()
        .find(|entry| entry["client_id"] == "c9")
        .unwrap();
    assert_eq!(
        (&entry["realm"], &entry["role"]),
        (&json!("req"), &json!("consumer"))
    );
    assert_eq!(entry["client_name"], "N");
    assert!(entry["approved_at"].is_string(), "{entry}");
    assert_eq!(
        refused(&server, "mk-req", json!({"command": "get"})).await,
        401
    );
    assert_all_private(&folder);
}

/// Files with secrets are their owner's alone.
fn assert_all_private(folder: &TempDir) {
    use std::os::unix::fs::PermissionsExt;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
}
