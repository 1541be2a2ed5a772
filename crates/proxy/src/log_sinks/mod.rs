//! Sending what filters log to where they want it: a thread of its own, which no worker waits for.
//!
//! Workers put entries into one bounded queue. The thread looks into it every few milliseconds, so that a worker need
//! not wake it for each entry, and sorts entries into a queue for each target. A queue gathers entries, sends them,
//! tries again, and drops what its target does not take in time: a target that is slow or away fills its own queue, and
//! no other. Whatever is dropped is counted.

mod file;
mod grpc;
mod kafka;
mod queue;
mod sender;

pub use kafka::fuzzing as kafka_fuzzing;

use crate::buffer::Buffers;
use crate::dns::Resolver;
use crate::gateway::Shared;
use queue::SinkQueue;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use weir_plugin::{LogEntry, LogSink, LogTarget};
use weir_telemetry::log_sinks::{LogSinkKind, LogSinkStats};

/// Entries that may wait for the thread.
const QUEUE_ENTRIES: usize = 16 * 1024;
/// Their bytes at most.
const QUEUE_BYTES: usize = 32 << 20;
/// How often the thread looks into the queue while entries come.
const TICK: Duration = Duration::from_millis(20);
/// After so many looks in vain it sleeps until it is woken.
const IDLE_TICKS: u32 = 100;
/// How long a queue that nobody uses is kept.
const UNUSED: Duration = Duration::from_secs(120);
/// How long targets have at the end to take what is left.
const LAST_PATIENCE: Duration = Duration::from_secs(3);

/// Where workers hand entries over.
pub struct LogSinks {
    queue: SyncSender<LogEntry>,
    bytes: AtomicUsize,
    is_awake: AtomicBool,
    is_over: AtomicBool,
    wake: Notify,
    stats: Arc<LogSinkStats>,
    hostname: String,
    /// The thread's end of the queue until it starts, and the thread since.
    entries: Mutex<Option<Receiver<LogEntry>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
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

    /// Starts the thread.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, shared: &Arc<Shared>, seed: u64) -> io::Result<()> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(entries) = entries else { return Ok(()) };
        let shared = Arc::clone(shared);
        let thread = std::thread::Builder::new()
            .name("weir-log-out".to_owned())
            .spawn(move || run(&shared, entries, seed))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
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
        LogSink::Tcp { .. } => LogSinkKind::Tcp,
        LogSink::Udp { .. } => LogSinkKind::Udp,
        LogSink::Local { .. } => LogSinkKind::Local,
    }
}

/// What queues have in common.
struct SinkContext {
    shared: Arc<Shared>,
    resolver: Rc<Resolver>,
    buffers: Buffers,
}

type SinkQueues = HashMap<Arc<LogTarget>, Rc<SinkQueue>>;

fn run(shared: &Arc<Shared>, entries: Receiver<LogEntry>, seed: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default());
    match runtime {
        Ok(runtime) => {
            runtime.block_on(send_all(Arc::clone(shared), entries, seed));
            // A file may be a pipe that nobody reads; its thread is not waited for.
            runtime.shutdown_background();
        }
        Err(error) => tracing::error!(%error, "log entries cannot be sent"),
    }
}

async fn send_all(shared: Arc<Shared>, entries: Receiver<LogEntry>, seed: u64) {
    let sink_context = Rc::new(SinkContext {
        resolver: Resolver::new(shared.name_servers.clone(), seed),
        buffers: Buffers::default(),
        shared,
    });
    let log_out = &sink_context.shared.log_out;
    let mut sink_queues = SinkQueues::new();
    let (mut in_vain, mut looked_after) = (0, Instant::now());
    while !log_out.is_over.load(Ordering::Acquire) {
        if sort(&sink_context, &entries, &mut sink_queues) {
            in_vain = 0;
        } else {
            in_vain += 1;
        }
        let now = Instant::now();
        if now.duration_since(looked_after) > Duration::from_secs(1) {
            looked_after = now;
            sink_context.resolver.look_after(now);
            sink_queues.retain(|_, sink_queue| sink_queue.is_used_since(now, UNUSED) || sink_queue.end());
        }
        if in_vain > IDLE_TICKS {
            log_out.is_awake.store(false, Ordering::Relaxed);
            std::sync::atomic::fence(Ordering::SeqCst);
            if !sort(&sink_context, &entries, &mut sink_queues) {
                // Names and queues are looked after now and then.
                let _woken = tokio::time::timeout(UNUSED, log_out.wake.notified()).await;
            }
            log_out.is_awake.store(true, Ordering::Relaxed);
            in_vain = 0;
        } else {
            tokio::time::sleep(TICK).await;
        }
    }
    sort(&sink_context, &entries, &mut sink_queues);
    for sink_queue in sink_queues.values() {
        sink_queue.end();
    }
    let until = Instant::now() + LAST_PATIENCE;
    while sink_queues.values().any(|sink_queue| !sink_queue.is_empty()) && Instant::now() < until {
        tokio::time::sleep(TICK).await;
    }
    for (target, sink_queue) in &sink_queues {
        log_out.stats.add_dropped(kind(target), sink_queue.pending());
    }
}

/// Sorts all entries that wait into queues; says whether there were any.
fn sort(sink_context: &Rc<SinkContext>, entries: &Receiver<LogEntry>, sink_queues: &mut SinkQueues) -> bool {
    let log_out = &sink_context.shared.log_out;
    // Neighbours mostly go to the same place; looking for its queue takes longer than the rest.
    let mut last: Option<(Arc<LogTarget>, Rc<SinkQueue>)> = None;
    for count in 0..QUEUE_ENTRIES {
        let LogEntry { target, bytes } = match entries.try_recv() {
            Ok(entry) => entry,
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => return count > 0,
        };
        log_out.bytes.fetch_sub(bytes.len(), Ordering::Relaxed);
        let (target, sink_queue) = match last.take() {
            Some(last) if Arc::ptr_eq(&last.0, &target) => last,
            _ => {
                let sink_queue = sink_queues
                    .entry(Arc::clone(&target))
                    .or_insert_with(|| queue::open(sink_context, &target));
                let sink_queue = Rc::clone(sink_queue);
                (target, sink_queue)
            }
        };
        if !sink_queue.push(bytes) {
            log_out.stats.add_dropped(kind(&target), 1);
        }
        last = Some((target, sink_queue));
    }
    true
}
