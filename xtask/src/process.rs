//! Running other programs. Knows nothing of what they are for.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

/// The project's root folder.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// A command in the project's root folder.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// The cargo that runs us, in the project's root folder.
pub(crate) fn cargo() -> Command {
    command(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
}

/// Runs to the end with our output; anything but success is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = describe(command);
    println!("$ {}", shorten(&line));
    let status = command
        .status()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{}` ended with {status}", shorten(&line));
    }
    Ok(())
}

/// Runs to the end and returns what it printed.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let line = describe(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` ended with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` printed no UTF-8"))
}

/// As [`capture`], but the program is killed when it is not done after `limit`.
pub(crate) fn capture_within(command: &mut Command, limit: Duration) -> Result<String> {
    let line = describe(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{line}`"))?;
    let mut stdout = child.stdout.take().context("no stdout")?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let until = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > until {
            child.kill()?;
            child.wait()?;
            bail!("`{line}` was not done after {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    let text = reader.join().map_err(|_| anyhow!("the reader panicked"))?;
    text.with_context(|| format!("`{line}` printed no UTF-8"))
}

/// Whether the program starts and ends well with these arguments.
pub(crate) fn is_available(program: &str, args: &[&str]) -> bool {
    command(program)
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut line = program
        .file_name()
        .unwrap_or(program.as_os_str())
        .to_string_lossy()
        .into_owned();
    for arg in command.get_args() {
        line.push(' ');
        line.push_str(&arg.to_string_lossy());
    }
    line
}

/// The longest command line that is shown in full, in characters.
const SHOWN_CHARS: usize = 200;

fn shorten(line: &str) -> String {
    if line.chars().count() <= SHOWN_CHARS {
        return line.to_owned();
    }
    line.chars().take(SHOWN_CHARS).chain(" …".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_an_error_with_its_name() {
        let err = run(&mut command("false")).unwrap_err().to_string();
        assert!(err.contains("`false` ended with"), "{err}");
        assert!(capture(&mut command("no-such-program-here")).is_err());
        assert_eq!(capture(command("echo").arg("x")).unwrap(), "x\n");
        assert!(!is_available("no-such-program-here", &[]));
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let mut sleep = command("sleep");
        let error = capture_within(sleep.arg("600"), Duration::from_millis(1)).unwrap_err();
        assert!(error.to_string().contains("was not done"), "{error}");
        let echo = capture_within(command("echo").arg("x"), Duration::from_secs(60));
        assert_eq!(echo.unwrap(), "x\n");
        assert!(capture_within(&mut command("false"), Duration::from_secs(60)).is_err());
    }

    #[test]
    fn long_command_lines_are_cut_between_characters() {
        let line = "ä".repeat(SHOWN_CHARS + 1);
        assert!(shorten(&line).ends_with("ä …"));
        assert_eq!(shorten("cargo fmt"), "cargo fmt");
    }
}
