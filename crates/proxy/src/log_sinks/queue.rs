//! A queue: the entries that wait for one target, and the task that sends them.

use super::context::SinkContext;
use super::kind;
use super::sender::Sender;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use weir_plugin::{LogFraming, LogReceipt, LogSink, LogTarget, ProtobufWrapper};
use weir_telemetry::log_sinks::WaitingEntry;

/// Bytes of the entries of a message, beyond the first.
const MAX_MESSAGE: usize = 4 << 20;
/// The same for a message that must fit into a datagram.
const MAX_DATAGRAM: usize = 60_000;
/// The same for brokers that accept no larger one by default.
const MAX_RECORD: usize = 900_000;
/// The same for brokers of RocketMQ, which accept 4 MiB by default.
const MAX_ROCKETMQ_MESSAGE: usize = 4_000_000;
/// How often a target's failures are logged at most.
const FAILURE_LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The entries that wait for one target.
pub struct SinkQueue {
    target: Arc<LogTarget>,
    entries: RefCell<VecDeque<QueuedEntry>>,
    /// Entries that wait or are being sent, and their bytes.
    pending: Cell<usize>,
    pending_bytes: Cell<usize>,
    more: Notify,
    is_ending: Cell<bool>,
    used: Cell<Instant>,
}

/// An entry that waits.
struct QueuedEntry {
    bytes: Vec<u8>,
    /// Counts it until it is sent for the first time.
    _waiting: Option<WaitingEntry>,
    receipt: Option<LogReceipt>,
}

/// The entries of a message, and the receipts of those that calls wait for.
#[derive(Default)]
struct Gathered {
    entries: Vec<Vec<u8>>,
    receipts: Vec<LogReceipt>,
}

/// Opens a queue and starts its task.
pub fn open(sink_context: &Rc<SinkContext>, target: &Arc<LogTarget>) -> Rc<SinkQueue> {
    let sink_queue = Rc::new(SinkQueue {
        target: Arc::clone(target),
        entries: RefCell::default(),
        pending: Cell::new(0),
        pending_bytes: Cell::new(0),
        more: Notify::new(),
        is_ending: Cell::new(false),
        used: Cell::new(Instant::now()),
    });
    tokio::task::spawn_local(serve(Rc::clone(sink_context), Rc::clone(&sink_queue)));
    sink_queue
}

impl SinkQueue {
    /// Takes an entry; `false`: there is no room.
    pub fn push(&self, entry: Vec<u8>, waiting: Option<WaitingEntry>, receipt: Option<LogReceipt>) -> bool {
        let batching = &self.target.batching;
        let bytes = self.pending_bytes.get() + entry.len();
        if self.pending.get() >= batching.max_pending || bytes > batching.max_pending_bytes {
            return false;
        }
        self.pending.set(self.pending.get() + 1);
        self.pending_bytes.set(bytes);
        self.used.set(Instant::now());
        let mut entries = self.entries.borrow_mut();
        entries.push_back(QueuedEntry {
            bytes: entry,
            _waiting: waiting,
            receipt,
        });
        // The task waits for the first, and for as many as make a message.
        if entries.len() == 1 || entries.len() >= batching.max_entries {
            self.more.notify_one();
        }
        true
    }

    /// Entries that have not been taken by the target.
    pub fn pending(&self) -> usize {
        self.pending.get()
    }

    /// Whether nothing waits and nothing is being sent.
    pub fn is_empty(&self) -> bool {
        self.pending.get() == 0
    }

    /// Whether entries wait, or came within this time.
    pub fn is_used_since(&self, now: Instant, time: Duration) -> bool {
        !self.is_empty() || now.saturating_duration_since(self.used.get()) < time
    }

    /// Makes the task send what waits, without another attempt, and end. Returns `false`: it is not to be kept.
    pub fn end(&self) -> bool {
        self.is_ending.set(true);
        self.more.notify_one();
        false
    }

    /// Waits for the entries of a message; empty: there will be none.
    async fn gather(&self) -> Gathered {
        while self.entries.borrow().is_empty() {
            if self.is_ending.get() {
                return Gathered::default();
            }
            self.more.notified().await;
        }
        let batching = &self.target.batching;
        let until = tokio::time::Instant::now() + batching.delay;
        while self.entries.borrow().len() < batching.max_entries && !self.is_ending.get() {
            if tokio::time::timeout_at(until, self.more.notified())
                .await
                .is_err()
            {
                break;
            }
        }
        self.take()
    }

    fn take(&self) -> Gathered {
        let most = match self.target.sink {
            LogSink::Udp { line_bytes: None, .. } => MAX_DATAGRAM,
            LogSink::Kafka(_) => MAX_RECORD,
            LogSink::Rocketmq(_) => MAX_ROCKETMQ_MESSAGE,
            _ => MAX_MESSAGE,
        };
        let mut entries = self.entries.borrow_mut();
        let (mut count, mut bytes) = (0, 0);
        for entry in entries.iter().take(self.target.batching.max_entries.max(1)) {
            bytes += entry.bytes.len() + self.target.joint.between.len();
            if count > 0 && bytes > most {
                break;
            }
            count += 1;
        }
        let mut gathered = Gathered::default();
        for entry in entries.drain(..count) {
            gathered.entries.push(entry.bytes);
            gathered.receipts.extend(entry.receipt);
        }
        gathered
    }

    /// The entries of a message are gone, one way or another.
    fn release(&self, entries: usize, bytes: usize) {
        self.pending.set(self.pending.get() - entries);
        self.pending_bytes.set(self.pending_bytes.get() - bytes);
    }
}

