//! Who gets what: exact, any producer, all events, topics, groups, broadcasts, recipients.

use super::script::check;

#[tokio::test]
async fn register_subscribe_produce() {
    check(
        r#"
        P> 42["PRODUCER",{"name":"Shop"}]
        P<
        C> 42["CONSUMER",{"name":"mailer","id":"mailer","consumer_id":"mailer"}]
        C> 42["SUBSCRIBE",{"event":"Order-Placed","producer":"Shop","consumer":"mailer","scope":"default","consumer_id":"mailer"}]
        C<
        P< 42["SUBSCRIBE-TO-$P",{"name":"mailer","id":"mailer","socket":"$C","events":["shop-order-placed"],"online":true}]
        P> 42["PRODUCE",{"event":"Order-Placed","message":{"n":7},"from":"Shop","to":"bob"}]
        P<
        C< 42["CONSUME-shop-order-placed",{"event":"Order-Placed","message":{"n":7},"from":"Shop","to":"bob"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_topic_of_any_producer() {
    check(
        r#"
        C> 42["CONSUMER",{"name":"c","id":"c"}]
        C> 42["SUBSCRIBE",{"event":"Org/+/cmd","producer":"TYO-MQ-ALL","consumer":"c","mode":"topic","consumer_id":"c"}]
        P> 42["PRODUCE",{"event":"org/M1/cmd","message":"go","from":"fleet"}]
        P> 42["PRODUCE",{"event":"org/M1/x/cmd","message":"no","from":"fleet"}]
        C< 42["CONSUME-tyo-mq-all-org/+/cmd",{"event":"org/M1/cmd","message":"go","from":"fleet"}]
        C<
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_topic_mode_is_spelled_in_lower_case() {
    check(
        r##"
        C> 42["SUBSCRIBE",{"event":"a/#","producer":"TYO-MQ-ALL","consumer":"c","mode":"TOPIC"}]
        P> 42["PRODUCE",{"event":"a/b","message":1,"from":"p"}]
        C<
        P> 42["PRODUCE",{"event":"A/#","message":2,"from":"p"}]
        C< 42["CONSUME-tyo-mq-all-a/#",{"event":"A/#","message":2,"from":"p"}]
        "##,
    )
    .await;
}

#[tokio::test]
async fn overlapping_subscriptions_get_a_copy_each() {
    check(
        r##"
        C> 42["SUBSCRIBE",{"event":"e","producer":"p","consumer":"c"}]
        C> 42["SUBSCRIBE",{"event":"e","producer":"TYO-MQ-ALL","consumer":"c"}]
        C> 42["SUBSCRIBE",{"event":"#","producer":"TYO-MQ-ALL","consumer":"c","mode":"topic"}]
        P> 42["PRODUCE",{"event":"e","message":1,"from":"p"}]
        C< 42["CONSUME-p-e",{"event":"e","message":1,"from":"p"}]
        C< 42["CONSUME-tyo-mq-all-e",{"event":"e","message":1,"from":"p"}]
        C< 42["CONSUME-tyo-mq-all-#",{"event":"e","message":1,"from":"p"}]
        "##,
    )
    .await;
}

#[tokio::test]
async fn subscribing_again_leaves_one_copy() {
    check(
        r#"
        C> 42["SUBSCRIBE",{"event":"e","producer":"p","consumer":"c"}]
        C> 42["SUBSCRIBE",{"event":"E","producer":"P","consumer":"c"}]
        P> 42["PRODUCE",{"event":"e","message":1,"from":"p"}]
        C< 42["CONSUME-p-e",{"event":"e","message":1,"from":"p"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn the_producer_check_is_per_subscription_and_ignores_case() {
    // Key `a-b-c` is producer `a`, event `b-c` as well as producer `a-b`, event `c`.
    check(
        r#"
        C> 42["SUBSCRIBE",{"event":"b-c","producer":"a","consumer":"c"}]
        C> 42["SUBSCRIBE",{"event":"other","producer":"TYO-MQ-ALL","consumer":"c"}]
        P> 42["PRODUCE",{"event":"c","message":"not for c","from":"a-b"}]
        C<
        P> 42["PRODUCE",{"event":"B-C","message":"for c","from":"A"}]
        C< 42["CONSUME-a-b-c",{"event":"B-C","message":"for c","from":"A"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_sender_gets_its_own_message() {
    check(
        r#"
        A> 42["SUBSCRIBE",{"event":"e","producer":"a","consumer":"a"}]
        A> 421["PRODUCE",{"event":"e","message":null,"from":"a"}]
        A< 42["CONSUME-a-e",{"event":"e","message":null,"from":"a"}]
        A< 431[{"ok":true,"msg_id":"<id>","routed":1,"queued":0}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn all_events_of_a_producer_under_both_names() {
    let listen = r#"
        P> 42["PRODUCE",{"event":"One","message":1,"from":"Shop"}]
        P> 42["PRODUCE",{"event":"one","message":2,"from":"other"}]
        C< 42["CONSUME-shop-TM-ALL",{"event":"One","message":1,"from":"Shop"}]
        C< 42["CONSUME-shop-tm-all",{"event":"One","message":1,"from":"Shop"}]
        C<
    "#;
    for subscribe in [
        r#"{"event":"TM-ALL","producer":"Shop","consumer":"c"}"#,
        r#"{"event":"tm-all","producer":"shop","consumer":"c"}"#,
        r#"{"event":"whatever","producer":"Shop","consumer":"c","scope":"all"}"#,
    ] {
        check(&format!("C> 42[\"SUBSCRIBE\",{subscribe}]\n{listen}")).await;
    }
}

#[tokio::test]
async fn all_events_of_any_producer() {
    check(
        r#"
        C> 42["SUBSCRIBE",{"event":"TM-ALL","producer":"TYO-MQ-ALL","consumer":"c"}]
        P> 42["PRODUCE",{"event":"E","message":1,"from":"P"}]
        C< 42["CONSUME-tyo-mq-all-TM-ALL",{"event":"E","message":1,"from":"P"}]
        C< 42["CONSUME-tyo-mq-all-tm-all",{"event":"E","message":1,"from":"P"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_group_takes_turns_behind_its_observers() {
    check(
        r#"
        O> 42["SUBSCRIBE",{"event":"job","producer":"P","consumer":"o"}]
        X> 42["SUBSCRIBE",{"event":"job","producer":"P","consumer":"w1","group":"g"}]
        Y> 42["SUBSCRIBE",{"event":"job","producer":"P","consumer":"w2","group":"g"}]
        P> 42["PRODUCE",{"event":"job","message":1,"from":"P"}]
        P> 42["PRODUCE",{"event":"job","message":2,"from":"P"}]
        P> 42["PRODUCE",{"event":"job","message":3,"from":"P"}]
        P> 42["PRODUCE",{"event":"job","message":4,"from":"P"}]
        X< 42["CONSUME-p-job",{"event":"job","message":1,"from":"P"}]
        X< 42["CONSUME-p-job",{"event":"job","message":3,"from":"P"}]
        Y< 42["CONSUME-p-job",{"event":"job","message":2,"from":"P"}]
        Y< 42["CONSUME-p-job",{"event":"job","message":4,"from":"P"}]
        O< 42["CONSUME-p-job",{"event":"job","message":1,"from":"P"}]
        O< 42["CONSUME-p-job",{"event":"job","message":2,"from":"P"}]
        O< 42["CONSUME-p-job",{"event":"job","message":3,"from":"P"}]
        O< 42["CONSUME-p-job",{"event":"job","message":4,"from":"P"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_group_without_who_left() {
    check(
        r#"
        X> 42["SUBSCRIBE",{"event":"job","producer":"P","consumer":"w1","group":"g"}]
        Y> 42["SUBSCRIBE",{"event":"job","producer":"P","consumer":"w2","group":"g"}]
        X> 41
        P> 42["PRODUCE",{"event":"job","message":1,"from":"P"}]
        P> 42["PRODUCE",{"event":"job","message":2,"from":"P"}]
        Y< 42["CONSUME-p-job",{"event":"job","message":1,"from":"P"}]
        Y< 42["CONSUME-p-job",{"event":"job","message":2,"from":"P"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_realm_broadcast_goes_to_everybody_registered() {
    check(
        r#"
        N> 42["HELLO",{"name":"nobody","type":"consumer"}]
        C> 42["CONSUMER",{"name":"c","id":"c"}]
        P> 42["PRODUCER",{"name":"P","id":"P"}]
        P> 42["PRODUCE",{"event":"News","message":1,"from":"P","method":"broadcast","broadcast":"realm"}]
        C< 42["CONSUME-News",{"event":"News","message":1,"from":"P"}]
        C< 42["CONSUME-p-news",{"event":"News","message":1,"from":"P"}]
        C< 42["CONSUME-tyo-mq-all-news",{"event":"News","message":1,"from":"P"}]
        C< 42["CONSUME-p-TM-ALL",{"event":"News","message":1,"from":"P"}]
        C<
        P< 42["CONSUME-News",{"event":"News","message":1,"from":"P"}]
        P< 42["CONSUME-p-news",{"event":"News","message":1,"from":"P"}]
        P< 42["CONSUME-tyo-mq-all-news",{"event":"News","message":1,"from":"P"}]
        P< 42["CONSUME-p-TM-ALL",{"event":"News","message":1,"from":"P"}]
        N<
        "#,
    )
    .await;
}

#[tokio::test]
async fn broadcasts_in_older_spellings() {
    // `method` alone is a realm broadcast, as is a group broadcast without a group; `broadcast` alone is none.
    let news = r#"
        C< 42["CONSUME-n",{"event":"n","message":1,"from":"p"}]
        C< 42["CONSUME-p-n",{"event":"n","message":1,"from":"p"}]
        C< 42["CONSUME-tyo-mq-all-n",{"event":"n","message":1,"from":"p"}]
        C< 42["CONSUME-p-TM-ALL",{"event":"n","message":1,"from":"p"}]
    "#;
    let produce = |fields: &str| {
        format!(
            "C> 42[\"CONSUMER\",{{\"name\":\"c\"}}]\n\
             P> 42[\"PRODUCE\",{{\"event\":\"n\",\"message\":1,\"from\":\"p\",{fields}}}]\n"
        )
    };
    let once = |script: String| script + "P! leave\n";
    for fields in [
        r#""method":"broadcast""#,
        r#""method":"broadcast","broadcast":"group""#,
    ] {
        check(&once(produce(fields) + news)).await;
    }
    for fields in [r#""broadcast":"realm""#, r#""method":"unicast""#] {
        check(&once(produce(fields) + "C<\n")).await;
    }
}

#[tokio::test]
async fn a_group_broadcast_goes_once_to_each_member_online() {
    check(
        r#"
        Y> 42["SUBSCRIBE",{"event":"k1","producer":"P","consumer":"y","group":"K"}]
        Y> 42["SUBSCRIBE",{"event":"k2","producer":"P","consumer":"y","group":"K"}]
        Z> 42["SUBSCRIBE",{"event":"k1","producer":"P","consumer":"z","group":"K"}]
        O> 42["SUBSCRIBE",{"event":"zz","producer":"P","consumer":"o"}]
        P> 42["PRODUCE",{"event":"zz","message":"m","from":"P","method":"broadcast","broadcast":"group","group":"K"}]
        Y< 42["CONSUME-p-k1",{"event":"zz","message":"m","from":"P"}]
        Z< 42["CONSUME-p-k1",{"event":"zz","message":"m","from":"P"}]
        # Where a subscription of the member matches the event, it comes under that name.
        P> 42["PRODUCE",{"event":"k2","message":"m","from":"P","method":"broadcast","broadcast":"group","group":"K"}]
        Y< 42["CONSUME-p-k2",{"event":"k2","message":"m","from":"P"}]
        Z< 42["CONSUME-p-k1",{"event":"k2","message":"m","from":"P"}]
        O<
        "#,
    )
    .await;
}

#[tokio::test]
async fn recipients_limit_a_message_to_some() {
    check(
        r#"
        X> 42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"x"}]
        Y> 42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"y"}]
        Z> 42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"z","consumer_id":"z","durable":true}]
        Z> 41
        P> 420["PRODUCE",{"event":"e","message":1,"from":"P","recipients":["y","z","nobody"]}]
        P< 430[{"ok":true,"msg_id":"<a>","routed":2,"queued":1}]
        P> 421["PRODUCE",{"event":"e","message":2,"from":"P","recipients":[]}]
        P< 431[{"ok":true,"msg_id":"<b>","routed":0,"queued":0}]
        P> 422["PRODUCE",{"event":"e","message":3,"from":"P","recipients":[1]}]
        P< 432[{"ok":false,"code":400,"message":"<words>"}]
        X<
        Y< 42["CONSUME-p-e",{"event":"e","message":1,"from":"P"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn unsubscribing_in_every_form() {
    let forms = [
        r#""p-e""#,
        r#""CONSUME-p-e""#,
        r#"{"event":"e","producer":"P"}"#,
        r#"{"event":"E","producer":"p","consumer":"c"}"#,
        r#"{"event":"p-e"}"#,
        r#"{"event":"CONSUME-p-e"}"#,
    ];
    for form in forms {
        check(&format!(
            r#"
            C> 42["SUBSCRIBE",{{"event":"e","producer":"P","consumer":"c"}}]
            D> 42["SUBSCRIBE",{{"event":"e","producer":"P","consumer":"d"}}]
            C> 421["UNSUBSCRIBE",{form}]
            C< 431[{{"ok":true,"removed":1}}]
            C> 422["UNSUBSCRIBE",{form}]
            C< 432[{{"ok":true,"removed":0}}]
            P> 42["PRODUCE",{{"event":"e","message":1,"from":"P"}}]
            C<
            D< 42["CONSUME-p-e",{{"event":"e","message":1,"from":"P"}}]
            "#
        ))
        .await;
    }
}

#[tokio::test]
async fn unsubscribing_of_all_events() {
    for form in [
        r#""CONSUME-p-TM-ALL""#,
        r#""p-tm-all""#,
        r#"{"event":"TM-ALL","producer":"P"}"#,
    ] {
        check(&format!(
            r#"
            C> 42["SUBSCRIBE",{{"event":"TM-ALL","producer":"P","consumer":"c"}}]
            C> 421["UNSUBSCRIBE",{form}]
            C< 431[{{"ok":true,"removed":1}}]
            "#
        ))
        .await;
    }
}

#[tokio::test]
async fn unsubscribing_of_others_or_nothing() {
    check(
        r#"
        C> 42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"c"}]
        D> 421["UNSUBSCRIBE","p-e"]
        D< 431[{"ok":true,"removed":0}]
        D> 42["UNSUBSCRIBE","p-e"]
        D> 422["UNSUBSCRIBE",null]
        D< 432[{"ok":false,"code":400,"message":"<words>"}]
        P> 42["PRODUCE",{"event":"e","message":1,"from":"P"}]
        C< 42["CONSUME-p-e",{"event":"e","message":1,"from":"P"}]
        "#,
    )
    .await;
}
