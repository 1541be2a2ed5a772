//! Reports of a session: to metrics while it lives; to the access log, and to the plugins that log, when it is over.

use super::admission::SessionPlugins;
use crate::client::Addresses;
use crate::emit_records::unix_us;
use crate::worker::Worker;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_plugin::{CallRecord, RouteInfo};
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
    /// That route's plugins; `None`: it has none, or no route has taken it.
    pub plugins: Option<SessionPlugins>,
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
            plugins: None,
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
    pub fn end(mut self, result: StreamResult) {
        self.counters().ended(result);
        let total = self.started.elapsed();
        self.access_log(result, total);
        self.log_by_plugins(result, total);
    }

    fn access_log(&self, result: StreamResult, total: Duration) {
        let Some(log) = &self.worker.access_log else {
            return;
        };
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

    /// Runs the log phase of the route's chain, and hands its entries over.
    fn log_by_plugins(&mut self, result: StreamResult, total: Duration) {
        let Some(SessionPlugins { exchange, chain }) = &mut self.plugins else {
            return;
        };
        if chain.log_steps.is_empty() {
            return;
        }
        exchange.upstream = self.upstream;
        exchange.response.status = status(result);
        let total_us = u64::try_from(total.as_micros()).unwrap_or(u64::MAX);
        let started_us = unix_us().saturating_sub(total_us);
        let log_sinks = &self.worker.shared.log_sinks;
        let record = CallRecord {
            started_ms: started_us / 1_000,
            started_us,
            status: status(result),
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            total_us,
            upstream_us: None,
            upstream_status: None,
            forwarded_us: None,
            failed_tries: &[],
            failures: &[],
            upstream: self.upstream,
            upstream_host: None,
            hostname: log_sinks.hostname(),
            session: Some(self.kind.label()),
        };
        let mut entries = Vec::new();
        for index in &chain.log_steps {
            let Some(instance) = chain.steps[usize::from(*index)].instance(None) else {
                continue;
            };
            let applies = instance.when.as_ref().is_none_or(|when| when.holds(exchange));
            if applies && instance.phases.log && instance.filter.wants_log(exchange) {
                instance.filter.on_log(exchange, &record, &mut entries);
            }
        }
        for entry in entries {
            log_sinks.offer(entry);
        }
    }
}

/// What an end stands for, as one of the statuses that NGINX gives to sessions.
fn status(result: StreamResult) -> u16 {
    match result {
        StreamResult::Done | StreamResult::Idle | StreamResult::Broken => 200,
        StreamResult::Handshake | StreamResult::NoRoute => 400,
        StreamResult::Refused => 403,
        StreamResult::NoTarget | StreamResult::Connect | StreamResult::Timeout => 502,
        StreamResult::Overload => 503,
    }
}

impl Drop for SessionRecord {
    fn drop(&mut self) {
        self.counters().active.decrement();
    }
}
