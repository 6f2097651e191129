//! Reading what a command says. Of each field the type counts, not whether JavaScript takes it for true.

use crate::json::{Object, Value};
use crate::names::RealmName;
use crate::refusal::Refusal;
use crate::secret::{Secret, SecretHash};

/// The first of several spellings that is there and not null.
pub(super) fn present<'a>(body: &'a Object, names: &[&str]) -> Option<&'a Value> {
    names
        .iter()
        .filter_map(|name| body.get(name))
        .find(|value| **value != Value::Null)
}

/// True or false, if it is there.
pub(super) fn flag(body: &Object, names: &[&str]) -> Result<Option<bool>, Refusal> {
    match present(body, names) {
        None => Ok(None),
        Some(Value::Bool(value)) => Ok(Some(*value)),
        Some(_) => Err(wrong(names, "must be true or false")),
    }
}

/// True or false.
pub(super) fn required_flag(body: &Object, names: &[&str]) -> Result<bool, Refusal> {
    flag(body, names)?.ok_or_else(|| wrong(names, "is needed: true or false"))
}

/// A text, if it is there and not empty.
pub(super) fn text<'a>(body: &'a Object, names: &[&str]) -> Result<Option<&'a str>, Refusal> {
    match present(body, names) {
        None => Ok(None),
        Some(value) => match value.as_str() {
            Some("") => Ok(None),
            Some(text) if text.len() <= Secret::MAX_BYTES => Ok(Some(text)),
            Some(_) => Err(wrong(names, "is too long")),
            None => Err(wrong(names, "must be a text")),
        },
    }
}

/// A text.
pub(super) fn required_text<'a>(body: &'a Object, names: &[&str]) -> Result<&'a str, Refusal> {
    text(body, names)?.ok_or_else(|| wrong(names, "is needed"))
}

/// The name of a realm.
pub(super) fn realm(body: &Object, name: &str) -> Result<RealmName, Refusal> {
    let text = required_text(body, &[name])?;
    RealmName::new(text).ok_or_else(|| wrong(&[name], "is no name of a realm"))
}

/// The name of a realm, if it is there.
pub(super) fn optional_realm(body: &Object, name: &str) -> Result<Option<RealmName>, Refusal> {
    text(body, &[name])?.map(|_| realm(body, name)).transpose()
}

/// The digest of a token.
pub(super) fn hash(body: &Object, names: &[&str]) -> Result<Option<SecretHash>, Refusal> {
    text(body, names)?
        .map(|hex| {
            SecretHash::from_hex(hex).ok_or_else(|| wrong(names, "must be 64 hexadecimal digits"))
        })
        .transpose()
}

/// A whole number up to a limit, or what is meant when there is none.
pub(super) fn count(
    body: &Object,
    name: &str,
    default: usize,
    max: usize,
) -> Result<usize, Refusal> {
    match present(body, &[name]) {
        None => Ok(default),
        Some(value) => value
            .as_number()
            .filter(|number| number.fract() == 0.0 && (0.0..=max as f64).contains(number))
            .map(|number| number as usize)
            .ok_or_else(|| wrong(&[name], &format!("must be a whole number up to {max}"))),
    }
}

/// What a command is about, for the audit trail. Never a secret.
pub(super) fn target(body: &Object) -> Option<String> {
    let names = [
        "realm",
        "from",
        "realm_prefix",
        "client_id",
        "clientId",
        "token_hash",
        "tokenHash",
        "msg_id",
        "msgId",
        "id",
        "socket",
        "storage",
        "backend",
    ];
    let text = names.iter().find_map(|name| body.non_empty_str(name))?;
    Some(
        text.chars()
            .filter(|c| !c.is_control())
            .take(MAX_TARGET_CHARS)
            .collect(),
    )
}

pub(super) fn wrong(names: &[&str], what: &str) -> Refusal {
    let name = names.first().copied().unwrap_or_default();
    Refusal::malformed(format!("{name} {what}"))
}

const MAX_TARGET_CHARS: usize = 256;
