//! The gateway: binds listeners, starts workers, publishes snapshots to them, and drains.

use crate::bind::{ListenAddresses, bind};
use crate::calls::Calls;
use crate::dns::NameServers;
use crate::h3::config::{Common, Http3};
use crate::health::{self, HealthNotifier};
use crate::kafka::turns::Turns;
use crate::limits::Limits;
use crate::log_sinks::{self, GatewayLogLines, LogSinks};
use crate::panics::{AbortOnPanic, WORKER_THREADS};
use crate::proxy_protocol::ProxyProtocolTrust;
use crate::run_worker;
use crate::shared::{ErrorRenderers, PublishedSnapshot, Shared, publish};
use crate::stream::StreamListen;
use arc_swap::ArcSwap;
use rustls::ServerConfig;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;
use weir_snapshot::Snapshot;
use weir_telemetry::access_log::{AccessLog, AccessLogHandle};
use weir_telemetry::metrics::Registry;

/// How a gateway runs.
pub struct GatewayOptions {
    /// Addresses to listen on; port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Addresses to listen on for TLS.
    pub listen_tls: Vec<SocketAddr>,
    /// The listeners for streams below HTTP.
    pub listen_streams: Vec<StreamListen>,
    /// The peers that report their clients by the PROXY protocol; `None`: none.
    pub proxy_protocol: Option<ProxyProtocolTrust>,
    /// The certificate for clients for whose server name none is configured; `None`: their handshake fails.
    pub fallback_tls: Option<Arc<ServerConfig>>,
    /// The settings of HTTP/3 for the listeners for TLS; `None`: no HTTP/3.
    pub http3: Option<Http3>,
    /// Number of workers, at least 1.
    pub workers: usize,
    /// Bounds on what clients send.
    pub limits: Limits,
    /// How long calls in progress may take once draining begins.
    pub drain_timeout: Duration,
    /// The dialects.
    pub error_renderers: ErrorRenderers,
    /// Which servers resolve the names of targets.
    pub name_servers: NameServers,
    /// For how long a target gets no calls after passive checks found it unhealthy, if no probe can find it
    /// healthy and its checks say nothing else; zero: until an operator marks it healthy.
    pub passive_ejection: Duration,
    /// Receives finished calls for analytics; `None`: they are off.
    pub calls: Option<Arc<Calls<PublishedSnapshot>>>,
}

/// A running gateway.
pub struct Gateway {
    shared: Arc<Shared>,
    metrics: Arc<Registry>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    bound: ListenAddresses,
    /// Snapshots that some worker may still hold. They are freed here, not on a worker: freeing many routes
    /// takes longer than a call should wait.
    retired: Mutex<Vec<Arc<PublishedSnapshot>>>,
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
        if let Some(calls) = &options.calls {
            calls.note_published(&published);
        }
        let http3 = match options.http3 {
            Some(http3) if !options.listen_tls.is_empty() => {
                let common = Common::new(&http3, seed(usize::MAX - 2))?;
                Some((http3, common))
            }
            _ => None,
        };
        let shared = Arc::new(Shared {
            published: ArcSwap::new(published),
            generation: AtomicU64::new(1),
            limits: options.limits,
            error_renderers: options.error_renderers,
            drain: watch::Sender::new(false),
            drain_timeout: options.drain_timeout,
            name_servers: options.name_servers,
            fallback_stream_tls: options.fallback_tls.as_deref().map(without_protocols),
            proxy_protocol: options.proxy_protocol,
            fallback_tls: options.fallback_tls,
            http3,
            health: HealthNotifier::new(options.passive_ejection),
            log_sinks: LogSinks::default(),
            kafka_turns: Turns::default(),
            gateway_log_levels: Arc::default(),
            calls: options.calls,
            redis: Arc::default(),
        });
        (shared.gateway_log_levels).note_taking(&shared.published.load().snapshot.gateway_logs);
        metrics.observe_targets(Arc::new(health::Targets::of(&shared)));
        metrics.observe_log_sinks(Arc::clone(shared.log_sinks.stats()));
        metrics.observe_redis(Arc::clone(&shared.redis));
        log_sinks::start(&shared, seed(usize::MAX - 1))?;
        let mut gateway = Self {
            shared,
            metrics,
            workers: Mutex::default(),
            bound: ListenAddresses {
                plain: options.listen,
                tls: options.listen_tls,
                http3: Vec::new(),
                streams: options.listen_streams,
            },
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
        let checking = health::start(Arc::clone(&gateway.shared), seed(usize::MAX));
        match checking {
            Ok(thread) => gateway.threads().push(thread),
            Err(error) => {
                gateway.drain();
                return Err(error);
            }
        }
        Ok(gateway)
    }

