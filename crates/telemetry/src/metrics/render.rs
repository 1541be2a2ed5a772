//! From the sums of one scrape to its text: which family has which samples.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::exposition::{Exposition, Labels};
use super::histogram::{Bounds, GATEWAY_BOUNDS, HistogramTotals, REQUEST_BOUNDS};
use super::names::{Metric, ProtocolError, Refusal, label};
use super::registry::Configuration;
use super::series::SeriesTotals;
use super::streams;
use super::targets::TargetScrape;
use super::worker::Totals;
use crate::access_log::AccessLogStats;
use crate::calls::AnalyticsStats;
use crate::log_sinks::{LogSinkKind, LogSinkStats};
use crate::ocsp::{OcspResult, OcspStats};
use crate::redis::{RedisServerStats, RedisStats};

/// One series, summed over workers.
#[derive(Debug)]
pub(super) struct SeriesScrape {
    pub(super) service: Arc<str>,
    pub(super) route: Arc<str>,
    pub(super) totals: SeriesTotals,
}

/// The content of one scrape.
#[derive(Debug)]
pub(super) struct Scrape {
    pub(super) totals: Totals,
    /// The series that were hit.
    pub(super) series: Vec<SeriesScrape>,
    pub(super) pairs: usize,
    pub(super) limit: usize,
    pub(super) overflow: usize,
    pub(super) configuration: Configuration,
    pub(super) access_log: Option<Arc<AccessLogStats>>,
    pub(super) log_sinks: Option<Arc<LogSinkStats>>,
    pub(super) ocsp: Option<Arc<OcspStats>>,
    pub(super) redis: Option<Arc<RedisStats>>,
    pub(super) analytics: Option<Arc<AnalyticsStats>>,
    pub(super) evictions: Vec<(&'static str, Arc<AtomicU64>)>,
    pub(super) targets: Option<TargetScrape>,
    pub(super) certificates: Vec<(String, i64)>,
}

type Histograms = fn(&SeriesTotals) -> &HistogramTotals;

impl Scrape {
    pub(super) fn render(&self, version: &str, revision: &str, out: &mut impl fmt::Write) -> fmt::Result {
        let mut out = Exposition::new(out);
        out.family(Metric::BuildInfo)?;
        let build = Labels::new(&[(label::VERSION, version), (label::REVISION, revision)]);
        out.sample(Metric::BuildInfo, &build, 1)?;
        self.configuration(&mut out)?;
        self.gateway(&mut out)?;
        self.targets(&mut out)?;
        self.certificates(&mut out)?;
        self.ocsp(&mut out)?;
        self.routes(&mut out)?;
        out.single(Metric::Series, self.pairs as u64)?;
        out.single(Metric::SeriesLimit, self.limit as u64)?;
        out.single(Metric::SeriesOverflow, self.overflow as u64)?;
        self.access_log(&mut out)?;
        self.log_sinks(&mut out)?;
        self.analytics(&mut out)?;
        self.redis(&mut out)?;
        self.evictions(&mut out)
    }

    fn configuration<W: fmt::Write>(&self, out: &mut Exposition<'_, W>) -> fmt::Result {
        let now = &self.configuration;
        out.single(Metric::ConfigGeneration, now.generation)?;
        if !now.hash.is_empty() {
            out.family(Metric::ConfigInfo)?;
            out.sample(Metric::ConfigInfo, &Labels::new(&[(label::HASH, &now.hash)]), 1)?;
        }
        out.family(Metric::ConfigReloads)?;
        for (result, n) in [("success", now.successes), ("failure", now.failures)] {
            out.sample(Metric::ConfigReloads, &Labels::new(&[(label::RESULT, result)]), n)?;
        }
        if let Some((unix_seconds, succeeded)) = now.last {
            out.single(Metric::ConfigLastReloadSuccessful, u64::from(succeeded))?;
            out.single(Metric::ConfigLastReloadTimestamp, unix_seconds)?;
        }
        if let Some((skipped, is_connected)) = now.store {
            out.single(Metric::ConfigDocumentsSkipped, skipped as u64)?;
            out.single(Metric::ConfigStoreConnected, u64::from(is_connected))?;
        }
        Ok(())
    }

