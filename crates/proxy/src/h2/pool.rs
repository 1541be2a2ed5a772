//! HTTP/2 connections to upstreams. Each carries many calls at once; each worker has its own.

use super::connection::{self, Settings, Side};
use crate::buffer::Inbox;
use crate::multiplex::stream::Stream;
use crate::pool::{CountedOpen, PoolKey, UpstreamConnection, dial};
use crate::timer::{Timer, later};
use crate::transport::{ReadHalf, WriteHalf};
use crate::worker::Worker;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use weir_model::KeepalivePool;
use weir_snapshot::ClientTls;

/// Data that an upstream may send ahead on a stream, and on all streams of a connection.
const STREAM_WINDOW: u32 = 128 * 1024;
const CONNECTION_WINDOW: u32 = 2 * 1024 * 1024;
/// The number of the last stream of a connection.
const MAX_STREAM: u32 = (1 << 31) - 1;

/// Most connections that are made, one after another, until there is room for a call.
const MAX_OPENINGS: usize = 64;

/// How an upstream is met over TLS; `None`: in the clear.
pub type Met = Option<(Arc<ClientConfig>, ServerName<'static>)>;

/// The version of HTTP that a target is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    Http1,
    Http2,
    /// HTTP/2 where the target chooses it in the TLS handshake, else HTTP/1.1.
    Either,
}

impl Speaks {
    /// How the target is met over TLS.
    pub fn config(self, tls: &ClientTls) -> &Arc<ClientConfig> {
        match self {
            Self::Http1 => &tls.config,
            Self::Http2 => &tls.http2_config,
            Self::Either => &tls.either_config,
        }
    }
}

/// A connection that takes calls.
struct Connection {
    wire: Rc<connection::Connection>,
    /// Calls under way.
    active: Cell<usize>,
    /// Calls so far.
    calls: Cell<u64>,
    idle_since: Cell<Instant>,
    /// Takes no more calls.
    is_closed: Cell<bool>,
}

impl Connection {
    fn has_room(&self, bounds: &KeepalivePool) -> bool {
        let is_worn = bounds.requests > 0 && self.calls.get() >= bounds.requests;
        let has_stream = |state: &mut connection::State| {
            let is_open = !state.is_over && !state.peer_is_going && state.highest < MAX_STREAM;
            is_open && self.active.get() < state.peer_max_streams
        };
        !self.is_closed.get() && !is_worn && self.wire.with(has_stream)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // It ends with its last call.
        self.wire.with(connection::State::wake_driver);
    }
}

/// A call's place on a connection.
pub struct Lease(Rc<Connection>);

impl Lease {
    /// No further call goes on this connection.
    pub fn close(&self) {
        self.0.is_closed.set(true);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let active = self.0.active.get() - 1;
        self.0.active.set(active);
        if active == 0 {
            self.0.idle_since.set(Instant::now());
        }
    }
}

/// A connection that is being made; whoever needs it waits for the same one.
#[derive(Default)]
struct Opening {
    result: Cell<Option<Result<(), io::ErrorKind>>>,
    is_over: Notify,
    /// The connection, where the target has chosen HTTP/1.1: for the first who waits.
    http1: RefCell<Option<(ReadHalf, WriteHalf)>>,
}

#[derive(Default)]
struct Entry {
    open: Vec<Rc<Connection>>,
    opening: Option<Rc<Opening>>,
    /// How long the last call wanted idle connections to be kept.
    idle_timeout: Duration,
    /// The target has chosen HTTP/1.1 when it was last asked.
    chose_http1: bool,
}

/// A worker's connections.
#[derive(Default)]
pub struct Streams {
    entries: RefCell<HashMap<PoolKey, Entry, foldhash::fast::RandomState>>,
}

impl Streams {
    /// A stream on a connection that is there already.
    pub fn take(
        &self,
        key: &PoolKey,
        bounds: &KeepalivePool,
        now: Instant,
    ) -> Option<Box<UpstreamConnection>> {
        let mut entries = self.entries.borrow_mut();
        let entry = entries.get_mut(key)?;
        entry.idle_timeout = Duration::from_millis(bounds.idle_timeout_ms);
        let connection = Rc::clone(entry.open.iter().find(|it| it.has_room(bounds))?);
        Some(begin(connection, now))
    }

