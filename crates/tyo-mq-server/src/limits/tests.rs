//! Limits as the settings give them, with the time as a number.

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::json;

use super::*;

fn config(block: serde_json::Value) -> LimitConfig {
    LimitConfig::from_settings(&block)
}

#[test]
fn a_bucket_starts_full_and_refills_with_time() {
    let limits = config(json!({ "enabled": true, "messages_per_second": 2, "message_burst": 3 }));
    let mut socket = SocketLimits::default();
    let mut send = |now_ms| {
        socket
            .message(&limits, "r", 1, now_ms)
            .map_err(|over| over.retry_after_secs)
    };
    assert_eq!(
        [send(0), send(0), send(0), send(0)],
        [Ok(()), Ok(()), Ok(()), Err(1)]
    );
    assert_eq!([send(499), send(500), send(500)], [Err(1), Ok(()), Err(1)]);
    // A clock that steps back gives nothing.
    assert_eq!(send(0), Err(1));
}

#[test]
fn a_message_is_paid_for_even_if_its_bytes_are_not() {
    let limits = config(
        json!({ "enabled": true, "messages_per_second": 1, "message_burst": 2, "bytes_per_second": 10 }),
    );
    let mut socket = SocketLimits::default();
    let over = socket.message(&limits, "r", 25, 0).unwrap_err();
    assert_eq!(
        (over.reason, over.retry_after_secs),
        ("bytes_per_second", 1)
    );
    assert_eq!(socket.message(&limits, "r", 20, 0), Ok(()));
    assert_eq!(
        socket.message(&limits, "r", 0, 0).unwrap_err().reason,
        "messages_per_second"
    );
}

#[test]
fn a_realm_has_its_own_numbers_and_may_have_none() {
    let block = json!({ "enabled": true, "max_subscriptions_per_socket": 1,
        "realms": { "big": { "max_subscriptions_per_socket": 2 }, "free": { "max_subscriptions_per_socket": 0 } } });
    let limits = config(block);
    let limit = |realm| limits.of_realm(realm, Limit::MAX_SUBSCRIPTIONS_PER_SOCKET);
    assert_eq!(
        [limit("any"), limit("big"), limit("free")],
        [Some(1.0), Some(2.0), None]
    );
    let mut socket = SocketLimits::default();
    assert_eq!(socket.subscription(&limits, "any", 0), Ok(()));
    let over = socket.subscription(&limits, "any", 0).unwrap_err();
    assert_eq!(
        (over.reason, over.retry_after_secs),
        ("max_subscriptions_per_socket", 60)
    );
}

#[test]
fn a_full_realm_refuses_whoever_comes() {
    let limits = config(json!({ "enabled": true, "max_registrations_per_realm": 5 }));
    let mut socket = SocketLimits::default();
    assert_eq!(socket.registration(&limits, "r", 4), Ok(()));
    assert_eq!(
        socket.registration(&limits, "r", 5).unwrap_err().reason,
        "max_registrations_per_realm"
    );
}

#[test]
fn what_is_off_or_no_number_limits_nothing() {
    for block in [
        json!({ "enabled": false, "messages_per_second": 1 }),
        json!({ "enabled": true, "messages_per_second": -1 }),
        json!({ "enabled": true, "messages_per_second": "one" }),
        json!(null),
    ] {
        let limits = config(block);
        let mut socket = SocketLimits::default();
        assert!((0..100).all(|_| socket.message(&limits, "r", 1 << 30, 0).is_ok()));
    }
}

#[test]
fn the_block_alone_means_its_limits() {
    let limits = config(json!({ "messages_per_second": 1, "message_burst": 1 }));
    let mut socket = SocketLimits::default();
    assert_eq!(socket.message(&limits, "r", 1, 0), Ok(()));
    assert!(socket.message(&limits, "r", 1, 0).is_err());
    let as_text = config(json!({ "messages_per_second": "1", "message_burst": " 1 " }));
    assert_eq!(as_text, limits);
    assert!(!config(json!(null)).is_enabled());
}

