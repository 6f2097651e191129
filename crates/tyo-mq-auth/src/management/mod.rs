//! Management commands: planned, then applied, so that a refused one changes nothing and a dry run shows what would.
//!
//! What only the running broker knows is asked as a [`Question`]; the answer goes to [`AuthState::finish_command`].

mod broker;
mod command;
mod external;
mod fields;
mod lifetimes;
mod lists;
mod provision;
mod realms;
mod tokens;

#[cfg(test)]
mod tests;

use crate::audit::{Actor, AuditEntry};
use crate::document::{Applied, Change, Mutation};
use crate::effect::{Effect, Handled, Reply, push_applied};
use crate::json::{Object, Value};
use crate::names::RealmName;
use crate::refusal::Refusal;
use crate::signed::{AUTH_MANAGEMENT_FAIL, Verified};
use crate::state::AuthState;

pub use broker::{Answer, FILE_OPTIONS, Question, ServerView};
pub use command::is_realm_command;
pub use provision::{MAX_PROVISION_BYTES, Provisioned};

use command::Command;

/// Answers management commands that asked for no ack.
pub const AUTH_MANAGEMENT_RESULT: &str = "AUTH_MANAGEMENT_RESULT";

/// The most realms.
pub const MAX_REALMS: usize = 1_000_000;
/// The most tokens.
pub const MAX_TOKENS: usize = 10_000_000;
/// The most management tokens.
pub const MAX_MANAGEMENT_TOKENS: usize = 100_000;

/// How a command goes on.
#[derive(Debug)]
pub enum Execution {
    /// It is over.
    Done(Handled),
    /// The broker is to be asked, after the effects were carried out.
    ///
    /// Commands are executed one after another: none begins before the answer came.
    Ask {
        /// What is to be done first.
        effects: Vec<Effect>,
        /// What is asked.
        question: Question,
        /// What the answer goes to.
        pending: PendingCommand,
    },
}

/// A command that waits for an answer of the broker.
#[derive(Debug)]
pub struct PendingCommand {
    command: &'static Command,
    actor: Actor,
    answer: Draft,
    target: Option<String>,
    /// What is applied once the broker has done its part.
    later: Vec<Mutation>,
    /// Sessions are checked when the broker has done its part.
    changes: Vec<Change>,
}

/// What a command would do.
#[derive(Debug, Default)]
struct Plan {
    mutations: Vec<Mutation>,
    question: Option<Question>,
    /// Whether the broker does its part before the document changes.
    asks_first: bool,
    answer: Draft,
    target: Option<String>,
}

/// An answer that is not complete yet.
#[derive(Debug, Default)]
struct Draft {
    shape: Shape,
    /// What stands besides.
    extra: Object,
    /// Under which name the broker's answer comes.
    answer_field: Option<&'static str>,
}

/// What a success is answered with.
#[derive(Debug, Default, PartialEq, Eq)]
enum Shape {
    /// All settings.
    #[default]
    Settings,
    /// The settings of one realm, for its manager.
    Realm(RealmName),
    /// Nothing but what is besides.
    Bare,
}

/// What a command has to go by.
struct Context<'a> {
    state: &'a AuthState,
    body: &'a Object,
    actor: &'a Actor,
    view: &'a ServerView,
    now_ms: u64,
}

impl AuthState {
    /// Executes a command that was signed. `view` is what the server shows of itself in settings.
    pub fn execute_command(
        &mut self,
        verified: Verified,
        view: &ServerView,
        now_ms: u64,
    ) -> Execution {
        let Verified { body, actor, .. } = verified;
        let name = body.get("command").and_then(Value::as_str);
        let Some(command) = name.and_then(Command::find) else {
            let refusal = Refusal::malformed("there is no such command");
            return self.refuse_command(name.unwrap_or_default(), &actor, None, &refusal, now_ms);
        };
        let is_dry_run = match fields::flag(&body, &["dry_run"]) {
            Ok(flag) => flag.unwrap_or(false),
            Err(refusal) => {
                return self.refuse_command(command.name, &actor, None, &refusal, now_ms);
            }
        };
        let context = Context {
            state: self,
            body: &body,
            actor: &actor,
            view,
            now_ms,
        };
        let planned = command.plan(&context);
        let target = fields::target(&body);
        match planned {
            Err(refusal) => self.refuse_command(command.name, &actor, target, &refusal, now_ms),
            Ok(plan) if is_dry_run && command.mutates => {
                self.try_out(command, &actor, plan, now_ms)
            }
            Ok(plan) => self.carry_out(command, actor, plan, view, now_ms),
        }
    }