    fn gateway<W: fmt::Write>(&self, out: &mut Exposition<'_, W>) -> fmt::Result {
        let totals = &self.totals;
        out.single(Metric::Requests, totals.requests)?;
        out.single(Metric::ClientConnections, totals.connections_accepted)?;
        out.single(Metric::ClientConnectionsRefused, totals.connections_refused)?;
        out.single(Metric::Panics, totals.panics)?;
        out.single(Metric::Http3Connections, totals.http3_connections)?;
        out.single(Metric::ClientConnectionsActive, totals.connections_active)?;
        out.single(Metric::BytesIn, totals.bytes_in)?;
        out.single(Metric::BytesOut, totals.bytes_out)?;
        out.single(
            Metric::UpstreamConnectionsOpened,
            totals.upstream_connections_opened,
        )?;
        out.single(
            Metric::UpstreamConnectionsReused,
            totals.upstream_connections_reused,
        )?;
        out.single(
            Metric::UpstreamConnectionsActive,
            totals.upstream_connections_active,
        )?;
        out.single(Metric::UpstreamRetries, totals.upstream_retries)?;
        out.single(Metric::UpstreamHedges, totals.upstream_hedges)?;
        out.single(Metric::UpstreamHedgesWon, totals.upstream_hedges_won)?;
        streams::render(&totals.streams, out)?;
        // Zeros too: a rate over a label that appears with its first error misses that error.
        out.family(Metric::ProtocolErrors)?;
        for &kind in ProtocolError::ALL {
            let labels = Labels::new(&[(label::KIND, kind.label())]);
            out.sample(Metric::ProtocolErrors, &labels, totals.protocol_errors(kind))?;
        }
        out.family(Metric::Refusals)?;
        for &reason in Refusal::ALL {
            let labels = Labels::new(&[(label::REASON, reason.label())]);
            out.sample(Metric::Refusals, &labels, totals.refusals(reason))?;
        }
        Ok(())
    }

    fn certificates<W: fmt::Write>(&self, out: &mut Exposition<'_, W>) -> fmt::Result {
        if self.certificates.is_empty() {
            return Ok(());
        }
        out.family(Metric::CertificateExpires)?;
        for (name, seconds) in &self.certificates {
            let labels = Labels::new(&[(label::NAME, name)]);
            out.sample(Metric::CertificateExpires, &labels, seconds)?;
        }
        Ok(())
    }

    fn ocsp<W: fmt::Write>(&self, out: &mut Exposition<'_, W>) -> fmt::Result {
        let Some(stats) = &self.ocsp else {
            return Ok(());
        };
        if OcspResult::ALL.iter().all(|result| stats.count(*result) == 0) {
            return Ok(());
        }
        out.family(Metric::OcspResponses)?;
        for result in OcspResult::ALL {
            let labels = Labels::new(&[(label::RESULT, result.label())]);
            out.sample(Metric::OcspResponses, &labels, stats.count(result))?;
        }
        Ok(())
    }

    fn targets<W: fmt::Write>(&self, out: &mut Exposition<'_, W>) -> fmt::Result {
        let Some(targets) = &self.targets else {
            return Ok(());
        };
        if !targets.samples.is_empty() {
            out.family(Metric::UpstreamTargetHealthy)?;
            for ([upstream, target, address], is_healthy) in &targets.samples {
                let labels = Labels::new(&[
                    (label::UPSTREAM, upstream),
                    (label::TARGET, target),
                    (label::ADDRESS, address),
                ]);
                out.sample(Metric::UpstreamTargetHealthy, &labels, u64::from(*is_healthy))?;
            }
        }
        out.family(Metric::UpstreamTargets)?;
        for (health, n) in [("healthy", targets.healthy), ("unhealthy", targets.unhealthy)] {
            out.sample(
                Metric::UpstreamTargets,
                &Labels::new(&[(label::HEALTH, health)]),
                n,
            )?;
        }
        self.limits(targets, out)
    }

    fn limits<W: fmt::Write>(&self, targets: &TargetScrape, out: &mut Exposition<'_, W>) -> fmt::Result {
        if targets.limits.is_empty() {
            return Ok(());
        }
        out.family(Metric::UpstreamConcurrencyLimit)?;
        for (upstream, (limit, _)) in &targets.limits {
            let labels = Labels::new(&[(label::UPSTREAM, upstream)]);
            out.sample(Metric::UpstreamConcurrencyLimit, &labels, u64::from(*limit))?;
        }
        out.family(Metric::UpstreamConcurrency)?;
        for (upstream, (_, inflight)) in &targets.limits {
            let labels = Labels::new(&[(label::UPSTREAM, upstream)]);
            out.sample(Metric::UpstreamConcurrency, &labels, u64::from(*inflight))?;
        }
        Ok(())
    }

