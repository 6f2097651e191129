//! A realm gets another name: one script moves its keys, so that nobody sees half of it.

use fred::types::Value;
use tyo_mq_core::store::StoreError;
use tyo_mq_storage::write_json_string;

use crate::RedisStore;
use crate::keys::encode;
use crate::script::RENAME;

pub(crate) async fn rename_realm(
    store: &RedisStore,
    from: &str,
    to: &str,
) -> Result<(), StoreError> {
    let (old, new) = (encode(from), encode(to));
    let mut queues = Vec::new();
    for kind in ["index", "attempts"] {
        let pattern = store.keys.pattern(kind, &format!("{old}:*"));
        for key in store.connection.scan(&pattern).await? {
            let rest = store.keys.rest(kind, &key);
            let queue = rest.and_then(|rest| rest.split_once(':'));
            queues.extend(queue.map(|(_, queue)| queue.to_owned()));
        }
    }
    queues.sort_unstable();
    queues.dedup();
    let head = [
        store.keys.prefix().to_owned(),
        old,
        new,
        json(from),
        json(to),
    ];
    let args = head.into_iter().chain(queues).map(Value::from).collect();
    store.connection.run(&RENAME, args, true).await.map(|_| ())
}

fn json(text: &str) -> String {
    let mut out = Vec::new();
    write_json_string(&mut out, text);
    String::from_utf8_lossy(&out).into_owned()
}
