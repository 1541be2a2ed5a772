//! The series that instances with one definition count.
//!
//! A worker keeps the cells of the series that it has counted in a table of its own. It takes a lock when it meets a
//! series for the first time, and never again.

use super::Family;
use super::definition::{Column, Definition};
use super::worker_series::{FamilyLayout, WorkerSeries};
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_plugin::{CallRecord, Exchange};

/// The most series of an instance, or of several that count alike.
pub const MAX_SERIES: usize = 10_000;
/// If there is no room, a series that this many scrapes found unchanged is dropped.
const IDLE_SCRAPES: u32 = 10;
/// The label values of calls for whose series there is no room.
const OTHER: &[u8] = b"other";

/// What instances with one definition count.
pub struct FamilySet {
    /// What they count.
    pub definition: Definition,
    id: usize,
    columns: Vec<Column>,
    slots: Vec<FamilyLayout>,
    cells: usize,
    series: Mutex<HashMap<Box<[u8]>, Series>>,
    /// There was a scrape since room was last looked for: only then may there be some.
    may_have_room: AtomicBool,
    /// There are families whose series expire.
    has_expiry: bool,
    /// Milliseconds after which all families have forgotten a series; `None`: some never do.
    forgets_after_ms: Option<u64>,
    /// Instances that count in it.
    pub(super) instances: AtomicUsize,
}

/// The cells of a series, one for each worker that has counted it.
#[derive(Default)]
struct Series {
    cells: Vec<Arc<WorkerSeries>>,
    /// The sum of all cells at the last scrape, and how many have found the same.
    seen: u64,
    idle: u32,
}

/// A series as a scrape finds it.
pub(super) struct ScrapedSeries {
    /// Its label values.
    pub key: Box<[u8]>,
    /// The sums of all workers.
    pub sums: Vec<u64>,
    /// The end of its last call, in Unix milliseconds, if the families expire.
    pub last_ms: u64,
}

/// Cells of one worker by label values.
type SeriesByLabels = HashMap<Box<[u8]>, Arc<WorkerSeries>, BuildHasherDefault<DefaultHasher>>;

/// What one worker knows.
#[derive(Default)]
struct Local {
    /// By the id of the set.
    sets: Vec<SeriesByLabels>,
    key: Vec<u8>,
}

thread_local! {
    static LOCAL: RefCell<Local> = RefCell::default();
}

/// Ids that no set has any more, and the next one that none ever had. They are places in the tables of workers, and so
/// are given again.
static IDS: Mutex<(Vec<usize>, usize)> = Mutex::new((Vec::new(), 0));

impl Series {
    fn last_ms(&self) -> u64 {
        self.cells.iter().map(|cells| cells.last_ms()).max().unwrap_or(0)
    }
}

impl FamilySet {
    /// One in which nothing is counted yet.
    pub(super) fn new(definition: &Definition) -> Self {
        let families = &definition.config.families;
        let (slots, cells) = FamilyLayout::of(families);
        let expiries: Vec<Option<u64>> = families.iter().map(Family::expire_ms).collect();
        let forgets_after_ms = match expiries.contains(&None) {
            true => None,
            false => expiries.iter().flatten().copied().max(),
        };
        let mut ids = lock(&IDS);
        let id = ids.0.pop().unwrap_or_else(|| {
            ids.1 += 1;
            ids.1 - 1
        });
        Self {
            id,
            columns: definition.columns.iter().map(Column::of).collect(),
            definition: definition.clone(),
            slots,
            cells,
            series: Mutex::default(),
            may_have_room: AtomicBool::new(true),
            has_expiry: expiries.iter().any(Option::is_some),
            forgets_after_ms,
            instances: AtomicUsize::new(0),
        }
    }

