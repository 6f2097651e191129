//! Flags and environment of the program, laid over the settings file.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::bail;
use clap::Parser;
use tracing_subscriber::EnvFilter;
use tyo_mq_server::Settings;

/// A message broker that every Socket.IO client can talk to.
#[derive(Debug, Parser)]
#[command(name = "tyo-mq", version, about)]
pub(crate) struct Flags {
    /// Port to listen on [default: 17352]; 0 takes a free one
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,

    /// Address to listen on [default: all interfaces]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) host: Option<IpAddr>,

    /// Settings file (JSON); written with the defaults if it does not exist
    #[arg(long, value_name = "FILE", env = "TYO_MQ_SETTINGS_FILE")]
    pub(crate) settings: Option<PathBuf>,

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
}

impl Flags {
    /// Starts writing the log to standard error.
    pub(crate) fn start_log(&self) {
        tracing_subscriber::fmt()
            .with_env_filter(self.log.clone())
            .with_writer(std::io::stderr)
            .init();
    }

    /// The settings with what flags and environment say instead.
    pub(crate) fn apply(&self, mut settings: Settings) -> anyhow::Result<Settings> {
        if let Some(port) = self.port {
            settings.port = port;
        }
        if let Some(host) = self.host {
            settings.host = host;
        }
        if let Ok(text) = std::env::var("TYO_MQ_MAX_HTTP_BUFFER_SIZE") {
            match text.parse() {
                Ok(bytes) if bytes > 0 => settings.max_http_buffer_size.0 = bytes,
                _ => {
                    bail!("TYO_MQ_MAX_HTTP_BUFFER_SIZE: expected a number of bytes, found {text:?}")
                }
            }
        }
        if std::env::var("TYO_MQ_AUTH_ENABLED").is_ok_and(|text| text == "true") {
            bail!(
                "TYO_MQ_AUTH_ENABLED: this version does not support authentication yet; it would serve everybody"
            );
        }
        Ok(settings)
    }
}
