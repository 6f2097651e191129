//! From a client's request to its revocation, with restarts in between.

use tyo_mq_auth::SignedEvent::{Decide, Manage, Next};

use crate::broker::{Broker, object, sign};

const SETTINGS: &str = r#"{"enabled":true,"realms":{"acme":{"required":true,"manager_key":"mk"}},"tokens":[{"token":"admin","realm":"*","role":"admin"}]}"#;
const REQUEST: &str = r#"{"realm":"acme","role":"producer","client_id":"cid","client_name":"Client","client_token":"my-own-token"}"#;
const TOKEN: &str = r#"{"token":"my-own-token"}"#;
const REFUSED: &str = r#"{"code":401"#;

#[test]
fn a_clients_life() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth.sqlite");
    let mut broker = Broker::start(SETTINGS, &path);
    assert!(broker.authenticate(TOKEN).starts_with(REFUSED));
    let answer = object(&broker.request(REQUEST, "socket-1"));
    let id = answer.non_empty_str("request_id").unwrap().to_owned();

    // The request outlives the broker, though the settings hold no realms any more: the store took them over.
    let mut broker = Broker::start(r#"{"enabled":true}"#, &path);
    let next = sign("mk", Next, "n1", r#"{"realm":"acme"}"#);
    assert!(broker.signed(&next, Next).contains(&id));
    let decide = sign(
        "mk",
        Decide,
        "n2",
        &format!(r#"{{"request_id":"{id}","approved":true}}"#),
    );
    assert!(
        broker
            .signed(&decide, Decide)
            .contains(r#""status":"approved""#)
    );
    assert!(broker.notices.is_empty(), "the socket that asked is gone");
    assert_eq!(
        broker.authenticate(TOKEN),
        r#"{"realm":"acme","role":"producer"}"#
    );

    // So do token and nonces.
    let mut broker = Broker::start(r#"{"enabled":true}"#, &path);
    assert_eq!(
        broker.authenticate(TOKEN),
        r#"{"realm":"acme","role":"producer"}"#
    );
    assert!(
        broker.signed(&next, Next).contains(r#""code":401"#),
        "a proof counts once"
    );
    let revoke = sign(
        "admin",
        Manage,
        "n3",
        r#"{"command":"revoke_token","realm":"acme","client_id":"cid"}"#,
    );
    assert!(
        broker
            .signed(&revoke, Manage)
            .contains(r#""revoked":[{"realm":"acme""#)
    );
    assert!(broker.authenticate(TOKEN).starts_with(REFUSED));

    let mut broker = Broker::start(r#"{"enabled":true}"#, &path);
    assert!(broker.authenticate(TOKEN).starts_with(REFUSED));
    let trail = broker.audit_trail();
    assert_eq!(trail.len(), 2);
    assert!(trail[0].contains("revoke_token") && trail[1].contains("AUTHORIZATION_DECIDE"));
    assert!(!trail.concat().contains("my-own-token"));
}

#[test]
fn a_requester_that_waits_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut broker = Broker::start(SETTINGS, &dir.path().join("auth.sqlite"));
    let answer = object(&broker.request(REQUEST, "socket-1"));
    let id = answer.non_empty_str("request_id").unwrap().to_owned();
    let decide = sign(
        "admin",
        Decide,
        "n",
        &format!(r#"{{"request_id":"{id}","approved":false}}"#),
    );
    let _ = broker.signed(&decide, Decide);
    let payload = format!(r#"{{"request_id":"{id}","reason":null}}"#);
    assert_eq!(
        broker.notices,
        [("socket-1".to_owned(), "AUTHORIZATION_REJECTED", payload)]
    );
}

#[test]
fn a_realms_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth.sqlite");
    let mut broker = Broker::start(SETTINGS, &path);
    let remove = sign(
        "admin",
        Manage,
        "n",
        r#"{"command":"remove_realm","realm":"acme"}"#,
    );
    let answer = object(&broker.signed(&remove, Manage));
    assert!(answer.get("disconnected_sockets").is_some());
    drop(broker);
    let broker = Broker::start(r#"{"enabled":true}"#, &path);
    assert!(broker.state.document().realm("acme").is_none());
    assert_eq!(broker.state.document().admin_count(), 1);
}
