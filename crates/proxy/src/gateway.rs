//! The gateway: binds listeners, starts workers, publishes snapshots to them, and drains.

use crate::limits::Limits;
use crate::worker;
use arc_swap::ArcSwap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;
use weir_model::Voice;
use weir_plugin::voice;
use weir_snapshot::Snapshot;
use weir_telemetry::access_log::{AccessLog, AccessLogHandle};
use weir_telemetry::metrics::{Registry, SeriesId};

/// The voice of each dialect, in the order of [`Voice`].
#[derive(Clone)]
pub struct Voices(pub [Arc<dyn voice::Voice>; Voice::COUNT]);

impl Voices {
    /// The voice of a dialect.
    pub fn get(&self, voice: Voice) -> &dyn voice::Voice {
        self.0[voice as usize].as_ref()
    }
}

/// How a gateway runs.
pub struct GatewayOptions {
    /// Addresses to listen on; port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Number of workers, at least 1.
    pub workers: usize,
    /// Bounds on what clients send.
    pub limits: Limits,
    /// How long calls in progress may take once draining begins.
    pub drain_timeout: Duration,
    /// The voices.
    pub voices: Voices,
}

/// A snapshot as it was published.
pub struct Published {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// The metrics series of each route.
    pub series: Vec<SeriesId>,
    /// Counts published snapshots from 1.
    pub generation: u64,
}

/// What workers share. Nothing in it is written on the request path.
pub struct Shared {
    pub published: ArcSwap<Published>,
    pub generation: AtomicU64,
    pub limits: Limits,
    pub voices: Voices,
    pub drain: watch::Sender<bool>,
    pub drain_timeout: Duration,
}

/// The addresses that a gateway is bound to.
#[derive(Debug, Clone)]
pub struct Bound(pub Vec<SocketAddr>);

/// A running gateway.
pub struct Gateway {
    shared: Arc<Shared>,
    metrics: Arc<Registry>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    bound: Bound,
    /// Snapshots that some worker may still hold. They are freed here, not on a worker: freeing many routes
    /// takes longer than a call should wait.
    retired: Mutex<Vec<Arc<Published>>>,
}

impl Gateway {
    /// Binds the listeners and starts the workers, serving `snapshot`.
    ///
    /// # Errors
    /// When an address cannot be bound or a thread not be started.
    /// Calls are logged to `access_log`, which the caller closes once the gateway has drained.
    pub fn start(
        options: GatewayOptions,
        metrics: Arc<Registry>,
        access_log: Option<&AccessLog>,
        snapshot: Snapshot,
    ) -> io::Result<Self> {
        let published = Arc::new(publish(&metrics, snapshot, 1));
        let shared = Arc::new(Shared {
            published: ArcSwap::new(published),
            generation: AtomicU64::new(1),
            limits: options.limits,
            voices: options.voices,
            drain: watch::Sender::new(false),
            drain_timeout: options.drain_timeout,
        });
        let mut gateway = Self {
            shared,
            metrics,
            workers: Mutex::default(),
            bound: Bound(options.listen),
            retired: Mutex::default(),
        };
        for index in 0..options.workers.max(1) {
            // The first finds free ports, and the others share them.
            match gateway.start_worker(index, access_log.map(AccessLog::handle)) {
                Ok(bound) => gateway.bound = bound,
                Err(error) => {
                    gateway.drain();
                    return Err(error);
                }
            }
        }
        Ok(gateway)
    }

    /// Starts a worker on the gateway's addresses, and says which they are.
    fn start_worker(&self, index: usize, access_log: Option<AccessLogHandle>) -> io::Result<Bound> {
        let (shared, metrics) = (Arc::clone(&self.shared), self.metrics.worker());
        let (addresses, seed) = (self.bound.0.clone(), seed(index));
        let (started, starting) = mpsc::sync_channel(1);
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build_local(tokio::runtime::LocalOptions::default());
            let prepared = runtime.and_then(|runtime| Ok((runtime, bind(&addresses)?)));
            match prepared {
                Ok((runtime, (listeners, bound))) => {
                    // Whoever started the worker waits for this.
                    let _is_waiting = started.send(Ok(bound));
                    runtime.block_on(worker::run(shared, listeners, metrics, access_log, seed));
                }
                Err(error) => {
                    let _is_waiting = started.send(Err(error));
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name(format!("weir-worker-{index}"))
            .spawn(work)?;
        self.workers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(thread);
        starting
            .recv()
            .unwrap_or_else(|_| Err(io::Error::other("a worker has ended at its start")))
    }

    /// The addresses that were bound, in the order of the options.
    pub fn bound(&self) -> &Bound {
        &self.bound
    }

    /// Serves `snapshot` from the next call on; calls in progress finish on theirs. Gives its generation.
    pub fn publish(&self, snapshot: Snapshot) -> u64 {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = self.shared.generation.load(Ordering::Acquire) + 1;
        let fresh = Arc::new(publish(&self.metrics, snapshot, generation));
        retired.push(self.shared.published.swap(fresh));
        self.shared.generation.store(generation, Ordering::Release);
        retired.retain(|old| Arc::strong_count(old) > 1);
        generation
    }

    /// Frees snapshots that no worker holds any more. To be called now and then, off the workers.
    pub fn free_retired(&self) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        retired.retain(|old| Arc::strong_count(old) > 1);
    }

    /// What is served now.
    pub fn published(&self) -> Arc<Published> {
        self.shared.published.load_full()
    }

    /// Stops accepting, lets calls in progress finish within the drain time-out, and ends the workers. Blocks until
    /// they have ended.
    pub fn drain(&self) {
        self.shared.drain.send_replace(true);
        let workers = std::mem::take(&mut *self.workers.lock().unwrap_or_else(PoisonError::into_inner));
        for worker in workers {
            if worker.join().is_err() {
                tracing::error!("a worker has panicked");
            }
        }
    }
}

fn publish(metrics: &Registry, snapshot: Snapshot, generation: u64) -> Published {
    let names = snapshot
        .routes
        .iter()
        .map(|route| (route.series_names.0.as_ref(), route.series_names.1.as_ref()));
    let series = metrics.allot(names);
    Published {
        snapshot,
        series,
        generation,
    }
}

/// Random, so that gateways that start together do not choose the same targets.
fn seed(worker: usize) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(worker)
}

/// Binds every address; the kernel spreads connections over the workers that share one.
fn bind(addresses: &[SocketAddr]) -> io::Result<(Vec<TcpListener>, Bound)> {
    let mut listeners = Vec::with_capacity(addresses.len());
    let mut bound = Vec::with_capacity(addresses.len());
    for address in addresses {
        let listener = bind_one(*address)
            .map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {address}: {error}")))?;
        bound.push(listener.local_addr()?);
        listeners.push(listener);
    }
    Ok((listeners, Bound(bound)))
}

fn bind_one(address: SocketAddr) -> io::Result<TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(4096)?;
    Ok(socket.into())
}
