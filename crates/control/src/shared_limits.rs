//! Limits over all gateways: a gateway reports what it has counted to the control plane, again and again, and learns what
//! the others have. How that adds up is in [`weir_flow::rate_limit::across`].

use crate::http::{Call, KeptConnection};
use aws_lc_rs::rand;
use hyper::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_flow::rate_limit::across::{Count, CountExchange};
use weir_plugin::{SharedCount, SharedCounts, system_clock};

/// Between the end of a settlement and the next one.
const INTERVAL: Duration = Duration::from_millis(250);
/// The same while no window is open: others have to know that this gateway is there.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);
/// The longest that a settlement may take.
const TIMEOUT: Duration = Duration::from_secs(2);
/// A gateway without an answer for so long has no contact.
const CUT_OFF: Duration = Duration::from_secs(2);
/// Reports that follow each other without a pause at most.
const MAX_IN_A_ROW: usize = 64;
/// Counts in one report at most.
pub const MAX_COUNTS: usize = 20_000;

/// With whom a gateway settles its counts.
pub enum LimitTarget {
    /// With others that report to this process.
    Here(LimitExchange),
    /// With those of a control plane.
    Control {
        /// Where it is.
        url: String,
        /// The token for it.
        token: Option<String>,
    },
    /// With none: it follows a store without a control plane.
    Nowhere,
}

/// What the gateways of this process have counted. Cheap to share.
#[derive(Debug, Clone)]
pub struct LimitExchange(Arc<CountExchange>);

impl Default for LimitExchange {
    fn default() -> Self {
        Self(Arc::new(CountExchange::new(random_number())))
    }
}

/// Numbers that others are unlikely to have. It is no secret.
fn random_number() -> u64 {
    let mut bytes = [0; 8];
    // Without random bits there is the time.
    match rand::fill(&mut bytes) {
        Ok(()) => u64::from_le_bytes(bytes) >> 11,
        Err(_) => system_clock(),
    }
}

/// What a gateway has counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitReport {
    /// Which run of the gateway says so: what an earlier one has counted stays.
    pub run: u64,
    /// Whether these are the first counts of all of its windows. It then hears of each.
    #[serde(default)]
    pub all: bool,
    /// For each window: the name in 32 hexadecimal digits, when it ends, from when on it is worth nothing (milliseconds
    /// since the Unix epoch), and the calls.
    pub counts: Vec<(String, u64, u64, u64)>,
}

/// What the others have counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitAnswer {
    /// Who says so: another number than before has to be told everything.
    pub exchange: u64,
    /// How many gateways share limits.
    pub gateways: u64,
    /// For each window of which there are news: its name, when it ends, and the calls.
    pub others: Vec<(String, u64, u64)>,
    /// There is more.
    pub has_more: bool,
}

impl LimitExchange {
    /// Takes in a report; `None`: it is not understood, or too long.
    pub fn settle(&self, gateway: &str, report: &LimitReport, now_ms: u64) -> Option<LimitAnswer> {
        if report.counts.len() > MAX_COUNTS {
            return None;
        }
        let counts = report.counts.iter().map(|(name, end_ms, until_ms, count)| {
            Some(Count {
                window: (u128::from_str_radix(name, 16).ok()?, *end_ms),
                until_ms: *until_ms,
                count: *count,
            })
        });
        let counts: Option<Vec<Count>> = counts.collect();
        let gateway = format!("{gateway} {}", report.run);
        let settlement = self.0.settle(&gateway, report.all, &counts?, now_ms);
        let others = settlement.others.into_iter();
        Some(LimitAnswer {
            exchange: settlement.exchange,
            gateways: settlement.gateways,
            others: others
                .map(|((name, end_ms), count)| (format!("{name:032x}"), end_ms, count))
                .collect(),
            has_more: settlement.has_more,
        })
    }
}

/// Settles the counts of a gateway until the process ends.
pub async fn settle_limits(name: String, target: LimitTarget, counts: Vec<Arc<dyn SharedCounts>>) {
    let mut settler = Settler {
        name,
        target,
        run: random_number(),
        counts,
        connection: KeptConnection::default(),
        heard: None,
        waiting: Vec::new(),
        has_all: false,
    };
    let mut has_warned = false;
    loop {
        let is_open = settler.counts.iter().any(|it| it.is_open());
        tokio::time::sleep(if is_open { INTERVAL } else { IDLE_INTERVAL }).await;
        if !settler.counts.iter().any(|it| it.has_counted()) {
            continue;
        }
        if let LimitTarget::Nowhere = settler.target {
            if !std::mem::replace(&mut has_warned, true) {
                tracing::warn!(
                    "limits over all gateways count for this gateway alone: it has no control plane"
                );
            }
            continue;
        }
        settler.settle().await;
    }
}

