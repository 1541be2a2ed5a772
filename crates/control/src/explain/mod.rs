//! Explains calls: the route that takes it and why, why the near ones do not, what each plugin makes of it
//! as far as that can be said without I/O, and its target. `weir explain` and `POST /api/v1/explain` show this.
//!
//! **What it is not**: it sends nothing, reads no store and changes no counter of a gateway. What it works with is a
//! snapshot of its own.

mod call;
mod chain;
mod conditions;
pub mod examples;
mod explanation;
mod route_access;
mod takers;
mod verdict;

pub use call::ExplainedCall;
pub use chain::{Instance, PluginStep};
pub use explanation::{
    ExplainedTarget, Explanation, GatewayResponse, MatchedRoute, NearMissRoute, TargetList,
};
pub use route_access::{AccessKind, ConsumerRouteAccess};
pub use verdict::{CallEnd, EndKind, StepVerdict, VerdictKind};

use conditions::{Precedence, conditions, without_user};
use std::sync::Arc;
use verdict::Work;
use weir_dialect::DialectSet;
use weir_model::{DialectName, DocPath, Model, Respond, Route, RouteTarget};
use weir_plugin::error_renderer::ErrorRenderer;
use weir_plugin::uri::InvalidPath;
use weir_plugin::{Exchange, Registry, system_clock};
use weir_snapshot::{Chain, MatchExplanation, Snapshot, Verdict};

/// The configuration that calls are explained with.
pub struct Explainer<'c> {
    /// The resources.
    pub model: &'c Model,
    /// The same, compiled.
    pub snapshot: &'c Snapshot,
    /// The dialects, for their words.
    pub dialects: &'c DialectSet,
    /// The catalogue of plugins.
    pub registry: &'c Registry,
    /// The location of a resource of the model: a file, and a line if that is known.
    pub place: &'c (dyn Fn(&DocPath) -> Option<String> + Sync),
}

