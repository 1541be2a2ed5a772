//! How counts get from series to the rows of the cubes, and from there into a batch.

use super::series::{Counts, SeriesKey};
use super::{Aggregator, NameId, TargetNames};
use crate::batch::{Batch, BatchRow, Key};
use crate::cell::Field;
use crate::cube::Cube;
use foldhash::HashMap;

impl Aggregator {
    /// Adds what series have counted to the rows of the cubes.
    pub(super) fn spread(&mut self) {
        let mut routes = std::mem::take(&mut self.by_route);
        routes.spread(|key, counts| self.spread_route(key, counts));
        self.by_route = routes;
        let mut callers = std::mem::take(&mut self.by_caller);
        callers.spread(|key, counts| self.spread_caller(key, counts));
        self.by_caller = callers;
        let mut targets = std::mem::take(&mut self.by_target);
        targets.spread(|key, counts| {
            let (target, environment, class) = key.parts();
            let TargetNames { upstream, target } = self.targets.names(target);
            if upstream != 0 {
                let key = [self.environment_of(environment), upstream, target, class, 0];
                let calls = counts.sums.get(Field::Calls);
                let row = self.rows.row(Cube::Target, self.minute, key, calls);
                row.add(&counts.sums, [None, Some(&counts.times[0]), None]);
            }
        });
        self.by_target = targets;
    }

    fn spread_route(&mut self, key: SeriesKey, counts: &Counts<3>) {
        let (route, kind, status) = key.parts();
        let (status, class) = self.status_names(status as u16);
        let (names, kind) = (self.routes.names(route), self.kinds.names(kind));
        let environment = self.environment_of(names.environment);
        let mut add = |cube, key, has_times: [bool; 3]| {
            let row = self
                .rows
                .row(cube, self.minute, key, counts.sums.get(Field::Calls));
            let time = |place: usize| has_times[place].then_some(&counts.times[place]);
            row.add(&counts.sums, [time(0), time(1), time(2)]);
        };
        add(
            Cube::Route,
            [environment, names.service, names.route, status, 0],
            Cube::Route.sketches(),
        );
        let client = [environment, names.service, kind.protocol, kind.method, 0];
        add(Cube::Client, client, Cube::Client.sketches());
        if kind.refusal != 0 {
            let key = [environment, names.service, kind.refusal, kind.plugin, status];
            add(Cube::Refusal, key, Cube::Refusal.sketches());
        }
        if names.api != 0 {
            let key = [
                environment,
                names.api,
                names.version,
                names.revision,
                names.operation,
            ];
            add(Cube::Operation, key, Cube::Operation.sketches());
        }
        let gateway = [environment, self.gateway_name, class, 0, 0];
        add(Cube::Gateway, gateway, Cube::Gateway.sketches());
    }

    fn spread_caller(&mut self, key: SeriesKey, counts: &Counts<1>) {
        let (route, caller, class) = key.parts();
        let (names, caller) = (self.routes.names(route), self.callers.names(caller));
        let environment = self.environment_of(names.environment);
        let mut add = |cube: Cube, key| {
            let row = self
                .rows
                .row(cube, self.minute, key, counts.sums.get(Field::Calls));
            let total = cube.sketches()[0].then_some(&counts.times[0]);
            row.add(&counts.sums, [total, None, None]);
        };
        add(
            Cube::Caller,
            [environment, names.service, caller.consumer, class, 0],
        );
        if caller.consumer != 0 {
            let key = [environment, caller.consumer, names.service, names.route, 0];
            add(Cube::CallerRoute, key);
        }
        if names.api != 0 {
            let key = [
                environment,
                names.api,
                names.version,
                caller.application,
                caller.plan,
            ];
            add(Cube::Usage, key);
            if caller.subscription != 0 {
                let key = [
                    environment,
                    names.api,
                    names.version,
                    caller.application,
                    caller.subscription,
                ];
                add(Cube::Subscription, key);
            }
        }
        if caller.consumer != 0 {
            let hash = self.hashes.get(caller.consumer as usize).copied().unwrap_or(0);
            self.note_caller(names.service, self.minute / 60, hash);
        }
    }

    /// The counts since the last batch. `now` is in seconds: every minute before the present one is complete.
    pub fn take_batch(&mut self, now: u64, is_last: bool) -> Batch {
        self.spread();
        self.last_address = None;
        self.number += 1;
        let mut table = NameTable::default();
        let taken = self.rows.take();
        let named = |number: NameId| -> &str {
            let name = self.texts.get(number).or_else(|| self.names.get(number as usize));
            name.map_or("", |name| &**name)
        };
        let mut rows = Vec::with_capacity(taken.len());
        for ((cube, minute, key), counts) in taken {
            let mut local = Key::default();
            for place in 0..cube.dimensions().len() {
                local[place] = table.number(key[place], named(key[place]));
            }
            rows.push(BatchRow {
                cube,
                minute,
                key: local,
                cell: counts.to_cell(),
            });
        }
        let mut callers = Vec::new();
        for ((service, hour), uniques) in self.uniques.drain() {
            let environment = table.number(self.environment, named(self.environment));
            callers.push((environment, table.number(service, named(service)), hour, uniques));
        }
        let minute = (now / 60) as u32;
        self.texts.begin(minute / 60);
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
