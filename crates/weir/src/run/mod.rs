//! `weir run`: serves a configuration and takes over its changes, from files ([`files`]) or from a store
//! ([`managed`]), and drains at shutdown.

mod admin;
mod analytics;
mod certificates;
mod declared;
mod dialect_admin;
mod file_watch;
mod files;
mod health;
mod logs;
mod managed;
mod metrics_endpoints;
mod outbox;
mod own_log;
mod panics;
mod plan;
mod portal;
mod proxy;
mod quotas;
mod trust;
mod unreached;

use crate::args::RunArgs;
use crate::dialects;
use crate::status::{self, Status};
use declared::Declarations;
use files::{LoadedConfig, Loader, WatchedFiles};
use plan::RunMode;
pub use plan::UsageError;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use unreached::ListenerKinds;
use weir_control::api::FileTexts;
use weir_control::limit_counts::LimitCounts;
use weir_control::listen::{self, Bounds};
use weir_control::operational::OperationalStore;
use weir_dialect::{DialectName, DialectSet, Exposition};
use weir_plugins::prometheus::MetricRegistry;
use weir_plugins::proxy_cache::Caches;
use weir_telemetry::metrics;

/// How often it is tried to free snapshots that workers may still hold.
const FREE_INTERVAL: Duration = Duration::from_millis(100);
/// How long the last lines of the access log may take.
const LOG_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves the configuration until shutdown.
pub fn run(args: RunArgs) -> anyhow::Result<()> {
    own_log::begin();
    panics::install_hook();
    let plan = RunMode::of(&args)?;
    // Before any limit is built.
    let counts = LimitCounts::open(args.limit_counts_file());
    let caches = Caches::default();
    let log_folder = logs::folder(&args)?;
    let plugin_metrics = Arc::new(MetricRegistry::default());
    let loader = Loader {
        files: args.config.clone(),
        routers: args.routers,
        registry: weir_plugins::registry_on(
            Arc::new(weir_proxy::WorkerDiskCaches::default()),
            caches.clone(),
            log_folder.clone(),
            Arc::clone(&plugin_metrics),
        ),
        persistent: trust::persistent_state(args.upstreams.zone.as_deref()),
        has_store: plan.has_store(),
        listeners: ListenerKinds::of(&args),
    };
    let fingerprints = loader.fingerprints();
    let good = loader
        .load(&[])
        .map_err(|report| anyhow::anyhow!("{}", report.trim_end()))?;
    for note in &good.notes {
        tracing::warn!("{note}");
    }
    let metrics = Arc::new(metrics::Registry::new(metrics::RegistryOptions {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..metrics::RegistryOptions::default()
    }));
    metrics.observe_evictions(loader.registry.evictions());
    let access_log = proxy::open_access_log(&args, &metrics)?;
    analytics::check(&args, &plan)?;
    let analytics = analytics::Setup::of(&args, &plan, &metrics)?;
    let runtime = proxy::control_runtime(plan.is_managed())?;
    // Before the first worker, too: the kernel would give it a share of the calls of a gateway that already runs here.
    let status_listener = proxy::bind("--status", args.status)?;
    let status = Arc::new(Status::new(
        Arc::clone(&metrics),
        Arc::clone(&plugin_metrics),
        plan.is_control_plane(),
    ));
    let dialects = dialects::of_run(&args);
    metrics_endpoints::describe(&status, runtime.handle(), &dialects);
    let exposed: Vec<Exposition> = dialects.iter().flat_map(|it| it.expositions()).collect();
    let starter = proxy::Starter {
        args: &args,
        metrics,
        plugin_metrics,
        access_log: access_log.as_ref(),
        log_folder,
        analytics: &analytics,
        counts: &counts,
    };
    let end = runtime.block_on(async {
        analytics.run_maintenance();
        let mut control = Control::new(status_listener, Arc::clone(&status), &exposed)?;
        tokio::spawn(certificates::watch(Arc::clone(&status)));
        certificates::spawn_ocsp_refresh(&status, outbox::reach(&args.outbox));
        match &plan {
            RunMode::Files => {
                counts.keep(&loader.registry);
                send_alerts(&analytics, &args)?;
                let loaded = (loader, fingerprints, good);
                from_files(&mut control, &starter, dialects, loaded, caches).await
            }
            RunMode::Managed(management) => {
                // The console shows Admin APIs of originals, too.
                let has_console = !management.admin(DialectName::NATIVE).is_empty();
                let has_admin = |dialect| has_console || !management.admin(dialect).is_empty();
                let (declarations, declared) = Declarations::of(&dialects, &good.texts, has_admin);
                let texts = FileTexts::default();
                texts.set(files::for_lists(&good.texts));
                let files = (!args.config.is_empty()).then(|| managed::Files {
                    texts,
                    watched: WatchedFiles::new(loader, fingerprints, declarations),
                    model: good.model,
                    vaults: good.vaults,
                    notes: good.notes,
                    in_files: good.texts.iter().map(|text| text.dialect).collect(),
                    declared,
                });
                managed::serve(&mut control, &starter, management, (dialects, files)).await
            }
        }
    })?;
    runtime.block_on(analytics.finish());
    counts.finish();
    // A drain that is cut short goes on in the background until the process ends.
    runtime.shutdown_background();
    if let Some(log) = access_log {
        log.close(LOG_TIMEOUT);
    }
    end.into_result()
}