    /// Starts a worker on the gateway's addresses, and says which they are.
    fn start_worker(&self, index: usize, access_log: Option<AccessLogHandle>) -> io::Result<ListenAddresses> {
        let (shared, metrics) = (Arc::clone(&self.shared), self.metrics.worker());
        let (addresses, seed) = (self.bound.clone(), seed(index));
        let tries_http3 = index == 0 && shared.http3.is_some();
        let (started, starting) = mpsc::sync_channel(1);
        let work = move || {
            let _alive = AbortOnPanic("a worker");
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build_local(tokio::runtime::LocalOptions::default());
            let prepared = runtime.and_then(|runtime| {
                Ok((
                    runtime,
                    bind(&addresses, shared.proxy_protocol.as_ref(), tries_http3)?,
                ))
            });
            match prepared {
                Ok((runtime, (sockets, bound))) => {
                    // The thread that started the worker waits for this.
                    let _is_waiting = started.send(Ok(bound));
                    runtime.block_on(run_worker::run(shared, sockets, metrics, access_log, seed));
                }
                Err(error) => {
                    let _is_waiting = started.send(Err(error));
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name(format!("{WORKER_THREADS}{index}"))
            .spawn(work)?;
        self.threads().push(thread);
        starting
            .recv()
            .unwrap_or_else(|_| Err(io::Error::other("a worker has ended at its start")))
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The addresses that were bound, in the order of the options.
    pub fn bound(&self) -> &ListenAddresses {
        &self.bound
    }

    /// Serves `snapshot` from the next call on; calls in progress finish on theirs. Returns its generation.
    pub fn publish(&self, snapshot: Snapshot) -> u64 {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = self.shared.generation.load(Ordering::Acquire) + 1;
        let fresh = Arc::new(publish(&self.metrics, snapshot, generation));
        if let Some(calls) = &self.shared.calls {
            calls.note_published(&fresh);
        }
        let taking = fresh.snapshot.gateway_logs.clone();
        retired.push(self.shared.published.swap(fresh));
        self.shared.gateway_log_levels.note_taking(&taking);
        self.shared.generation.store(generation, Ordering::Release);
        self.shared.health.note_published();
        retired.retain(|old| Arc::strong_count(old) > 1);
        generation
    }

    /// Frees snapshots that no worker holds any more; whether there are others. To be called off the workers after
    /// [`Gateway::publish`], until there are none.
    pub fn free_retired(&self) -> bool {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        retired.retain(|old| Arc::strong_count(old) > 1);
        !retired.is_empty()
    }

    /// The snapshot that is served now.
    pub fn published(&self) -> Arc<PublishedSnapshot> {
        self.shared.published.load_full()
    }

    /// How all targets stand.
    pub fn health(&self) -> health::HealthReport {
        health::HealthReport::of(&self.published().snapshot)
    }

    /// The health of an upstream's targets; `None`: no upstream has this name.
    pub fn upstream_health(&self, upstream: &str) -> Option<health::UpstreamReport> {
        health::UpstreamReport::find(&self.published().snapshot, upstream)
    }

    /// Marks a target healthy or unhealthy by hand. An unhealthy one stays so until a probe or an operator finds it
    /// healthy.
    ///
    /// # Errors
    /// When there is no such target, or its health is not checked.
    pub fn set_health(
        &self,
        which: &health::HealthSelector<'_>,
        is_healthy: bool,
    ) -> Result<(), health::SetHealthError> {
        health::set(&self.published().snapshot, which, is_healthy)?;
        self.shared.health.note_change();
        Ok(())
    }

    /// Receives lines of the gateway's own log.
    pub fn log_lines(&self) -> GatewayLogLines {
        GatewayLogLines::of(&self.shared)
    }

    /// Stops accepting, lets calls in progress finish within the drain time-out, and ends the workers. Blocks until
    /// they have ended.
    pub fn drain(&self) {
        self.shared.drain.send_replace(true);
        let workers = std::mem::take(&mut *self.threads());
        for worker in workers {
            if worker.join().is_err() {
                tracing::error!("a worker has panicked");
            }
        }
        self.shared.log_sinks.finish();
    }
}

/// Random, so that gateways that start together do not choose the same targets.
fn seed(worker: usize) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(worker)
}

/// The same, with clients offered no protocol: what is inside of a stream is not the gateway's to choose.
fn without_protocols(config: &ServerConfig) -> Arc<ServerConfig> {
    let mut config = config.clone();
    config.alpn_protocols = Vec::new();
    Arc::new(config)
}
