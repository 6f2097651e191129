//! Durable subscriptions, acknowledgements, retries, dead letters, lifetimes, confirms.

use serde_json::json;

use super::script::{check, check_with};

#[tokio::test]
async fn durable_without_ack() {
    check(
        r#"
        C> 42["SUBSCRIBE",{"event":"d","producer":"P","consumer":"c","consumer_id":"c","durable":true}]
        C> 41
        P> 421["PRODUCE",{"event":"d","message":1,"from":"P","ttl":60}]
        P< 431[{"ok":true,"msg_id":"<a>","routed":1,"queued":1}]
        P> 422["PRODUCE",{"event":"d","message":2,"from":"P"}]
        P< 432[{"ok":true,"msg_id":"<b>","routed":1,"queued":1}]
        D> 42["CONSUMER",{"name":"c","id":"c"}]
        D<
        D> 42["SUBSCRIBE",{"event":"d","producer":"P","consumer":"c","consumer_id":"c","durable":true}]
        P< 42["SUBSCRIBE-TO",{"name":"c","id":"c","socket":"$D","events":["p-d"],"online":true}]
        D< 42["CONSUME-p-d",{"event":"d","message":1,"from":"P"}]
        D< 42["CONSUME-p-d",{"event":"d","message":2,"from":"P"}]
        # Once is enough.
        D> 42["SUBSCRIBE",{"event":"d","producer":"P","consumer":"c","consumer_id":"c","durable":true}]
        P< 42["SUBSCRIBE-TO",{"name":"c","id":"c","socket":"$D","events":["p-d"],"online":true}]
        D> 423["PRODUCE",{"event":"other","message":0,"from":"Q"}]
        D< 433[{"ok":true,"msg_id":"<c>","routed":0,"queued":0}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn plain_messages_do_not_wait_and_guaranteed_ones_do() {
    for guaranteed in [
        r#""guaranteed":true"#,
        r#""guaranteed_delivery":1"#,
        r#""guaranteedDelivery":"false""#,
        r#""durable":true"#,
        r#""delivery":"guaranteed""#,
        r#""delivery_mode":"guaranteed""#,
    ] {
        check(&format!(
            r#"
            C> 42["SUBSCRIBE",{{"event":"d","producer":"P","consumer":"c","consumerId":"c"}}]
            C> 41
            P> 421["PRODUCE",{{"event":"d","message":1,"from":"P"}}]
            P< 431[{{"ok":true,"msg_id":"<a>","routed":0,"queued":0}}]
            P> 422["PRODUCE",{{"event":"d","message":2,"from":"P",{guaranteed}}}]
            P< 432[{{"ok":true,"msg_id":"<b>","routed":1,"queued":1}}]
            D> 42["SUBSCRIBE",{{"event":"d","producer":"P","consumer":"c","consumerId":"c"}}]
            P< 42["SUBSCRIBE-TO",{{"name":"c","id":"$D","socket":"$D","events":["p-d"],"online":true}}]
            D< 42["CONSUME-p-d",{{"event":"d","message":2,"from":"P"}}]
            "#
        ))
        .await;
    }
}

#[tokio::test]
async fn acknowledged_once() {
    check(
        r#"
        C> 42["SUBSCRIBE",{"event":"k","producer":"P","consumer":"c","consumer_id":"c","durable":true,"ack":true}]
        P> 421["PRODUCE",{"event":"k","message":{"v":1},"from":"P"}]
        P< 431[{"ok":true,"msg_id":"<a>","routed":1,"queued":1}]
        C< 42["CONSUME-p-k",{"event":"k","message":{"v":1},"from":"P","msgId":"<m1>","msg_id":"<m1>","delivery_attempt":1}]
        X> 425["ACK",{"msgId":"<m1>"}]
        X< 42["ACK_FAIL",{"ok":false,"code":403,"message":"<words1>"}]
        X< 435[{"ok":false,"code":403,"message":"<words1>"}]
        C> 425["ACK",{"msgId":"<m1>"}]
        C< 42["ACK_OK",{"ok":true,"msgId":"<m1>"}]
        C< 435[{"ok":true,"msgId":"<m1>"}]
        C> 42["ACK",{"msgId":"<m1>"}]
        C< 42["ACK_FAIL",{"ok":false,"code":404,"message":"<words2>"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn the_id_of_an_ack_in_every_spelling() {
    for (ask, ack) in [
        (r#""ack":true"#, r#"{"msgId":"<m1>"}"#),
        (r#""require_ack":true"#, r#"{"msg_id":"<m1>"}"#),
        (r#""requireAck":1"#, r#"{"id":"<m1>"}"#),
        (r#""manual_ack":true"#, r#""{\"msgId\":\"<m1>\"}""#),
        (
            r#""options":{"manualAck":true}"#,
            r#"{"msgId":"<m1>"},"extra",{"arguments":1}"#,
        ),
    ] {
        check(&format!(
            r#"
            C> 42["SUBSCRIBE",{{"event":"k","producer":"P","consumer":"c",{ask}}}]
            P> 42["PRODUCE",{{"event":"k","message":1,"from":"P"}}]
            C< 42["CONSUME-p-k",{{"event":"k","message":1,"from":"P","msgId":"<m1>","msg_id":"<m1>","delivery_attempt":1}}]
            C> 42["ACK",{ack}]
            C< 42["ACK_OK",{{"ok":true,"msgId":"<m1>"}}]
            "#
        ))
        .await;
    }
}

#[tokio::test]
async fn retried_and_then_a_dead_letter() {
    let settings = json!({"http_api": {"enabled": true}});
    let server = super::server::Running::with(settings).await;
    let _clients = super::script::play(
        &server,
        r#"
        C> 42["SUBSCRIBE",{"event":"k","producer":"P","consumer":"c","consumer_id":"c","durable":true,"ack":true,"ack_timeout":"20ms","retry":{"max_attempts":3,"delay":"10ms","backoff":"exponential"}}]
        P> 42["PRODUCE",{"event":"k","message":{"v":1},"from":"P"}]
        C< 42["CONSUME-p-k",{"event":"k","message":{"v":1},"from":"P","msgId":"<m1>","msg_id":"<m1>","delivery_attempt":1}]
        C< 42["CONSUME-p-k",{"event":"k","message":{"v":1},"from":"P","msgId":"<m1>","msg_id":"<m1>","delivery_attempt":2}]
        C< 42["CONSUME-p-k",{"event":"k","message":{"v":1},"from":"P","msgId":"<m1>","msg_id":"<m1>","delivery_attempt":3}]
        "#,
    )
    .await;
    loop {
        let answer = super::http::get(server.addr, "/api/realms/default/dlq").await;
        assert_eq!(answer.status, 200);
        if answer.body.contains("ack timeout") {
            assert!(
                answer.body.contains(r#""message":{"v":1}"#),
                "{}",
                answer.body
            );
            break;
        }
    }
}

#[tokio::test]
async fn an_unacknowledged_message_comes_back_with_its_attempts() {
    check(
        r#"
        C> 42["SUBSCRIBE",{"event":"k","producer":"P","consumer":"c","consumer_id":"c","durable":true,"ack":true}]
        P> 42["PRODUCE",{"event":"k","message":1,"from":"P"}]
        C< 42["CONSUME-p-k",{"event":"k","message":1,"from":"P","msgId":"<m1>","msg_id":"<m1>","delivery_attempt":1}]
        C> 41
        D> 42["ACK",{"msgId":"<m1>"}]
        D< 42["ACK_FAIL",{"ok":false,"code":404,"message":"<words>"}]
        D> 42["SUBSCRIBE",{"event":"k","producer":"P","consumer":"c","consumer_id":"c","durable":true,"ack":true}]
        P< 42["SUBSCRIBE-TO",{"name":"c","id":"$D","socket":"$D","events":["p-k"],"online":true}]
        D< 42["CONSUME-p-k",{"event":"k","message":1,"from":"P","msgId":"<m1>","msg_id":"<m1>","delivery_attempt":2}]
        D> 42["ACK",{"msgId":"<m1>"}]
        D< 42["ACK_OK",{"ok":true,"msgId":"<m1>"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn at_most_so_many_at_a_time() {
    check(
        r#"
        C> 42["SUBSCRIBE",{"event":"k","producer":"P","consumer":"c","consumer_id":"c","durable":true,"ack":true,"prefetch":1}]
        P> 421["PRODUCE",{"event":"k","message":1,"from":"P"}]
        P< 431[{"ok":true,"msg_id":"<a>","routed":1,"queued":1}]
        P> 422["PRODUCE",{"event":"k","message":2,"from":"P"}]
        P< 432[{"ok":true,"msg_id":"<b>","routed":1,"queued":1}]
        C< 42["CONSUME-p-k",{"event":"k","message":1,"from":"P","msgId":"<m1>","msg_id":"<m1>","delivery_attempt":1}]
        C<
        C> 42["ACK",{"msgId":"<m1>"}]
        C< 42["ACK_OK",{"ok":true,"msgId":"<m1>"}]
        C< 42["CONSUME-p-k",{"event":"k","message":2,"from":"P","msgId":"<m2>","msg_id":"<m2>","delivery_attempt":1}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn lifetimes() {
    // What is over at once never comes; what cannot be read counts as absent.
    for (fields, comes) in [
        (r#""ttl":0"#, false),
        (r#""ttl":"0""#, false),
        (r#""lifespan":0"#, false),
        (r#""ttl":"0ms""#, false),
        (r#""ttl":5"#, true),
        (r#""ttl":"90s""#, true),
        (r#""ttl":-1"#, true),
        (r#""ttl":"never""#, true),
        (r#""ttl":null"#, true),
        // The producer's default, which is over at once, too.
        (r#""lifespan":-1"#, false),
        (r#""ttl":"abc""#, false),
        (r#""lifespan":60"#, true),
    ] {
        let first = if comes {
            r#"D< 42["CONSUME-p-d",{"event":"d","message":1,"from":"P"}]"#
        } else {
            ""
        };
        check(&format!(
            r#"
            C> 42["SUBSCRIBE",{{"event":"d","producer":"P","consumer":"c","consumer_id":"c","durable":true}}]
            C> 41
            P> 42["PRODUCER",{{"name":"P","id":"P","default_ttl":0}}]
            P< 42["SUBSCRIBE-TO-P",{{"name":"c","id":"$C","socket":null,"events":["p-d"],"online":false}}]
            P> 42["PRODUCE",{{"event":"d","message":1,"from":"P",{fields}}}]
            P> 421["PRODUCE",{{"event":"d","message":2,"from":"P","ttl":60}}]
            P< 431[{{"ok":true,"msg_id":"<a>","routed":1,"queued":1}}]
            D> 42["SUBSCRIBE",{{"event":"d","producer":"P","consumer":"c","consumer_id":"c","durable":true}}]
            P< 42["SUBSCRIBE-TO-P",{{"name":"c","id":"$D","socket":"$D","events":["p-d"],"online":true}}]
            {first}
            D< 42["CONSUME-p-d",{{"event":"d","message":2,"from":"P"}}]
            "#
        ))
        .await;
    }
}

#[tokio::test]
async fn confirms_and_refusals() {
    check(
        r#"
        P> 421["PRODUCE",{"event":"nobody","message":1,"from":"P"}]
        P< 431[{"ok":true,"msg_id":"<a>","routed":0,"queued":0}]
        P> 422["PRODUCE",{"message":1,"from":"P"}]
        P< 432[{"ok":false,"code":400,"message":"<w2>"}]
        P> 423["PRODUCER",{"name":5}]
        P< 42["ERROR",{"message":"<w3>","code":-1}]
        P< 433[{"ok":false,"code":400,"message":"<w3>"}]
        P> 424["SUBSCRIBE",{"producer":"x"}]
        P< 42["ERROR","<w4>"]
        P< 434[{"ok":false,"code":400,"message":"<w4>"}]
        P> 425["ACK",{}]
        P< 42["ACK_FAIL",{"ok":false,"code":400,"message":"<w5>"}]
        P< 435[{"ok":false,"code":400,"message":"<w5>"}]
        # Without an ack, a refusal of these is silent.
        P> 42["PRODUCE",{"message":1,"from":"P"}]
        P<
        # The other events leave their ack alone when they succeed.
        P> 426["PRODUCER",{"name":"P"}]
        P> 427["CONSUMER",{"name":"c"}]
        P> 428["SUBSCRIBE",{"event":"e","producer":"Q","consumer":"c"}]
        P> 429["HELLO",{"name":"P"}]
        P> 4210["DEBUG",{"x":1}]
        P> 4211["SOMETHING",{"x":1}]
        P<
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_full_queue_refuses_the_message() {
    let settings = json!({"limits": {"enabled": true, "max_queued_per_realm": 1}});
    check_with(
        settings,
        r#"
        C> 42["SUBSCRIBE",{"event":"d","producer":"P","consumer":"c","consumer_id":"c","durable":true}]
        C> 41
        P> 421["PRODUCE",{"event":"d","message":1,"from":"P"}]
        P< 431[{"ok":true,"msg_id":"<a>","routed":1,"queued":1}]
        P> 422["PRODUCE",{"event":"d","message":2,"from":"P"}]
        P< 432[{"ok":false,"code":507,"message":"<words>"}]
        D> 42["SUBSCRIBE",{"event":"d","producer":"P","consumer":"c","consumer_id":"c","durable":true}]
        P< 42["SUBSCRIBE-TO",{"name":"c","id":"$D","socket":"$D","events":["p-d"],"online":true}]
        D< 42["CONSUME-p-d",{"event":"d","message":1,"from":"P"}]
        "#,
    )
    .await;
}
