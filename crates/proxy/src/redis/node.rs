//! One server as one worker uses it: a connection that all calls share, and when there is one.
//!
//! Calls are sent as they come, without waiting for the answers to those before. When the server cannot be used, all
//! that wait fail, and those that come are turned away at once, until a connection could be made again; tries to make
//! one are made in the background, further and further apart. So no call waits for a server that is known to be away.

use super::RedisContext;
use super::connect::{ReadyConnection, connect};
use super::resp::{self, MAX_REPLY, Value};
use crate::panics::supervise;
use crate::timer::{Timer, later};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::io::AsyncWrite;
use tokio::sync::{Notify, oneshot};
use weir_plugin::{RedisAddress, RedisServer};
use weir_telemetry::redis::RedisServerStats;

/// Most commands that wait for their answers.
const MAX_WAITING: usize = 16 * 1024;
/// Most bytes that wait to be sent.
const MAX_UNSENT: usize = 4 << 20;
/// How long after a failure the first try is made to connect again, and the last ones.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LAST_PAUSE: Duration = Duration::from_secs(2);
/// After so long without anybody asking, no more tries are made.
const UNUSED: Duration = Duration::from_secs(60);

/// A server.
pub struct Node {
    around: Rc<RedisContext>,
    server: Arc<RedisServer>,
    /// `None`: the current master.
    pub address: Option<RedisAddress>,
    pub stats: Arc<RedisServerStats>,
    state: RefCell<NodeState>,
    wake: Notify,
}

struct NodeState {
    phase: Phase,
    unsent: Vec<u8>,
    waiting: VecDeque<Waiter>,
    /// Of the task that has the connection.
    waker: Option<Waker>,
    used: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is no connection, and none is needed.
    Idle,
    /// One is being made; what is to be sent waits.
    Connecting,
    Up,
    /// The last one failed, or could not be made.
    Down,
    /// The server is not needed any more.
    Closed,
}

struct Waiter {
    answer: oneshot::Sender<Value>,
    deadline: Instant,
}

/// How a connection has ended.
enum ConnectionEnd {
    /// It was not needed.
    Idle,
    Failed(io::Error),
}

impl Node {
    /// A server to which there is no connection yet.
    pub fn start(
        around: &Rc<RedisContext>,
        server: &Arc<RedisServer>,
        address: Option<RedisAddress>,
    ) -> Rc<Self> {
        let name = match &address {
            Some(address) => address.to_string(),
            None => server.name(),
        };
        let node = Rc::new(Self {
            around: Rc::clone(around),
            server: Arc::clone(server),
            address,
            stats: around.shared.redis.server(&name),
            state: RefCell::new(NodeState {
                phase: Phase::Idle,
                unsent: Vec::new(),
                waiting: VecDeque::new(),
                waker: None,
                used: Instant::now(),
            }),
            wake: Notify::new(),
        });
        let (driven, recovered) = (Rc::clone(&node), Rc::clone(&node));
        supervise(
            "a connection to a Redis",
            FIRST_PAUSE,
            move || drive(Rc::clone(&driven)),
            move || recovered.recover(),
        );
        node
    }

    /// Sends what `write` writes, which is one command. `None`: it is not sent, as the server is away or too many wait.
    pub fn send(&self, write: impl FnOnce(&mut Vec<u8>)) -> Option<oneshot::Receiver<Value>> {
        let now = Instant::now();
        let mut state = self.state.borrow_mut();
        state.used = now;
        let timeout = match state.phase {
            Phase::Down | Phase::Closed => return None,
            Phase::Up => self.server.timeout,
            Phase::Connecting => self.server.connect_timeout + self.server.timeout,
            Phase::Idle => {
                state.phase = Phase::Connecting;
                self.wake.notify_one();
                self.server.connect_timeout + self.server.timeout
            }
        };
        if state.waiting.len() >= MAX_WAITING || state.unsent.len() >= MAX_UNSENT {
            return None;
        }
        write(&mut state.unsent);
        let (answer, receiver) = oneshot::channel();
        let deadline = later(now, timeout);
        state.waiting.push_back(Waiter { answer, deadline });
        if let Some(waker) = &state.waker {
            waker.wake_by_ref();
        }
        Some(receiver)
    }