async fn serve(sink_context: Rc<SinkContext>, sink_queue: Rc<SinkQueue>) {
    let mut sender = Sender::new(&sink_queue.target.sink);
    let mut reported_at: Option<Instant> = None;
    loop {
        let Gathered { entries, receipts } = sink_queue.gather().await;
        if entries.is_empty() {
            return;
        }
        let (count, bytes) = (entries.len(), entries.iter().map(Vec::len).sum());
        let messages = match sink_queue.target.sink {
            LogSink::Local { .. } => entries,
            _ => vec![join(&sink_queue.target.joint, &entries)],
        };
        let each = count / messages.len();
        let mut is_taken = true;
        for message in messages {
            let sent = deliver(&sink_context, &sink_queue, &mut sender, message).await;
            let stats = sink_context.shared.log_sinks.stats();
            match sent {
                Ok(()) => stats.add_sent(kind(&sink_queue.target), each),
                Err(error) => {
                    is_taken = false;
                    stats.add_dropped(kind(&sink_queue.target), each);
                    if reported_at.is_none_or(|at| at.elapsed() > FAILURE_LOG_INTERVAL) {
                        reported_at = Some(Instant::now());
                        let target = sender.name();
                        tracing::warn!(target, %error, "log entries are dropped: the target does not accept them");
                    }
                }
            }
        }
        if is_taken {
            receipts.into_iter().for_each(LogReceipt::confirm);
        }
        sink_queue.release(count, bytes);
    }
}

/// Sends a message, as often as the target may be tried.
async fn deliver(
    sink_context: &SinkContext,
    sink_queue: &SinkQueue,
    sender: &mut Sender,
    message: Vec<u8>,
) -> std::io::Result<()> {
    let batching = &sink_queue.target.batching;
    let (began, mut wait) = (Instant::now(), batching.retry_delay);
    let message = Arc::new(message);
    let mut retries = 0;
    loop {
        let Err(error) = sender.send(sink_context, &message).await else {
            return Ok(());
        };
        // What is forbidden, or no good, stays so.
        let is_final = matches!(
            error.kind(),
            ErrorKind::PermissionDenied | ErrorKind::InvalidInput
        );
        if is_final
            || retries >= batching.retries
            || began.elapsed().saturating_add(wait) > batching.retry_for
            || sink_queue.is_ending.get()
        {
            return Err(error);
        }
        retries += 1;
        sink_context
            .shared
            .log_sinks
            .stats()
            .add_retry(kind(&sink_queue.target));
        tokio::time::sleep(wait).await;
        wait = wait.saturating_mul(2).min(batching.max_retry_delay);
    }
}

fn join(joint: &LogFraming, entries: &[Vec<u8>]) -> Vec<u8> {
    let size: usize = entries
        .iter()
        .map(|entry| entry.len() + joint.between.len())
        .sum();
    let mut message = Vec::with_capacity(size + joint.before.len() + joint.after.len());
    let is_bare = joint.bare_single && entries.len() == 1;
    if !is_bare {
        message.extend_from_slice(joint.before.as_bytes());
    }
    for (place, entry) in entries.iter().enumerate() {
        if place > 0 {
            message.extend_from_slice(joint.between.as_bytes());
        }
        message.extend_from_slice(entry);
    }
    if !is_bare {
        message.extend_from_slice(joint.after.as_bytes());
    }
    joint
        .nesting
        .iter()
        .fold(message, |inner, around| nest(around, &inner))
}

/// Puts a message of Protocol Buffers into a field of another.
fn nest(around: &ProtobufWrapper, inner: &[u8]) -> Vec<u8> {
    let mut rest = around.before.len() + inner.len();
    let mut outer = Vec::with_capacity(rest + 11);
    outer.push(around.key);
    while rest > 0x7f {
        outer.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    outer.push(rest as u8);
    outer.extend_from_slice(&around.before);
    outer.extend_from_slice(inner);
    outer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_joined() {
        let array = LogFraming {
            before: "[".into(),
            between: ",",
            after: "]",
            bare_single: false,
            nesting: Vec::new(),
        };
        let bare = LogFraming {
            bare_single: true,
            ..array.clone()
        };
        for (joint, entries, expected) in [
            (array.clone(), vec!["1"], "[1]"),
            (array, vec!["1", "2"], "[1,2]"),
            (bare.clone(), vec!["1"], "1"),
            (bare, vec!["1", "2"], "[1,2]"),
            (LogFraming::default(), vec!["1\n", "2\n"], "1\n2\n"),
        ] {
            let entries: Vec<Vec<u8>> = entries
                .into_iter()
                .map(|entry| entry.as_bytes().to_vec())
                .collect();
            assert_eq!(join(&joint, &entries), expected.as_bytes());
        }
    }

    #[test]
    fn messages_are_nested() {
        let around = |before: &[u8], key| ProtobufWrapper {
            before: before.to_vec(),
            key,
        };
        let joint = LogFraming {
            nesting: vec![around(b"s", 0x12), around(b"", 0x0a)],
            ..LogFraming::default()
        };
        let entries = [b"ab".to_vec(), b"c".to_vec()];
        assert_eq!(join(&joint, &entries), b"\x0a\x06\x12\x04sabc");
        let long = vec![vec![b'x'; 300]];
        let message = join(&joint, &long);
        // 301 in seven-bit groups is 0xad 0x02.
        assert_eq!(message[..7], [0x0a, 0xb0, 0x02, 0x12, 0xad, 0x02, b's']);
        assert_eq!(message.len(), 7 + 300);
    }
}
