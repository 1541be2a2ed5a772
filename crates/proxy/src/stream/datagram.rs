//! Datagrams: those of one client are a session, with a socket of its own towards the target.
//!
//! The kernel hands all datagrams of a client to the same worker. Replies go out through the listener, so that the
//! client sees replies come from the address that it sent to. Sending never waits: what a full socket does not
//! take is dropped and counted, as anything on the way may drop a datagram. A session ends when nothing has moved for
//! the idle time-out, or when as many answers came as the route says that there are.

use super::admission::{ask, forward_of};
use super::any_address::AnyAddress;
use super::connect::{HealthHandle, TargetRequest};
use super::report::SessionRecord;
use crate::client::Addresses;
use crate::panics::AbortOnPanic;
use crate::timer::Timer;
use crate::worker::{ConnectionGuard, Worker};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::io::{Interest, ReadBuf};
use tokio::net::UdpSocket;
use tokio::sync::{Notify, watch};
use weir_flow::health::Signal;
use weir_snapshot::{SessionInfo, StreamTransport};
use weir_telemetry::metrics::{StreamKind, StreamResult};

/// The largest datagram.
const MAX_DATAGRAM: usize = 64 * 1024;
/// Datagrams of a client, and bytes of them, that wait until its target is found.
const EARLY: usize = 16;
const EARLY_BYTES: usize = 64 * 1024;
/// Datagrams that are read in a row before others have their turn.
const BATCH: usize = 64;
/// How long a session without a known number of answers may be idle once the gateway drains.
const DRAIN_IDLE: Duration = Duration::from_secs(1);

/// A socket that takes datagrams, and the sessions of its clients.
struct Listener {
    worker: Rc<Worker>,
    socket: UdpSocket,
    local: SocketAddr,
    /// Set if clients may send to any address of the machine.
    any_address: Option<AnyAddress>,
    /// By the client, and the address that it sends to.
    sessions: RefCell<HashMap<(SocketAddr, IpAddr), Rc<Session>, foldhash::fast::RandomState>>,
    /// Notified once no session is left.
    is_empty: Notify,
}

/// A listener's state of a session.
#[derive(Default)]
struct Session {
    /// Towards the target, once it is found.
    target: OnceCell<UdpSocket>,
    /// The datagrams that came before that.
    early: RefCell<Vec<Vec<u8>>>,
    /// Datagrams that were sent to the target, and bytes of them that were not counted yet.
    sent: Cell<u64>,
    bytes_sent: Cell<u64>,
    /// The target's host says that nothing listens there.
    is_refused: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// A session that is in the listener's table, until this is dropped: after a panic, too.
struct OpenSession<'s>(&'s Listener, Addresses);

impl Drop for OpenSession<'_> {
    fn drop(&mut self) {
        let Self(listener, addresses) = *self;
        let mut sessions = listener.sessions.borrow_mut();
        sessions.remove(&key(addresses));
        if sessions.is_empty() {
            listener.is_empty.notify_waiters();
        }
        let open = &listener.worker.datagram_sessions;
        open.set(open.get().saturating_sub(1));
    }
}

/// Takes datagrams until the gateway drains, and then those of open sessions only.
pub async fn listen(worker: Rc<Worker>, socket: std::net::UdpSocket, mut drain: watch::Receiver<bool>) {
    let opened = UdpSocket::from_std(socket).and_then(|socket| {
        let local = socket.local_addr()?;
        Ok((local, AnyAddress::of(&socket, local)?, socket))
    });
    let (local, any_address, socket) = match opened {
        Ok(opened) => opened,
        Err(error) => return tracing::error!(%error, "a listener for datagrams cannot be used"),
    };
    let _alive = AbortOnPanic("a listener for datagrams");
    let listener = Rc::new(Listener {
        worker,
        socket,
        local,
        any_address,
        sessions: RefCell::default(),
        is_empty: Notify::new(),
    });
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        tokio::select! {
            readable = listener.socket.readable() => {
                if readable.is_err() {
                    return;
                }
                listener.take_batch(&mut buffer, true);
            }
            _ = drain.wait_for(|draining| *draining) => break,
        }
        tokio::task::yield_now().await;
    }
    listener.take_batch(&mut buffer, true);
    tokio::task::spawn_local(async move {
        while !listener.sessions.borrow().is_empty() {
            tokio::select! {
                _ = listener.socket.readable() => listener.take_batch(&mut buffer, false),
                () = listener.is_empty.notified() => return,
            }
            tokio::task::yield_now().await;
        }
    });
}

impl Listener {
    fn take_batch(self: &Rc<Self>, buffer: &mut [u8], takes_new: bool) {
        for _ in 0..BATCH {
            match self.receive(buffer) {
                Ok((length, addresses)) => self.take(&buffer[..length], addresses, takes_new),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // What a client's host says about an earlier reply.
                Err(_) => {}
            }
        }
    }

