//! Where gateways learn what the others have counted. It keeps sums of open windows and nothing else; when it is started
//! again, gateways report everything once more.

use super::{Count, WindowName, lock};
use crate::hash_bytes;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Mutex;

/// Windows that are kept at most.
const MAX_WINDOWS: usize = 1 << 20;
/// Gateways that are kept at most.
const MAX_GATEWAYS: usize = 10_000;
/// Windows in one answer at most.
const MAX_TOLD: usize = 20_000;
/// A gateway that was silent for so long does not count as one.
const SILENT_MS: u64 = 5_000;
/// And is forgotten after so long. What it has counted stays.
const FORGOTTEN_MS: u64 = 60_000;
/// Clocks of gateways may differ by so much.
const SKEW_MS: u64 = 60_000;
/// How often what is over is looked for.
const PRUNE_MS: u64 = 1_000;

/// What gateways have counted.
pub struct CountExchange {
    id: u64,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    windows: HashMap<WindowName, Shared>,
    gateways: HashMap<String, Gateway>,
    pruned_ms: u64,
}

/// A window, and who has counted in it.
struct Shared {
    until_ms: u64,
    sum: u64,
    parts: Vec<(u64, u64)>,
}

struct Gateway {
    number: u64,
    seen_ms: u64,
    /// Windows of which it has to hear.
    news: HashSet<WindowName>,
}

/// What a gateway learns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settlement {
    /// Which exchange says so: another one than before has to be told everything.
    pub exchange: u64,
    /// How many gateways share limits.
    pub gateways: u64,
    /// What the others have counted in windows in which this gateway has counted.
    pub others: Vec<(WindowName, u64)>,
    /// There is more of it.
    pub has_more: bool,
}

impl fmt::Debug for CountExchange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "CountExchange({} windows)",
            lock(&self.known).windows.len()
        )
    }
}

impl CountExchange {
    /// One that knows nothing yet. `id` tells it from others.
    #[must_use]
    pub fn new(id: u64) -> Self {
        Self {
            id,
            known: Mutex::default(),
        }
    }

    /// Takes in what a gateway has counted, and says what the others have. `all`: these are the first of all of its
    /// windows, and it has to hear of each.
    pub fn settle(&self, gateway: &str, all: bool, counts: &[Count], now_ms: u64) -> Settlement {
        let mut known = lock(&self.known);
        known.prune(now_ms);
        let Some(number) = known.gateway(gateway, now_ms) else {
            return Settlement {
                exchange: self.id,
                gateways: known.active(now_ms),
                ..Settlement::default()
            };
        };
        let mut changed = Vec::new();
        for count in counts {
            if let Some((is_new, has_grown)) = known.take(number, count) {
                changed.push((count.window, is_new || all, has_grown));
            }
        }
        known.tell(number, &changed);
        let mut settlement = Settlement {
            exchange: self.id,
            gateways: known.active(now_ms),
            ..Settlement::default()
        };
        known.answer(gateway, number, &mut settlement);
        settlement
    }

    /// How many windows are kept.
    #[must_use]
    pub fn windows(&self) -> usize {
        lock(&self.known).windows.len()
    }
}

impl Known {
    fn prune(&mut self, now_ms: u64) {
        if now_ms.saturating_sub(self.pruned_ms) < PRUNE_MS && self.pruned_ms <= now_ms {
            return;
        }
        self.pruned_ms = now_ms;
        self.windows
            .retain(|_, shared| shared.until_ms.saturating_add(SKEW_MS) > now_ms);
        self.gateways
            .retain(|_, it| now_ms.saturating_sub(it.seen_ms) < FORGOTTEN_MS);
    }

    /// The number of a gateway; `None`: there are too many.
    fn gateway(&mut self, name: &str, now_ms: u64) -> Option<u64> {
        if let Some(known) = self.gateways.get_mut(name) {
            known.seen_ms = now_ms;
            return Some(known.number);
        }
        if self.gateways.len() >= MAX_GATEWAYS {
            return None;
        }
        // One that comes back after a long time is the same as before.
        let number = hash_bytes(name.as_bytes());
        let gateway = Gateway {
            number,
            seen_ms: now_ms,
            news: HashSet::new(),
        };
        self.gateways.insert(name.to_owned(), gateway);
        Some(number)
    }

    fn active(&self, now_ms: u64) -> u64 {
        let gateways = self.gateways.values();
        gateways
            .filter(|it| now_ms.saturating_sub(it.seen_ms) < SILENT_MS)
            .count() as u64
    }

    /// Takes in one count. Says whether the gateway is new in that window, and whether its count has grown.
    fn take(&mut self, gateway: u64, count: &Count) -> Option<(bool, bool)> {
        if !self.windows.contains_key(&count.window) && self.windows.len() >= MAX_WINDOWS {
            return None;
        }
        let shared = self.windows.entry(count.window).or_insert_with(|| Shared {
            until_ms: count.until_ms,
            sum: 0,
            parts: Vec::new(),
        });
        let place = shared.parts.iter().position(|(of, _)| *of == gateway);
        let place = place.unwrap_or_else(|| {
            shared.parts.push((gateway, 0));
            shared.parts.len() - 1
        });
        let own = &mut shared.parts[place].1;
        let is_new = *own == 0;
        let more = count.count.saturating_sub(*own);
        *own += more;
        shared.sum = shared.sum.saturating_add(more);
        Some((is_new, more > 0))
    }

    /// Notes who has to hear of what a gateway has reported.
    fn tell(&mut self, number: u64, changed: &[(WindowName, bool, bool)]) {
        for gateway in self.gateways.values_mut() {
            let is_own = gateway.number == number;
            for (window, is_asked, has_grown) in changed {
                let concerns = match is_own {
                    true => *is_asked,
                    false => {
                        let parts = self.windows.get(window).map(|it| &it.parts);
                        *has_grown && parts.is_some_and(|it| it.iter().any(|(of, _)| *of == gateway.number))
                    }
                };
                if concerns {
                    gateway.news.insert(*window);
                }
            }
        }
    }

    fn answer(&mut self, name: &str, number: u64, settlement: &mut Settlement) {
        let Some(gateway) = self.gateways.get_mut(name) else {
            return;
        };
        let told: Vec<WindowName> = gateway.news.iter().take(MAX_TOLD).copied().collect();
        for window in told {
            gateway.news.remove(&window);
            if let Some(shared) = self.windows.get(&window) {
                let own = shared.parts.iter().find(|(of, _)| *of == number);
                let own = own.map_or(0, |(_, count)| *count);
                settlement.others.push((window, shared.sum.saturating_sub(own)));
            }
        }
        settlement.has_more = !gateway.news.is_empty();
    }
}
