//! Cases of queues: order, pages, removal, attempts, content.

use tyo_mq_core::store::{Position, Store, StoreOp, StoreReply};

use super::{LATER_MS, Subject, ids, queue, remove, stored, unplaced, with_body};

pub(super) async fn order_and_positions<S: Store>(store: &Subject<S>) {
    let (own, other) = (queue("r", "k", "c"), queue("r", "k", "d"));
    let names: Vec<String> = (0..300)
        .map(|number| format!("m-{}", number * 7919 % 1000))
        .collect();
    let mut last = Position(0);
    let ops = names
        .iter()
        .map(|id| StoreOp::Enqueue(stored(&own, id)))
        .collect();
    for reply in store.all(ops).await {
        let StoreReply::Enqueued(position) = reply else {
            panic!("an enqueue was answered {reply:?}");
        };
        assert!(position > last, "positions grow");
        last = position;
    }
    store.enqueue(&stored(&other, "elsewhere")).await;
    assert!(store.enqueue(&stored(&own, "last")).await > last);
    let kept = store.messages(&own).await;
    let expected: Vec<&str> = names.iter().map(String::as_str).chain(["last"]).collect();
    assert_eq!(ids(&kept), expected, "first in, first out");
    assert!(kept.is_sorted_by(|a, b| a.position < b.position));
    assert_eq!(store.ids(&other).await, ["elsewhere"]);
    assert!(store.ids(&queue("r", "k", "nobody")).await.is_empty());
}

pub(super) async fn pages<S: Store>(store: &Subject<S>) {
    let queue = queue("r", "k", "c");
    for id in ["a", "b", "c", "d", "e"] {
        store.enqueue(&stored(&queue, id)).await;
    }
    let size = stored(&queue, "a").message.size();
    let page = async |after, limit, max_bytes| {
        let (messages, exhausted) = store.page(&queue, after, limit, max_bytes).await;
        (
            ids(&messages).concat(),
            exhausted,
            messages.last().map_or(after, |it| it.position),
        )
    };
    let (first, exhausted, place) = page(Position(0), 2, usize::MAX).await;
    assert_eq!((first.as_str(), exhausted), ("ab", false));
    let (second, exhausted, place) = page(place, 2, usize::MAX).await;
    assert_eq!((second.as_str(), exhausted), ("cd", false));
    let (third, exhausted, end) = page(place, 2, usize::MAX).await;
    assert_eq!((third.as_str(), exhausted), ("e", true));
    assert_eq!(page(end, 2, usize::MAX).await, (String::new(), true, end));
    let (exact, exhausted, _) = page(Position(0), 5, usize::MAX).await;
    assert_eq!((exact.as_str(), exhausted), ("abcde", true));
    let (by_size, exhausted, _) = page(Position(0), 5, size + 1).await;
    assert_eq!(
        (by_size.as_str(), exhausted),
        ("ab", false),
        "the page ends behind the message that passes the sum"
    );
    let (one, _, _) = page(Position(0), 5, 1).await;
    assert_eq!(one, "a", "a large message passes by itself");
}

pub(super) async fn positions_are_not_used_again<S: Store>(store: &Subject<S>) {
    let queue = queue("r", "k", "c");
    let first = stored(&queue, "a");
    let place = store.enqueue(&first).await;
    store.one(remove(&first)).await;
    assert!(store.enqueue(&stored(&queue, "b")).await > place);
    assert_eq!(
        ids(&store.page(&queue, place, 10, usize::MAX).await.0),
        ["b"]
    );
}

pub(super) async fn removal<S: Store>(store: &Subject<S>) {
    let queue = queue("r", "k", "c");
    for id in ["a", "b", "c"] {
        store.enqueue(&stored(&queue, id)).await;
    }
    let gone = remove(&stored(&queue, "b"));
    for _ in 0..2 {
        assert_eq!(
            store.one(gone.clone()).await,
            StoreReply::Done,
            "also the second time"
        );
    }
    store.one(remove(&stored(&queue, "unknown"))).await;
    assert_eq!(store.ids(&queue).await, ["a", "c"]);
    store
        .all(vec![
            remove(&stored(&queue, "c")),
            remove(&stored(&queue, "a")),
        ])
        .await;
    assert!(store.ids(&queue).await.is_empty());
    assert!(
        store.0.load().await.expect("loads").queues.is_empty(),
        "an empty queue is none"
    );
}

pub(super) async fn a_batch_is_done_in_order<S: Store>(store: &Subject<S>) {
    let queue = queue("r", "k", "c");
    let (a, b) = (stored(&queue, "a"), stored(&queue, "b"));
    let fetch = StoreOp::Fetch {
        queue: queue.clone(),
        after: Position(0),
        limit: 10,
        max_bytes: usize::MAX,
    };
    let ops = vec![
        fetch.clone(),
        StoreOp::Enqueue(a.clone()),
        StoreOp::Enqueue(b.clone()),
        fetch.clone(),
        remove(&a),
        fetch.clone(),
        StoreOp::Enqueue(a.clone()),
        remove(&b),
        fetch.clone(),
        StoreOp::Enqueue(b.clone()),
        StoreOp::SetAttempts {
            queue: queue.clone(),
            id: b.id.clone(),
            attempts: 2,
        },
        remove(&b),
        fetch,
    ];
    let mut pages = Vec::new();
    for reply in store.all(ops).await {
        if let StoreReply::Page { messages, .. } = reply {
            pages.push(ids(&messages).concat());
        }
    }
    assert_eq!(pages, ["", "ab", "b", "a", "a"]);
}

