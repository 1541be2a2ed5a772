//! Starts what carries calls (listeners, workers, the access log) and the runtime of everything else.

use super::{analytics, own_log, trust};
use crate::args::RunArgs;
use crate::dialects;
use anyhow::Context;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use weir_control::limit_counts::LimitCounts;
use weir_plugin::Registry;
use weir_plugins::logger::LogFolder;
use weir_plugins::prometheus::MetricRegistry;
use weir_plugins::proxy_cache::Caches;
use weir_proxy::{ErrorRenderers, Gateway, GatewayOptions, Limits};
use weir_snapshot::{Snapshot, StreamTransport};
use weir_telemetry::access_log::AccessLog;
use weir_telemetry::metrics;

/// Threads of the control runtime with Admin APIs: a large document must not keep other calls waiting.
const MANAGEMENT_THREADS: usize = 2;
/// Niceness of these threads: calls go before their management.
const MANAGEMENT_NICENESS: i32 = 5;

/// Starts gateways.
pub struct Starter<'a> {
    pub args: &'a RunArgs,
    pub metrics: Arc<metrics::Registry>,
    /// The metrics of plugins for Prometheus.
    pub plugin_metrics: Arc<MetricRegistry>,
    pub access_log: Option<&'a AccessLog>,
    pub log_folder: LogFolder,
    pub analytics: &'a analytics::Setup,
    /// The counts of limits that outlive a restart.
    pub counts: &'a LimitCounts,
}

impl Starter<'_> {
    /// All plugins, for one that serves calls.
    pub fn registry(&self, caches: Caches) -> Registry {
        let disks = Arc::new(weir_proxy::WorkerDiskCaches::default());
        weir_plugins::registry_on(
            disks,
            caches,
            self.log_folder.clone(),
            Arc::clone(&self.plugin_metrics),
        )
    }

    /// The name of a gateway.
    pub fn gateway_name(&self, gateway: &Gateway) -> String {
        let name = self.args.management.name.clone().unwrap_or_else(|| {
            let (machine, address) = (rustix::system::uname(), first_address(gateway));
            let port = address.rsplit(':').next().unwrap_or_default();
            format!("{}-{port}", machine.nodename().to_string_lossy())
        });
        weir_control::report::gateway_name(&name)
    }

    /// Binds the listeners and starts the workers.
    pub fn start(&self, snapshot: Snapshot) -> anyhow::Result<Gateway> {
        let args = self.args;
        let listen_tls = args.listen_tls();
        let listen = args.listen();
        for address in listen.iter().chain(&listen_tls) {
            expect_free(*address)?;
        }
        for stream in &args.streams.listen_stream {
            match stream.transport {
                StreamTransport::Tcp | StreamTransport::Tls => expect_free(stream.address)?,
                StreamTransport::Udp => expect_free_for_datagrams(stream.address)?,
            }
        }
        let fallback_tls = match listen_tls.is_empty() && !args.streams.has_tls() {
            true => None,
            false => Some(trust::self_signed()?),
        };
        let workers = args
            .workers
            .or_else(|| std::thread::available_parallelism().ok())
            .map_or(1, Into::into);
        let options = GatewayOptions {
            listen,
            listen_tls,
            listen_streams: args.streams.listen_stream.clone(),
            proxy_protocol: args.streams.trusted(),
            fallback_tls,
            http3: args.http3.options(),
            workers,
            limits: Limits {
                max_udp_sessions: args.streams.max_udp_sessions,
                ..args.limits.limits()
            },
            drain_timeout: args.drain_timeout.0,
            error_renderers: ErrorRenderers {
                all: dialects::of_files(args.routers)
                    .iter()
                    .map(|it| (it.name(), it.error_renderer()))
                    .collect(),
                fallback: Arc::new(weir_native::NativeErrorRenderer),
            },
            name_servers: args.upstreams.name_servers(),
            passive_ejection: args.upstreams.passive_ejection(),
            calls: self.analytics.calls.clone(),
        };
        let metrics = Arc::clone(&self.metrics);
        let gateway = Gateway::start(options, metrics, self.access_log, snapshot)?;
        own_log::hand_over_to(gateway.log_lines());
        Ok(gateway)
    }
}

/// The first address of the proxy; empty if it serves only streams below HTTP.
pub fn first_address(gateway: &Gateway) -> String {
    let bound = gateway.bound();
    let first = bound.plain.iter().chain(&bound.tls).next();
    first.map(ToString::to_string).unwrap_or_default()
}

/// The runtime of the status listener and of the Admin APIs, if there are any.
pub fn control_runtime(is_managed: bool) -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = match is_managed {
        false => tokio::runtime::Builder::new_current_thread(),
        true => tokio::runtime::Builder::new_multi_thread(),
    };
    if is_managed {
        builder.worker_threads(MANAGEMENT_THREADS).on_thread_start(|| {
            // On Linux this is the calling thread's own priority. If it cannot be lowered, all still works.
            let _unchanged = rustix::process::setpriority_process(None, MANAGEMENT_NICENESS);
        });
    }
    builder
        .thread_name("weir-control")
        .enable_all()
        .build()
        .context("the control runtime cannot be started")
}

/// Binds a listener of the control runtime.
pub fn bind(flag: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => {
            anyhow::anyhow!("cannot listen on {address} for {flag}: address in use; give {flag} another one")
        }
        _ => anyhow::Error::new(error).context(format!("cannot listen on {address} for {flag}")),
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Workers share their addresses (`SO_REUSEPORT`), and so would two gateways of one user. A listener that does not
/// share finds out.
fn expect_free(address: SocketAddr) -> anyhow::Result<()> {
    check_free(address, || TcpListener::bind(address).map(drop))
}

fn expect_free_for_datagrams(address: SocketAddr) -> anyhow::Result<()> {
    check_free(address, || UdpSocket::bind(address).map(drop))
}

fn check_free(address: SocketAddr, bind: impl Fn() -> std::io::Result<()>) -> anyhow::Result<()> {
    if address.port() == 0 {
        return Ok(());
    }
    match bind() {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(anyhow::anyhow!(
            "cannot listen on {address}: address in use; is another gateway running?"
        )),
        Err(error) => Err(error).with_context(|| format!("cannot listen on {address}")),
    }
}

/// Opens the access log that the flags ask for.
pub fn open_access_log(args: &RunArgs, metrics: &metrics::Registry) -> anyhow::Result<Option<AccessLog>> {
    let log = match &args.access_log {
        None => return Ok(None),
        Some(path) if path.as_os_str() == "-" => AccessLog::to_stdout()?,
        Some(path) => AccessLog::to_file(path)?,
    };
    metrics.observe_access_log(log.stats());
    Ok(Some(log))
}
