//! Which store the settings ask for: names, aliases and defaults of `storage` and `storage_options`. Builds nothing.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use thiserror::Error;
use tyo_mq_protocol::{Ttl, parse_duration_ms, parse_ttl};

/// A store to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageConfig {
    /// Which one.
    pub backend: Backend,
    /// How long messages live that do not say; `None` is for ever.
    pub default_ttl_ms: Option<u64>,
}

/// A kind of store and what it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// In the process.
    Memory,
    /// In a file.
    Sqlite(SqliteConfig),
    /// In Redis.
    Redis(RedisConfig),
}

/// What the SQLite store needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteConfig {
    /// The database file; it is made if it is not there.
    pub path: PathBuf,
    /// When a commit counts as done.
    pub durability: Durability,
    /// How long an operation waits while another program has the file locked.
    pub lock_timeout: Duration,
    /// The file's largest size in bytes, without its log; `None` leaves it to the disk.
    pub max_bytes: Option<u64>,
}

/// What survives when the power goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// All but perhaps the last moments; everything survives the end of the process.
    #[default]
    Normal,
    /// Everything that was confirmed.
    Full,
}

/// What the Redis store needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisConfig {
    /// Where the server is.
    pub url: RedisUrl,
    /// What all keys begin with.
    pub prefix: String,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long the first answer may take at the start.
    pub probe_timeout: Duration,
    /// How long an operation may take before it fails.
    pub command_timeout: Duration,
    /// How long Redis keeps a message behind its expiry; long enough for a sweep where expired messages become dead letters.
    pub keep_expired: Duration,
    /// What to open while Redis is away at the start.
    pub fallback: Option<Fallback>,
}

/// What stands in for Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fallback {
    /// The process.
    Memory,
    /// A file.
    Sqlite(SqliteConfig),
}

/// A Redis address with its password, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl(String);

/// What is wrong with the settings.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No store has this name.
    #[error("storage: unknown store {0:?}, known are memory, sqlite and redis")]
    UnknownBackend(String),
    /// A value is of the wrong kind or out of range.
    #[error("storage_options.{option}: expected {expected}")]
    Option {
        /// Its name as given.
        option: &'static str,
        /// What it may be.
        expected: &'static str,
    },
}

impl StorageConfig {
    /// Reads the settings `storage` and `storage_options`; an absent one is `Value::Null`.
    ///
    /// # Errors
    /// When a name is unknown or a value unusable. Unknown options are ignored.
    pub fn from_settings(storage: &Value, options: &Value) -> Result<Self, ConfigError> {
        let options = Options::new(options)?;
        let backend = match storage {
            Value::Null | Value::Bool(true) => Backend::Memory,
            Value::String(name) => match name.to_ascii_lowercase().as_str() {
                "memory" => Backend::Memory,
                "sqlite" => Backend::Sqlite(sqlite(&options, &FILE_NAMES)?),
                "redis" => Backend::Redis(redis(&options)?),
                _ => return Err(ConfigError::UnknownBackend(name.clone())),
            },
            other => return Err(ConfigError::UnknownBackend(other.to_string())),
        };
        Ok(Self {
            backend,
            default_ttl_ms: default_ttl(&options)?,
        })
    }
}

impl SqliteConfig {
    /// The defaults for a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            durability: Durability::default(),
            lock_timeout: LOCK_TIMEOUT,
            max_bytes: None,
        }
    }
}

impl RedisConfig {
    /// The defaults for an address.
    pub fn new(url: impl Into<String>) -> Self {
        let url = RedisUrl::new(url);
        Self {
            prefix: if url.is_cluster() {
                CLUSTER_PREFIX
            } else {
                PREFIX
            }
            .to_owned(),
            url,
            connect_timeout: CONNECT_TIMEOUT,
            probe_timeout: PROBE_TIMEOUT,
            command_timeout: COMMAND_TIMEOUT,
            keep_expired: Duration::ZERO,
            fallback: None,
        }
    }
}

impl RedisUrl {
    /// Takes an address such as `redis://user:password@host:6379/0`, `rediss://…`, `redis-sentinel://…` or `redis-cluster://…`.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The address with its password, for connecting only.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Keys of one operation must then share a slot, so the prefix needs a `{tag}`.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        self.0
            .split_once("://")
            .is_some_and(|(scheme, _)| scheme.ends_with("-cluster"))
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for RedisUrl {
    /// Scheme, host and path: neither user nor password nor query.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.0.split_once("://").unwrap_or(("", &self.0));
        let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
        let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
        write!(f, "{scheme}://{rest}")
    }
}

fn sqlite(options: &Options<'_>, names: &[&'static str]) -> Result<SqliteConfig, ConfigError> {
    let path = options.text(names)?.unwrap_or(DEFAULT_FILE);
    let durability = match options.text(&["durability"])? {
        None | Some("normal") => Durability::Normal,
        Some("full") => Durability::Full,
        Some(_) => return Err(option("durability", "\"full\" or \"normal\"")),
    };
    Ok(SqliteConfig {
        durability,
        max_bytes: options.bytes("max_bytes")?,
        ..SqliteConfig::new(path)
    })
}

