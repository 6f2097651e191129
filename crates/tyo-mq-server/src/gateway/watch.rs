//! Closes connections that join no namespace in time. One task for all of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tyo_mq_transport::{CloseReason, Connection};

/// Connections that have joined nothing yet, oldest first.
pub(super) struct ConnectWatch {
    timeout: Duration,
    waiting: Mutex<VecDeque<Waiting>>,
    wake: Notify,
}

struct Waiting {
    until: Instant,
    conn: Weak<Connection>,
    joined: Arc<AtomicBool>,
}

impl ConnectWatch {
    pub(super) fn start(timeout: Duration) -> Arc<Self> {
        let watch = Arc::new(Self {
            timeout,
            waiting: Mutex::default(),
            wake: Notify::new(),
        });
        tokio::spawn(Self::run(Arc::downgrade(&watch)));
        watch
    }

    /// Watches a connection; the flag is to be set when it joins.
    pub(super) fn add(&self, conn: &Arc<Connection>) -> Arc<AtomicBool> {
        let joined = Arc::new(AtomicBool::new(false));
        let until = Instant::now() + self.timeout;
        let mut waiting = self.lock();
        waiting.push_back(Waiting {
            until,
            conn: Arc::downgrade(conn),
            joined: joined.clone(),
        });
        if waiting.len() == 1 {
            self.wake.notify_one();
        }
        joined
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends with the last gateway that holds the watch.
    async fn run(this: Weak<Self>) {
        loop {
            let Some(watch) = this.upgrade() else { return };
            let until = watch.close_overdue();
            tokio::select! {
                () = watch.wake.notified() => {}
                () = tokio::time::sleep_until(until.unwrap_or_else(|| Instant::now() + IDLE)) => {}
            }
        }
    }

    /// Closes what is overdue; when the next one will be.
    fn close_overdue(&self) -> Option<Instant> {
        let mut waiting = self.lock();
        while let Some(first) = waiting.front() {
            // Who joined or left needs no further watching, whatever its time.
            let settled = first.joined.load(Ordering::Relaxed) || first.conn.strong_count() == 0;
            if !settled && first.until > Instant::now() {
                return Some(first.until);
            }
            let first = waiting.pop_front()?;
            if let Some(conn) = first.conn.upgrade().filter(|_| !settled) {
                conn.close(CloseReason::ServerClosed);
            }
        }
        None
    }
}

/// How often an idle watch looks whether its gateway is still there.
const IDLE: Duration = Duration::from_secs(60);
