//! The aggregator: turns calls into rows of cubes. One for each process, fed by one thread.
//!
//! Memory is bounded: each cube keeps at most its limit of keys apart in an hour, and counts the rest for `_other`. What
//! is counted for a key is exact from when it is tracked; totals over all keys are exact always.

use crate::batch::{Batch, BatchRow, Key};
use crate::cell::{Cell, Field};
use crate::cube::{Cube, Dimension, OTHER, class_of};
use crate::heavy_hitters::HeavyHitters;
use crate::uniques::{self, Uniques};
use foldhash::HashMap;
use std::sync::Arc;

/// Names that are known, at most. Further ones are `_other`.
const MAX_NAMES: usize = 1_000_000;
/// Services whose callers are told apart in an hour.
const MAX_SERVICES: usize = 2_000;
/// The longest text of a client that is kept, in bytes.
const MAX_TEXT: usize = 128;

/// The number of a name. Zero is the empty name.
pub type NameId = u32;

/// A finished call, with the numbers of its names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Call {
    /// The minute in which it ended, from the Unix epoch.
    pub minute: u32,
    /// The service, the route, the consumer.
    pub service: NameId,
    /// The route.
    pub route: NameId,
    /// The consumer.
    pub consumer: NameId,
    /// The upstream and the target that was asked last.
    pub upstream: NameId,
    /// The target.
    pub target: NameId,
    /// Why the gateway refused it; zero: it did not.
    pub refusal: NameId,
    /// The plugin that refused it.
    pub plugin: NameId,
    /// The method.
    pub method: NameId,
    /// The protocol.
    pub protocol: NameId,
    /// The environment of the route; zero: the gateway's own.
    pub environment: NameId,
    /// The API that the route belongs to; zero: none.
    pub api: NameId,
    /// The version of the API.
    pub version: NameId,
    /// The application that called; zero: none.
    pub application: NameId,
    /// The plan of its subscription.
    pub plan: NameId,
    /// The status.
    pub status: u16,
    /// Whether the client left before the end.
    pub is_aborted: bool,
    /// Upstream calls beyond the first.
    pub retries: u8,
    /// The whole time, in microseconds.
    pub total_us: u32,
    /// The upstream's part; zero: none was asked.
    pub upstream_us: u32,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// What tells callers apart that are no consumers: a number made of the address.
    pub caller: u64,
}

/// What is known of a sampled call besides.
#[derive(Debug, Clone, Copy, Default)]
pub struct SampledCall<'c> {
    /// The minute in which it ended.
    pub minute: u32,
    /// How many calls it stands for.
    pub weight: u32,
    /// The service.
    pub service: NameId,
    /// The path, if no route took the call.
    pub unmatched_path: Option<&'c str>,
    /// The client's network.
    pub network: &'c str,
    /// The family of the user agent.
    pub agent: &'c str,
}

/// Which keys of a cube are kept apart in the present hour.
struct Tracker {
    hour: u32,
    frequent: Option<HeavyHitters<Key>>,
    first: foldhash::HashSet<Key>,
}

impl Tracker {
    fn of(cube: Cube) -> Self {
        Self {
            hour: 0,
            frequent: cube.is_unbounded().then(|| HeavyHitters::new(cube.limit())),
            first: foldhash::HashSet::default(),
        }
    }

    /// Whether a key is kept apart. Gives the key that is no more.
    fn admit(&mut self, cube: Cube, hour: u32, key: &Key, weight: u64) -> (bool, Option<Key>) {
        if hour > self.hour {
            *self = Self {
                hour,
                ..Self::of(cube)
            };
        }
        match &mut self.frequent {
            Some(frequent) => (true, frequent.count(key, weight)),
            None if self.first.contains(key) => (true, None),
            None if self.first.len() < cube.limit() => {
                self.first.insert(*key);
                (true, None)
            }
            None => (false, None),
        }
    }
}

/// The rows of the next batch: cells, and where the one of a key is. So the table of keys is small, and what is looked up
/// for every call stays near.
#[derive(Default)]
struct Rows {
    places: HashMap<(Cube, u32, Key), u32>,
    cells: Vec<Cell>,
    /// Cells of no key.
    free: Vec<u32>,
}

impl Rows {
    /// Where the cell of a key is.
    #[inline]
    fn find(&self, key: &(Cube, u32, Key)) -> Option<usize> {
        self.places.get(key).map(|place| *place as usize)
    }