    /// A stream on a connection that is made for it, and for all that wait for one; or a connection of its own, where
    /// the target has chosen HTTP/1.1.
    ///
    /// # Errors
    /// See [`Streams::open`].
    pub async fn connect(
        worker: &Rc<Worker>,
        key: &PoolKey,
        (met, speaks): (Met, Speaks),
        timeout: Duration,
        bounds: &KeepalivePool,
    ) -> io::Result<Box<UpstreamConnection>> {
        let now = Instant::now();
        // A connection may be full again once all that waited have been there.
        for _ in 0..MAX_OPENINGS {
            let timer = Timer::new(now, timeout);
            if speaks == Speaks::Either && worker.streams.chose_http1(key) {
                let opened =
                    UpstreamConnection::open(key.address, met.clone(), timer, &worker.metrics).await?;
                if !opened.read.speaks_http2() {
                    return Ok(opened);
                }
                // It has changed its mind: what was opened is of no use, but all can share the next one.
                worker.streams.note_choice(key, false);
                continue;
            }
            let opening = Self::open(worker, key, (met.clone(), speaks), timer).await?;
            if let Some(stream) = worker.streams.take(key, bounds, now) {
                return Ok(stream);
            }
            if let Some((read, write)) = opening.http1.take() {
                return Ok(Box::new(UpstreamConnection {
                    read,
                    write: Some(write),
                    inbox: Default::default(),
                    timer: Timer::new(now, Duration::ZERO),
                    calls: 0,
                    open: Some(CountedOpen::new(&worker.metrics)),
                    home: None,
                }));
            }
        }
        Err(io::ErrorKind::ConnectionRefused.into())
    }

    fn chose_http1(&self, key: &PoolKey) -> bool {
        self.entries
            .borrow()
            .get(key)
            .is_some_and(|entry| entry.chose_http1)
    }

    fn note_choice(&self, key: &PoolKey, chose_http1: bool) {
        let mut entries = self.entries.borrow_mut();
        entries.entry(key.clone()).or_default().chose_http1 = chose_http1;
    }

    /// Waits until there is a connection more, which all that wait share.
    ///
    /// # Errors
    /// `TimedOut` when the timer ran out, else what the system says.
    async fn open(
        worker: &Rc<Worker>,
        key: &PoolKey,
        met: (Met, Speaks),
        timer: Timer,
    ) -> io::Result<Rc<Opening>> {
        let opening = {
            let mut entries = worker.streams.entries.borrow_mut();
            let entry = entries.entry(key.clone()).or_default();
            match &entry.opening {
                Some(opening) => Rc::clone(opening),
                None => {
                    let opening = Rc::new(Opening::default());
                    entry.opening = Some(Rc::clone(&opening));
                    let (worker, key) = (Rc::clone(worker), key.clone());
                    tokio::task::spawn_local(open(worker, key, met, timer, Rc::clone(&opening)));
                    opening
                }
            }
        };
        loop {
            let is_over = opening.is_over.notified();
            if let Some(result) = opening.result.get() {
                result?;
                drop(is_over);
                return Ok(opening);
            }
            is_over.await;
        }
    }

    /// Lets go of connections that have gone or whose time is up; they end with their last call.
    pub fn prune(&self, now: Instant) {
        self.entries.borrow_mut().retain(|_, entry| {
            let idle_timeout = entry.idle_timeout;
            entry.open.retain(|it| {
                let is_idle = it.active.get() == 0 && now >= later(it.idle_since.get(), idle_timeout);
                !it.is_closed.get() && !is_idle
            });
            !entry.open.is_empty() || entry.opening.is_some()
        });
    }

    /// Lets go of all.
    pub fn clear(&self) {
        self.entries.borrow_mut().clear();
    }
}

fn begin(connection: Rc<Connection>, now: Instant) -> Box<UpstreamConnection> {
    connection.active.set(connection.active.get() + 1);
    let calls = connection.calls.get();
    connection.calls.set(calls + 1);
    let wire = Rc::clone(&connection.wire);
    let stream = Rc::new(Stream::to_upstream(&wire, Lease(connection)));
    Box::new(UpstreamConnection {
        read: ReadHalf::Stream(Rc::clone(&stream)),
        write: Some(WriteHalf::Stream(stream)),
        inbox: Default::default(),
        timer: Timer::new(now, Duration::ZERO),
        calls,
        open: None,
        home: None,
    })
}

