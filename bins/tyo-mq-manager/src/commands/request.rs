//! `request`: requests for admission, as a manager sees them.

use std::collections::HashSet;
use std::time::Duration;

use tyo_mq_auth::json::{Object, Value};

use crate::app::{App, rest_of_page};
use crate::call::Request;
use crate::cli::{Page, RequestCommand};
use crate::exit::Failure;
use crate::output::{field, fields, note, objects, print, table};

use super::{is_unknown_command, paged, submit};

/// `request`.
pub(super) async fn run(app: &App, command: RequestCommand) -> Result<(), Failure> {
    match command {
        RequestCommand::Submit(args) => submit::run(app, &args).await,
        RequestCommand::Next => show_next(app, app.realm()).await.map(drop),
        RequestCommand::List(page) => list(app, &page).await,
        RequestCommand::Approve { id, role } => {
            let request = Request::decide(&id, true).with_some("role", role);
            app.change(request, one_view).await
        }
        RequestCommand::Reject { id, reason } => {
            let request = Request::decide(&id, false).with_some("reason", reason);
            app.change(request, one_view).await
        }
        RequestCommand::Watch { every } => watch(app, every).await,
    }
}

/// Shows the oldest request of a realm, or of all; what was shown.
pub(crate) async fn show_next(app: &App, realm: Option<&str>) -> Result<Object, Failure> {
    let answer = next(app, realm).await?;
    app.output.answer(&answer, one_view);
    Ok(answer)
}

async fn next(app: &App, realm: Option<&str>) -> Result<Object, Failure> {
    app.ask(&Request::next().with_some("realm", realm)).await
}

async fn pending(app: &App, page: &Page) -> Result<Object, Failure> {
    let request = paged("list_requests", page).with_some("realm", app.realm());
    let listed = app.ask(&request).await;
    if !is_unknown_command(&listed) {
        return listed;
    }
    // A broker without `list_requests` tells the oldest one.
    let answer = next(app, app.realm()).await?;
    let first = answer.get("request").filter(|request| request.is_truthy());
    let requests: Vec<Value> = first.cloned().into_iter().collect();
    Ok(Object::new().with("ok", true).with("requests", requests))
}

async fn list(app: &App, page: &Page) -> Result<(), Failure> {
    let answer = pending(app, page).await?;
    app.output.answer(&answer, list_view);
    if let (Some(rest), false) = (rest_of_page(&answer, "requests"), app.output.json) {
        note(&rest);
    }
    Ok(())
}

const COLUMNS: [&str; 6] = [
    "request_id",
    "realm",
    "role",
    "client_id",
    "client_name",
    "created_at",
];

fn list_view(answer: &Object) -> String {
    let rows = objects(answer, "requests")
        .into_iter()
        .map(|request| COLUMNS.map(|column| field(request, column)).into());
    let headers = ["id", "realm", "role", "client", "name", "since"];
    table(&headers, rows.collect(), "no requests wait")
}

/// A request in full.
fn one_view(answer: &Object) -> String {
    let Some(request) = answer.get("request").and_then(Value::as_object) else {
        return "no requests wait".to_owned();
    };
    let mut shown: Vec<_> = [
        "request_id",
        "status",
        "realm",
        "role",
        "client_id",
        "client_name",
        "client_token_hash",
        "challenge_response",
        "created_at",
    ]
    .map(|name| (name, field(request, name)))
    .into();
    for name in ["decided_at", "decision_reason"] {
        if request.get(name).is_some_and(Value::is_truthy) {
            shown.push((name, field(request, name)));
        }
    }
    fields(&shown)
}

/// Shows each request once, until interrupted. With `--json` one document a line.
async fn watch(app: &App, every: Duration) -> Result<(), Failure> {
    let mut seen: HashSet<String> = HashSet::new();
    let page = Page {
        limit: 1000,
        offset: 0,
    };
    loop {
        let answer = pending(app, &page).await?;
        let requests = objects(&answer, "requests");
        for request in &requests {
            if seen.insert(field(request, "request_id")) {
                show_new(app, request);
            }
        }
        // What was decided needs no memory.
        seen.retain(|id| {
            let is_pending = |request: &&&Object| field(request, "request_id") == *id;
            requests.iter().any(|request| is_pending(&request))
        });
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return Ok(()),
            () = tokio::time::sleep(every) => {}
        }
    }
}

fn show_new(app: &App, request: &Object) {
    if app.output.json {
        print(&Value::from(request.clone()).to_json());
    } else {
        let shown: Vec<String> = COLUMNS.map(|column| field(request, column)).into();
        print(&shown.join("  "));
    }
}