    /// Whether no call has used it for long.
    pub fn is_unused(&self, now: Instant) -> bool {
        let state = self.state.borrow();
        state.waiting.is_empty() && now.saturating_duration_since(state.used) >= UNUSED
    }

    /// Ends the connection and makes no other.
    pub fn close(&self) {
        let mut state = self.state.borrow_mut();
        state.phase = Phase::Closed;
        state.waiting.clear();
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
        self.wake.notify_one();
    }

    fn phase(&self) -> Phase {
        self.state.borrow().phase
    }

    /// Sends now what was to be sent meanwhile.
    fn enter_up(&self) {
        RedisServerStats::add(&self.stats.connections);
        if self.stats.set_up(true) {
            tracing::info!(server = self.stats.name(), "Redis connected");
        }
        let mut state = self.state.borrow_mut();
        state.phase = Phase::Up;
        let deadline = later(Instant::now(), self.server.timeout);
        for waiter in &mut state.waiting {
            waiter.deadline = waiter.deadline.min(deadline);
        }
    }

    fn enter_down(&self, error: &io::Error) {
        if self.stats.set_up(false) {
            tracing::warn!(server = self.stats.name(), %error, "Redis cannot be used");
        } else {
            tracing::debug!(server = self.stats.name(), %error, "Redis cannot be used by a worker");
        }
        let mut state = self.state.borrow_mut();
        if state.phase != Phase::Closed {
            state.phase = Phase::Down;
        }
        state.unsent = Vec::new();
        // Who waits learns of it by the loss of what was to bring the answer.
        state.waiting.clear();
    }

    /// Fails all that wait, after the task has panicked.
    fn recover(&self) {
        self.enter_down(&io::ErrorKind::ConnectionAborted.into());
        self.state.borrow_mut().waker = None;
        if self.phase() == Phase::Down {
            self.state.borrow_mut().phase = Phase::Idle;
        }
    }

    fn enter_idle(&self) {
        let mut state = self.state.borrow_mut();
        // A call may have come in between.
        state.phase = match (state.phase, state.waiting.is_empty()) {
            (Phase::Closed, _) => Phase::Closed,
            (_, true) => Phase::Idle,
            (_, false) => Phase::Connecting,
        };
    }

