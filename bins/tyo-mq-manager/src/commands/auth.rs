//! `auth`: authentication as a whole.

use tyo_mq_auth::json::{Object, Value};
use tyo_mq_client::Credentials;

use crate::app::App;
use crate::call::{Request, connect};
use crate::cli::{AuthCommand, SecretArgs, Switch};
use crate::exit::Failure;
use crate::output::field;

use super::realm_keys::{Given, given_secret, with_generated};

/// `auth`.
pub(super) async fn run(app: &App, command: AuthCommand) -> Result<(), Failure> {
    match command {
        AuthCommand::Enable => {
            let request = Request::command("set_global_auth").with("enabled", true);
            app.change(request, |_| "clients must authenticate".to_owned())
                .await
        }
        AuthCommand::Disable => {
            app.confirm("From then on everybody may do everything. Disable authentication?")?;
            let request = Request::command("set_global_auth").with("enabled", false);
            app.change(request, |_| "authentication is off".to_owned())
                .await
        }
        AuthCommand::Strict { switch } => {
            let is_on = switch == Switch::On;
            let request = Request::command("set_strict_auth").with("strict", is_on);
            let said = if is_on { "on" } else { "off" };
            app.change(request, |_| format!("strict authentication is {said}"))
                .await
        }
        AuthCommand::Verify => verify(app).await,
        AuthCommand::JwtSecret(args) => jwt_secret(app, &args).await,
        AuthCommand::HashTokens => {
            let request = Request::command("hash_tokens");
            app.change(request, |answer| {
                format!("{} tokens are kept as digests now", field(answer, "hashed"))
            })
            .await
        }
    }
}

async fn verify(app: &App) -> Result<(), Failure> {
    let answer = verify_with_token(app).await?;
    app.output.answer(&answer, |answer| {
        let (role, realm) = (field(answer, "role"), field(answer, "realm"));
        format!("the token is good: role {role} in realm {realm}")
    });
    Ok(())
}

/// Authenticates with the admin's token, and tells what it is good for.
pub(super) async fn verify_with_token(app: &App) -> Result<Object, Failure> {
    let token = app.target.admin_token()?;
    let client = connect(&app.target, app.patience).await?;
    let credentials = Credentials::token(token.expose());
    let granted = client.authenticate(&credentials).await;
    client.close().await;
    let granted = granted?;
    Ok(Object::new()
        .with("ok", true)
        .with("realm", granted.realm)
        .with("role", granted.role))
}

async fn jwt_secret(app: &App, args: &SecretArgs) -> Result<(), Failure> {
    let given = given_secret(app, args, "The global secret of JSON web tokens")?;
    if matches!(given, Given::Clear) {
        app.confirm("Tokens that it signed are good no longer. Clear the secret?")?;
    }
    let secret = given.value().map_or(Value::Null, Value::from);
    let request = Request::command("set_jwt_secret").with("jwt_secret", secret);
    let answer = app.changed(request).await?;
    with_generated(app, answer, &given, "jwt_secret", |is_set| {
        let state = if is_set { "set" } else { "cleared" };
        format!("the global secret is {state}")
    });
    Ok(())
}
