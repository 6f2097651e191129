//! The settings file changes while the broker runs; and what the environment adds to it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::manager::{ADMIN, authenticate, manage, refused, settings, until_admitted};
use super::server::{Running, on_free_port};

fn write(file: &Path, settings: &Value) {
    std::fs::write(file, on_free_port(settings.clone()).to_string()).unwrap();
}

fn with_token(token: &str) -> Value {
    let mut changed = settings();
    let entry = json!({"token": token, "realm": "req", "role": "both"});
    changed["auth"]["tokens"]
        .as_array_mut()
        .unwrap()
        .push(entry);
    changed
}

fn new_file(folder: &TempDir) -> PathBuf {
    let file = folder.path().join("settings.json");
    write(&file, &settings());
    file
}

#[tokio::test]
async fn a_file_that_is_rewritten_or_replaced_is_seen() {
    let folder = TempDir::new().unwrap();
    let file = new_file(&folder);
    let server = Running::with_file(&file, &[]).await;
    assert_eq!(authenticate(&server, r#"{"token":"t-1"}"#).await.1, "401");
    write(&file, &with_token("t-1"));
    until_admitted(&server, r#"{"token":"t-1"}"#, "req/both").await;
    // Twice, because it is another file after the first time.
    for token in ["t-2", "t-3"] {
        let beside = folder.path().join("beside.json");
        write(&beside, &with_token(token));
        std::fs::rename(&beside, &file).unwrap();
        until_admitted(&server, &json!({"token": token}).to_string(), "req/both").await;
    }
    assert_eq!(authenticate(&server, r#"{"token":"t-1"}"#).await.1, "401");
}

#[tokio::test]
async fn a_broken_file_changes_nothing_and_the_settings_say_so() {
    let folder = TempDir::new().unwrap();
    let file = new_file(&folder);
    let server = Running::with_file(&file, &[]).await;
    let broken = [
        r#"{"auth":"#,
        r#"{"pingInterval":0}"#,
        r#"{"auth":{"enabled":"yes"}}"#,
    ];
    for text in broken {
        std::fs::write(&file, text).unwrap();
        (server.reload)();
        let shown = manage(&server, json!({"command": "get"})).await;
        let report = &shown["settings"]["reload"];
        assert_eq!(report["ok"], false, "{text}: {report}");
        assert!(report["error"].is_string(), "{text}: {report}");
        assert_eq!(
            authenticate(&server, r#"{"token":"t-prod"}"#).await.1,
            "req/producer"
        );
        let code = refused(&server, ADMIN, json!({"command": "reload_settings"})).await;
        assert!(code == 400 || code == 500, "{code}");
    }
    let mut good = with_token("t-1");
    good["prefetch"] = json!(7);
    write(&file, &good);
    manage(&server, json!({"command": "reload_settings"})).await;
    assert_eq!(
        authenticate(&server, r#"{"token":"t-1"}"#).await.1,
        "req/both"
    );
    let shown = manage(&server, json!({"command": "get"})).await;
    let report = &shown["settings"]["reload"];
    assert_eq!(report["ok"], true, "{report}");
    assert_eq!(report["changed"], json!(["auth", "prefetch"]));
    assert_eq!(report["needs_restart"], json!(["prefetch"]));
}

#[tokio::test]
async fn sessions_end_when_the_file_takes_what_admitted_them() {
    let folder = TempDir::new().unwrap();
    let file = new_file(&folder);
    let server = Running::with_file(&file, &[]).await;
    let (mut client, _) = authenticate(&server, r#"{"token":"t-cons"}"#).await;
    let mut less = settings();
    let tokens = less["auth"]["tokens"].as_array_mut().unwrap();
    tokens.retain(|entry| entry["token"] != "t-cons");
    write(&file, &less);
    (server.reload)();
    assert_eq!(client.text().await, "41");
}

/// The program is told to authenticate by its environment, and finds an admin's token, or makes one.
#[tokio::test]
async fn what_the_environment_says_holds_over_a_reload() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("settings.json");
    let env = folder.path().join(".env");
    write(&file, &json!({}));
    let variables = [
        ("TYO_MQ_AUTH_ENABLED", "true"),
        ("TYO_MQ_ENV_FILE", env.to_str().unwrap()),
    ];
    let server = Running::with_file(&file, &variables).await;
    let made = std::fs::read_to_string(&env).unwrap();
    let token = made.trim().strip_prefix("TYO_MQ_ADMIN_TOKEN=").unwrap();
    let token = json!({"token": token.trim_matches('"')}).to_string();
    assert_eq!(authenticate(&server, &token).await.1, "*/admin");
    assert_eq!(authenticate(&server, "{}").await.1, "401");

    write(&file, &json!({"limits": {"enabled": true}}));
    (server.reload)();
    assert_eq!(authenticate(&server, "{}").await.1, "401");
    assert_eq!(authenticate(&server, &token).await.1, "*/admin");
    // A new token in the file of the environment takes the place of the old one.
    std::fs::write(&env, "TYO_MQ_ADMIN_TOKEN=another\n").unwrap();
    (server.reload)();
    assert_eq!(
        authenticate(&server, r#"{"token":"another"}"#).await.1,
        "*/admin"
    );
    assert_eq!(authenticate(&server, &token).await.1, "401");
}
