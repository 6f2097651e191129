//! `request submit`: asking for admission, as a client does.

use tyo_mq_auth::json::{Object, Value};
use tyo_mq_client::{Client, Events};

use crate::app::{App, new_secret};
use crate::call::{accepted, connect, random_hex, raw};
use crate::cli::RequestSubmit;
use crate::exit::Failure;
use crate::output::{field, fields, note};
use crate::target::read_secret;

const APPROVED: &str = "AUTHORIZATION_APPROVED";
const REJECTED: &str = "AUTHORIZATION_REJECTED";

/// What is sent, and the token in it.
struct Submission {
    payload: Object,
    token: String,
}

/// `request submit`.
pub(super) async fn run(app: &App, args: &RequestSubmit) -> Result<(), Failure> {
    let submission = prepare(app, args)?;
    if app.dry_run {
        let answer = Object::new().with("ok", true).with("dry_run", true);
        let said = "would ask for admission; nothing was sent";
        app.output.answer(&answer, |_| said.to_owned());
        return Ok(());
    }
    let client = connect(&app.target, app.patience).await?;
    let mut events = client.events();
    let mut answer = submit(app, &client, &submission).await?;
    if args.wait {
        let id = field(&answer, "request_id");
        if !app.output.json {
            note(&format!("waiting for the decision on {id}"));
        }
        decided(&mut events, &mut answer).await?;
    }
    client.close().await;
    app.output.answer(&answer, view);
    Ok(())
}

/// Sends a request, as the reference's script answers it.
pub(super) async fn once(app: &App, args: &RequestSubmit) -> Result<Object, Failure> {
    let submission = prepare(app, args)?;
    let client = connect(&app.target, app.patience).await?;
    let answer = submit(app, &client, &submission).await;
    client.close().await;
    answer
}

fn prepare(app: &App, args: &RequestSubmit) -> Result<Submission, Failure> {
    if args.client_token.is_some() {
        note("warning: a token on the command line can be seen by other users of this machine");
    }
    let or_variable = |given: &Option<String>, name| given.clone().or_else(|| app.env.var(name));
    let realm = app.realm().map(str::to_owned);
    let realm = or_variable(&realm, "TYO_MQ_REALM").unwrap_or_else(|| "default".to_owned());
    let role = or_variable(&args.role, "TYO_MQ_ROLE").unwrap_or_else(|| "both".to_owned());
    let client_id = or_variable(&args.client_id, "TYO_MQ_CLIENT_ID")
        .unwrap_or_else(|| format!("client-{}", random_hex(6)));
    let client_name =
        or_variable(&args.client_name, "TYO_MQ_CLIENT_NAME").unwrap_or_else(|| client_id.clone());
    let token = match &args.client_token_file {
        Some(file) => read_secret(file)?.expose().to_owned(),
        None => or_variable(&args.client_token, "TYO_MQ_CLIENT_TOKEN").unwrap_or_else(new_secret),
    };
    let mut payload = Object::new()
        .with("realm", realm)
        .with("role", role)
        .with("client_id", client_id)
        .with("client_name", client_name)
        .with("client_token", token.as_str());
    if let Some(response) = &args.challenge_response {
        let read = Value::parse(response);
        payload.set(
            "challenge_response",
            read.unwrap_or_else(|_| Value::from(response.as_str())),
        );
    }
    Ok(Submission { payload, token })
}

async fn submit(app: &App, client: &Client, submission: &Submission) -> Result<Object, Failure> {
    let payload = raw(submission.payload.clone());
    let reply = client
        .emit_with_ack("AUTHORIZATION_REQUEST", &payload, app.patience)
        .await?;
    let answer = accepted(&reply)?;
    Ok(answer.with("client_token", submission.token.as_str()))
}

/// Waits for the decision on this request, for as long as it takes.
async fn decided(events: &mut Events, answer: &mut Object) -> Result<(), Failure> {
    let id = field(answer, "request_id");
    let lost = || Failure::Unreachable("the connection was lost while waiting".to_owned());
    loop {
        let event = tokio::select! {
            _ = tokio::signal::ctrl_c() => {
                return Err(Failure::Declined("interrupted; the request still waits".to_owned()));
            }
            event = events.next_named(&[APPROVED, REJECTED]) => event.ok_or_else(lost)?,
        };
        let Ok(Value::Object(decision)) = Value::parse(event.json()) else {
            continue;
        };
        if field(&decision, "request_id") != id {
            continue;
        }
        if event.name == APPROVED {
            answer.set("status", "approved");
            answer.set("role", decision.get("role").cloned());
            return Ok(());
        }
        return Err(Failure::Refused {
            code: 403,
            message: format!(
                "the request was turned down: {}",
                field(&decision, "reason")
            ),
        });
    }
}

fn view(answer: &Object) -> String {
    let shown = ["request_id", "status", "client_token"];
    fields(&shown.map(|name| (name, field(answer, name))))
}
