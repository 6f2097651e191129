//! What the broker sends, read: the name and first argument of an event, the first argument of an answer.

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::{CallError, Refusal, RequestError};

/// An answer.
#[derive(Debug)]
pub struct Reply {
    /// Its first argument, as it came.
    pub payload: Option<Box<RawValue>>,
    /// What its placeholders stand for.
    pub attachments: Vec<Bytes>,
}

impl Reply {
    /// The answer as JSON text; `null` when it is empty.
    #[must_use]
    pub fn json(&self) -> &str {
        self.payload.as_ref().map_or("null", |raw| raw.get())
    }

    /// Reads an answer of the form `{ok: true, …}`.
    ///
    /// # Errors
    /// When it says `ok: false`, or has another form.
    pub fn accepted<T: DeserializeOwned>(&self) -> Result<T, RequestError> {
        #[derive(Deserialize)]
        struct Outcome {
            ok: bool,
            #[serde(default)]
            code: i32,
            #[serde(default)]
            message: String,
        }
        let outcome: Outcome =
            serde_json::from_str(self.json()).map_err(|_| RequestError::Call(CallError::Answer))?;
        if !outcome.ok {
            let Outcome { code, message, .. } = outcome;
            return Err(Refusal { code, message }.into());
        }
        serde_json::from_str(self.json()).map_err(|_| RequestError::Call(CallError::Answer))
    }
}

/// Reads the JSON array of an event: its name and its first argument.
pub(crate) fn event(args: &str) -> Option<(String, Option<Box<RawValue>>)> {
    let Args(name, payload) = serde_json::from_str(args).ok()?;
    Some((name?, payload))
}

/// Reads the JSON array of an answer: its first argument.
pub(crate) fn answer(args: &str) -> Option<Option<Box<RawValue>>> {
    struct First;
    impl<'de> Visitor<'de> for First {
        type Value = Option<Box<RawValue>>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let first = seq.next_element()?;
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(first)
        }
    }
    let mut reader = serde_json::Deserializer::from_str(args);
    let first = serde::Deserializer::deserialize_seq(&mut reader, First).ok()?;
    reader.end().ok()?;
    Some(first)
}

struct Args(Option<String>, Option<Box<RawValue>>);

impl<'de> Deserialize<'de> for Args {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct ArgsVisitor;
        impl<'de> Visitor<'de> for ArgsVisitor {
            type Value = Args;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an array that begins with a name")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Args, A::Error> {
                let name = seq.next_element()?;
                let payload = seq.next_element()?;
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Args(name, payload))
            }
        }
        reader.deserialize_seq(ArgsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_event(args: &str, expected: Option<(&str, Option<&str>)>) {
        let read = event(args);
        let read = read
            .as_ref()
            .map(|(name, raw)| (name.as_str(), raw.as_ref().map(|raw| raw.get())));
        assert_eq!(read, expected, "{args}");
    }

    #[test]
    fn events() {
        check_event(
            r#"["e",{"a": 1e400}]"#,
            Some(("e", Some(r#"{"a": 1e400}"#))),
        );
        check_event(r#"["\u0065","\ud800",3]"#, Some(("e", Some(r#""\ud800""#))));
        check_event(r#"["e"]"#, Some(("e", None)));
        for args in ["", "[]", "{}", "[7]", r#"["e""#, r#"["e"]x"#] {
            check_event(args, None);
        }
    }

    fn check_answer(args: &str, expected: Option<Option<&str>>) {
        let read = answer(args);
        let read = read
            .as_ref()
            .map(|first| first.as_ref().map(|raw| raw.get()));
        assert_eq!(read, expected, "{args}");
    }

    #[test]
    fn answers() {
        check_answer("[]", Some(None));
        check_answer("[ 0.10 ,2]", Some(Some("0.10")));
        check_answer("7", None);
        check_answer("[7", None);
        check_answer("[7]]", None);
    }

    fn check_accepted(json: &str, refused: Option<i32>) {
        let reply = Reply {
            payload: Some(RawValue::from_string(json.to_owned()).unwrap()),
            attachments: Vec::new(),
        };
        match reply.accepted::<IgnoredAny>() {
            Ok(_) => assert_eq!(refused, None, "{json}"),
            Err(RequestError::Refused(refusal)) => {
                assert_eq!(Some(refusal.code), refused, "{json}")
            }
            Err(RequestError::Call(error)) => panic!("{json}: {error}"),
        }
    }

    #[test]
    fn outcomes() {
        check_accepted(r#"{"ok":true,"code":7}"#, None);
        check_accepted(r#"{"ok":false,"code":404,"message":"no"}"#, Some(404));
        check_accepted(r#"{"ok":false}"#, Some(0));
    }
}
