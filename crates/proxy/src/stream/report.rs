//! Reports of a session: to metrics while it lives, and to the access log when it is over.

use crate::client::Addresses;
use crate::worker::Worker;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use weir_plugin::RouteInfo;
use weir_telemetry::access_log::AccessEntry;
use weir_telemetry::metrics::{KindCounters, StreamKind, StreamResult};

/// The facts about a session for metrics and the access log. It counts as open while this lives.
pub struct SessionRecord {
    worker: Rc<Worker>,
    kind: StreamKind,
    pub client: SocketAddr,
    pub server_name: Option<Arc<str>>,
    /// The route that has taken it.
    pub facts: Option<Arc<RouteInfo>>,
    /// The target that was tried last.
    pub upstream: Option<SocketAddr>,
    /// Tries beyond the first.
    pub retries: u32,
    pub bytes_in: u64,
    pub bytes_out: u64,
    started: Instant,
}

impl SessionRecord {
    /// Of a session that begins now.
    pub fn new(worker: &Rc<Worker>, kind: StreamKind, addresses: Addresses) -> Self {
        worker.metrics.streams.of(kind).active.increment();
        Self {
            worker: Rc::clone(worker),
            kind,
            client: addresses.peer,
            server_name: None,
            facts: None,
            upstream: None,
            retries: 0,
            bytes_in: 0,
            bytes_out: 0,
            started: Instant::now(),
        }
    }

    fn counters(&self) -> &KindCounters {
        self.worker.metrics.streams.of(self.kind)
    }

    /// The session turns out to be of this kind.
    pub fn is_of(&mut self, kind: StreamKind) {
        if kind != self.kind {
            self.counters().active.decrement();
            self.kind = kind;
            self.counters().active.increment();
        }
    }

    /// Counts bytes that were carried.
    pub fn carried(&mut self, from_client: u64, to_client: u64) {
        self.bytes_in += from_client;
        self.bytes_out += to_client;
        let counters = self.counters();
        counters.bytes_in.add(from_client);
        counters.bytes_out.add(to_client);
    }

    /// Reports how the session has ended.
    pub fn end(self, result: StreamResult) {
        self.counters().ended(result);
        let Some(log) = &self.worker.access_log else {
            return;
        };
        let total = self.started.elapsed();
        let total_ms = u64::try_from(total.as_millis()).unwrap_or(u64::MAX);
        log.borrow_mut().log(&AccessEntry {
            time_ms: weir_plugin::system_clock().saturating_sub(total_ms),
            client: Some(self.client.ip().to_canonical()),
            protocol: Some(self.kind.label()),
            host: self.server_name.as_deref().unwrap_or_default().as_bytes(),
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            duration_us: u64::try_from(total.as_micros()).unwrap_or(u64::MAX),
            upstream: self.upstream,
            route: self.facts.as_ref().map(|it| it.name.as_str()),
            service: self
                .facts
                .as_ref()
                .map(|it| it.service.as_str())
                .filter(|it| !it.is_empty()),
            retries: self.retries,
            error: (result != StreamResult::Done).then_some(result.label()),
            ..AccessEntry::default()
        });
    }
}

impl Drop for SessionRecord {
    fn drop(&mut self) {
        self.counters().active.decrement();
    }
}