    /// Ends a command with what the broker answered.
    pub fn finish_command(
        &mut self,
        pending: PendingCommand,
        answer: Answer,
        view: &ServerView,
        now_ms: u64,
    ) -> Handled {
        let PendingCommand {
            command,
            actor,
            answer: mut draft,
            target,
            later,
            changes,
        } = pending;
        let mut effects = Vec::new();
        let outcome = answer.into_result().and_then(|value| {
            if let (Some(field), Some(value)) = (draft.answer_field, value) {
                draft.extra.set(field, value);
            }
            let applied = self.apply_plan(later)?;
            effects.extend(self.follow(&applied));
            push_applied(&mut effects, applied);
            Ok(())
        });
        if !changes.is_empty() {
            effects.push(Effect::Changed(changes));
        }
        let refused = outcome.as_ref().err().map(|refusal| refusal.code);
        let audit = self.record(command.name, &actor, target, refused, false, now_ms);
        let is_audited = command.is_audited() || refused.is_some();
        effects.extend(is_audited.then_some(audit));
        let reply = match outcome {
            Ok(()) => Reply::ok(AUTH_MANAGEMENT_RESULT, self.complete(draft, view)),
            Err(refusal) => Reply::refused(command.refusal_event(), &refusal),
        };
        Handled { reply, effects }
    }

    fn carry_out(
        &mut self,
        command: &'static Command,
        actor: Actor,
        plan: Plan,
        view: &ServerView,
        now_ms: u64,
    ) -> Execution {
        let (now, later) = if plan.asks_first {
            (Vec::new(), plan.mutations)
        } else {
            (plan.mutations, Vec::new())
        };
        let mut applied = match self.apply_plan(now) {
            Ok(applied) => applied,
            Err(refusal) => {
                return self.refuse_command(command.name, &actor, plan.target, &refusal, now_ms);
            }
        };
        let mut effects = self.follow(&applied);
        if let Some(question) = plan.question {
            let changes = std::mem::take(&mut applied.changes);
            push_applied(&mut effects, applied);
            let pending = PendingCommand {
                command,
                actor,
                answer: plan.answer,
                target: plan.target,
                later,
                changes,
            };
            return Execution::Ask {
                effects,
                question,
                pending,
            };
        }
        push_applied(&mut effects, applied);
        let audit = self.record(command.name, &actor, plan.target, None, false, now_ms);
        effects.extend(command.is_audited().then_some(audit));
        let reply = Reply::ok(AUTH_MANAGEMENT_RESULT, self.complete(plan.answer, view));
        Execution::Done(Handled { reply, effects })
    }

    fn try_out(
        &mut self,
        command: &'static Command,
        actor: &Actor,
        plan: Plan,
        now_ms: u64,
    ) -> Execution {
        let audit = self.record(command.name, actor, plan.target, None, true, now_ms);
        let changes: Vec<Value> = plan.mutations.iter().map(describe).collect();
        let mut answer = Object::new()
            .with("ok", true)
            .with("dry_run", true)
            .with("changes", changes);
        for (name, value) in plan.answer.extra.iter() {
            if let Some(name) = name.as_str() {
                answer.set(name, value.clone());
            }
        }
        Execution::Done(Handled {
            reply: Reply::ok(AUTH_MANAGEMENT_RESULT, answer),
            effects: vec![audit],
        })
    }

    fn apply_plan(&mut self, mutations: Vec<Mutation>) -> Result<Applied, Refusal> {
        if mutations.is_empty() {
            return Ok(Applied::default());
        }
        self.validations.forget();
        self.document
            .apply(mutations)
            .map_err(|error| Refusal::malformed(error.to_string()))
    }

    /// Requests for admission follow their realm.
    fn follow(&mut self, applied: &Applied) -> Vec<Effect> {
        let mut effects = Vec::new();
        for change in &applied.changes {
            if let Change::RealmRenamed { from, to } = change {
                let renamed = self.requests.rename_realm(from, to).into_iter();
                effects.extend(renamed.map(|(id, json)| Effect::KeepRequest { id, json }));
            }
        }
        effects
    }

