//! Loading, adopting, changing and showing the auth settings.

use super::*;
use crate::json::Value;
use crate::names::Role;
use crate::testing::{NOW, SETTINGS, settings_with};

fn parse(json: &str) -> AuthDocument {
    AuthDocument::parse(json).unwrap().0
}

fn stored(document: &AuthDocument) -> String {
    Value::from(document.to_settings(false)).to_json()
}

fn hash(token: &str) -> SecretHash {
    SecretHash::of(token)
}

#[test]
fn what_is_read_is_written() {
    let json = r#"{"enabled":true,"custom":{"n":12345678901234567890},"realms":{"b":{"required":false,"own":[1.50]},"a":{}},"tokens":[{"client_id":"c","token":"t","realm":"b","role":"both","note":{"x":1}}],"management_tokens":[{"token":"m","realm_prefix":"p","note":"n"}]}"#;
    assert_eq!(stored(&parse(json)), json);
    assert_eq!(stored(&parse("{}")), "{}");
    assert_eq!(stored(&parse("null")), "{}");
    let with_store = parse(json).to_settings(true);
    assert_eq!(
        Value::from(with_store).to_json(),
        r#"{"enabled":true,"custom":{"n":12345678901234567890}}"#
    );
}

fn check_error(json: &str, expected: &str) {
    assert_eq!(
        AuthDocument::parse(json).unwrap_err().to_string(),
        expected,
        "{json}"
    );
}

