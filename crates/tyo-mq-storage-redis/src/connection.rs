//! The connection: made again for ever, with bounded patience for each operation.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fred::prelude::*;
use fred::types::config::{Options, UnresponsiveConfig};
use fred::types::{ClusterHash, CustomCommand, Value};
use fred::util::redis_keyslot;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};
use tyo_mq_core::store::StoreError;
use tyo_mq_storage::RedisConfig;

use crate::error::{is_away, is_unknown_script, store_error, unexpected};
use crate::script::Script;

/// A supervised connection.
pub(crate) struct Connection {
    client: Client,
    task: Mutex<Option<fred::types::ConnectHandle>>,
    /// Routes scripts to the node that has the keys.
    routing_key: String,
    command_timeout: Duration,
    probe_timeout: Duration,
    /// The last operation found nobody. The next one waits less.
    away: AtomicBool,
}

/// Waits between attempts to connect, in milliseconds: from, to.
const RECONNECT_MS: (u32, u32) = (100, 1000);

/// How long an operation waits after another one has waited in vain.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);

/// The wait before a command is tried again on a connection that has just gone.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// How long saying goodbye may take.
const QUIT_TIMEOUT: Duration = Duration::from_secs(1);

impl Connection {
    pub(crate) fn start(config: &RedisConfig, routing_key: String) -> Result<Self, StoreError> {
        let client = client(config)?;
        let task = client.connect();
        Ok(Self {
            client,
            task: Mutex::new(Some(task)),
            routing_key,
            command_timeout: config.command_timeout,
            probe_timeout: config.probe_timeout,
            away: AtomicBool::new(false),
        })
    }

    pub(crate) async fn probe(&self) -> Result<(), StoreError> {
        let deadline = Instant::now() + self.probe_timeout;
        let ping = self.command("PING", Vec::new());
        self.attempt(ping, deadline, true).await.map(|_| ())
    }

    /// Runs a script. One that may run twice is tried again when the connection goes.
    pub(crate) async fn run(
        &self,
        script: &Script,
        args: Vec<Value>,
        repeatable: bool,
    ) -> Result<Value, StoreError> {
        let mut request = self.command("EVALSHA", with_head(&script.sha, &self.routing_key, &args));
        let answer = self
            .try_script(&mut request, script, &args, repeatable)
            .await;
        self.note(&answer);
        answer
    }

    async fn try_script(
        &self,
        request: &mut Request,
        script: &Script,
        args: &[Value],
        repeatable: bool,
    ) -> Result<Value, StoreError> {
        let deadline = Instant::now() + self.patience();
        match self.raw_attempt(request, deadline, repeatable).await {
            Err(Failure::Redis(error)) if is_unknown_script(&error) => {
                let request = self.command("EVAL", with_head(script.text, &self.routing_key, args));
                self.attempt(request, deadline, repeatable).await
            }
            answer => answer.map_err(Failure::into_store_error),
        }
    }

    /// Runs a command that only reads, at the node that has the keys.
    pub(crate) async fn read(
        &self,
        command: &'static str,
        args: Vec<Value>,
    ) -> Result<Value, StoreError> {
        let deadline = Instant::now() + self.patience();
        let request = self.command(command, args);
        let answer = self.attempt(request, deadline, true).await;
        self.note(&answer);
        answer
    }

    /// Every key of a pattern, read in steps.
    pub(crate) async fn scan(&self, pattern: &str) -> Result<Vec<String>, StoreError> {
        let mut keys = Vec::new();
        let mut cursor = "0".to_owned();
        loop {
            let args = [cursor.as_str(), "MATCH", pattern, "COUNT", SCAN_COUNT];
            let answer = self
                .read("SCAN", args.into_iter().map(Value::from).collect())
                .await?;
            let (next, found): (String, Vec<String>) =
                answer.convert().map_err(|_| unexpected())?;
            keys.extend(found);
            if next == "0" {
                keys.sort_unstable();
                keys.dedup();
                return Ok(keys);
            }
            cursor = next;
        }
    }

    pub(crate) async fn close(&self) {
        let task = self
            .task
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
        let Some(task) = task else {
            return;
        };
        let left = timeout(QUIT_TIMEOUT, self.client.quit()).await;
        if !matches!(left, Ok(Ok(()))) {
            debug!("redis was left without a goodbye");
        }
        task.abort();
    }