    fn complete(&self, draft: Draft, view: &ServerView) -> Object {
        let mut out = Object::new().with("ok", true);
        match draft.shape {
            Shape::Bare => {}
            Shape::Settings => out.push("settings", self.redacted_settings(view)),
            Shape::Realm(realm) => {
                out.push("realm", realm.as_str());
                let config = self.document.realm(realm.as_str());
                let config = config
                    .map(|config| config.to_redacted())
                    .unwrap_or_default();
                let realms = Object::new().with(realm.as_str(), config);
                out.push("settings", Object::new().with("realms", realms));
            }
        }
        for (name, value) in draft.extra.iter() {
            if let Some(name) = name.as_str() {
                out.set(name, value.clone());
            }
        }
        out
    }

    fn redacted_settings(&self, view: &ServerView) -> Object {
        let mut settings = self.document.to_redacted();
        settings.set("persistence", view.redacted_persistence());
        settings.set("namespaces", view.namespaces.clone());
        if let Some(reload) = &view.reload {
            settings.set("reload", reload.clone());
        }
        settings
    }

    fn refuse_command(
        &mut self,
        name: &str,
        actor: &Actor,
        target: Option<String>,
        refusal: &Refusal,
        now_ms: u64,
    ) -> Execution {
        let command = Command::find(name);
        let event = command.map_or(AUTH_MANAGEMENT_RESULT, Command::refusal_event);
        let name = command.map_or("unknown command", |command| command.name);
        let audit = self.record(name, actor, target, Some(refusal.code), false, now_ms);
        Execution::Done(Handled {
            reply: Reply::refused(event, refusal),
            effects: vec![audit],
        })
    }

    fn record(
        &mut self,
        action: &str,
        actor: &Actor,
        target: Option<String>,
        refused: Option<u16>,
        is_dry_run: bool,
        at_ms: u64,
    ) -> Effect {
        let entry = AuditEntry {
            at_ms,
            actor: actor.clone(),
            action: action.to_owned(),
            target,
            refused,
            is_dry_run,
        };
        let is_audited = Command::find(action).is_none_or(Command::is_audited);
        if is_audited || refused.is_some() {
            self.audit.push(entry.clone());
        }
        Effect::Audit(entry)
    }
}

impl Command {
    /// The event of a refusal without an ack: commands that ask the broker tell it by the event, others by the payload.
    const fn refusal_event(&self) -> &'static str {
        if self.is_asynchronous {
            AUTH_MANAGEMENT_FAIL
        } else {
            AUTH_MANAGEMENT_RESULT
        }
    }

    /// Whether it leaves a line in the audit trail when it succeeds. Reading does not.
    const fn is_audited(&self) -> bool {
        self.mutates
    }
}

impl Plan {
    /// Changes, answered with the settings: all of them, or the realm's for its manager.
    fn changes(mutations: Vec<Mutation>) -> Self {
        Self {
            mutations,
            ..Self::default()
        }
    }

    /// No changes, answered with an object.
    fn answer(extra: Object) -> Self {
        Self {
            answer: Draft {
                shape: Shape::Bare,
                extra,
                answer_field: None,
            },
            ..Self::default()
        }
    }

    /// A question, answered with an object and the broker's answer under a name.
    fn ask(question: Question, extra: Object, answer_field: &'static str) -> Self {
        Self {
            question: Some(question),
            answer: Draft {
                shape: Shape::Bare,
                extra,
                answer_field: Some(answer_field),
            },
            ..Self::default()
        }
    }

    fn for_actor(mut self, context: &Context<'_>) -> Self {
        self.target = fields::target(context.body);
        if let (Actor::Realm(realm), Shape::Settings) = (context.actor, &self.answer.shape) {
            self.answer.shape = Shape::Realm(realm.clone());
        }
        self
    }
}

/// A mutation in words, for dry runs. Tokens are told by their digest.
fn describe(mutation: &Mutation) -> Value {
    let text = match mutation {
        Mutation::PutRealm(name, _) => format!("set realm {name}"),
        Mutation::RemoveRealm(name) => format!("remove realm {name}"),
        Mutation::RenameRealm { from, to } => format!("rename realm {from} to {to}"),
        Mutation::PutToken(entry) => format!("set token {}", entry.hash().to_hex()),
        Mutation::RemoveToken(hash) => format!("remove token {}", hash.to_hex()),
        Mutation::PutManagementToken(token) => {
            format!("set management token {}", token.hash().to_hex())
        }
        Mutation::RemoveManagementToken(hash) => {
            format!("remove management token {}", hash.to_hex())
        }
        Mutation::SetField(name, Some(_)) => format!("set auth.{name}"),
        Mutation::SetField(name, None) => format!("remove auth.{name}"),
    };
    text.into()
}
