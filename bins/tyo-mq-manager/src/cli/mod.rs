//! The command line: flags that every command has, and the commands.

mod broker;
mod local;
mod realm;
mod token;

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

pub(crate) use broker::{
    AuthCommand, BackupArgs, ClientCommand, DlqCommand, LimitsCommand, Page, PersistenceCommand,
    PersistenceSet, SettingsCommand, SmokeTestArgs, Storage, Switch,
};
pub(crate) use local::{
    CompletionArgs, ContextAdd, ContextCommand, JwtCommand, JwtMint, LegacyManager, LegacyRequest,
    ProofCommand, ProofSign,
};
pub(crate) use realm::{
    Acceptance, Access, E2ee, ExternalAuthCommand, ExternalAuthSet, Lifetime, Permission, RealmAdd,
    RealmCommand, RealmSetKey, SecretArgs, ValidatorScope,
};
pub(crate) use token::{
    MgmtTokenAdd, MgmtTokenCommand, RequestCommand, RequestSubmit, TokenAdd, TokenCommand,
    TokenRevoke,
};

/// Administers a tyo-mq broker.
///
/// Commands are signed with the admin's token, or with a realm manager's key where that suffices. The secret itself
/// stays on this machine, but for `metrics`, `auth verify` and `smoke-test`, which send the token as the broker wants it.
#[derive(Debug, Parser)]
#[command(
    name = "tyo-mq-manager",
    version,
    disable_help_flag = true,
    after_help = crate::exit::HELP,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,

    /// What to do; without it, the menu
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Flags that every command has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// URL of the broker [env: TYO_MQ_URL] [default: http://localhost:17352]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// Host of the broker, instead of --url [env: TYO_MQ_HOST]
    #[arg(
        short = 'h',
        long,
        global = true,
        value_name = "HOST",
        conflicts_with = "url"
    )]
    pub(crate) host: Option<String>,

    /// Port of the broker, instead of --url [env: TYO_MQ_PORT]
    #[arg(
        short,
        long,
        global = true,
        value_name = "PORT",
        conflicts_with = "url"
    )]
    pub(crate) port: Option<u16>,

    /// Protocol of the broker, instead of --url [env: TYO_MQ_PROTOCOL]
    #[arg(
        short = 's',
        long,
        global = true,
        value_name = "PROTOCOL",
        conflicts_with = "url"
    )]
    pub(crate) protocol: Option<String>,

    /// PEM file of the authorities whose certificates are good for https, instead of the system's [env: TYO_MQ_CA_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,

    /// Saved context to use instead of the current one [env: TYO_MQ_CONTEXT]
    #[arg(short, long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// Realm that the command is for, where it takes one
    #[arg(short, long, global = true, value_name = "REALM")]
    pub(crate) realm: Option<String>,

    /// File with variables that the environment lacks [env: TYO_MQ_ENV_FILE] [default: .env]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) env_file: Option<PathBuf>,

    /// Variable that holds the admin's token [env: TYO_MQ_ADMIN_TOKEN_ENV] [default: TYO_MQ_ADMIN_TOKEN]
    #[arg(
        long,
        global = true,
        value_name = "VARIABLE",
        conflicts_with = "token_file"
    )]
    pub(crate) token_env: Option<String>,

    /// File that holds the admin's token; - is standard input
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Variable that holds a realm manager's key [env: TYO_MQ_REALM_MANAGER_KEY_ENV] [default: TYO_MQ_REALM_MANAGER_KEY]
    #[arg(
        long,
        global = true,
        value_name = "VARIABLE",
        conflicts_with = "manager_key_file"
    )]
    pub(crate) manager_key_env: Option<String>,

    /// File that holds a realm manager's key; - is standard input
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) manager_key_file: Option<PathBuf>,

    /// Who signs what both may sign [default: the realm's manager when there is a key, else the admin]
    #[arg(long = "as", global = true, value_name = "WHO")]
    pub(crate) sign_as: Option<SignAs>,

    /// Answer with one JSON document on standard output, also on failure
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// How long to wait for the broker, such as 500ms, 5s or 1m
    #[arg(long, global = true, value_name = "TIME", default_value = "5s", value_parser = crate::time::duration)]
    pub(crate) timeout: std::time::Duration,

    /// Do not ask for confirmation
    #[arg(short, long, global = true)]
    pub(crate) yes: bool,

    /// Show what would change, and change nothing
    #[arg(short = 'n', long, global = true)]
    pub(crate) dry_run: bool,

    /// Print help
    #[arg(long, global = true, action = ArgAction::Help)]
    help: Option<bool>,
}

/// Who signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SignAs {
    /// The global admin
    Admin,
    /// The realm's manager
    Realm,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The broker's settings
    #[command(subcommand, alias = "config")]
    Settings(SettingsCommand),
    /// Authentication as a whole
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Realms
    #[command(subcommand)]
    Realm(RealmCommand),
    /// Tokens of clients
    #[command(subcommand)]
    Token(TokenCommand),
    /// Requests for admission
    #[command(subcommand)]
    Request(RequestCommand),
    /// Connected clients
    #[command(subcommand)]
    Client(ClientCommand),
    /// Tokens of programs that create realms
    #[command(subcommand)]
    MgmtToken(MgmtTokenCommand),
    /// Validators elsewhere that judge tokens
    #[command(subcommand)]
    ExternalAuth(ExternalAuthCommand),
    /// Where messages are kept
    #[command(subcommand)]
    Persistence(PersistenceCommand),
    /// Rates and quotas
    #[command(subcommand)]
    Limits(LimitsCommand),
    /// Dead letters
    #[command(subcommand)]
    Dlq(DlqCommand),
    /// Producers, consumers and subscriptions of each realm
    Stats,
    /// What managers did lately
    Audit(Page),
    /// Copy the auth store to a file of the broker's machine
    Backup(BackupArgs),
    /// Send a message through the broker as clients do, and see it come
    SmokeTest(SmokeTestArgs),
    /// Whether the broker lives
    Health,
    /// The broker's metrics, as Prometheus reads them
    Metrics,
    /// JSON web tokens
    #[command(subcommand)]
    Jwt(JwtCommand),
    /// Signed proofs, for programs that send them themselves
    #[command(subcommand)]
    Proof(ProofCommand),
    /// Saved servers
    #[command(subcommand)]
    Context(ContextCommand),
    /// Completion for a shell
    Completion(CompletionArgs),
    /// What is done by hand most, by the numbers of a list
    Menu,

    /// As `auth verify`, with the output of the script of this name
    #[command(hide = true)]
    AdminAuth,
    /// As `request submit`, with the output of the script of this name
    #[command(hide = true)]
    AuthRequest(LegacyRequest),
    /// As `request`, with the output of the script of this name
    #[command(hide = true, subcommand)]
    AuthManager(LegacyManager),
}
