//! Commands about the broker as a whole: settings, clients, persistence, statistics, audit trail, backup.

use tyo_mq_auth::json::{Object, Value};

use crate::app::{App, rest_of_page};
use crate::call::Request;
use crate::cli::{
    BackupArgs, ClientCommand, Page, PersistenceCommand, PersistenceSet, SettingsCommand, Storage,
};
use crate::exit::Failure;
use crate::output::{all_fields, field, note, objects, printable, show, table};

use super::paged;

/// `settings`.
pub(super) async fn settings(app: &App, command: SettingsCommand) -> Result<(), Failure> {
    match command {
        SettingsCommand::Get => {
            let answer = app.ask(&Request::command("get")).await?;
            app.output.answer(&answer, |answer| {
                let settings = answer.get("settings").unwrap_or(&Value::Null);
                settings.to_pretty_json()
            });
            Ok(())
        }
        SettingsCommand::Reload => {
            let request = Request::command("reload_settings");
            app.change(request, |_| "the settings file was read again".to_owned())
                .await
        }
    }
}

/// `client`.
pub(super) async fn client(app: &App, command: ClientCommand) -> Result<(), Failure> {
    match command {
        ClientCommand::List(page) => {
            let request = paged("list_clients", &page).with_some("realm", app.realm());
            let answer = app.ask(&request).await?;
            app.output.answer(&answer, clients_view);
            Ok(())
        }
        ClientCommand::Disconnect { socket } => {
            app.confirm(&format!("Disconnect {socket:?}?"))?;
            let request = Request::command("disconnect_client").with("socket", socket.as_str());
            app.change(request, |_| format!("{socket:?} is disconnected"))
                .await
        }
    }
}

/// Clients, one a line; whatever the broker tells of them is a column.
fn clients_view(answer: &Object) -> String {
    let clients = objects(answer, "clients");
    let mut columns: Vec<String> = Vec::new();
    for client in &clients {
        for (name, _) in client.iter() {
            let name = name.to_lossy();
            if !columns.contains(&name) {
                columns.push(name);
            }
        }
    }
    let rows = clients
        .iter()
        .map(|client| columns.iter().map(|column| field(client, column)).collect());
    let shown: Vec<String> = columns.iter().map(|column| printable(column)).collect();
    let headers: Vec<&str> = shown.iter().map(String::as_str).collect();
    table(&headers, rows.collect(), "no clients")
}

/// `persistence`.
pub(super) async fn persistence(app: &App, command: PersistenceCommand) -> Result<(), Failure> {
    match command {
        PersistenceCommand::Show => {
            let settings = app.ask(&Request::command("get")).await?;
            let answer = Object::new()
                .with("ok", true)
                .with("persistence", persistence_of(&settings));
            app.output.answer(&answer, persistence_view);
            Ok(())
        }
        PersistenceCommand::Set(args) => set_persistence(app, &args).await,
    }
}

async fn set_persistence(app: &App, args: &PersistenceSet) -> Result<(), Failure> {
    let url = app.secret_from(
        args.redis_url_env.as_deref(),
        args.redis_url_file.as_deref(),
    )?;
    let storage = match args.storage {
        Storage::Memory => "memory",
        Storage::Sqlite => "sqlite",
        Storage::Redis => "redis",
    };
    let options = storage_options(&args.options)?;
    app.confirm(&format!(
        "Move all messages that are kept to {storage}, and keep new ones there?"
    ))?;
    let request = Request::command("set_persistence")
        .with("storage", storage)
        .with("storage_options", options)
        .with_some("filename", args.filename.as_deref())
        .with_some("url", url.as_ref().map(|url| url.expose()))
        .with_some("prefix", args.prefix.as_deref())
        .with_some("default_ttl", args.default_ttl);
    app.change(request, |answer| {
        let in_force = answer.get("in_force").and_then(Value::as_str);
        format!(
            "messages are kept in {storage} {}",
            in_force.unwrap_or_default()
        )
    })
    .await
}

/// `NAME=VALUE` of each; a number, yes or no in JSON is one, anything else is text.
fn storage_options(given: &[String]) -> Result<Object, Failure> {
    let mut options = Object::new();
    for option in given {
        let (name, value) = option
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| Failure::Usage(format!("{option:?} is not NAME=VALUE")))?;
        let value = match Value::parse(value) {
            Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
            _ => Value::from(value),
        };
        options.set(name, value);
    }
    Ok(options)
}