    /// The cell of a key, which is made if there is none.
    fn cell(&mut self, key: (Cube, u32, Key)) -> &mut Cell {
        let (cells, free) = (&mut self.cells, &mut self.free);
        let place = *self.places.entry(key).or_insert_with(|| {
            free.pop().unwrap_or_else(|| {
                cells.push(Cell::default());
                (cells.len() - 1) as u32
            })
        });
        &mut self.cells[place as usize]
    }

    fn remove(&mut self, key: &(Cube, u32, Key)) -> Option<Cell> {
        let place = self.places.remove(key)?;
        self.free.push(place);
        Some(std::mem::take(&mut self.cells[place as usize]))
    }

    fn len(&self) -> usize {
        self.places.len()
    }

    /// Takes all of them.
    fn take(&mut self) -> Vec<((Cube, u32, Key), Cell)> {
        let cells = &mut self.cells;
        let of = |(key, place): ((Cube, u32, Key), u32)| (key, std::mem::take(&mut cells[place as usize]));
        let taken = self.places.drain().map(of).collect();
        self.cells.clear();
        self.free.clear();
        taken
    }
}

/// Counts calls.
pub struct Aggregator {
    gateway: Arc<str>,
    run: u64,
    since: u32,
    number: u64,
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, NameId>,
    /// By name: the hash by which callers are told apart.
    hashes: Vec<u64>,
    environment: NameId,
    gateway_name: NameId,
    other: NameId,
    /// By status: its name, and its class's.
    statuses: Vec<(NameId, NameId)>,
    trackers: Vec<Tracker>,
    rows: Rows,
    /// Texts of clients that are known in this hour. They are not among the names, of which there would be no end.
    texts: HashMap<Arc<str>, NameId>,
    texts_hour: u32,
    uniques: HashMap<(NameId, u32), Uniques>,
    dropped: u64,
}

impl Aggregator {
    /// An aggregator of a gateway, whose run began at a time in milliseconds.
    pub fn new(gateway: &str, environment: &str, run_ms: u64) -> Self {
        let mut aggregator = Self {
            gateway: gateway.into(),
            run: run_ms,
            since: (run_ms / 60_000) as u32,
            number: 0,
            names: Vec::new(),
            numbers: HashMap::default(),
            hashes: Vec::new(),
            environment: 0,
            gateway_name: 0,
            other: 0,
            statuses: Vec::new(),
            trackers: Cube::ALL.iter().map(|cube| Tracker::of(*cube)).collect(),
            rows: Rows::default(),
            texts: HashMap::default(),
            texts_hour: 0,
            uniques: HashMap::default(),
            dropped: 0,
        };
        let _empty = aggregator.name("");
        aggregator.other = aggregator.name(OTHER);
        aggregator.environment = aggregator.name(environment);
        aggregator.gateway_name = aggregator.name(gateway);
        aggregator
    }

    /// The number of a name. Numbers stay good for as long as the aggregator lives.
    pub fn name(&mut self, name: &str) -> NameId {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        if self.names.len() >= MAX_NAMES {
            return self.other;
        }
        let (name, number): (Arc<str>, _) = (name.into(), self.names.len() as NameId);
        self.hashes.push(uniques::hash(name.as_bytes()));
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        number
    }

    /// The name of a number.
    pub fn text(&self, name: NameId) -> &str {
        self.names.get(name as usize).map_or("", |name| &**name)
    }

    /// The names of a status and of its class.
    fn status_names(&mut self, status: u16) -> (NameId, NameId) {
        const UNKNOWN: (NameId, NameId) = (NameId::MAX, NameId::MAX);
        let place = usize::from(status.min(999));
        if self.statuses.len() <= place {
            self.statuses.resize(place + 1, UNKNOWN);
        }
        if self.statuses[place] == UNKNOWN {
            let text = place.to_string();
            self.statuses[place] = (self.name(&text), self.name(class_of(&text)));
        }
        self.statuses[place]
    }

