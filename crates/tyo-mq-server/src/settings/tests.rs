//! Settings files as people write them.

use super::*;

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

fn warnings(text: &str) -> Vec<String> {
    parse(text)
        .unwrap()
        .warnings
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn an_empty_document_is_the_defaults() {
    assert_eq!(parse("{}").unwrap().settings, Settings::default());
}

#[test]
fn what_is_printed_is_what_is_read() {
    let text = load::document(&Settings::default());
    let loaded = parse(&text).unwrap();
    assert_eq!(
        (loaded.settings, loaded.warnings),
        (Settings::default(), Vec::new())
    );
}

#[test]
fn both_spellings_are_read() {
    let camel =
        parse(r#"{"ackTimeout": 2, "pingInterval": 300, "idleEviction": {"ttlMs": 5}}"#).unwrap();
    let snake =
        parse(r#"{"ack_timeout": "2s", "ping_interval": 300, "idle_eviction": {"ttl_ms": 5}}"#)
            .unwrap();
    assert_eq!(camel.settings, snake.settings);
    assert_eq!(camel.settings.ack_timeout.ms(), Some(2_000));
    assert_eq!((camel.warnings, snake.warnings), (Vec::new(), Vec::new()));
}

#[test]
fn mistakes_are_told_with_key_and_line() {
    assert_eq!(
        error("{\n  \"port\": 17352,\n}"),
        "line 3, column 1: trailing comma"
    );
    assert!(
        error("{\n  \"port\": \"x\"\n}")
            .starts_with("line 2: port: invalid type: string \"x\", expected u16")
    );
    assert_eq!(
        error(r#"{"storage": "sqlite", "storage_options": {"durability": "none"}}"#),
        "storage: storage_options.durability: expected \"full\" or \"normal\""
    );
    assert_eq!(
        error(r#"{"pingInterval": 0}"#),
        "line 1: pingInterval: expected milliseconds from 1 to 31622400000, found 0"
    );
    assert_eq!(
        error(r#"{"storage": "redis"}"#),
        "storage_options.url: redis storage needs a url"
    );
    assert_eq!(error("[]"), "line 1, column 1: expected a JSON object");
}

#[test]
fn what_would_serve_everybody_is_refused() {
    assert!(error(r#"{"auth": {"enabled": "yes"}}"#).starts_with("auth: "));
    assert!(error(r#"{"auth": {"tokens": {}}}"#).starts_with("auth: "));
    assert!(parse(r#"{"auth": {"enabled": true}}"#).is_ok());
    // A node alone that is taken for one of a cluster has tokens that others have revoked.
    assert!(error(r#"{"cluster": {"enabled": true}}"#).starts_with("cluster.enabled: "));
}

#[test]
fn what_would_limit_nobody_is_refused() {
    for (limits, expected) in [
        (r#"[]"#, "limits: expected an object, found []"),
        (
            r#"{"enabled": "yes"}"#,
            "limits: enabled: expected true or false, found \"yes\"",
        ),
        (
            r#"{"messages_per_second": "5 a second"}"#,
            "limits: messages_per_second: expected a number, found \"5 a second\"",
        ),
        (
            r#"{"max_connections_per_ip": [5]}"#,
            "limits: max_connections_per_ip: expected a number, found [5]",
        ),
        (
            r#"{"realms": {"a.b": {"bytes_burst": true}}}"#,
            "limits: realms.a.b.bytes_burst: expected a number, found true",
        ),
        (
            r#"{"realms": {"a": 5}}"#,
            "limits: realms.a: expected an object, found 5",
        ),
        (
            r#"{"realms": []}"#,
            "limits: realms: expected an object, found []",
        ),
        (
            r#"{"trust_proxy": "no"}"#,
            "limits: trust_proxy: expected true or false, found \"no\"",
        ),
        (
            r#"{"trusted_proxies": ["10.0.0.0/8", "10.0.0.0/99"]}"#,
            "limits: trusted_proxies: expected networks such as \"10.0.0.0/8\", or a count, found \"10.0.0.0/99\"",
        ),
        (
            r#"{"trustedProxies": -1}"#,
            "limits: trustedProxies: expected networks such as \"10.0.0.0/8\", or a count, found -1",
        ),
    ] {
        assert_eq!(error(&format!(r#"{{"limits": {limits}}}"#)), expected);
    }
    for good in [
        "null",
        "{}",
        r#"{"enabled": false, "messages_per_second": 0.5, "message_burst": null, "bytes_per_second": -1}"#,
        r#"{"realms": {"a": {"max_queued_per_realm": 5}, "b": null}, "trust_proxy": true}"#,
        r#"{"trusted_proxies": ["::1", "10.0.0.0/8"]}"#,
        r#"{"messages_per_second": "5"}"#,
        r#"{"trusted_proxies": "10.0.0.1"}"#,
        r#"{"trusted_proxies": 2}"#,
    ] {
        let text = format!(r#"{{"limits": {good}}}"#);
        assert_eq!(warnings(&text), Vec::<String>::new(), "{good}");
    }
    assert_eq!(
        warnings(
            r#"{"limits": {"realms": {"a": {"messages_per_secnd": 5, "realms_per_hour_per_ip": 5}}}}"#
        ),
        [
            "limits.realms.a.messages_per_secnd: unknown setting, ignored; did you mean limits.messages_per_second?",
            "limits.realms.a.realms_per_hour_per_ip: unknown setting, ignored; did you mean limits.realms_per_hour_per_ip?",
        ]
    );
}

#[test]
fn slips_in_access_control_are_told() {
    for (auth, expected) in [
        (
            r#"{"enabeld": true}"#,
            "auth.enabeld: unknown setting, ignored; did you mean auth.enabled?",
        ),
        (
            r#"{"strikt": true}"#,
            "auth.strikt: unknown setting, ignored; did you mean auth.strict?",
        ),
        (
            r#"{"realms": {"a.b": {"require_keys": true}}}"#,
            "auth.realms.a.b.require_keys: unknown setting, ignored; did you mean require_key?",
        ),
        (
            r#"{"realms": {"a": {"requried": true}}}"#,
            "auth.realms.a.requried: unknown setting, ignored; did you mean required?",
        ),
    ] {
        assert_eq!(warnings(&format!(r#"{{"auth": {auth}}}"#)), [expected]);
    }
    let free = r#"{"auth": {"jwtSecret": "s", "temporary_realm_ttl": 5, "orgs": {"o": {"enabeld": 1}},
        "realms": {"a": {"requireKey": true, "owner": "me", "note": "n", "keys": 1, "expires_at": 1}},
        "tokens": [{"token": "t", "tokne": "x"}]}}"#;
    assert_eq!(warnings(free), Vec::<String>::new());
}

#[test]
fn keys_without_effect_are_told() {
    assert_eq!(
        warnings(r#"{"prot": 1}"#),
        ["prot: unknown setting, ignored; did you mean port?"]
    );
    assert_eq!(
        warnings(r#"{"idle_eviction": {"ttl": 1}}"#),
        ["idle_eviction.ttl: unknown setting, ignored; did you mean idle_eviction.ttlMs?"]
    );
    assert_eq!(
        warnings(r#"{"zzzzzzzzzz": 1}"#),
        ["zzzzzzzzzz: unknown setting, ignored"]
    );
    assert_eq!(
        warnings(r#"{"remote": {"relay": true}}"#),
        ["remote: this version does not support this setting yet, ignored"]
    );
}

#[test]
fn a_missing_file_is_written_with_the_defaults() {
    let folder = std::env::temp_dir().join(format!("tyo-mq-settings-{}", std::process::id()));
    let path = folder.join("new/settings.json");
    let first = load(&path).unwrap();
    let second = load(&path).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((first.created, second.created), (true, false));
    assert_eq!(first.settings, second.settings);
}
