//! HTTP/2 connections to upstreams. Each carries many calls at once; each worker has its own.

use super::alpn_memory::AlpnMemory;
use super::connection;
use super::lease::{Lease, OpenConnection};
use super::{driver, stream};
use crate::buffer::{Buffers, Inbox};
use crate::halves::{ReadHalf, WriteHalf, into_socket};
use crate::multiplex::stream::{Stream, StreamHalves};
use crate::object_pool::ObjectPool;
use crate::pool::{
    OpenConnectionGuard, PoolKey, UpstreamConnection, UpstreamIdentity, UpstreamProtocol, dial,
};
use crate::runtime::Runtime;
use crate::timer::{Timer, later};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use weir_http1::HeadSlot;
use weir_http2::{Role, Settings};
use weir_model::KeepalivePool;

/// Data that an upstream may send ahead on a stream.
const STREAM_WINDOW: u32 = 128 * 1024;
/// The same on all streams of a connection. They alone are the bound: calls of many clients share a connection, and
/// those who do not read must not be in the way of those who do.
const CONNECTION_WINDOW: u32 = 1 << 30;

/// Most places for streams that are kept.
const MAX_IDLE_OBJECTS: usize = 1024;
/// Most connections that are made, one after another, until there is room for a call.
const MAX_OPENINGS: usize = 64;

/// A connection that is being opened; all calls that need it wait for the same one.
#[derive(Default)]
struct PendingConnect {
    result: Cell<Option<Result<(), io::ErrorKind>>>,
    is_over: Notify,
    /// The connection, if the target has chosen HTTP/1.1: for the first call that waits.
    http1: RefCell<Option<(ReadHalf, WriteHalf)>>,
}

#[derive(Default)]
struct Entry {
    open: Vec<Rc<OpenConnection>>,
    opening: Option<Rc<PendingConnect>>,
    /// The bounds of the last call for connections.
    bounds: KeepalivePool,
}

/// A worker's connections.
pub struct Http2Pool {
    entries: RefCell<HashMap<PoolKey, Entry, foldhash::fast::RandomState>>,
    choices: AlpnMemory,
    /// Objects of streams that are over, for new ones.
    idle_objects: ObjectPool<Box<UpstreamConnection>>,
}

impl Default for Http2Pool {
    fn default() -> Self {
        Self {
            entries: RefCell::default(),
            choices: AlpnMemory::default(),
            idle_objects: ObjectPool::new(MAX_IDLE_OBJECTS),
        }
    }
}

impl Http2Pool {
    /// A stream on a connection that is there already.
    pub fn take(
        &self,
        key: &PoolKey,
        bounds: &KeepalivePool,
        now: Instant,
    ) -> Option<Box<UpstreamConnection>> {
        let mut entries = self.entries.borrow_mut();
        let entry = entries.get_mut(key)?;
        entry.bounds = *bounds;
        let connection = Rc::clone(entry.open.iter().find(|it| it.has_room(bounds))?);
        Some(self.begin(connection, now))
    }

    /// A stream on a connection that takes more, or is made for it and all that wait for one; or a connection of its
    /// own, if the target has chosen HTTP/1.1.
    ///
    /// # Errors
    /// As for a connection that is made. `ConnectionRefused` when connections that are made take no calls.
    pub async fn connect(
        self: &Rc<Self>,
        runtime: &Rc<Runtime>,
        key: &PoolKey,
        (met, speaks): (UpstreamIdentity, UpstreamProtocol),
        timeout: Duration,
        bounds: &KeepalivePool,
    ) -> io::Result<Box<UpstreamConnection>> {
        let now = Instant::now();
        // If one stream was refused, the connection may well take others.
        if let Some(stream) = self.take(key, bounds, now) {
            return Ok(stream);
        }
        // A connection may be full again once all that waited have been there.
        for _ in 0..MAX_OPENINGS {
            let timer = Timer::new(now, timeout);
            if speaks == UpstreamProtocol::Either && self.choices.is_http1(key, now) {
                let opened =
                    UpstreamConnection::open(key.address, met.clone(), timer, &runtime.metrics).await?;
                if !opened.read.speaks_http2() {
                    return Ok(opened);
                }
                // It has changed its mind: what was opened is of no use, but all can share the next one.
                self.choices.note(key, false, now);
                continue;
            }
            let opening = self.open(runtime, key, (met.clone(), speaks), timer).await?;
            if let Some(stream) = self.take(key, bounds, now) {
                return Ok(stream);
            }
            if self.drop_exhausted(key) {
                break;
            }
            if let Some((read, write)) = opening.http1.take() {
                return Ok(Box::new(UpstreamConnection {
                    read,
                    write: Some(write),
                    inbox: Default::default(),
                    last_head: HeadSlot::default(),
                    timer: Timer::new(now, Duration::ZERO),
                    calls: 0,
                    open: Some(OpenConnectionGuard::new(&runtime.metrics)),
                    home: None,
                }));
            }
        }
        Err(io::ErrorKind::ConnectionRefused.into())
    }

