//! Where gateways learn what the others have counted. It keeps sums of open windows and nothing else; when it is started
//! again, gateways report everything once more.

use super::{Count, WindowName, lock};
use crate::hash_bytes;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Mutex;

/// Windows that are kept at most.
const MAX_WINDOWS: usize = 1 << 20;
/// Gateways that are kept at most, each run of one for itself.
const MAX_GATEWAYS: usize = 1_000;
/// Places in windows that are kept at most for all runs of one gateway: twice what a gateway shares.
const MAX_OF_ONE: usize = 2 * super::SHARDS * super::MAX_NOTES;
/// The most runs of one gateway that are distinguished in a window.
const MAX_RUNS: usize = 16;
/// The most gateways that are distinguished in one window.
const MAX_PARTS: usize = 4_096;
/// Places in windows that are kept at most for all gateways.
const MAX_HELD: usize = 8 * MAX_WINDOWS;
/// Windows are a year long at most, and a sliding one is of use for one more.
const LONGEST_MS: u64 = 2 * 366 * 24 * 60 * 60 * 1_000;
/// A count beyond this is invalid.
const MAX_COUNT: u64 = 1 << 48;
/// Windows in one answer at most.
const MAX_SENT_WINDOWS: usize = 20_000;
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
    known: Mutex<ExchangeState>,
}

#[derive(Default)]
struct ExchangeState {
    windows: HashMap<WindowName, Shared>,
    /// By their numbers.
    gateways: HashMap<u64, Gateway>,
    held: EntryCounts,
    pruned_ms: u64,
}

/// A window, and who has counted in it.
struct Shared {
    until_ms: u64,
    sum: u64,
    parts: Vec<RunCount>,
}

/// What one run of a gateway has counted in a window.
struct RunCount {
    gateway: u64,
    name: u64,
    count: u64,
}

/// How many parts of windows there are.
#[derive(Default)]
struct EntryCounts {
    all: usize,
    /// Those of each name.
    by_name: HashMap<u64, usize>,
}

/// Why a count is not taken in.
enum RejectReason {
    NotCredible,
    Full,
}

struct Gateway {
    name: u64,
    seen_ms: u64,
    /// Windows of which it has to hear.
    news: HashSet<WindowName>,
}

/// What a gateway learns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CountUpdate {
    /// The exchange that sent this: a new one has to be sent everything.
    pub exchange: u64,
    /// How many gateways share limits.
    pub gateways: u64,
    /// What the others have counted in windows in which this gateway has counted.
    pub others: Vec<(WindowName, u64)>,
    /// There is more of it.
    pub has_more: bool,
    /// Counts that are not credible and were not taken in.
    pub not_credible: usize,
    /// Counts for which there was no room.
    pub without_room: usize,
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
    /// An exchange that knows nothing yet. `id` distinguishes it from others.
    #[must_use]
    pub fn new(id: u64) -> Self {
        Self {
            id,
            known: Mutex::default(),
        }
    }

    /// Takes in what a gateway has counted, and says what the others have. The gateway is its name and its run. `all`:
    /// these are of all of its windows, and it has to hear of each.
    pub fn merge(&self, gateway: (&str, u64), all: bool, counts: &[Count], now_ms: u64) -> CountUpdate {
        let mut known = lock(&self.known);
        known.prune(now_ms);
        let number = known.gateway(gateway, now_ms);
        let mut settlement = CountUpdate {
            exchange: self.id,
            gateways: known.active(now_ms),
            ..CountUpdate::default()
        };
        let Some(number) = number else {
            settlement.without_room = counts.len();
            return settlement;
        };
        for count in counts {
            match known.take(number, count, now_ms) {
                Ok((is_new, has_grown)) => known.mark_changed(number, count.window, is_new || all, has_grown),
                Err(RejectReason::NotCredible) => settlement.not_credible += 1,
                Err(RejectReason::Full) => settlement.without_room += 1,
            }
        }
        known.answer(number, &mut settlement);
        settlement
    }

    /// Whether it keeps nothing, and no gateway was heard of lately.
    #[must_use]
    pub fn is_idle(&self, now_ms: u64) -> bool {
        let mut known = lock(&self.known);
        known.prune(now_ms);
        known.windows.is_empty() && known.gateways.is_empty()
    }

    /// How many windows are kept.
    #[must_use]
    pub fn windows(&self) -> usize {
        lock(&self.known).windows.len()
    }
}

impl ExchangeState {
    fn prune(&mut self, now_ms: u64) {
        if now_ms.saturating_sub(self.pruned_ms) < PRUNE_MS && self.pruned_ms <= now_ms {
            return;
        }
        self.pruned_ms = now_ms;
        let held = &mut self.held;
        self.windows.retain(|_, shared| {
            let is_open = shared.until_ms.saturating_add(SKEW_MS) > now_ms;
            if !is_open {
                shared.parts.iter().for_each(|part| held.release(part.name));
            }
            is_open
        });
        self.gateways
            .retain(|_, it| now_ms.saturating_sub(it.seen_ms) < FORGOTTEN_MS);
    }

