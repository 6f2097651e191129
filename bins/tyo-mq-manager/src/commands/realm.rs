//! `realm`.

use tyo_mq_auth::json::{Object, Value};

use crate::app::{App, is_dry_run, new_secret, rest_of_page};
use crate::call::{Request, now_ms};
use crate::cli::{Acceptance, Access, E2ee, Lifetime, Page, Permission, RealmAdd, RealmCommand};
use crate::exit::Failure;
use crate::output::{field, fields, note, objects, show, table};

use super::{is_unknown_command, paged, realm_keys};

/// `realm`.
pub(super) async fn run(app: &App, command: RealmCommand) -> Result<(), Failure> {
    match command {
        RealmCommand::List { prefix, page } => list(app, prefix.as_deref(), &page).await,
        RealmCommand::Show { name } => show_one(app, &name).await,
        RealmCommand::Add(args) => add(app, &args).await,
        RealmCommand::Rename { from, to } => rename(app, &from, &to).await,
        RealmCommand::Remove { name } => remove(app, &name).await,
        RealmCommand::SetKey(args) => realm_keys::set_key(app, &args).await,
        RealmCommand::SetManagerKey { name, secret } => {
            realm_keys::set_manager_key(app, &name, &secret).await
        }
        RealmCommand::SetLifetime {
            name,
            lifetime,
            ttl,
        } => set_lifetime(app, &name, lifetime, ttl.as_deref()).await,
        other => set_policy(app, other).await,
    }
}

async fn set_policy(app: &App, command: RealmCommand) -> Result<(), Failure> {
    let (name, request) = match command {
        RealmCommand::SetAuth { name, access } => {
            let request = Request::command("set_realm_auth");
            (name, request.with("required", access == Access::Required))
        }
        RealmCommand::SetAcceptance { name, acceptance } => {
            let request = Request::command("set_realm_acceptance");
            let is_required = acceptance == Acceptance::Required;
            (name, request.with("required", is_required))
        }
        RealmCommand::SetAnonymous { name, permission } => {
            let request = Request::command("set_realm_anonymous");
            let is_allowed = permission == Permission::Allow;
            (name, request.with("allowed", is_allowed))
        }
        RealmCommand::SetE2ee { name, policy } => {
            let request = Request::command("set_realm_e2ee");
            (name, request.with("e2ee", policy.name()))
        }
        _ => return Ok(()),
    };
    let request = request.with("realm", name.as_str());
    app.change(request, |answer| after_change(answer, &name))
        .await
}

/// The realm as it is now.
fn after_change(answer: &Object, name: &str) -> String {
    let settings = answer.get("settings").and_then(Value::as_object);
    let realms = settings.and_then(|settings| settings.get("realms")?.as_object());
    match realms.and_then(|realms| realms.get(name)?.as_object()) {
        Some(config) => describe(name, config),
        None => format!("realm {name:?} is changed"),
    }
}

async fn list(app: &App, prefix: Option<&str>, page: &Page) -> Result<(), Failure> {
    let listed = app
        .ask(&paged("list_realms", page).with_some("prefix", prefix))
        .await;
    let answer = if is_unknown_command(&listed) {
        from_settings(app, prefix).await?
    } else {
        listed?
    };
    app.output.answer(&answer, list_view);
    if let (Some(rest), false) = (rest_of_page(&answer, "realms"), app.output.json) {
        note(&rest);
    }
    Ok(())
}

/// The list as a broker without `list_realms` tells it, out of its settings.
async fn from_settings(app: &App, prefix: Option<&str>) -> Result<Object, Failure> {
    let settings = app.ask(&Request::command("get")).await?;
    let settings = settings.get("settings").and_then(Value::as_object);
    let realms = settings.and_then(|settings| settings.get("realms")?.as_object());
    let mut list: Vec<Value> = Vec::new();
    for (name, config) in realms.into_iter().flat_map(Object::iter) {
        let (name, Some(config)) = (name.to_lossy(), config.as_object()) else {
            continue;
        };
        if name.starts_with(prefix.unwrap_or_default()) {
            list.push(config.clone().with("realm", name).into());
        }
    }
    let total = list.len();
    Ok(Object::new()
        .with("ok", true)
        .with("realms", list)
        .with("total", total))
}

/// Realms, one a line.
fn list_view(answer: &Object) -> String {
    let rows = objects(answer, "realms").into_iter().map(|realm| {
        vec![
            field(realm, "realm"),
            access(realm),
            key_state(realm, "manager_key_configured"),
            key_state(realm, "key_configured"),
            acceptance(realm),
            lifetime(realm),
        ]
    });
    let headers = ["realm", "auth", "manager key", "key", "acceptance", "ends"];
    table(&headers, rows.collect(), "no realms")
}

async fn show_one(app: &App, name: &str) -> Result<(), Failure> {
    let page = Page {
        limit: 1000,
        offset: 0,
    };
    let request = paged("list_realms", &page).with("prefix", name);
    let listed = app.ask(&request).await;
    let answer = if is_unknown_command(&listed) {
        from_settings(app, Some(name)).await?
    } else {
        listed?
    };
    let realm = objects(&answer, "realms")
        .into_iter()
        .find(|realm| realm.get("realm").and_then(Value::as_str) == Some(name))
        .ok_or_else(|| Failure::NotFound(format!("there is no realm {name:?}")))?;
    let answer = Object::new().with("ok", true).with("realm", realm.clone());
    app.output.answer(&answer, |_| describe(name, realm));
    Ok(())
}

