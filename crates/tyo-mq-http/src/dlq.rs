//! Dead letters as JSON, a page at a time.

use http::StatusCode;
use serde_json::value::RawValue;
use tyo_mq_codec::socket::placeholders_to_buffers;
use tyo_mq_core::Message;
use tyo_mq_core::runtime::Broker;
use tyo_mq_core::store::{DeadLetter, DeadLetterPage, StoreError};
use tyo_mq_protocol::{write_iso8601, write_json_string};

use crate::Refused;
use crate::answer::{Answer, json};

/// Letters of a page if the query names no `limit`, and the most it may name.
const MAX_PAGE: usize = 1000;

/// Answers `{realm, entries}`, with `next` when there are more: give it as `after`.
pub(crate) async fn list(broker: &Broker, realm: &str, query: &str) -> Result<Answer, Refused> {
    let number = |name: &str| {
        query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, text)| text)
    };
    let after = number("after").map(str::parse).transpose();
    let limit = number("limit").map(str::parse).transpose();
    let (Ok(after), Ok(limit)) = (after, limit) else {
        return Err(Refused::new(400, "after and limit must be numbers"));
    };
    let limit = limit.unwrap_or(MAX_PAGE).clamp(1, MAX_PAGE);
    match broker.dead_letters(Some(realm), after, limit).await {
        Ok(page) => Ok(json(StatusCode::OK, page_text(realm, &page))),
        Err(StoreError::Unsupported) => Err(Refused::new(501, "this store keeps no dead letters")),
        Err(failure) => Err(Refused::new(500, failure.to_string())),
    }
}

/// All dead letters of a realm, or of all realms, as a JSON array; at most the first 10 000.
///
/// # Errors
/// What the store says.
pub async fn dead_letters(broker: &Broker, realm: Option<&str>) -> Result<String, StoreError> {
    let page = broker.dead_letters(realm, None, MAX_LISTED).await?;
    let mut out = vec![b'['];
    write_letters(&mut out, &page);
    out.push(b']');
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Letters that a management command is answered with.
const MAX_LISTED: usize = 10_000;

pub(crate) fn page_text(realm: &str, page: &DeadLetterPage) -> String {
    let mut out = b"{\"realm\":".to_vec();
    write_json_string(&mut out, realm);
    out.extend_from_slice(b",\"entries\":[");
    write_letters(&mut out, page);
    out.push(b']');
    if let Some(next) = page.next {
        out.extend_from_slice(format!(",\"next\":{next}").as_bytes());
    }
    out.push(b'}');
    String::from_utf8_lossy(&out).into_owned()
}

fn write_letters(out: &mut Vec<u8>, page: &DeadLetterPage) {
    for (index, letter) in page.letters.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_letter(out, letter);
    }
}

fn write_letter(out: &mut Vec<u8>, letter: &DeadLetter) {
    let stored = &letter.stored;
    let texts = [
        ("{\"id\":", stored.id.as_str()),
        (",\"realm\":", &stored.queue.realm),
        (",\"event\":", &stored.queue.key),
        (",\"consumer\":", &stored.queue.consumer),
        (",\"producer\":", &stored.message.producer),
        (",\"reason\":", &letter.reason),
    ];
    for (name, value) in texts {
        out.extend_from_slice(name.as_bytes());
        write_json_string(out, value);
    }
    out.extend_from_slice(b",\"message\":");
    out.extend_from_slice(message_text(&stored.message).as_bytes());
    let expires_at = stored
        .expires_at_ms
        .map_or_else(|| "null".to_owned(), |at_ms| at_ms.to_string());
    out.extend_from_slice(
        format!(
            ",\"expires_at\":{expires_at},\"attempts\":{},\"created_at\":\"",
            stored.attempts
        )
        .as_bytes(),
    );
    write_iso8601(out, stored.created_at_ms);
    out.extend_from_slice(b"\",\"dead_lettered_at\":\"");
    write_iso8601(out, letter.dead_lettered_at_ms);
    out.extend_from_slice(b"\"}");
}

/// The message as JSON, binary content in its JSON form; a body that is no JSON as a string.
fn message_text(message: &Message) -> String {
    let text = String::from_utf8_lossy(&message.body);
    let closed = placeholders_to_buffers(&format!("{text}}}"), &message.attachments);
    if serde_json::from_str::<&RawValue>(&closed).is_ok() {
        return closed;
    }
    let mut quoted = Vec::new();
    write_json_string(&mut quoted, &text);
    String::from_utf8_lossy(&quoted).into_owned()
}
