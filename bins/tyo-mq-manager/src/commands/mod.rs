//! The commands: from arguments to requests, from answers to what is shown.

mod auth;
mod broker;
mod context;
mod dlq;
mod external_auth;
mod http;
mod legacy;
mod limits;
mod local;
mod mgmt_token;
mod realm;
mod realm_keys;
mod request;
mod smoke_test;
mod submit;
mod token;

use tyo_mq_auth::json::Object;

use crate::app::App;
use crate::call::Request;
use crate::cli::{Cli, Command, Page};
use crate::exit::Failure;
use crate::menu;

pub(crate) use dlq::list as list_dead_letters;
pub(crate) use request::show_next as show_next_request;

/// Does what the command line says.
pub(crate) async fn run(cli: Cli) -> Result<(), Failure> {
    let Cli { global, command } = cli;
    // These need neither broker nor secrets.
    let command = match command {
        Some(Command::Completion(args)) => {
            local::completion(&args);
            return Ok(());
        }
        Some(Command::Context(command)) => return context::run(&global, command),
        other => other,
    };
    let mut app = App::new(&global)?;
    app.asks |= matches!(command, Some(Command::Menu));
    let Some(command) = command else {
        return default_command(&app).await;
    };
    dispatch(&app, command).await
}

/// Does what a command says.
pub(crate) async fn dispatch(app: &App, command: Command) -> Result<(), Failure> {
    match command {
        Command::Settings(command) => broker::settings(app, command).await,
        Command::Auth(command) => auth::run(app, command).await,
        Command::Realm(command) => realm::run(app, command).await,
        Command::Token(command) => token::run(app, command).await,
        Command::Request(command) => request::run(app, command).await,
        Command::Client(command) => broker::client(app, command).await,
        Command::MgmtToken(command) => mgmt_token::run(app, command).await,
        Command::ExternalAuth(command) => external_auth::run(app, command).await,
        Command::Persistence(command) => broker::persistence(app, command).await,
        Command::Limits(command) => limits::run(app, command).await,
        Command::Dlq(command) => dlq::run(app, command).await,
        Command::Stats => broker::stats(app).await,
        Command::Audit(page) => broker::audit(app, &page).await,
        Command::Backup(args) => broker::backup(app, &args).await,
        Command::SmokeTest(args) => smoke_test::run(app, &args).await,
        Command::Health => http::health(app).await,
        Command::Metrics => http::metrics(app).await,
        Command::Jwt(command) => local::jwt(app, command),
        Command::Proof(command) => local::proof(app, command),
        Command::AdminAuth => legacy::admin_auth(app).await,
        Command::AuthRequest(args) => legacy::auth_request(app, args).await,
        Command::AuthManager(command) => legacy::auth_manager(app, command).await,
        Command::Menu => menu::run(app).await,
        Command::Completion(_) | Command::Context(_) => Ok(()),
    }
}

/// Without a command: the menu for people, the usage for scripts.
async fn default_command(app: &App) -> Result<(), Failure> {
    if app.prompt.is_terminal() {
        return menu::run(app).await;
    }
    Err(Failure::Usage(
        "what to do? see --help; `menu` asks line by line".to_owned(),
    ))
}

/// A command with the part of the list that was asked for.
fn paged(name: &str, page: &Page) -> Request {
    Request::command(name)
        .with("limit", page.limit)
        .with("offset", page.offset)
}

/// Whether the broker has no such command, as the reference has not.
fn is_unknown_command(result: &Result<Object, Failure>) -> bool {
    matches!(result, Err(Failure::Refused { code: 400, .. }))
}