fn redis(options: &Options<'_>) -> Result<RedisConfig, ConfigError> {
    let url = options.text(&["url"])?.unwrap_or(DEFAULT_URL);
    let mut config = RedisConfig::new(url);
    if let Some(prefix) = options.text(&["prefix"])? {
        config.prefix = prefix.to_owned();
    }
    let tagged = config
        .prefix
        .split_once('{')
        .is_some_and(|(_, rest)| rest.find('}').is_some_and(|at| at > 0));
    if config.url.is_cluster() && !tagged {
        return Err(option(
            "prefix",
            "a prefix with a {tag}, so that a cluster keeps all keys together",
        ));
    }
    if let Some(timeout) = options.millis(&["connect_timeout", "connectTimeout"])? {
        config.connect_timeout = timeout;
    }
    if let Some(timeout) = options.millis(&["probe_timeout", "probeTimeout"])? {
        config.probe_timeout = timeout;
    }
    config.fallback = match options
        .text(&["fallback"])?
        .map(str::to_ascii_lowercase)
        .as_deref()
    {
        None => None,
        Some("memory") => Some(Fallback::Memory),
        Some("sqlite" | "redis") => Some(Fallback::Sqlite(sqlite(options, &FALLBACK_NAMES)?)),
        Some(_) => return Err(option("fallback", "\"sqlite\" or \"memory\"")),
    };
    Ok(config)
}

fn default_ttl(options: &Options<'_>) -> Result<Option<u64>, ConfigError> {
    let Some((name, value)) = options.find(&["default_ttl", "defaultTtl"]) else {
        return Ok(Some(DEFAULT_TTL_MS));
    };
    match parse_ttl(&value.to_string()) {
        Some(Ttl::Millis(ttl_ms)) => Ok(Some(ttl_ms)),
        Some(Ttl::Never) => Ok(None),
        Some(Ttl::StoreDefault) => Ok(Some(DEFAULT_TTL_MS)),
        None => Err(option(
            name,
            "seconds, a duration such as \"7d\", or \"never\"",
        )),
    }
}

/// Options by name; the first alias that is there counts.
struct Options<'a>(Option<&'a serde_json::Map<String, Value>>);

impl<'a> Options<'a> {
    fn new(value: &'a Value) -> Result<Self, ConfigError> {
        match value {
            Value::Null => Ok(Self(None)),
            Value::Object(map) => Ok(Self(Some(map))),
            _ => Err(option("", "an object")),
        }
    }

    fn find(&self, names: &[&'static str]) -> Option<(&'static str, &'a Value)> {
        let of_name = |name: &&'static str| {
            self.0?
                .get(*name)
                .filter(|it| !it.is_null())
                .map(|it| (*name, it))
        };
        names.iter().find_map(of_name)
    }

    fn text(&self, names: &[&'static str]) -> Result<Option<&'a str>, ConfigError> {
        match self.find(names) {
            None => Ok(None),
            Some((_, Value::String(text))) if !text.is_empty() => Ok(Some(text)),
            Some((name, _)) => Err(option(name, "a text that is not empty")),
        }
    }

    fn bytes(&self, name: &'static str) -> Result<Option<u64>, ConfigError> {
        match self.find(&[name]) {
            None => Ok(None),
            Some((_, value)) => value
                .as_u64()
                .map(Some)
                .ok_or(option(name, "a number of bytes")),
        }
    }

    /// A number of milliseconds, or a duration with its unit.
    fn millis(&self, names: &[&'static str]) -> Result<Option<Duration>, ConfigError> {
        let Some((name, value)) = self.find(names) else {
            return Ok(None);
        };
        let millis = match value {
            Value::Number(number) => number.as_f64().filter(|ms| *ms > 0.0).map(|ms| ms as u64),
            other => parse_duration_ms(&other.to_string()),
        };
        let millis = millis.filter(|ms| (1..=MAX_TIMEOUT_MS).contains(ms));
        millis
            .map(|ms| Some(Duration::from_millis(ms)))
            .ok_or(option(name, "1 to 3600000 milliseconds"))
    }
}

fn option(option: &'static str, expected: &'static str) -> ConfigError {
    ConfigError::Option { option, expected }
}

/// How the option for the file of an SQLite store may be spelt.
pub const FILE_NAMES: [&str; 3] = ["filename", "file", "path"];
/// How the option for the file of an SQLite store that stands in may be spelt.
pub const FALLBACK_NAMES: [&str; 4] = [
    "fallback_filename",
    "fallbackFilename",
    "fallback_path",
    "fallbackPath",
];
/// The file of an SQLite store that names none.
pub const DEFAULT_FILE: &str = "tyo-mq.sqlite";
const DEFAULT_URL: &str = "redis://127.0.0.1:6379";
const PREFIX: &str = "tyo-mq:queue";
const CLUSTER_PREFIX: &str = "{tyo-mq:queue}";
const DEFAULT_TTL_MS: u64 = 86_400_000;
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_TIMEOUT_MS: u64 = 3_600_000;

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
