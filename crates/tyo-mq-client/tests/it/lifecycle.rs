//! Connecting, losing the connection, coming back, closing.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tyo_mq_client::{
    CallError, Client, ConnectError, Credentials, Event, Events, Options, Reconnect, RequestError,
    Subscribe,
};

use crate::messages::{next, settle};
use crate::server::{PATIENCE, Running};

async fn event(events: &mut Events) -> Event {
    let event = timeout(PATIENCE, events.next()).await;
    event.expect("an event in time").expect("an open client")
}

fn quick(timeout_ms: u64) -> Options {
    Options {
        connect_timeout: Duration::from_millis(timeout_ms),
        ..Options::default()
    }
}

#[tokio::test]
async fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let refused = Client::connect(&url, Options::default()).await;
    assert!(matches!(refused, Err(ConnectError::Io(_))));
}

#[tokio::test]
async fn whoever_listens_says_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let refused = Client::connect(&url, quick(50)).await;
    assert!(matches!(refused, Err(ConnectError::Timeout(_))));
}

#[tokio::test]
async fn whoever_listens_is_no_broker() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = tokio::spawn(async move {
        let (mut peer, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        let read = peer.read(&mut request).await.unwrap();
        assert!(request[..read].starts_with(b"GET /socket.io/?EIO=4&transport=websocket"));
        peer.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            .await
            .unwrap();
    });
    let refused = Client::connect(&url, Options::default()).await;
    assert!(matches!(refused, Err(ConnectError::WebSocket(_))));
    answer.await.unwrap();
}

#[tokio::test]
async fn an_unknown_namespace_is_refused() {
    let server = Running::start().await;
    let options = Options {
        namespace: "/nowhere".to_owned(),
        ..Options::default()
    };
    let refused = Client::connect(&server.url(), options).await;
    assert!(matches!(refused, Err(ConnectError::Refused(reason)) if reason == "Invalid namespace"));
}

#[tokio::test]
async fn a_call_that_is_not_answered_ends() {
    let server = Running::start().await;
    let client = server.client().await;
    let unanswered = client
        .emit_with_ack("HELLO", &1, Duration::from_millis(20))
        .await;
    assert!(matches!(unanswered, Err(CallError::Timeout(_))));
    settle(&client).await;
}

#[tokio::test]
async fn a_lost_connection_ends_calls_and_streams() {
    let server = Running::start().await;
    let client = server.client().await;
    let consumer = client.consumer("c").await.unwrap();
    let mut subscription = consumer.subscribe(Subscribe::new("p", "e")).await.unwrap();
    let mut events = client.events();
    let waiting = client.emit_with_ack("HELLO", &1, PATIENCE);
    let (lost, ()) = tokio::join!(waiting, async {
        settle(&client).await;
        server.stop().await;
    });
    assert!(matches!(lost, Err(CallError::Lost)));
    assert!(matches!(event(&mut events).await, Event::Disconnected(_)));
    assert!(events.next().await.is_none());
    assert!(subscription.next().await.is_none());
    assert!(matches!(
        client.emit("HELLO", &1).await,
        Err(CallError::Closed)
    ));
    assert!(client.events().next().await.is_none());
    assert!(client.is_closed());
}

#[tokio::test]
async fn a_client_comes_back_and_listens_again() {
    let server = Running::start().await;
    let port = server.addr.port();
    let options = Options {
        reconnect: Some(Reconnect {
            first_delay: Duration::from_millis(10),
            max_delay: Duration::from_millis(50),
            max_attempts: None,
        }),
        ..Options::default()
    };
    let client = server.client_with(options).await;
    client
        .authenticate(&Credentials::token("any"))
        .await
        .unwrap();
    let producer = client.producer("p").await.unwrap();
    let consumer = client.consumer("c").await.unwrap();
    let mut subscription = consumer.subscribe(Subscribe::new("p", "e")).await.unwrap();
    let mut events = client.events();
    server.stop().await;
    assert!(matches!(event(&mut events).await, Event::Disconnected(_)));
    // It waits for the next connection.
    producer.produce("e", &"early").await.unwrap();
    let server = Running::on_port(port).await;
    loop {
        if matches!(event(&mut events).await, Event::Reconnected) {
            break;
        }
    }
    assert_eq!(next(&mut subscription).await.message.get(), "\"early\"");
    producer.produce_confirmed("e", &"late").await.unwrap();
    assert_eq!(next(&mut subscription).await.message.get(), "\"late\"");
    client.close().await;
    server.stop().await;
}

