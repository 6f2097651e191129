//! `limits`: rates and quotas.

use tyo_mq_auth::json::{Object, Value};

use crate::app::App;
use crate::call::Request;
use crate::cli::LimitsCommand;
use crate::exit::Failure;
use crate::output::{show, table};

/// `limits`.
pub(super) async fn run(app: &App, command: LimitsCommand) -> Result<(), Failure> {
    match command {
        LimitsCommand::Get => {
            let request = Request::command("get_limits").with_some("realm", app.realm());
            let answer = app.ask(&request).await?;
            app.output.answer(&answer, view);
            Ok(())
        }
        LimitsCommand::Set { limits } => {
            let request = Request::command("set_limits")
                .with("limits", parse(&limits)?)
                .with_some("realm", app.realm());
            app.change(request, view).await
        }
    }
}

/// `NAME=NUMBER` or `NAME=none` of each.
fn parse(limits: &[String]) -> Result<Object, Failure> {
    let mut out = Object::new();
    for limit in limits {
        let wrong = || Failure::Usage(format!("{limit:?} is not NAME=NUMBER or NAME=none"));
        let (name, number) = limit.split_once('=').ok_or_else(wrong)?;
        let value = match number {
            "none" => Value::Null,
            _ => Value::parse(number).map_err(|_| wrong())?,
        };
        let is_number = value.as_number().is_some_and(|number| number >= 0.0);
        if name.is_empty() || !(is_number || value == Value::Null) {
            return Err(wrong());
        }
        out.set(name, value);
    }
    Ok(out)
}

fn view(answer: &Object) -> String {
    let limits = answer.get("limits").and_then(Value::as_object);
    let rows = limits
        .into_iter()
        .flat_map(Object::iter)
        .map(|(name, value)| {
            vec![
                crate::output::printable(&name.to_lossy()),
                show(Some(value)),
            ]
        });
    table(&["limit", "value"], rows.collect(), "no limits")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(limits: &[&str], expected: Option<&str>) {
        let limits: Vec<_> = limits.iter().map(|&limit| limit.to_owned()).collect();
        let parsed = parse(&limits).ok();
        let parsed = parsed.map(|limits| Value::from(limits).to_json());
        assert_eq!(parsed.as_deref(), expected, "{limits:?}");
    }

    #[test]
    fn arguments() {
        check(&["a=1", "b=none", "a=2.5"], Some(r#"{"a":2.5,"b":null}"#));
        for wrong in ["", "a", "=1", "a=", "a=x", "a=-1", "a=true", "a=null1"] {
            check(&[wrong], None);
        }
    }
}
