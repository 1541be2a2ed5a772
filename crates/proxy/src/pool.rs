//! Connections to upstreams, and those kept open for the next call. Each worker has its own.

use crate::buffer::{Buffers, Inbox};
use crate::halves::{ReadHalf, WriteHalf};
use crate::timer::{Timer, later};
use crate::transport;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use weir_http1::HeadSlot;
use weir_model::KeepalivePool;
use weir_snapshot::ClientTls;
use weir_telemetry::metrics::WorkerMetrics;

/// How an upstream is met over TLS; `None`: in the clear.
pub type UpstreamIdentity = Option<(Arc<ClientConfig>, ServerName<'static>)>;

/// The version of HTTP that a target is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamProtocol {
    Http1,
    Http2,
    /// HTTP/2 if the target chooses it in the TLS handshake, otherwise HTTP/1.1.
    Either,
}

impl UpstreamProtocol {
    /// How the target is met over TLS.
    pub fn config(self, tls: &ClientTls) -> &Arc<ClientConfig> {
        match self {
            Self::Http1 => &tls.config,
            Self::Http2 => &tls.http2_config,
            Self::Either => &tls.either_config,
        }
    }
}

/// The properties that a connection must share with another to stand in for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PoolKey {
    /// The target's address.
    pub address: SocketAddr,
    /// By which rules, and as whom, the target was met over TLS.
    pub tls: Option<(u64, ServerName<'static>)>,
}

/// The same for a connection that is used for more than HTTP to its address: through a proxy, or in another protocol.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaggedPoolKey {
    /// Its target, and how it was connected.
    pub end: PoolKey,
    /// Its purpose.
    pub tag: String,
}

/// A connection to a target.
pub struct UpstreamConnection {
    pub read: ReadHalf,
    /// Away while a request body is sent concurrently with the response.
    pub write: Option<WriteHalf>,
    pub inbox: Inbox,
    /// The head of its last response.
    pub last_head: HeadSlot,
    /// Bounds the waits of the call that it carries; kept, as setting a timer up again costs more than moving it.
    pub timer: Timer,
    /// Calls that it has carried.
    pub calls: u64,
    /// Counts the connection among the open ones for as long as it lives; streams are not counted.
    pub open: Option<OpenConnectionGuard>,
    /// The list that it comes from, and returns to once its call is over; a new one has to look for its list.
    pub home: Option<Rc<IdleList>>,
}

/// Counts among the open upstream connections while it lives.
pub struct OpenConnectionGuard(Arc<WorkerMetrics>);

impl OpenConnectionGuard {
    /// Counts a connection that was opened.
    pub fn new(metrics: &Arc<WorkerMetrics>) -> Self {
        metrics.upstream_connections_opened.increment();
        metrics.upstream_connections_active.increment();
        Self(Arc::clone(metrics))
    }
}

impl Drop for OpenConnectionGuard {
    fn drop(&mut self) {
        self.0.upstream_connections_active.decrement();
    }
}

impl UpstreamConnection {
    /// Connects, and performs the TLS handshake if there is to be TLS; `timer` bounds the wait.
    ///
    /// # Errors
    /// `TimedOut` when the timer ran out, else what the system says.
    pub async fn open(
        address: SocketAddr,
        met: UpstreamIdentity,
        mut timer: Timer,
        metrics: &Arc<WorkerMetrics>,
    ) -> io::Result<Box<Self>> {
        let mut connecting = std::pin::pin!(dial(address, met));
        let halves = std::future::poll_fn(|context| match connecting.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => timer
                .poll_expired(context)
                .map(|()| Err(io::ErrorKind::TimedOut.into())),
        })
        .await?;
        Ok(Self::of(halves, timer, metrics))
    }

    /// A connection of these halves.
    pub fn of((read, write): (ReadHalf, WriteHalf), timer: Timer, metrics: &Arc<WorkerMetrics>) -> Box<Self> {
        Box::new(Self {
            read,
            write: Some(write),
            inbox: Inbox::default(),
            last_head: HeadSlot::default(),
            timer,
            calls: 0,
            open: Some(OpenConnectionGuard::new(metrics)),
            home: None,
        })
    }
}

