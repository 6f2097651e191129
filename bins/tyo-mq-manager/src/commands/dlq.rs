//! `dlq`: dead letters.

use tyo_mq_auth::json::{Object, Value};

use crate::app::App;
use crate::call::Request;
use crate::cli::DlqCommand;
use crate::exit::Failure;
use crate::output::{field, fields, objects, table};

/// `dlq`.
pub(super) async fn run(app: &App, command: DlqCommand) -> Result<(), Failure> {
    match command {
        DlqCommand::List => list(app, app.realm()).await,
        DlqCommand::Show { id } => show(app, &id).await,
        DlqCommand::Replay { ids } => each(app, "dlq_replay", &ids).await,
        DlqCommand::Discard { ids } => {
            app.confirm(&format!("Forget {} dead letters?", ids.len()))?;
            each(app, "dlq_discard", &ids).await
        }
    }
}

/// Shows the dead letters of a realm, or of all.
pub(crate) async fn list(app: &App, realm: Option<&str>) -> Result<(), Failure> {
    let answer = entries(app, realm).await?;
    app.output.answer(&answer, list_view);
    Ok(())
}

async fn entries(app: &App, realm: Option<&str>) -> Result<Object, Failure> {
    let request = Request::command("dlq_list").with_some("realm", realm);
    app.ask(&request).await
}

/// Dead letters, one a line.
fn list_view(answer: &Object) -> String {
    let columns = [
        "id",
        "realm",
        "event",
        "consumer",
        "reason",
        "dead_lettered_at",
    ];
    let rows = objects(answer, "entries")
        .into_iter()
        .map(|entry| columns.map(|column| field(entry, column)).into());
    let headers = ["id", "realm", "event", "consumer", "reason", "since"];
    table(&headers, rows.collect(), "no dead letters")
}

async fn show(app: &App, id: &str) -> Result<(), Failure> {
    let listed = entries(app, app.realm()).await?;
    let entry = objects(&listed, "entries")
        .into_iter()
        .find(|entry| entry.get("id").and_then(Value::as_str) == Some(id))
        .ok_or_else(|| Failure::NotFound(format!("there is no dead letter {id:?}")))?;
    let answer = Object::new().with("ok", true).with("entry", entry.clone());
    app.output.answer(&answer, |_| {
        let names = [
            "id",
            "realm",
            "event",
            "consumer",
            "producer",
            "reason",
            "created_at",
            "dead_lettered_at",
            "expires_at",
            "message",
        ];
        let shown: Vec<_> = names.map(|name| (name, field(entry, name))).into();
        fields(&shown)
    });
    Ok(())
}

/// Does the same with each; the first that fails ends it, after those before it are shown.
async fn each(app: &App, command: &str, ids: &[String]) -> Result<(), Failure> {
    let mut done: Vec<Value> = Vec::new();
    let mut failed = None;
    for id in ids {
        let request = Request::command(command)
            .with("msg_id", id.as_str())
            .with_some("realm", app.realm());
        match app.changed(request).await {
            Ok(answer) => done.push(answer.into()),
            Err(failure) => {
                failed = Some(failure);
                break;
            }
        }
    }
    if let Some(failure) = failed {
        for answer in done.iter().filter_map(Value::as_object) {
            crate::output::note(&outcome(command, answer));
        }
        return Err(failure);
    }
    let answer = Object::new().with("ok", true).with("results", done);
    app.output.answer(&answer, |answer| {
        let lines: Vec<_> = objects(answer, "results")
            .into_iter()
            .map(|result| outcome(command, result))
            .collect();
        lines.join("\n")
    });
    Ok(())
}

fn outcome(command: &str, answer: &Object) -> String {
    let id = field(answer, "msg_id");
    if crate::app::is_dry_run(answer) {
        return format!("{id}: would be accepted; nothing was changed");
    }
    match command {
        "dlq_replay" => format!("{id} is queued again as {}", field(answer, "new_msg_id")),
        _ if answer.get("discarded") == Some(&Value::Bool(false)) => format!("{id} was not there"),
        _ => format!("{id} is forgotten"),
    }
}
