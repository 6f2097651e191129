//! The reference's file, first boot, restarts, backup.

use crate::document::{AuthDocument, LoadWarning, Mutation};
use crate::json::{Object, Value};
use crate::names::{RealmName, Role};
use crate::secret::{Secret, StoredSecret};

use super::*;

/// A file as the reference makes it.
fn reference_file(path: &Path) {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch(
        r#"
        CREATE TABLE realms ( name TEXT PRIMARY KEY, config TEXT NOT NULL );
        CREATE TABLE tokens ( token TEXT PRIMARY KEY, entry TEXT NOT NULL );
        CREATE TABLE management_tokens ( token TEXT PRIMARY KEY, entry TEXT NOT NULL );
        INSERT INTO realms VALUES ('default', '{"required":false}');
        INSERT INTO realms VALUES ('acme', '{"key":"acme-key","manager_key":"acme-manager","require_acceptance":true,"required":true}');
        INSERT INTO realms VALUES ('org:zoë', '{"required":true}');
        INSERT INTO tokens VALUES ('admin-token-1', '{"realm":"*","role":"admin","token":"admin-token-1"}');
        INSERT INTO tokens VALUES ('acme-both', '{"client_id":"worker-1","client_name":"Worker 1","realm":"acme","role":"both","token":"acme-both"}');
        INSERT INTO management_tokens VALUES ('mgmt-1', '{"ephemeral_only":true,"max_ttl":"2h","realm_prefix":"apps:","token":"mgmt-1"}');
        "#,
    )
    .unwrap();
}

fn merged(store: &SqliteAuthStore, settings: &str) -> (AuthDocument, crate::document::Merged) {
    let (mut document, _) = AuthDocument::parse(settings).unwrap();
    let merged = document.merge_store(store.load().unwrap());
    (document, merged)
}

fn hash(token: &str) -> SecretHash {
    SecretHash::of(token)
}

#[test]
fn the_references_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth.sqlite");
    reference_file(&path);
    let store = SqliteAuthStore::open(&path).unwrap();
    let (document, merged) = merged(&store, r#"{"enabled":true}"#);
    assert_eq!((merged.imports, merged.warnings), (vec![], vec![]));
    assert_eq!((document.realm_count(), document.token_count()), (3, 2));
    assert!(document.is_admin_bearer("admin-token-1"));
    assert_eq!(document.admin_secrets().count(), 1);
    assert!(document.realm("org:zoë").is_some());
    let worker = document.token(hash("acme-both")).unwrap();
    assert_eq!((worker.realm.as_str(), &worker.role), ("acme", &Role::Both));
    let provisioner = document.management_token(hash("mgmt-1")).unwrap();
    assert_eq!(provisioner.max_ttl_ms, Some(7_200_000));
}

#[test]
fn what_only_the_settings_have_is_imported_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth.sqlite");
    reference_file(&path);
    let mut store = SqliteAuthStore::open(&path).unwrap();
    let settings = r#"{"enabled":true,"realms":{"acme":{"required":false},"new":{}},"tokens":[{"token":"acme-both","realm":"new"},{"token":"fresh"}],"management_tokens":[{"token":"m2","realm_prefix":"x:"}]}"#;
    let (document, first) = merged(&store, settings);
    assert_eq!(first.imports.len(), 3);
    assert_eq!(
        document.token(hash("acme-both")).unwrap().realm.as_str(),
        "acme",
        "the store's word counts"
    );
    store.apply(&first.imports).unwrap();
    let (document, second) = merged(&store, "{}");
    assert_eq!(second.imports, []);
    assert!(document.token(hash("fresh")).is_some() && document.realm("new").is_some());
    assert!(document.management_token(hash("m2")).is_some());
}

#[test]
fn rows_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth.sqlite");
    reference_file(&path);
    let mut store = SqliteAuthStore::open(&path).unwrap();
    let (mut document, _) = merged(&store, r#"{"enabled":true}"#);
    let secret = StoredSecret::Hashed(hash("hidden"));
    let acme = RealmName::new("acme").unwrap();
    let entry = crate::document::TokenEntry::new(secret, acme.clone(), Role::Consumer);
    let applied = document
        .apply([
            Mutation::PutToken(entry),
            Mutation::RenameRealm {
                from: acme,
                to: RealmName::new("acme2").unwrap(),
            },
            Mutation::RemoveToken(hash("admin-token-1")),
            Mutation::RemoveManagementToken(hash("mgmt-1")),
        ])
        .unwrap();
    store.apply(&applied.rows).unwrap();
    let (again, merged) = merged(&store, r#"{"enabled":true}"#);
    assert_eq!((merged.imports, merged.warnings), (vec![], vec![]));
    for token in ["hidden", "acme-both"] {
        assert_eq!(again.token(hash(token)).unwrap().realm.as_str(), "acme2");
    }
    assert!(again.realm("acme").is_none() && again.realm("acme2").is_some());
    assert!(!again.is_admin_bearer("admin-token-1"));
    assert!(again.management_token(hash("mgmt-1")).is_none());
    let rows = store.load().unwrap();
    assert!(
        rows.tokens
            .iter()
            .all(|(key, entry)| !key.contains("hidden") && !entry.contains("hidden"))
    );
}

#[test]
fn a_digest_is_no_token() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteAuthStore::open(&dir.path().join("auth.sqlite")).unwrap();
    let (mut document, _) = AuthDocument::parse("{}").unwrap();
    let entry = crate::document::TokenEntry::new(
        StoredSecret::Hashed(hash("t")),
        RealmName::default_realm(),
        Role::Both,
    );
    store
        .apply(&document.apply([Mutation::PutToken(entry)]).unwrap().rows)
        .unwrap();
    let (document, _) = merged(&store, "{}");
    let key = &store.load().unwrap().tokens[0].0;
    for stolen in [key.as_str(), &hash("t").to_hex()] {
        assert!(document.token(hash(stolen)).is_none());
    }
    assert!(document.token(hash("t")).is_some());
}

