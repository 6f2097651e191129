//! The server program: flags, signals, exit codes; nothing else.
#![forbid(unsafe_code)]

mod banner;
mod flags;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Parser;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tyo_mq_server::{Environment, Loaded, Server, Settings, Source, StartOptions};

use flags::{ConfigTask, Flags, Task};

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
    let environment = Environment::load().context("cannot read the environment file")?;
    let file = flags.settings_file(&environment);
    let loaded = load(file.as_deref())?;
    for warning in &loaded.warnings {
        eprintln!("tyo-mq: warning: {warning}");
    }
    let mut options = match file {
        Some(file) => StartOptions::with_file(file, &loaded),
        None => StartOptions::default(),
    };
    let settings = flags.apply(loaded.settings.clone(), &environment)?;
    options.environment = environment;
    if let Some(Task::Config { task }) = &flags.task {
        let ConfigTask::Explain { key } = task;
        return explain(key, &loaded, &settings, options.settings_file.as_deref());
    }
    if flags.check_config {
        println!("settings are good");
        return Ok(());
    }
    let runtime = runtime(&settings)?;
    match &flags.task {
        Some(Task::Backup { to }) => {
            runtime.block_on(tyo_mq_server::backup(&settings, to))?;
            println!("copied to {}", to.display());
            Ok(())
        }
        _ => runtime.block_on(serve(&settings, options)),
    }
}

fn runtime(settings: &Settings) -> anyhow::Result<Runtime> {
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        tracing::warn!(%error, "cannot raise the number of open files");
    }
    let mut builder = Builder::new_multi_thread();
    if settings.workers > 0 {
        builder.worker_threads(settings.workers);
    }
    let runtime = builder.enable_all().build();
    runtime.context("cannot start the runtime")
}

fn explain(
    key: &str,
    loaded: &Loaded,
    settings: &Settings,
    file: Option<&Path>,
) -> anyhow::Result<()> {
    let Some(explained) = tyo_mq_server::explain(key, loaded, settings) else {
        match tyo_mq_server::setting_suggestion(key) {
            Some(near) => bail!("there is no setting {key}; did you mean {near}?"),
            None => bail!("there is no setting {key}"),
        }
    };
    let file = file.map(Path::display).map(|file| file.to_string());
    let source = match explained.source {
        Source::Default => "the default".to_owned(),
        Source::Override => "a flag or the environment".to_owned(),
        Source::File { line } => format!("{}, line {line}", file.unwrap_or_default()),
    };
    let value = explained.value.unwrap_or_else(|| "not set".to_owned());
    println!("{key} = {value}\n  from {source}");
    Ok(())
}

fn load(file: Option<&Path>) -> anyhow::Result<Loaded> {
    let Some(path) = file else {
        return Ok(Loaded::without_file());
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

async fn serve(settings: &Settings, options: StartOptions) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot watch for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot watch for SIGTERM")?;
    let mut hang_up = signal(SignalKind::hangup()).context("cannot watch for SIGHUP")?;
    let server = Server::start_with(settings, options).await?;
    banner::print(settings, &server);
    let reload = server.reloader();
    server
        .run(async {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => break,
                    _ = terminate.recv() => break,
                    _ = hang_up.recv() => reload(),
                }
            }
            tracing::info!("stopping");
        })
        .await;
    tracing::info!("stopped");
    Ok(())
}
