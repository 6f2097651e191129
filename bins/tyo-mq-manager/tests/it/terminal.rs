//! The program at a real pseudo terminal: what is typed there, what is shown there, and how the terminal is afterwards.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pty_process::Size;
use pty_process::blocking::{Command, Pts, Pty, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, Termios, tcgetattr};

/// How long anything may take until a test says that it does not come.
const PATIENCE: Duration = Duration::from_secs(20);

/// A terminal and the program that was started on it.
pub(crate) struct Terminal {
    pty: Arc<Pty>,
    /// Open as a shell would have it, so that the terminal outlives the program.
    pts: Pts,
    before: Termios,
    pid: Pid,
    output: Receiver<Vec<u8>>,
    ended: Receiver<ExitStatus>,
    /// All that was shown.
    shown: String,
    /// Up to where a test has looked.
    seen: usize,
}

impl Terminal {
    /// Starts the program on a terminal with so many columns, in an environment of its own.
    pub(crate) fn start(home: &Path, columns: u16, url: &str, args: &[&str]) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(24, columns)).unwrap();
        let before = tcgetattr(&pts).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_tyo-mq-manager"))
            .env_clear()
            .env("HOME", home)
            .env("TYO_MQ_URL", url)
            .current_dir(home)
            .args(args)
            .spawn_borrowed(&pts)
            .unwrap();
        let pty = Arc::new(pty);
        Self {
            pid: Pid::from_child(&child),
            output: read(Arc::clone(&pty)),
            ended: wait(child),
            pty,
            pts,
            before,
            shown: String::new(),
            seen: 0,
        }
    }

    /// Types keys.
    pub(crate) fn keys(&mut self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until a text is shown, after the one that was waited for before. What was shown up to its end.
    #[track_caller]
    pub(crate) fn shows(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.shown[self.seen..].find(text) {
                let end = self.seen + at + text.len();
                let shown = self.shown[self.seen..end].to_owned();
                self.seen = end;
                return shown;
            }
            match self.output.recv_timeout(PATIENCE) {
                Ok(bytes) => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("{text:?} is not shown, but:\n{}", self.shown),
            }
        }
    }

    /// Waits for a question and answers it.
    #[track_caller]
    pub(crate) fn answers(&mut self, question: &str, answer: &str) -> String {
        let shown = self.shows(question);
        self.keys(&format!("{answer}\n"));
        shown
    }

    /// Whether what is typed is shown.
    pub(crate) fn echoes(&self) -> bool {
        let modes = tcgetattr(&self.pts).unwrap().local_modes;
        modes.contains(LocalModes::ECHO)
    }

    /// Waits for the program's end. The terminal must be as it was.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> ExitStatus {
        let status = match self.ended.recv_timeout(PATIENCE) {
            Ok(status) => status,
            Err(RecvTimeoutError::Timeout) => panic!("it goes on:\n{}", self.shown),
            Err(RecvTimeoutError::Disconnected) => panic!("it ended before"),
        };
        let after = tcgetattr(&self.pts).unwrap();
        let modes = |termios: &Termios| {
            let Termios {
                input_modes,
                output_modes,
                local_modes,
                ..
            } = termios;
            (*input_modes, *output_modes, *local_modes)
        };
        assert_eq!(modes(&after), modes(&self.before));
        status
    }

    /// All that was shown until now.
    pub(crate) fn transcript(&self) -> &str {
        &self.shown
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Most have ended by themselves.
        let _ = kill_process(self.pid, Signal::KILL);
    }
}

fn read(pty: Arc<Pty>) -> Receiver<Vec<u8>> {
    let (tell, told) = channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = (&*pty).read(&mut buffer) {
            if tell.send(buffer[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    told
}

fn wait(mut child: Child) -> Receiver<ExitStatus> {
    let (tell, told) = channel();
    thread::spawn(move || {
        let status = child.wait().unwrap();
        // A test that has ended does not ask.
        let _ = tell.send(status);
    });
    told
}
