//! Setting keys: where a new one comes from, and how one that was made is shown once.

use tyo_mq_auth::json::{Object, Value};
use tyo_mq_auth::secret::Secret;

use crate::app::{App, is_dry_run, new_secret};
use crate::call::Request;
use crate::cli::{RealmSetKey, SecretArgs};
use crate::exit::Failure;

/// What is to become of a secret.
#[derive(Debug)]
pub(super) enum Given {
    /// This one, which the user has.
    Known(Secret),
    /// This one, which was made just now.
    Made(String),
    /// None any more.
    Clear,
}

impl Given {
    /// The secret to send.
    pub(super) fn value(&self) -> Option<&str> {
        match self {
            Self::Known(secret) => Some(secret.expose()),
            Self::Made(secret) => Some(secret),
            Self::Clear => None,
        }
    }
}

/// What flags say; without any, the user is asked.
pub(super) fn given_secret(app: &App, args: &SecretArgs, what: &str) -> Result<Given, Failure> {
    if args.generate {
        return Ok(Given::Made(new_secret()));
    }
    if args.clear {
        return Ok(Given::Clear);
    }
    let told = app.secret_from(args.from_env.as_deref(), args.from_file.as_deref())?;
    if let Some(secret) = told {
        return Ok(Given::Known(secret));
    }
    if !app.asks {
        return Err(Failure::Usage(format!(
            "{what}: say --generate, --clear, --from-env or --from-file"
        )));
    }
    let typed = app.prompt.secret(&format!("{what} (not shown)"))?;
    if typed.is_empty() {
        return Err(Failure::Declined("nothing was changed".to_owned()));
    }
    Ok(Given::Known(Secret::new(&typed)))
}

/// Shows an answer, and a secret that was made, under its name.
pub(super) fn with_generated(
    app: &App,
    mut answer: Object,
    given: &Given,
    name: &str,
    say: impl FnOnce(bool) -> String,
) {
    let is_tried = is_dry_run(&answer);
    if let (Given::Made(secret), false) = (given, is_tried) {
        answer.set(name, secret.as_str());
    }
    app.output.answer(&answer, |_| {
        let said = say(given.value().is_some());
        match given {
            _ if is_tried => format!("would be so: {said}"),
            Given::Made(secret) => format!("{said}; this is shown once:\n{secret}"),
            Given::Known(_) | Given::Clear => said,
        }
    });
}

/// `realm set-key`.
pub(super) async fn set_key(app: &App, args: &RealmSetKey) -> Result<(), Failure> {
    let RealmSetKey {
        name,
        secret,
        require_key,
    } = args;
    if let (Some(required), false) = (require_key, secret.says_something()) {
        return set_require_key(app, name, *required).await;
    }
    let given = given_secret(app, secret, "The key of the realm's consumers")?;
    let key = given.value().map_or(Value::Null, Value::from);
    let request = Request::command("set_realm_key")
        .with("realm", name.as_str())
        .with("key", key)
        .with_some("require_key", *require_key);
    let answer = app.changed(request).await?;
    with_generated(app, answer, &given, "key", |is_set| {
        let state = if is_set { "has" } else { "has no" };
        format!("realm {name:?} {state} key for its consumers")
    });
    Ok(())
}

async fn set_require_key(app: &App, name: &str, required: bool) -> Result<(), Failure> {
    let request = Request::command("set_realm_key")
        .with("realm", name)
        .with("require_key", required);
    app.change(request, |_| {
        let need = if required { "need" } else { "do not need" };
        format!("consumers of realm {name:?} without a token {need} its key")
    })
    .await
}

/// `realm set-manager-key`.
pub(super) async fn set_manager_key(
    app: &App,
    name: &str,
    args: &SecretArgs,
) -> Result<(), Failure> {
    let given = given_secret(app, args, "The key of the realm's manager")?;
    app.confirm(&format!(
        "A key that realm {name:?} has is good no longer, nor are tokens that it signed. Go on?"
    ))?;
    let key = given.value().map_or(Value::Null, Value::from);
    let request = Request::command("set_realm_manager_key")
        .with("realm", name)
        .with("manager_key", key);
    let answer = app.changed(request).await?;
    with_generated(app, answer, &given, "manager_key", |is_set| {
        let state = if is_set { "has" } else { "has no" };
        format!("realm {name:?} {state} key for its manager")
    });
    Ok(())
}