    /// Reads a datagram, and returns its source and its destination.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, Addresses)> {
        let (length, peer, local) = match &self.any_address {
            None => {
                let (length, peer) = self.socket.try_recv_from(buffer)?;
                (length, peer, self.local.ip())
            }
            Some(any_address) => {
                let came = any_address.try_receive(&self.socket, buffer)?;
                (came.length, came.client, came.local)
            }
        };
        let local = SocketAddr::new(local, self.local.port());
        Ok((length, Addresses { peer, local }))
    }

    /// Sends a client what it gets, from the address that it has sent to.
    fn reply(&self, datagram: &[u8], addresses: Addresses) -> bool {
        let sent = match &self.any_address {
            None => self.socket.try_send_to(datagram, addresses.peer),
            Some(any_address) => {
                any_address.try_send(&self.socket, datagram, addresses.peer, addresses.local.ip())
            }
        };
        sent.is_ok()
    }

    fn take(self: &Rc<Self>, datagram: &[u8], addresses: Addresses, takes_new: bool) {
        let known = self.sessions.borrow().get(&key(addresses)).cloned();
        let taken = match known {
            Some(session) => session.take(datagram),
            None if takes_new => self.begin(datagram, addresses),
            None => false,
        };
        if !taken {
            self.worker.metrics.streams.datagrams_dropped.increment();
        }
    }

    /// Begins a session, unless there are too many.
    fn begin(self: &Rc<Self>, datagram: &[u8], addresses: Addresses) -> bool {
        let open = &self.worker.datagram_sessions;
        if open.get() >= self.worker.shared.limits.max_udp_sessions {
            let counters = self.worker.metrics.streams.of(StreamKind::Udp);
            counters.ended(StreamResult::Overload);
            return false;
        }
        open.set(open.get() + 1);
        let session = Rc::new(Session::default());
        let is_taken = session.take(datagram);
        self.sessions
            .borrow_mut()
            .insert(key(addresses), Rc::clone(&session));
        let guard = ConnectionGuard::uncounted(&self.worker);
        tokio::task::spawn_local(Rc::clone(self).serve(session, addresses, guard));
        is_taken
    }

    async fn serve(self: Rc<Self>, session: Rc<Session>, addresses: Addresses, guard: ConnectionGuard) {
        let worker = guard.attach().await;
        let mut report = SessionRecord::new(&worker, StreamKind::Udp, addresses);
        let open = OpenSession(&self, addresses);
        let ended = self.relay(&session, addresses, &mut report).await;
        report.carried(session.bytes_sent.take(), 0);
        drop(open);
        report.end(ended.unwrap_or_else(|early| early));
    }

    async fn relay(
        &self,
        session: &Session,
        addresses: Addresses,
        report: &mut SessionRecord,
    ) -> Result<StreamResult, StreamResult> {
        let worker = &self.worker;
        let serving = worker.serving();
        let streams = &serving.published.snapshot.streams;
        let found = streams.find(&SessionInfo {
            transport: StreamTransport::Udp,
            server_name: None,
            source: addresses.peer,
            destination: addresses.local,
        });
        let (position, _) = found.ok_or(StreamResult::NoRoute)?;
        let route = &streams.routes[position];
        report.facts = Some(Arc::clone(&route.facts));
        let asked = ask(worker, route, addresses, false, report).await;
        asked.map_err(|_| StreamResult::Refused)?;
        let forward = forward_of(&serving.published.snapshot, route, report)
            // A plugin may choose a service over TLS, which takes no datagrams: they are not sent in the clear.
            .filter(|it| it.tls.is_none())
            .ok_or(StreamResult::NoRoute)?;
        let request = TargetRequest {
            worker,
            serving: &serving,
            forward,
            client: addresses.peer.ip(),
            server_name: None,
            mqtt_client_id: None,
        };
        let reached = request.socket(report).await?;
        let (idle, responses) = (Duration::from_millis(route.idle_timeout_ms), route.udp_responses);
        drop(serving);
        let _busy = reached.busy;
        let target = session.target.get_or_init(|| reached.socket);
        for datagram in session.early.take() {
            if !session.send(target, &datagram) {
                worker.metrics.streams.datagrams_dropped.increment();
            }
        }
        let mut replies = Replies {
            listener: self,
            session,
            target,
            addresses,
            responses: responses.map(u64::from),
            received: 0,
            idle,
            timer: Timer::new(Instant::now(), idle),
        };
        // A target's host reports datagrams to a closed port as an error, and as nothing to read.
        let mut failure = std::pin::pin!(target.ready(Interest::ERROR));
        let result = std::future::poll_fn(|context| match failure.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(StreamResult::Connect),
            Poll::Pending => replies.poll(context, report),
        })
        .await;
        if let Some(health) = &reached.health {
            replies.report_health(health, result);
        }
        Ok(result)
    }
}