#[tokio::test]
async fn a_client_gives_up() {
    let server = Running::start().await;
    let options = Options {
        reconnect: Some(Reconnect {
            first_delay: Duration::from_millis(1),
            max_attempts: Some(2),
            ..Reconnect::default()
        }),
        ..Options::default()
    };
    let client = server.client_with(options).await;
    let mut events = client.events();
    server.stop().await;
    assert!(matches!(event(&mut events).await, Event::Disconnected(_)));
    let end = timeout(PATIENCE, events.next()).await;
    assert!(end.expect("an end in time").is_none());
}

#[tokio::test]
async fn close_sends_what_was_emitted() {
    let server = Running::start().await;
    let listener = server.client().await;
    let consumer = listener.consumer("c").await.unwrap();
    let mut subscription = consumer.subscribe(Subscribe::new("p", "e")).await.unwrap();
    settle(&listener).await;
    let client = server.client().await;
    let producer = client.producer("p").await.unwrap();
    for n in 0..100u32 {
        producer.produce("e", &n).await.unwrap();
    }
    client.close().await;
    for n in 0..100u32 {
        let delivery = next(&mut subscription).await;
        assert_eq!(delivery.parse::<u32>().unwrap(), n);
    }
}

#[tokio::test]
async fn the_last_handle_closes() {
    let server = Running::start().await;
    let watcher = server.client().await;
    let mut events = watcher.events();
    watcher.producer("p").await.unwrap();
    settle(&watcher).await;
    let client = server.client().await;
    let consumer = client.consumer("c").await.unwrap();
    drop(client);
    let subscription = consumer.subscribe(Subscribe::new("p", "e")).await.unwrap();
    drop(consumer);
    // The broker tells the producer that its consumer came, and that it went.
    let is_presence = |event: &Event, start: &str| matches!(event, Event::Received(event) if event.name.starts_with(start));
    while !is_presence(&event(&mut events).await, "SUBSCRIBE-TO-") {}
    drop(subscription);
    while !is_presence(&event(&mut events).await, "DISCONNECT-") {}
}

#[tokio::test]
async fn authentication_says_what_is_granted() {
    let server = Running::start().await;
    let client = server.client().await;
    let granted = client.authenticate(&Credentials::realm("r", "both")).await;
    // While authentication is off, everybody is admitted to the default realm.
    let granted = granted.unwrap();
    assert_eq!(
        (granted.realm.as_str(), granted.role.as_str()),
        ("default", "both")
    );
}

#[tokio::test]
async fn events_that_nobody_takes_are_counted() {
    let server = Running::start().await;
    let options = Options {
        event_queue: 2,
        ..Options::default()
    };
    let client = server.client_with(options).await;
    let mut events = client.events();
    for _ in 0..8 {
        // Each is answered by an ERROR event.
        client
            .emit("PRODUCER", &serde_json::json!({}))
            .await
            .unwrap();
    }
    settle(&client).await;
    assert!(matches!(event(&mut events).await, Event::Missed(6)));
    assert!(matches!(event(&mut events).await, Event::Received(event) if event.name == "ERROR"));
}

#[tokio::test]
async fn a_refused_message_says_why() {
    let server = Running::start().await;
    let client = server.client().await;
    let reply = client
        .emit_with_ack("PRODUCE", &serde_json::json!({"message": 1}), PATIENCE)
        .await
        .unwrap();
    let refused = reply.accepted::<serde::de::IgnoredAny>();
    assert!(matches!(refused, Err(RequestError::Refused(refusal)) if refusal.code == 400));
}
