//! Management commands over the wire, and what they do to those who are connected.

use serde_json::{Value, json};

use super::client::{Came, Client};
use super::manager::{ADMIN, ask, authenticate, manage, refused, settings, signed};
use super::server::Running;

const MANAGE: &str = "AUTH_MANAGEMENT_COMMAND";

/// The socket is told to go, and its connection ends.
async fn is_sent_away(client: &mut Client) {
    assert_eq!(client.text().await, "41");
    assert!(matches!(client.next().await, Came::Closed(_)));
}

#[tokio::test]
async fn settings_are_shown_without_secrets() {
    let mut secretive = settings();
    secretive["auth"]["jwt_secret"] = json!("js-secret");
    secretive["auth"]["orgs"] = json!({"o": {"name": "n", "client_secret": "org-secret"}});
    let server = Running::with(secretive).await;
    let answer = manage(&server, json!({"command": "get"})).await;
    let text = answer.to_string();
    for secret in ["psk", "mk-req", ADMIN, "t-prod", "js-secret", "org-secret"] {
        assert!(!text.contains(&format!("\"{secret}\"")), "{secret}: {text}");
    }
    let shown = &answer["settings"];
    assert_eq!(
        shown["realms"]["req"],
        json!({"required": true, "manager_key_configured": true})
    );
    assert_eq!(shown["jwt_secret"], "<configured>");
    assert_eq!(shown["persistence"]["storage"], "memory");
}

