//! The meaning of the numbers in records: names of the snapshot that served a call, looked up when a call first has
//! them. After that a number of the record leads to a number of the aggregator.

use foldhash::HashMap;
use std::sync::Arc;
use weir_analytics::aggregate::{Aggregator, CallerNames, GroupId, KindNames, RouteNames, TargetNames};
use weir_proxy::{Calls, PublishedSnapshot};
use weir_telemetry::calls::{CallRecord, METHODS, PROTOCOLS};
use weir_telemetry::metrics::Refusal;

/// The route of calls that no route took.
const UNMATCHED: &str = "_unmatched";
/// A name that has not been looked up yet.
const UNKNOWN: GroupId = GroupId::MAX;

/// The groups of names of a call.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallGroups {
    pub route: GroupId,
    pub caller: GroupId,
    pub target: GroupId,
    pub kind: GroupId,
}

/// The part of a record that decides which names it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    generation: u32,
    route: Option<u32>,
    consumer: Option<u32>,
    target: Option<(u32, u16)>,
    kind: u64,
}

impl Identity {
    fn of(record: &CallRecord) -> Self {
        let refusal = record.refusal.map_or(0, |it| u64::from(it) + 1);
        let plugin = record.plugin.map_or(0, |it| u64::from(it) + 1);
        Self {
            generation: record.generation,
            route: record.route,
            consumer: record.consumer,
            target: record.target,
            kind: u64::from(record.method) << 48 | u64::from(record.protocol) << 40 | refusal << 24 | plugin,
        }
    }
}

/// A snapshot with the groups that were asked for.
struct Table {
    published: Arc<PublishedSnapshot>,
    /// By the place in the snapshot. Both are made for the first call.
    routes: Vec<GroupId>,
    consumers: Vec<GroupId>,
    targets: HashMap<(u32, u16), GroupId>,
}

/// The known group at a place, or the one that is found out now.
fn at(known: &mut Vec<GroupId>, place: u32, length: usize, find: impl FnOnce() -> GroupId) -> GroupId {
    if known.is_empty() {
        known.resize(length, UNKNOWN);
    }
    match known.get_mut(place as usize) {
        Some(group) => {
            if *group == UNKNOWN {
                *group = find();
            }
            *group
        }
        // No group has this number.
        None => GroupId::default(),
    }
}

/// Routes of publications say in their labels which API they belong to.
fn route_group(route: &weir_snapshot::Route, to: &mut Aggregator) -> GroupId {
    let (service, name) = &route.series_names;
    let labels = &route.facts.labels;
    let mut label = |label: &str| labels.get(label).map_or(0, |it| to.name(it));
    let (environment, api, version) = (label("environment"), label("api"), label("version"));
    let (operation, revision) = (label("operation"), label("revision"));
    let names = RouteNames {
        service: to.name(service),
        route: to.name(name),
        environment,
        api,
        version,
        operation,
        revision,
    };
    to.route(names)
}

/// Consumers of subscriptions say in their labels which application and plan they are of.
fn caller_group(consumer: &weir_plugin::ConsumerIdentity, to: &mut Aggregator) -> GroupId {
    let mut label = |wanted: &str| {
        let found = consumer.labels.iter().find(|(name, _)| name == wanted);
        found.map_or(0, |(_, value)| to.name(value))
    };
    let (application, plan) = (label("application"), label("plan"));
    let subscription = consumer.id.strip_prefix("sub.").filter(|_| application != 0);
    let names = CallerNames {
        consumer: to.name(consumer.username.as_deref().unwrap_or(&consumer.id)),
        application,
        plan,
        subscription: subscription.map_or(0, |it| to.name(it)),
    };
    to.caller(names)
}

fn target_group(upstream: &weir_snapshot::Upstream, target: u16, to: &mut Aggregator) -> GroupId {
    let target = upstream.targets.get(usize::from(target));
    let target = target.map_or(String::new(), |it| format!("{}:{}", it.host, it.port));
    let names = TargetNames {
        upstream: to.name(&upstream.name),
        target: to.name(&target),
    };
    to.target(names)
}

