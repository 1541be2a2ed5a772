//! `weir run`: serves a configuration, takes over changed files, and drains when it is told to stop.

use crate::args::{RouterArgs, RunArgs};
use crate::load::{self, Loaded};
use crate::status::{self, Status};
use anyhow::Context;
use std::io::{ErrorKind, IsTerminal, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::signal::unix::{Signal, SignalKind, signal};
use weir_model::Severity;
use weir_plugin::Registry;
use weir_proxy::{Gateway, GatewayOptions, Voices};
use weir_snapshot::{Carry, Snapshot};
use weir_telemetry::access_log::AccessLog;
use weir_telemetry::metrics;

/// How often files are looked at for changes.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// How long the last lines of the access log may take.
const LOG_PATIENCE: Duration = Duration::from_secs(2);

/// Niceness of a thread that compiles while calls are served.
const BACKGROUND_NICENESS: i32 = 10;

/// What a load needs besides the files' content.
struct Loader {
    files: Vec<PathBuf>,
    routers: RouterArgs,
    registry: Registry,
    carry: Carry,
}

/// Serves the configuration until it is told to stop.
pub fn run(args: RunArgs) -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("WEIR_LOG").unwrap_or_else(|_| "info".into()),
        )
        .init();
    let loader = Loader {
        files: args.config.clone(),
        routers: args.routers,
        registry: weir_plugins::registry(),
        carry: Carry::default(),
    };
    let stamps = loader.stamps();
    let (snapshot, notes) = loader
        .load()
        .map_err(|report| anyhow::anyhow!("{}", report.trim_end()))?;
    for note in &notes {
        tracing::warn!("{note}");
    }
    let metrics = Arc::new(metrics::Registry::new(metrics::RegistryOptions {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..metrics::RegistryOptions::default()
    }));
    let access_log = open_access_log(&args, &metrics)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the control runtime cannot be started")?;
    // Before the first worker, too: the kernel would give it a share of the calls of a gateway that already runs here.
    let status_listener = bind_status(&args)?;
    args.listen.iter().try_for_each(|address| expect_free(*address))?;
    let gateway = start(&args, Arc::clone(&metrics), access_log.as_ref(), snapshot)?;
    let status = Arc::new(Status::new(gateway, metrics));
    status.served(notes);
    let end = runtime.block_on(control(status_listener, loader, stamps, status))?;
    // A drain that is cut short goes on in the background until the process ends.
    runtime.shutdown_background();
    if let Some(log) = access_log {
        log.close(LOG_PATIENCE);
    }
    match end {
        End::Drained => Ok(()),
        End::CutShort => Err(anyhow::anyhow!(
            "told to stop a second time: calls in progress are cut off"
        )),
    }
}

fn bind_status(args: &RunArgs) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(args.status)
        .with_context(|| format!("cannot listen on {} for --status", args.status))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Workers share their addresses (`SO_REUSEPORT`), and so would two gateways of one user. A listener that does not
/// share finds out.
fn expect_free(address: SocketAddr) -> anyhow::Result<()> {
    if address.port() == 0 {
        return Ok(());
    }
    match TcpListener::bind(address) {
        Ok(_closed) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(anyhow::anyhow!(
            "cannot listen on {address}: address in use; is another gateway running?"
        )),
        Err(error) => Err(error).with_context(|| format!("cannot listen on {address}")),
    }
}

fn open_access_log(args: &RunArgs, metrics: &metrics::Registry) -> anyhow::Result<Option<AccessLog>> {
    let log = match &args.access_log {
        None => return Ok(None),
        Some(path) if path.as_os_str() == "-" => AccessLog::to_stdout()?,
        Some(path) => AccessLog::to_file(path)?,
    };
    metrics.observe_access_log(log.stats());
    Ok(Some(log))
}

fn start(
    args: &RunArgs,
    metrics: Arc<metrics::Registry>,
    access_log: Option<&AccessLog>,
    snapshot: Snapshot,
) -> anyhow::Result<Gateway> {
    let workers = args
        .workers
        .or_else(|| std::thread::available_parallelism().ok())
        .map_or(1, Into::into);
    let options = GatewayOptions {
        listen: args.listen.clone(),
        workers,
        limits: args.limits.limits(),
        drain_timeout: args.drain_timeout.0,
        voices: Voices([
            Arc::new(weir_native::NativeVoice),
            Arc::new(weir_kong::KongVoice),
            Arc::new(weir_apisix::ApisixVoice),
        ]),
    };
    Ok(Gateway::start(options, metrics, access_log, snapshot)?)
}

