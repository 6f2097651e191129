//! `smoke-test`: one message, from a producer to a consumer, on one connection.

use std::time::Instant;

use tokio::time::timeout;
use tyo_mq_auth::json::{Object, Value};
use tyo_mq_client::{Client, Credentials, Events, Granted, Subscribe};

use crate::app::App;
use crate::call::{connect, random_hex, raw};
use crate::cli::SmokeTestArgs;
use crate::exit::Failure;
use crate::output::{field, fields};

/// The event that goes round.
const EVENT: &str = "smoke-test";

/// What tells that a client may not do what it tries.
const REFUSALS: [&str; 3] = ["AUTH_FAIL", "RATE_LIMITED", "ERROR"];

/// `smoke-test`.
pub(super) async fn run(app: &App, args: &SmokeTestArgs) -> Result<(), Failure> {
    if app.dry_run {
        let answer = Object::new().with("ok", true).with("dry_run", true);
        app.output.answer(&answer, |_| {
            "would send a message; nothing was sent".to_owned()
        });
        return Ok(());
    }
    let credentials = credentials(app, args)?;
    let client = connect(&app.target, app.patience).await?;
    let tried = attempt(app, &client, credentials).await;
    client.close().await;
    app.output.answer(&tried?, |answer| {
        fields(&[
            ("realm", field(answer, "realm")),
            ("role", field(answer, "role")),
            (
                "message",
                format!("came after {} ms", field(answer, "round_trip_ms")),
            ),
        ])
    });
    Ok(())
}

fn credentials(app: &App, args: &SmokeTestArgs) -> Result<Option<Credentials>, Failure> {
    let given = app.secret_from(
        args.client_token_env.as_deref(),
        args.client_token_file.as_deref(),
    )?;
    let token = match given {
        None if !args.no_token => app.target.admin_token_if_known()?,
        given => given,
    };
    Ok(match (token, app.realm()) {
        (Some(token), _) => Some(Credentials::token(token.expose())),
        (None, Some(realm)) => Some(Credentials::realm(realm, "both")),
        (None, None) => None,
    })
}

async fn attempt(
    app: &App,
    client: &Client,
    credentials: Option<Credentials>,
) -> Result<Object, Failure> {
    let granted = match credentials {
        None => None,
        Some(credentials) => {
            let granted = client.authenticate(&credentials).await;
            Some(granted.map_err(|error| Failure::from(error).during("authenticating"))?)
        }
    };
    let nothing = raw(Object::new());
    let pong = client.emit_with_ack("PING", &nothing, app.patience).await;
    pong.map_err(|error| Failure::from(error).during("pinging"))?;
    let round_trip_ms = round_trip(app, client).await?;
    let (realm, role) = match granted {
        Some(Granted { realm, role }) => (Some(realm), Some(role)),
        None => (None, None),
    };
    Ok(Object::new()
        .with("ok", true)
        .with("realm", realm)
        .with("role", role)
        .with("round_trip_ms", round_trip_ms))
}

/// Milliseconds from the message's way out to its way in.
async fn round_trip(app: &App, client: &Client) -> Result<u64, Failure> {
    let name = format!("smoke-test-{}", random_hex(6));
    let mut refusals = client.events();
    let consumer = client.consumer(&name).await?;
    let mut messages = consumer.subscribe(Subscribe::new(&name, EVENT)).await?;
    let producer = client.producer(&name).await?;
    let sent = Instant::now();
    producer.produce(EVENT, &name).await?;
    let came = async {
        tokio::select! {
            biased;
            refusal = refused(&mut refusals) => Err(refusal),
            message = messages.next() => message.map(drop).ok_or_else(lost),
        }
    };
    let came = timeout(app.patience, came).await;
    let late = || Failure::Unreachable(format!("it did not come within {:?}", app.patience));
    came.unwrap_or_else(|_| Err(late()))
        .map_err(|failure| failure.during("sending a message"))?;
    Ok(u64::try_from(sent.elapsed().as_millis()).unwrap_or(u64::MAX))
}

/// The broker's no to one of the events that were sent.
async fn refused(events: &mut Events) -> Failure {
    let Some(event) = events.next_named(&REFUSALS).await else {
        return lost();
    };
    let Ok(Value::Object(refusal)) = Value::parse(event.json()) else {
        return Failure::Refused {
            code: 0,
            message: event.name.clone(),
        };
    };
    let code = refusal.get("code").and_then(Value::as_number);
    let message = refusal.non_empty_str("message").unwrap_or(&event.name);
    Failure::Refused {
        code: code.map_or(0, |code| code as i32),
        message: message.to_owned(),
    }
}

fn lost() -> Failure {
    Failure::Unreachable("the connection was lost".to_owned())
}