/// Makes a connection, tells those that wait for it, and drives it until it ends.
async fn open(worker: Rc<Worker>, key: PoolKey, met: (Met, Speaks), mut timer: Timer, opening: Rc<Opening>) {
    let shaken = {
        let mut shaking = std::pin::pin!(shake(&worker, &key, met));
        std::future::poll_fn(|context| match shaking.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => timer
                .poll_expired(context)
                .map(|()| Err(io::ErrorKind::TimedOut.into())),
        })
        .await
    };
    let (result, driven) = match shaken {
        Ok(Shaken::Http1(halves)) => {
            opening.http1.replace(Some(halves));
            (Ok(None), None)
        }
        Ok(Shaken::Http2(wire)) => {
            let kept = Rc::new(Connection {
                wire: Rc::clone(&wire),
                active: Cell::new(0),
                calls: Cell::new(0),
                idle_since: Cell::new(Instant::now()),
                is_closed: Cell::new(false),
            });
            let weak = Rc::downgrade(&kept);
            (Ok(Some(kept)), Some((weak, wire)))
        }
        Err(error) => (Err(error.kind()), None),
    };
    {
        let mut entries = worker.streams.entries.borrow_mut();
        let entry = entries.entry(key).or_default();
        entry.opening = None;
        opening
            .result
            .set(Some(result.as_ref().map(|_| ()).map_err(|kind| *kind)));
        entry.chose_http1 = matches!(result, Ok(None));
        entry.open.extend(result.ok().flatten());
    }
    opening.is_over.notify_waiters();
    let Some((kept, wire)) = driven else {
        return;
    };
    let metrics = &worker.metrics;
    let _open = CountedOpen::new(metrics);
    drive(&wire, &kept).await;
    if let Some(kept) = kept.upgrade() {
        kept.is_closed.set(true);
    }
}

/// What a connection has come to.
enum Shaken {
    Http1((ReadHalf, WriteHalf)),
    Http2(Rc<connection::Connection>),
}

async fn shake(worker: &Rc<Worker>, key: &PoolKey, (met, speaks): (Met, Speaks)) -> io::Result<Shaken> {
    let halves = dial(key.address, met).await?;
    if speaks == Speaks::Either && !halves.0.speaks_http2() {
        return Ok(Shaken::Http1(halves));
    }
    let settings = Settings {
        stream_window: STREAM_WINDOW,
        connection_window: CONNECTION_WINDOW,
        max_streams: 0,
        max_head_bytes: worker.shared.limits.max_head_bytes,
    };
    let wire = connection::Connection::new(worker, halves, Inbox::default(), Side::Client, settings);
    greet(&wire).await?;
    Ok(Shaken::Http2(wire))
}

/// Waits until the server has said how many calls it takes at once.
async fn greet(wire: &connection::Connection) -> io::Result<()> {
    std::future::poll_fn(|context| {
        let is_over = wire.poll_in(context).is_ready();
        if let Poll::Ready(Err(error)) = wire.poll_out(context) {
            return Poll::Ready(Err(error));
        }
        match is_over {
            true => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            false if wire.with(|state| state.is_greeted) => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    })
    .await
}

/// Lets the connection work until it ends, which it does once nobody holds on to it and no call is left.
async fn drive(wire: &connection::Connection, kept: &Weak<Connection>) {
    let ended = std::future::poll_fn(|context| {
        let is_over = wire.poll_in(context).is_ready();
        if kept.strong_count() == 0 {
            wire.with(connection::State::go_away);
        }
        match wire.poll_out(context) {
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) if is_over || kept.strong_count() == 0 => return Poll::Ready(Ok(())),
            Poll::Ready(Ok(())) => {}
            Poll::Pending if is_over => return Poll::Ready(Ok(())),
            Poll::Pending => {}
        }
        Poll::Pending
    })
    .await;
    wire.with(connection::State::lose);
    if let Err(error) = ended {
        tracing::debug!(%error, "an upstream's HTTP/2 connection has ended");
        return;
    }
    // Whoever does not take the good-bye will not miss it.
    std::future::poll_fn(|context| {
        let _is_told = wire.poll_end(context);
        Poll::Ready(())
    })
    .await;
}