/// How serving came to its end.
enum End {
    Drained,
    CutShort,
}

/// The signals that tell the gateway to stop.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
}

impl Stop {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.quit.recv() => {}
        }
    }
}

/// All that goes on beside the workers.
async fn control(
    listener: TcpListener,
    loader: Loader,
    stamps: Vec<Option<FileStamp>>,
    status: Arc<Status>,
) -> anyhow::Result<End> {
    let mut stop = Stop::new()?;
    let hangup = signal(SignalKind::hangup())?;
    let status_address = listener.local_addr()?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let server = tokio::spawn(status::serve(listener, Arc::clone(&status)));
    let watcher = tokio::spawn(watch(loader, stamps, hangup, Arc::clone(&status)));
    writeln!(std::io::stdout(), "{}", status.ready_line(status_address))?;
    stop.asked().await;
    tracing::info!("draining");
    status.drain();
    watcher.abort();
    // The status listener answers on, so that a load balancer sees that this gateway is to be left out.
    let drained = tokio::task::spawn_blocking(move || status.gateway().drain());
    let end = tokio::select! {
        drained = drained => drained.map(|()| End::Drained)?,
        () = stop.asked() => End::CutShort,
    };
    server.abort();
    Ok(end)
}

/// What tells a changed file from an unchanged one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
}

impl Loader {
    fn stamps(&self) -> Vec<Option<FileStamp>> {
        use std::os::unix::fs::MetadataExt;
        let stamp = |file: &PathBuf| {
            let metadata = std::fs::metadata(file).ok()?;
            Some(FileStamp {
                modified: metadata.modified().ok(),
                length: metadata.len(),
                inode: metadata.ino(),
            })
        };
        self.files.iter().map(stamp).collect()
    }

    /// Loads on a thread that gives way to the workers.
    fn load_in_background(&self) -> Result<(Snapshot, Vec<String>), String> {
        // On Linux this is the calling thread's own priority. Where it cannot be lowered, loading still works.
        let _unchanged = rustix::process::setpriority_process(None, BACKGROUND_NICENESS);
        self.load()
    }

    /// The compiled configuration and what is to be said about it, or why it is refused.
    fn load(&self) -> Result<(Snapshot, Vec<String>), String> {
        let loaded = load::load(&self.files, self.routers, &self.registry, &self.carry)
            .map_err(|error| error.to_string())?;
        let is_refused = loaded.severity() == Some(Severity::Error);
        let report = loaded.report();
        match loaded {
            Loaded {
                good: Some((_, snapshot)),
                ..
            } if !is_refused => Ok((snapshot, report.lines().map(str::to_owned).collect())),
            _ => Err(report),
        }
    }
}

/// Takes over files that change, and on SIGHUP also those that do not look so. A file that cannot be served leaves the old configuration serving.
async fn watch(loader: Loader, mut stamps: Vec<Option<FileStamp>>, mut hangup: Signal, status: Arc<Status>) {
    let loader = Arc::new(loader);
    let mut tick = tokio::time::interval(WATCH_INTERVAL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let is_asked = tokio::select! {
            _ = tick.tick() => false,
            _ = hangup.recv() => true,
        };
        status.gateway().free_retired();
        let current = loader.stamps();
        if current == stamps && !is_asked {
            continue;
        }
        stamps = current;
        let compiling = Arc::clone(&loader);
        // Off the control runtime, so that /status answers meanwhile.
        match tokio::task::spawn_blocking(move || compiling.load_in_background()).await {
            Ok(Ok((snapshot, notes))) => {
                for note in &notes {
                    tracing::warn!("{note}");
                }
                let generation = status.gateway().publish(snapshot);
                status.served(notes);
                tracing::info!(generation, "a changed configuration is served");
            }
            Ok(Err(report)) => {
                for line in report.lines() {
                    tracing::error!("{line}");
                }
                tracing::error!("the changed configuration is refused; the last good one goes on serving");
                status.refused(report);
            }
            Err(error) => tracing::error!(%error, "loading has failed"),
        }
    }
}

/// Seconds since the Unix epoch.
pub fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