#[test]
fn rows_that_cannot_be_read_open_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth.sqlite");
    reference_file(&path);
    Connection::open(&path)
        .unwrap()
        .execute_batch(
            r#"
            UPDATE realms SET config = 'rubbish' WHERE name = 'acme';
            INSERT INTO tokens VALUES ('bad', '[]');
            INSERT INTO tokens VALUES ('other', '{"token":"elsewhere","realm":"*","role":"admin"}');
            INSERT INTO management_tokens VALUES ('bad', '{}');
            "#,
        )
        .unwrap();
    let store = SqliteAuthStore::open(&path).unwrap();
    let (document, merged) = merged(&store, r#"{"enabled":true}"#);
    assert_eq!(merged.warnings.len(), 4);
    assert!(
        merged
            .warnings
            .iter()
            .all(|warning| matches!(warning, LoadWarning::BadRow { .. }))
    );
    assert_eq!((document.token_count(), document.admin_count()), (2, 1));
    assert!(document.is_key_required("acme"));
    assert!(document.token(hash("elsewhere")).is_none());
}

#[test]
fn a_realms_key_is_kept_as_a_digest_that_other_brokers_do_not_take_for_none() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteAuthStore::open(&dir.path().join("auth.sqlite")).unwrap();
    let (mut document, _) = AuthDocument::parse("{}").unwrap();
    let config = Object::new().with("key_hash", hash("psk").to_hex());
    let config = crate::document::RealmConfig::from_fields(config).unwrap();
    let put = Mutation::PutRealm(RealmName::new("r").unwrap(), config);
    store.apply(&document.apply([put]).unwrap().rows).unwrap();
    let stored = Value::parse(&store.load().unwrap().realms[0].1).unwrap();
    assert_eq!(
        stored.as_object().unwrap().get("require_key"),
        Some(&Value::Bool(true))
    );
    let (document, _) = merged(&store, r#"{"enabled":true}"#);
    let config = document.realm("r").unwrap();
    assert_eq!(config.fields().get("require_key"), None);
    assert!(document.is_key_required("r"));
    assert_eq!(
        Value::from(config.to_redacted()).to_json(),
        r#"{"key_configured":true}"#
    );
}

#[test]
fn nonces_requests_and_audit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth.sqlite");
    let mut store = SqliteAuthStore::open(&path).unwrap();
    let nonce = |text: &str, expires_ms| UsedNonce {
        hash: hash(text),
        expires_ms,
    };
    store.remember_nonce(nonce("a", 10)).unwrap();
    store.remember_nonce(nonce("b", 20)).unwrap();
    let json = r#"{"request_id":"authreq-1","realm":"r","role":"both","client_id":"c","client_name":"n","token_hash":"1a439448cfba69b38b4f5ab702a37869f437133df562ee8822e09d30a2749c8f","created_ms":5}"#;
    for id in ["authreq-1", "authreq-2"] {
        let json = Secret::new(&json.replace("authreq-1", id));
        store
            .carry_out(&Effect::KeepRequest {
                id: id.to_owned(),
                json,
            })
            .unwrap();
    }
    store
        .carry_out(&Effect::DropRequest {
            id: "authreq-1".to_owned(),
        })
        .unwrap();
    drop(store);
    let store = SqliteAuthStore::open(&path).unwrap();
    assert_eq!(store.load_nonces(11).unwrap(), [nonce("b", 20)]);
    let requests = store.load_requests().unwrap();
    assert_eq!(requests.len(), 1);
    assert_eq!(
        (requests[0].id.as_str(), requests[0].created_ms),
        ("authreq-2", 5)
    );
    assert_eq!(store.audit_trail(10).unwrap(), Vec::<String>::new());
}

#[test]
fn backup() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth.sqlite");
    reference_file(&path);
    let store = SqliteAuthStore::open(&path).unwrap();
    let copy = dir.path().join("copy.sqlite");
    store.backup(&copy).unwrap();
    assert_eq!(
        SqliteAuthStore::open(&copy).unwrap().load().unwrap().tokens,
        store.load().unwrap().tokens
    );
    assert!(matches!(store.backup(&copy), Err(AuthStoreError::Exists)));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        for file in [&path, &copy] {
            assert_eq!(
                std::fs::metadata(file).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
    }
}

#[test]
fn no_database() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("auth.sqlite");
    std::fs::write(
        &path,
        "this is a text and no database, and long enough to be looked at",
    )
    .unwrap();
    assert!(SqliteAuthStore::open(&path).is_err());
    assert!(SqliteAuthStore::open(&dir.path().join("no/such/folder.sqlite")).is_err());
}

#[test]
fn secrets_of_managers_are_compared_not_shown() {
    let rows = StoreRows {
        tokens: vec![("secret-token".to_owned(), "{}".to_owned())],
        ..StoreRows::default()
    };
    assert!(!format!("{rows:?}").contains("secret-token"));
    let secret = StoredSecret::Plain(Secret::new("secret-token"));
    let entry = crate::document::TokenEntry::new(secret, RealmName::default_realm(), Role::Both);
    let (mut document, _) = AuthDocument::parse("{}").unwrap();
    let applied = document.apply([Mutation::PutToken(entry)]).unwrap();
    assert!(!format!("{applied:?} {document:?}").contains("secret-token"));
}
