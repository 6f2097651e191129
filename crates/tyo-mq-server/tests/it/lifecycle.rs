//! Connections and servers: namespaces, the older revision, time limits, the end.

use serde_json::json;

use super::client::{Came, Client};
use super::script::{check, check_with, play};
use super::server::Running;

#[tokio::test]
async fn leaving_and_joining_again_on_one_connection() {
    check(
        r#"
        A> 42["CONSUMER",{"name":"a"}]
        A> 41
        A> 40
        A< 40{"sid":"<fresh>"}
        A> 42["QUIT","<fresh>"]
        A< 41
        A> 40{"token":"ignored"}
        A< 40{"sid":"<newest>"}
        A> 421["PING",null]
        A< 431["{\"pong\":\"PONG\",\"timestamp\":\"<time>\"}"]
        "#,
    )
    .await;
}

#[tokio::test]
async fn a_namespace_that_does_not_exist() {
    check(
        r#"
        A> 40/nowhere,
        A< 44/nowhere,{"message":"Invalid namespace"}
        A> 421["PING",null]
        A< 431["{\"pong\":\"PONG\",\"timestamp\":\"<time>\"}"]
        B! engine
        B> 40/nowhere,{"a":1}
        B< 44/nowhere,{"message":"Invalid namespace"}
        B> 40
        B< 40{"sid":"<b>"}
        "#,
    )
    .await;
}

#[tokio::test]
async fn the_older_revision() {
    check(
        r#"
        A! eio3
        A< 40
        A> 42["CONSUMER",{"name":"a"}]
        A> 42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"a"}]
        A> 421["PRODUCE",{"event":"e","message":1,"from":"P"}]
        A< 42["CONSUME-p-e",{"event":"e","message":1,"from":"P"}]
        A< 431[{"ok":true,"msg_id":"<m>","routed":1,"queued":0}]
        # Its socket has the engine's id.
        P> 42["PRODUCER",{"name":"P","id":"P"}]
        A< 42["CONNECT-$A",{"event":"CONNECT","socket":"$P","producer":"P"}]
        P< 42["SUBSCRIBE-TO-P",{"name":"a","id":"$A","socket":"$A","events":["p-e"],"online":true}]
        A> 2
        A< 3
        A> 42["QUIT","$A"]
        A< 41
        P< 42["DISCONNECT-P",{"event":"DISCONNECT","socket":"$A","consumer":"a"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn who_joins_nothing_is_closed() {
    check_with(
        json!({"connectTimeout": 50}),
        r#"
        A! engine
        A> 40/nowhere,
        A< 44/nowhere,{"message":"Invalid namespace"}
        B> 42["CONSUMER",{"name":"b"}]
        A< closed
        B<
        "#,
    )
    .await;
}

#[tokio::test]
async fn who_does_not_answer_pings_is_closed_and_loses_its_names() {
    let server = Running::with(json!({"pingInterval": 50, "pingTimeout": 50})).await;
    // Nobody reads for this client, so that nobody answers.
    let mut silent = Client::connect(server.addr).await;
    silent
        .emit(
            "SUBSCRIBE",
            r#"{"event":"e","producer":"P","consumer":"s","id":"s"}"#,
        )
        .await;
    silent.fence().await;
    let mut producer = Client::connect(server.addr).await;
    producer.emit("PRODUCER", r#"{"name":"P","id":"P"}"#).await;
    assert!(producer.event("SUBSCRIBE-TO-P").await.contains(&silent.id));
    assert!(producer.event("DISCONNECT-P").await.contains(&silent.id));
    while silent.next().await != Came::Closed(None) {}
}

#[tokio::test]
async fn a_cut_connection_is_told_to_its_peers() {
    check(
        r#"
        P> 42["PRODUCER",{"name":"P","id":"P"}]
        C> 42["SUBSCRIBE",{"event":"e","producer":"P","consumer":"c","id":"c"}]
        P< 42["SUBSCRIBE-TO-P",{"name":"c","id":"c","socket":"$C","events":["p-e"],"online":true}]
        C! leave
        P< 42["DISCONNECT-P",{"event":"DISCONNECT","socket":"$C","consumer":"c"}]
        "#,
    )
    .await;
}

#[tokio::test]
async fn servers_side_by_side_know_nothing_of_each_other() {
    let (one, two) = (Running::start().await, Running::start().await);
    let mut here = Client::connect(one.addr).await;
    let mut there = Client::connect(two.addr).await;
    for client in [&mut here, &mut there] {
        client.emit("CONSUMER", r#"{"name":"c"}"#).await;
        client
            .emit(
                "SUBSCRIBE",
                r#"{"event":"e","producer":"P","consumer":"c"}"#,
            )
            .await;
        client.fence().await;
    }
    let produce = r#"
        P> 421["PRODUCE",{"event":"e","message":1,"from":"P"}]
        P< 431[{"ok":true,"msg_id":"<m>","routed":1,"queued":0}]
    "#;
    play(&one, produce).await;
    assert!(here.event("CONSUME-p-e").await.contains("\"message\":1"));
    assert_eq!(there.rest().await, Vec::<Came>::new());
    one.stop().await.unwrap();
    play(&two, produce).await;
    assert!(there.event("CONSUME-p-e").await.contains("\"message\":1"));
}

#[tokio::test]
async fn a_server_that_stops_says_goodbye_and_ends() {
    let server = Running::start().await;
    let addr = server.addr;
    let mut client = Client::connect(addr).await;
    client
        .emit(
            "SUBSCRIBE",
            r#"{"event":"e","producer":"P","consumer":"c"}"#,
        )
        .await;
    client
        .emit("PRODUCE", r#"{"event":"e","message":1,"from":"P"}"#)
        .await;
    client.fence().await;
    let stopped = server.stop();
    // What was accepted before is delivered first.
    assert_eq!(
        client.event("CONSUME-p-e").await,
        r#"{"event":"e","message":1,"from":"P"}"#
    );
    assert_eq!(client.next().await, Came::Closed(Some(1001)));
    drop(client);
    stopped.await.unwrap();
    assert!(tokio::net::TcpStream::connect(addr).await.is_err());
}

#[tokio::test]
async fn a_server_that_stops_answers_waiting_polls() {
    let server = Running::start().await;
    let addr = server.addr;
    let open = super::http::get(addr, "/socket.io/?EIO=4&transport=polling").await;
    let fields: serde_json::Value = serde_json::from_str(&open.body[1..]).unwrap();
    let path = format!(
        "/socket.io/?EIO=4&transport=polling&sid={}",
        fields["sid"].as_str().unwrap()
    );
    super::http::post(addr, &path, "40").await;
    assert!(super::http::get(addr, &path).await.body.starts_with("40"));
    let poll = tokio::spawn(async move { super::http::get(addr, &path).await });
    let stopped = server.stop();
    stopped.await.unwrap();
    let answer = poll.await;
    // Unless the poll came too late to be answered.
    if let Ok(answer) = answer {
        assert!([200, 400].contains(&answer.status), "{answer:?}");
    }
}

#[tokio::test]
async fn a_port_that_is_taken() {
    let server = Running::start().await;
    let settings = json!({"host": "127.0.0.1", "port": server.addr.port()});
    let loaded = tyo_mq_server::parse_settings(&settings.to_string()).unwrap();
    let Err(error) = tyo_mq_server::Server::start(&loaded.settings).await else {
        panic!("two servers listen on one port");
    };
    assert!(
        error
            .to_string()
            .starts_with(&format!("cannot listen on {}", server.addr))
    );
}
