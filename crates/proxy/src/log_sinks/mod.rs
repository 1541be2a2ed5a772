//! Sends what filters log to its targets, in a thread of its own, which no worker waits for.
//!
//! Workers put entries into one bounded queue. The thread looks into it every few milliseconds, so that a worker need
//! not wake it for each entry, and sorts entries into a queue for each target. A queue gathers entries, sends them,
//! tries again, and drops what its target does not take in time: a target that is slow or away fills its own queue, and
//! no other. Whatever is dropped is counted.

mod broker;
mod connect;
mod context;
mod file;
mod gateway_log;
mod gateway_log_levels;
mod grpc;
mod kafka;
mod queue;
mod sender;
mod thread;

pub use gateway_log::GatewayLogLines;
pub use gateway_log_levels::GatewayLogLevels;
pub use thread::start;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::Notify;
use weir_plugin::{LogEntry, LogSink, LogTarget};
use weir_telemetry::log_sinks::{LogSinkKind, LogSinkStats};

/// Entries that may wait for the thread.
const QUEUE_ENTRIES: usize = 16 * 1024;
/// Their bytes at most.
const QUEUE_BYTES: usize = 32 << 20;

/// Receives the entries of workers.
pub struct LogSinks {
    queue: SyncSender<LogEntry>,
    pub(super) bytes: AtomicUsize,
    pub(super) is_awake: AtomicBool,
    pub(super) is_over: AtomicBool,
    pub(super) wake: Notify,
    pub(super) stats: Arc<LogSinkStats>,
    hostname: String,
    /// The thread's end of the queue until it starts, and the thread since.
    pub(super) entries: Mutex<Option<Receiver<LogEntry>>>,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

impl Default for LogSinks {
    fn default() -> Self {
        let (queue, entries) = mpsc::sync_channel(QUEUE_ENTRIES);
        let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Self {
            queue,
            bytes: AtomicUsize::new(0),
            is_awake: AtomicBool::new(true),
            is_over: AtomicBool::new(false),
            wake: Notify::new(),
            stats: Arc::default(),
            hostname: hostname.trim().to_owned(),
            entries: Mutex::new(Some(entries)),
            thread: Mutex::default(),
        }
    }
}

impl LogSinks {
    /// This machine's name.
    pub fn hostname(&self) -> &str {
        &self.hostname
    }

    /// The counts of entries.
    pub fn stats(&self) -> &Arc<LogSinkStats> {
        &self.stats
    }

    /// Takes an entry, or drops it where too many wait. Never waits.
    pub fn offer(&self, entry: LogEntry) {
        let (kind, size) = (kind(&entry.target), entry.bytes.len());
        if self.bytes.fetch_add(size, Ordering::Relaxed) + size > QUEUE_BYTES
            || self.queue.try_send(entry).is_err()
        {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
            self.stats.add_dropped(kind, 1);
            return;
        }
        // Sequential consistency pairs with the look that the thread takes before it sleeps: either it sees the entry,
        // or this sees that it is to be woken.
        std::sync::atomic::fence(Ordering::SeqCst);
        if !self.is_awake.load(Ordering::Relaxed) && !self.is_awake.swap(true, Ordering::Relaxed) {
            self.wake.notify_one();
        }
    }

    /// Gives targets a last chance to take what waits, and ends the thread. To be called when all workers have ended.
    pub fn finish(&self) {
        self.is_over.store(true, Ordering::Release);
        self.wake.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that sends log entries has panicked");
        }
    }
}

/// The kind of a target, for metrics.
fn kind(target: &LogTarget) -> LogSinkKind {
    match target.sink {
        LogSink::File { .. } => LogSinkKind::File,
        LogSink::Http(_) => LogSinkKind::Http,
        LogSink::Grpc(_) => LogSinkKind::Grpc,
        LogSink::Kafka(_) => LogSinkKind::Kafka,
        LogSink::Rocketmq(_) => LogSinkKind::Rocketmq,
        LogSink::Tcp { .. } => LogSinkKind::Tcp,
        LogSink::Udp { .. } => LogSinkKind::Udp,
        LogSink::Local { .. } => LogSinkKind::Local,
    }
}
