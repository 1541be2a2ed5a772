//! The board: all series that instances of `prometheus` count, whichever worker does.
//!
//! A worker keeps the cells of the series that it has counted in a table of its own. It takes a lock when it meets a
//! series for the first time, and never again.

use super::cells::{Cells, Slot};
use super::{Config, LabelValue, render};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use weir_plugin::{CallRecord, Exchange, Template};

/// The most series of an instance, or of several that count alike.
pub const MAX_SERIES: usize = 10_000;
/// A series that so many scrapes have found unchanged makes room where there is none.
const IDLE_SCRAPES: u32 = 10;
/// The label values of calls for whose series there is no room.
const OTHER: &[u8] = b"other";

/// Work that is done elsewhere.
pub type Job = Box<dyn FnOnce() + Send>;
/// Who does work elsewhere.
type Runner = Box<dyn Fn(Job) + Send + Sync>;
/// Who writes what an exposition tells besides the families; told whether it is to tell of targets.
type Preface = Box<dyn Fn(bool, &mut String) + Send + Sync>;

/// All series.
#[derive(Default)]
pub struct Board {
    sets: Mutex<Vec<Arc<Set>>>,
    prefaces: Mutex<HashMap<String, Arc<Preface>>>,
    runner: Mutex<Option<Arc<Runner>>>,
}

/// What an instance counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Definition {
    /// Families and exposition.
    pub config: Config,
    /// Values that differ between series, each once.
    columns: Vec<LabelValue>,
    /// By family, by label: the column, or `None` for a value that is always the same.
    pub uses: Vec<Vec<Option<usize>>>,
}

/// A value of labels, ready for use.
enum Column {
    Status,
    Text(Template),
    Source { upstream: String, gateway: String },
}

/// What instances with one definition count.
pub struct Set {
    /// What they count.
    pub definition: Definition,
    id: usize,
    columns: Vec<Column>,
    slots: Vec<Slot>,
    cells: usize,
    series: Mutex<HashMap<Box<[u8]>, Series>>,
    /// There was a scrape since room was last looked for: only then may there be some.
    may_have_room: AtomicBool,
    /// Instances that count in it.
    pub(super) instances: AtomicUsize,
}

/// The cells of a series, one for each worker that has counted it.
#[derive(Default)]
struct Series {
    cells: Vec<Arc<Cells>>,
    /// The sum of all cells at the last scrape, and how many have found the same.
    seen: u64,
    idle: u32,
}

/// Cells of one worker by label values.
type Known = HashMap<Box<[u8]>, Arc<Cells>, BuildHasherDefault<DefaultHasher>>;

/// What one worker knows.
#[derive(Default)]
struct Local {
    /// By the id of the set.
    sets: Vec<Known>,
    key: Vec<u8>,
}

thread_local! {
    static LOCAL: RefCell<Local> = RefCell::default();
}

static NEXT_SET: AtomicUsize = AtomicUsize::new(0);
static PROCESS: LazyLock<Arc<Board>> = LazyLock::new(Arc::default);

impl Definition {
    /// Of a configuration.
    pub fn new(config: Config) -> Self {
        let mut columns: Vec<LabelValue> = Vec::new();
        let mut place = |value: &LabelValue| {
            if let LabelValue::Text(text) = value
                && Template::parse(text).is_constant()
            {
                return None;
            }
            let known = columns.iter().position(|column| column == value);
            Some(known.unwrap_or_else(|| {
                columns.push(value.clone());
                columns.len() - 1
            }))
        };
        let families = config.families.iter();
        let uses = families
            .map(|family| family.labels.iter().map(|label| place(&label.value)).collect())
            .collect();
        Self {
            config,
            columns,
            uses,
        }
    }
}

impl Column {
    fn of(value: &LabelValue) -> Self {
        match value {
            LabelValue::Text(text) if text == "$status" => Self::Status,
            LabelValue::Text(text) => Self::Text(Template::parse(text)),
            LabelValue::Source { upstream, gateway } => Self::Source {
                upstream: upstream.clone(),
                gateway: gateway.clone(),
            },
        }
    }

    fn write(&self, exchange: &Exchange, record: &CallRecord<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Status => out.extend_from_slice(itoa::Buffer::new().format(record.status).as_bytes()),
            Self::Text(template) => {
                template.render(exchange, out);
            }
            Self::Source { upstream, gateway } => {
                let is_gateway = exchange.response.is_gateway;
                out.extend_from_slice(if is_gateway { gateway } else { upstream }.as_bytes());
            }
        }
    }
}

impl Board {
    /// The board of this process.
    pub fn of_process() -> Arc<Self> {
        Arc::clone(&PROCESS)
    }

    /// What instances with this definition count; the same one for equal definitions.
    pub fn set(&self, definition: &Definition) -> Arc<Set> {
        let mut sets = lock(&self.sets);
        if let Some(known) = sets.iter().find(|set| set.definition == *definition) {
            return Arc::clone(known);
        }
        let (slots, cells) = Slot::of(&definition.config.families);
        let set = Arc::new(Set {
            id: NEXT_SET.fetch_add(1, Relaxed),
            columns: definition.columns.iter().map(Column::of).collect(),
            definition: definition.clone(),
            slots,
            cells,
            series: Mutex::default(),
            may_have_room: AtomicBool::new(true),
            instances: AtomicUsize::new(0),
        });
        sets.push(Arc::clone(&set));
        set
    }