    /// Whether nothing was ever counted in it.
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.series).is_empty()
    }

    /// Counts a call.
    pub fn count(&self, exchange: &Exchange, record: &CallRecord<'_>) {
        LOCAL.with_borrow_mut(|local| {
            let Local { sets, key } = local;
            self.write_key(exchange, record, key);
            if sets.len() <= self.id {
                sets.resize_with(self.id + 1, SeriesByLabels::default);
            }
            let known = &mut sets[self.id];
            if let Some(cells) = known.get(key.as_slice())
                && !cells.is_over()
            {
                self.add(cells, record);
                return;
            }
            known.remove(key.as_slice());
            if let Some(cells) = self.get_or_create(key) {
                if known.len() > 2 * MAX_SERIES {
                    known.retain(|_, cells| !cells.is_over());
                }
                self.add(&cells, record);
                known.insert(key.as_slice().into(), cells);
                return;
            }
            // There is no room.
            let other = self.other_key();
            if let Some(cells) = known.get(other.as_slice())
                && !cells.is_over()
            {
                self.add(cells, record);
            } else {
                let cells = self.register(&mut lock(&self.series), &other);
                self.add(&cells, record);
                known.insert(other.into(), cells);
            }
        });
    }

    fn add(&self, cells: &WorkerSeries, record: &CallRecord<'_>) {
        if self.has_expiry {
            cells.note_end(record);
        }
        for slot in &self.slots {
            slot.count(cells, record);
        }
    }

    /// The values one behind the other, each behind its length.
    fn write_key(&self, exchange: &Exchange, record: &CallRecord<'_>, key: &mut Vec<u8>) {
        key.clear();
        for column in &self.columns {
            let start = key.len();
            key.push(0);
            column.write(exchange, record, key);
            key.truncate(start + 1 + 255);
            key[start] = (key.len() - start - 1) as u8;
        }
    }

    fn other_key(&self) -> Vec<u8> {
        let columns = self.columns.iter();
        columns
            .flat_map(|_| [OTHER.len() as u8].into_iter().chain(OTHER.iter().copied()))
            .collect()
    }

    /// Cells for a series that this worker has not counted yet; `None`: there is no room for it.
    fn get_or_create(&self, key: &[u8]) -> Option<Arc<WorkerSeries>> {
        let mut series = lock(&self.series);
        if !series.contains_key(key) && series.len() >= MAX_SERIES {
            if !self.may_have_room.swap(false, Relaxed) {
                return None;
            }
            series.retain(|_, series| {
                let stays = series.idle < IDLE_SCRAPES;
                if !stays {
                    series.cells.iter().for_each(|cells| cells.end());
                }
                stays
            });
            if series.len() >= MAX_SERIES {
                return None;
            }
        }
        Some(self.register(&mut series, key))
    }

    fn register(&self, series: &mut HashMap<Box<[u8]>, Series>, key: &[u8]) -> Arc<WorkerSeries> {
        let cells = Arc::new(WorkerSeries::new(self.cells));
        let series = series.entry(key.into()).or_default();
        series.idle = 0;
        series.cells.push(Arc::clone(&cells));
        cells
    }

    /// The sums of all series at the time of a scrape, each with its label values. Series that no family reports any
    /// more are dropped.
    pub(super) fn scrape(&self, now_ms: u64) -> Vec<ScrapedSeries> {
        let mut series = lock(&self.series);
        self.may_have_room.store(true, Relaxed);
        if let Some(after) = self.forgets_after_ms {
            series.retain(|_, series| {
                let last_ms = series.last_ms();
                // In one that was just made, the first call is yet to be noted.
                let stays = last_ms == 0 || now_ms.saturating_sub(last_ms) <= after;
                if !stays {
                    series.cells.iter().for_each(|cells| cells.end());
                }
                stays
            });
        }
        let all = series.iter_mut().map(|(key, series)| {
            let mut sums = vec![0; self.cells];
            series.cells.iter().for_each(|cells| cells.add_to(&mut sums));
            let sum = sums.iter().fold(0, |sum: u64, count| sum.wrapping_add(*count));
            series.idle = if sum == series.seen { series.idle + 1 } else { 0 };
            series.seen = sum;
            ScrapedSeries {
                key: key.clone(),
                sums,
                last_ms: series.last_ms(),
            }
        });
        all.collect()
    }

    /// The first cell of each family.
    pub(super) fn firsts(&self) -> impl Iterator<Item = usize> {
        self.slots.iter().map(|slot| slot.first)
    }
}

impl Drop for FamilySet {
    fn drop(&mut self) {
        // Workers still have the cells, in the place that another set gets now.
        let series = self.series.get_mut().unwrap_or_else(PoisonError::into_inner);
        let cells = series.values().flat_map(|series| &series.cells);
        cells.for_each(|cells| cells.end());
        lock(&IDS).0.push(self.id);
    }
}

/// Locks, even if another holder has panicked.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