/// Connects, and performs the TLS handshake if there is to be TLS.
pub async fn dial(address: SocketAddr, met: UpstreamIdentity) -> io::Result<(ReadHalf, WriteHalf)> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    match met {
        None => Ok(crate::halves::plain(stream)),
        Some((config, name)) => {
            let stream = transport::connect(stream, config, name).await?;
            Ok(crate::halves::secure(stream))
        }
    }
}

struct Idle {
    connection: Box<UpstreamConnection>,
    since: Instant,
    timeout: Duration,
}

impl Idle {
    /// Whether it can carry a call, if idle connections are kept for so long.
    fn is_good(&self, now: Instant, timeout: Duration) -> bool {
        !timeout.is_zero() && now < later(self.since, timeout) && !self.connection.read.is_dead()
    }
}

/// The idle connections of one key.
#[derive(Default)]
pub struct IdleList(RefCell<Vec<Idle>>);

impl IdleList {
    /// One that is still good, the one used last first.
    pub fn take(list: &Rc<Self>, bounds: &KeepalivePool, now: Instant) -> Option<Box<UpstreamConnection>> {
        let mut idle = list.0.borrow_mut();
        let timeout = Duration::from_millis(bounds.idle_timeout_ms);
        while let Some(candidate) = idle.pop() {
            if candidate.is_good(now, timeout) {
                let mut connection = candidate.connection;
                connection.home = Some(Rc::clone(list));
                return Some(connection);
            }
        }
        None
    }
}

/// A worker's idle connections.
pub struct Pool<K = PoolKey> {
    lists: RefCell<HashMap<K, Rc<IdleList>, foldhash::fast::RandomState>>,
}

impl<K> Default for Pool<K> {
    fn default() -> Self {
        Self {
            lists: RefCell::default(),
        }
    }
}

impl<K: Clone + Eq + std::hash::Hash> Pool<K> {
    /// An idle connection that is still good, the one used last first.
    pub fn take(&self, key: &K, bounds: &KeepalivePool, now: Instant) -> Option<Box<UpstreamConnection>> {
        IdleList::take(self.lists.borrow().get(key)?, bounds, now)
    }

    /// The list of a key. It stays in the pool while it is held.
    pub fn list(&self, key: &K) -> Rc<IdleList> {
        Rc::clone(self.lists.borrow_mut().entry(key.clone()).or_default())
    }

    /// Keeps a connection for the next call, unless it has carried its share or there are enough.
    pub fn put(
        &self,
        key: &K,
        mut connection: Box<UpstreamConnection>,
        bounds: &KeepalivePool,
        now: Instant,
        buffers: &Buffers,
    ) {
        connection.inbox.release(buffers);
        let worn_out =
            (bounds.requests > 0 && connection.calls >= bounds.requests) || connection.write.is_none();
        // A stream carries one call.
        let worn_out = worn_out || connection.open.is_none();
        // Bytes that belong to no response would be taken for the next one.
        if worn_out || bounds.size == 0 || !connection.inbox.is_empty() {
            return;
        }
        let home = connection.home.take();
        let list = home.unwrap_or_else(|| self.list(key));
        let mut idle = list.0.borrow_mut();
        if idle.len() < bounds.size as usize {
            idle.push(Idle {
                connection,
                since: now,
                timeout: Duration::from_millis(bounds.idle_timeout_ms),
            });
        }
    }

    /// Closes connections that the peer has closed or whose time is up.
    pub fn prune(&self, now: Instant) {
        self.lists.borrow_mut().retain(|_, list| {
            let mut idle = list.0.borrow_mut();
            idle.retain(|it| it.is_good(now, it.timeout));
            // Connections in use come back to their list.
            !idle.is_empty() || Rc::strong_count(list) > 1
        });
    }

    /// Closes all.
    pub fn clear(&self) {
        for (_, list) in self.lists.borrow_mut().drain() {
            list.0.borrow_mut().clear();
        }
    }
}