fn persistence_of(answer: &Object) -> Value {
    let settings = answer.get("settings").and_then(Value::as_object);
    let persistence = settings.and_then(|settings| settings.get("persistence"));
    persistence.cloned().unwrap_or(Value::Null)
}

fn persistence_view(answer: &Object) -> String {
    let Some(persistence) = answer.get("persistence").and_then(Value::as_object) else {
        return "the broker does not tell".to_owned();
    };
    let mut shown = Object::new().with("storage", persistence.get("storage").cloned());
    let options = persistence
        .get("storage_options")
        .and_then(Value::as_object);
    for (name, value) in options.into_iter().flat_map(Object::iter) {
        shown.set(&name.to_lossy(), value.clone());
    }
    all_fields(&shown)
}

/// `stats`.
pub(super) async fn stats(app: &App) -> Result<(), Failure> {
    let answer = app.ask(&Request::command("stats")).await?;
    app.output.answer(&answer, stats_view);
    Ok(())
}

/// Realms, one a line, and the connections.
fn stats_view(answer: &Object) -> String {
    let empty = Object::new();
    let stats = answer.get("stats").and_then(Value::as_object);
    let stats = stats.unwrap_or(&empty);
    let Some(realms) = stats.get("realms").and_then(Value::as_object) else {
        return all_fields(stats);
    };
    let rows = [realms]
        .into_iter()
        .flat_map(Object::iter)
        .map(|(name, realm)| {
            let realm = realm.as_object().unwrap_or(&empty);
            vec![
                printable(&name.to_lossy()),
                online(realm, "producers"),
                online(realm, "consumers"),
                field(realm, "subscriptions"),
            ]
        });
    let headers = ["realm", "producers", "consumers", "subscriptions"];
    let realms = table(&headers, rows.collect(), "no realms");
    let connections = field(stats, "connections_current");
    let node = match stats.get("cluster_node_id") {
        Some(node) if node.is_truthy() => format!(", node {}", show(Some(node))),
        _ => String::new(),
    };
    format!("{realms}\n\nconnections: {connections}{node}")
}

/// How many of them are there, such as `1 of 3`.
fn online(realm: &Object, name: &str) -> String {
    match realm.get(name).and_then(Value::as_object) {
        Some(count) => format!("{} of {}", field(count, "online"), field(count, "total")),
        None => show(None),
    }
}

/// `audit`.
pub(super) async fn audit(app: &App, page: &Page) -> Result<(), Failure> {
    let answer = app.ask(&paged("audit", page)).await?;
    app.output.answer(&answer, |answer| {
        let columns = ["at", "actor", "action", "target", "ok", "code", "dry_run"];
        let rows = objects(answer, "entries")
            .into_iter()
            .map(|entry| columns.map(|column| field(entry, column)).into());
        let headers = ["at", "who", "what", "to", "done", "code", "dry run"];
        table(&headers, rows.collect(), "nothing was done lately")
    });
    if let (Some(rest), false) = (rest_of_page(&answer, "entries"), app.output.json) {
        note(&rest);
    }
    Ok(())
}

/// `backup`.
pub(super) async fn backup(app: &App, args: &BackupArgs) -> Result<(), Failure> {
    let request = Request::command("backup_auth_store").with("filename", args.file.as_str());
    app.change(request, |_| {
        format!("the auth store is copied to {}", args.file)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &[&str], expected: Option<&str>) {
        let given: Vec<_> = given.iter().map(|&option| option.to_owned()).collect();
        let options = storage_options(&given).ok();
        let options = options.map(|options| Value::from(options).to_json());
        assert_eq!(options.as_deref(), expected, "{given:?}");
    }

    #[test]
    fn options_of_a_store() {
        check(&[], Some("{}"));
        check(
            &[
                "durability=full",
                "probe_timeout=200",
                "a=true",
                "b=",
                "c=null",
            ],
            Some(r#"{"durability":"full","probe_timeout":200,"a":true,"b":"","c":"null"}"#),
        );
        check(&["x"], None);
        check(&["=x"], None);
    }
}
