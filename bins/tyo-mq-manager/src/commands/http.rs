//! `health` and `metrics`, over HTTP.

use http::StatusCode;
use tyo_mq_auth::json::{Object, Value};

use crate::app::App;
use crate::exit::Failure;
use crate::http_get::{Response, get};
use crate::output::{field, fields, print};

/// `health`.
pub(super) async fn health(app: &App) -> Result<(), Failure> {
    let response = get(app, "/health", None).await?;
    let response = accepted(response, "health")?;
    let Ok(Value::Object(health)) = Value::parse(&response.body) else {
        return Err(Failure::Local("the answer is not JSON".to_owned()));
    };
    let answer = health.with("ok", true);
    app.output.answer(&answer, |health| {
        fields(&[
            ("status", field(health, "status")),
            ("version", field(health, "version")),
            ("uptime", format!("{} s", field(health, "uptime_seconds"))),
            ("node", field(health, "node_id")),
        ])
    });
    Ok(())
}

/// `metrics`.
pub(super) async fn metrics(app: &App) -> Result<(), Failure> {
    let token = app.target.admin_token_if_known()?;
    let response = get(app, "/api/metrics", token.as_ref()).await?;
    let response = accepted(response, "metrics")?;
    if app.output.json {
        let answer = Object::new()
            .with("ok", true)
            .with("metrics", response.body);
        app.output.answer(&answer, |_| String::new());
    } else {
        print(&response.body);
    }
    Ok(())
}

fn accepted(response: Response, what: &str) -> Result<Response, Failure> {
    match response.status {
        StatusCode::OK => Ok(response),
        // What is off is refused without a word.
        StatusCode::FORBIDDEN if response.body.is_empty() => Err(Failure::Unsupported(format!(
            "this broker does not serve {what}; `http_api` in its settings turns it on"
        ))),
        status => Err(Failure::Refused {
            code: i32::from(status.as_u16()),
            message: status.canonical_reason().unwrap_or("refused").to_owned(),
        }),
    }
}