    fn routes<W: fmt::Write>(&self, out: &mut Exposition<'_, W>) -> fmt::Result {
        if self.series.is_empty() {
            return Ok(());
        }
        out.family(Metric::RouteRequests)?;
        for series in &self.series {
            for (class, code, n) in series.totals.statuses() {
                let code = code.map_or_else(|| "other".to_owned(), |code| code.to_string());
                let labels = Labels::new(&[
                    (label::SERVICE, &series.service),
                    (label::ROUTE, &series.route),
                    (label::CLASS, class),
                    (label::CODE, &code),
                ]);
                out.sample(Metric::RouteRequests, &labels, n)?;
            }
        }
        let pairs = self
            .series
            .iter()
            .map(|series| Labels::new(&[(label::SERVICE, &series.service), (label::ROUTE, &series.route)]));
        let labelled: Vec<_> = pairs
            .zip(self.series.iter().map(|series| &series.totals))
            .collect();
        out.family(Metric::RouteBytesIn)?;
        for (labels, totals) in &labelled {
            out.sample(Metric::RouteBytesIn, labels, totals.bytes_in)?;
        }
        out.family(Metric::RouteBytesOut)?;
        for (labels, totals) in &labelled {
            out.sample(Metric::RouteBytesOut, labels, totals.bytes_out)?;
        }
        let histograms: [(Metric, Bounds, Histograms); 3] = [
            (Metric::RequestDuration, REQUEST_BOUNDS, |totals| &totals.total),
            (Metric::UpstreamDuration, REQUEST_BOUNDS, |totals| {
                &totals.upstream
            }),
            (Metric::GatewayDuration, GATEWAY_BOUNDS, |totals| &totals.gateway),
        ];
        for (metric, bounds, of) in &histograms {
            out.family(*metric)?;
            for (labels, totals) in labelled.iter().filter(|(_, totals)| of(totals).count() > 0) {
                out.histogram(*metric, labels, bounds, of(totals))?;
            }
        }
        Ok(())
    }

    fn access_log<W: fmt::Write>(&self, out: &mut Exposition<'_, W>) -> fmt::Result {
        let Some(stats) = &self.access_log else {
            return Ok(());
        };
        out.family(Metric::AccessLogLines)?;
        for (result, n) in [("written", stats.written()), ("dropped", stats.dropped())] {
            out.sample(
                Metric::AccessLogLines,
                &Labels::new(&[(label::RESULT, result)]),
                n,
            )?;
        }
        Ok(())
    }

    fn log_sinks<W: fmt::Write>(&self, out: &mut Exposition<'_, W>) -> fmt::Result {
        let Some(stats) = &self.log_sinks else {
            return Ok(());
        };
        let is_used = |kind: &LogSinkKind| stats.sent(*kind) + stats.dropped(*kind) > 0;
        let used: Vec<LogSinkKind> = LogSinkKind::ALL.into_iter().filter(is_used).collect();
        if used.is_empty() {
            return Ok(());
        }
        out.family(Metric::LogEntries)?;
        for kind in &used {
            for (result, n) in [("sent", stats.sent(*kind)), ("dropped", stats.dropped(*kind))] {
                let labels = Labels::new(&[(label::TARGET, kind.label()), (label::RESULT, result)]);
                out.sample(Metric::LogEntries, &labels, n)?;
            }
        }
        out.family(Metric::LogRetries)?;
        for kind in &used {
            let labels = Labels::new(&[(label::TARGET, kind.label())]);
            out.sample(Metric::LogRetries, &labels, stats.retries(*kind))?;
        }
        Ok(())
    }

    fn analytics<W: fmt::Write>(&self, out: &mut Exposition<'_, W>) -> fmt::Result {
        let Some(stats) = &self.analytics else {
            return Ok(());
        };
        out.single(Metric::AnalyticsDropped, stats.dropped.load(Relaxed))?;
        out.family(Metric::AnalyticsBatches)?;
        let results = [
            ("delivered", &stats.delivered),
            ("failed", &stats.failed),
            ("lost", &stats.lost),
        ];
        for (result, count) in results {
            let labels = Labels::new(&[(label::RESULT, result)]);
            out.sample(Metric::AnalyticsBatches, &labels, count.load(Relaxed))?;
        }
        Ok(())
    }

    fn evictions<W: fmt::Write>(&self, out: &mut Exposition<'_, W>) -> fmt::Result {
        if self.evictions.is_empty() {
            return Ok(());
        }
        out.family(Metric::CountersEvicted)?;
        for (plugin, count) in &self.evictions {
            let labels = Labels::new(&[(label::PLUGIN, plugin)]);
            out.sample(Metric::CountersEvicted, &labels, count.load(Relaxed))?;
        }
        Ok(())
    }

    fn redis<W: fmt::Write>(&self, out: &mut Exposition<'_, W>) -> fmt::Result {
        let servers = self.redis.as_ref().map(|stats| stats.servers());
        let Some(servers) = servers.filter(|servers| !servers.is_empty()) else {
            return Ok(());
        };
        let named = |server: &RedisServerStats| Labels::new(&[(label::SERVER, server.name())]);
        out.family(Metric::RedisUp)?;
        for server in &servers {
            out.sample(Metric::RedisUp, &named(server), u8::from(server.is_up()))?;
        }
        out.family(Metric::RedisCalls)?;
        for server in &servers {
            let results = [
                ("answered", &server.answered),
                ("failed", &server.failed),
                ("skipped", &server.skipped),
            ];
            for (result, count) in results {
                let labels = Labels::new(&[(label::SERVER, server.name()), (label::RESULT, result)]);
                out.sample(Metric::RedisCalls, &labels, count.load(Relaxed))?;
            }
        }
        out.family(Metric::RedisConnections)?;
        for server in &servers {
            let count = server.connections.load(Relaxed);
            out.sample(Metric::RedisConnections, &named(server), count)?;
        }
        Ok(())
    }
}