/// A realm in full.
fn describe(name: &str, realm: &Object) -> String {
    fields(&[
        ("realm", crate::output::printable(name)),
        ("authentication", access(realm)),
        ("manager key", key_state(realm, "manager_key_configured")),
        ("key", key_state(realm, "key_configured")),
        ("key required", field(realm, "require_key")),
        ("acceptance", acceptance(realm)),
        ("anonymous", field(realm, "allow_anonymous")),
        ("encryption", field(realm, "e2ee")),
        ("validator", field(realm, "auth_url")),
        ("ends", lifetime(realm)),
    ])
}

fn access(realm: &Object) -> String {
    let is_open = realm.get("required").and_then(Value::as_bool) == Some(false);
    if is_open { "open" } else { "required" }.to_owned()
}

fn key_state(realm: &Object, name: &str) -> String {
    let is_set = realm.get(name).is_some_and(Value::is_truthy);
    if is_set { "set" } else { "-" }.to_owned()
}

fn acceptance(realm: &Object) -> String {
    match realm.get("require_acceptance").and_then(Value::as_bool) {
        Some(true) => "required".to_owned(),
        Some(false) => "waived".to_owned(),
        None => "-".to_owned(),
    }
}

fn lifetime(realm: &Object) -> String {
    let is_ephemeral = ["ephemeral", "temporary"]
        .iter()
        .any(|name| realm.get(name).is_some_and(Value::is_truthy));
    if !is_ephemeral {
        return "never".to_owned();
    }
    match realm.get("expires_at").and_then(Value::as_number) {
        Some(at_ms) => in_time(at_ms - now_ms() as f64),
        None => show(None),
    }
}

/// A time from now, in its two largest units.
fn in_time(left_ms: f64) -> String {
    if left_ms <= 0.0 {
        return "now".to_owned();
    }
    let seconds = (left_ms / 1000.0).ceil() as u64;
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("in {seconds}s"),
        (0, 0, _) => format!("in {minutes}m {seconds}s"),
        (0, _, _) => format!("in {hours}h {minutes}m"),
        _ => format!("in {days}d {hours}h"),
    }
}

async fn add(app: &App, args: &RealmAdd) -> Result<(), Failure> {
    let manager_key = args.generate_manager_key.then(new_secret);
    let key = args.generate_key.then(new_secret);
    let acceptance = args.acceptance.map(|given| given == Acceptance::Required);
    let request = Request::command("add_realm")
        .with("realm", args.name.as_str())
        .with("required", !args.open)
        .with_some("ephemeral", args.ephemeral.then_some(true))
        .with_some("ttl", args.ttl.as_deref())
        .with_some("require_acceptance", acceptance)
        .with_some("e2ee", args.e2ee.map(E2ee::name))
        .with_some("manager_key", manager_key.as_deref())
        .with_some("key", key.as_deref());
    let mut answer = app.changed(request).await?;
    let name = &args.name;
    let mut said = after_change(&answer, name);
    if is_dry_run(&answer) {
        said = format!("would add realm {name:?}");
    } else {
        for (field, secret) in [("manager_key", manager_key), ("key", key)] {
            if let Some(secret) = secret {
                said.push_str(&format!("\n{field}, shown once: {secret}"));
                answer.set(field, secret);
            }
        }
    }
    app.output.answer(&answer, |_| said);
    Ok(())
}

async fn rename(app: &App, from: &str, to: &str) -> Result<(), Failure> {
    app.confirm(&format!("Rename realm {from:?} to {to:?}?"))?;
    let request = Request::command("rename_realm")
        .with("from", from)
        .with("to", to);
    app.change(request, |_| format!("realm {from:?} is {to:?} now"))
        .await
}

async fn remove(app: &App, name: &str) -> Result<(), Failure> {
    app.confirm_name(
        &format!(
            "Realm {name:?} goes with its tokens, messages and dead letters; its clients are disconnected."
        ),
        name,
    )?;
    let request = Request::command("remove_realm").with("realm", name);
    app.change(request, |answer| {
        format!(
            "realm {name:?} is removed, {} tokens with it, {} clients disconnected",
            field(answer, "removed_tokens"),
            field(answer, "disconnected_sockets")
        )
    })
    .await
}

async fn set_lifetime(
    app: &App,
    name: &str,
    lifetime: Lifetime,
    ttl: Option<&str>,
) -> Result<(), Failure> {
    if lifetime == Lifetime::Permanent && ttl.is_some() {
        let message = "a permanent realm has no --ttl";
        return Err(Failure::Usage(message.to_owned()));
    }
    let request = Request::command("set_realm_lifetime")
        .with("realm", name)
        .with("ephemeral", lifetime == Lifetime::Ephemeral)
        .with_some("ttl", ttl);
    app.change(request, |answer| after_change(answer, name))
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(left_ms: f64, expected: &str) {
        assert_eq!(in_time(left_ms), expected);
    }

    #[test]
    fn times() {
        check(-1.0, "now");
        check(1.0, "in 1s");
        check(61_000.0, "in 1m 1s");
        check(7_260_000.0, "in 2h 1m");
        check(90_000_000.0, "in 1d 1h");
    }
}
