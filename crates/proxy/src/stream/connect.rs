//! Finding a target for a session, and connecting to it: balancing, health and further tries as for calls.

use super::report::SessionRecord;
use crate::dns::DnsQuery;
use crate::forward::{PickRequest, choose};
use crate::halves::{ReadHalf, WriteHalf};
use crate::pool::OpenConnectionGuard;
use crate::timer::later;
use crate::transport;
use crate::worker::{Worker, WorkerSnapshot};
use rustls::pki_types::ServerName;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::net::{TcpStream, UdpSocket};
use weir_flow::health::Signal;
use weir_plugin::system_clock;
use weir_snapshot::{Forward, Target, TargetState, Upstream};
use weir_telemetry::metrics::StreamResult;

/// Counts a session among those that its target is busy with, for balancers that ask.
pub struct SessionGuard(Option<Arc<TargetState>>);

impl SessionGuard {
    fn new(upstream: &Upstream, target: &Target) -> Self {
        let counted = upstream.balancer.needs_load().then(|| Arc::clone(&target.state));
        if let Some(state) = &counted {
            state.inflight.fetch_add(1, Relaxed);
        }
        Self(counted)
    }

    /// Notes how long the target took to be reached.
    fn note_latency(&self, latency: Duration) {
        if let Some(state) = &self.0 {
            state.note_latency(latency, system_clock());
        }
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        if let Some(state) = &self.0 {
            state.inflight.fetch_sub(1, Relaxed);
        }
    }
}

/// A request for a target.
pub struct TargetRequest<'a> {
    pub worker: &'a Rc<Worker>,
    pub serving: &'a WorkerSnapshot,
    pub forward: &'a Forward,
    pub client: IpAddr,
    /// The server name that the client has asked for.
    pub server_name: Option<&'a str>,
    /// Its id, with MQTT.
    pub mqtt_client_id: Option<&'a [u8]>,
}

/// A connection to a target.
pub struct TargetConnection {
    pub read: ReadHalf,
    pub write: WriteHalf,
    pub busy: SessionGuard,
    pub open: OpenConnectionGuard,
}

/// A socket that sends to a target.
pub struct Socket {
    pub socket: UdpSocket,
    pub busy: SessionGuard,
    /// The target's health, if it is checked.
    pub health: Option<HealthHandle>,
}

/// A target whose health sessions may change.
pub struct HealthHandle {
    upstream: Arc<Upstream>,
    target: usize,
    address: SocketAddr,
}

impl HealthHandle {
    /// Notes what a session has shown of the target.
    pub fn note(&self, worker: &Worker, signal: Signal) {
        note(
            worker,
            &self.upstream,
            &self.upstream.targets[self.target],
            self.address,
            signal,
        );
    }
}

