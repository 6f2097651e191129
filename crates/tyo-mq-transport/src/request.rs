//! What a request asks for: query parameters, and what makes it no honest request. Knows nothing of sessions.

use std::borrow::Cow;

use http::header::{CONNECTION, HOST, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, Version};
use tyo_mq_codec::engine::{Protocol, RequestError};

use crate::config::EngineConfig;

/// Parameters beyond this many are not looked at.
const MAX_PARAMETERS: usize = 32;

/// The query of an Engine.IO request. Of a parameter given twice the first counts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Query<'q> {
    pub(crate) eio: Option<Cow<'q, str>>,
    pub(crate) transport: Option<Cow<'q, str>>,
    pub(crate) sid: Option<Cow<'q, str>>,
    pub(crate) jsonp: bool,
    pub(crate) base64: bool,
}

impl<'q> Query<'q> {
    pub(crate) fn parse(query: &'q str) -> Self {
        let mut parsed = Self::default();
        for pair in query.split('&').take(MAX_PARAMETERS) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let slot = match decode(name).as_ref() {
                "EIO" => &mut parsed.eio,
                "transport" => &mut parsed.transport,
                "sid" => &mut parsed.sid,
                "j" => {
                    parsed.jsonp = true;
                    continue;
                }
                "b64" => {
                    parsed.base64 |= !matches!(value, "" | "0" | "false");
                    continue;
                }
                _ => continue,
            };
            slot.get_or_insert_with(|| decode(value));
        }
        parsed
    }

    /// The revision that a handshake asks for.
    pub(crate) fn protocol(&self, config: &EngineConfig) -> Result<Protocol, RequestError> {
        match self.eio.as_deref() {
            Some("4") => Ok(Protocol::V4),
            Some("3") if config.allow_v3 => Ok(Protocol::V3),
            _ if config.allow_v3 && config.lenient_version => Ok(Protocol::V3),
            _ => Err(RequestError::UnsupportedVersion),
        }
    }
}

/// Percent-decoding; what is no valid UTF-8 afterwards names nothing we know.
fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = bytes
            .get(at + 1..at + 3)
            .and_then(hex_byte)
            .filter(|_| bytes[at] == b'%');
        out.push(match (bytes[at], escaped) {
            (_, Some(byte)) => byte,
            (b'+', None) => b' ',
            (byte, None) => byte,
        });
        at += if escaped.is_some() { 3 } else { 1 };
    }
    Cow::Owned(String::from_utf8(out).unwrap_or_default())
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()
}

/// Whether the request asks to become a WebSocket.
pub(crate) fn asks_for_websocket(headers: &HeaderMap) -> bool {
    has_token(headers, &UPGRADE, "websocket") && has_token(headers, &CONNECTION, "upgrade")
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|part| part.trim().eq_ignore_ascii_case(token))
}

/// What the HTTP library lets pass although two readers could see different requests in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Nothing odd.
    Plain,
    /// A chunked body, which may have come with a length that the library dropped: answered, then closed.
    Chunked,
    /// Refused, and closed.
    Ambiguous,
}

/// RFC 9112 sections 3.2, 6.1 and 11.2: exactly one host, no transfer coding but `chunked`.
pub(crate) fn framing(parts: &Parts) -> Framing {
    let hosts = parts.headers.get_all(HOST).iter().count();
    if hosts > 1 || (hosts == 0 && parts.version == Version::HTTP_11) {
        return Framing::Ambiguous;
    }
    let mut codings = parts.headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Framing::Plain,
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {
            Framing::Chunked
        }
        _ => Framing::Ambiguous,
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn check(query: &str, eio: Option<&str>, transport: Option<&str>, sid: Option<&str>) {
        let parsed = Query::parse(query);
        assert_eq!(
            (
                parsed.eio.as_deref(),
                parsed.transport.as_deref(),
                parsed.sid.as_deref()
            ),
            (eio, transport, sid),
            "{query}"
        );
    }

    #[test]
    fn queries() {
        check("EIO=4&transport=polling", Some("4"), Some("polling"), None);
        check(
            "%45IO=%34&transport=%70olling",
            Some("4"),
            Some("polling"),
            None,
        );
        check(
            "transport=polling&transport=websocket&sid=a&sid=b",
            None,
            Some("polling"),
            Some("a"),
        );
        check("", None, None, None);
        check("%&EIO&transport=%0", Some(""), Some("%0"), None);
        check("sid=%ff&EIO=%zz", Some("%zz"), None, Some(""));
        check("sid=a+b", None, None, Some("a b"));
        assert!(Query::parse("j=0").jsonp && Query::parse("b64=1").base64);
        assert!(!Query::parse("b64=0").base64);
    }

    #[test]
    fn versions() {
        let mut config = EngineConfig::default();
        let version =
            |query: &'static str, config: &EngineConfig| Query::parse(query).protocol(config).ok();
        assert_eq!(version("EIO=4", &config), Some(Protocol::V4));
        for query in ["EIO=3", "EIO=2", "", "EIO=abc", "EIO=99999999999999999999"] {
            assert_eq!(version(query, &config), Some(Protocol::V3), "{query}");
        }
        config.lenient_version = false;
        assert_eq!(
            (version("EIO=3", &config), version("EIO=abc", &config)),
            (Some(Protocol::V3), None)
        );
        config.allow_v3 = false;
        assert_eq!(
            (version("EIO=3", &config), version("EIO=4", &config)),
            (None, Some(Protocol::V4))
        );
    }

    #[test]
    fn framings() {
        let check = |headers: &[(&str, &str)], expected: Framing| {
            let mut request = Request::builder();
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(framing(&parts), expected, "{headers:?}");
        };
        check(&[("host", "x")], Framing::Plain);
        check(&[], Framing::Ambiguous);
        check(&[("host", "x"), ("host", "x")], Framing::Ambiguous);
        check(
            &[("host", "x"), ("transfer-encoding", "Chunked")],
            Framing::Chunked,
        );
        for coding in [
            "gzip, chunked",
            "chunked, chunked",
            "identity",
            "chunked ",
            "",
        ] {
            check(
                &[("host", "x"), ("transfer-encoding", coding)],
                Framing::Ambiguous,
            );
        }
        check(
            &[
                ("host", "x"),
                ("transfer-encoding", "chunked"),
                ("transfer-encoding", "chunked"),
            ],
            Framing::Ambiguous,
        );
    }
}
