//! Names on sockets: who is told of whom, who may take a name, and how a socket leaves.

use super::script::check;

#[tokio::test]
async fn a_producer_that_comes_later_and_a_consumer_that_comes_back() {
    check(
        r#"
        C> 42["CONSUMER",{"name":"c","id":"c"}]
        C> 42["SUBSCRIBE",{"event":"e1","producer":"P","consumer":"c"}]
        P> 42["PRODUCER",{"name":"P","id":"u-1"}]
        P< 42["SUBSCRIBE-TO-u-1",{"name":"c","id":"c","socket":"$C","events":["p-e1"],"online":true}]
        C< 42["CONNECT-c",{"event":"CONNECT","socket":"$P","producer":"P"}]
        C! close
        P< 42["DISCONNECT-u-1",{"event":"DISCONNECT","socket":"$C","consumer":"c"}]
        C> 42["CONSUMER",{"name":"c","id":"c"}]
        P< 42["CONNECT-u-1",{"event":"CONNECT","socket":"$C","id":"c","consumer":"c"}]
        P! close
        C< 42["DISCONNECT-c",{"event":"DISCONNECT","socket":"$P","producer":"P"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_producer_learns_of_subscribers_that_are_away() {
    check(
        r#"
        C> 42["CONSUMER",{"name":"c","id":"c"}]
        C> 42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"c"}]
        C> 41
        P> 42["PRODUCER",{"name":"P","id":"P"}]
        P< 42["SUBSCRIBE-TO-P",{"name":"c","id":"c","socket":null,"events":["p-e"],"online":false}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn ids_default_to_the_socket() {
    check(
        r#"
        P> 42["PRODUCER",{"name":"P"}]
        C> 42["CONSUMER",{"name":"c"}]
        C> 42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"c"}]
        P< 42["SUBSCRIBE-TO-$P",{"name":"c","id":"$C","socket":"$C","events":["p-e"],"online":true}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_name_that_another_socket_holds() {
    check(
        r#"
        C> 42["CONSUMER",{"name":"c"}]
        C> 42["CONSUMER",{"name":"c"}]
        X> 42["CONSUMER",{"name":"c"}]
        X< 42["ERROR",{"message":"<before>duplicate<after>","code":-3}]
        X< 41
        C> 42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"c"}]
        P> 42["PRODUCE",{"event":"e","message":1,"from":"P"}]
        C< 42["CONSUME-p-e",{"event":"e","message":1,"from":"P"}]
        # The newcomer's connection goes on, under another name.
        X> 40
        X< 40{"sid":"<fresh>"}
        X> 42["CONSUMER",{"name":"x"}]
        X> 421["PING",null]
        X< 431["{\"pong\":\"PONG\",\"timestamp\":\"<time>\"}"]
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_refused_registration_answers_its_ack() {
    check(
        r#"
        C> 421["CONSUMER",{"name":"c"}]
        C<
        X> 425["CONSUMER",{"name":"c"}]
        X< 42["ERROR",{"message":"<words>","code":-3}]
        X< 435[{"ok":false,"code":403,"message":"<words>"}]
        X< 41
        "#,
    )
    .await;
    let long = "x".repeat(2_000);
    check(&format!(
        r#"
        A> 421["PRODUCER",{{"name":"{long}"}}]
        A< 42["ERROR",{{"message":"<w1>","code":-1}}]
        A< 431[{{"ok":false,"code":429,"message":"<w1>"}}]
        A> 422["SUBSCRIBE",{{"event":"e","consumer":"{long}"}}]
        A< 42["ERROR","<w2>"]
        A< 432[{{"ok":false,"code":429,"message":"<w2>"}}]
        A> 423["PRODUCE",{{"event":"e","from":"{long}"}}]
        A< 433[{{"ok":false,"code":400,"message":"<w3>"}}]
        "#
    ))
    .await;
}

#[tokio::test]
async fn a_name_that_a_dead_socket_held() {
    check(
        r#"
        C> 42["CONSUMER",{"name":"c"}]
        C> 41
        X> 42["CONSUMER",{"name":"c"}]
        X<
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_second_producer_of_a_name_takes_over() {
    check(
        r#"
        P> 42["PRODUCER",{"name":"P"}]
        C> 42["CONSUMER",{"name":"c","id":"c"}]
        C> 42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"c"}]
        P< 42["SUBSCRIBE-TO-$P",{"name":"c","id":"c","socket":"$C","events":["p-e"],"online":true}]
        Q> 42["PRODUCER",{"name":"P"}]
        P< 42["ERROR","<words>"]
        Q< 42["SUBSCRIBE-TO-$Q",{"name":"c","id":"c","socket":"$C","events":["p-e"],"online":true}]
        C< 42["CONNECT-c",{"event":"CONNECT","socket":"$Q","producer":"P"}]
        # Who lost the name leaves without a notice.
        P> 41
        C<
        Q> 41
        C< 42["DISCONNECT-c",{"event":"DISCONNECT","socket":"$Q","producer":"P"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn every_name_of_a_socket_ends_with_it() {
    check(
        r#"
        C> 42["SUBSCRIBE",{"event":"e","producer":"P1","consumer":"c","id":"c"}]
        C> 42["SUBSCRIBE",{"event":"e","producer":"P2","consumer":"c"}]
        P> 42["PRODUCER",{"name":"P1","id":"1"}]
        P> 42["PRODUCER",{"name":"P2","id":"2"}]
        P< 42["SUBSCRIBE-TO-1",{"name":"c","id":"c","socket":"$C","events":["p1-e"],"online":true}]
        P< 42["SUBSCRIBE-TO-2",{"name":"c","id":"c","socket":"$C","events":["p2-e"],"online":true}]
        C< 42["CONNECT-c",{"event":"CONNECT","socket":"$P","producer":"P1"}]
        C< 42["CONNECT-c",{"event":"CONNECT","socket":"$P","producer":"P2"}]
        P> 41
        C< 42["DISCONNECT-c",{"event":"DISCONNECT","socket":"$P","producer":"P1"}]
        C< 42["DISCONNECT-c",{"event":"DISCONNECT","socket":"$P","producer":"P2"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn anonymous_names_are_welcome_in_the_default_realm() {
    check(
        r#"
        A> 42["CONSUMER",{"name":"ANONYMOUS-1"}]
        B> 42["CONSUMER",{"name":"ANONYMOUS-2"}]
        B> 42["PRODUCER",{"name":""}]
        A<
        B<
        "#,
    )
    .await;
}

#[tokio::test]
async fn quitting_in_both_forms() {
    check(
        r#"
        A> 42["QUIT","$A"]
        A< 41
        B> 42["QUIT",{"id":"$B"}]
        B< 41
        # Of somebody else, or of nobody: nothing.
        C> 42["QUIT","$A"]
        C> 42["QUIT",{"id":"$A"}]
        C> 42["QUIT"]
        C> 42["QUIT",null]
        C<
        # Whoever has left may not speak before joining again.
        B> 42["PING",null]
        B< closed
        "#,
    )
    .await;
}

#[tokio::test]
async fn authentication_when_nobody_asks_for_it() {
    check(
        r#"
        A> 42["AUTHENTICATION",{"token":"t"}]
        A< 42["AUTH_OK",{"realm":"default","role":"both"}]
        A> 42["AUTHENTICATION","{\"token\":\"t\"}"]
        A< 42["AUTH_OK",{"realm":"default","role":"both"}]
        "#,
    )
    .await;
}
