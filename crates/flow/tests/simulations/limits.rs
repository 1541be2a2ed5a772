//! One limit over two to four gateways that synchronize their counts; one of them is cut off for a while.

use crate::chart::{Chart, Line, Panel};
use crate::random::Random;
use weir_flow::rate_limit::across::{Count, CountExchange, WindowName};
use weir_flow::rate_limit::{Counters, Limiter, Verdict, Window, WindowLimit, across};

const LIMIT: u64 = 10_000;
const MINUTE_MS: u64 = 60_000;
const MINUTES: u64 = 12;
/// Minutes in which the first gateway has no contact. It notices after a second.
const CUT_OFF: std::ops::Range<u64> = 4..8;
const NOTICED_MS: u64 = 1_000;
/// Calls in a second, at all gateways together.
const RATE: f64 = 500.0;
/// Between the end of a settlement and the next one, and the longest that one takes.
const INTERVAL_MS: u64 = 250;
const LONGEST_TRIP_MS: u64 = 60;
/// The start of a minute.
const START_MS: u64 = 1_795_188_660_000;

enum Delivery {
    /// A report arrives.
    There(Vec<Count>),
    /// An answer does.
    Back(Vec<(WindowName, u64)>, u64),
}

struct Gateway {
    counters: Counters,
    shared: across::SharedCounts,
    name: String,
    gateways: u64,
    /// What is on its way, and when it arrives.
    under_way: Option<(u64, u64, Delivery)>,
    next_ms: u64,
    next_call_ms: f64,
    has_to_tell_all: bool,
}

impl Gateway {
    fn new(number: usize, random: &mut Random) -> Self {
        Self {
            counters: Limiter::new(1_000).counters("limit"),
            shared: across::SharedCounts::default(),
            name: number.to_string(),
            gateways: 0,
            under_way: None,
            next_ms: START_MS + random.below(INTERVAL_MS as usize) as u64,
            next_call_ms: START_MS as f64,
            has_to_tell_all: true,
        }
    }

    /// A call; whether it passes.
    fn call(&self, now_ms: u64, settles: bool) -> bool {
        let limit = WindowLimit {
            window: Window::Minute,
            limit: LIMIT,
        };
        let verdict = self.counters.take(7, &[limit], now_ms, &mut []);
        let passes = verdict == Verdict::Allowed;
        if passes && settles {
            self.shared.note(&self.counters, 7, &[limit], 1, now_ms, || 7);
        }
        passes
    }

    /// Continues the synchronization.
    fn merge(&mut self, exchange: &CountExchange, is_cut_off: bool, now_ms: u64, random: &mut Random) {
        if is_cut_off {
            self.under_way = None;
            self.has_to_tell_all = true;
            self.next_ms = now_ms + INTERVAL_MS;
            return;
        }
        match self.under_way.take() {
            Some((at_ms, trip_ms, way)) if at_ms <= now_ms => match way {
                Delivery::There(counts) => {
                    let answer = exchange.merge((&self.name, 1), self.has_to_tell_all, &counts, now_ms);
                    self.has_to_tell_all = false;
                    let back = Delivery::Back(answer.others, answer.gateways);
                    self.under_way = Some((now_ms + trip_ms, trip_ms, back));
                }
                Delivery::Back(others, gateways) => {
                    self.gateways = gateways;
                    self.shared.set_contact(None);
                    for (window, count) in others {
                        self.shared.learn(window, count, now_ms);
                    }
                    self.next_ms = now_ms + INTERVAL_MS;
                }
            },
            None if self.next_ms <= now_ms => {
                let trip_ms = 1 + random.below(LONGEST_TRIP_MS as usize / 2) as u64;
                let counts = self.shared.report(self.has_to_tell_all, now_ms);
                self.under_way = Some((now_ms + trip_ms, trip_ms, Delivery::There(counts)));
            }
            other => self.under_way = other,
        }
    }
}

/// How many calls pass in each minute.
fn run(count: usize, settles: bool, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let exchange = CountExchange::new(1);
    let mut gateways: Vec<Gateway> = (0..count).map(|it| Gateway::new(it, &mut random)).collect();
    let mean_ms = 1_000.0 / (RATE / count as f64);
    let mut passed = vec![0; MINUTES as usize];
    for now_ms in START_MS..START_MS + MINUTES * MINUTE_MS {
        let minute = (now_ms - START_MS) / MINUTE_MS;
        for (number, gateway) in gateways.iter_mut().enumerate() {
            let is_cut_off = number == 0 && CUT_OFF.contains(&minute);
            let since_ms = now_ms - START_MS;
            if is_cut_off && since_ms == CUT_OFF.start * MINUTE_MS + NOTICED_MS {
                gateway.shared.set_contact(Some(gateway.gateways));
            }
            if settles {
                gateway.merge(&exchange, is_cut_off, now_ms, &mut random);
            }
            while gateway.next_call_ms <= now_ms as f64 {
                gateway.next_call_ms += random.exponential(mean_ms);
                passed[minute as usize] += u64::from(gateway.call(now_ms, settles));
            }
        }
    }
    passed
}

fn line(name: &'static str, passed: &[u64]) -> Line {
    let points = passed.iter().enumerate();
    let percent = |passed: u64| passed as f64 / LIMIT as f64 * 100.0;
    Line {
        name,
        points: points.map(|(at, passed)| (at as f64, percent(*passed))).collect(),
    }
}

#[test]
fn a_limit_over_gateways_is_nearly_kept() {
    let names = ["two gateways", "three", "four"];
    let (mut settled, mut apart) = (Vec::new(), Vec::new());
    for (name, count) in names.into_iter().zip(2..) {
        let passed = run(count, true, 11 + count as u64);
        // A call is known to all after two intervals and two round trips.
        let late = (RATE * (2 * (INTERVAL_MS + LONGEST_TRIP_MS)) as f64 / 1_000.0) as u64;
        let share = LIMIT.div_ceil(count as u64);
        for (minute, passed) in passed.iter().enumerate() {
            let most = match minute as u64 {
                // The first gateway knew of little when it was cut off: it goes on alone.
                4 => 2 * LIMIT,
                5..8 => LIMIT + share,
                _ => LIMIT,
            };
            assert!(
                (LIMIT..=most + late).contains(passed),
                "{count} gateways, minute {minute}: {passed}"
            );
        }
        let worst = passed[..4].iter().max().unwrap() - LIMIT;
        println!("{count} gateways: at most {worst} calls of {LIMIT} too many; the bound is {late}");
        settled.push(line(name, &passed));
        let passed = run(count, false, 11);
        assert!(passed.iter().all(|it| *it > LIMIT * 19 / 10), "{passed:?}");
        apart.push(line(name, &passed));
    }
    let chart = Chart {
        title: "A limit over several gateways; one of them is cut off from minute 4 to 8",
        axis: "minutes",
        panels: vec![
            Panel {
                title: "calls that pass, percent of the limit: counts are settled",
                lines: settled,
            },
            Panel {
                title: "calls that pass, percent of the limit: each for itself",
                lines: apart,
            },
        ],
    };
    chart.check("limits");
}
