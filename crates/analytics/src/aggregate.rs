//! The aggregator: turns calls into rows of cubes. One for each process, fed by one thread.
//!
//! A call adds to three series: of its route, its caller and its target. Before a batch is taken, and when a minute
//! ends, what they have counted is spread over the rows of the cubes. So the cost of a call does not grow with the number
//! of cubes, and a series that is called often costs its rows no more than one that is called once.
//!
//! Memory is bounded: there are at most 32,768 series of a kind, and each cube keeps at most its limit of keys
//! apart in an hour, and counts the rest for `_other`. What is counted for a key is exact from when it is tracked; totals
//! over all keys are exact always.

mod call;
mod groups;
mod rollup;
mod rows;
mod series;
#[cfg(test)]
mod tests;
mod texts;

pub use call::{FinishedCall, GroupedCall, SampledCall};
pub use groups::{CallerNames, GroupId, KindNames, RouteNames, TargetNames};

use crate::cell::{Field, Sums};
use crate::cube::{Cube, OTHER, class_of};
use crate::sketch::bucket_of;
use crate::uniques::{self, Uniques};
use foldhash::HashMap;
use groups::Groups;
use rows::Rows;
use series::{SeriesKey, SeriesTable};
use std::sync::Arc;
use texts::ClientTexts;

/// Names that are known, at most. Further ones are `_other`.
const MAX_NAMES: usize = 1_000_000;
/// Services whose callers are counted separately in an hour.
const MAX_SERVICES: usize = 2_000;

/// The number of a name. Zero is the empty name.
pub type NameId = u32;

/// Counts calls.
pub struct Aggregator {
    gateway: Arc<str>,
    run: u64,
    since: u32,
    number: u64,
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, NameId>,
    /// By name: the hash that distinguishes callers.
    hashes: Vec<u64>,
    environment: NameId,
    gateway_name: NameId,
    other: NameId,
    /// By status: its name, and its class's.
    statuses: Vec<(NameId, NameId)>,
    routes: Groups<RouteNames>,
    callers: Groups<CallerNames>,
    targets: Groups<TargetNames>,
    kinds: Groups<KindNames>,
    /// The minute that series are of.
    minute: u32,
    by_route: SeriesTable<3>,
    by_caller: SeriesTable<1>,
    by_target: SeriesTable<1>,
    rows: Rows,
    texts: ClientTexts,
    uniques: HashMap<(NameId, u32), Uniques>,
    /// The route and the address of the last caller that is no consumer, who is counted already.
    last_address: Option<(GroupId, u64)>,
    dropped: u64,
}

