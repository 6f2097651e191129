//! The program as an operator meets it: flags, exit codes, messages, signals.
#![allow(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test there"
)]

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// Runs to its end.
fn run(args: &[&str]) -> Output {
    command(args).output().expect("the program runs")
}

/// Without what the environment of the test says.
fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tyo-mq"));
    for name in [
        "TYO_MQ_SETTINGS_FILE",
        "TYO_MQ_LOG",
        "TYO_MQ_MAX_HTTP_BUFFER_SIZE",
        "TYO_MQ_AUTH_ENABLED",
        "TYO_MQ_AUTH_STORE",
        "TYO_MQ_ADMIN_TOKEN",
        "TYO_MQ_PORT",
    ] {
        command.env_remove(name);
    }
    command.args(args).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it prints text")
}

/// Checks a settings file; exit code and what is told.
fn check_config(settings: &str) -> (i32, String) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("settings.json");
    std::fs::write(&path, settings).unwrap();
    let output = run(&["--check-config", "--settings", path.to_str().unwrap()]);
    let told = [text(&output.stdout), text(&output.stderr)].concat();
    (output.status.code().unwrap(), told)
}

fn check_config_says(settings: &str, code: i32, expected: &[&str]) {
    let (status, told) = check_config(settings);
    assert_eq!(status, code, "{settings}: {told}");
    for words in expected {
        assert!(
            told.contains(words),
            "{settings}: {words:?} is not in {told:?}"
        );
    }
}

/// A broker that listens.
struct Listening {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    addr: SocketAddr,
}

impl Listening {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let addr = line.trim_end().rsplit_once(" listening on ").unwrap().1;
        let addr = addr.parse().unwrap();
        Self { child, out, addr }
    }

    /// The next lines of the banner.
    fn lines(&mut self, count: usize) -> String {
        let mut lines = String::new();
        for _ in 0..count {
            self.out.read_line(&mut lines).unwrap();
        }
        lines
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
    }

    /// Sends a signal and waits; the exit code.
    fn end(mut self, signal: &str) -> i32 {
        self.signal(signal);
        self.child
            .wait()
            .unwrap()
            .code()
            .expect("it exits by itself")
    }
}