pub(super) async fn an_id_is_kept_once<S: Store>(store: &Subject<S>) {
    let queue = queue("r", "k", "c");
    for id in ["a", "b", "a"] {
        store.enqueue(&stored(&queue, id)).await;
    }
    assert_eq!(store.ids(&queue).await, ["b", "a"], "the later one counts");
    let twice = vec![
        StoreOp::Enqueue(stored(&queue, "b")),
        remove(&stored(&queue, "b")),
    ];
    store.all(twice).await;
    assert_eq!(
        store.ids(&queue).await,
        ["a"],
        "the earlier one goes with it"
    );
}

pub(super) async fn attempts<S: Store>(store: &Subject<S>) {
    let queue = queue("r", "k", "c");
    let mut first = stored(&queue, "a");
    first.attempts = 4;
    store.enqueue(&first).await;
    store.enqueue(&stored(&queue, "b")).await;
    let set = |id: &str, attempts| StoreOp::SetAttempts {
        queue: queue.clone(),
        id: id.into(),
        attempts,
    };
    store
        .all(vec![set("b", 1), set("b", 7), set("unknown", 3)])
        .await;
    let counted: Vec<u32> = store
        .messages(&queue)
        .await
        .iter()
        .map(|it| it.attempts)
        .collect();
    assert_eq!(counted, [4, 7]);
    assert_eq!(
        store.ids(&queue).await,
        ["a", "b"],
        "counting moves nothing"
    );
}

pub(super) async fn content_is_kept_exactly<S: Store>(store: &Subject<S>) {
    let queue = queue("r", "k", "c");
    for (number, (body, attachments)) in odd_contents().into_iter().enumerate() {
        let mut sent = with_body(&queue, &format!("m{number}"), &body, &attachments);
        sent.expires_at_ms = (number % 2 == 0).then_some(LATER_MS + number as u64);
        store.enqueue(&sent).await;
        let kept = store
            .messages(&queue)
            .await
            .pop()
            .expect("the message is there");
        assert_eq!(unplaced(kept), sent);
    }
}

/// Bodies and attachments that must come back byte for byte.
pub(super) fn odd_contents() -> Vec<(Vec<u8>, Vec<&'static [u8]>)> {
    let texts = [
        r#"{"event":"E","message":[1e400,-0,0.10,1E+2,12345678901234567890,1e21],"from":"P""#,
        r#"{"event":"E","message":"\ud800 \udfff \u0000 \u2028 ü 😀 \/","from":"P","enc":{"b":1,"a":2}"#,
        r#"{"event":"E","message":{ "10":3, "b":1, "a":2, "a":3 },"from":"P""#,
        r#"{"event":"E","from":"P""#,
        r#"{"event":"E","message":{"type":"Buffer","data":[1,2]},"from":"P""#,
        r#"{"event":"__proto__","message":{"__proto__":null,"constructor":1},"from":"P""#,
        "{",
        "",
        "no JSON",
        r#"{"whole":true}"#,
        "[1,2]",
        "'; DROP TABLE messages; --",
    ];
    let mut contents: Vec<(Vec<u8>, Vec<&'static [u8]>)> = texts
        .into_iter()
        .map(|text| (text.as_bytes().to_vec(), Vec::new()))
        .collect();
    let placed = r#"{"event":"E","message":[{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}],"from":"P""#;
    contents.push((placed.as_bytes().to_vec(), vec![b"\x00\x01\xfe\xff", b""]));
    contents.push((b"own".to_vec(), vec![b"", b"\xff"]));
    contents.push(((0..=255).collect(), Vec::new()));
    contents.push((b"\xed\xa0\x80\0".to_vec(), vec![b"x"]));
    contents
}

pub(super) async fn large_messages<S: Store>(store: &Subject<S>) {
    let queue = queue("r", "k", "c");
    let body = format!(
        "{{\"event\":\"E\",\"message\":\"{}\",\"from\":\"P\"",
        "ü".repeat(512 * 1024)
    );
    let bytes: Vec<u8> = (0..1024 * 1024u32)
        .map(|number| (number % 251) as u8)
        .collect();
    let placed = br#"{"event":"E","message":{"_placeholder":true,"num":0},"from":"P""#;
    let sent = [
        with_body(&queue, "text", body.as_bytes(), &[]),
        with_body(&queue, "bytes", placed, &[&bytes]),
    ];
    store
        .all(sent.iter().cloned().map(StoreOp::Enqueue).collect())
        .await;
    let kept = store.messages(&queue).await;
    assert!(
        kept.into_iter().map(unplaced).eq(sent),
        "a megabyte comes back as it was"
    );
    let (first, exhausted) = store.page(&queue, Position(0), 10, 1024).await;
    assert_eq!((ids(&first), exhausted), (vec!["text".to_owned()], false));
}

pub(super) async fn names<S: Store>(store: &Subject<S>) {
    let names = [
        "",
        "a",
        "A",
        "a:b",
        "a/+/#",
        "*",
        "__proto__",
        "ünï 😀",
        "\u{0}\n\"'\\",
        "%_",
        "{tag}",
    ];
    for (realm, name) in names.iter().enumerate() {
        for queue in [
            queue(name, "k", "c"),
            queue("r", name, "c"),
            queue("r", "k2", name),
        ] {
            let id = format!("{realm}-{}-{}-{}", queue.realm, queue.key, queue.consumer);
            let mut sent = stored(&queue, &id);
            let message = std::sync::Arc::make_mut(&mut sent.message);
            message.event = (*name).into();
            message.producer = (*name).into();
            store.enqueue(&sent).await;
            let kept: Vec<_> = store
                .messages(&queue)
                .await
                .into_iter()
                .map(unplaced)
                .collect();
            assert_eq!(kept, [sent], "{queue:?}");
        }
    }
    let queues = store.0.load().await.expect("loads").queues;
    assert_eq!(queues.len(), 3 * names.len());
    assert!(queues.iter().all(|(_, count)| *count == 1));
}
