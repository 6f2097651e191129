//! What every command works with: the broker, the user, the form of the answers.

use std::path::Path;
use std::time::Duration;

use tyo_mq_auth::json::{Object, Value};
use tyo_mq_auth::secret::Secret;

use crate::call::{self, Request, random_hex};
use crate::cli::Global;
use crate::env::Env;
use crate::exit::Failure;
use crate::output::{Output, objects, printable};
use crate::prompt::Prompt;
use crate::target::{Target, read_secret};

/// Bytes of randomness in a new key or token.
const SECRET_BYTES: usize = 32;

/// The parts of a running command.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) target: Target,
    pub(crate) env: Env,
    pub(crate) output: Output,
    pub(crate) prompt: Prompt,
    /// Whether the user can be asked: on a terminal, and in the menu.
    pub(crate) asks: bool,
    pub(crate) patience: Duration,
    pub(crate) yes: bool,
    pub(crate) dry_run: bool,
}

impl App {
    /// Reads environment and contexts.
    pub(crate) fn new(global: &Global) -> Result<Self, Failure> {
        let env = Env::load(global.env_file.as_deref())?;
        let prompt = Prompt::of_stdin();
        Ok(Self {
            target: Target::resolve(global, &env, prompt)?,
            env,
            output: Output { json: global.json },
            prompt,
            asks: prompt.is_terminal(),
            patience: global.timeout,
            yes: global.yes,
            dry_run: global.dry_run,
        })
    }

    /// The realm that the command is for.
    pub(crate) fn realm(&self) -> Option<&str> {
        self.target.realm.as_deref()
    }

    /// The realm that the command is for, where it must have one.
    pub(crate) fn required_realm(&self) -> Result<&str, Failure> {
        self.realm()
            .ok_or_else(|| Failure::Usage("which realm? say so with --realm".to_owned()))
    }

    /// Asks the broker for something that changes nothing.
    pub(crate) async fn ask(&self, request: &Request) -> Result<Object, Failure> {
        call::send(&self.target, self.patience, request).await
    }

    /// Asks the broker for a change, or what it would change, and shows the answer.
    pub(crate) async fn change(
        &self,
        request: Request,
        view: impl FnOnce(&Object) -> String,
    ) -> Result<(), Failure> {
        let answer = self.changed(request).await?;
        self.output.answer(&answer, |answer| {
            if is_dry_run(answer) {
                dry_run_view(answer)
            } else {
                view(answer)
            }
        });
        Ok(())
    }

    /// As [`change`](Self::change), without showing it.
    pub(crate) async fn changed(&self, request: Request) -> Result<Object, Failure> {
        if !self.dry_run {
            return self.ask(&request).await;
        }
        if !request.is_command() {
            return Ok(untried(&request));
        }
        self.require_dry_runs(&request).await?;
        self.ask(&request.with("dry_run", true)).await
    }

    /// A broker that does not know dry runs would do it. Such a one does not know this command either.
    async fn require_dry_runs(&self, request: &Request) -> Result<(), Failure> {
        let realm = request.body().get("realm").cloned();
        let probe = Request::command("list_requests")
            .with_some("realm", realm)
            .with("limit", 0_u64);
        match self.ask(&probe).await {
            Err(Failure::Refused { code: 400, .. }) => Err(Failure::Unsupported(
                "this broker does not know dry runs; nothing was changed".to_owned(),
            )),
            other => other.map(drop),
        }
    }

    /// Has the user agree, unless a flag says so or nothing will change.
    pub(crate) fn confirm(&self, question: &str) -> Result<(), Failure> {
        if self.yes || self.dry_run {
            return Ok(());
        }
        self.require_user(question)?;
        if self.prompt.confirm(question, false)? {
            return Ok(());
        }
        Err(Failure::Declined("nothing was changed".to_owned()))
    }

    /// Has the user type a name, unless a flag says so or nothing will change.
    pub(crate) fn confirm_name(&self, question: &str, name: &str) -> Result<(), Failure> {
        if self.yes || self.dry_run {
            return Ok(());
        }
        self.require_user(question)?;
        let typed = self
            .prompt
            .text(&format!("{question} Type its name to confirm"), "")?;
        if typed == name {
            return Ok(());
        }
        Err(Failure::Declined("nothing was changed".to_owned()))
    }

    fn require_user(&self, question: &str) -> Result<(), Failure> {
        if self.asks {
            return Ok(());
        }
        Err(Failure::Declined(format!(
            "{question} Confirm with --yes, since there is no terminal to ask on"
        )))
    }

    /// A secret from a variable or a file; none when neither is named.
    pub(crate) fn secret_from(
        &self,
        variable: Option<&str>,
        file: Option<&Path>,
    ) -> Result<Option<Secret>, Failure> {
        match (variable, file) {
            (Some(name), _) => {
                let value = self.env.var(name).ok_or_else(|| {
                    Failure::NoSecret(format!("variable {name} is not set, or empty"))
                })?;
                Ok(Some(Secret::new(&value)))
            }
            (None, Some(file)) => read_secret(file).map(Some),
            (None, None) => Ok(None),
        }
    }
}

/// A new key or token.
pub(crate) fn new_secret() -> String {
    random_hex(SECRET_BYTES)
}

/// Whether an answer tells what would be.
pub(crate) fn is_dry_run(answer: &Object) -> bool {
    answer.get("dry_run").is_some_and(Value::is_truthy)
}

/// What a request that the broker cannot try out would do.
fn untried(request: &Request) -> Object {
    let body = request.body();
    let id = body.non_empty_str("request_id").unwrap_or_default();
    let verb = match body.get("approved").and_then(Value::as_bool) {
        Some(true) => "approve",
        _ => "reject",
    };
    let changes = vec![Value::from(format!("{verb} request {id}"))];
    Object::new()
        .with("ok", true)
        .with("dry_run", true)
        .with("changes", changes)
}

fn dry_run_view(answer: &Object) -> String {
    let changes = answer.get("changes").and_then(Value::as_list);
    let changes: Vec<String> = changes
        .unwrap_or(&[])
        .iter()
        .filter_map(Value::as_str)
        .map(|change| format!("would {}", printable(change)))
        .collect();
    if changes.is_empty() {
        "would be accepted; nothing was changed".to_owned()
    } else {
        changes.join("\n")
    }
}

/// What a list says at its end when it does not show all.
pub(crate) fn rest_of_page(answer: &Object, name: &str) -> Option<String> {
    let number = |field: &str| answer.get(field).and_then(Value::as_number);
    let (total, offset) = (number("total")?, number("offset").unwrap_or(0.0));
    let shown = objects(answer, name).len() as f64;
    let end = offset + shown;
    (end < total).then(|| format!("{shown} of {total}; go on with --offset {end}"))
}
