//! The server program: flags, signals, exit codes; nothing else.
#![forbid(unsafe_code)]

mod banner;
mod flags;

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use tyo_mq_server::{Loaded, Server, Settings};

use flags::Flags;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let flags = Flags::parse();
    flags.start_log();
    match run(&flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tyo-mq: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(flags: &Flags) -> anyhow::Result<()> {
    if flags.print_default_config {
        print!("{}", tyo_mq_server::default_settings_document());
        return Ok(());
    }
    let loaded = load(flags)?;
    for warning in &loaded.warnings {
        eprintln!("tyo-mq: warning: {warning}");
    }
    let settings = flags.apply(loaded.settings)?;
    if flags.check_config {
        println!("settings are good");
        return Ok(());
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if settings.workers > 0 {
        builder.worker_threads(settings.workers);
    }
    let runtime = builder
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve(&settings))
}

fn load(flags: &Flags) -> anyhow::Result<Loaded> {
    let Some(path) = &flags.settings else {
        return Ok(Loaded {
            settings: Settings::default(),
            warnings: Vec::new(),
            created: false,
        });
    };
    let loaded = tyo_mq_server::load_settings(path)
        .with_context(|| format!("settings file {}", path.display()))?;
    if loaded.created {
        eprintln!(
            "tyo-mq: wrote a settings file with the defaults to {}",
            path.display()
        );
    }
    Ok(loaded)
}

async fn serve(settings: &Settings) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot watch for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot watch for SIGTERM")?;
    let server = Server::start(settings).await?;
    banner::print(settings, server.local_addr());
    server
        .run(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            tracing::info!("stopping");
        })
        .await;
    tracing::info!("stopped");
    Ok(())
}
