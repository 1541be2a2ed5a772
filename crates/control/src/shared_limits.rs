//! Limits over all gateways: a gateway reports what it has counted to the control plane, again and again, and learns what
//! the others have. How that adds up is in [`weir_flow::rate_limit::across`].

use crate::http::{ClientRequest, KeepAliveConnection};
use aws_lc_rs::rand;
use hyper::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use weir_flow::rate_limit::across::{Count, CountExchange, CountUpdate};
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
/// Sets of environments whose gateways share limits at most.
pub const MAX_EXCHANGES: usize = 64;

/// With whom a gateway settles its counts.
pub enum LimitTarget {
    /// With others that report to this process.
    Here(LimitExchange),
    /// With those of a control plane.
    Control {
        /// Its URL.
        url: String,
        /// The token for it.
        token: Option<String>,
        /// The environments that the gateway serves.
        environments: Vec<String>,
    },
    /// With none: it follows a store without a control plane.
    Nowhere,
}

/// The counts of gateways, for each set of environments for itself: gateways share limits with those that serve the
/// same environments. Cheap to share.
#[derive(Debug, Clone, Default)]
pub struct LimitExchanges(Arc<Mutex<BTreeMap<Vec<String>, LimitExchange>>>);

impl LimitExchanges {
    /// The exchange of gateways of these environments; `None`: there are too many sets of environments.
    #[must_use]
    pub fn of(&self, mut environments: Vec<String>, now_ms: u64) -> Option<LimitExchange> {
        environments.sort();
        environments.dedup();
        // Every change leaves it whole.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains_key(&environments) && known.len() >= MAX_EXCHANGES {
            known.retain(|_, it| Arc::strong_count(&it.0) > 1 || !it.0.counts.is_idle(now_ms));
            if known.len() >= MAX_EXCHANGES {
                return None;
            }
        }
        Some(known.entry(environments).or_default().clone())
    }
}

/// The counts of the gateways of the same environments. Cheap to share.
#[derive(Debug, Clone)]
pub struct LimitExchange(Arc<Exchange>);

#[derive(Debug)]
struct Exchange {
    counts: CountExchange,
    /// It is in the log that there was no room.
    has_told_full: AtomicBool,
    /// It is in the log that a count was not credible.
    has_told_not_credible: AtomicBool,
}

impl Default for LimitExchange {
    fn default() -> Self {
        Self(Arc::new(Exchange {
            counts: CountExchange::new(random_number()),
            has_told_full: AtomicBool::new(false),
            has_told_not_credible: AtomicBool::new(false),
        }))
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

/// The counts of a gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitReport {
    /// The run of the gateway that reports: counts of earlier runs are kept.
    pub run: u64,
    /// Whether these are counts of all of its windows, or the next of them. It then hears of each.
    #[serde(default)]
    pub all: bool,
    /// For each window: the name in 32 hexadecimal digits, when it ends, from when on it is worth nothing (milliseconds
    /// since the Unix epoch), and the calls.
    pub counts: Vec<(String, u64, u64, u64)>,
}

/// The counts of the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitReportResponse {
    /// The number of the exchange: a gateway that sees another number than before has to report everything.
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
    pub fn merge_report(
        &self,
        gateway: &str,
        report: &LimitReport,
        now_ms: u64,
    ) -> Option<LimitReportResponse> {
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
        let settlement = self
            .0
            .counts
            .merge((gateway, report.run), report.all, &counts?, now_ms);
        self.log_refused(gateway, &settlement);
        let others = settlement.others.into_iter();
        Some(LimitReportResponse {
            exchange: settlement.exchange,
            gateways: settlement.gateways,
            others: others
                .map(|((name, end_ms), count)| (format!("{name:032x}"), end_ms, count))
                .collect(),
            has_more: settlement.has_more,
        })
    }

    /// Logs, once for each reason, that counts were not taken in.
    fn log_refused(&self, gateway: &str, settlement: &CountUpdate) {
        let (full, wrong) = (settlement.without_room, settlement.not_credible);
        if full > 0 && !self.0.has_told_full.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                gateway,
                counts = full,
                "too many shared limit windows: the surplus is limited per gateway"
            );
        }
        if wrong > 0 && !self.0.has_told_not_credible.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                gateway,
                counts = wrong,
                "a gateway reported implausible limit counts; they are ignored"
            );
        }
    }
}