impl Explainer<'_> {
    /// Explains a call.
    pub fn explain(&self, call: &ExplainedCall) -> Explanation {
        let mut exchange = Exchange::new(system_clock, 1);
        call.fill(&mut exchange.request);
        let mut explanation = Explanation {
            call: call.to_string(),
            client: call.client.to_string(),
            route: None,
            answer: None,
            others: Vec::new(),
            plugins: Vec::new(),
            response_order: Vec::new(),
            consumer: None,
            end: CallEnd::default(),
            auth_failure: None,
            labels: Default::default(),
        };
        let mut winner = None;
        for table in &self.snapshot.tables {
            if self.read_path(table.dialect, &mut exchange).is_err() {
                if winner.is_none() {
                    let reason =
                        "the path leads above the root, holds a broken escape, or can be read in two ways"
                            .to_owned();
                    explanation.answer = Some(GatewayResponse {
                        status: 400,
                        dialect: table.dialect,
                        reason,
                    });
                }
                break;
            }
            let explained =
                self.with_matched_path(table.dialect, &mut exchange, |exchange| table.explain(exchange));
            for explained in explained {
                match (&explained.verdict, &winner) {
                    (Verdict::Wins, None) => winner = Some(explained),
                    _ => explanation.others.push(self.other(&explained, winner.as_ref())),
                }
            }
        }
        match winner {
            Some(winner) => self.explain_route(&winner, call, &mut explanation),
            None => self.explain_unmatched(call, &mut explanation),
        }
        if let Some(answer) = &explanation.answer {
            explanation.end = CallEnd::answered(answer.status, &answer.reason);
        }
        explanation
    }

    /// The place of the route that takes a call in the list of routes.
    pub fn taker(&self, call: &ExplainedCall) -> Option<usize> {
        let mut exchange = Exchange::new(system_clock, 1);
        call.fill(&mut exchange.request);
        for table in &self.snapshot.tables {
            self.read_path(table.dialect, &mut exchange).ok()?;
            let found = self.with_matched_path(table.dialect, &mut exchange, |exchange| table.find(exchange));
            if let Some(found) = found {
                return Some(found.route as usize);
            }
        }
        None
    }

    /// Finds out the path of a call by the rules of a dialect.
    fn read_path(&self, dialect: DialectName, exchange: &mut Exchange) -> Result<(), InvalidPath> {
        let form = self.renderer(dialect).normal_form();
        let rules = self.snapshot.settings(dialect).path_rules(form);
        exchange.request.normalize_path(rules)
    }

    /// Looks for routes with the path that those of the dialect match.
    fn with_matched_path<T>(
        &self,
        dialect: DialectName,
        exchange: &mut Exchange,
        look: impl FnOnce(&mut Exchange) -> T,
    ) -> T {
        let keeps_slashes = self.snapshot.settings(dialect).keeps_escaped_slashes;
        let normal_path = keeps_slashes
            .then(|| exchange.request.keep_escaped_slashes())
            .flatten();
        let found = look(exchange);
        if let Some(path) = normal_path {
            exchange.request.path = path;
        }
        found
    }

    fn renderer(&self, dialect: DialectName) -> Arc<dyn ErrorRenderer> {
        let known = self.dialects.get(dialect);
        known.map_or_else(
            || weir_dialect::Dialect::error_renderer(&weir_native::NativeDialect),
            |it| it.error_renderer(),
        )
    }

    fn explain_route(&self, winner: &MatchExplanation, call: &ExplainedCall, explanation: &mut Explanation) {
        let index = winner.route as usize;
        let route = &self.model.routes[index];
        explanation
            .labels
            .clone_from(&self.snapshot.routes[index].facts.labels);
        explanation.route = Some(self.winner(route, winner));
        explanation.answer = match (route.https_only_status, &route.target) {
            (Some(status), _) if !call.is_tls => Some(GatewayResponse {
                status,
                dialect: route.dialect,
                reason: "the route accepts only calls over TLS".to_owned(),
            }),
            _ if route.grpc_only_status.is_some() && !call.is_grpc() => Some(GatewayResponse {
                status: route.grpc_only_status.unwrap_or_default(),
                dialect: route.dialect,
                reason: "the route accepts only gRPC".to_owned(),
            }),
            (_, RouteTarget::Respond(respond)) if respond.before_plugins => Some(GatewayResponse {
                status: respond.status,
                dialect: route.dialect,
                reason: "the route leads nowhere".to_owned(),
            }),
            _ => None,
        };
        if explanation.answer.is_some() {
            return;
        }
        let place = DocPath::root().field("routes").index(index).field("plugins");
        let compiled = &self.snapshot.routes[index].chain;
        (explanation.plugins, explanation.response_order) = self.chain(&route.plugins, compiled, &place);
        self.work((Some(winner), route.dialect), compiled, call, explanation);
        if explanation.end.kind == EndKind::Forwarded
            && let RouteTarget::Respond(respond) = &route.target
        {
            explanation.end = CallEnd::answered(respond.status, "the route leads nowhere");
        }
    }

    fn explain_unmatched(&self, call: &ExplainedCall, explanation: &mut Explanation) {
        if explanation.answer.is_some() {
            return;
        }
        explanation.answer = Some(GatewayResponse {
            status: 404,
            dialect: self.snapshot.dialect,
            reason: "no route matches it".to_owned(),
        });
        let place = DocPath::root().field("unmatched");
        let chain = &self.snapshot.unmatched;
        (explanation.plugins, explanation.response_order) = self.chain(&self.model.unmatched, chain, &place);
        self.work((None, self.snapshot.dialect), chain, call, explanation);
    }

    /// Lets the plugins of a chain work on the call.
    fn work(
        &self,
        (winner, dialect): (Option<&MatchExplanation>, DialectName),
        chain: &Chain,
        call: &ExplainedCall,
        explanation: &mut Explanation,
    ) {
        let mut exchange = Exchange::new(system_clock, 1);
        call.fill(&mut exchange.request);
        exchange.request.body = Some(call.body.clone().into_bytes());
        let renderer = self.renderer(dialect);
        if self.read_path(dialect, &mut exchange).is_err() {
            return;
        }
        if let Some(winner) = winner {
            let mut tables = self.snapshot.tables.iter().filter(|it| it.dialect == dialect);
            let found = tables.find_map(|table| table.find(&mut exchange));
            exchange.matched_len = found.map_or(0, |it| it.matched_len);
            exchange.route = Some(Arc::clone(&self.snapshot.routes[winner.route as usize].facts));
        }
        let consumers = self.snapshot.consumers.iter();
        let consumer = call.consumer.as_deref().and_then(|wanted| {
            let is_it = |it: &&Arc<weir_plugin::ConsumerIdentity>| {
                it.id == wanted || it.username.as_deref() == Some(wanted)
            };
            consumers.into_iter().find(is_it).cloned()
        });
        let mut work = Work {
            exchange,
            renderer: &*renderer,
            registry: self.registry,
            consumer,
            credentials: None,
            auth_failure: None,
        };
        let (verdicts, end) = work.run(chain);
        for (step, verdict) in explanation.plugins.iter_mut().zip(verdicts) {
            step.verdict = verdict;
        }
        explanation.end = end;
        explanation.consumer = work.exchange.identity.as_ref().map(|it| it.consumer.id.clone());
        explanation.auth_failure = work.auth_failure;
    }

    fn other(&self, explained: &MatchExplanation, winner: Option<&MatchExplanation>) -> NearMissRoute {
        let route = &self.model.routes[explained.route as usize];
        let reason = match &explained.verdict {
            Verdict::Fails(mismatches) => mismatches.iter().map(ToString::to_string).collect(),
            Verdict::Wins | Verdict::LowerPrecedence => vec![self.lower(explained, winner)],
        };
        NearMissRoute {
            name: route.name.clone(),
            dialect: route.dialect,
            at: self.place_of_route(explained.route),
            by: conditions(route, explained.match_index),
            reason,
        }
    }

    /// Why a route that holds has lower precedence than the winner.
    fn lower(&self, explained: &MatchExplanation, winner: Option<&MatchExplanation>) -> String {
        let route = &self.model.routes[explained.route as usize];
        let Some(winner) = winner else {
            return "it also matches, but comes later".to_owned();
        };
        let first = &self.model.routes[winner.route as usize];
        if first.dialect != route.dialect {
            return format!(
                "it holds too, but {} routes are looked at first",
                first.dialect.as_str()
            );
        }
        if winner.route == explained.route {
            return "another match of the same route comes first".to_owned();
        }
        let (higher, lower) = (Precedence::of(first, winner), Precedence::of(route, explained));
        if higher.value == lower.value {
            "it also matches, but comes later in the document".to_owned()
        } else if higher.is_given && lower.is_given {
            format!(
                "it holds too, but its precedence is {} against {}",
                lower.value, higher.value
            )
        } else {
            "it holds too, but is less specific".to_owned()
        }
    }

    fn place_of_route(&self, index: u32) -> Option<String> {
        (self.place)(&DocPath::root().field("routes").index(index as usize))
    }

    fn winner(&self, route: &Route, found: &MatchExplanation) -> MatchedRoute {
        let service = match &route.target {
            RouteTarget::Service(name) => Some(name.clone()),
            RouteTarget::Respond(_) => None,
        };
        let known = service
            .as_deref()
            .and_then(|name| self.model.services.iter().find(|it| it.name == name));
        let upstream = known.and_then(|it| self.targets(it.upstream.as_deref()?));
        let url = known.and_then(|it| it.url.as_deref()).map(without_user);
        MatchedRoute {
            name: route.name.clone(),
            dialect: route.dialect,
            at: self.place_of_route(found.route),
            by: conditions(route, found.match_index),
            to: self.target(route),
            service,
            url,
            upstream,
        }
    }

    fn targets(&self, name: &str) -> Option<TargetList> {
        let upstream = self.model.upstreams.iter().find(|it| it.name == name)?;
        let targets = upstream.targets.iter().map(|it| ExplainedTarget {
            address: format!("{}:{}", it.host, it.port),
            weight: it.weight,
        });
        Some(TargetList {
            name: name.to_owned(),
            targets: targets.collect(),
        })
    }

    fn target(&self, route: &Route) -> String {
        let name = match &route.target {
            RouteTarget::Service(name) => name,
            RouteTarget::Respond(Respond {
                status,
                before_plugins,
                ..
            }) => {
                let unless = if *before_plugins {
                    ""
                } else {
                    " unless a plugin answers"
                };
                return format!("nowhere: {status}{unless}");
            }
        };
        let service = self.model.services.iter().find(|service| service.name == *name);
        match service.map(|service| (&service.url, &service.upstream)) {
            Some((Some(url), _)) => format!("service {name}, {}", without_user(url)),
            Some((None, Some(upstream))) => format!("service {name}, {}", self.upstream(upstream)),
            _ => format!("service {name}"),
        }
    }

    fn upstream(&self, name: &str) -> String {
        let upstream = self.model.upstreams.iter().find(|upstream| upstream.name == name);
        match upstream.map(|upstream| upstream.targets.as_slice()) {
            Some([only]) => format!("upstream {name} ({}:{})", only.host, only.port),
            Some(targets) => format!("upstream {name} ({} targets)", targets.len()),
            None => format!("upstream {name}"),
        }
    }
}