    /// The number of a gateway; `None`: there are too many.
    fn gateway(&mut self, (name, run): (&str, u64), now_ms: u64) -> Option<u64> {
        let name = hash_bytes(name.as_bytes());
        // One that comes back after a long time is the same as before.
        let number = hash_bytes(&[name.to_le_bytes(), run.to_le_bytes()].concat());
        if !self.gateways.contains_key(&number) && self.gateways.len() >= MAX_GATEWAYS {
            return None;
        }
        let gateway = self.gateways.entry(number).or_insert_with(|| Gateway {
            name,
            seen_ms: now_ms,
            news: HashSet::new(),
        });
        gateway.seen_ms = now_ms;
        Some(number)
    }

    fn active(&self, now_ms: u64) -> u64 {
        let gateways = self.gateways.values();
        gateways
            .filter(|it| now_ms.saturating_sub(it.seen_ms) < SILENT_MS)
            .count() as u64
    }

    /// Takes in one count. Says whether the gateway is new in that window, and whether its count has grown.
    fn take(&mut self, gateway: u64, count: &Count, now_ms: u64) -> Result<(bool, bool), RejectReason> {
        let latest_ms = now_ms.saturating_add(LONGEST_MS + SKEW_MS);
        if count.window.1 > latest_ms || count.until_ms > latest_ms || count.count > MAX_COUNT {
            return Err(RejectReason::NotCredible);
        }
        let place = self.place(gateway, count)?;
        let shared = self.windows.get_mut(&count.window).ok_or(RejectReason::Full)?;
        let own = &mut shared.parts[place].count;
        let is_new = *own == 0;
        let more = count.count.saturating_sub(*own);
        *own += more;
        shared.sum = shared.sum.saturating_add(more);
        Ok((is_new, more > 0))
    }

    /// The place of a gateway's part of a window. It is created if there is none.
    fn place(&mut self, gateway: u64, count: &Count) -> Result<usize, RejectReason> {
        let is_full = self.windows.len() >= MAX_WINDOWS;
        let known = self.windows.get(&count.window);
        let parts = known.map_or(&[][..], |it| it.parts.as_slice());
        if let Some(place) = parts.iter().position(|it| it.gateway == gateway) {
            return Ok(place);
        }
        let name = self.gateways.get(&gateway).map_or(0, |it| it.name);
        let is_many = parts.len() >= MAX_PARTS;
        let of_name = || parts.iter().filter(|it| it.name == name);
        let is_crowded = is_many || self.held.is_full(name) || of_name().count() >= MAX_RUNS;
        // Then the part of one that is over gives way.
        let is_over =
            |it: &&RunCount| (is_many || it.name == name) && !self.gateways.contains_key(&it.gateway);
        let over = parts.iter().find(is_over).filter(|_| is_crowded);
        let over = over.map(|it| (it.gateway, it.name));
        if (is_crowded && over.is_none()) || (is_full && known.is_none()) {
            return Err(RejectReason::Full);
        }
        let shared = self.windows.entry(count.window).or_insert_with(|| Shared {
            until_ms: count.until_ms,
            sum: 0,
            parts: Vec::new(),
        });
        if let Some((gateway, name)) = over {
            // Its calls stay in the sum.
            shared.parts.retain(|it| it.gateway != gateway);
            self.held.release(name);
        }
        self.held.take(name);
        shared.parts.push(RunCount {
            gateway,
            name,
            count: 0,
        });
        Ok(shared.parts.len() - 1)
    }

    /// Notes who has to hear of what a gateway has reported.
    fn mark_changed(&mut self, number: u64, window: WindowName, is_asked: bool, has_grown: bool) {
        if is_asked && let Some(gateway) = self.gateways.get_mut(&number) {
            gateway.news.insert(window);
        }
        let Some(shared) = self.windows.get(&window).filter(|_| has_grown) else {
            return;
        };
        for part in shared.parts.iter().filter(|it| it.gateway != number) {
            if let Some(gateway) = self.gateways.get_mut(&part.gateway) {
                gateway.news.insert(window);
            }
        }
    }

    fn answer(&mut self, number: u64, settlement: &mut CountUpdate) {
        let Some(gateway) = self.gateways.get_mut(&number) else {
            return;
        };
        let names: Vec<WindowName> = gateway.news.iter().take(MAX_SENT_WINDOWS).copied().collect();
        for window in names {
            gateway.news.remove(&window);
            if let Some(shared) = self.windows.get(&window) {
                let own = shared.parts.iter().find(|it| it.gateway == number);
                let own = own.map_or(0, |it| it.count);
                settlement.others.push((window, shared.sum.saturating_sub(own)));
            }
        }
        settlement.has_more = !gateway.news.is_empty();
    }
}

impl EntryCounts {
    fn is_full(&self, name: u64) -> bool {
        let of_name = self.by_name.get(&name).copied().unwrap_or(0);
        self.all >= MAX_HELD || of_name >= MAX_OF_ONE
    }

    fn take(&mut self, name: u64) {
        self.all += 1;
        *self.by_name.entry(name).or_default() += 1;
    }

    fn release(&mut self, name: u64) {
        self.all = self.all.saturating_sub(1);
        if let Some(count) = self.by_name.get_mut(&name) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.by_name.remove(&name);
            }
        }
    }
}
