//! Whether a consumer may call a route: what the route's plugins make of a plain call that carries the credentials that the
//! consumer has.

use super::verdict::{EndKind, VerdictKind, Work};
use super::{ExplainedCall, Explainer, examples};
use schemars::JsonSchema;
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use weir_model::{Consumer, DialectName, PluginRef, Route, RouteTarget};
use weir_plugin::{ConsumerIdentity, Exchange, system_clock};

/// Whether a consumer may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ReachKind")]
pub enum AccessKind {
    /// A plain call passes.
    May,
    /// A plain call is refused.
    MayNot,
    /// It depends on another server, or on the content of the call.
    Depends,
}

/// Access of a consumer to a route.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RouteReach")]
pub struct ConsumerRouteAccess {
    /// The route.
    pub route: String,
    /// Its dialect.
    pub dialect: DialectName,
    /// The service; `null`: the gateway answers itself.
    pub service: Option<String>,
    /// A call of the route.
    pub call: String,
    /// Whether the consumer may call it.
    pub verdict: AccessKind,
    /// Whether it requires no credential.
    pub is_open: bool,
    /// The plugin that refuses it, or whose result is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// The status of the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The publication that it belongs to: `API/VERSION/ENVIRONMENT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publication: Option<String>,
}

impl Explainer<'_> {
    /// The consumer with this id or user name, as it is written and as plugins see it.
    pub fn consumer(&self, name: &str) -> Option<(&Consumer, Arc<ConsumerIdentity>)> {
        let consumers = &self.model.consumers;
        let by_id = consumers.iter().find(|it| it.id == name);
        let by_name = || consumers.iter().find(|it| it.username.as_deref() == Some(name));
        let consumer = by_id.or_else(by_name)?;
        let identity = self.snapshot.consumers.iter().find(|it| it.id == consumer.id)?;
        Some((consumer, Arc::clone(identity)))
    }

    /// Whether a consumer may call a route.
    pub fn reach(
        &self,
        index: usize,
        consumer: &Consumer,
        identity: &Arc<ConsumerIdentity>,
    ) -> ConsumerRouteAccess {
        let route = &self.model.routes[index];
        let call = examples::calls_of(route, &[]).into_iter().next();
        let call = call.unwrap_or_else(|| plain(route));
        let facts = &self.snapshot.routes[index].facts;
        let label = |name: &str| facts.labels.get(name).map(String::as_str);
        let publication = label("api").zip(label("version")).zip(label("environment"));
        let mut reach = ConsumerRouteAccess {
            route: route.name.clone(),
            dialect: route.dialect,
            service: match &route.target {
                RouteTarget::Service(name) => Some(name.clone()),
                RouteTarget::Respond(_) => None,
            },
            call: call.to_string(),
            verdict: AccessKind::May,
            is_open: true,
            plugin: None,
            status: None,
            reason: None,
            publication: publication
                .map(|((api, version), environment)| format!("{api}/{version}/{environment}")),
        };
        if matches!(&route.target, RouteTarget::Respond(respond) if respond.before_plugins) {
            return reach;
        }
        self.run(index, &call, consumer, identity, &mut reach);
        reach
    }

    fn run(
        &self,
        index: usize,
        call: &ExplainedCall,
        consumer: &Consumer,
        identity: &Arc<ConsumerIdentity>,
        reach: &mut ConsumerRouteAccess,
    ) {
        let mut exchange = Exchange::new(system_clock, 1);
        call.fill(&mut exchange.request);
        exchange.request.body = Some(Vec::new());
        let renderer = self.renderer(reach.dialect);
        if self.read_path(reach.dialect, &mut exchange).is_err() {
            reach.verdict = AccessKind::Depends;
            return;
        }
        exchange.route = Some(Arc::clone(&self.snapshot.routes[index].facts));
        // Credentials are good on routes of their own dialect and workspace only.
        let is_own = consumer.dialect == reach.dialect
            && self.workspace(&self.model.routes[index]) == consumer.workspace.as_deref();
        let own = consumer.credentials.iter().filter(|_| is_own);
        let mut work = Work {
            exchange,
            renderer: &*renderer,
            registry: self.registry,
            consumer: Some(Arc::clone(identity)),
            credentials: Some(own.map(|it| it.plugin.as_str()).collect()),
            auth_failure: None,
        };
        let chain = &self.snapshot.routes[index].chain;
        let (verdicts, end) = work.run(chain);
        reach.is_open = work.auth_failure.is_none();
        let step = end.step.and_then(|it| it.checked_sub(1));
        let instance = step.and_then(|it| chain.steps[it].instance(work.exchange.identity.as_ref()));
        let is_refused = step.is_some_and(|it| verdicts[it].verdict == VerdictKind::Refuses);
        reach.plugin = instance.map(|it| it.plugin.to_owned());
        reach.status = end.status;
        reach.reason = end.reason;
        reach.verdict = match end.kind {
            EndKind::Forwarded => AccessKind::May,
            // What is wrong with a plain call may be right with another one.
            EndKind::Answered if is_refused && matches!(end.status, Some(401 | 403)) => AccessKind::MayNot,
            EndKind::Answered | EndKind::Unknown => AccessKind::Depends,
        };
    }

    /// The workspace of a route with plugins.
    fn workspace<'r>(&'r self, route: &'r Route) -> Option<&'r str> {
        let instances = route.plugins.iter().filter_map(|it| match it.plugin.as_ref()? {
            PluginRef::Inline(instance) => Some(&**instance),
            PluginRef::Shared(id) => self.model.plugins.iter().find(|it| it.id == *id),
        });
        instances.into_iter().find_map(|it| it.workspace.as_deref())
    }
}

/// A call for a route of whose conditions no example can be made.
fn plain(route: &Route) -> ExplainedCall {
    let found = route.matches.first();
    let host = found.and_then(|it| it.hosts.first()).map(examples::host);
    ExplainedCall {
        method: found
            .and_then(|it| it.methods.first())
            .map_or("GET", String::as_str)
            .to_owned(),
        is_tls: false,
        authority: host.unwrap_or_default(),
        target: "/".to_owned(),
        headers: Vec::new(),
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        sni: None,
        body: String::new(),
        consumer: None,
    }
}
