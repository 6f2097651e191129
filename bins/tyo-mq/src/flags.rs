//! Flags and environment of the program, laid over the settings file.

use std::io::IsTerminal;
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::bail;
use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use tyo_mq_server::{AuthStore, Environment, Settings};

/// A message broker that every Socket.IO client can talk to.
#[derive(Debug, Parser)]
#[command(name = "tyo-mq", version, about)]
pub(crate) struct Flags {
    /// Port to listen on [default: 17352]; 0 takes a free one [env: TYO_MQ_PORT]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,

    /// Address to listen on [default: all interfaces]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) host: Option<IpAddr>,

    /// Settings file (JSON); written with the defaults if it does not exist [env: TYO_MQ_SETTINGS_FILE]
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,

    /// Keep realms and tokens in this SQLite file, or in the usual one with `true` [env: TYO_MQ_AUTH_STORE]
    #[arg(long, value_name = "FILE")]
    auth_store: Option<String>,

    /// Check the settings and exit: 0 if they are good, 1 if not
    #[arg(long)]
    pub(crate) check_config: bool,

    /// Print the default settings as JSON and exit
    #[arg(long)]
    pub(crate) print_default_config: bool,

    /// What to log: a level (error, warn, info, debug, trace) or a filter such as `info,tyo_mq_core=debug`
    #[arg(
        long,
        value_name = "FILTER",
        default_value = "info",
        env = "TYO_MQ_LOG"
    )]
    pub(crate) log: EnvFilter,

    #[command(subcommand)]
    pub(crate) task: Option<Task>,
}

/// Something else to do than to serve.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Task {
    /// Look into the settings
    Config {
        /// What to do
        #[command(subcommand)]
        task: ConfigTask,
    },

    /// Copy the SQLite message store to a file, also while a broker uses it
    Backup {
        /// The copy
        to: PathBuf,
    },
}

/// What can be done with the settings.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ConfigTask {
    /// Say what a setting is and where that comes from
    Explain {
        /// The setting, with dots for nesting, such as `storage_options.filename`
        key: String,
    },
}

impl Flags {
    /// Starts writing the log to standard error.
    pub(crate) fn start_log(&self) {
        tracing_subscriber::fmt()
            .with_env_filter(self.log.clone())
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr)
            .init();
    }

    /// The settings file, if there is one.
    pub(crate) fn settings_file(&self, environment: &Environment) -> Option<PathBuf> {
        let from_environment = || environment.get("TYO_MQ_SETTINGS_FILE").map(PathBuf::from);
        self.settings.clone().or_else(from_environment)
    }

    /// The settings with what flags and environment say instead. The file's word on authentication counts.
    pub(crate) fn apply(
        &self,
        mut settings: Settings,
        environment: &Environment,
    ) -> anyhow::Result<Settings> {
        if let Some(text) = environment.get("TYO_MQ_PORT") {
            settings.port = match text.parse() {
                Ok(port) => port,
                Err(_) => bail!("TYO_MQ_PORT: expected a port, found {text:?}"),
            };
        }
        settings.port = self.port.unwrap_or(settings.port);
        settings.host = self.host.unwrap_or(settings.host);
        if let Some(text) = environment.get("TYO_MQ_MAX_HTTP_BUFFER_SIZE") {
            match text.parse() {
                Ok(bytes) if bytes > 0 => settings.max_http_buffer_size.0 = bytes,
                _ => {
                    bail!("TYO_MQ_MAX_HTTP_BUFFER_SIZE: expected a number of bytes, found {text:?}")
                }
            }
        }
        if environment.enables_auth() {
            settings.enable_auth_by_default();
        }
        let store = self.auth_store.as_deref();
        match store.or_else(|| environment.get("TYO_MQ_AUTH_STORE")) {
            None | Some("false") => {}
            Some("true") => settings.auth_store = AuthStore::Enabled(true),
            Some(file) => settings.auth_store = AuthStore::File(file.into()),
        }
        Ok(settings)
    }
}