fn kind_group(calls: &Calls<PublishedSnapshot>, record: &CallRecord, to: &mut Aggregator) -> GroupId {
    let named = |names: &[&'static str], number: u8| names.get(usize::from(number)).map_or("other", |it| it);
    let refusal = record.refusal.and_then(|it| Refusal::ALL.get(usize::from(it)));
    let names = KindNames {
        method: to.name(named(&METHODS, record.method)),
        protocol: to.name(named(&PROTOCOLS, record.protocol)),
        refusal: refusal.map_or(0, |it| to.name(it.label())),
        plugin: record.plugin.map_or(0, |it| to.name(calls.plugin(it))),
    };
    to.kind(names)
}

/// The groups of all snapshots of which there may be calls.
pub struct Tables {
    by_generation: HashMap<u32, Table>,
    newest: u32,
    kinds: HashMap<u64, GroupId>,
    /// Those of the call before: the next one is often alike.
    last: Option<(Identity, CallGroups)>,
}

impl Tables {
    pub fn new() -> Self {
        Self {
            by_generation: HashMap::default(),
            newest: 0,
            kinds: HashMap::default(),
            last: None,
        }
    }

    /// Takes snapshots that were published.
    pub fn add(&mut self, published: Vec<Arc<PublishedSnapshot>>) {
        self.last = None;
        for published in published {
            let generation = published.generation as u32;
            self.newest = generation;
            let table = Table {
                published,
                routes: Vec::new(),
                consumers: Vec::new(),
                targets: HashMap::default(),
            };
            self.by_generation.insert(generation, table);
        }
    }

    /// Forgets all groups: the aggregator gives them other numbers.
    pub fn forget_groups(&mut self) {
        self.last = None;
        for table in self.by_generation.values_mut() {
            table.routes.clear();
            table.consumers.clear();
            table.targets.clear();
        }
    }

    /// Old snapshots that no worker holds any more. Once the rings are empty after this, they are not asked for again.
    pub fn idle(&self) -> Vec<u32> {
        let idle = self.by_generation.iter().filter(|(generation, table)| {
            // One is held here, one by the gateway, which frees it.
            **generation != self.newest && Arc::strong_count(&table.published) <= 2
        });
        idle.map(|(generation, _)| *generation).collect()
    }

    /// Forgets snapshots.
    pub fn forget(&mut self, generations: &[u32]) {
        for generation in generations {
            self.by_generation.remove(generation);
        }
    }

    /// The groups of names of a call. Its snapshot may have been published after the last ones were taken.
    #[inline]
    pub fn groups(
        &mut self,
        calls: &Calls<PublishedSnapshot>,
        record: &CallRecord,
        to: &mut Aggregator,
    ) -> CallGroups {
        let identity = Identity::of(record);
        match self.last {
            Some((last, groups)) if last == identity => groups,
            _ => {
                if !self.by_generation.contains_key(&record.generation) {
                    self.add(calls.take_published());
                }
                let groups = self.find(calls, record, identity.kind, to);
                // Without its snapshot a call has no names. The next one may have them.
                if self.by_generation.contains_key(&record.generation) {
                    self.last = Some((identity, groups));
                }
                groups
            }
        }
    }

    fn find(
        &mut self,
        calls: &Calls<PublishedSnapshot>,
        record: &CallRecord,
        kind: u64,
        to: &mut Aggregator,
    ) -> CallGroups {
        let known = self.kinds.entry(kind);
        let mut groups = CallGroups {
            kind: *known.or_insert_with(|| kind_group(calls, record, to)),
            ..CallGroups::default()
        };
        let table = self.by_generation.get_mut(&record.generation);
        if let (Some(table), Some(route)) = (table, record.route) {
            let routes = &table.published.snapshot.routes;
            groups.route = at(&mut table.routes, route, routes.len(), || {
                route_group(&routes[route as usize], to)
            });
        } else {
            let route = to.name(UNMATCHED);
            groups.route = to.route(RouteNames {
                route,
                ..RouteNames::default()
            });
        }
        let Some(table) = self.by_generation.get_mut(&record.generation) else {
            return groups;
        };
        let snapshot = &table.published.snapshot;
        if let Some(consumer) = record.consumer {
            let consumers = &snapshot.consumers;
            groups.caller = at(&mut table.consumers, consumer, consumers.len(), || {
                caller_group(&consumers[consumer as usize], to)
            });
        }
        if let Some((upstream, target)) = record.target {
            groups.target = *table.targets.entry((upstream, target)).or_insert_with(|| {
                let upstream = snapshot.upstreams.get(upstream as usize);
                upstream.map_or(GroupId::default(), |upstream| target_group(upstream, target, to))
            });
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A query by another protocol is refused.
    #[test]
    fn every_protocol_of_a_call_can_be_asked_for() {
        for protocol in PROTOCOLS {
            assert!(weir_analytics::cube::PROTOCOLS.contains(&protocol), "{protocol}");
        }
    }

    fn published(generation: u64) -> Arc<PublishedSnapshot> {
        let model = json!({
            "consumers": [{"id": "a", "username": "alice"}],
            "routes": [{"name": "list", "match": [{}], "to": {"respond": {"status": 200}}}],
        });
        let model = serde_json::from_value(model).expect("a model");
        let (registry, persistent) = (
            weir_plugin::Registry::default(),
            weir_snapshot::PersistentState::default(),
        );
        let compiled = weir_snapshot::compile(&model, &registry, &persistent);
        Arc::new(PublishedSnapshot {
            snapshot: compiled.expect("compiled").0,
            series: Vec::new(),
            generation,
        })
    }

    /// The route and the consumer that a call of a generation is counted for.
    fn counted(
        tables: &mut Tables,
        calls: &Calls<PublishedSnapshot>,
        (generation, to): (u32, &mut Aggregator),
    ) -> [String; 2] {
        let record = CallRecord {
            generation,
            route: Some(0),
            consumer: Some(0),
            ..CallRecord::default()
        };
        let groups = tables.groups(calls, &record, to);
        let (route, caller) = (to.route_names(groups.route), to.caller_names(groups.caller));
        [route.route, caller.consumer].map(|it| to.text(it).to_string())
    }

    #[test]
    fn calls_of_a_snapshot_that_was_published_meanwhile_have_names() {
        let (calls, mut to) = (Calls::new([]), Aggregator::new("g", "", 0));
        let mut tables = Tables::new();
        calls.note_published(&published(1));
        tables.add(calls.take_published());
        assert_eq!(counted(&mut tables, &calls, (1, &mut to)), ["list", "alice"]);
        // The rings are being emptied: calls come that the next snapshot has served.
        calls.note_published(&published(2));
        for generation in [2, 2, 1, 2] {
            let found = counted(&mut tables, &calls, (generation, &mut to));
            assert_eq!(found, ["list", "alice"], "{generation}");
        }
    }

    #[test]
    fn a_call_without_a_snapshot_does_not_make_the_next_one_nameless() {
        let (calls, mut to) = (Calls::new([]), Aggregator::new("g", "", 0));
        let mut tables = Tables::new();
        assert_eq!(counted(&mut tables, &calls, (1, &mut to)), ["_unmatched", ""]);
        tables.add(vec![published(1)]);
        assert_eq!(counted(&mut tables, &calls, (1, &mut to)), ["list", "alice"]);
    }
}
