//! The thread that sends what workers hand over: sorts entries into queues, and looks after those.

use super::context::SinkContext;
use super::queue::{self, SinkQueue};
use super::{LogSinks, QUEUE_ENTRIES, kind};
use crate::buffer::Buffers;
use crate::dns::Resolver;
use crate::shared::Shared;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use weir_plugin::{LogEntry, LogTarget};

/// The thread's name.
pub const NAME: &str = "weir-log-out";
/// How often the thread looks into the queue while entries come.
const TICK: Duration = Duration::from_millis(20);
/// After so many looks in vain it sleeps until it is woken.
const IDLE_TICKS: u32 = 100;
/// How long an unused queue is kept.
const UNUSED: Duration = Duration::from_secs(120);
/// How long targets have at the end to take what is left.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Starts the thread.
///
/// # Errors
/// When it cannot be started.
pub fn start(shared: &Arc<Shared>, seed: u64) -> io::Result<()> {
    let sinks: &LogSinks = &shared.log_sinks;
    let entries = sinks
        .entries
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let Some(entries) = entries else { return Ok(()) };
    let shared = Arc::clone(shared);
    let thread = std::thread::Builder::new()
        .name(NAME.to_owned())
        .spawn(move || run(&shared, entries, seed))?;
    *sinks.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    Ok(())
}

type SinkQueues = HashMap<Arc<LogTarget>, Rc<SinkQueue>>;

fn run(shared: &Arc<Shared>, entries: Receiver<LogEntry>, seed: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default());
    match runtime {
        Ok(runtime) => {
            runtime.block_on(send_all(Arc::clone(shared), entries, seed));
            // A file may be a pipe without a reader; its thread is not waited for.
            runtime.shutdown_background();
        }
        Err(error) => {
            tracing::error!(%error, "log entries of plugins cannot be sent: the sender cannot be started")
        }
    }
}

async fn send_all(shared: Arc<Shared>, entries: Receiver<LogEntry>, seed: u64) {
    let sink_context = Rc::new(SinkContext {
        resolver: Resolver::new(shared.name_servers.clone(), seed),
        buffers: Buffers::default(),
        shared,
    });
    let log_sinks = &sink_context.shared.log_sinks;
    let mut sink_queues = SinkQueues::new();
    let (mut in_vain, mut looked_after) = (0, Instant::now());
    while !log_sinks.is_over.load(Ordering::Acquire) {
        if sort(&sink_context, &entries, &mut sink_queues) {
            in_vain = 0;
        } else {
            in_vain += 1;
        }
        let now = Instant::now();
        if now.duration_since(looked_after) > Duration::from_secs(1) {
            looked_after = now;
            sink_context.resolver.refresh(now);
            sink_queues.retain(|_, sink_queue| sink_queue.is_used_since(now, UNUSED) || sink_queue.end());
        }
        if in_vain > IDLE_TICKS {
            log_sinks.is_awake.store(false, Ordering::Relaxed);
            std::sync::atomic::fence(Ordering::SeqCst);
            if !sort(&sink_context, &entries, &mut sink_queues) {
                // Names and queues are looked after now and then.
                let _woken = tokio::time::timeout(UNUSED, log_sinks.wake.notified()).await;
            }
            log_sinks.is_awake.store(true, Ordering::Relaxed);
            in_vain = 0;
        } else {
            tokio::time::sleep(TICK).await;
        }
    }
    sort(&sink_context, &entries, &mut sink_queues);
    for sink_queue in sink_queues.values() {
        sink_queue.end();
    }
    let until = Instant::now() + CLOSE_TIMEOUT;
    while sink_queues.values().any(|sink_queue| !sink_queue.is_empty()) && Instant::now() < until {
        tokio::time::sleep(TICK).await;
    }
    for (target, sink_queue) in &sink_queues {
        log_sinks.stats.add_dropped(kind(target), sink_queue.pending());
    }
}

/// Sorts all entries that wait into queues; says whether there were any.
fn sort(sink_context: &Rc<SinkContext>, entries: &Receiver<LogEntry>, sink_queues: &mut SinkQueues) -> bool {
    let log_sinks = &sink_context.shared.log_sinks;
    // Neighbours mostly go to the same place; looking for its queue takes longer than the rest.
    let mut last: Option<(Arc<LogTarget>, Rc<SinkQueue>)> = None;
    for count in 0..QUEUE_ENTRIES {
        let LogEntry {
            target,
            bytes,
            origin,
            receipt,
        } = match entries.try_recv() {
            Ok(entry) => entry,
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => return count > 0,
        };
        log_sinks.bytes.fetch_sub(bytes.len(), Ordering::Relaxed);
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
        let labels = origin.map(|it| (it.name, it.route.name.clone(), it.address));
        let waiting = labels.and_then(|labels| log_sinks.stats.add_waiting(labels));
        if !sink_queue.push(bytes, waiting, receipt) {
            log_sinks.stats.add_dropped(kind(&target), 1);
        }
        last = Some((target, sink_queue));
    }
    true
}
