//! Answers: JSON, metrics, refusals.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;

pub(crate) type Answer = Response<Full<Bytes>>;

/// Why a request is not served: a status, words, and when to try again if that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The status, from 400.
    pub status: u16,
    /// For people.
    pub message: String,
    /// Whole seconds.
    pub retry_after_secs: Option<u64>,
}

impl Refused {
    /// A refusal without a time.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            retry_after_secs: None,
        }
    }
}

pub(crate) fn forbidden() -> Answer {
    let mut answer = Response::default();
    *answer.status_mut() = StatusCode::FORBIDDEN;
    answer
}

pub(crate) fn json(status: StatusCode, body: String) -> Answer {
    typed(status, "application/json; charset=utf-8", body)
}

pub(crate) fn metrics(body: String) -> Answer {
    typed(
        StatusCode::OK,
        "text/plain; version=0.0.4; charset=utf-8",
        body,
    )
}

fn typed(status: StatusCode, kind: &'static str, body: String) -> Answer {
    let mut answer = Response::new(Full::from(body));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

/// `{ok: false, code, message}`, with `retry_after` where it is known.
pub(crate) fn refused(refusal: &Refused) -> Answer {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut body = serde_json::json!({
        "ok": false,
        "code": status.as_u16(),
        "message": refusal.message,
    });
    if let Some(secs) = refusal.retry_after_secs {
        body["retry_after"] = secs.into();
    }
    let mut answer = json(status, body.to_string());
    if let Some(secs) = refusal.retry_after_secs {
        answer.headers_mut().insert(RETRY_AFTER, secs.into());
    }
    answer
}