#[test]
fn a_client_is_told_once_a_second() {
    let mut socket = SocketLimits::default();
    assert_eq!(
        [0, 1, 999, 1000, 1999, 2500].map(|now_ms| socket.tell(now_ms)),
        [true, false, false, true, false, true]
    );
}

#[test]
fn connections_count_until_they_are_gone() {
    let limits = config(json!({ "enabled": true, "max_connections_per_ip": 2 }));
    let connections = Arc::new(ConnectionLimits::default());
    let address: IpAddr = "10.0.0.1".parse().unwrap();
    let first = connections.admit(&limits, address, 0).unwrap();
    let second = connections.admit(&limits, address, 0).unwrap();
    let over = connections.admit(&limits, address, 0).unwrap_err();
    assert_eq!(
        (over.reason, over.retry_after_secs),
        ("max_connections_per_ip", 30)
    );
    assert!(
        connections
            .admit(&limits, "10.0.0.2".parse().unwrap(), 0)
            .is_ok()
    );
    drop(first);
    assert!(connections.admit(&limits, address, 0).is_ok());
    drop(second);
}

#[test]
fn opening_is_limited_by_the_minute() {
    let limits = config(json!({ "enabled": true, "connections_per_minute_per_ip": 2 }));
    let connections = Arc::new(ConnectionLimits::default());
    let address: IpAddr = "::1".parse().unwrap();
    let open = |now_ms| {
        connections
            .admit(&limits, address, now_ms)
            .map(drop)
            .map_err(|over| over.retry_after_secs)
    };
    assert_eq!(
        [open(0), open(0), open(0), open(30_000)],
        [Ok(()), Ok(()), Err(30), Ok(())]
    );
}

#[test]
fn forwarded_addresses_are_believed_as_far_as_trust_goes() {
    let check = |block: serde_json::Value, socket: &str, header: &[&str], expected: &str| {
        let proxies = TrustedProxies::from_settings(&block);
        let address = client_address(socket.parse().unwrap(), header, &proxies);
        assert_eq!(
            address,
            expected.parse::<IpAddr>().unwrap(),
            "{block} {header:?}"
        );
    };
    let header = ["6.6.6.6, 1.1.1.1", "10.0.0.2"];
    check(json!({}), "10.0.0.1", &header, "10.0.0.1");
    check(
        json!({ "trust_proxy": true }),
        "10.0.0.1",
        &header,
        "6.6.6.6",
    );
    check(
        json!({ "trust_proxy": true }),
        "10.0.0.1",
        &["not an address"],
        "10.0.0.1",
    );
    check(
        json!({ "trusted_proxies": 1 }),
        "10.0.0.1",
        &header,
        "10.0.0.2",
    );
    check(
        json!({ "trusted_proxies": 2 }),
        "10.0.0.1",
        &header,
        "1.1.1.1",
    );
    check(
        json!({ "trusted_proxies": 9 }),
        "10.0.0.1",
        &["x, 1.1.1.1"],
        "1.1.1.1",
    );
    check(
        json!({ "trusted_proxies": ["10.0.0.0/8"] }),
        "10.0.0.1",
        &header,
        "1.1.1.1",
    );
    check(
        json!({ "trusted_proxies": ["10.0.0.0/8"] }),
        "11.0.0.1",
        &header,
        "11.0.0.1",
    );
    check(
        json!({ "trusted_proxies": "::1" }),
        "::1",
        &["2001:db8::7"],
        "2001:db8::7",
    );
    check(
        json!({ "trusted_proxies": "127.0.0.1" }),
        "::ffff:127.0.0.1",
        &["1.2.3.4"],
        "1.2.3.4",
    );
    check(
        json!({ "trusted_proxies": ["0.0.0.0/0"] }),
        "10.0.0.1",
        &["1.1.1.1"],
        "1.1.1.1",
    );
}