    /// Lets go of connections that have carried no call and take none; whether there are such. The next one would be no
    /// better.
    fn drop_exhausted(&self, key: &PoolKey) -> bool {
        let mut entries = self.entries.borrow_mut();
        let Some(Entry { open, bounds, .. }) = entries.get_mut(key) else {
            return false;
        };
        let before = open.len();
        open.retain(|it| it.calls.get() > 0 || it.has_room(bounds));
        open.len() < before
    }

    /// Waits until there is a connection more, which all that wait share.
    ///
    /// # Errors
    /// `TimedOut` when the timer ran out, else what the system says.
    async fn open(
        self: &Rc<Self>,
        runtime: &Rc<Runtime>,
        key: &PoolKey,
        met: (UpstreamIdentity, UpstreamProtocol),
        timer: Timer,
    ) -> io::Result<Rc<PendingConnect>> {
        let opening = {
            let mut entries = self.entries.borrow_mut();
            let entry = entries.entry(key.clone()).or_default();
            match &entry.opening {
                Some(opening) => Rc::clone(opening),
                None => {
                    let opening = Rc::new(PendingConnect::default());
                    entry.opening = Some(Rc::clone(&opening));
                    let (pool, runtime, key) = (Rc::clone(self), Rc::clone(runtime), key.clone());
                    tokio::task::spawn_local(open(pool, runtime, key, met, timer, Rc::clone(&opening)));
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

    /// Lets go of connections that have gone, that take no more calls, or whose time is up, and of those that are idle
    /// beyond what is to be kept; they end with their last call.
    pub fn prune(&self, now: Instant) {
        self.choices.prune(now);
        drop(self.idle_objects.trim());
        self.entries.borrow_mut().retain(|_, entry| {
            let bounds = &entry.bounds;
            let idle_timeout = Duration::from_millis(bounds.idle_timeout_ms);
            let mut idle = 0;
            // Calls take the first that has room, so the last ones are the least of use.
            entry.open.retain(|it| {
                let is_over = || !it.has_room(bounds) || now >= later(it.idle_since.get(), idle_timeout);
                let mut is_kept = || {
                    idle += 1;
                    idle <= bounds.size
                };
                !it.is_closed.get() && (it.active.get() > 0 || (!is_over() && is_kept()))
            });
            !entry.open.is_empty() || entry.opening.is_some()
        });
    }

    /// Lets go of all.
    pub fn clear(&self) {
        self.entries.borrow_mut().clear();
    }

    fn begin(&self, connection: Rc<OpenConnection>, now: Instant) -> Box<UpstreamConnection> {
        connection.active.set(connection.active.get() + 1);
        let calls = connection.calls.get();
        connection.calls.set(calls + 1);
        let wire = Rc::clone(&connection.wire);
        let ends = StreamHalves::Http2(stream::StreamHalves::to_upstream(&wire, Lease(connection)));
        let mut made = self.idle_objects.take().unwrap_or_else(|| {
            Box::new(UpstreamConnection {
                read: ReadHalf::Stream(Rc::default()),
                write: None,
                inbox: Inbox::default(),
                last_head: HeadSlot::default(),
                timer: Timer::new(now, Duration::ZERO),
                calls,
                open: None,
                home: None,
            })
        });
        made.calls = calls;
        if let ReadHalf::Stream(stream) = &mut made.read {
            Stream::begin(stream, ends, None);
            made.write = Some(WriteHalf::Stream(Rc::clone(stream)));
        }
        made
    }

    /// Takes back a stream whose call is over.
    pub fn give(&self, mut stream: Box<UpstreamConnection>, buffers: &Buffers) {
        stream.inbox.consume(stream.inbox.bytes().len());
        stream.inbox.release(buffers);
        stream.write = None;
        if let ReadHalf::Stream(it) = &mut stream.read
            && Stream::end_use(it)
        {
            self.idle_objects.give(stream);
        }
    }
}

/// Fails the calls that wait for a connection if the task that makes it panics.
struct FailOnPanic<'o>(&'o Http2Pool, &'o PoolKey, &'o PendingConnect);

impl Drop for FailOnPanic<'_> {
    fn drop(&mut self) {
        let Self(pool, key, opening) = *self;
        if !std::thread::panicking() || opening.result.get().is_some() {
            return;
        }
        if let Some(entry) = pool.entries.borrow_mut().get_mut(key) {
            entry.opening = None;
        }
        opening.result.set(Some(Err(io::ErrorKind::ConnectionReset)));
        opening.is_over.notify_waiters();
    }
}

/// Makes a connection, wakes the calls that wait for it, and drives it until it ends.
async fn open(
    pool: Rc<Http2Pool>,
    runtime: Rc<Runtime>,
    key: PoolKey,
    met: (UpstreamIdentity, UpstreamProtocol),
    mut timer: Timer,
    opening: Rc<PendingConnect>,
) {
    let _waiters = FailOnPanic(&pool, &key, &opening);
    let shaken = {
        let mut shaking = std::pin::pin!(shake(&runtime, &key, met));
        std::future::poll_fn(|context| match shaking.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => timer
                .poll_expired(context)
                .map(|()| Err(io::ErrorKind::TimedOut.into())),
        })
        .await
    };
    let (result, driven) = match shaken {
        Ok(NegotiatedConnection::Http1(halves)) => {
            opening.http1.replace(Some(halves));
            (Ok(None), None)
        }
        Ok(NegotiatedConnection::Http2(wire)) => {
            let kept = Rc::new(OpenConnection {
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
        let mut entries = pool.entries.borrow_mut();
        let entry = entries.entry(key.clone()).or_default();
        entry.opening = None;
        opening
            .result
            .set(Some(result.as_ref().map(|_| ()).map_err(|kind| *kind)));
        if let Ok(made) = result {
            pool.choices.note(&key, made.is_none(), Instant::now());
            entry.open.extend(made);
        }
    }
    opening.is_over.notify_waiters();
    let Some((kept, wire)) = driven else {
        return;
    };
    let metrics = &runtime.metrics;
    let _open = OpenConnectionGuard::new(metrics);
    let _streams = connection::LoseOnPanic(Rc::clone(&wire));
    driver::drive(&wire, || kept.strong_count() > 0).await;
    if let Some(kept) = kept.upgrade() {
        kept.is_closed.set(true);
    }
}

/// The protocol that a connection has negotiated.
enum NegotiatedConnection {
    Http1((ReadHalf, WriteHalf)),
    Http2(Rc<connection::Connection>),
}

async fn shake(
    runtime: &Rc<Runtime>,
    key: &PoolKey,
    (met, speaks): (UpstreamIdentity, UpstreamProtocol),
) -> io::Result<NegotiatedConnection> {
    let halves = dial(key.address, met).await?;
    if speaks == UpstreamProtocol::Either && !halves.0.speaks_http2() {
        return Ok(NegotiatedConnection::Http1(halves));
    }
    let settings = Settings {
        stream_window: STREAM_WINDOW,
        connection_window: CONNECTION_WINDOW,
        max_streams: 0,
        max_head_bytes: runtime.shared.limits.max_head_bytes,
    };
    let socket = into_socket(halves).ok_or(io::ErrorKind::NotConnected)?;
    let wire = connection::Connection::new(runtime, socket, Inbox::default(), Role::Client, settings);
    driver::greet(&wire).await?;
    Ok(NegotiatedConnection::Http2(wire))
}
