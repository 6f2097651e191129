//! Commands about tokens, and about requests for them.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `token`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// List them, of all realms or of --realm
    #[command(alias = "ls")]
    List(super::Page),
    /// Admit a client
    Add(TokenAdd),
    /// Admit a client no more
    Revoke(TokenRevoke),
}

/// `token add`. Without a source of the token, a new one is made and shown once.
#[derive(Debug, Args)]
pub(crate) struct TokenAdd {
    /// What the client may do: producer, consumer, both, manager, admin
    #[arg(long, default_value = "both")]
    pub(crate) role: String,
    /// The client's id
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// The client's name
    #[arg(long, value_name = "NAME")]
    pub(crate) client_name: Option<String>,
    /// Variable that holds the token
    #[arg(long, value_name = "VARIABLE", conflicts_with = "from_file")]
    pub(crate) from_env: Option<String>,
    /// File that holds the token; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) from_file: Option<PathBuf>,
}

/// `token revoke`.
#[derive(Debug, Args)]
pub(crate) struct TokenRevoke {
    /// The token's digest, as `token list` shows it
    #[arg(required_unless_present = "client_id")]
    pub(crate) hash: Option<String>,
    /// All tokens of this client in --realm
    #[arg(long, value_name = "ID", conflicts_with = "hash")]
    pub(crate) client_id: Option<String>,
    /// Also a global admin's
    #[arg(long)]
    pub(crate) allow_admin: bool,
}

/// `mgmt-token`.
#[derive(Debug, Subcommand)]
pub(crate) enum MgmtTokenCommand {
    /// List them
    #[command(alias = "ls")]
    List,
    /// Let a program create realms
    Add(MgmtTokenAdd),
    /// Let a program create realms no more
    Revoke {
        /// The token's digest, as `mgmt-token list` shows it
        hash: String,
    },
}

/// `mgmt-token add`. Without a source of the token, a new one is made and shown once.
#[derive(Debug, Args)]
pub(crate) struct MgmtTokenAdd {
    /// What the realms' names must begin with
    pub(crate) prefix: String,
    /// Only realms that end by themselves
    #[arg(long)]
    pub(crate) ephemeral_only: bool,
    /// The longest time that such a realm may have, such as 1h
    #[arg(long, value_name = "TIME")]
    pub(crate) max_ttl: Option<String>,
    /// Variable that holds the token
    #[arg(long, value_name = "VARIABLE", conflicts_with = "from_file")]
    pub(crate) from_env: Option<String>,
    /// File that holds the token; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) from_file: Option<PathBuf>,
}

/// `request`.
#[derive(Debug, Subcommand)]
pub(crate) enum RequestCommand {
    /// Ask for admission to --realm
    Submit(RequestSubmit),
    /// Show the oldest one that waits, of all realms or of --realm
    Next,
    /// List those that wait, of all realms or of --realm
    #[command(alias = "ls")]
    List(super::Page),
    /// Grant one
    Approve {
        /// Its id
        id: String,
        /// Another role than the one that was asked for
        #[arg(long)]
        role: Option<String>,
    },
    /// Turn one down
    Reject {
        /// Its id
        id: String,
        /// What the client is told
        #[arg(long)]
        reason: Option<String>,
    },
    /// Show new ones as they come, until interrupted
    Watch {
        /// Time between looks
        #[arg(long, value_name = "TIME", default_value = "2s", value_parser = crate::time::duration)]
        every: std::time::Duration,
    },
}

/// `request submit`. Without a source of the token, a new one is made and shown once.
#[derive(Debug, Default, Args)]
pub(crate) struct RequestSubmit {
    /// What the client wants to do [env: TYO_MQ_ROLE] [default: both]
    #[arg(long)]
    pub(crate) role: Option<String>,
    /// The client's id [env: TYO_MQ_CLIENT_ID] [default: a new one]
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// The client's name [env: TYO_MQ_CLIENT_NAME] [default: its id]
    #[arg(long, value_name = "NAME")]
    pub(crate) client_name: Option<String>,
    /// File that holds the token; - is standard input [env: TYO_MQ_CLIENT_TOKEN holds the token itself]
    #[arg(long, value_name = "FILE")]
    pub(crate) client_token_file: Option<PathBuf>,
    /// The token itself; other users of this machine can see it there
    #[arg(
        long,
        value_name = "TOKEN",
        hide = true,
        conflicts_with = "client_token_file"
    )]
    pub(crate) client_token: Option<String>,
    /// What the manager wants to know: JSON, or text
    #[arg(long, value_name = "JSON")]
    pub(crate) challenge_response: Option<String>,
    /// Wait until it is decided
    #[arg(long)]
    pub(crate) wait: bool,
}
