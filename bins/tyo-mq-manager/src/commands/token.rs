//! `token`: tokens of clients.

use tyo_mq_auth::json::{Object, Value};

use crate::app::{App, is_dry_run, new_secret, rest_of_page};
use crate::call::Request;
use crate::cli::{Page, TokenAdd, TokenCommand, TokenRevoke};
use crate::exit::Failure;
use crate::output::{field, note, objects, table};

use super::{is_unknown_command, paged};

/// `token`.
pub(super) async fn run(app: &App, command: TokenCommand) -> Result<(), Failure> {
    match command {
        TokenCommand::List(page) => list(app, &page).await,
        TokenCommand::Add(args) => add(app, &args).await,
        TokenCommand::Revoke(args) => revoke(app, &args).await,
    }
}

async fn list(app: &App, page: &Page) -> Result<(), Failure> {
    let request = paged("list_tokens", page).with_some("realm", app.realm());
    let listed = app.ask(&request).await;
    let answer = if is_unknown_command(&listed) {
        from_settings(app).await?
    } else {
        listed?
    };
    app.output
        .answer(&answer, |answer| list_view(answer, "tokens"));
    if let (Some(rest), false) = (rest_of_page(&answer, "tokens"), app.output.json) {
        note(&rest);
    }
    Ok(())
}

/// The list as a broker without `list_tokens` tells it, out of its settings.
async fn from_settings(app: &App) -> Result<Object, Failure> {
    let settings = app.ask(&Request::command("get")).await?;
    let settings = settings.get("settings").and_then(Value::as_object);
    let tokens: Vec<Value> = settings
        .map(|settings| objects(settings, "tokens"))
        .unwrap_or_default()
        .into_iter()
        .filter(|token| {
            let realm = token.get("realm").and_then(Value::as_str);
            app.realm().is_none_or(|wanted| realm == Some(wanted))
        })
        .map(|token| token.clone().into())
        .collect();
    let total = tokens.len();
    Ok(Object::new()
        .with("ok", true)
        .with("tokens", tokens)
        .with("total", total))
}

fn list_view(answer: &Object, name: &str) -> String {
    let columns = ["realm", "role", "client_id", "client_name", "token_hash"];
    let rows = objects(answer, name)
        .into_iter()
        .map(|token| columns.map(|column| field(token, column)).into());
    let headers = ["realm", "role", "client", "name", "hash"];
    table(&headers, rows.collect(), "no tokens")
}

async fn add(app: &App, args: &TokenAdd) -> Result<(), Failure> {
    let realm = app.required_realm()?;
    let told = app.secret_from(args.from_env.as_deref(), args.from_file.as_deref())?;
    let made = told.is_none().then(new_secret);
    let token = match (&told, &made) {
        (Some(secret), _) => secret.expose(),
        (None, Some(made)) => made,
        (None, None) => return Ok(()),
    };
    let request = Request::command("add_token")
        .with("token", token)
        .with("realm", realm)
        .with("role", args.role.as_str())
        .with_some("client_id", args.client_id.as_deref())
        .with_some("client_name", args.client_name.as_deref());
    let mut answer = app.changed(request).await?;
    let mut said = format!("a client is admitted to realm {realm:?} as {}", args.role);
    match made {
        _ if is_dry_run(&answer) => said = format!("would be so: {said}"),
        Some(token) => {
            said.push_str(&format!("; its token, shown once:\n{token}"));
            answer.set("token", token);
        }
        None => {}
    }
    app.output.answer(&answer, |_| said);
    Ok(())
}

async fn revoke(app: &App, args: &TokenRevoke) -> Result<(), Failure> {
    let request =
        Request::command("revoke_token").with_some("allow_admin", args.allow_admin.then_some(true));
    let (request, what) = match (&args.hash, &args.client_id) {
        (Some(hash), _) => {
            let request = request.with("token_hash", hash.as_str());
            (request, format!("token {hash}"))
        }
        (None, Some(client)) => {
            let realm = app.required_realm()?;
            let request = request
                .with("realm", realm)
                .with("client_id", client.as_str());
            (
                request,
                format!("all tokens of {client:?} in realm {realm:?}"),
            )
        }
        (None, None) => return Err(Failure::Usage("which token?".to_owned())),
    };
    app.confirm(&format!("Revoke {what}?"))?;
    app.change(request, |answer| {
        format!("revoked:\n{}", list_view(answer, "revoked"))
    })
    .await
}
