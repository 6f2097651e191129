//! Another message store takes over while the broker runs, with everything that the present one holds.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tyo_mq_auth::json::{Object, Value};
use tyo_mq_auth::{Answer, Refusal};
use tyo_mq_core::store::{Store, StoreError};
use tyo_mq_storage::{Backend, DEFAULT_FILE, FALLBACK_NAMES, FILE_NAMES, Move};

use super::Access;
use super::keeper::KeeperError;
use crate::settings::Settings;
use crate::storage;

/// The message store in use, and the one that is to come.
#[derive(Default)]
pub(super) struct MessageStore {
    /// The settings that it was opened with.
    settings: Mutex<Settings>,
    waiting: Mutex<Option<Waiting>>,
}

/// A store that could not be opened, and is looked for.
struct Waiting {
    task: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

/// A store that is asked for.
#[derive(Clone)]
struct Wanted {
    storage: &'static str,
    options: Object,
    settings: Settings,
}

/// When a change holds, as commands are answered.
const NOW: &str = "now";
const LATER: &str = "when the store can be reached";
const AFTER_RESTART: &str = "after a restart";

/// The wait between looks at a store that is away.
const RETRY: Duration = Duration::from_secs(2);

impl MessageStore {
    pub(super) fn opened_with(&self, settings: &Settings) {
        *self.settings() = settings.clone();
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, Option<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a store is looked for.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting()
            .as_ref()
            .is_some_and(|waiting| !waiting.task.is_finished())
    }

    /// Nothing is looked for any more; a move under way is finished first.
    async fn stop_waiting(&self) {
        let waiting = self.waiting().take();
        if let Some(waiting) = waiting {
            waiting.stop.send_replace(true);
            // A panic there is reported by tokio.
            let _ = waiting.task.await;
        }
    }
}

impl Access {
    /// Answers when the change holds.
    pub(super) async fn change_persistence(
        self: &Arc<Self>,
        storage: &'static str,
        options: Object,
    ) -> Answer {
        match self.let_take_over(storage, options).await {
            Ok(when) => Answer::Value(Value::from(when)),
            Err(refusal) => Answer::Refused(refusal),
        }
    }

    async fn let_take_over(
        self: &Arc<Self>,
        storage: &'static str,
        options: Object,
    ) -> Result<&'static str, Refusal> {
        let wanted = self.wanted(storage, options)?;
        self.message_store.stop_waiting().await;
        let present = backend(&self.message_store.settings())?;
        let next = backend(&wanted.settings)?;
        if is_same_place(&present, &next) {
            let hold = present == next;
            self.keep_storage(&wanted, hold)?;
            return Ok(if hold { NOW } else { AFTER_RESTART });
        }
        match storage::open_wanted(&wanted.settings).await {
            Ok(target) => {
                self.hand_over(&target, &mut Move::default(), &wanted)
                    .await?;
                Ok(NOW)
            }
            Err(error) if matches!(next, Backend::Redis(_)) => {
                tracing::warn!(%error, "the message store that is wanted is away: the present one goes on");
                self.keep_storage(&wanted, false)?;
                self.look_for(wanted);
                Ok(LATER)
            }
            Err(error) => Err(Refusal::new(400, error.to_string())),
        }
    }

    /// The settings with this store, if the next start would take them.
    fn wanted(&self, storage: &'static str, options: Object) -> Result<Wanted, Refusal> {
        let folder = self.keeper().view().data_dir;
        let options = anchored(options, storage, folder.as_deref());
        let mut settings = self.message_store.settings().clone();
        settings.storage = storage.into();
        let text = Value::from(options.clone()).to_json();
        settings.storage_options = serde_json::from_str(&text).unwrap_or_default();
        let wanted = Wanted {
            storage,
            options,
            settings,
        };
        let checked = self.keeper().check_settings(wanted.changes());
        checked.map_err(|error| keeper_refusal(&error))?;
        Ok(wanted)
    }

    /// Moves everything to the target, which is used from then on. If that fails, everything is as before.
    async fn hand_over(
        &self,
        target: &Arc<dyn Store>,
        moving: &mut Move,
        wanted: &Wanted,
    ) -> Result<(), Refusal> {
        let mut moved = None;
        let change = async |from: Arc<dyn Store>, last| {
            let copied = moving.copy(&*from, target.clone(), last).await;
            let (store, own) = copied.map_err(store_refusal)?;
            self.keep_storage(wanted, true)?;
            moved = Some((from, own));
            Ok(store)
        };
        let changed = self.broker.change_store(change).await;
        match (changed, moved) {
            (Ok(()), Some((from, own))) => {
                *self.message_store.settings() = wanted.settings.clone();
                std::mem::take(moving).finish(&*from).await;
                storage::adopt(&self.broker, own);
                tracing::info!(
                    store = target.name(),
                    "another message store has taken over"
                );
                Ok(())
            }
            (changed, _) => {
                if let Err(error) = moving.take_back(&**target).await {
                    tracing::warn!(%error, "copies of messages stay in a store that did not take over");
                }
                target.close().await;
                changed
            }
        }
    }

