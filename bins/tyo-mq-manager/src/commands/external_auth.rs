//! `external-auth`: validators elsewhere that judge tokens.

use tyo_mq_auth::json::{Object, Value};

use crate::app::App;
use crate::call::Request;
use crate::cli::{ExternalAuthCommand, ExternalAuthSet, ValidatorScope};
use crate::exit::Failure;
use crate::output::{field, objects, show, table};

/// `external-auth`.
pub(super) async fn run(app: &App, command: ExternalAuthCommand) -> Result<(), Failure> {
    match command {
        ExternalAuthCommand::List => list(app).await,
        ExternalAuthCommand::Set(args) => set(app, &args).await,
        ExternalAuthCommand::Clear(scope) => {
            let whose = whose(app, &scope);
            app.confirm(&format!("Ask the validator of {whose} no more?"))?;
            let request = scoped(app, &scope)
                .with("auth_url", "")
                .with("auth_secret", "");
            app.change(request, |_| format!("no validator judges {whose}"))
                .await
        }
    }
}

async fn set(app: &App, args: &ExternalAuthSet) -> Result<(), Failure> {
    let told = app.secret_from(args.secret_env.as_deref(), args.secret_file.as_deref())?;
    let secret = match &told {
        Some(secret) => Some(secret.expose()),
        None if args.clear_secret => Some(""),
        None => None,
    };
    let request = scoped(app, &args.scope)
        .with("auth_url", args.validator.as_str())
        .with_some("auth_secret", secret);
    let whose = whose(app, &args.scope);
    app.change(request, |_| format!("{} judges {whose}", args.validator))
        .await
}

fn scoped(app: &App, scope: &ValidatorScope) -> Request {
    let request = Request::command("set_external_auth");
    match &scope.prefix {
        Some(prefix) => request.with("realm_prefix", prefix.as_str()),
        None => request.with_some("realm", app.realm()),
    }
}

fn whose(app: &App, scope: &ValidatorScope) -> String {
    match (&scope.prefix, app.realm()) {
        (Some(prefix), _) => format!("tokens of realms under {prefix:?}"),
        (None, Some(realm)) => format!("tokens of realm {realm:?}"),
        (None, None) => "tokens that nobody else knows".to_owned(),
    }
}

async fn list(app: &App) -> Result<(), Failure> {
    let settings = app.ask(&Request::command("get")).await?;
    let empty = Object::new();
    let settings = settings.get("settings").and_then(Value::as_object);
    let list = validators(settings.unwrap_or(&empty));
    let answer = Object::new().with("ok", true).with("validators", list);
    app.output.answer(&answer, |answer| {
        let rows = objects(answer, "validators").into_iter().map(|validator| {
            let columns = ["scope", "name", "auth_url", "auth_secret_configured"];
            columns.map(|column| field(validator, column)).into()
        });
        let headers = ["scope", "of", "url", "secret"];
        table(&headers, rows.collect(), "no validators")
    });
    Ok(())
}

/// The general one, those by prefix, those of realms.
fn validators(settings: &Object) -> Vec<Value> {
    let mut list = Vec::new();
    if let Some(url) = settings.get("auth_url").filter(|url| url.is_truthy()) {
        let has_secret = settings.get("auth_secret").is_some_and(Value::is_truthy);
        list.push(validator("global", None, url, has_secret));
    }
    for entry in objects(settings, "external_validators") {
        let name = entry.get("realm_prefix");
        let url = entry.get("auth_url").unwrap_or(&Value::Null);
        list.push(validator(
            "prefix",
            name.map(|name| show(Some(name))),
            url,
            has_secret(entry),
        ));
    }
    let realms = settings.get("realms").and_then(Value::as_object);
    for (name, config) in realms.into_iter().flat_map(Object::iter) {
        let Some(config) = config.as_object() else {
            continue;
        };
        if let Some(url) = config.get("auth_url").filter(|url| url.is_truthy()) {
            let name = Some(name.to_lossy());
            list.push(validator("realm", name, url, has_secret(config)));
        }
    }
    list
}

fn has_secret(entry: &Object) -> bool {
    let configured = entry.get("auth_secret_configured");
    configured.is_some_and(Value::is_truthy)
}

fn validator(scope: &str, name: Option<String>, url: &Value, has_secret: bool) -> Value {
    Object::new()
        .with("scope", scope)
        .with("name", name)
        .with("auth_url", url.clone())
        .with("auth_secret_configured", has_secret)
        .into()
}