#[tokio::test]
async fn a_realm_comes_and_goes_with_all_that_is_in_it() {
    let server = Running::with(settings()).await;
    manage(
        &server,
        json!({"command": "add_realm", "realm": "new", "manager_key": "mk-new"}),
    )
    .await;
    manage(
        &server,
        json!({"command": "add_token", "realm": "new", "token": "t-new"}),
    )
    .await;
    let (mut client, answer) = authenticate(&server, r#"{"token":"t-new"}"#).await;
    assert_eq!(answer, "new/both");
    let subscription = json!({
        "event": "e", "producer": "p", "consumer": "c", "consumer_id": "c", "durable": true,
    });
    client.emit("SUBSCRIBE", &subscription.to_string()).await;
    client.fence().await;

    let clients = manage(&server, json!({"command": "list_clients", "realm": "new"})).await;
    assert_eq!(clients["clients"][0]["socket"], client.id.as_str());
    assert_eq!(clients["clients"].as_array().unwrap().len(), 1);

    let removed = manage(&server, json!({"command": "remove_realm", "realm": "new"})).await;
    assert_eq!(removed["removed_tokens"], 1);
    assert_eq!(removed["disconnected_sockets"], 1);
    is_sent_away(&mut client).await;
    assert_eq!(authenticate(&server, r#"{"token":"t-new"}"#).await.1, "401");

    // Nothing is left of it for a later realm of the name.
    manage(
        &server,
        json!({"command": "add_realm", "realm": "new", "required": false}),
    )
    .await;
    let (mut producer, _) = authenticate(&server, r#"{"realm":"new"}"#).await;
    let produce = r#"{"event":"e","message":1,"from":"p"}"#;
    assert_eq!(producer.call("PRODUCE", produce).await["routed"], 0);
}

/// Also what the broker was told about it.
#[tokio::test]
async fn a_realm_that_was_removed_is_forgotten() {
    let mut forgetful = settings();
    forgetful["idle_eviction"] = json!({"ttl_ms": 1, "interval_ms": 1});
    let server = Running::with(forgetful).await;
    let stats = async || manage(&server, json!({"command": "stats"})).await["stats"].clone();
    for body in [
        json!({"command": "add_realm", "realm": "new", "required": false}),
        json!({"command": "set_realm_anonymous", "realm": "new", "allowed": true}),
    ] {
        manage(&server, body).await;
    }
    let (mut client, _) = authenticate(&server, r#"{"realm":"new"}"#).await;
    client.emit("CONSUMER", r#"{"name":"c"}"#).await;
    client.fence().await;
    assert_eq!(stats().await["realms"]["new"]["consumers"]["online"], 1);
    manage(&server, json!({"command": "remove_realm", "realm": "new"})).await;
    is_sent_away(&mut client).await;
    while stats().await["realms"].get("new").is_some() {}
}

#[tokio::test]
async fn a_revoked_token_ends_the_sessions_it_admitted_and_no_other() {
    let server = Running::with(settings()).await;
    let (mut revoked, _) = authenticate(&server, r#"{"token":"t-cons"}"#).await;
    let (mut other, _) = authenticate(&server, r#"{"token":"t-both"}"#).await;
    let answer = manage(
        &server,
        json!({"command": "revoke_token", "realm": "req", "client_id": "c1"}),
    )
    .await;
    assert_eq!(answer["revoked"][0]["client_id"], "c1");
    is_sent_away(&mut revoked).await;
    assert_eq!(other.call("UNSUBSCRIBE", r#""x""#).await["ok"], true);
    assert_eq!(
        authenticate(&server, r#"{"token":"t-cons"}"#).await.1,
        "401"
    );
}

#[tokio::test]
async fn a_realm_that_is_tightened_is_left_by_those_who_do_not_fit() {
    let server = Running::with(settings()).await;
    let (mut keyless, _) = authenticate(&server, r#"{"realm":"free","role":"consumer"}"#).await;
    let (mut guest, _) = authenticate(&server, r#"{"realm":"open"}"#).await;
    let (mut holder, _) = authenticate(&server, r#"{"token":"t-open"}"#).await;
    manage(
        &server,
        json!({"command": "set_realm_key", "realm": "free", "key": "k"}),
    )
    .await;
    is_sent_away(&mut keyless).await;
    manage(
        &server,
        json!({"command": "set_realm_auth", "realm": "open", "required": true}),
    )
    .await;
    is_sent_away(&mut guest).await;
    // The role counts from now on.
    assert_eq!(holder.call("UNSUBSCRIBE", r#""x""#).await["code"], 403);
    assert_eq!(
        holder.call("PRODUCE", r#"{"event":"e","message":1}"#).await["ok"],
        true
    );
}

#[tokio::test]
async fn authentication_goes_on_and_off_under_those_who_are_connected() {
    let mut off = settings();
    off["auth"]["enabled"] = json!(false);
    let server = Running::with(off).await;
    let mut early = Client::connect(server.addr).await;
    assert_eq!(
        early.call("PRODUCE", r#"{"event":"e","message":1}"#).await["ok"],
        true
    );
    // Whoever turns it on is answered first, and has to go like everybody else.
    let mut manager = Client::connect(server.addr).await;
    let on = json!({"command": "set_global_auth", "enabled": true});
    assert_eq!(
        manager.call(MANAGE, &signed(ADMIN, MANAGE, &on)).await["ok"],
        true
    );
    is_sent_away(&mut manager).await;
    is_sent_away(&mut early).await;
    let (mut client, answer) = authenticate(&server, r#"{"token":"t-prod"}"#).await;
    assert_eq!(answer, "req/producer");
    assert_eq!(client.call("UNSUBSCRIBE", r#""x""#).await["code"], 403);
    manage(
        &server,
        json!({"command": "set_global_auth", "enabled": false}),
    )
    .await;
    assert!(client.event("AUTH_FAIL").await.contains("403"));
    assert_eq!(client.call("UNSUBSCRIBE", r#""x""#).await["ok"], true);
}

#[tokio::test]
async fn a_realms_manager_manages_the_realm_and_is_shown_nothing_else() {
    let server = Running::with(settings()).await;
    let body = json!({"command": "set_realm_key", "realm": "req", "key": "k"});
    let answer = ask(&server, "mk-req", MANAGE, body).await;
    let expected = json!({
        "ok": true,
        "realm": "req",
        "settings": {"realms": {"req": {
            "required": true, "manager_key_configured": true, "key_configured": true,
        }}},
    });
    assert_eq!(answer, expected);
    for body in [
        json!({"command": "set_realm_key", "realm": "open", "key": "k"}),
        json!({"command": "set_realm_manager_key", "realm": "req", "manager_key": "k"}),
        json!({"command": "remove_realm", "realm": "req"}),
        json!({"command": "revoke_token", "token": "t-prod"}),
        json!({"command": "get"}),
    ] {
        assert_eq!(refused(&server, "mk-req", body).await, 401);
    }
    // An admin of a realm is no global one.
    let get = json!({"command": "get"});
    assert_eq!(refused(&server, "t-admin-of-req", get).await, 401);
}

#[tokio::test]
async fn an_ephemeral_realm_ends_at_its_time() {
    let server = Running::with(settings()).await;
    let realm =
        json!({"command": "add_realm", "realm": "brief", "required": false, "ttl": "400ms"});
    let added = manage(&server, realm).await;
    assert_eq!(added["settings"]["realms"]["brief"]["ephemeral"], true);
    let (mut client, answer) = authenticate(&server, r#"{"realm":"brief"}"#).await;
    assert_eq!(answer, "brief/both");
    is_sent_away(&mut client).await;
    assert_ne!(
        authenticate(&server, r#"{"realm":"brief"}"#).await.1,
        "brief/both"
    );
    let realms = manage(&server, json!({"command": "list_realms"})).await;
    assert!(!realms.to_string().contains("brief"), "{realms}");
}

#[tokio::test]
async fn a_client_is_sent_away_by_its_id() {
    let server = Running::with(settings()).await;
    let (mut client, _) = authenticate(&server, r#"{"token":"t-cons"}"#).await;
    let id = client.id.clone();
    let answer = manage(
        &server,
        json!({"command": "disconnect_client", "socket": id}),
    )
    .await;
    assert_eq!(answer["disconnected"], true);
    is_sent_away(&mut client).await;
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let server = Running::with(settings()).await;
    let (mut client, _) = authenticate(&server, r#"{"token":"t-cons"}"#).await;
    let body = json!({"command": "remove_realm", "realm": "req", "dry_run": true});
    let answer = manage(&server, body).await;
    assert_eq!(answer["dry_run"], true);
    assert_eq!(client.call("UNSUBSCRIBE", r#""x""#).await["ok"], true);
    assert_eq!(
        authenticate(&server, r#"{"token":"t-cons"}"#).await.1,
        "req/consumer"
    );
}

#[tokio::test]
async fn commands_take_turns() {
    let server = Running::with(settings()).await;
    let names: Vec<_> = (0..20).map(|n| format!("r{n}")).collect();
    let asked = names.iter().flat_map(|name| {
        let add = json!({"command": "add_realm", "realm": name});
        [add, json!({"command": "dlq_list"})].map(|body| manage(&server, body))
    });
    futures_util::future::join_all(asked).await;
    let removed = names.iter().map(|name| {
        let body = json!({"command": "remove_realm", "realm": name});
        manage(&server, body)
    });
    futures_util::future::join_all(removed).await;
    let shown = manage(&server, json!({"command": "get"})).await;
    let realms: Vec<&String> = shown["settings"]["realms"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert!(
        !realms.iter().any(|name| names.contains(name)),
        "{realms:?}"
    );
}

#[tokio::test]
async fn what_managers_did_is_told_without_secrets() {
    let server = Running::with(settings()).await;
    manage(
        &server,
        json!({"command": "add_token", "realm": "req", "token": "t-secret"}),
    )
    .await;
    refused(
        &server,
        ADMIN,
        json!({"command": "remove_realm", "realm": "none"}),
    )
    .await;
    let audit = manage(&server, json!({"command": "audit"}))
        .await
        .to_string();
    for words in ["add_token", "remove_realm", "404"] {
        assert!(audit.contains(words), "{words}: {audit}");
    }
    assert!(!audit.contains("t-secret"), "{audit}");
    let limits: Value = manage(&server, json!({"command": "get_limits"})).await;
    assert_eq!(limits["limits"]["enabled"], false);
}
