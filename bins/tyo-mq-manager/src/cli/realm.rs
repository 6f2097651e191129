//! Commands about realms and validators.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `realm`.
#[derive(Debug, Subcommand)]
pub(crate) enum RealmCommand {
    /// List them
    #[command(alias = "ls")]
    List {
        /// Those whose names begin so
        #[arg(long, value_name = "PREFIX")]
        prefix: Option<String>,
        #[command(flatten)]
        page: super::Page,
    },
    /// Show one
    Show {
        /// Its name
        name: String,
    },
    /// Create one
    Add(RealmAdd),
    /// Rename one, with its tokens
    Rename {
        /// Its name
        from: String,
        /// Its new name
        to: String,
    },
    /// Remove one with its tokens, messages and dead letters, and disconnect its clients
    #[command(alias = "rm")]
    Remove {
        /// Its name
        name: String,
    },
    /// Whether clients must authenticate
    SetAuth {
        /// Its name
        name: String,
        /// Whether they must
        access: Access,
    },
    /// Set or clear the key that consumers without a token present, or say whether they need it
    SetKey(RealmSetKey),
    /// Set or clear the key of the realm's manager
    SetManagerKey {
        /// Its name
        name: String,
        #[command(flatten)]
        secret: SecretArgs,
    },
    /// Whether producers without a token must be accepted first
    SetAcceptance {
        /// Its name
        name: String,
        /// Whether they must
        acceptance: Acceptance,
    },
    /// Whether clients without a name are admitted
    SetAnonymous {
        /// Its name
        name: String,
        /// Whether they are
        permission: Permission,
    },
    /// Whether it ends by itself
    SetLifetime {
        /// Its name
        name: String,
        /// Whether it does
        lifetime: Lifetime,
        /// When, such as 30m, 2h or 7d from now
        #[arg(long, value_name = "TIME")]
        ttl: Option<String>,
    },
    /// Whether messages must be encrypted from end to end
    SetE2ee {
        /// Its name
        name: String,
        /// Whether they must
        policy: E2ee,
    },
}

/// `realm add`.
#[derive(Debug, Args)]
pub(crate) struct RealmAdd {
    /// Its name
    pub(crate) name: String,
    /// Clients need not authenticate
    #[arg(long)]
    pub(crate) open: bool,
    /// It ends by itself
    #[arg(long)]
    pub(crate) ephemeral: bool,
    /// It ends after such a time: 30m, 2h, 7d
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl: Option<String>,
    /// Whether producers without a token must be accepted first
    #[arg(long, value_name = "WHETHER")]
    pub(crate) acceptance: Option<Acceptance>,
    /// Whether messages must be encrypted from end to end
    #[arg(long, value_name = "POLICY")]
    pub(crate) e2ee: Option<E2ee>,
    /// Give it a new key for its manager, and show it once
    #[arg(long)]
    pub(crate) generate_manager_key: bool,
    /// Give it a new key for its consumers, and show it once
    #[arg(long)]
    pub(crate) generate_key: bool,
}

/// `realm set-key`.
#[derive(Debug, Args)]
pub(crate) struct RealmSetKey {
    /// Its name
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    /// Whether consumers without a token need the key; alone, it leaves the key as it is
    #[arg(long, value_name = "WHETHER")]
    pub(crate) require_key: Option<bool>,
}

/// A secret, which is never on the command line.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct SecretArgs {
    /// Make a new one, and show it once
    #[arg(long)]
    pub(crate) generate: bool,
    /// Take it away
    #[arg(long)]
    pub(crate) clear: bool,
    /// Variable that holds it
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) from_env: Option<String>,
    /// File that holds it; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) from_file: Option<PathBuf>,
}

impl SecretArgs {
    /// Whether a flag tells what is to become of the secret.
    pub(crate) fn says_something(&self) -> bool {
        self.generate || self.clear || self.from_env.is_some() || self.from_file.is_some()
    }
}

/// Whether clients must authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Access {
    /// They must
    Required,
    /// They need not
    Open,
}

/// Whether producers must be accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Acceptance {
    /// They must
    Required,
    /// They need not
    Waived,
}

/// Whether something is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Permission {
    /// It is
    Allow,
    /// It is not
    Deny,
}

/// Whether a realm ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lifetime {
    /// It does not
    Permanent,
    /// It does
    Ephemeral,
}

/// Whether messages must be encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum E2ee {
    /// Nobody looks
    Off,
    /// They may be
    Opportunistic,
    /// They must
    Required,
}

impl E2ee {
    /// As the broker names it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Opportunistic => "opportunistic",
            Self::Required => "required",
        }
    }
}

/// `external-auth`.
#[derive(Debug, Subcommand)]
pub(crate) enum ExternalAuthCommand {
    /// List the validators
    #[command(alias = "ls")]
    List,
    /// Have a validator judge tokens: of --realm, of a prefix, or all
    Set(ExternalAuthSet),
    /// Ask a validator no more: that of --realm, of a prefix, or the general one
    Clear(ValidatorScope),
}

/// Whose tokens.
#[derive(Debug, Args)]
pub(crate) struct ValidatorScope {
    /// Of realms whose names begin so
    #[arg(long, value_name = "PREFIX", conflicts_with = "realm")]
    pub(crate) prefix: Option<String>,
}

/// `external-auth set`.
#[derive(Debug, Args)]
pub(crate) struct ExternalAuthSet {
    /// Where it is asked
    #[arg(value_name = "VALIDATOR-URL")]
    pub(crate) validator: String,
    #[command(flatten)]
    pub(crate) scope: ValidatorScope,
    /// Variable that holds the secret that it is asked with [default: the one that is set stays]
    #[arg(long, value_name = "VARIABLE", conflicts_with_all = ["secret_file", "clear_secret"])]
    pub(crate) secret_env: Option<String>,
    /// File that holds the secret that it is asked with; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "clear_secret")]
    pub(crate) secret_file: Option<PathBuf>,
    /// Ask it without a secret
    #[arg(long)]
    pub(crate) clear_secret: bool,
}