/// What distinguishes the sessions of a listener.
fn key(addresses: Addresses) -> (SocketAddr, IpAddr) {
    (addresses.peer, addresses.local.ip())
}

impl Session {
    /// Passes a datagram on, or keeps it until there is a target; says whether either could be done.
    fn take(&self, datagram: &[u8]) -> bool {
        if let Some(target) = self.target.get() {
            return self.send(target, datagram);
        }
        let mut early = self.early.borrow_mut();
        let waiting: usize = early.iter().map(Vec::len).sum();
        let has_room = early.len() < EARLY && waiting + datagram.len() <= EARLY_BYTES;
        if has_room {
            early.push(datagram.to_vec());
        }
        has_room
    }

    fn send(&self, target: &UdpSocket, datagram: &[u8]) -> bool {
        match target.try_send(datagram) {
            Ok(_) => {
                self.sent.set(self.sent.get() + 1);
                self.bytes_sent.set(self.bytes_sent.get() + datagram.len() as u64);
                true
            }
            Err(error) => {
                if error.kind() == io::ErrorKind::ConnectionRefused {
                    self.is_refused.set(true);
                    if let Some(waker) = self.waker.borrow_mut().take() {
                        waker.wake();
                    }
                }
                false
            }
        }
    }
}

/// The way back.
struct Replies<'r> {
    listener: &'r Listener,
    session: &'r Session,
    target: &'r UdpSocket,
    addresses: Addresses,
    responses: Option<u64>,
    received: u64,
    idle: Duration,
    timer: Timer,
}

impl Replies<'_> {
    /// Passes replies on until the session is over.
    fn poll(&mut self, context: &mut Context<'_>, report: &mut SessionRecord) -> Poll<StreamResult> {
        let worker = &self.listener.worker;
        let mut piece = worker.stream_buffer.borrow_mut();
        piece.resize(super::relay::PIECE_BYTES, 0);
        let before = self.received;
        loop {
            if self.session.is_refused.get() {
                return Poll::Ready(StreamResult::Connect);
            }
            let mut space = ReadBuf::new(&mut piece);
            match self.target.poll_recv(context, &mut space) {
                Poll::Pending => break,
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    return Poll::Ready(StreamResult::Connect);
                }
                Poll::Ready(Err(_)) => return Poll::Ready(StreamResult::Broken),
                Poll::Ready(Ok(())) => {}
            }
            self.received += 1;
            let reply = space.filled();
            if self.listener.reply(reply, self.addresses) {
                report.carried(0, reply.len() as u64);
            }
            if self.has_all() {
                return Poll::Ready(StreamResult::Done);
            }
        }
        drop(piece);
        self.poll_idle(context, report, before)
    }

    fn poll_idle(
        &mut self,
        context: &mut Context<'_>,
        report: &mut SessionRecord,
        received_before: u64,
    ) -> Poll<StreamResult> {
        let mut waker = self.session.waker.borrow_mut();
        if !waker
            .as_ref()
            .is_some_and(|known| known.will_wake(context.waker()))
        {
            *waker = Some(context.waker().clone());
        }
        drop(waker);
        let sent = self.session.bytes_sent.take();
        let has_moved = sent > 0 || self.received > received_before;
        report.carried(sent, 0);
        if has_moved {
            self.timer.set(Instant::now(), self.idle);
        }
        if self.responses.is_none() && self.listener.worker.is_draining() && self.idle > DRAIN_IDLE {
            self.idle = DRAIN_IDLE;
            self.timer.set(Instant::now(), self.idle);
        }
        match self.timer.poll_expired(context) {
            Poll::Pending => Poll::Pending,
            // A route that says how many answers there are waits for those that did not come.
            Poll::Ready(()) if self.responses.is_some() => Poll::Ready(StreamResult::Idle),
            Poll::Ready(()) => Poll::Ready(StreamResult::Done),
        }
    }

    /// Whether as many answers came as there are.
    fn has_all(&self) -> bool {
        let wanted = self
            .responses
            .map(|each| each.saturating_mul(self.session.sent.get()));
        wanted.is_some_and(|wanted| self.received >= wanted)
    }

    fn report_health(&self, health: &HealthHandle, result: StreamResult) {
        let worker = &self.listener.worker;
        match result {
            StreamResult::Connect => health.note(worker, Signal::TcpFailure),
            StreamResult::Idle if self.received == 0 => health.note(worker, Signal::Timeout),
            _ if self.received > 0 => health.note(worker, Signal::Success),
            _ => {}
        }
    }
}
