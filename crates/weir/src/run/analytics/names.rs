//! What the numbers of records mean: names of the snapshot that served a call, looked up when a call first has them.

use std::collections::HashMap;
use std::sync::Arc;
use weir_analytics::aggregate::{Aggregator, NameId};
use weir_proxy::{Calls, PublishedSnapshot};
use weir_telemetry::calls::{CallRecord, METHODS, PROTOCOLS};
use weir_telemetry::metrics::Refusal;

/// The route of calls that no route took.
const UNMATCHED: &str = "_unmatched";

/// The names of a call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Names {
    pub service: NameId,
    pub route: NameId,
    pub consumer: NameId,
    pub upstream: NameId,
    pub target: NameId,
    pub refusal: NameId,
    pub plugin: NameId,
    pub method: NameId,
    pub protocol: NameId,
    pub environment: NameId,
    pub api: NameId,
    pub version: NameId,
    pub application: NameId,
    pub plan: NameId,
}

/// What is known of a route.
#[derive(Debug, Clone, Copy, Default)]
struct RouteNames {
    service: NameId,
    route: NameId,
    environment: NameId,
    api: NameId,
    version: NameId,
}

/// What is known of a consumer.
#[derive(Debug, Clone, Copy, Default)]
struct ConsumerNames {
    consumer: NameId,
    application: NameId,
    plan: NameId,
}

/// A snapshot with the names that were asked for.
struct Table {
    published: Arc<PublishedSnapshot>,
    routes: HashMap<u32, RouteNames>,
    consumers: HashMap<u32, ConsumerNames>,
    targets: HashMap<(u32, u16), (NameId, NameId)>,
}

impl RouteNames {
    /// Routes of publications say in their labels which API they belong to.
    fn of(route: &weir_snapshot::Route, to: &mut Aggregator) -> Self {
        let (service, name) = &route.series_names;
        let labels = &route.facts.labels;
        let mut label = |label: &str| labels.get(label).map_or(0, |it| to.name(it));
        let (environment, api, version) = (label("environment"), label("api"), label("version"));
        Self {
            service: to.name(service),
            route: to.name(name),
            environment,
            api,
            version,
        }
    }
}

impl ConsumerNames {
    /// Consumers of subscriptions say in their labels which application and plan they are of.
    fn of(consumer: &weir_plugin::ConsumerIdentity, to: &mut Aggregator) -> Self {
        let mut label = |wanted: &str| {
            let found = consumer.labels.iter().find(|(name, _)| name == wanted);
            found.map_or(0, |(_, value)| to.name(value))
        };
        let (application, plan) = (label("application"), label("plan"));
        Self {
            consumer: to.name(consumer.username.as_deref().unwrap_or(&consumer.id)),
            application,
            plan,
        }
    }
}

/// The names of all snapshots of which there may be calls.
pub struct Tables {
    by_generation: HashMap<u32, Table>,
    newest: u32,
    fixed: HashMap<(u8, u16), NameId>,
}

impl Tables {
    pub fn new() -> Self {
        Self {
            by_generation: HashMap::new(),
            newest: 0,
            fixed: HashMap::new(),
        }
    }

    /// Takes snapshots that were published.
    pub fn add(&mut self, published: Vec<Arc<PublishedSnapshot>>) {
        for published in published {
            let generation = published.generation as u32;
            self.newest = generation;
            let table = Table {
                published,
                routes: HashMap::new(),
                consumers: HashMap::new(),
                targets: HashMap::new(),
            };
            self.by_generation.insert(generation, table);
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

    /// The names of a call.
    pub fn names(
        &mut self,
        calls: &Calls<PublishedSnapshot>,
        record: &CallRecord,
        to: &mut Aggregator,
    ) -> Names {
        let mut fixed = |kind: u8, number: u16, name: &'static str| {
            *self.fixed.entry((kind, number)).or_insert_with(|| to.name(name))
        };
        let method = METHODS.get(usize::from(record.method)).map_or("other", |it| it);
        let protocol = PROTOCOLS
            .get(usize::from(record.protocol))
            .map_or("other", |it| it);
        let refusal = record
            .refusal
            .and_then(|it| Refusal::ALL.get(usize::from(it)).map(|known| (it, known)));
        let mut names = Names {
            method: fixed(0, u16::from(record.method), method),
            protocol: fixed(1, u16::from(record.protocol), protocol),
            refusal: refusal.map_or(0, |(number, it)| fixed(2, u16::from(number), it.label())),
            plugin: record.plugin.map_or(0, |it| fixed(3, it, calls.plugin(it))),
            route: fixed(4, 0, UNMATCHED),
            ..Names::default()
        };
        let Some(table) = self.by_generation.get_mut(&record.generation) else {
            return names;
        };
        let snapshot = &table.published.snapshot;
        if let Some(route) = record.route {
            let known = *table.routes.entry(route).or_insert_with(|| {
                let route = snapshot.routes.get(route as usize);
                route.map_or_else(RouteNames::default, |route| RouteNames::of(route, to))
            });
            (names.service, names.route) = (known.service, known.route);
            (names.environment, names.api, names.version) = (known.environment, known.api, known.version);
        }
        if let Some(consumer) = record.consumer {
            let known = *table.consumers.entry(consumer).or_insert_with(|| {
                let consumer = snapshot.consumers.get(consumer as usize);
                consumer.map_or_else(ConsumerNames::default, |it| ConsumerNames::of(it, to))
            });
            (names.consumer, names.application, names.plan) = (known.consumer, known.application, known.plan);
        }
        if let Some((upstream, target)) = record.target {
            (names.upstream, names.target) = *table.targets.entry((upstream, target)).or_insert_with(|| {
                let upstream = snapshot.upstreams.get(upstream as usize);
                upstream.map_or((0, 0), |upstream| {
                    let target = upstream.targets.get(usize::from(target));
                    let target = target.map_or(String::new(), |it| format!("{}:{}", it.host, it.port));
                    (to.name(&upstream.name), to.name(&target))
                })
            });
        }
        names
    }
}
