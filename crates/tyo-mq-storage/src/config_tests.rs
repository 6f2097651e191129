//! Tests of the settings.

use serde_json::json;

use super::*;

fn read(storage: Value, options: Value) -> Result<StorageConfig, ConfigError> {
    StorageConfig::from_settings(&storage, &options)
}

fn check(storage: Value, options: Value, expected: Backend) {
    assert_eq!(read(storage, options).map(|it| it.backend), Ok(expected));
}

#[test]
fn stores_have_names_and_their_options_aliases() {
    check(Value::Null, Value::Null, Backend::Memory);
    check(json!(true), Value::Null, Backend::Memory);
    check(json!("Memory"), json!({"filename": "x"}), Backend::Memory);
    check(
        json!("sqlite"),
        Value::Null,
        Backend::Sqlite(SqliteConfig::new("tyo-mq.sqlite")),
    );
    for name in ["filename", "file", "path"] {
        check(
            json!("sqlite"),
            json!({name: "q.db"}),
            Backend::Sqlite(SqliteConfig::new("q.db")),
        );
    }
    let full = SqliteConfig {
        durability: Durability::Full,
        ..SqliteConfig::new("q.db")
    };
    check(
        json!("sqlite"),
        json!({"path": "q.db", "durability": "full"}),
        Backend::Sqlite(full),
    );
    check(
        json!("redis"),
        Value::Null,
        Backend::Redis(RedisConfig::new("redis://127.0.0.1:6379")),
    );
}

#[test]
fn redis_has_timeouts_and_a_fallback() {
    let expected = RedisConfig {
        prefix: "p".to_owned(),
        connect_timeout: Duration::from_millis(100),
        probe_timeout: Duration::from_secs(2),
        fallback: Some(Fallback::Sqlite(SqliteConfig::new("f.db"))),
        ..RedisConfig::new("redis://h")
    };
    let options = json!({"url": "redis://h", "prefix": "p", "connect_timeout": 100, "probe_timeout": "2s", "fallback": "Redis", "fallback_path": "f.db"});
    check(json!("redis"), options, Backend::Redis(expected));
}

#[test]
fn a_cluster_needs_a_tag() {
    let config = RedisConfig::new("redis-cluster://h:7000");
    assert_eq!(config.prefix, "{tyo-mq:queue}");
    check(
        json!("redis"),
        json!({"url": "redis-cluster://h:7000"}),
        Backend::Redis(config),
    );
    assert!(
        read(
            json!("redis"),
            json!({"url": "redis-cluster://h:7000", "prefix": "q{}"})
        )
        .is_err()
    );
}

#[test]
fn lifetimes() {
    let ttl =
        |value: Value| read(Value::Null, json!({"default_ttl": value})).map(|it| it.default_ttl_ms);
    assert_eq!(ttl(Value::Null), Ok(Some(86_400_000)));
    assert_eq!(ttl(json!(0.5)), Ok(Some(500)));
    assert_eq!(ttl(json!("7d")), Ok(Some(604_800_000)));
    assert_eq!(ttl(json!(-1)), Ok(None));
    assert!(ttl(json!("soon")).is_err());
}

#[test]
fn mistakes_are_told() {
    let told = |storage: Value, options: Value| read(storage, options).unwrap_err().to_string();
    assert!(told(json!("mongo"), Value::Null).contains("\"mongo\""));
    assert!(told(json!(7), Value::Null).contains('7'));
    assert!(told(json!("sqlite"), json!({"file": 7})).contains("storage_options.file"));
    assert!(told(json!("sqlite"), json!({"durability": "some"})).contains("durability"));
    assert!(told(json!("redis"), json!({"fallback": "paper"})).contains("fallback"));
    assert!(told(json!("redis"), json!({"probe_timeout": 0})).contains("probe_timeout"));
    assert!(told(json!("redis"), json!(7)).contains("object"));
}

#[test]
fn passwords_are_never_shown() {
    for (url, shown) in [
        ("redis://user:pa@ss@h:1/2", "redis://h:1/2"),
        ("rediss://h?password=x", "rediss://h"),
        ("h", "://h"),
    ] {
        let config = RedisConfig::new(url);
        assert_eq!(config.url.to_string(), shown);
        assert!(format!("{config:?}").contains(shown));
        assert!(!format!("{config:?}").contains("pa@"));
    }
}