    /// Counts a call.
    pub fn add(&mut self, call: &Call) {
        let (status, class) = self.status_names(call.status);
        let environment = match call.environment {
            0 => self.environment,
            named => named,
        };
        let times = [
            u64::from(call.total_us),
            u64::from(call.upstream_us),
            u64::from(call.total_us.saturating_sub(call.upstream_us)),
        ];
        let mut keys = [None; 8];
        keys[0] = Some((Cube::Route, [environment, call.service, call.route, status, 0]));
        keys[1] = Some((Cube::Caller, [environment, call.service, call.consumer, class, 0]));
        if call.consumer != 0 {
            let key = [environment, call.consumer, call.service, call.route, 0];
            keys[2] = Some((Cube::CallerRoute, key));
        }
        if call.upstream != 0 {
            keys[3] = Some((Cube::Target, [environment, call.upstream, call.target, class, 0]));
        }
        keys[4] = Some((
            Cube::Client,
            [environment, call.service, call.protocol, call.method, 0],
        ));
        if call.refusal != 0 {
            let key = [environment, call.service, call.refusal, call.plugin, status];
            keys[5] = Some((Cube::Refusal, key));
        }
        keys[6] = Some((Cube::Gateway, [environment, self.gateway_name, class, 0, 0]));
        if call.api != 0 {
            let key = [environment, call.api, call.version, call.application, call.plan];
            keys[7] = Some((Cube::Usage, key));
        }
        for (cube, key) in keys.into_iter().flatten() {
            let cell = self.cell(cube, call.minute, key, 1);
            note(cell, call);
            for (place, is_kept) in cube.sketches().into_iter().enumerate() {
                // Without an upstream, all of the time is the gateway's.
                if is_kept && (place != 1 || call.upstream_us > 0) {
                    cell.sketches[place].add(times[place]);
                }
            }
        }
        self.note_caller(call);
    }

    /// The environment of calls that name none.
    pub fn environment(&self) -> NameId {
        self.environment
    }

    /// The gateway's name.
    pub fn gateway(&self) -> &str {
        &self.gateway
    }

    fn note_caller(&mut self, call: &Call) {
        let caller = match call.consumer {
            0 => uniques::spread(call.caller),
            consumer => self.hashes.get(consumer as usize).copied().unwrap_or(0),
        };
        let mut service = (call.service, call.minute / 60);
        if self.uniques.len() >= MAX_SERVICES && !self.uniques.contains_key(&service) {
            service.0 = self.other;
        }
        self.uniques.entry(service).or_default().add(caller);
    }

    /// Counts what only sampled calls tell.
    pub fn add_sampled(&mut self, call: &SampledCall<'_>) {
        let weight = u64::from(call.weight.max(1));
        let environment = self.environment;
        let texts = [
            (Cube::Path, call.unmatched_path),
            (Cube::Network, Some(call.network)),
            (Cube::Agent, Some(call.agent)),
        ];
        for (cube, text) in texts {
            let Some(text) = text.filter(|text| !text.is_empty()) else {
                continue;
            };
            let text = self.client_text(text, call.minute / 60);
            let key = match cube {
                Cube::Path => [environment, text, 0, 0, 0],
                _ => [environment, call.service, text, 0, 0],
            };
            let cell = self.cell(cube, call.minute, key, weight);
            cell.sums.add(Field::Calls, weight);
        }
    }

    /// A number for a text of a client. There is room for a limited number of them in an hour.
    fn client_text(&mut self, text: &str, hour: u32) -> NameId {
        /// Numbers of texts begin here, above all names.
        const FIRST: NameId = 1 << 30;
        /// Texts of an hour: far more than are kept apart, so that frequent ones are found among rare ones.
        const MAX_TEXTS: usize = 50_000;
        let end = (0..=text.len().min(MAX_TEXT))
            .rev()
            .find(|end| text.is_char_boundary(*end));
        let text = &text[..end.unwrap_or(0)];
        if hour > self.texts_hour && self.rows.len() == 0 {
            self.texts.clear();
            self.texts_hour = hour;
        }
        if let Some(number) = self.texts.get(text) {
            return *number;
        }
        if self.texts.len() >= MAX_TEXTS {
            return self.other;
        }
        let number = FIRST + self.texts.len() as NameId;
        self.texts.insert(text.into(), number);
        number
    }