#[test]
fn help_names_every_flag() {
    let output = run(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    for flag in [
        "--port",
        "--host",
        "--settings",
        "--check-config",
        "--print-default-config",
        "--log",
        "--version",
        "TYO_MQ_SETTINGS_FILE",
        "TYO_MQ_LOG",
        "17352",
    ] {
        assert!(text(&output.stdout).contains(flag), "{flag}");
    }
}

#[test]
fn version() {
    let output = run(&["--version"]);
    let expected = concat!("tyo-mq ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(0), expected)
    );
}

#[test]
fn an_unknown_flag_is_answered_with_the_near_one() {
    let output = run(&["--prot", "1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("--port"),
        "{}",
        text(&output.stderr)
    );
    let output = run(&["--port", "70000"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("70000"));
}

#[test]
fn the_default_settings_are_good_settings() {
    let output = run(&["--print-default-config"]);
    assert_eq!(output.status.code(), Some(0));
    let settings = text(&output.stdout);
    assert!(settings.contains("\"port\": 17352"));
    assert_eq!(
        check_config(settings),
        (0, "settings are good\n".to_owned())
    );
}

#[test]
fn settings_are_checked_without_a_start() {
    check_config_says("{}", 0, &["settings are good"]);
    check_config_says(
        "{\n\"port\": 1,\n}",
        1,
        &["settings.json", "line 3, column 1"],
    );
    check_config_says("{\n\n\"port\": \"x\"}", 1, &["line 3", "port"]);
    check_config_says(
        "{\"idle_eviction\":\n{\"ttl_ms\": -1}}",
        1,
        &["line 2", "idle_eviction.ttl_ms"],
    );
    check_config_says(
        r#"{"prot": 1}"#,
        0,
        &[
            "warning: prot: unknown setting, ignored; did you mean port?",
            "settings are good",
        ],
    );
    check_config_says(r#"{"auth": {"tokens": 7}}"#, 1, &["auth: ", "tokens"]);
}

#[test]
fn the_settings_that_the_security_page_shows_are_good() {
    let page = include_str!("../../../SECURITY.md");
    let (_, example) = page.split_once("```json\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let (status, told) = check_config(example);
    assert_eq!((status, told.as_str()), (0, "settings are good\n"));
}

#[test]
fn authentication_from_the_environment_makes_an_admin_token_once() {
    let folder = TempDir::new().unwrap();
    let env_file = folder.path().join(".env");
    for start in ["first", "second"] {
        let mut program = command(&["--port", "0", "--host", "127.0.0.1"]);
        program
            .env("TYO_MQ_AUTH_ENABLED", "true")
            .env("TYO_MQ_ENV_FILE", &env_file);
        let mut broker = Listening::start(&mut program);
        let banner = broker.lines(2);
        assert!(banner.contains("auth     on"), "{start}: {banner}");
        assert_eq!(broker.end("-TERM"), 0);
    }
    let text = std::fs::read_to_string(&env_file).unwrap();
    let token = text.strip_prefix("TYO_MQ_ADMIN_TOKEN=\"").unwrap();
    assert_eq!(token.len(), 64 + 2, "{text}");
    assert_eq!(mode(&env_file), 0o600);
}

#[test]
fn a_setting_is_explained_with_its_origin() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("settings.json");
    std::fs::write(&path, "{\n\"port\": 7\n}").unwrap();
    let file = path.to_str().unwrap();
    let check = |flags: &[&str], key: &str, code: i32, expected: &str| {
        let args = [&["--settings", file], flags, &["config", "explain", key]].concat();
        let output = run(&args);
        let told = [text(&output.stdout), text(&output.stderr)].concat();
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.contains(expected), "{told}");
    };
    check(&[], "port", 0, "port = 7\n  from ");
    check(&[], "port", 0, "settings.json, line 2");
    check(&["--port", "8"], "port", 0, "port = 8\n  from a flag");
    check(&[], "prefetch", 0, "prefetch = 1000\n  from the default");
    check(&[], "prot", 1, "did you mean port?");
}

#[test]
fn a_damaged_store_is_named_and_told_once() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("queue.sqlite");
    std::fs::write(&file, vec![7; 9999]).unwrap();
    let settings = folder.path().join("settings.json");
    let content = serde_json::json!({
        "storage": "sqlite",
        "storage_options": { "filename": file },
    });
    std::fs::write(&settings, content.to_string()).unwrap();
    let output = run(&["--port", "0", "--settings", settings.to_str().unwrap()]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("queue.sqlite"), "{said}");
    assert_eq!(said.matches("damaged").count(), 1, "{said}");
    assert_eq!(std::fs::read(&file).unwrap(), vec![7; 9999]);
}

#[test]
fn the_message_store_is_copied_while_in_use() {
    let folder = TempDir::new().unwrap();
    let settings = folder.path().join("settings.json");
    let content = serde_json::json!({
        "storage": "sqlite",
        "storage_options": { "filename": folder.path().join("queue.sqlite") },
    });
    std::fs::write(&settings, content.to_string()).unwrap();
    let settings = settings.to_str().unwrap();
    let mut broker = Listening::start(&mut command(&["--port", "0", "--settings", settings]));
    assert!(broker.lines(1).contains("queue.sqlite"));
    let copy = folder.path().join("copy.sqlite");
    let output = run(&["--settings", settings, "backup", copy.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        std::fs::read(&copy)
            .unwrap()
            .starts_with(b"SQLite format 3")
    );
    assert_eq!(broker.end("-INT"), 0);
}

#[test]
fn a_buffer_size_that_is_none_is_refused() {
    for size in ["0", "-1", "1e3", "many"] {
        let output = command(&["--check-config"])
            .env("TYO_MQ_MAX_HTTP_BUFFER_SIZE", size)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{size}");
        assert!(text(&output.stderr).contains("TYO_MQ_MAX_HTTP_BUFFER_SIZE"));
    }
}

#[test]
fn a_missing_settings_file_is_written_for_its_owner_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("etc/settings.json");
    let output = run(&["--check-config", "--settings", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(path.to_str().unwrap()));
    assert_eq!(
        std::fs::read(&path).unwrap(),
        run(&["--print-default-config"]).stdout
    );
    assert_eq!(mode(&path), 0o600);
    let files = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(files, 1, "nothing else is left beside it");
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_settings_file_that_cannot_be_read() {
    let folder = TempDir::new().unwrap();
    let output = run(&[
        "--check-config",
        "--settings",
        folder.path().to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("cannot read"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_port_in_use_is_told() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = run(&["--host", "127.0.0.1", "--port", &port]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(
        told.contains(&format!("cannot listen on 127.0.0.1:{port}")),
        "{told}"
    );
    assert!(told.contains("in use"), "{told}");
}

#[test]
fn both_signals_end_it_well() {
    for signal in ["-TERM", "-INT"] {
        let broker = Listening::start(&mut command(&["--host", "127.0.0.1", "--port", "0"]));
        TcpStream::connect(broker.addr).unwrap();
        let addr = broker.addr;
        assert_eq!(broker.end(signal), 0, "{signal}");
        assert!(
            TcpStream::connect(addr).is_err(),
            "{signal}: it listens no more"
        );
    }
}

#[test]
fn a_hang_up_without_a_settings_file_ends_nothing() {
    let broker = Listening::start(&mut command(&["--host", "127.0.0.1", "--port", "0"]));
    for _ in 0..3 {
        broker.signal("-HUP");
        TcpStream::connect(broker.addr).unwrap();
    }
    assert_eq!(broker.end("-TERM"), 0);
}

#[test]
fn a_port_from_the_environment_wins_over_the_file_and_a_flag_over_it() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("settings.json");
    std::fs::write(&path, r#"{"host": "127.0.0.1", "port": 1}"#).unwrap();
    let file = path.to_str().unwrap();
    let start = |args: &[&str], port: &str| {
        Listening::start(command(&[&["--settings", file], args].concat()).env("TYO_MQ_PORT", port))
    };
    for broker in [start(&[], "0"), start(&["--port=0"], "1")] {
        assert_ne!(broker.addr.port(), 1);
        assert_eq!(broker.end("-TERM"), 0);
    }
    let output = command(&["--check-config"])
        .env("TYO_MQ_PORT", "many")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("TYO_MQ_PORT"));
}

#[test]
fn flags_win_over_the_file_and_the_file_over_defaults() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("settings.json");
    let free = TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    std::fs::write(&path, format!(r#"{{"host": "127.0.0.1", "port": {free}}}"#)).unwrap();
    let file = path.to_str().unwrap();
    let by_file = Listening::start(command(&[]).env("TYO_MQ_SETTINGS_FILE", file));
    assert_eq!(by_file.addr, SocketAddr::from(([127, 0, 0, 1], free)));
    let by_flags = Listening::start(&mut command(&["--settings", file, "--port", "0"]));
    assert_eq!(by_flags.addr.ip(), by_file.addr.ip());
    assert_ne!(by_flags.addr.port(), free);
    let elsewhere = Listening::start(&mut command(&["--settings", file, "--host", "127.0.0.2"]));
    assert_eq!(elsewhere.addr, SocketAddr::from(([127, 0, 0, 2], free)));
    for broker in [by_file, by_flags, elsewhere] {
        assert_eq!(broker.end("-TERM"), 0);
    }
}

#[test]
fn the_banner_says_how_to_try_it() {
    let mut broker = Listening::start(&mut command(&["--host", "127.0.0.1", "--port", "0"]));
    let banner = broker.lines(3);
    assert!(banner.contains("storage"), "{banner}");
    assert!(
        banner.contains(&format!("io(\"http://{}\")", broker.addr)),
        "{banner}"
    );
    assert_eq!(broker.end("-TERM"), 0);
}
