//! The life of a worker's thread: it opens what clients come through, looks after what is idle, and drains. What the
//! worker's connections share is in [`crate::worker`].

use crate::accept;
use crate::bind::{Listener, Sockets};
use crate::h3::alt_svc::Alternatives;
use crate::h3::endpoint;
use crate::multiplex::task_pool::TaskPool;
use crate::shared::Shared;
use crate::stream;
use crate::timer::later;
use crate::worker::{HOUSEKEEPING, Worker};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use weir_plugin::system_clock;
use weir_telemetry::access_log::AccessLogHandle;
use weir_telemetry::metrics::WorkerMetrics;

/// Age at which buffered log lines are handed over, in milliseconds.
const LOG_FLUSH_MS: u64 = 1_000;

/// Runs a worker on the calling thread until it has drained.
pub async fn run(
    shared: Arc<Shared>,
    sockets: Sockets,
    metrics: Arc<WorkerMetrics>,
    access_log: Option<AccessLogHandle>,
    seed: u64,
) {
    let mut drain = shared.drain.subscribe();
    let endpoints = endpoint::open(&shared, sockets.quic);
    let alternatives = Alternatives::of(&endpoints, &shared);
    let worker = Worker::new(shared, metrics, access_log, alternatives, seed);
    let tasks = Rc::<TaskPool>::default();
    let mut accepting = tokio::task::JoinSet::new();
    for endpoint in &endpoints {
        let accept = endpoint::accept(Rc::clone(&worker), endpoint.clone(), drain.clone());
        accepting.spawn_local(accept);
    }
    for Listener { socket, entry } in sockets.listeners {
        match TcpListener::from_std(socket) {
            Ok(listener) => {
                accepting.spawn_local(accept::listen(
                    Rc::clone(&worker),
                    Rc::clone(&tasks),
                    listener,
                    entry,
                    drain.clone(),
                ));
            }
            Err(error) => tracing::error!(%error, "a listener cannot be used"),
        }
    }
    for socket in sockets.datagrams {
        accepting.spawn_local(stream::listen_datagrams(
            Rc::clone(&worker),
            socket,
            drain.clone(),
        ));
    }
    let mut tick = tokio::time::interval(HOUSEKEEPING);
    loop {
        tokio::select! {
            _ = tick.tick() => housekeep(&worker, &tasks),
            changed = drain.wait_for(|draining| *draining) => {
                let _ = changed;
                break;
            }
        }
    }
    while accepting.join_next().await.is_some() {}
    worker.drain();
    let deadline = later(Instant::now(), worker.shared.drain_timeout);
    while worker.has_connections() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    endpoint::close(&endpoints).await;
    worker.redis.finish().await;
    worker.pool.clear();
    worker.tagged_pool.clear();
    worker.streams.clear();
    if let Some(log) = &worker.access_log {
        log.borrow_mut().flush();
    }
}

fn housekeep(worker: &Rc<Worker>, tasks: &TaskPool) {
    // Also lets go of an old snapshot when no call comes by to do so.
    drop(worker.serving());
    let now = Instant::now();
    worker.pool.prune(now);
    worker.tagged_pool.prune(now);
    worker.streams.prune(now);
    worker.redis.prune(now);
    worker.resolver.refresh(now);
    worker.runtime.trim();
    tasks.trim();
    worker.trim();
    if let Some(log) = &worker.access_log {
        log.borrow_mut().flush_if_older_than(system_clock(), LOG_FLUSH_MS);
    }
}
