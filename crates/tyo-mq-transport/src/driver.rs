//! The task that owns a session's WebSocket: reads, tells the application, and writes what did not fit at once.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Sleep, sleep_until, timeout};
use tyo_mq_codec::engine::{
    Carrier, CloseReason, Packet, Protocol, UpgradeStep, decode_binary, decode_text,
};
use tyo_mq_codec::websocket::{Event, Opcode, write_close, write_frame};

use crate::app::{Application, Message, Session};
use crate::connection::Link;
use crate::engine::SessionCell;
use crate::inbound::{Batch, Inbound, poll_discard};
use crate::io::Io;

/// Reads in a row before other tasks get their turn.
const READS_PER_TURN: usize = 16;
/// How long a closed connection is read on, so that the peer gets the close frame and not a reset.
const LINGER: Duration = Duration::from_secs(1);

/// The owner of one WebSocket.
pub(crate) struct Driver<A: Application> {
    cell: Arc<SessionCell<A>>,
    io: Io,
    inbound: Inbound,
    /// It carries the session; before, it is only on the way to.
    carries: bool,
}

impl<A: Application> Driver<A> {
    pub(crate) fn new(cell: Arc<SessionCell<A>>, io: Io, inbound: Inbound, carries: bool) -> Self {
        Self {
            cell,
            io,
            inbound,
            carries,
        }
    }

    /// Runs until the session, or the attempt to upgrade it, is over.
    pub(crate) async fn run(mut self) {
        {
            let mut sleep = pin!(sleep_until(self.cell.engine.instant(self.deadline())));
            poll_fn(|cx| self.poll_run(cx, sleep.as_mut())).await;
        }
        // On the heap, for it happens once and its room would be held all the time.
        if self.carries {
            Box::pin(self.finish()).await;
        } else {
            self.cell.conn.abandon_upgrade();
            Box::pin(refuse(&mut self.io)).await;
        }
    }

    fn deadline(&self) -> u64 {
        if self.carries {
            self.cell.conn.deadline()
        } else {
            self.cell.conn.upgrade_deadline().unwrap_or(0)
        }
    }

    fn poll_run(&mut self, cx: &mut Context<'_>, mut sleep: Pin<&mut Sleep>) -> Poll<()> {
        for _ in 0..READS_PER_TURN {
            let view = self.cell.conn.observe(cx, false);
            if view.closed.is_some() {
                return Poll::Ready(());
            }
            if self.carries && view.drained {
                self.cell.tell_drained();
            }
            if self.carries && view.write_waits {
                self.poll_write_rest(cx);
            }
            match self.poll_read(cx) {
                Poll::Ready(ControlFlow::Continue(())) => continue,
                Poll::Ready(ControlFlow::Break(())) => return Poll::Ready(()),
                Poll::Pending => {}
            }
            if ready!(self.poll_timer(cx, sleep.as_mut(), view.deadline)).is_break() {
                return Poll::Ready(());
            }
        }
        // More may be there to read: the timer and other tasks first.
        let deadline = self.cell.conn.deadline();
        if let Poll::Ready(ControlFlow::Break(())) = self.poll_timer(cx, sleep.as_mut(), deadline) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Writes what waits, as far as the socket takes it; the task is woken when it takes more.
    fn poll_write_rest(&mut self, cx: &mut Context<'_>) {
        let conn = &self.cell.conn;
        if let Io::Tcp(stream) = &self.io {
            match stream.poll_write_ready(cx) {
                Poll::Ready(Ok(())) => conn.unblock(),
                Poll::Ready(Err(_)) => conn.close(CloseReason::TransportError),
                Poll::Pending => {}
            }
            return;
        }
        let io = &mut self.io;
        conn.write_with(|bytes| match io.poll_write(cx, bytes) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(std::io::ErrorKind::WouldBlock.into()),
        });
        if let Poll::Ready(Err(_)) = self.io.poll_flush(cx) {
            self.cell.conn.close(CloseReason::TransportError);
        }
    }

    /// Ready when the timer did something, pending when it waits.
    fn poll_timer(
        &mut self,
        cx: &mut Context<'_>,
        mut sleep: Pin<&mut Sleep>,
        session_deadline: u64,
    ) -> Poll<ControlFlow<()>> {
        let engine = &self.cell.engine;
        if self.carries {
            // Only ever moved forward: a later deadline costs nothing until the timer fires.
            let due = engine.instant(session_deadline);
            if due < sleep.deadline() {
                sleep.as_mut().reset(due);
            }
        }
        ready!(sleep.as_mut().poll(cx));
        if !self.carries {
            return Poll::Ready(ControlFlow::Break(()));
        }
        self.inbound.shrink();
        self.cell.conn.on_timer(engine.now());
        sleep.reset(engine.instant(self.cell.conn.deadline()));
        Poll::Ready(ControlFlow::Continue(()))
    }