    fn cell(&mut self, cube: Cube, minute: u32, key: Key, weight: u64) -> &mut Cell {
        // Where keys are not pushed out by others, the row of a minute says that its key was admitted.
        if !cube.is_unbounded()
            && let Some(place) = self.rows.find(&(cube, minute, key))
        {
            return &mut self.rows.cells[place];
        }
        let tracker = &mut self.trackers[cube as usize];
        let (is_admitted, evicted) = tracker.admit(cube, minute / 60, &key, weight);
        if let Some(evicted) = evicted
            && let Some(cell) = self.rows.remove(&(cube, minute, evicted))
        {
            let folded = folded(cube, evicted, self.other);
            self.rows.cell((cube, minute, folded)).merge(&cell);
        }
        let key = match is_admitted {
            true => key,
            false => folded(cube, key, self.other),
        };
        self.rows.cell((cube, minute, key))
    }

    /// Counts calls that were dropped before they came here.
    pub fn note_dropped(&mut self, calls: u64) {
        self.dropped += calls;
    }

    /// How many rows wait for the next batch.
    pub fn waiting(&self) -> usize {
        self.rows.len()
    }

    /// What was counted since the last batch. `now` is in seconds: every minute before the present one is complete.
    pub fn take_batch(&mut self, now: u64, is_last: bool) -> Batch {
        self.number += 1;
        let mut table = NameTable::default();
        let mut texts: HashMap<NameId, Arc<str>> = HashMap::default();
        for (text, number) in &self.texts {
            texts.insert(*number, Arc::clone(text));
        }
        let named = |number: NameId| texts.get(&number).or_else(|| self.names.get(number as usize));
        let mut rows = Vec::with_capacity(self.rows.len());
        for ((cube, minute, key), cell) in self.rows.take() {
            let mut local = Key::default();
            for place in 0..cube.dimensions().len() {
                local[place] = table.number(key[place], named(key[place]).map_or("", |name| &**name));
            }
            rows.push(BatchRow {
                cube,
                minute,
                key: local,
                cell,
            });
        }
        let mut callers = Vec::new();
        for ((service, hour), uniques) in self.uniques.drain() {
            let text = |name: NameId| named(name).map_or("", |name| &**name);
            let environment = table.number(self.environment, text(self.environment));
            callers.push((environment, table.number(service, text(service)), hour, uniques));
        }
        let minute = (now / 60) as u32;
        Batch {
            gateway: self.gateway.to_string(),
            run: self.run,
            number: self.number,
            since: self.since,
            complete: if is_last { minute } else { minute.saturating_sub(1) },
            is_last,
            dropped: std::mem::take(&mut self.dropped),
            lost: None,
            names: table.names,
            rows,
            uniques: callers,
        }
    }
}

/// The names of one batch.
#[derive(Default)]
struct NameTable {
    names: Vec<String>,
    numbers: HashMap<NameId, u32>,
}

impl NameTable {
    fn number(&mut self, name: NameId, text: &str) -> u32 {
        let names = &mut self.names;
        *self.numbers.entry(name).or_insert_with(|| {
            names.push(text.to_owned());
            (names.len() - 1) as u32
        })
    }
}

/// The key that stands for all keys like this one that are not kept apart.
fn folded(cube: Cube, mut key: Key, other: NameId) -> Key {
    for (place, dimension) in cube.dimensions().iter().enumerate() {
        let is_kept = match dimension {
            // The service of a refusal stays: refusals are few, and one asks for whose they are.
            Dimension::Refusal | Dimension::Plugin => true,
            dimension => Cube::keeps_in_other(*dimension),
        };
        if !is_kept {
            key[place] = other;
        }
    }
    key
}

fn note(cell: &mut Cell, call: &Call) {
    let sums = &mut cell.sums;
    sums.add(Field::Calls, 1);
    sums.add(Field::Total, u64::from(call.total_us));
    sums.add(Field::BytesIn, call.bytes_in);
    sums.add(Field::BytesOut, call.bytes_out);
    sums.add(Field::Refused, u64::from(call.refusal != 0));
    sums.add(Field::Aborted, u64::from(call.is_aborted));
    sums.add(Field::ClientErrors, u64::from((400..500).contains(&call.status)));
    sums.add(Field::ServerErrors, u64::from(call.status >= 500));
    sums.add(Field::Retries, u64::from(call.retries));
    sums.add(Field::Upstream, u64::from(call.upstream_us));
    sums.add(Field::UpstreamCalls, u64::from(call.upstream_us > 0));
    sums.add(Field::Longest, u64::from(call.total_us));
}

#[cfg(test)]
mod tests;