    fn command(&self, name: &'static str, args: Vec<Value>) -> Request {
        let slot = ClusterHash::Custom(redis_keyslot(self.routing_key.as_bytes()));
        Request {
            command: CustomCommand::new_static(name, slot, false),
            args,
        }
    }

    fn patience(&self) -> Duration {
        if self.away.load(Ordering::Relaxed) {
            SHORT_PATIENCE.min(self.command_timeout)
        } else {
            self.command_timeout
        }
    }

    fn note(&self, answer: &Result<Value, StoreError>) {
        let away = matches!(answer, Err(StoreError::Unavailable(_)));
        if self.away.swap(away, Ordering::Relaxed) != away {
            if away {
                warn!("redis is away");
            } else {
                info!("redis is back");
            }
        }
    }

    async fn attempt(
        &self,
        request: Request,
        deadline: Instant,
        repeatable: bool,
    ) -> Result<Value, StoreError> {
        let answer = self.raw_attempt(&request, deadline, repeatable).await;
        answer.map_err(Failure::into_store_error)
    }

    async fn raw_attempt(
        &self,
        request: &Request,
        deadline: Instant,
        repeatable: bool,
    ) -> Result<Value, Failure> {
        loop {
            self.connected(deadline).await?;
            let answer = self.send(request, deadline).await;
            match answer {
                Err(error)
                    if repeatable && is_away(&error) && Instant::now() + RETRY_PAUSE < deadline =>
                {
                    sleep(RETRY_PAUSE).await;
                }
                answer => return answer.map_err(Failure::Redis),
            }
        }
    }

    async fn send(&self, request: &Request, deadline: Instant) -> Result<Value, Error> {
        let options = Options {
            max_attempts: Some(1),
            timeout: Some(deadline.saturating_duration_since(Instant::now())),
            fail_fast: true,
            ..Options::default()
        };
        let client = self.client.with_options(&options);
        client
            .custom(request.command.clone(), request.args.clone())
            .await
    }

    /// Waits until there is a connection.
    async fn connected(&self, deadline: Instant) -> Result<(), Failure> {
        while !self.client.is_connected() {
            let left = deadline.saturating_duration_since(Instant::now());
            let step = left.min(RETRY_PAUSE);
            if step.is_zero() {
                return Err(Failure::NoConnection);
            }
            // The client's own signal may come before it is ready to send.
            drop(timeout(step, self.client.wait_for_connect()).await);
        }
        Ok(())
    }
}

/// Keys looked at in one step.
const SCAN_COUNT: &str = "1000";

struct Request {
    command: CustomCommand,
    args: Vec<Value>,
}

enum Failure {
    NoConnection,
    Redis(Error),
}

impl Failure {
    fn into_store_error(self) -> StoreError {
        match self {
            Self::NoConnection => StoreError::Unavailable("no connection to redis".to_owned()),
            Self::Redis(error) => store_error(&error),
        }
    }
}

fn with_head(script: &str, key: &str, args: &[Value]) -> Vec<Value> {
    let head = [script, "1", key].map(Value::from);
    head.into_iter().chain(args.iter().cloned()).collect()
}

fn client(config: &RedisConfig) -> Result<Client, StoreError> {
    // Chosen here, since the library panics where it finds more than one.
    drop(fred::rustls::crypto::ring::default_provider().install_default());
    let settings = Config::from_url(config.url.expose())
        .map_err(|_| StoreError::Unavailable("the redis url cannot be used".to_owned()))?;
    let (from_ms, to_ms) = RECONNECT_MS;
    let (connect_timeout, command_timeout) = (config.connect_timeout, config.command_timeout);
    Builder::from_config(settings)
        .with_config(|config| config.fail_fast = false)
        .with_connection_config(|config| {
            config.connection_timeout = connect_timeout;
            config.internal_command_timeout = connect_timeout;
            config.max_command_attempts = 1;
            config.reconnect_on_auth_error = true;
            config.tcp.nodelay = Some(true);
            config.unresponsive = UnresponsiveConfig {
                max_timeout: Some(command_timeout),
                interval: SHORT_PATIENCE,
            };
        })
        .set_policy(ReconnectPolicy::new_exponential(0, from_ms, to_ms, 2))
        .build()
        .map_err(|_| StoreError::Unavailable("the redis settings cannot be used".to_owned()))
}