    /// Writes the settings of a store and shows them. They hold from now on, or later.
    fn keep_storage(&self, wanted: &Wanted, hold: bool) -> Result<(), Refusal> {
        let _order = self.in_order();
        let mut keeper = self.keeper();
        let written = keeper.write_settings(wanted.changes());
        written.map_err(|error| keeper_refusal(&error))?;
        keeper.show_storage(wanted.storage, wanted.options.clone());
        if !hold {
            return Ok(());
        }
        keeper.storage_holds();
        if let Ok(config) = wanted.settings.storage_config() {
            self.broker.set_default_ttl(config.default_ttl_ms);
        }
        Ok(())
    }

    /// Looks for a store until it is there, and lets it take over then.
    fn look_for(self: &Arc<Self>, wanted: Wanted) {
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(look_for(Arc::downgrade(self), wanted, stopped));
        *self.message_store.waiting() = Some(Waiting { task, stop });
    }
}

async fn look_for(access: Weak<Access>, wanted: Wanted, mut stopped: watch::Receiver<bool>) {
    let mut moving = Move::default();
    loop {
        tokio::select! {
            // Nobody is left to stop it when the broker is gone.
            _ = stopped.wait_for(|stopped| *stopped) => return,
            () = tokio::time::sleep(RETRY) => {}
        }
        let Ok(target) = storage::open_wanted(&wanted.settings).await else {
            continue;
        };
        let Some(access) = access.upgrade() else {
            return;
        };
        match access.hand_over(&target, &mut moving, &wanted).await {
            Ok(()) => return,
            Err(refusal) => {
                tracing::warn!(error = %refusal.message, "the message store is back but cannot take over yet")
            }
        }
    }
}

impl Wanted {
    fn changes(&self) -> [(&'static str, Value); 2] {
        [
            ("storage", Value::from(self.storage)),
            ("storage_options", Value::from(self.options.clone())),
        ]
    }
}

/// Files without a folder go where the settings file is, also when the program was started elsewhere.
fn anchored(mut options: Object, storage: &str, folder: Option<&Path>) -> Object {
    let Some(folder) = folder.and_then(other_folder) else {
        return options;
    };
    let is_sqlite =
        |kind: Option<&str>| kind.is_some_and(|kind| kind.eq_ignore_ascii_case("sqlite"));
    let stand_in = options.get("fallback").and_then(Value::as_str);
    let wants = [
        (is_sqlite(Some(storage)), &FILE_NAMES[..]),
        (is_sqlite(stand_in), &FALLBACK_NAMES[..]),
    ];
    for (wanted, names) in wants {
        let is_named = names.iter().any(|name| options.get(name).is_some());
        if let (true, false, [name, ..]) = (wanted, is_named, names) {
            options.set(name, DEFAULT_FILE);
        }
    }
    for name in FILE_NAMES.into_iter().chain(FALLBACK_NAMES) {
        if let Some(file) = options.get(name).and_then(Value::as_str) {
            let file = folder.join(file).display().to_string();
            options.set(name, file.as_str());
        }
    }
    options
}

/// The folder in full, unless it is the one that the program works in.
fn other_folder(folder: &Path) -> Option<PathBuf> {
    let folder = std::path::absolute(folder).ok()?;
    let here = std::env::current_dir().ok()?;
    (folder.canonicalize().ok() != here.canonicalize().ok()).then_some(folder)
}

fn backend(settings: &Settings) -> Result<Backend, Refusal> {
    let config = settings.storage_config();
    config
        .map(|config| config.backend)
        .map_err(|error| Refusal::new(400, error.to_string()))
}

/// Whether two stores keep in the same place, however they do it.
fn is_same_place(left: &Backend, right: &Backend) -> bool {
    match (left, right) {
        (Backend::Memory, Backend::Memory) => true,
        (Backend::Sqlite(left), Backend::Sqlite(right)) => real(&left.path) == real(&right.path),
        (Backend::Redis(left), Backend::Redis(right)) => {
            (&left.url, &left.prefix) == (&right.url, &right.prefix)
        }
        _ => false,
    }
}

/// A file by the path that no other name of it has, if it is there.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn store_refusal(error: StoreError) -> Refusal {
    Refusal::new(500, error.to_string())
}

fn keeper_refusal(error: &KeeperError) -> Refusal {
    let is_theirs = matches!(error, KeeperError::Settings(_));
    Refusal::new(if is_theirs { 400 } else { 500 }, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(storage: &str, options: &str, expected: &str) {
        let options = Value::parse(options).unwrap();
        let options = options.as_object().unwrap().clone();
        let folder = Some(Path::new("/elsewhere"));
        let anchored = Value::from(anchored(options, storage, folder)).to_json();
        assert_eq!(anchored, expected, "{storage}");
    }

    #[test]
    fn files_go_where_the_settings_are() {
        check("memory", "{}", "{}");
        check("sqlite", "{}", r#"{"filename":"/elsewhere/tyo-mq.sqlite"}"#);
        check("sqlite", r#"{"path":"q"}"#, r#"{"path":"/elsewhere/q"}"#);
        check(
            "sqlite",
            r#"{"file":"/elsewhere/q"}"#,
            r#"{"file":"/elsewhere/q"}"#,
        );
        check(
            "redis",
            r#"{"fallback":"sqlite"}"#,
            r#"{"fallback":"sqlite","fallback_filename":"/elsewhere/tyo-mq.sqlite"}"#,
        );
    }

    #[test]
    fn every_option_that_names_a_file_is_held_to_the_data_folder() {
        let named: Vec<_> = FILE_NAMES.into_iter().chain(FALLBACK_NAMES).collect();
        assert_eq!(named, tyo_mq_auth::FILE_OPTIONS);
    }
}
