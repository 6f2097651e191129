//! Commands that the running broker carries out or answers: what is asked of it, and what it may answer.

use std::path::{Component, Path, PathBuf};

use crate::document;
use crate::json::{Object, Value};
use crate::names::RealmName;
use crate::refusal::Refusal;

use super::fields;
use super::{Context, Draft, Plan};

/// What the server shows of itself in replies, and what it can do.
#[derive(Debug, Clone)]
pub struct ServerView {
    /// The name of the message store in use.
    pub storage: String,
    /// Its options.
    pub storage_options: Object,
    /// The store cannot be reached yet: another one is in use.
    pub storage_pending: bool,
    /// The namespaces, each an object with its `module`.
    pub namespaces: Object,
    /// Whether a settings file is watched.
    pub has_settings_file: bool,
    /// Where files may be: an absolute path of a command must be under it.
    pub data_dir: Option<PathBuf>,
    /// What became of the last reading of the settings file, once it was read again.
    pub reload: Option<Object>,
}

/// What only the running broker knows or can do.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Question {
    /// Reads the settings file again and adopts it. Answer: [`Answer::Done`].
    ReloadSettings,
    /// Disconnects a realm's sockets, removes its messages and dead letters. Answer: the number of sockets.
    ClearRealm(RealmName),
    /// Moves a realm's sockets, messages, dead letters and limits. Answer: the number of sockets.
    RenameRealm {
        /// The old name.
        from: RealmName,
        /// The new name.
        to: RealmName,
    },
    /// Lets another message store take over with what the present one holds, and keeps both settings. Answer: when that
    /// holds.
    SetPersistence {
        /// `memory`, `sqlite` or `redis`.
        storage: &'static str,
        /// Its options.
        options: Object,
    },
    /// Counts of realms, producers, consumers, connections. Answer: an object.
    Stats,
    /// Dead letters of a realm or of all. Answer: a list.
    DlqList {
        /// The realm.
        realm: Option<RealmName>,
    },
    /// Sends a dead letter again. Answer: its new id.
    DlqReplay {
        /// Its id.
        id: String,
        /// Its realm, if it was told.
        realm: Option<RealmName>,
    },
    /// Removes a dead letter. Answer: done.
    DlqDiscard {
        /// Its id.
        id: String,
        /// Its realm, if it was told.
        realm: Option<RealmName>,
    },
    /// Live clients. Answer: a list.
    ListClients {
        /// Only of this realm.
        realm: Option<RealmName>,
        /// So many are left out at the beginning.
        offset: usize,
        /// So many at the most.
        limit: usize,
    },
    /// Disconnects a client. Answer: done, or 404.
    DisconnectClient {
        /// Its socket's id.
        socket: String,
    },
    /// The limits in force. Answer: an object.
    GetLimits {
        /// As they are for this realm.
        realm: Option<RealmName>,
    },
    /// Sets limits, null to remove one, and keeps them. Answer: the limits in force.
    SetLimits {
        /// For this realm only.
        realm: Option<RealmName>,
        /// Numbers and nulls by name.
        limits: Object,
    },
    /// Copies the auth store to a file that is not there yet. Answer: done, or 501 without a store.
    BackupAuthStore {
        /// The file.
        path: PathBuf,
    },
}

/// What the broker answers.
#[derive(Debug, Clone)]
pub enum Answer {
    /// It is done.
    Done,
    /// It is done, and this came of it.
    Value(Value),
    /// It is not done.
    Refused(Refusal),
}

impl Answer {
    pub(super) fn into_result(self) -> Result<Option<Value>, Refusal> {
        match self {
            Self::Done => Ok(None),
            Self::Value(value) => Ok(Some(value)),
            Self::Refused(refusal) => Err(refusal),
        }
    }
}

impl Default for ServerView {
    fn default() -> Self {
        let remote = Object::new().with("module", "built-in");
        Self {
            storage: "memory".to_owned(),
            storage_options: Object::new(),
            storage_pending: false,
            namespaces: Object::new().with("/remote", remote),
            has_settings_file: false,
            data_dir: None,
            reload: None,
        }
    }
}

