//! Writing the document: in full for the settings file, and without secrets for whoever asks.

use crate::json::{Object, Value};

use super::AuthDocument;
use super::token::Origin;

/// The most realms, and the most tokens, that one reply lists. What is beyond is counted.
pub const MAX_LISTED: usize = 10_000;

impl AuthDocument {
    /// The `auth` block as it is to be in the settings file, secrets included.
    #[must_use]
    pub fn to_settings(&self, has_store: bool) -> Object {
        let mut block = self.fields.clone();
        if has_store {
            return block;
        }
        if !self.realms.is_empty() {
            let mut realms = Object::new();
            for (name, config) in self.realms_in_order() {
                realms.push(name.as_str(), config.to_stored());
            }
            block.push("realms", realms);
        }
        let tokens = self.tokens_in_order().into_iter();
        let tokens: Vec<Value> = tokens
            .filter(|entry| entry.origin == Origin::Document)
            .map(|entry| entry.to_stored().into())
            .collect();
        if !tokens.is_empty() {
            block.push("tokens", tokens);
        }
        let management = self.management_tokens_in_order().into_iter();
        let management: Vec<Value> = management.map(|token| token.to_stored().into()).collect();
        if !management.is_empty() {
            block.push("management_tokens", management);
        }
        block
    }

    /// The `auth` block without secrets, as replies to commands have it.
    #[must_use]
    pub fn to_redacted(&self) -> Object {
        let mut block = Object::new();
        for (name, value) in self.fields.iter() {
            match name.as_str() {
                Some("external_validators") | None => {}
                Some(name) => block.push(name, redacted_field(name, value)),
            }
        }
        let mut realms = Object::new();
        for (name, config) in self.realms_in_order().into_iter().take(MAX_LISTED) {
            realms.push(name.as_str(), config.to_redacted());
        }
        block.push("realms", realms);
        let tokens = self.tokens_in_order().into_iter().take(MAX_LISTED);
        block.push(
            "tokens",
            redacted_list(tokens.map(|token| token.to_redacted())),
        );
        let management = self.management_tokens_in_order().into_iter();
        let management = management.take(MAX_LISTED).map(|token| token.to_redacted());
        if !self.management_tokens.is_empty() {
            block.push("management_tokens", redacted_list(management));
        }
        let validators = self.flags.validators.iter();
        if self.fields.get("external_validators").is_some() {
            let validators = validators.map(|validator| validator.to_redacted());
            block.push("external_validators", redacted_list(validators));
        }
        self.push_totals(&mut block);
        block
    }

    fn push_totals(&self, block: &mut Object) {
        let totals = [
            ("realms_total", self.realms.len()),
            ("tokens_total", self.tokens.len()),
            ("management_tokens_total", self.management_tokens.len()),
        ];
        for (name, total) in totals.into_iter().filter(|(_, total)| *total > MAX_LISTED) {
            block.push(name, total);
        }
    }
}

fn redacted_list(objects: impl Iterator<Item = Object>) -> Vec<Value> {
    objects.map(Value::from).collect()
}

/// Secrets are shown as configured; in what we do not know, whatever has a name like a secret's.
fn redacted_field(name: &str, value: &Value) -> Value {
    if is_secret_name(name) && value.is_truthy() && value.as_bool().is_none() {
        return "<configured>".into();
    }
    redacted_value(value)
}

/// A value without what has a name like a secret's.
pub(crate) fn redacted_value(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut out = Object::new();
            for (name, value) in object.iter() {
                let name = name.to_lossy();
                let value = redacted_field(&name, value);
                out.push(&name, value);
            }
            out.into()
        }
        Value::List(items) => items.iter().map(redacted_value).collect::<Vec<_>>().into(),
        Value::Text(text) => redacted_url(text.as_str().unwrap_or_default())
            .map_or_else(|| value.clone(), Value::from),
        _ => value.clone(),
    }
}

/// An address with a password in it, without the password.
fn redacted_url(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (user, _) = rest[..authority].rsplit_once('@')?;
    let (name, _) = user.split_once(':')?;
    Some(format!(
        "{scheme}://{name}:<configured>{}",
        &rest[user.len()..]
    ))
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let settings_about_secrets = ["admin_token_env", "auto_admin_token", "token_storage"];
    !settings_about_secrets.contains(&&*name)
        && [
            "secret",
            "password",
            "passwd",
            "token",
            "manager_key",
            "managerkey",
            "psk",
        ]
        .iter()
        .any(|part| name.contains(part))
}
