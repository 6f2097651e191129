//! Commands that need no broker, and the names of the reference's scripts.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::Shell;

/// `context`.
#[derive(Debug, Subcommand)]
pub(crate) enum ContextCommand {
    /// List them
    #[command(alias = "ls")]
    List,
    /// Show one, without secrets
    Show {
        /// Its name [default: the current one]
        name: Option<String>,
    },
    /// Save a server: --url, --ca-file, --realm, --token-env, --token-file, --manager-key-env and --manager-key-file are kept
    Add(ContextAdd),
    /// Make one the current one
    Use {
        /// Its name
        name: String,
    },
    /// Forget one
    #[command(alias = "rm")]
    Remove {
        /// Its name
        name: String,
    },
}

/// `context add`.
#[derive(Debug, Args)]
pub(crate) struct ContextAdd {
    /// Its name
    pub(crate) name: String,
    /// Keep the admin's token itself in the file, which only you can read; it is asked for, or taken from where --token-env or --token-file say
    #[arg(long)]
    pub(crate) store_token: bool,
    /// Make it the current one
    #[arg(long = "use")]
    pub(crate) make_current: bool,
}

/// `jwt`.
#[derive(Debug, Subcommand)]
pub(crate) enum JwtCommand {
    /// Sign one with the manager's key of --realm, or with the global secret
    Mint(JwtMint),
}

/// `jwt mint`.
#[derive(Debug, Args)]
pub(crate) struct JwtMint {
    /// What its holder may do
    #[arg(long, default_value = "both")]
    pub(crate) role: String,
    /// How long it is good, such as 1h or 7d, or never for no end
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub(crate) expires: String,
    /// Whom it is for
    #[arg(long, value_name = "NAME")]
    pub(crate) subject: Option<String>,
    /// Variable that holds the global secret to sign with
    #[arg(long, value_name = "VARIABLE", conflicts_with = "secret_file")]
    pub(crate) secret_env: Option<String>,
    /// File that holds the global secret to sign with; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
}

/// `proof`.
#[derive(Debug, Subcommand)]
pub(crate) enum ProofCommand {
    /// Sign a body; the result is the payload to send
    Sign(ProofSign),
}

/// `proof sign`.
#[derive(Debug, Args)]
pub(crate) struct ProofSign {
    /// The event: AUTHORIZATION_NEXT, AUTHORIZATION_DECIDE or AUTH_MANAGEMENT_COMMAND
    pub(crate) action: String,
    /// The body, a JSON object; - is standard input
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) body: String,
    /// Milliseconds since 1970 [default: now]
    #[arg(long, value_name = "MS")]
    pub(crate) timestamp: Option<u64>,
    /// The nonce [default: a new one]
    #[arg(long, value_name = "TEXT")]
    pub(crate) nonce: Option<String>,
}

/// `completion`.
#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// `auth-request`.
#[derive(Debug, Args)]
pub(crate) struct LegacyRequest {
    #[command(flatten)]
    pub(crate) submit: super::RequestSubmit,
}

/// `auth-manager`.
#[derive(Debug, Subcommand)]
pub(crate) enum LegacyManager {
    /// Show the oldest request that waits
    Next,
    /// Grant one
    Approve {
        /// Its id
        id: String,
        /// The role
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
}
