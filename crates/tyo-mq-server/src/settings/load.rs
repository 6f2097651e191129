//! Reads a settings file: everything is checked before anything is used.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tyo_mq_auth::AuthDocument;
use tyo_mq_auth::files::replace_private;

use super::keys::{self, Known};
use super::{Backend, Settings};
use crate::limits;

/// Settings and what is worth telling about their file.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    /// Keys without effect.
    pub warnings: Vec<Warning>,
    /// The file did not exist and was written with the defaults.
    pub created: bool,
    /// The text of the file, to be written back with all that it holds when something changes.
    pub(crate) text: String,
}

impl Loaded {
    /// The defaults, of no file.
    #[must_use]
    pub fn without_file() -> Self {
        Self {
            settings: super::for_new_file(),
            warnings: Vec::new(),
            created: false,
            text: "{}".to_owned(),
        }
    }
}

/// A key without effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// It is not known.
    Unknown {
        /// Its path.
        key: String,
        /// What was probably meant.
        suggestion: Option<&'static str>,
    },
    /// This version does not obey it.
    Later {
        /// Its path.
        key: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown {
                key,
                suggestion: None,
            } => write!(f, "{key}: unknown setting, ignored"),
            Self::Unknown {
                key,
                suggestion: Some(near),
            } => {
                write!(f, "{key}: unknown setting, ignored; did you mean {near}?")
            }
            Self::Later { key } => write!(
                f,
                "{key}: this version does not support this setting yet, ignored"
            ),
        }
    }
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not JSON.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// A value is not what its key takes.
    #[error("line {line}: {key}: {message}")]
    Value {
        /// The key, with dots for nesting.
        key: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// Values that are good by themselves do not go together, or ask for what this version cannot do.
    #[error("{key}: {message}")]
    Conflict {
        /// The key.
        key: &'static str,
        /// What is wrong.
        message: String,
    },
}

/// Reads a settings file; one that does not exist is written with the defaults.
///
/// # Errors
/// When it cannot be read or written, is not JSON, or holds a value that its key does not take.
pub fn load(path: &Path) -> Result<Loaded, SettingsError> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text),
        Err(source) if source.kind() == io::ErrorKind::NotFound => {
            let settings = super::for_new_file();
            let text = document(&settings);
            create(path, &text).map_err(|source| SettingsError::Write {
                path: path.to_owned(),
                source,
            })?;
            Ok(Loaded {
                settings,
                warnings: Vec::new(),
                created: true,
                text,
            })
        }
        Err(source) => Err(SettingsError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Reads the text of a settings file.
///
/// # Errors
/// When it is not JSON or holds a value that its key does not take.
pub fn parse(text: &str) -> Result<Loaded, SettingsError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let document: Value = serde_json::from_str(text).map_err(|error| SettingsError::Syntax {
        line: error.line(),
        column: error.column(),
        message: without_place(&error),
    })?;
    if !document.is_object() {
        let message = "expected a JSON object".to_owned();
        return Err(SettingsError::Syntax {
            line: 1,
            column: 1,
            message,
        });
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let settings: Settings = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let key = error.path().to_string();
        let error = error.into_inner();
        SettingsError::Value {
            key,
            line: error.line(),
            message: without_place(&error),
        }
    })?;
    check(&settings, &document)?;
    let mut warnings = Vec::new();
    collect_warnings(&document, "", &mut warnings);
    warnings.extend(in_realms(&settings));
    Ok(Loaded {
        settings,
        warnings,
        created: false,
        text: text.to_owned(),
    })
}

/// The settings as the text of a file.
pub(crate) fn document(settings: &Settings) -> String {
    let mut text = serde_json::to_string_pretty(settings).expect("settings are plain values");
    text.push('\n');
    text
}

fn check(settings: &Settings, document: &Value) -> Result<(), SettingsError> {
    let conflict = |key, message: &str| {
        Err(SettingsError::Conflict {
            key,
            message: message.to_owned(),
        })
    };
    if let Err(error) = AuthDocument::parse(&settings.auth.to_string()) {
        return conflict("auth", &error.to_string());
    }
    if let Err(error) = limits::check(&settings.limits) {
        return conflict("limits", &error);
    }
    if document
        .pointer("/cluster/enabled")
        .is_some_and(|value| *value == Value::Bool(true))
    {
        return conflict(
            "cluster.enabled",
            "this version does not support clusters yet",
        );
    }
    match settings.storage_config() {
        Ok(config) => {
            let asks_redis = matches!(config.backend, Backend::Redis(_));
            if asks_redis && settings.storage_options.get("url").is_none() {
                return conflict("storage_options.url", "redis storage needs a url");
            }
        }
        Err(error) => return conflict("storage", &error.to_string()),
    }
    Ok(())
}

fn collect_warnings(value: &Value, path: &str, warnings: &mut Vec<Warning>) {
    let Value::Object(members) = value else {
        return;
    };
    for (name, value) in members {
        let key = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        let canonical = key
            .replace("storageOptions.", "storage_options.")
            .replace("idleEviction.", "idle_eviction.");
        match keys::look_up(&canonical.replace("httpApi.", "http_api.")) {
            Known::Yes => collect_warnings(value, &key, warnings),
            Known::Later => warnings.push(Warning::Later { key }),
            Known::No => {
                let suggestion = keys::suggestion(&key);
                warnings.push(Warning::Unknown { key, suggestion });
            }
        }
    }
}

/// What is probably a slip in the limits of realms and in the realms of access control. Their names may have dots.
fn in_realms(settings: &Settings) -> Vec<Warning> {
    let limits = limits::strangers(&settings.limits).map(|(realm, name)| Warning::Unknown {
        key: format!("limits.realms.{realm}.{name}"),
        suggestion: keys::suggestion(&format!("limits.{name}")),
    });
    let realms = settings.auth.get("realms").and_then(Value::as_object);
    let fields = realms.into_iter().flatten().flat_map(|(realm, fields)| {
        let fields = fields.as_object().into_iter().flatten();
        fields.filter_map(move |(name, _)| {
            Some(Warning::Unknown {
                suggestion: Some(keys::realm_suggestion(name)?),
                key: format!("auth.realms.{realm}.{name}"),
            })
        })
    });
    limits.chain(fields).collect()
}

/// The message without the place, which is told apart.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Writes a new file that only its owner reads, whole or not at all.
fn create(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        std::fs::create_dir_all(folder)?;
    }
    replace_private(path, text.as_bytes())
}