/// A gateway that settles.
struct Settler {
    name: String,
    target: LimitTarget,
    run: u64,
    counts: Vec<Arc<dyn SharedCounts>>,
    connection: KeptConnection,
    /// When there was the last answer, of whom, and how many gateways there were.
    heard: Option<(Instant, u64, u64)>,
    /// What is yet to be reported.
    waiting: Vec<SharedCount>,
    /// The control plane knows of all windows.
    has_all: bool,
}

impl Settler {
    async fn settle(&mut self) {
        for _ in 0..MAX_IN_A_ROW {
            let all = !self.has_all;
            let now_ms = system_clock();
            if all {
                self.waiting.clear();
            }
            for counts in &self.counts {
                self.waiting.extend(counts.report(all, now_ms));
            }
            self.has_all = true;
            let rest = self.waiting.split_off(self.waiting.len().min(MAX_COUNTS));
            let report = LimitReport {
                run: self.run,
                all,
                counts: std::mem::replace(&mut self.waiting, rest)
                    .iter()
                    .map(|it| (format!("{:032x}", it.name), it.end_ms, it.until_ms, it.count))
                    .collect(),
            };
            match self.say(&report).await {
                Ok(answer) => {
                    let is_other = self
                        .heard
                        .is_some_and(|(_, exchange, _)| exchange != answer.exchange);
                    self.has_all &= !is_other;
                    self.take_in(&answer);
                    if !answer.has_more && self.waiting.is_empty() && self.has_all {
                        return;
                    }
                }
                Err(error) => return self.miss(&error),
            }
        }
    }

    async fn say(&mut self, report: &LimitReport) -> Result<LimitAnswer, String> {
        match &self.target {
            LimitTarget::Nowhere => Err("there is no control plane".to_owned()),
            LimitTarget::Here(exchange) => {
                let answer = exchange.settle(&self.name, report, system_clock());
                answer.ok_or_else(|| "the report is not understood".to_owned())
            }
            LimitTarget::Control { url, token } => {
                let url = format!(
                    "{}/api/v1/gateways/{}/limits",
                    url.trim_end_matches('/'),
                    self.name
                );
                let body = serde_json::to_value(report).map_err(|error| error.to_string())?;
                let mut call = Call::json(Method::POST, url, &body).token(token.as_deref());
                call.timeout = TIMEOUT;
                let answer = self.connection.make(call).await;
                let (status, body) = answer.map_err(|error| error.to_string())?;
                match status.is_success() {
                    true => serde_json::from_slice(&body).map_err(|error| error.to_string()),
                    false => Err(status.to_string()),
                }
            }
        }
    }

    fn take_in(&mut self, answer: &LimitAnswer) {
        let now_ms = system_clock();
        self.heard = Some((Instant::now(), answer.exchange, answer.gateways));
        for counts in &self.counts {
            counts.set_contact(None);
            for (name, end_ms, count) in &answer.others {
                if let Ok(name) = u128::from_str_radix(name, 16) {
                    counts.learn(name, *end_ms, *count, now_ms);
                }
            }
        }
    }

    /// There was no answer: what was reported may not have arrived.
    fn miss(&mut self, error: &str) {
        tracing::debug!(error, "counts of limits cannot be settled");
        self.has_all = false;
        if let Some((since, _, gateways)) = self.heard
            && since.elapsed() >= CUT_OFF
        {
            for counts in &self.counts {
                counts.set_contact(Some(gateways));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_understood_or_refused() {
        let exchange = LimitExchange::default();
        let report = |run: u64, name: &str, count: u64| LimitReport {
            run,
            all: true,
            counts: vec![(name.to_owned(), 2_000, 2_000, count)],
        };
        let name = format!("{:032x}", 7);
        for (gateway, run, name, expected) in [
            ("a", 1, name.as_str(), Some((1, 0))),
            ("b", 1, &name, Some((2, 5))),
            ("a", 1, &name, Some((2, 5))),
            // The same gateway after a restart: what it counted before stays.
            ("a", 2, &name, Some((3, 10))),
            ("a", 2, "no name", None),
            ("a", 2, "", None),
        ] {
            let answer = exchange.settle(gateway, &report(run, name, 5), 1_000);
            let told = answer.map(|it| (it.gateways, it.others[0].2));
            assert_eq!(told, expected, "{gateway} {run} {name}");
        }
        let long = LimitReport {
            counts: vec![(name, 1, 1, 1); MAX_COUNTS + 1],
            ..LimitReport::default()
        };
        assert_eq!(exchange.settle("a", &long, 1_000), None);
    }
}
