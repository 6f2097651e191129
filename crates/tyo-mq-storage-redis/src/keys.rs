//! Names of keys, as the reference broker makes them, and ours beside. Parts are base64url without padding.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tyo_mq_core::store::QueueKey;

/// Makes keys behind a prefix.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The last score that was given; also the key that routes scripts.
    pub(crate) fn clock(&self) -> String {
        format!("{}:clock", self.prefix)
    }

    /// Messages by realm.
    pub(crate) fn counts(&self) -> String {
        format!("{}:counts", self.prefix)
    }

    pub(crate) fn letter(&self, id: &str) -> String {
        format!("{}:dlq:message:{id}", self.prefix)
    }

    /// Keys of one kind, for SCAN; `rest` is not escaped.
    pub(crate) fn pattern(&self, kind: &str, rest: &str) -> String {
        let mut pattern = String::with_capacity(self.prefix.len() + 32);
        for character in self.prefix.chars() {
            if matches!(character, '*' | '?' | '[' | ']' | '\\' | '^') {
                pattern.push('\\');
            }
            pattern.push(character);
        }
        format!("{pattern}:{kind}:{rest}")
    }

    /// What stands behind the kind in a key that was found.
    pub(crate) fn rest<'a>(&self, kind: &str, key: &'a str) -> Option<&'a str> {
        key.strip_prefix(&self.prefix)?
            .strip_prefix(':')?
            .strip_prefix(kind)?
            .strip_prefix(':')
    }

    /// A key of one kind.
    pub(crate) fn key(&self, kind: &str, rest: &str) -> String {
        format!("{}:{kind}:{rest}", self.prefix)
    }
}

/// A part of a key.
pub(crate) fn encode(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

pub(crate) fn decode(part: &str) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// Subscription key and consumer, with a colon between.
pub(crate) fn encode_queue(queue: &QueueKey) -> String {
    format!("{}:{}", encode(&queue.key), encode(&queue.consumer))
}

/// The inverse of [`encode_queue`].
pub(crate) fn decode_queue(realm: &str, queue: &str) -> Option<QueueKey> {
    let (key, consumer) = queue.split_once(':')?;
    Some(QueueKey {
        realm: realm.into(),
        key: decode(key)?.into(),
        consumer: decode(consumer)?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_references() {
        let queue = QueueKey {
            realm: "default".into(),
            key: "shop-order-placed".into(),
            consumer: "mailer".into(),
        };
        assert_eq!(encode(&queue.realm), "ZGVmYXVsdA");
        assert_eq!(encode_queue(&queue), "c2hvcC1vcmRlci1wbGFjZWQ:bWFpbGVy");
        assert_eq!(decode_queue("default", &encode_queue(&queue)), Some(queue));
        assert_eq!(decode_queue("r", "no colon"), None);
        assert_eq!(decode_queue("r", "!:"), None);
    }

    #[test]
    fn patterns_mean_the_prefix_as_it_is() {
        let keys = Keys::new("a*[b]");
        assert_eq!(keys.pattern("index", "*"), "a\\*\\[b\\]:index:*");
        assert_eq!(keys.rest("index", "a*[b]:index:x:y"), Some("x:y"));
        assert_eq!(keys.rest("index", "axb:index:x"), None);
    }
}