    /// Has `preface` tell what this exposition tells before the families.
    pub fn set_preface(&self, exposition: &str, preface: impl Fn(bool, &mut String) + Send + Sync + 'static) {
        let preface: Preface = Box::new(preface);
        lock(&self.prefaces).insert(exposition.to_owned(), Arc::new(preface));
    }

    /// Has long work done by `runner`, and not by workers.
    pub fn set_runner(&self, runner: impl Fn(Job) + Send + Sync + 'static) {
        let runner: Runner = Box::new(runner);
        *lock(&self.runner) = Some(Arc::new(runner));
    }

    /// Does work elsewhere where there is a place for it, else at once.
    pub(super) fn run(&self, job: Job) {
        let runner = lock(&self.runner).clone();
        match runner {
            Some(runner) => runner(job),
            None => job(),
        }
    }

    /// The Prometheus text of an exposition.
    pub fn render(&self, exposition: &str) -> String {
        let mut text = String::new();
        let sets = self.sets_of(|name| name == exposition);
        let tells_targets = sets
            .iter()
            .any(|set| set.definition.config.tells_targets && set.instances.load(Relaxed) > 0);
        let preface = lock(&self.prefaces).get(exposition).cloned();
        if let Some(preface) = preface {
            preface(tells_targets, &mut text);
        }
        render::families(&sets, &mut text);
        text
    }

    /// The text of all expositions in which anything is counted.
    pub fn render_all(&self) -> String {
        let sets = self.sets_of(|_| true);
        let names: BTreeSet<&str> = (sets.iter())
            .map(|set| set.definition.config.exposition.as_str())
            .collect();
        names.into_iter().map(|name| self.render(name)).collect()
    }

    fn sets_of(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Arc<Set>> {
        let sets = lock(&self.sets);
        let wanted = sets
            .iter()
            .filter(|set| is_wanted(&set.definition.config.exposition));
        wanted.cloned().collect()
    }
}

impl Set {
    /// Counts a call.
    pub fn count(&self, exchange: &Exchange, record: &CallRecord<'_>) {
        LOCAL.with_borrow_mut(|local| {
            let Local { sets, key } = local;
            self.write_key(exchange, record, key);
            if sets.len() <= self.id {
                sets.resize_with(self.id + 1, Known::default);
            }
            let known = &mut sets[self.id];
            if let Some(cells) = known.get(key.as_slice())
                && !cells.is_over()
            {
                self.add(cells, record);
                return;
            }
            known.remove(key.as_slice());
            if let Some(cells) = self.meet(key) {
                if known.len() > 2 * MAX_SERIES {
                    known.retain(|_, cells| !cells.is_over());
                }
                self.add(&cells, record);
                known.insert(key.as_slice().into(), cells);
                return;
            }
            // There is no room.
            let other = self.other_key();
            if let Some(cells) = known.get(other.as_slice()) {
                self.add(cells, record);
            } else {
                let cells = self.join(&mut lock(&self.series), &other);
                self.add(&cells, record);
                known.insert(other.into(), cells);
            }
        });
    }

    fn add(&self, cells: &Cells, record: &CallRecord<'_>) {
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

    /// Cells for a series that this worker has not counted yet; `None`: there is no room for it. Does not wait where
    /// many series press for room.
    fn meet(&self, key: &[u8]) -> Option<Arc<Cells>> {
        let mut series = match self.series.try_lock() {
            Ok(series) => series,
            Err(_) => lock(&self.series),
        };
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
        Some(self.join(&mut series, key))
    }

    fn join(&self, series: &mut HashMap<Box<[u8]>, Series>, key: &[u8]) -> Arc<Cells> {
        let cells = Arc::new(Cells::new(self.cells));
        let series = series.entry(key.into()).or_default();
        series.idle = 0;
        series.cells.push(Arc::clone(&cells));
        cells
    }

    /// The sums of all series, each with its label values; a scrape.
    pub(super) fn scrape(&self) -> Vec<(Box<[u8]>, Vec<u64>)> {
        let mut series = lock(&self.series);
        self.may_have_room.store(true, Relaxed);
        let all = series.iter_mut().map(|(key, series)| {
            let mut sums = vec![0; self.cells];
            series.cells.iter().for_each(|cells| cells.add_to(&mut sums));
            let sum = sums.iter().fold(0, |sum: u64, count| sum.wrapping_add(*count));
            series.idle = if sum == series.seen { series.idle + 1 } else { 0 };
            series.seen = sum;
            (key.clone(), sums)
        });
        all.collect()
    }

    /// The first cell of each family.
    pub(super) fn firsts(&self) -> impl Iterator<Item = usize> {
        self.slots.iter().map(|slot| slot.first)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