/// How serving came to its end.
enum ServeEnd {
    Drained,
    CutShort,
}

impl ServeEnd {
    fn into_result(self) -> anyhow::Result<()> {
        match self {
            Self::Drained => Ok(()),
            Self::CutShort => Err(anyhow::anyhow!(
                "second stop signal: calls in progress are cut off"
            )),
        }
    }
}

/// The signals that stop the gateway.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
}

impl StopSignals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    async fn wait_for_signal(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.quit.recv() => {}
        }
    }
}

/// The tasks and handlers next to the workers, the same for files and stores.
struct Control {
    status: Arc<Status>,
    status_address: SocketAddr,
    server: tokio::task::JoinHandle<()>,
    /// The listeners of Admin APIs.
    dialects: tokio::task::JoinSet<()>,
    /// Signals that no more calls are accepted.
    draining: tokio::sync::watch::Sender<bool>,
    stop: StopSignals,
    hangup: Signal,
}

impl Control {
    /// These expositions are served beside the status.
    fn new(listener: TcpListener, status: Arc<Status>, expositions: &[Exposition]) -> anyhow::Result<Self> {
        let status_address = listener.local_addr()?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        tokio::spawn(free_retired(Arc::clone(&status)));
        Ok(Self {
            status_address,
            dialects: tokio::task::JoinSet::new(),
            draining: tokio::sync::watch::Sender::new(false),
            server: tokio::spawn(status::serve(listener, Arc::clone(&status), expositions)),
            status,
            stop: StopSignals::new()?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Serves an Admin API.
    fn listen(&mut self, listener: listen::Listener, router: axum::Router) {
        let draining = self.draining.subscribe();
        self.dialects
            .spawn(listen::serve(listener, router, Bounds::default(), draining));
    }

    /// Prints that the gateway serves, with its addresses.
    fn announce_ready(&self, others: &[(String, String)]) -> std::io::Result<()> {
        let line = self.status.ready_line(self.status_address, others);
        writeln!(std::io::stdout(), "{line}")
    }

    /// Lets calls in progress end.
    async fn drain(&mut self) -> anyhow::Result<ServeEnd> {
        tracing::info!("draining");
        self.status.drain();
        self.draining.send_replace(true);
        // The status listener answers on, so that a load balancer sees that this gateway is to be left out.
        let status = Arc::clone(&self.status);
        let drained = tokio::task::spawn_blocking(move || {
            if let Some(gateway) = status.gateway() {
                gateway.drain();
            }
        });
        let dialects = &mut self.dialects;
        let all_drained = async {
            let drained = drained.await;
            while dialects.join_next().await.is_some() {}
            drained
        };
        let end = tokio::select! {
            drained = all_drained => drained.map(|()| ServeEnd::Drained)?,
            () = self.stop.wait_for_signal() => ServeEnd::CutShort,
        };
        self.server.abort();
        Ok(end)
    }
}

/// Frees snapshots once no worker holds them any more. It has nothing to do until another one is published.
async fn free_retired(status: Arc<Status>) {
    loop {
        status.next_publication().await;
        while status.free_retired() {
            tokio::time::sleep(FREE_INTERVAL).await;
        }
    }
}

/// Serves files and nothing else.
async fn from_files(
    control: &mut Control,
    starter: &proxy::Starter<'_>,
    dialects: DialectSet,
    (loader, fingerprints, good): (Loader, Vec<Option<files::FileFingerprint>>, LoadedConfig),
    caches: Caches,
) -> anyhow::Result<ServeEnd> {
    let opens_admin = |name| dialects.get(name).is_some_and(|it| it.file_form().opens_admin);
    let (declarations, declared) = Declarations::of(&dialects, &good.texts, opens_admin);
    let gateway = starter.start(good.snapshot)?;
    starter.analytics.start(&starter.gateway_name(&gateway))?;
    control.status.set_gateway(gateway);
    control.status.set_notes(good.notes);
    control.status.served();
    let mut files = WatchedFiles::new(loader, fingerprints, declarations);
    let addresses = if declared.is_empty() {
        Vec::new()
    } else {
        admin::open_beside_files(control, starter, (dialects, declared), caches).await?
    };
    control.announce_ready(&addresses)?;
    let status = Arc::clone(&control.status);
    loop {
        let loaded = tokio::select! {
            loaded = files.changed(&mut control.hangup) => loaded,
            () = control.stop.wait_for_signal() => break,
        };
        match loaded {
            Ok(good) => {
                for note in &good.notes {
                    tracing::warn!("{note}");
                }
                let generation = status.publish(good.snapshot);
                status.set_notes(good.notes);
                status.served();
                good.after.done();
                tracing::info!(generation, "serving the changed configuration");
            }
            Err(report) => {
                files::log_refused(&report);
                status.refused(report);
            }
        }
    }
    control.drain().await
}

/// Alerts of a gateway without a store wait in memory until they are sent.
fn send_alerts(analytics: &analytics::Setup, args: &RunArgs) -> anyhow::Result<()> {
    if let Some(kept) = &analytics.kept {
        kept.send_by(outbox::open(&args.outbox, OperationalStore::in_memory())?);
    }
    Ok(())
}