    /// One read and all its frames.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<ControlFlow<()>> {
        let cell = Arc::clone(&self.cell);
        let link = (!self.carries).then(|| self.io.link());
        let carries = self.carries;
        let mut turn = Turn {
            cell: &cell,
            app: None,
            carries,
            link,
            reply: Vec::new(),
            talked: false,
        };
        let batch = ready!(
            self.inbound
                .poll_batch(cx, &mut self.io, &mut |event| turn.on_event(event))
        );
        turn.finish();
        let Turn { carries, reply, .. } = turn;
        self.carries = carries;
        if !reply.is_empty() && !write_at_once(&mut self.io, cx, &reply) {
            return Poll::Ready(ControlFlow::Break(()));
        }
        Poll::Ready(self.after_batch(batch))
    }

    fn after_batch(&mut self, batch: Batch) -> ControlFlow<()> {
        let conn = &self.cell.conn;
        if !self.carries {
            return if matches!(batch, Batch::Done) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            };
        }
        match batch {
            Batch::Done => {}
            Batch::Stopped => conn.close(CloseReason::ParseError),
            Batch::Ended => conn.close(CloseReason::TransportError),
            Batch::Failed(error) => {
                let reason = match error.code() {
                    1009 => CloseReason::TooLarge,
                    _ => CloseReason::ParseError,
                };
                conn.close_with_code(reason, Some(error.code()));
            }
        }
        conn.flush();
        ControlFlow::Continue(())
    }

    /// The session is closed: tells the application, lets the rest out, and ends the socket.
    async fn finish(&mut self) {
        self.cell.conn.close(CloseReason::TransportError);
        self.cell.leave();
        let reason = self.cell.end();
        if !matches!(
            reason,
            CloseReason::TransportError | CloseReason::SlowConsumer
        ) {
            let grace = self.cell.engine.config.close_grace;
            // Whoever does not read the rest within the grace does not get it.
            let written = timeout(grace, poll_fn(|cx| self.poll_drain(cx))).await;
            if written.is_ok() {
                linger(&mut self.io).await;
            }
        }
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (conn, io) = (&self.cell.conn, &mut self.io);
        let mut broken = false;
        conn.write_with(|bytes| match io.poll_write(cx, bytes) {
            Poll::Ready(result) => {
                broken |= result.is_err();
                result
            }
            Poll::Pending => Err(std::io::ErrorKind::WouldBlock.into()),
        });
        if !broken && conn.has_output() {
            return Poll::Pending;
        }
        self.io.poll_flush(cx).map(|_| ())
    }
}

/// Ends a WebSocket that does not carry a session: a close frame without a code.
pub(crate) async fn refuse(io: &mut Io) {
    let mut frame = Vec::new();
    write_close(&mut frame, None);
    if poll_fn(|cx| Poll::Ready(write_at_once(io, cx, &frame))).await {
        linger(io).await;
    }
}

/// The few bytes of a probe's answer or a goodbye: a socket that has no room for them is of no use.
fn write_at_once(io: &mut Io, cx: &mut Context<'_>, bytes: &[u8]) -> bool {
    matches!(io.poll_write(cx, bytes), Poll::Ready(Ok(count)) if count == bytes.len())
        && !matches!(io.poll_flush(cx), Poll::Ready(Err(_)))
}

/// Ends the writing side and reads until the peer has seen it.
async fn linger(io: &mut Io) {
    let rest = async {
        if poll_fn(|cx| io.poll_shutdown(cx)).await.is_ok() {
            poll_fn(|cx| poll_discard(cx, io)).await;
        }
    };
    // Not reading the end in time is the peer's loss.
    let _ = timeout(LINGER, rest).await;
}

/// One read's worth of frames.
struct Turn<'a, A: Application> {
    cell: &'a SessionCell<A>,
    /// Held from the first message to the end of the batch.
    app: Option<MutexGuard<'a, Option<A::Session>>>,
    carries: bool,
    /// Takes over when the upgrade completes.
    link: Option<Link>,
    /// Bytes for a WebSocket that does not carry the session yet.
    reply: Vec<u8>,
    talked: bool,
}