impl TargetRequest<'_> {
    fn upstream(&self) -> &Arc<Upstream> {
        &self.serving.published.snapshot.upstreams[self.forward.upstream as usize]
    }

    /// Connects to a target, and sends it `greeting` before anything else.
    ///
    /// # Errors
    /// How the session ends, as no target can be reached.
    pub async fn connect(
        &self,
        greeting: &[u8],
        report: &mut SessionRecord,
    ) -> Result<TargetConnection, StreamResult> {
        let upstream = self.upstream();
        let (read, write, busy) = self
            .try_targets(report, async |index, address| {
                let target = &upstream.targets[index];
                // It counts from here on: sessions that begin meanwhile see it in the load.
                let busy = SessionGuard::new(upstream, target);
                let connected = self.dial(target, address, greeting);
                let timeout = Duration::from_millis(self.forward.timeouts.connect_ms);
                let until = later(Instant::now(), timeout);
                match tokio::time::timeout_at(until.into(), connected).await {
                    Ok(Ok((read, write))) => Ok((read, write, busy)),
                    Ok(Err(error)) => Err(error),
                    Err(_) => Err(io::ErrorKind::TimedOut.into()),
                }
            })
            .await?;
        Ok(TargetConnection {
            read,
            write,
            busy,
            open: OpenConnectionGuard::new(&self.worker.metrics),
        })
    }

    /// A socket that sends to a target. Whether a server is there shows only later.
    ///
    /// # Errors
    /// How the session ends, as there is no target.
    pub async fn socket(&self, report: &mut SessionRecord) -> Result<Socket, StreamResult> {
        let upstream = self.upstream();
        self.try_targets(report, async |index, address| {
            let any: IpAddr = match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
            };
            let socket = UdpSocket::bind((any, 0)).await?;
            socket.connect(address).await?;
            // Sending never waits; so it must be known first that it can be done.
            socket.writable().await?;
            Ok(Socket {
                socket,
                busy: SessionGuard::new(upstream, &upstream.targets[index]),
                health: upstream.checks.is_some().then(|| HealthHandle {
                    upstream: Arc::clone(upstream),
                    target: index,
                    address,
                }),
            })
        })
        .await
    }

    /// Tries targets until one will do, or no further one may be tried.
    async fn try_targets<T: ConnectOutcome>(
        &self,
        report: &mut SessionRecord,
        attempt: impl AsyncFn(usize, SocketAddr) -> io::Result<T>,
    ) -> Result<T, StreamResult> {
        let upstream = self.upstream();
        if let Some(budget) = &upstream.retry_budget {
            budget.left.note_call(budget.rules);
        }
        let hash = upstream
            .hash_on
            .iter()
            .find_map(|source| source.hash_of_client(self.client, self.mqtt_client_id));
        let started = Instant::now();
        let mut tried: Vec<usize> = Vec::new();
        loop {
            let now_ms = if upstream.balancer.uses_load() {
                system_clock()
            } else {
                0
            };
            let choice = PickRequest {
                place: self.forward.upstream as usize,
                hash,
                now_ms,
                tried: &tried,
            };
            let index = choose(self.serving, &choice).ok_or(StreamResult::NoTarget)?;
            let target = &upstream.targets[index];
            let address = self.address(target, upstream.srv, report).await;
            let begun = Instant::now();
            let failure = match address {
                None => StreamResult::NoTarget,
                Some(address) => {
                    report.upstream = Some(address);
                    match attempt(index, address).await {
                        Ok(reached) => {
                            reached.busy().note_latency(begun.elapsed());
                            if T::IS_PROOF {
                                note(self.worker, upstream, target, address, Signal::Success);
                            }
                            return Ok(reached);
                        }
                        Err(error) => self.failed(target, address, &error),
                    }
                }
            };
            let budget = upstream.retry_budget.as_ref();
            let limit = self.forward.retry_timeout_ms;
            let is_in_time = limit == 0 || started.elapsed() < Duration::from_millis(limit);
            let may_retry = report.retries < self.forward.retries
                && is_in_time
                && budget.is_none_or(|budget| budget.left.take(budget.rules));
            if !may_retry {
                return Err(failure);
            }
            report.retries += 1;
            self.worker.metrics.upstream_retries.increment();
            tried.push(index);
        }
    }

    fn failed(&self, target: &Target, address: SocketAddr, error: &io::Error) -> StreamResult {
        tracing::debug!(%error, %address, "a target of a stream cannot be reached");
        let (signal, result) = match error.kind() {
            io::ErrorKind::TimedOut => (Signal::Timeout, StreamResult::Timeout),
            _ => (Signal::TcpFailure, StreamResult::Connect),
        };
        if self.upstream().balancer.needs_load() {
            target.state.note_failure(system_clock());
        }
        note(self.worker, self.upstream(), target, address, signal);
        result
    }

    async fn address(&self, target: &Target, srv: bool, report: &SessionRecord) -> Option<SocketAddr> {
        if let Some(address) = target.address {
            return Some(address);
        }
        let is_again = report.retries > 0;
        let wanted = DnsQuery {
            name: &target.host,
            port: target.port,
            srv,
            is_again,
            tried: report.upstream.filter(|_| is_again),
        };
        let allows = |address| target.health.as_ref().is_none_or(|health| health.allows(address));
        let found = self.worker.resolver.address(wanted, Instant::now(), allows).await;
        found.ok()
    }

    async fn dial(
        &self,
        target: &Target,
        address: SocketAddr,
        greeting: &[u8],
    ) -> io::Result<(ReadHalf, WriteHalf)> {
        let mut tcp = TcpStream::connect(address).await?;
        tcp.set_nodelay(true)?;
        if !greeting.is_empty() {
            tokio::io::AsyncWriteExt::write_all(&mut tcp, greeting).await?;
        }
        let Some(tls) = &self.forward.tls else {
            return Ok(crate::halves::plain(tcp));
        };
        let name = tls.name.clone().or_else(|| self.name_of(target));
        let name = name.ok_or(io::ErrorKind::InvalidInput)?;
        let config = Arc::clone(&tls.config);
        Ok(crate::halves::secure(
            transport::connect(tcp, config, name).await?,
        ))
    }

    /// The target's name in the TLS handshake: its own; the one that the client asked for if the target has only an
    /// address.
    fn name_of(&self, target: &Target) -> Option<ServerName<'static>> {
        let own = Some(target.host.as_str());
        let names = match target.address {
            None => [own, None],
            Some(_) => [self.server_name, own],
        };
        let mut names = names.into_iter().flatten();
        names.find_map(|name| ServerName::try_from(name.to_owned()).ok())
    }
}

/// The result of an attempt.
trait ConnectOutcome {
    /// Whether it proves that a server is there.
    const IS_PROOF: bool;

    fn busy(&self) -> &SessionGuard;
}

impl ConnectOutcome for (ReadHalf, WriteHalf, SessionGuard) {
    const IS_PROOF: bool = true;

    fn busy(&self) -> &SessionGuard {
        &self.2
    }
}

impl ConnectOutcome for Socket {
    const IS_PROOF: bool = false;

    fn busy(&self) -> &SessionGuard {
        &self.busy
    }
}

fn note(worker: &Worker, upstream: &Upstream, target: &Target, address: SocketAddr, signal: Signal) {
    if let (Some(checks), Some(health)) = (&upstream.checks, &target.health)
        && health.observe(address, signal, &checks.call_rules).is_some()
    {
        worker.shared.health.note_change();
    }
}