/// Settles the counts of a gateway until the process ends.
pub async fn sync_limits(name: String, target: LimitTarget, counts: Vec<Arc<dyn SharedCounts>>) {
    let mut settler = LimitSync {
        name,
        target,
        run: random_number(),
        counts,
        connection: KeepAliveConnection::default(),
        heard: None,
        waiting: Vec::new(),
        is_waiting_of_all: false,
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
                tracing::warn!("shared limits count for this gateway alone: it has no control plane");
            }
            continue;
        }
        settler.sync().await;
    }
}

/// A gateway that settles.
struct LimitSync {
    name: String,
    target: LimitTarget,
    run: u64,
    counts: Vec<Arc<dyn SharedCounts>>,
    connection: KeepAliveConnection,
    /// When there was the last answer, of whom, and how many gateways there were.
    heard: Option<(Instant, u64, u64)>,
    /// The counts that are yet to be reported.
    waiting: Vec<SharedCount>,
    /// That is the rest of a report of all windows.
    is_waiting_of_all: bool,
    /// The control plane knows of all windows.
    has_all: bool,
}

impl LimitSync {
    async fn sync(&mut self) {
        for _ in 0..MAX_IN_A_ROW {
            let report = self.next_report(system_clock());
            match self.send(&report).await {
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

    fn next_report(&mut self, now_ms: u64) -> LimitReport {
        let all = !self.has_all;
        if all {
            self.waiting.clear();
        }
        for counts in &self.counts {
            self.waiting.extend(counts.report(all, now_ms));
        }
        self.has_all = true;
        let rest = self.waiting.split_off(self.waiting.len().min(MAX_COUNTS));
        let counts = std::mem::replace(&mut self.waiting, rest);
        let is_of_all = all || self.is_waiting_of_all;
        self.is_waiting_of_all = is_of_all && !self.waiting.is_empty();
        LimitReport {
            run: self.run,
            all: is_of_all,
            counts: counts
                .iter()
                .map(|it| (format!("{:032x}", it.name), it.end_ms, it.until_ms, it.count))
                .collect(),
        }
    }

    async fn send(&mut self, report: &LimitReport) -> Result<LimitReportResponse, String> {
        match &self.target {
            LimitTarget::Nowhere => Err("there is no control plane".to_owned()),
            LimitTarget::Here(exchange) => {
                let answer = exchange.merge_report(&self.name, report, system_clock());
                answer.ok_or_else(|| "the report is not understood".to_owned())
            }
            LimitTarget::Control {
                url,
                token,
                environments,
            } => {
                // Names of environments are letters, digits and hyphens.
                let url = format!(
                    "{}/api/v1/gateways/{}/limits?environment={}",
                    url.trim_end_matches('/'),
                    self.name,
                    environments.join(",")
                );
                let body = serde_json::to_value(report).map_err(|error| error.to_string())?;
                let mut call = ClientRequest::json(Method::POST, url, &body).token(token.as_deref());
                call.timeout = TIMEOUT;
                // News are sent once. After a call without an answer everything is reported, and asked for, once more.
                let answer = self.connection.make_once(call).await;
                let (status, body) = answer.map_err(|error| error.to_string())?;
                match status.is_success() {
                    true => serde_json::from_slice(&body).map_err(|error| error.to_string()),
                    false => Err(status.to_string()),
                }
            }
        }
    }

    fn take_in(&mut self, answer: &LimitReportResponse) {
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
        tracing::debug!(
            error,
            "counts of shared limits cannot be synchronised with the control plane"
        );
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
            let answer = exchange.merge_report(gateway, &report(run, name, 5), 1_000);
            let counts = answer.map(|it| (it.gateways, it.others[0].2));
            assert_eq!(counts, expected, "{gateway} {run} {name}");
        }
        let long = LimitReport {
            counts: vec![(name, 1, 1, 1); MAX_COUNTS + 1],
            ..LimitReport::default()
        };
        assert_eq!(exchange.merge_report("a", &long, 1_000), None);
    }

    #[test]
    fn gateways_of_other_environments_are_apart() {
        let exchanges = LimitExchanges::default();
        let names = |names: &str| names.split(',').map(str::to_owned).collect::<Vec<_>>();
        let report = LimitReport {
            counts: vec![(format!("{:032x}", 7), 2_000, 2_000, 5)],
            ..LimitReport::default()
        };
        for (gateway, environments, others) in [
            ("a", "prod", 0),
            ("b", "test", 0),
            ("c", "test,prod", 0),
            ("d", "prod,test,prod", 5),
            ("e", "prod", 5),
        ] {
            let exchange = exchanges.of(names(environments), 1_000).expect("room");
            let answer = exchange
                .merge_report(gateway, &report, 1_000)
                .expect("understood");
            assert_eq!(answer.others[0].2, others, "{gateway}");
        }
        // What is in use is not displaced; what is idle is.
        let fill = |now_ms: u64| {
            let made = (0..=MAX_EXCHANGES).filter_map(|it| exchanges.of(vec![it.to_string()], now_ms));
            assert_eq!(made.count(), MAX_EXCHANGES + 1);
        };
        let ask = |gateway: &str, environment: &str, now_ms: u64| {
            let exchange = exchanges.of(names(environment), now_ms).expect("room");
            exchange
                .merge_report(gateway, &report, now_ms)
                .expect("understood")
                .others[0]
                .2
        };
        fill(1_000);
        assert_eq!((ask("f", "prod", 1_000), ask("g", "test", 1_000)), (10, 5));
        let prod = exchanges.of(names("prod"), 1_000).expect("it is there");
        fill(90_000);
        let known = exchanges.of(names("prod"), 90_000).expect("it is there");
        assert!(Arc::ptr_eq(&prod.0, &known.0), "a gateway of this process has it");
    }

    /// Windows that were counted in once each.
    #[derive(Debug)]
    struct WindowCounter(u64);

    impl SharedCounts for WindowCounter {
        fn has_counted(&self) -> bool {
            true
        }

        fn is_open(&self) -> bool {
            true
        }

        fn report(&self, all: bool, now_ms: u64) -> Vec<SharedCount> {
            let count = |name: u64| SharedCount {
                name: name.into(),
                end_ms: now_ms,
                until_ms: now_ms,
                count: 1,
            };
            (0..if all { self.0 } else { 0 }).map(count).collect()
        }

        fn learn(&self, _: u128, _: u64, _: u64, _: u64) {}

        fn set_contact(&self, _: Option<u64>) {}
    }

    fn settler(target: LimitTarget, windows: u64) -> LimitSync {
        LimitSync {
            name: "a".to_owned(),
            target,
            run: 1,
            counts: vec![Arc::new(WindowCounter(windows))],
            connection: KeepAliveConnection::default(),
            heard: None,
            waiting: Vec::new(),
            is_waiting_of_all: false,
            has_all: false,
        }
    }

    #[test]
    fn every_part_of_a_full_report_asks_for_all() {
        let mut settler = settler(LimitTarget::Nowhere, 2 * MAX_COUNTS as u64 + 1);
        let mut next = || {
            let report = settler.next_report(1_000);
            (report.all, report.counts.len())
        };
        let reports = [next(), next(), next(), next()];
        let full = (true, MAX_COUNTS);
        assert_eq!(reports, [full, full, (true, 1), (false, 0)]);
    }

    /// A control plane that takes a second report on a connection and ends without an answer.
    #[tokio::test]
    async fn a_report_without_an_answer_is_not_repeated_as_it_was() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        /// A report ends with its only brace.
        async fn whole(stream: &mut tokio::net::TcpStream) -> Vec<u8> {
            let mut bytes = Vec::new();
            while bytes.last() != Some(&b'}') {
                bytes.push(stream.read_u8().await.expect("a report"));
            }
            bytes
        }
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let plane = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let report = whole(&mut stream).await;
            assert!(report.starts_with(b"POST /api/v1/gateways/a/limits?environment=test "));
            let body = r#"{"exchange":1,"gateways":1,"others":[],"has_more":false}"#;
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            stream.write_all(answer.as_bytes()).await.expect("written");
            whole(&mut stream).await;
            drop(stream);
            let again = tokio::time::timeout(Duration::from_millis(200), listener.accept());
            assert!(again.await.is_err(), "the report came once more");
        });
        let target = LimitTarget::Control {
            url,
            token: None,
            environments: vec!["test".to_owned()],
        };
        let mut settler = settler(target, 1);
        settler.sync().await;
        assert!(settler.has_all);
        settler.sync().await;
        assert!(!settler.has_all, "everything is reported next");
        plane.await.expect("a good end");
    }
}
