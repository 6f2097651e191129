//! Runs the program under test.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tyo_mq_auth::json::{Object, Value};

use crate::stage::{ADMIN_TOKEN, Stage};

/// A run of the program.
pub(crate) struct Program {
    command: Command,
    stdin: Option<String>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) exit: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Program {
    /// With an environment of its own: nothing of the user's gets in.
    pub(crate) fn new(home: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tyo-mq-manager"));
        command
            .env_clear()
            .env("HOME", home)
            .current_dir(home)
            .args(args);
        Self {
            command,
            stdin: None,
        }
    }

    /// As the global admin of a stage.
    pub(crate) fn admin(stage: &Stage, args: &[&str]) -> Self {
        Self::anonymous(stage, args).env("TYO_MQ_ADMIN_TOKEN", ADMIN_TOKEN)
    }

    /// Knowing where the stage's broker is, and nothing else.
    pub(crate) fn anonymous(stage: &Stage, args: &[&str]) -> Self {
        Self::new(stage.home(), args).env("TYO_MQ_URL", &stage.url())
    }

    #[must_use]
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    #[must_use]
    pub(crate) fn stdin(mut self, text: &str) -> Self {
        self.stdin = Some(text.to_owned());
        self
    }

    /// Starts it, with its output piped.
    pub(crate) fn start(mut self) -> Child {
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A program that does not read its input ends before we have written it.
        let _ = stdin.write_all(self.stdin.unwrap_or_default().as_bytes());
        child
    }

    /// Runs it to its end.
    pub(crate) fn run(self) -> Done {
        Done::of(self.start().wait_with_output().unwrap())
    }

    /// Runs it; it must succeed. What it wrote.
    #[track_caller]
    pub(crate) fn succeeds(self) -> String {
        let done = self.run();
        assert_eq!(done.exit, 0, "{done:?}");
        done.stdout
    }

    /// Runs it with `--json`; it must succeed. What it answered.
    #[track_caller]
    pub(crate) fn json(mut self) -> Object {
        self.command.arg("--json");
        let answer = object(&self.succeeds());
        assert_eq!(answer.get("ok").and_then(Value::as_bool), Some(true));
        answer
    }

    /// Runs it with `--json`; it must fail with this exit code. What it says about it.
    #[track_caller]
    pub(crate) fn fails(mut self, exit: i32) -> Object {
        self.command.arg("--json");
        let done = self.run();
        assert_eq!(done.exit, exit, "{done:?}");
        let answer = object(&done.stdout);
        let told = answer.get("exit").and_then(Value::as_number);
        assert_eq!(told, Some(f64::from(exit)));
        answer
    }
}

impl Done {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            exit: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A text that must be a JSON object.
#[track_caller]
pub(crate) fn object(text: &str) -> Object {
    match Value::parse(text.trim()) {
        Ok(Value::Object(object)) => object,
        other => panic!("{text:?} is {other:?}"),
    }
}

/// A string by the names of the fields around it.
#[track_caller]
pub(crate) fn text<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    at(object, path).as_str().unwrap()
}

/// A value by the names of the fields around it.
#[track_caller]
pub(crate) fn at<'a>(object: &'a Object, path: &[&str]) -> &'a Value {
    let (last, around) = path.split_last().unwrap();
    let holder = around.iter().fold(object, |object, name| {
        object.get(name).and_then(Value::as_object).unwrap()
    });
    holder.get(last).unwrap_or(&Value::Null)
}

/// The objects of a list.
#[track_caller]
pub(crate) fn list<'a>(object: &'a Object, name: &str) -> Vec<&'a Object> {
    let list = object.get(name).and_then(Value::as_list).unwrap();
    list.iter().map(|item| item.as_object().unwrap()).collect()
}
