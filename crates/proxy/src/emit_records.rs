//! Emits the record of a finished call: to metrics, and to the access log if there is one.

use crate::calls::WorkerCalls;
use crate::serve::RequestContext;
use crate::shared::PublishedSnapshot;
use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use weir_plugin::{CallRecord, FailedAttempt};
use weir_telemetry::access_log::AccessEntry;
use weir_telemetry::calls::{CallRecord as NumberedCall, CallTexts, method_number, protocol_number};
use weir_telemetry::metrics::{Observation, ProtocolError, SeriesId};

/// Microseconds since the Unix epoch.
pub(crate) fn unix_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

impl RequestContext<'_> {
    /// Counts the finished call, and logs it where calls are logged.
    pub fn record(&mut self, route: Option<usize>) {
        let now = Instant::now();
        // The next request is awaited from here on.
        self.client.timer.set(now, self.worker.shared.limits.idle_timeout);
        let total = now.saturating_duration_since(self.started());
        let status = if self.report.aborted {
            499
        } else {
            self.exchange.response.status
        };
        let series = route.map_or(SeriesId::UNMATCHED, |route| self.serving.published.series[route]);
        let microseconds = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let observation = Observation {
            status,
            total_us: microseconds(total),
            upstream_us: self
                .report
                .upstream_time
                .map_or(0, |time| microseconds(time).max(1)),
            bytes_in: self.report.bytes_in,
            bytes_out: self.report.bytes_out,
        };
        self.worker.metrics.record(series, &observation);
        if self.report.aborted {
            self.worker.metrics.protocol_error(ProtocolError::ClientAborted);
        }
        let worker = self.worker;
        if let Some(calls) = &worker.calls {
            self.note_call(calls, route, (now, &observation));
        }
        if self.worker.access_log.is_some() {
            self.log(route, status, total);
        }
    }

    /// Hands the finished call over.
    fn note_call(
        &mut self,
        calls: &WorkerCalls<PublishedSnapshot>,
        route: Option<usize>,
        (ended, observation): (Instant, &Observation),
    ) {
        let (report, request) = (&self.report, &self.exchange.request);
        let identity = self.exchange.identity.as_ref();
        let record = NumberedCall {
            ended_us: calls.time(ended),
            generation: self.serving.published.generation as u32,
            route: route.map(|route| route as u32),
            consumer: identity.map(|identity| identity.consumer.index),
            target: report.target.map(|(upstream, target)| (upstream, target as u16)),
            status: observation.status,
            refusal: report.refusal.map(|reason| reason as u8),
            plugin: report.refused_by.and_then(|name| calls.plugin(name)),
            method: method_number(&request.method),
            protocol: protocol_number(request.version),
            is_aborted: report.aborted,
            retries: report.retries.min(255) as u8,
            total_us: observation.total_us,
            upstream_us: observation.upstream_us,
            bytes_in: observation.bytes_in,
            bytes_out: observation.bytes_out,
            address: match request.client {
                IpAddr::V4(address) => 0xffff << 32 | u64::from(address.to_bits()),
                IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
            },
        };
        if let Some(weight) = calls.rings().push(&record) {
            // People find it again by its id, whether a plugin gave it one or not.
            self.exchange.ensure_request_id();
            self.note_texts(calls, &record, weight);
        }
    }

    /// Hands over the texts that only sampled calls have.
    #[cold]
    fn note_texts(&self, calls: &WorkerCalls<PublishedSnapshot>, record: &NumberedCall, weight: u32) {
        let request = &self.exchange.request;
        let mut headers = Vec::new();
        for name in calls.headers() {
            if let Some(value) = request.headers.get(name.as_bytes()) {
                headers.extend_from_slice(name.as_bytes());
                headers.extend_from_slice(b": ");
                headers.extend_from_slice(value);
                headers.push(b'\n');
            }
        }
        let texts = CallTexts {
            headers: &headers,
            path: &request.raw_path,
            request_id: self.exchange.request_id().as_bytes(),
            host: &request.host,
            agent: request.headers.get(b"user-agent").unwrap_or_default(),
        };
        calls.rings().push_sampled(record, weight, texts);
    }

    /// Runs the log phase of the call's chain, and hands the records over.
    pub fn emit_log_records(&mut self, route: Option<usize>) {
        let snapshot = &self.serving.published.snapshot;
        let chain = route.map_or(&snapshot.unmatched, |route| &snapshot.routes[route].chain);
        if chain.log_steps.is_empty() {
            return;
        }
        // A bit a step; those that do not fit share the last one.
        let mut wanting = 0_u64;
        for (place, index) in chain.log_steps.iter().enumerate() {
            let step = &chain.steps[usize::from(*index)];
            let Some(instance) = step.instance(self.exchange.identity.as_ref()) else {
                continue;
            };
            if instance.phases.log && self.applies(instance) && instance.filter.wants_log(self.exchange) {
                wanting |= 1 << place.min(63);
            }
        }
        if wanting == 0 {
            return;
        }
        let microseconds = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let since_start = |at: Instant| microseconds(at.saturating_duration_since(self.started()));
        let total_us = microseconds(self.started().elapsed());
        let started_us = unix_us().saturating_sub(total_us);
        let failures = self.report.failures.iter().zip(&self.report.tries);
        let failures: Vec<FailedAttempt> = failures
            .map(|((address, ended), status)| FailedAttempt {
                address: *address,
                ended_us: since_start(*ended),
                status: *status,
            })
            .collect();
        let log_sinks = &self.worker.shared.log_sinks;
        let record = CallRecord {
            started_ms: started_us / 1_000,
            started_us,
            forwarded_us: self.report.forwarded_at.map(since_start),
            failures: &failures,
            status: match self.report.aborted {
                true => 499,
                false => self.exchange.response.status,
            },
            bytes_in: self.report.bytes_in,
            bytes_out: self.report.bytes_out,
            total_us,
            upstream_us: self.report.upstream_time.map(microseconds),
            upstream_status: self.report.answered,
            failed_tries: &self.report.tries,
            upstream: self.exchange.upstream,
            upstream_host: self.report.target.map(|(upstream, target)| {
                snapshot.upstreams[upstream as usize].targets[target]
                    .host
                    .as_str()
            }),
            hostname: log_sinks.hostname(),
            session: None,
        };
        let mut entries = Vec::new();
        for (place, index) in chain.log_steps.iter().enumerate() {
            let step = &chain.steps[usize::from(*index)];
            if wanting >> place.min(63) & 1 == 1
                && let Some(instance) = step.instance(self.exchange.identity.as_ref())
            {
                instance.filter.on_log(self.exchange, &record, &mut entries);
            }
        }
        for entry in entries {
            log_sinks.offer(entry);
        }
    }

    fn log(&mut self, route: Option<usize>, status: u16, total: Duration) {
        let Some(log) = &self.worker.access_log else {
            return;
        };
        let total_ms = u64::try_from(total.as_millis()).unwrap_or(u64::MAX);
        let time_ms = weir_plugin::system_clock().saturating_sub(total_ms);
        let facts = route.map(|route| &self.serving.published.snapshot.routes[route].facts);
        let consumer = self.exchange.identity.as_ref().map(|it| &it.consumer);
        let request_id = Some(self.exchange.request_id().as_bytes()).filter(|id| !id.is_empty());
        log.borrow_mut().log(&AccessEntry {
            time_ms,
            client: Some(self.exchange.request.client),
            method: &self.exchange.request.method,
            host: &self.exchange.request.host,
            path: &self.exchange.request.raw_path,
            version: version(self.exchange.request.version),
            status,
            bytes_in: self.report.bytes_in,
            bytes_out: self.report.bytes_out,
            duration_us: u64::try_from(total.as_micros()).unwrap_or(u64::MAX),
            upstream: self.exchange.upstream,
            upstream_us: self.report.upstream_time.map(|it| it.as_micros() as u64),
            upstream_status: self.report.answered,
            route: facts.map(|it| it.name.as_str()),
            service: facts.map(|it| it.service.as_str()),
            consumer: consumer.map(|it| it.username.as_deref().unwrap_or(&it.id)),
            request_id,
            retries: self.report.retries,
            error: self
                .report
                .error
                .or(self.report.aborted.then_some("client_aborted")),
            protocol: None,
        });
    }
}

/// The version of HTTP, in the form of logs.
fn version(version: (u8, u8)) -> Option<&'static str> {
    Some(match version {
        (1, 0) => "HTTP/1.0",
        (1, 1) => "HTTP/1.1",
        (2, 0) => "HTTP/2.0",
        (3, 0) => "HTTP/3.0",
        // A head that could not be read.
        _ => return None,
    })
}
