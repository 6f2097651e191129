//! The engine's HTTP answers and their cross-origin headers.

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_REQUEST_HEADERS, CACHE_CONTROL, CONNECTION,
    CONTENT_TYPE, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use tyo_mq_codec::engine::{PayloadEncoder, RequestError};

use crate::config::{Cors, Origins};

/// An answer of the engine itself.
pub(crate) type Answer = Response<Full<Bytes>>;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=UTF-8");
const HTML: HeaderValue = HeaderValue::from_static("text/html");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut answer = Answer::default();
    *answer.status_mut() = status;
    answer
}

/// The body of a poll.
pub(crate) fn payload(body: PayloadEncoder) -> Answer {
    let kind = if body.is_raw_bytes() { BYTES } else { TEXT };
    with_body(StatusCode::OK, kind, body.finish().into())
}

/// A post was taken.
pub(crate) fn posted() -> Answer {
    with_body(StatusCode::OK, HTML, Bytes::from_static(b"ok"))
}

/// A refusal that Engine.IO clients read.
pub(crate) fn refused(error: RequestError) -> Answer {
    refused_as(StatusCode::BAD_REQUEST, error)
}

/// The same under another status.
pub(crate) fn refused_as(status: StatusCode, error: RequestError) -> Answer {
    with_body(status, JSON, error.json().into())
}

/// A refusal of a WebSocket, as plain text.
pub(crate) fn refused_upgrade(error: RequestError) -> Answer {
    closing(with_body(
        StatusCode::BAD_REQUEST,
        HTML,
        error.to_string().into(),
    ))
}

/// The connection ends with this answer.
pub(crate) fn closing(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(CONNECTION, CLOSE);
    answer
}

fn with_body(status: StatusCode, kind: HeaderValue, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    answer
}

/// Answers a preflight.
pub(crate) fn preflight(cors: &Cors, request: &HeaderMap) -> Answer {
    let mut answer = empty(StatusCode::NO_CONTENT);
    if cors.origins == Origins::Nobody {
        return answer;
    }
    let headers = answer.headers_mut();
    headers.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET,POST"),
    );
    headers.append(
        VARY,
        HeaderValue::from_static("Access-Control-Request-Headers"),
    );
    if let Some(asked) = request
        .get(ACCESS_CONTROL_REQUEST_HEADERS)
        .filter(|asked| is_name_list(asked))
    {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
    answer
}

/// Adds the cross-origin headers, which are the same on every answer.
pub(crate) fn add_cors(cors: &Cors, request: &HeaderMap, headers: &mut HeaderMap) {
    match &cors.origins {
        Origins::Nobody => return,
        Origins::Any => {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        }
        Origins::List(allowed) => {
            headers.append(VARY, HeaderValue::from_static("Origin"));
            let asked = request.get(ORIGIN);
            let Some(origin) =
                asked.filter(|asked| allowed.iter().any(|one| one.as_bytes() == asked.as_bytes()))
            else {
                return;
            };
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        }
    }
    if cors.credentials {
        headers.insert(
            ACCESS_CONTROL_ALLOW_CREDENTIALS,
            HeaderValue::from_static("true"),
        );
    }
}

/// Header names with commas between them: nothing else is sent back.
fn is_name_list(value: &HeaderValue) -> bool {
    value
        .as_bytes()
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b',' | b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cors_of(origins: Origins, credentials: bool, origin: Option<&str>) -> HeaderMap {
        let mut request = HeaderMap::new();
        if let Some(origin) = origin {
            request.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        let mut headers = HeaderMap::new();
        add_cors(
            &Cors {
                origins,
                credentials,
            },
            &request,
            &mut headers,
        );
        headers
    }

    #[test]
    fn any_origin() {
        let headers = cors_of(Origins::Any, true, Some("https://page.example"));
        assert_eq!(headers[ACCESS_CONTROL_ALLOW_ORIGIN], "*");
        assert_eq!(headers[ACCESS_CONTROL_ALLOW_CREDENTIALS], "true");
        assert!(!headers.contains_key(VARY));
        assert!(!cors_of(Origins::Any, false, None).contains_key(ACCESS_CONTROL_ALLOW_CREDENTIALS));
    }

    #[test]
    fn listed_origins() {
        let list = || Origins::List(vec!["https://page.example".to_owned()]);
        let headers = cors_of(list(), true, Some("https://page.example"));
        assert_eq!(headers[ACCESS_CONTROL_ALLOW_ORIGIN], "https://page.example");
        assert_eq!(headers[VARY], "Origin");
        for other in [
            Some("https://other.example"),
            Some("https://page.example.evil"),
            None,
        ] {
            let headers = cors_of(list(), true, other);
            assert_eq!(headers.keys().collect::<Vec<_>>(), [VARY], "{other:?}");
        }
        assert!(cors_of(Origins::Nobody, true, Some("https://page.example")).is_empty());
    }

    #[test]
    fn preflights_name_only_header_names() {
        let mut request = HeaderMap::new();
        request.insert(
            ACCESS_CONTROL_REQUEST_HEADERS,
            HeaderValue::from_static("content-type, x-a"),
        );
        assert_eq!(
            preflight(&Cors::default(), &request).headers()[ACCESS_CONTROL_ALLOW_HEADERS],
            "content-type, x-a"
        );
        request.insert(
            ACCESS_CONTROL_REQUEST_HEADERS,
            HeaderValue::from_static("<b>\t"),
        );
        assert!(
            !preflight(&Cors::default(), &request)
                .headers()
                .contains_key(ACCESS_CONTROL_ALLOW_HEADERS)
        );
    }
}