impl ServerView {
    pub(super) fn redacted_persistence(&self) -> Object {
        let options = Value::from(self.storage_options.clone());
        let shown = Object::new()
            .with("storage", self.storage.as_str())
            .with("storage_options", document::redacted_value(&options));
        if self.storage_pending {
            shown.with("pending", true)
        } else {
            shown
        }
    }
}

pub(super) fn reload_settings(context: &Context<'_>) -> Result<Plan, Refusal> {
    if !context.view.has_settings_file {
        return Err(Refusal::malformed("no settings file is watched"));
    }
    Ok(Plan {
        question: Some(Question::ReloadSettings),
        ..Plan::default()
    })
}

pub(super) fn stats(_: &Context<'_>) -> Result<Plan, Refusal> {
    Ok(Plan::ask(Question::Stats, Object::new(), "stats"))
}

pub(super) fn dlq_list(context: &Context<'_>) -> Result<Plan, Refusal> {
    let realm = fields::optional_realm(context.body, "realm")?;
    let extra = Object::new().with("realm", realm.as_ref().map(RealmName::as_str));
    Ok(Plan::ask(Question::DlqList { realm }, extra, "entries"))
}

pub(super) fn dlq_replay(context: &Context<'_>) -> Result<Plan, Refusal> {
    let (id, realm, extra) = dead_letter(context)?;
    let question = Question::DlqReplay { id, realm };
    Ok(Plan::ask(question, extra, "new_msg_id"))
}

pub(super) fn dlq_discard(context: &Context<'_>) -> Result<Plan, Refusal> {
    let (id, realm, extra) = dead_letter(context)?;
    let question = Question::DlqDiscard { id, realm };
    Ok(Plan::ask(question, extra, "discarded"))
}

pub(super) fn list_clients(context: &Context<'_>) -> Result<Plan, Refusal> {
    let question = Question::ListClients {
        realm: fields::optional_realm(context.body, "realm")?,
        offset: fields::count(context.body, "offset", 0, u32::MAX as usize)?,
        limit: fields::count(context.body, "limit", 100, 1000)?,
    };
    Ok(Plan::ask(question, Object::new(), "clients"))
}

pub(super) fn disconnect_client(context: &Context<'_>) -> Result<Plan, Refusal> {
    let socket = fields::required_text(context.body, &["socket", "socket_id"])?.to_owned();
    let extra = Object::new().with("socket", socket.as_str());
    let question = Question::DisconnectClient { socket };
    Ok(Plan::ask(question, extra, "disconnected"))
}

pub(super) fn get_limits(context: &Context<'_>) -> Result<Plan, Refusal> {
    let realm = fields::optional_realm(context.body, "realm")?;
    let question = Question::GetLimits { realm };
    Ok(Plan::ask(question, Object::new(), "limits"))
}

pub(super) fn set_limits(context: &Context<'_>) -> Result<Plan, Refusal> {
    let realm = fields::optional_realm(context.body, "realm")?;
    let limits = fields::present(context.body, &["limits"]).and_then(Value::as_object);
    let limits = limits.ok_or_else(|| Refusal::malformed("limits must be an object"))?;
    for (name, value) in limits.iter() {
        let name = name.to_lossy();
        let scope = LIMITS.iter().find(|(limit, _)| *limit == name);
        let is_scoped = realm.is_none() || scope.is_some_and(|(_, is_of_realm)| *is_of_realm);
        if scope.is_none() || !is_scoped {
            let shown: String = name.chars().take(64).collect();
            return Err(Refusal::malformed(format!(
                "there is no such limit: {shown}"
            )));
        }
        let is_number = value.as_number().is_some_and(|n| n.is_finite() && n >= 0.0);
        if !is_number && *value != Value::Null {
            return Err(Refusal::malformed(format!(
                "{name} must be a number or null"
            )));
        }
    }
    let limits = limits.clone();
    let question = Question::SetLimits { realm, limits };
    Ok(Plan::ask(question, Object::new(), "limits"))
}

