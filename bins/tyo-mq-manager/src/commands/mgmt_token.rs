//! `mgmt-token`: tokens of programs that create realms.

use tyo_mq_auth::json::{Object, Value};

use crate::app::{App, is_dry_run, new_secret};
use crate::call::Request;
use crate::cli::{MgmtTokenAdd, MgmtTokenCommand};
use crate::exit::Failure;
use crate::output::{field, objects, table};

/// `mgmt-token`.
pub(super) async fn run(app: &App, command: MgmtTokenCommand) -> Result<(), Failure> {
    match command {
        MgmtTokenCommand::List => list(app).await,
        MgmtTokenCommand::Add(args) => add(app, &args).await,
        MgmtTokenCommand::Revoke { hash } => {
            app.confirm(&format!("Revoke management token {hash}?"))?;
            let request =
                Request::command("revoke_management_token").with("token_hash", hash.as_str());
            app.change(request, |_| format!("management token {hash} is revoked"))
                .await
        }
    }
}

async fn list(app: &App) -> Result<(), Failure> {
    let settings = app.ask(&Request::command("get")).await?;
    let settings = settings.get("settings").and_then(Value::as_object);
    let tokens = settings.and_then(|settings| settings.get("management_tokens"));
    let tokens = tokens.cloned().unwrap_or(Value::List(Vec::new()));
    let answer = Object::new()
        .with("ok", true)
        .with("management_tokens", tokens);
    app.output.answer(&answer, |answer| {
        let columns = ["realm_prefix", "ephemeral_only", "max_ttl", "token_hash"];
        let rows = objects(answer, "management_tokens")
            .into_iter()
            .map(|token| columns.map(|column| field(token, column)).into());
        let headers = ["prefix", "ephemeral only", "longest", "hash"];
        table(&headers, rows.collect(), "no management tokens")
    });
    Ok(())
}

async fn add(app: &App, args: &MgmtTokenAdd) -> Result<(), Failure> {
    let told = app.secret_from(args.from_env.as_deref(), args.from_file.as_deref())?;
    let made = told.is_none().then(new_secret);
    let token = match (&told, &made) {
        (Some(secret), _) => secret.expose(),
        (None, Some(made)) => made,
        (None, None) => return Ok(()),
    };
    let prefix = &args.prefix;
    let request = Request::command("add_management_token")
        .with("token", token)
        .with("realm_prefix", prefix.as_str())
        .with_some("ephemeral_only", args.ephemeral_only.then_some(true))
        .with_some("max_ttl", args.max_ttl.as_deref());
    let mut answer = app.changed(request).await?;
    let mut said = format!("a program may create realms under {prefix:?}");
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