    /// Carries commands and replies until the connection ends.
    async fn relay(&self, line: ReadyConnection) -> ConnectionEnd {
        let ReadyConnection {
            mut read,
            mut write,
            mut inbox,
        } = line;
        let mut sending = Vec::new();
        let mut sent = 0;
        let mut timer = Timer::new(Instant::now(), self.server.idle_timeout);
        let end = std::future::poll_fn(|context| {
            self.state.borrow_mut().waker = Some(context.waker().clone());
            if self.phase() == Phase::Closed {
                return Poll::Ready(ConnectionEnd::Idle);
            }
            loop {
                if let Err(error) = self.poll_send(&mut write, context, &mut sending, &mut sent) {
                    return Poll::Ready(ConnectionEnd::Failed(error));
                }
                match inbox.poll_fill(&mut read, context, &self.around.buffers, MAX_REPLY) {
                    Poll::Ready(Ok(0)) if self.state.borrow().waiting.is_empty() => {
                        return Poll::Ready(ConnectionEnd::Idle);
                    }
                    Poll::Ready(Ok(0)) => {
                        return Poll::Ready(ConnectionEnd::Failed(io::ErrorKind::UnexpectedEof.into()));
                    }
                    Poll::Ready(Ok(_)) => {
                        while !inbox.is_empty() {
                            match resp::parse(inbox.bytes()) {
                                Ok(None) => break,
                                Ok(Some((value, size))) => {
                                    inbox.consume(size);
                                    if let Err(error) = self.hand_over(value) {
                                        return Poll::Ready(ConnectionEnd::Failed(error));
                                    }
                                }
                                Err(fault) => {
                                    let error = io::Error::new(io::ErrorKind::InvalidData, fault);
                                    return Poll::Ready(ConnectionEnd::Failed(error));
                                }
                            }
                        }
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(ConnectionEnd::Failed(error)),
                    Poll::Pending => break,
                }
            }
            self.poll_overdue(&mut timer, context)
        })
        .await;
        self.state.borrow_mut().waker = None;
        end
    }

    fn poll_send(
        &self,
        write: &mut (impl AsyncWrite + Unpin),
        context: &mut Context<'_>,
        sending: &mut Vec<u8>,
        sent: &mut usize,
    ) -> io::Result<()> {
        loop {
            if *sent == sending.len() {
                sending.clear();
                *sent = 0;
                std::mem::swap(sending, &mut self.state.borrow_mut().unsent);
                if sending.is_empty() {
                    return Ok(());
                }
            }
            match Pin::new(&mut *write).poll_write(context, &sending[*sent..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => *sent += count,
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(()),
            }
        }
    }

    /// Passes a reply to the call that waits longest.
    fn hand_over(&self, value: Value) -> io::Result<()> {
        // A server that is master no more, or not ready yet, is not the one to be asked.
        let is_unfit = matches!(&value, Value::Error(words)
            if ["READONLY", "LOADING", "MASTERDOWN", "NOAUTH"].iter().any(|code| words.starts_with(code)));
        if value == Value::Push {
            return Ok(());
        }
        if is_unfit {
            return Err(io::Error::other(match value {
                Value::Error(words) => words,
                _ => String::new(),
            }));
        }
        match self.state.borrow_mut().waiting.pop_front() {
            // Who has gone meanwhile misses nothing.
            Some(waiter) => drop(waiter.answer.send(value)),
            None => return Err(io::Error::other("a reply without a request")),
        }
        Ok(())
    }

    /// Ready when an answer does not come, or the connection is not needed.
    fn poll_overdue(&self, timer: &mut Timer, context: &mut Context<'_>) -> Poll<ConnectionEnd> {
        let state = self.state.borrow();
        let now = Instant::now();
        let (deadline, is_awaited) = match state.waiting.front() {
            Some(waiter) => (waiter.deadline, true),
            None => (later(state.used, self.server.idle_timeout), false),
        };
        timer.set(now, deadline.saturating_duration_since(now));
        timer.poll_expired(context).map(|()| match is_awaited {
            true => ConnectionEnd::Failed(io::Error::new(io::ErrorKind::TimedOut, "no answer in time")),
            false => ConnectionEnd::Idle,
        })
    }
}

/// Makes connections as they are needed.
async fn drive(node: Rc<Node>) {
    let mut pause = FIRST_PAUSE;
    loop {
        while node.phase() == Phase::Idle {
            node.wake.notified().await;
        }
        if node.phase() == Phase::Closed {
            return;
        }
        let made = connect(&node.around, &node.server, node.address.as_ref());
        let made = tokio::time::timeout(node.server.connect_timeout, made).await;
        let error = match made.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(line) => {
                if node.phase() == Phase::Closed {
                    return;
                }
                node.enter_up();
                let begun = Instant::now();
                match node.relay(line).await {
                    ConnectionEnd::Idle => {
                        node.enter_idle();
                        continue;
                    }
                    ConnectionEnd::Failed(error) => {
                        // One that fails at once each time is no better than one that cannot be made.
                        if begun.elapsed() > LAST_PAUSE {
                            pause = FIRST_PAUSE;
                        }
                        error
                    }
                }
            }
            Err(error) => error,
        };
        node.enter_down(&error);
        let _woken = tokio::time::timeout(pause, node.wake.notified()).await;
        pause = (pause * 2).min(LAST_PAUSE);
        let is_unused = node.state.borrow().used.elapsed() > UNUSED;
        if is_unused && node.phase() == Phase::Down {
            node.state.borrow_mut().phase = Phase::Idle;
            pause = FIRST_PAUSE;
        }
    }
}