pub(super) fn set_persistence(context: &Context<'_>) -> Result<Plan, Refusal> {
    let body = context.body;
    let storage = fields::text(body, &["storage", "backend"])?.unwrap_or("memory");
    let storage = match storage.to_ascii_lowercase().as_str() {
        "memory" => "memory",
        "sqlite" => "sqlite",
        "redis" => "redis",
        "custom" => return Err(Refusal::new(501, "this broker loads no store modules")),
        _ => {
            return Err(Refusal::malformed(
                "storage must be memory, sqlite or redis",
            ));
        }
    };
    let given = ["storage_options", "storageOptions", "options"];
    let mut options = match fields::present(body, &given) {
        None => Object::new(),
        Some(Value::Object(options)) => options.clone(),
        Some(_) => return Err(Refusal::malformed("storage_options must be an object")),
    };
    if let Some(ttl) = fields::present(body, &["default_ttl", "defaultTtl"]) {
        options.set("default_ttl", ttl.clone());
    }
    for (target, names) in [
        ("filename", &["filename", "path"][..]),
        ("url", &["url"]),
        ("prefix", &["prefix"]),
    ] {
        if let Some(text) = fields::text(body, names)? {
            options.set(target, text);
        }
    }
    check_options(context, &options)?;
    Ok(Plan {
        question: Some(Question::SetPersistence { storage, options }),
        answer: Draft {
            answer_field: Some("in_force"),
            ..Draft::default()
        },
        ..Plan::default()
    })
}

pub(super) fn backup_auth_store(context: &Context<'_>) -> Result<Plan, Refusal> {
    if !context.state.has_store() {
        return Err(Refusal::new(501, "there is no auth store"));
    }
    let path = fields::required_text(context.body, &["filename", "path"])?;
    let path = inside(context, path)?;
    let path = match &context.view.data_dir {
        Some(dir) => dir.join(path),
        None => path,
    };
    let question = Question::BackupAuthStore { path };
    Ok(Plan::ask(question, Object::new(), "backup"))
}

fn check_options(context: &Context<'_>, options: &Object) -> Result<(), Refusal> {
    if let Some(ttl) = fields::present(options, &["default_ttl", "defaultTtl"]) {
        let is_good = ttl.as_number().is_some_and(|n| n.is_finite() && n > 0.0);
        if !is_good {
            return Err(Refusal::malformed(
                "default_ttl must be a number of seconds",
            ));
        }
    }
    for name in FILE_OPTIONS {
        if let Some(path) = fields::text(options, &[name])? {
            inside(context, path)?;
        }
    }
    Ok(())
}

/// A path that stays where the server's files may be.
fn inside(context: &Context<'_>, path: &str) -> Result<PathBuf, Refusal> {
    let refusal = || Refusal::malformed("files must stay in the data directory");
    let path = Path::new(path);
    let climbs = path
        .components()
        .any(|part| matches!(part, Component::ParentDir));
    let is_under = path.is_relative()
        || context
            .view
            .data_dir
            .as_ref()
            .is_some_and(|dir| path.starts_with(dir));
    let has_control = path.to_string_lossy().chars().any(char::is_control);
    if climbs || !is_under || has_control {
        return Err(refusal());
    }
    Ok(path.to_owned())
}

fn dead_letter(context: &Context<'_>) -> Result<(String, Option<RealmName>, Object), Refusal> {
    let id = fields::required_text(context.body, &["msg_id", "msgId", "id"])?.to_owned();
    let realm = fields::optional_realm(context.body, "realm")?;
    let extra = Object::new().with("msg_id", id.as_str());
    Ok((id, realm, extra))
}

/// Options of stores that name files, in every spelling.
pub const FILE_OPTIONS: [&str; 7] = [
    "filename",
    "file",
    "path",
    "fallback_filename",
    "fallbackFilename",
    "fallback_path",
    "fallbackPath",
];

/// The limits that can be set, and whether for a realm alone.
const LIMITS: &[(&str, bool)] = &[
    ("messages_per_second", true),
    ("message_burst", true),
    ("bytes_per_second", true),
    ("bytes_burst", true),
    ("max_registrations_per_socket", true),
    ("max_registrations_per_realm", true),
    ("max_subscriptions_per_socket", true),
    ("max_subscriptions_per_realm", true),
    ("max_queued_per_realm", true),
    ("max_connections_per_ip", false),
    ("connections_per_minute_per_ip", false),
    ("realms_per_hour_per_ip", false),
    ("max_pending_authorization_requests", false),
];