#[test]
fn mistakes_are_told_with_their_place() {
    check_error("[]", " must be an object");
    check_error("{", "auth settings are not JSON: not JSON at byte 1");
    check_error(r#"{"enabled":"yes"}"#, "enabled must be true or false");
    check_error(r#"{"realms":[]}"#, "realms must be an object");
    check_error(r#"{"realms":{"a":true}}"#, "realms.a must be an object");
    check_error(
        r#"{"realms":{"a":{"required":"no"}}}"#,
        "realms.a.required must be true or false",
    );
    check_error(
        r#"{"realms":{"a":{"key":5}}}"#,
        "realms.a.key must be a string",
    );
    check_error(
        r#"{"realms":{"a\n":{}}}"#,
        "realms.a\n must be under a name that a realm can have",
    );
    check_error(
        r#"{"realms":{"a":{"expires_at":"soon"}}}"#,
        "realms.a.expires_at must be a number of milliseconds",
    );
    check_error(r#"{"tokens":{}}"#, "tokens must be a list");
    check_error(
        r#"{"tokens":[{"token":"t"},{"realm":"a"}]}"#,
        "tokens.1.token must be a string",
    );
    check_error(
        r#"{"tokens":[{"token":"t","role":5}]}"#,
        "tokens.0.role must be a string",
    );
    check_error(
        r#"{"management_tokens":[5]}"#,
        "management_tokens.0 must be an object",
    );
    check_error(
        r#"{"management_tokens":[{"token":"t","realm_prefix":"p","max_ttl":"x"}]}"#,
        "management_tokens.0.max_ttl must be a lifetime",
    );
    check_error(
        r#"{"external_validators":[{"auth_url":5}]}"#,
        "external_validators.0.auth_url must be a string",
    );
    check_error(
        r#"{"ephemeral_realm_ttl":"x"}"#,
        "ephemeral_realm_ttl must be a lifetime",
    );
    check_error(
        r#"{"token_storage":"clear"}"#,
        "token_storage must be hashed or plain",
    );
}

#[test]
fn warnings() {
    let (document, warnings) = AuthDocument::parse(r#"{"enabled":true,"tokens":[{"token":"t","realm":"a"},{"token":"t","realm":"b"}],"management_tokens":[{"token":"m"}]}"#).unwrap();
    let texts: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 3);
    assert!(
        texts[0].starts_with("tokens.1 repeats")
            && texts[1].starts_with("management_tokens.0 lacks")
            && texts[2].starts_with("auth.strict is off")
    );
    assert_eq!(document.token(hash("t")).unwrap().realm.as_str(), "a");
    assert_eq!(
        AuthDocument::parse(r#"{"enabled":true,"strict":false}"#)
            .unwrap()
            .1,
        []
    );
}

#[test]
fn defaults_and_spellings() {
    let document = parse(
        r#"{"enabled":true,"realms":{"a":{"requireKey":true,"requireAcceptance":false,"allowAnonymous":true,"managerKey":"m","presharedKey":"k","temporary":true,"expires_at":5.9}},"tokens":[{"token":"t"}]}"#,
    );
    let a = RealmName::new("a").unwrap();
    assert!(document.is_key_required("a") && !document.is_acceptance_required(&a, 0));
    assert!(
        document.is_anonymous_allowed("a")
            && document.is_anonymous_allowed("default")
            && !document.is_anonymous_allowed("b")
    );
    assert_eq!(document.manager_key("a", 4).unwrap().expose(), "m");
    assert!(document.manager_key("a", 5).is_none(), "its time is over");
    let token = document.token(hash("t")).unwrap();
    assert_eq!(
        (token.realm.as_str(), &token.role),
        ("default", &Role::Both)
    );
    assert_eq!(document.next_expiry_ms(), Some(5));
    assert!(document.is_acceptance_required(&RealmName::new("unknown").unwrap(), 0));
    assert!(!document.is_open(&RealmName::new("unknown").unwrap(), 0));
}

/// Without a store a list that is in the file is the truth; a list that is not is not asked.
#[test]
fn edits_of_the_file() {
    let mut document = parse(SETTINGS);
    let applied = document.adopt(parse(SETTINGS), false);
    assert!(applied.is_empty(), "{applied:?}");
    let applied = document.adopt(
        parse(&settings_with(
            "tokens",
            r#"[{"token":"t-acme-both","realm":"acme","role":"consumer"},{"token":"new"}]"#,
        )),
        false,
    );
    assert!(
        applied
            .changes
            .contains(&Change::Token(hash("t-beta-both")))
    );
    assert!(
        applied
            .changes
            .contains(&Change::Token(hash("t-acme-both")))
    );
    assert_eq!(document.token_count(), 2);
    let applied = document.adopt(
        parse(&settings_with("realms", r#"{"acme":{"required":true}}"#)),
        false,
    );
    assert!(
        applied
            .changes
            .contains(&Change::RealmRemoved(RealmName::new("beta").unwrap()))
    );
    assert!(
        applied
            .changes
            .contains(&Change::Realm(RealmName::new("acme").unwrap()))
    );
    let count = document.token_count();
    let applied = document.adopt(parse(r#"{"enabled":false}"#), false);
    assert_eq!((document.realm_count(), document.token_count()), (1, count));
    assert_eq!(applied.changes, [Change::Global]);
    assert!(!document.is_enabled());
}

/// With a store the lists in the file are an inbox.
#[test]
fn edits_of_the_file_beside_a_store() {
    let mut document = parse(SETTINGS);
    let before = (document.realm_count(), document.token_count());
    let applied = document.adopt(parse(r#"{"enabled":true,"realms":{"inbox":{}},"tokens":[{"token":"inbox"}],"management_tokens":[]}"#), true);
    assert_eq!(
        (document.realm_count(), document.token_count()),
        (before.0 + 1, before.1 + 1)
    );
    assert_eq!(applied.rows.len(), 2);
    assert!(document.management_token(hash("m-apps")).is_some());
}

#[test]
fn the_admin_of_the_environment() {
    let mut document = parse(r#"{"enabled":true}"#);
    let admin = |document: &AuthDocument, token: &str| document.is_admin_bearer(token);
    let applied = document.set_environment_admin(&Secret::new("one"));
    assert!(applied.rows.is_empty() && admin(&document, "one"));
    assert_eq!(
        stored(&document),
        r#"{"enabled":true}"#,
        "it is not written"
    );
    let applied = document.set_environment_admin(&Secret::new("two"));
    assert!(admin(&document, "two") && !admin(&document, "one"));
    assert_eq!(applied.changes, [Change::Token(hash("one"))]);
    assert!(
        document
            .set_environment_admin(&Secret::new("two"))
            .is_empty()
    );
    let _ = document.adopt(parse(r#"{"enabled":true,"tokens":[]}"#), false);
    assert!(admin(&document, "two"), "a file does not take it away");
    let mut document = parse(SETTINGS);
    assert!(
        document
            .set_environment_admin(&Secret::new("t-admin"))
            .is_empty()
    );
    assert_eq!(document.admin_count(), 1);
}

#[test]
fn fields_that_cannot_be_change_nothing() {
    let mut document = parse(SETTINGS);
    let before = stored(&document);
    let mutations = [
        Mutation::RemoveRealm(RealmName::new("acme").unwrap()),
        Mutation::SetField("enabled", Some("yes".into())),
    ];
    assert!(document.apply(mutations).is_err());
    assert_eq!(stored(&document), before);
}

#[test]
fn indexes_follow() {
    let mut document = parse(SETTINGS);
    let acme = RealmName::new("acme").unwrap();
    assert_eq!(document.tokens_of("acme").count(), 4);
    let applied = document.apply([Mutation::RemoveRealm(acme)]).unwrap();
    assert_eq!(
        (applied.removed_tokens, document.tokens_of("acme").count()),
        (4, 0)
    );
    assert_eq!(document.expired_realms(NOW).len(), 1);
    let put = Mutation::PutRealm(RealmName::new("gone").unwrap(), RealmConfig::default());
    document.apply([put]).unwrap();
    assert_eq!(document.expired_realms(NOW).len(), 0);
    document
        .apply([Mutation::RemoveToken(hash("t-admin"))])
        .unwrap();
    assert_eq!(
        (document.admin_count(), document.admin_secrets().count()),
        (0, 0)
    );
}

#[test]
fn long_lists_are_cut_and_counted() {
    let mut document = parse("{}");
    let puts = (0..MAX_LISTED + 5).map(|n| {
        Mutation::PutRealm(
            RealmName::new(&format!("r{n}")).unwrap(),
            RealmConfig::default(),
        )
    });
    document.apply(puts).unwrap();
    let shown = document.to_redacted();
    assert_eq!(
        shown.get("realms").unwrap().as_object().unwrap().len(),
        MAX_LISTED
    );
    assert_eq!(
        shown.get("realms_total").unwrap().as_number(),
        Some((MAX_LISTED + 5) as f64)
    );
    assert_eq!(shown.get("tokens_total"), None);
}
