//! A delivered message.

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// A message of a subscription.
#[derive(Debug)]
#[non_exhaustive]
pub struct Delivery {
    /// The event as it was produced.
    pub event: String,
    /// The payload, byte for byte; `null` when there is none.
    pub message: Box<RawValue>,
    /// The producer.
    pub from: String,
    /// What an acknowledgement names; none where none is wanted.
    pub msg_id: Option<String>,
    /// Which attempt this is, from 1 on; 0 where no acknowledgement is wanted.
    pub attempt: u32,
    /// What the payload's placeholders stand for.
    pub attachments: Vec<Bytes>,
    /// Everything, as it came.
    pub raw: Box<RawValue>,
}

#[derive(Deserialize)]
struct Fields<'a> {
    event: String,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(default)]
    from: String,
    #[serde(default, rename = "msgId")]
    msg_id: Option<String>,
    #[serde(default)]
    delivery_attempt: u32,
}

impl Delivery {
    /// Reads a delivery; none when it is no envelope.
    pub(crate) fn read(raw: Box<RawValue>, attachments: Vec<Bytes>) -> Option<Self> {
        let fields: Fields<'_> = serde_json::from_str(raw.get()).ok()?;
        let message = fields.message.map_or("null", RawValue::get).to_owned();
        Some(Self {
            event: fields.event,
            message: RawValue::from_string(message).ok()?,
            from: fields.from,
            msg_id: fields.msg_id,
            attempt: fields.delivery_attempt,
            attachments,
            raw,
        })
    }

    /// Reads the payload.
    ///
    /// # Errors
    /// When it has another form.
    pub fn parse<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.message.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Option<Delivery> {
        Delivery::read(RawValue::from_string(json.to_owned()).unwrap(), Vec::new())
    }

    #[test]
    fn envelopes() {
        let delivery =
            read(r#"{"event":"e","message":{"n": 1e21},"from":"p","msgId":"m","msg_id":"m","delivery_attempt":2}"#)
                .unwrap();
        assert_eq!(delivery.message.get(), r#"{"n": 1e21}"#);
        assert_eq!(delivery.msg_id.as_deref(), Some("m"));
        assert_eq!((delivery.from.as_str(), delivery.attempt), ("p", 2));
        let bare = read(r#"{"event":"e"}"#).unwrap();
        assert_eq!((bare.message.get(), bare.msg_id), ("null", None));
    }

    #[test]
    fn what_is_no_envelope() {
        for json in [
            "null",
            "[]",
            "{}",
            r#"{"event":1}"#,
            r#"{"event":"e","msgId":1}"#,
        ] {
            assert!(read(json).is_none(), "{json}");
        }
    }
}