impl Aggregator {
    /// An aggregator of a gateway, whose run began at a time in milliseconds.
    pub fn new(gateway: &str, environment: &str, run_ms: u64) -> Self {
        // The empty name is the first one, and that of all others the second one.
        let (empty, other): (NameId, NameId) = (0, 1);
        let mut aggregator = Self {
            gateway: gateway.into(),
            run: run_ms,
            since: (run_ms / 60_000) as u32,
            number: 0,
            names: Vec::new(),
            numbers: HashMap::default(),
            hashes: Vec::new(),
            environment: empty,
            gateway_name: empty,
            other,
            statuses: Vec::new(),
            routes: no_routes(other),
            callers: no_callers(other),
            targets: no_targets(other),
            kinds: Groups::new(KindNames::default()),
            minute: 0,
            by_route: SeriesTable::default(),
            by_caller: SeriesTable::default(),
            by_target: SeriesTable::default(),
            rows: Rows::new(other),
            texts: ClientTexts::new((run_ms / 3_600_000) as u32),
            uniques: HashMap::default(),
            last_address: None,
            dropped: 0,
        };
        for name in ["", OTHER] {
            aggregator.name(name);
        }
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
    pub fn text(&self, name: NameId) -> &Arc<str> {
        self.names.get(name as usize).unwrap_or(&self.names[0])
    }

    /// Whether many groups are known: revisions of APIs and targets come and go, and few further ones find room.
    pub fn has_many_groups(&self) -> bool {
        self.routes.is_nearly_full() || self.callers.is_nearly_full() || self.targets.is_nearly_full()
    }

    /// Forgets the groups of routes, callers and targets. Their numbers are no longer good.
    pub fn forget_groups(&mut self) {
        self.spread();
        self.forget_series();
        self.last_address = None;
        self.routes = no_routes(self.other);
        self.callers = no_callers(self.other);
        self.targets = no_targets(self.other);
    }

    /// The number of a route. Numbers of groups stay good until they are forgotten.
    pub fn route(&mut self, names: RouteNames) -> GroupId {
        self.routes.number(names)
    }

    /// The number of who calls.
    pub fn caller(&mut self, names: CallerNames) -> GroupId {
        self.callers.number(names)
    }

    /// The number of who is asked.
    pub fn target(&mut self, names: TargetNames) -> GroupId {
        self.targets.number(names)
    }

    /// The number of a kind of call.
    pub fn kind(&mut self, names: KindNames) -> GroupId {
        self.kinds.number(names)
    }

    /// The names of a route.
    pub fn route_names(&self, route: GroupId) -> RouteNames {
        self.routes.names(route)
    }

    /// The names of who calls.
    pub fn caller_names(&self, caller: GroupId) -> CallerNames {
        self.callers.names(caller)
    }

    /// The names of who is asked.
    pub fn target_names(&self, target: GroupId) -> TargetNames {
        self.targets.names(target)
    }

    /// The names of a kind of call.
    pub fn kind_names(&self, kind: GroupId) -> KindNames {
        self.kinds.names(kind)
    }

    /// The names of a status and of its class.
    #[inline]
    fn status_names(&mut self, status: u16) -> (NameId, NameId) {
        let place = usize::from(status.min(999));
        match self.statuses.get(place) {
            Some(names) if *names != UNKNOWN => *names,
            _ => self.new_status(place),
        }
    }

    #[cold]
    fn new_status(&mut self, place: usize) -> (NameId, NameId) {
        if self.statuses.len() <= place {
            self.statuses.resize(place + 1, UNKNOWN);
        }
        let text = place.to_string();
        self.statuses[place] = (self.name(&text), self.name(class_of(&text)));
        self.statuses[place]
    }

    /// Counts a call by its names.
    pub fn add(&mut self, call: &FinishedCall) {
        let counted = GroupedCall {
            minute: call.minute,
            route: self.route(RouteNames {
                service: call.service,
                route: call.route,
                environment: call.environment,
                api: call.api,
                version: call.version,
                operation: call.operation,
                revision: call.revision,
            }),
            caller: self.caller(CallerNames {
                consumer: call.consumer,
                application: call.application,
                plan: call.plan,
                subscription: call.subscription,
            }),
            target: self.target(TargetNames {
                upstream: call.upstream,
                target: call.target,
            }),
            kind: self.kind(KindNames {
                method: call.method,
                protocol: call.protocol,
                refusal: call.refusal,
                plugin: call.plugin,
            }),
            status: call.status,
            is_refused: call.refusal != 0,
            is_aborted: call.is_aborted,
            retries: call.retries,
            total_us: call.total_us,
            upstream_us: call.upstream_us,
            bytes_in: call.bytes_in,
            bytes_out: call.bytes_out,
            address: call.caller,
        };
        self.count(&counted);
    }

    /// Counts a call.
    #[inline]
    pub fn count(&mut self, call: &GroupedCall) {
        if call.minute != self.minute {
            self.begin(call.minute);
        }
        let (_, class) = self.status_names(call.status);
        let sums = sums_of(call);
        let (total, upstream) = (
            bucket_of(call.total_us.into()),
            bucket_of(call.upstream_us.into()),
        );
        let by_route = self
            .by_route
            .call(SeriesKey::of(call.route, call.kind, call.status.into()));
        by_route.sums.count(&sums);
        by_route.times[0].add(total);
        // Without an upstream, all of the time is the gateway's.
        if call.upstream_us > 0 {
            by_route.times[1].add(upstream);
        }
        by_route.times[2].add(bucket_of(call.total_us.saturating_sub(call.upstream_us).into()));
        let by_caller = self.by_caller.call(SeriesKey::of(call.route, call.caller, class));
        by_caller.sums.count(&sums);
        by_caller.times[0].add(total);
        if call.target != 0 {
            let environment = self.routes.names(call.route).environment;
            let by_target = self
                .by_target
                .call(SeriesKey::of(call.target, environment, class));
            by_target.sums.count(&sums);
            if call.upstream_us > 0 {
                by_target.times[0].add(upstream);
            }
        }
        self.note_address(call);
        if self.by_route.is_full() || self.by_caller.is_full() || self.by_target.is_full() {
            self.spread();
            self.forget_series();
        }
    }

    /// Another minute begins. Series of another hour may be other ones.
    #[cold]
    fn begin(&mut self, minute: u32) {
        self.spread();
        if minute / 60 != self.minute / 60 {
            self.forget_series();
        }
        self.last_address = None;
        self.minute = minute;
    }

    fn forget_series(&mut self) {
        self.by_route = SeriesTable::default();
        self.by_caller = SeriesTable::default();
        self.by_target = SeriesTable::default();
    }

    /// The environment of calls that name this one, or none.
    fn environment_of(&self, named: NameId) -> NameId {
        match named {
            0 => self.environment,
            named => named,
        }
    }

    /// The environment of calls that name none.
    pub fn environment(&self) -> NameId {
        self.environment
    }

    /// The gateway's name.
    pub fn gateway(&self) -> &Arc<str> {
        &self.gateway
    }

    /// Counts who calls without being a consumer. Consumers are counted with their series.
    #[inline]
    fn note_address(&mut self, call: &GroupedCall) {
        if self.last_address == Some((call.route, call.address))
            || self.callers.names(call.caller).consumer != 0
        {
            return;
        }
        self.last_address = Some((call.route, call.address));
        let service = self.routes.names(call.route).service;
        self.note_caller(service, call.minute / 60, uniques::spread(call.address));
    }

    fn note_caller(&mut self, service: NameId, hour: u32, hash: u64) {
        let mut service = (service, hour);
        if self.uniques.len() >= MAX_SERVICES && !self.uniques.contains_key(&service) {
            service.0 = self.other;
        }
        self.uniques.entry(service).or_default().add(hash);
    }

    /// Counts what only sampled calls have.
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
            let text = self.texts.number(text).unwrap_or(self.other);
            let key = match cube {
                Cube::Path => [environment, text, 0, 0, 0],
                _ => [environment, call.service, text, 0, 0],
            };
            let row = self.rows.row(cube, call.minute, key, weight);
            row.sums.add(Field::Calls, weight);
        }
    }

    /// Counts calls that were dropped before they came here.
    pub fn note_dropped(&mut self, calls: u64) {
        self.dropped += calls;
    }

    /// How many rows wait for the next batch, about: series that are not spread yet count as one each.
    pub fn waiting(&self) -> usize {
        self.rows.len() + self.by_route.called() + self.by_caller.called() + self.by_target.called()
    }

    /// Bytes that counting needs, about: without names, of which there are as many as in the configuration, and lists of
    /// frequent keys, which have their limits.
    pub fn bytes(&self) -> usize {
        let series = self.by_route.bytes() + self.by_caller.bytes() + self.by_target.bytes();
        series + self.rows.bytes() + self.texts.bytes()
    }
}

/// Only the group of all routes that find no room; likewise below.
fn no_routes(other: NameId) -> Groups<RouteNames> {
    Groups::new(RouteNames {
        service: other,
        route: other,
        ..RouteNames::default()
    })
}

fn no_callers(other: NameId) -> Groups<CallerNames> {
    Groups::new(CallerNames {
        consumer: other,
        application: other,
        subscription: other,
        ..CallerNames::default()
    })
}

fn no_targets(other: NameId) -> Groups<TargetNames> {
    Groups::new(TargetNames {
        upstream: other,
        target: other,
    })
}

/// The names of a status that are not known yet.
const UNKNOWN: (NameId, NameId) = (NameId::MAX, NameId::MAX);

/// The values that a call adds to sums, in the order of the fields.
#[inline]
fn sums_of(call: &GroupedCall) -> Sums {
    Sums::of([
        1,
        call.total_us.into(),
        call.bytes_out,
        call.bytes_in,
        call.is_refused.into(),
        call.is_aborted.into(),
        (400..500).contains(&call.status).into(),
        (call.status >= 500).into(),
        call.retries.into(),
        call.upstream_us.into(),
        (call.upstream_us > 0).into(),
        call.total_us.into(),
    ])
}
