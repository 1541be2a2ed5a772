//! The metrics: each a name, a unit, what it needs, and how it is computed.

use crate::cell::{Cell, Field, Latency};
use crate::cube::named;
use crate::query::QueryError;

named! {
    /// The metrics of a query.
    Metric {
        /// Calls.
        Calls = "calls",
        /// Calls a second.
        CallsPerSecond = "calls_per_second",
        /// Answers with a status of 400 to 499.
        Errors4xx = "errors_4xx",
        /// Answers with a status from 500.
        Errors5xx = "errors_5xx",
        /// The share of calls with a status of 400 to 499.
        Share4xx = "share_4xx",
        /// The share of calls with a status from 500.
        Share5xx = "share_5xx",
        /// Calls that the gateway itself refused.
        Refused = "refused",
        /// The share of calls that the gateway itself refused.
        ShareRefused = "share_refused",
        /// Calls whose client left before the end.
        Aborted = "aborted",
        /// Upstream calls beyond the first of a call.
        Retries = "retries",
        /// Bytes received from clients.
        BytesIn = "bytes_in",
        /// Bytes sent to clients.
        BytesOut = "bytes_out",
        /// The mean time of a call.
        LatencyAvg = "latency_avg",
        /// The median time of a call.
        LatencyP50 = "latency_p50",
        /// The time that 90 % of the calls do not exceed.
        LatencyP90 = "latency_p90",
        /// The time that 95 % of the calls do not exceed.
        LatencyP95 = "latency_p95",
        /// The time that 99 % of the calls do not exceed.
        LatencyP99 = "latency_p99",
        /// The longest time of a call.
        LatencyMax = "latency_max",
        /// The mean time of the upstream.
        UpstreamAvg = "upstream_avg",
        /// The median time of the upstream.
        UpstreamP50 = "upstream_p50",
        /// The time of the upstream that 90 % of the calls do not exceed.
        UpstreamP90 = "upstream_p90",
        /// The time of the upstream that 95 % of the calls do not exceed.
        UpstreamP95 = "upstream_p95",
        /// The time of the upstream that 99 % of the calls do not exceed.
        UpstreamP99 = "upstream_p99",
        /// The mean time of the gateway itself.
        GatewayAvg = "gateway_avg",
        /// The median time of the gateway itself.
        GatewayP50 = "gateway_p50",
        /// The time of the gateway itself that 95 % of the calls do not exceed.
        GatewayP95 = "gateway_p95",
        /// The time of the gateway itself that 99 % of the calls do not exceed.
        GatewayP99 = "gateway_p99",
        /// The mean number of calls in progress at one time.
        Concurrency = "concurrency",
        /// Different consumers, and addresses of callers without one; an estimate.
        UniqueCallers = "unique_callers",
    }
}

impl Metric {
    /// Reads the name of a metric.
    ///
    /// # Errors
    /// If no metric has this name.
    pub fn read(field: &str, name: &str) -> Result<Self, QueryError> {
        Self::of(name).ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|it| it.as_str()).collect();
            QueryError::new(
                field,
                format!("there is no metric '{name}'; there are {}", known.join(", ")),
            )
        })
    }

    /// Its unit.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::CallsPerSecond => "calls/s",
            Self::Share4xx | Self::Share5xx | Self::ShareRefused => "share",
            Self::BytesIn | Self::BytesOut => "bytes",
            Self::Concurrency => "calls in progress",
            Self::UniqueCallers => "callers",
            Self::Calls
            | Self::Errors4xx
            | Self::Errors5xx
            | Self::Refused
            | Self::Aborted
            | Self::Retries => "calls",
            _ => "microseconds",
        }
    }

    /// The sums that it is made of.
    pub const fn fields(self) -> &'static [Field] {
        use Field as F;
        match self {
            Self::Calls | Self::CallsPerSecond => &[F::Calls],
            Self::Errors4xx => &[F::ClientErrors],
            Self::Errors5xx => &[F::ServerErrors],
            Self::Share4xx => &[F::ClientErrors, F::Calls],
            Self::Share5xx => &[F::ServerErrors, F::Calls],
            Self::Refused => &[F::Refused],
            Self::ShareRefused => &[F::Refused, F::Calls],
            Self::Aborted => &[F::Aborted],
            Self::Retries => &[F::Retries],
            Self::BytesIn => &[F::BytesIn],
            Self::BytesOut => &[F::BytesOut],
            Self::LatencyAvg => &[F::Total, F::Calls],
            Self::LatencyMax => &[F::Longest],
            Self::UpstreamAvg => &[F::Upstream, F::UpstreamCalls],
            Self::GatewayAvg => &[F::Total, F::Upstream, F::Calls],
            Self::Concurrency => &[F::Total],
            _ => &[],
        }
    }

    /// The percentile that it is, if it is one.
    pub const fn percentile(self) -> Option<(Latency, f64)> {
        use Latency as L;
        Some(match self {
            Self::LatencyP50 => (L::Total, 0.5),
            Self::LatencyP90 => (L::Total, 0.9),
            Self::LatencyP95 => (L::Total, 0.95),
            Self::LatencyP99 => (L::Total, 0.99),
            Self::UpstreamP50 => (L::Upstream, 0.5),
            Self::UpstreamP90 => (L::Upstream, 0.9),
            Self::UpstreamP95 => (L::Upstream, 0.95),
            Self::UpstreamP99 => (L::Upstream, 0.99),
            Self::GatewayP50 => (L::Gateway, 0.5),
            Self::GatewayP95 => (L::Gateway, 0.95),
            Self::GatewayP99 => (L::Gateway, 0.99),
            _ => return None,
        })
    }

    /// The value over so many seconds; `None`: no calls have such a value.
    pub fn value(self, cell: &Cell, seconds: u64) -> Option<f64> {
        if let Some((latency, share)) = self.percentile() {
            let us = cell.sketches[latency as usize].percentile(share)?;
            return Some(us as f64);
        }
        let sums = &cell.sums;
        let get = |field| sums.get(field) as f64;
        let per = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        match self {
            Self::CallsPerSecond => per(get(Field::Calls), seconds as f64),
            Self::Concurrency => per(get(Field::Total) / 1e6, seconds as f64),
            Self::GatewayAvg => {
                let own = sums.get(Field::Total).saturating_sub(sums.get(Field::Upstream));
                per(own as f64, get(Field::Calls))
            }
            Self::LatencyMax => (sums.get(Field::Longest) > 0).then(|| get(Field::Longest)),
            Self::Share4xx | Self::Share5xx | Self::ShareRefused | Self::LatencyAvg | Self::UpstreamAvg => {
                per(get(self.fields()[0]), get(self.fields()[1]))
            }
            Self::UniqueCallers => None,
            _ => Some(get(self.fields()[0])),
        }
    }
}
