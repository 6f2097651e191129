//! What one setting is, and who said so. Secrets are not shown.

use serde_json::Value;

use super::keys::{self, Known};
use super::{Loaded, Settings};

/// A setting with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The value in force as JSON; nothing if it is not set.
    pub value: Option<String>,
    /// Who said so.
    pub source: Source,
}

/// Who gave a setting its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Nobody: it is the default.
    Default,
    /// The settings file.
    File {
        /// The line, from 1.
        line: usize,
    },
    /// A flag or the environment.
    Override,
}

/// Explains a key, with dots for nesting, in either spelling; nothing if there is no such setting.
pub fn explain(key: &str, loaded: &Loaded, in_force: &Settings) -> Option<Explained> {
    if !matches!(keys::look_up(key), Known::Yes) {
        return None;
    }
    let path: Vec<&str> = key.split('.').collect();
    let tree = |settings: &Settings| serde_json::to_value(settings).unwrap_or_default();
    let (now, in_file) = (tree(in_force), tree(&loaded.settings));
    let value = find(&now, &path);
    let written: Value = serde_json::from_str(&loaded.text).unwrap_or_default();
    let source = if value != find(&in_file, &path) {
        Source::Override
    } else if find(&written, &path).is_some() {
        Source::File {
            line: line_of(&loaded.text, &path),
        }
    } else {
        Source::Default
    };
    let name = path.last().copied().unwrap_or_default();
    let value = value.filter(|value| !value.is_null());
    let value = value.map(|value| redacted(name, value).to_string());
    Some(Explained { value, source })
}

fn find<'a>(tree: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(tree, |tree, name| {
        let spellings = spellings(name);
        spellings.iter().find_map(|name| tree.get(name.as_str()))
    })
}

/// As given, in snake case, in camel case, and the one name that is neither.
fn spellings(name: &str) -> [String; 4] {
    let (mut snake, mut camel, mut up) = (String::new(), String::new(), false);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
        match (letter, up) {
            ('_', _) => up = true,
            (letter, true) => {
                camel.push(letter.to_ascii_uppercase());
                up = false;
            }
            (letter, false) => camel.push(letter),
        }
    }
    let acronym = camel.replace("Eio3", "EIO3");
    [name.to_owned(), snake, camel, acronym]
}

/// The line on which the last name of the path stands, looked for behind each name before it.
fn line_of(text: &str, path: &[&str]) -> usize {
    let mut at = 0;
    for name in path {
        let found = spellings(name)
            .iter()
            .filter_map(|name| text[at..].find(&format!("\"{name}\"")))
            .min();
        at += found.unwrap_or_default();
    }
    text[..at].matches('\n').count() + 1
}

/// The value with its secrets left out, at any depth.
fn redacted(name: &str, value: &Value) -> Value {
    let name = name.to_ascii_lowercase();
    let secret = ["token", "secret", "key", "password", "url"]
        .iter()
        .any(|word| name.contains(word));
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), redacted(name, value)))
            .collect(),
        Value::Array(items) => items.iter().map(|item| redacted(&name, item)).collect(),
        Value::String(_) if secret => Value::from("(set, not shown)"),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::parse;

    fn check(text: &str, key: &str, value: &str, source: Source) {
        let loaded = parse(text).unwrap();
        let explained = explain(key, &loaded, &loaded.settings).unwrap();
        assert_eq!(explained.value.as_deref().unwrap_or("none"), value, "{key}");
        assert_eq!(explained.source, source, "{key}");
    }

    #[test]
    fn values_have_their_origin() {
        let text = "{\n\"port\": 7,\n\"idleEviction\": {\n \"ttlMs\": 5},\n\"pingInterval\": 300,\n\"auth\": {\"jwt_secret\": \"x\",\n\"tokens\": [{\"token\": \"t\", \"realm\": \"r\"}]}}";
        check(text, "port", "7", Source::File { line: 2 });
        check(text, "idle_eviction.ttl_ms", "5", Source::File { line: 4 });
        check(text, "ping_interval", "300", Source::File { line: 5 });
        check(text, "prefetch", "1000", Source::Default);
        check(text, "allow_eio3", "true", Source::Default);
        check(text, "limits", "none", Source::Default);
        check(
            text,
            "auth.jwt_secret",
            "\"(set, not shown)\"",
            Source::File { line: 6 },
        );
        let tokens = "[{\"token\":\"(set, not shown)\",\"realm\":\"r\"}]";
        let loaded = parse(text).unwrap();
        let explained = explain("auth.tokens", &loaded, &loaded.settings).unwrap();
        let shown: Value = serde_json::from_str(&explained.value.unwrap()).unwrap();
        assert_eq!(shown, serde_json::from_str::<Value>(tokens).unwrap());
    }

    #[test]
    fn a_flag_wins_over_the_file() {
        let loaded = parse("{\"port\": 7}").unwrap();
        let mut settings = loaded.settings.clone();
        settings.port = 8;
        let explained = explain("port", &loaded, &settings).unwrap();
        assert_eq!(
            (explained.value.as_deref(), explained.source),
            (Some("8"), Source::Override)
        );
        assert_eq!(explain("prot", &loaded, &settings), None);
    }
}
