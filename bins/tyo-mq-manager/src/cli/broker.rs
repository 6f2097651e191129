//! Commands about the broker as a whole.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `settings`.
#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Show them, without secrets
    Get,
    /// Have the settings file read again
    Reload,
}

/// `auth`.
#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Clients must authenticate
    Enable,
    /// Everybody may do everything
    Disable,
    /// Whether a realm that requires authentication admits consumers without a token
    Strict {
        /// on: it does not
        switch: Switch,
    },
    /// Whether the admin's token is good, by authenticating with it
    Verify,
    /// Set or clear the secret of global JSON web tokens
    JwtSecret(super::SecretArgs),
    /// Keep digests of tokens only, where that suffices
    HashTokens,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    /// Yes
    On,
    /// No
    Off,
}

/// Which part of a list.
#[derive(Debug, Args)]
pub(crate) struct Page {
    /// The most entries to show, up to 1000
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: u64,
    /// Entries to skip
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) offset: u64,
}

/// `client`.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// List them, of all realms or of --realm
    #[command(alias = "ls")]
    List(Page),
    /// Disconnect one
    Disconnect {
        /// The socket, as `client list` shows it
        socket: String,
    },
}

/// `persistence`.
#[derive(Debug, Subcommand)]
pub(crate) enum PersistenceCommand {
    /// Show where messages are kept
    Show,
    /// Move all messages that are kept elsewhere, and keep new ones there; the broker goes on meanwhile
    Set(PersistenceSet),
}

/// `persistence set`.
#[derive(Debug, Args)]
pub(crate) struct PersistenceSet {
    /// The kind of store
    pub(crate) storage: Storage,
    /// SQLite: the file, in the broker's data folder
    #[arg(long, value_name = "FILE")]
    pub(crate) filename: Option<String>,
    /// Redis: variable that holds the URL, which may have a password in it
    #[arg(long, value_name = "VARIABLE", conflicts_with = "redis_url_file")]
    pub(crate) redis_url_env: Option<String>,
    /// Redis: file that holds the URL; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) redis_url_file: Option<PathBuf>,
    /// Redis: what its keys begin with
    #[arg(long, value_name = "PREFIX")]
    pub(crate) prefix: Option<String>,
    /// Seconds that a message without a lifetime is kept
    #[arg(long, value_name = "SECONDS")]
    pub(crate) default_ttl: Option<u64>,
    /// Any other of the broker's `storage_options`, such as durability=full; may be given several times
    #[arg(long = "option", value_name = "NAME=VALUE")]
    pub(crate) options: Vec<String>,
}

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Storage {
    /// Gone when the broker stops
    Memory,
    /// A file
    Sqlite,
    /// A Redis server
    Redis,
}

/// `limits`.
#[derive(Debug, Subcommand)]
pub(crate) enum LimitsCommand {
    /// Show them: the general ones, or those of --realm
    Get,
    /// Set some: the general ones, or those of --realm
    Set {
        /// NAME=NUMBER; NAME=none takes a limit away
        #[arg(required = true, value_name = "NAME=NUMBER")]
        limits: Vec<String>,
    },
}

/// `dlq`.
#[derive(Debug, Subcommand)]
pub(crate) enum DlqCommand {
    /// List them, of all realms or of --realm
    #[command(alias = "ls")]
    List,
    /// Show one in full
    Show {
        /// Its id
        id: String,
    },
    /// Deliver some anew
    Replay {
        /// Their ids
        #[arg(required = true)]
        ids: Vec<String>,
    },
    /// Forget some
    Discard {
        /// Their ids
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

/// `backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The file on the broker's machine, in its data folder; it must not exist
    pub(crate) file: String,
}

/// `smoke-test`.
#[derive(Debug, Args)]
pub(crate) struct SmokeTestArgs {
    /// Variable that holds a client's token [default: the admin's token, if it is known]
    #[arg(long, value_name = "VARIABLE", conflicts_with = "client_token_file")]
    pub(crate) client_token_env: Option<String>,
    /// File that holds a client's token; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) client_token_file: Option<PathBuf>,
    /// Use no token: ask for --realm, or for nothing
    #[arg(long, conflicts_with_all = ["client_token_env", "client_token_file"])]
    pub(crate) no_token: bool,
}