impl<A: Application> Turn<'_, A> {
    fn on_event(&mut self, event: Event<'_>) -> ControlFlow<()> {
        let protocol = self.cell.conn.protocol();
        let packet = match event {
            Event::Text(text) => match text.strip_prefix('4') {
                Some(message) if self.carries => return self.on_message(Message::Text(message)),
                _ => decode_text(protocol, text),
            },
            Event::Binary(bytes) => decode_binary(protocol, bytes),
            Event::Ping(payload) => {
                self.on_ping(payload);
                return ControlFlow::Continue(());
            }
            Event::Pong(_) => return ControlFlow::Continue(()),
            Event::Close(code) => return self.on_close(code),
        };
        match packet {
            Ok(packet) if self.carries => self.on_packet(packet),
            Ok(packet) => self.on_upgrade_packet(&packet),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn on_message(&mut self, message: Message<'_>) -> ControlFlow<()> {
        if self.cell.conn.is_closed() {
            return ControlFlow::Continue(());
        }
        self.talked = true;
        let cell = self.cell;
        let app = self.app.get_or_insert_with(|| cell.lock_app());
        match app.as_mut().map(|session| session.on_message(message)) {
            Some(Err(_)) => ControlFlow::Break(()),
            Some(Ok(())) | None => ControlFlow::Continue(()),
        }
    }

    fn on_packet(&mut self, packet: Packet<'_>) -> ControlFlow<()> {
        match self.cell.conn.on_packet(packet, self.cell.engine.now()) {
            Some(Packet::Text(text)) => self.on_message(Message::Text(text)),
            Some(Packet::Binary(bytes)) => self.on_message(Message::Binary(&bytes)),
            _ => ControlFlow::Continue(()),
        }
    }

    fn on_upgrade_packet(&mut self, packet: &Packet<'_>) -> ControlFlow<()> {
        match self
            .cell
            .conn
            .on_upgrade_packet(packet, self.cell.engine.now(), &mut self.link)
        {
            UpgradeStep::AnswerProbe => {
                write_frame(&mut self.reply, Opcode::Text, b"3probe");
                ControlFlow::Continue(())
            }
            UpgradeStep::Complete => {
                self.carries = true;
                ControlFlow::Continue(())
            }
            UpgradeStep::Refuse => ControlFlow::Break(()),
        }
    }

    fn on_ping(&mut self, payload: &[u8]) {
        if self.carries {
            self.cell.conn.answer_socket_ping(payload);
        } else if self.reply.is_empty() {
            write_frame(&mut self.reply, Opcode::Pong, payload);
        }
    }

    fn on_close(&mut self, code: Option<u16>) -> ControlFlow<()> {
        if self.carries {
            self.cell
                .conn
                .close_with_code(CloseReason::ClientClosed, code);
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(())
    }

    /// The batch is over.
    fn finish(&mut self) {
        if let Some(mut app) = self.app.take()
            && let Some(session) = app.as_mut()
        {
            session.on_batch_end();
        }
        if self.talked && self.cell.conn.protocol() == Protocol::V3 {
            self.cell.conn.touch(self.cell.engine.now());
        }
    }
}

/// Watches over a session while it polls: heartbeat, end, and handing over to a WebSocket.
pub(crate) async fn keep_polling<A: Application>(cell: Arc<SessionCell<A>>) {
    let mut sleep = pin!(sleep_until(cell.engine.instant(cell.conn.deadline())));
    let upgraded = poll_fn(|cx| poll_keep(&cell, cx, sleep.as_mut())).await;
    if upgraded {
        return;
    }
    cell.end();
    // The rest of what the client may still come to read.
    let read = poll_fn(|cx| {
        if cell.conn.observe(cx, true).goodbye {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    });
    let _ = timeout(cell.engine.config.close_grace, read).await;
    cell.leave();
    cell.conn.release();
}

/// Ready with true when a WebSocket took over, with false when the session ended.
fn poll_keep<A: Application>(
    cell: &SessionCell<A>,
    cx: &mut Context<'_>,
    mut sleep: Pin<&mut Sleep>,
) -> Poll<bool> {
    loop {
        let view = cell.conn.observe(cx, true);
        if view.closed.is_some() {
            return Poll::Ready(view.carrier == Carrier::WebSocket);
        }
        if view.carrier == Carrier::WebSocket {
            return Poll::Ready(true);
        }
        if view.drained {
            cell.tell_drained();
        }
        let due = cell.engine.instant(view.deadline);
        if due < sleep.deadline() {
            sleep.as_mut().reset(due);
        }
        ready!(sleep.as_mut().poll(cx));
        cell.conn.on_timer(cell.engine.now());
        sleep
            .as_mut()
            .reset(cell.engine.instant(cell.conn.deadline()));
    }
}
