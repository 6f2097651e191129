//! Tests as transcripts: who sends what, what everybody gets back, and that nothing else comes.
//!
//! A line is a client's name and a frame: `A> 42[…]` sends, `A< 42[…]` must be the next thing that A receives, `A<` says
//! that nothing came. `A>>` and `A<<` are binary frames in hex. `A< closed` is the end of the connection, `A! close` ends
//! it from our side, `A! leave` forgets A without a word, so that the name can connect anew. A client connects and joins
//! when its name first appears, unless its line is `A! engine` (EIO 4, joins nothing) or `A! eio3`.
//! `$A` stands for A's socket id; `<word>` in what is expected for any text, the same each time.
//! After each line what it causes is done. At the end nothing may be left unread.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::client::{Came, Client};
use crate::server::Running;

/// Plays a transcript against a new server.
pub(crate) async fn check(script: &str) {
    check_with(json!({}), script).await;
}

/// Plays a transcript against a new server with these settings.
pub(crate) async fn check_with(settings: Value, script: &str) {
    let server = Running::with(settings).await;
    play(&server, script).await;
}

/// Plays a transcript; its clients stay connected as long as they are kept.
pub(crate) async fn play(server: &Running, script: &str) -> Vec<(String, Client)> {
    let mut stage = Stage {
        server,
        clients: Vec::new(),
        known: HashMap::new(),
    };
    for (index, line) in script.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        stage
            .line(line, &format!("line {}: {line}", index + 1))
            .await;
    }
    for (name, client) in &mut stage.clients {
        let rest = client.rest().await;
        assert_eq!(rest, [], "{name} got more than the script says");
    }
    stage.clients
}

struct Stage<'a> {
    server: &'a Running,
    clients: Vec<(String, Client)>,
    /// What the words in angle brackets stood for.
    known: HashMap<String, String>,
}

impl Stage<'_> {
    async fn line(&mut self, line: &str, place: &str) {
        let end = line
            .find(['>', '<', '!'])
            .unwrap_or_else(|| panic!("{place}"));
        let (name, rest) = line.split_at(end);
        if let Some(what) = rest.strip_prefix('!') {
            return self.act(name, what.trim(), place).await;
        }
        self.connected(name).await;
        if let Some(hex) = rest.strip_prefix(">>") {
            let client = self.client(name);
            client.send_binary(&bytes(hex.trim())).await;
            client.fence().await;
        } else if let Some(hex) = rest.strip_prefix("<<") {
            let came = self.client(name).next().await;
            assert_eq!(came, Came::Binary(bytes(hex.trim())), "{place}");
        } else if let Some(text) = rest.strip_prefix('>') {
            let text = self.fill_in(text.trim());
            let client = self.client(name);
            client.send(&text).await;
            client.fence().await;
        } else {
            self.expect(name, rest[1..].trim(), place).await;
        }
    }

    async fn act(&mut self, name: &str, what: &str, place: &str) {
        let addr = self.server.addr;
        match what {
            "close" => {
                self.client(name).close().await;
                self.clients.retain(|(known, _)| known != name);
            }
            "leave" => self.clients.retain(|(known, _)| known != name),
            "engine" => self
                .clients
                .push((name.to_owned(), Client::engine(addr, 4).await)),
            "eio3" => self
                .clients
                .push((name.to_owned(), Client::engine(addr, 3).await)),
            _ => panic!("{place}"),
        }
    }

    async fn expect(&mut self, name: &str, pattern: &str, place: &str) {
        if pattern.is_empty() {
            assert_eq!(self.client(name).rest().await, [], "{place}");
            return;
        }
        let came = self.client(name).next().await;
        let pattern = self.fill_in(pattern);
        match came {
            Came::Text(text) => {
                let words = matched(&pattern, &text);
                let words = words.unwrap_or_else(|| panic!("{place}\n   came: {text}"));
                if pattern.starts_with("40{\"sid\":") {
                    let id = text[9..].trim_matches(['"', '}']).to_owned();
                    self.client(name).id = id;
                }
                self.known.extend(words);
            }
            Came::Closed(None) if pattern == "closed" => {}
            Came::Closed(Some(code)) if pattern == format!("closed {code}") => {}
            other => panic!("{place}\n   came: {other:?}"),
        }
    }

    async fn connected(&mut self, name: &str) {
        if !self.clients.iter().any(|(known, _)| known == name) {
            let client = Client::connect(self.server.addr).await;
            self.clients.push((name.to_owned(), client));
        }
    }

    fn client(&mut self, name: &str) -> &mut Client {
        let found = self.clients.iter_mut().find(|(known, _)| known == name);
        &mut found.unwrap_or_else(|| panic!("{name} is not connected")).1
    }

    /// The text with socket ids and known words in their places. Ids of clients that left stay known.
    fn fill_in(&mut self, text: &str) -> String {
        for (name, client) in &self.clients {
            self.known.insert(format!("${name}"), client.id.clone());
        }
        let mut names: Vec<&String> = self.known.keys().collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        names.into_iter().fold(text.to_owned(), |text, name| {
            text.replace(name.as_str(), &self.known[name])
        })
    }
}

/// The words that make the pattern the text; nothing if none do.
fn matched(pattern: &str, text: &str) -> Option<Vec<(String, String)>> {
    let Some(start) = pattern.find('<') else {
        return (pattern == text).then(Vec::new);
    };
    let end = start + pattern[start..].find('>')? + 1;
    let (word, after) = (&pattern[start..end], &pattern[end..]);
    let rest = text.strip_prefix(&pattern[..start])?;
    // A word ends where the text that follows it in the pattern begins.
    let until = after.find('<').map_or(after, |next| &after[..next]);
    let stop = if until.is_empty() {
        rest.len()
    } else {
        rest.find(until)?
    };
    let mut words = matched(after, &rest[stop..])?;
    words.push((word.to_owned(), rest[..stop].to_owned()));
    Some(words)
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two hex digits");
    (0..hex.len()).step_by(2).map(digit).collect()
}
