//! Routes of other dialects that serve in an environment and would take calls of a publication, or lose calls to it. Whether
//! two routes have a call in common is shown by a call that both take: it is made up, and explained.

use super::conflicts::{Conflict, ConflictEffect};
use super::entity_snapshot::EntitySnapshot;
use crate::api::compiled_config::{CompiledConfig, files};
use crate::api::{Api, Problem};
use crate::explain::{ExplainedCall, examples};
use crate::follow::DialectModels;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use weir_apis::entities::Publication;
use weir_apis::naming;
use weir_apis::path_pattern::encoded;
use weir_apis::render::Document;
use weir_dialect::DialectSet;
use weir_model::{DialectName, HostPattern, Model, Route, RouteMatch, RouteTarget};

/// With so many conflicts no more are looked for, and so many routes that may meet the publication are looked at.
const MAX_CONFLICTS: usize = 100;
const MAX_EXAMINED: usize = 2_000;
/// Matches of routes that are compiled together. More may hide one another: explanations are bounded.
const TOGETHER: usize = 20;
/// The most routes of the publication that are looked at for one other route, and the most calls that are made up for both.
const MAX_OWN: usize = 20;
const MAX_CALLS: usize = 60;

/// Conflicts with routes of other dialects.
#[derive(Default)]
pub struct ForeignConflicts {
    pub found: Vec<Conflict>,
    /// Routes that may meet the publication and were not looked at, as there are too many.
    pub unchecked: usize,
}

/// A route of another dialect with those of the publication that it may meet.
type NearRoute<'m> = (&'m Arc<Route>, Vec<&'m Arc<Route>>);

/// The conflicts of a publication, whose documents these are. It takes its time with many routes.
pub fn find(
    api: &Api,
    snapshot: &EntitySnapshot,
    publication: &Publication,
    documents: &[Document],
) -> Result<ForeignConflicts, Problem> {
    let environment = &publication.environment;
    let dialects: DialectSet = api
        .options
        .dialects
        .clone()
        .in_environments(vec![environment.clone()]);
    let foreign: Vec<&str> = dialects
        .followed()
        .filter(|it| it.name() != DialectName::NATIVE)
        .map(|it| it.prefix())
        .collect();
    let is_foreign = |key: &str| foreign.iter().any(|prefix| key.starts_with(prefix));
    // What goes in the same commit takes no calls.
    let known: Vec<_> = snapshot
        .documents()
        .filter(|(key, _)| is_foreign(key.as_str()) && snapshot.bytes(key.as_str()).is_some())
        .collect();
    let of_files = files(api, &dialects, &mut Vec::new());
    if known.is_empty() && of_files.is_none() {
        return Ok(ForeignConflicts::default());
    }
    let mut models = DialectModels::new(&dialects);
    if let Some(model) = of_files {
        models.set_files(model);
    }
    for (key, value) in known {
        models.apply(key.as_str(), Some(value));
    }
    for document in documents {
        models.apply(
            &document.key(environment),
            Some(document.value.to_string().as_bytes()),
        );
    }
    let (model, _) = models.model(|_, _| Vec::new());
    let name = naming::publication(environment, &publication.api, &publication.version);
    let is_own = |route: &Route| {
        route.dialect == DialectName::NATIVE
            && route
                .name
                .strip_prefix(&name)
                .is_some_and(|rest| rest.starts_with('.'))
    };
    let own: Vec<&Arc<Route>> = model.routes.iter().filter(|it| is_own(it)).collect();
    let others = model.routes.iter().filter(|it| it.dialect != DialectName::NATIVE);
    let candidates = others.filter_map(|other| {
        let own = own.iter().copied().filter(|it| may_meet(it, other));
        let own: Vec<&Arc<Route>> = own.take(MAX_OWN).collect();
        (!own.is_empty()).then_some((other, own))
    });
    let candidates: Vec<NearRoute<'_>> = candidates.collect();
    let (mut found, mut examined) = (Vec::new(), 0);
    let near_ones = &candidates[..candidates.len().min(MAX_EXAMINED)];
    while examined < near_ones.len() && found.len() < MAX_CONFLICTS {
        let some = together(&near_ones[examined..]);
        found.extend(meetings(api, &dialects, &model, some)?);
        examined += some.len();
    }
    Ok(ForeignConflicts {
        found,
        unchecked: candidates.len() - examined,
    })
}

fn may_meet(one: &Route, other: &Route) -> bool {
    let pairs = one
        .matches
        .iter()
        .flat_map(|it| other.matches.iter().map(move |other| (it, other)));
    pairs
        .into_iter()
        .any(|(one, other)| one.may_overlap(other, false))
}

/// A route as far as it takes calls.
fn bare(route: &Route) -> Arc<Route> {
    Arc::new(Route {
        target: RouteTarget::respond_before_plugins(404),
        plugins: Vec::new(),
        ..route.clone()
    })
}

/// The first of these routes, as many as are compiled together, and one at least.
fn together<'n, 'm>(candidates: &'n [NearRoute<'m>]) -> &'n [NearRoute<'m>] {
    let mut weight = 0;
    let count = candidates.iter().take_while(|(other, _)| {
        let matches = other.matches.iter().map(|it| it.hosts.len().max(1));
        weight += matches.sum::<usize>();
        weight <= TOGETHER
    });
    &candidates[..count.count().max(1)]
}

/// The conflicts of some routes with the publication's: those for which there is a call that both take.
fn meetings(
    api: &Api,
    dialects: &DialectSet,
    model: &Model,
    candidates: &[NearRoute<'_>],
) -> Result<Vec<Conflict>, Problem> {
    let meant = candidates
        .iter()
        .flat_map(|(other, own)| own.iter().chain([other]));
    let meant: HashSet<*const Route> = meant.map(|it| Arc::as_ptr(it)).collect();
    let is_meant = |it: &&Arc<Route>| meant.contains(&Arc::as_ptr(it));
    let small = Model {
        dialect: model.dialect,
        dialect_settings: model.dialect_settings.clone(),
        // The order of routes decides which dialect goes first.
        routes: model.routes.iter().filter(is_meant).map(|it| bare(it)).collect(),
        ..Model::default()
    };
    let compiled = CompiledConfig::of_model(api, dialects, &small, Vec::new())?;
    let conflicts = candidates
        .iter()
        .map(|(other, own)| conflict(&compiled, own, other));
    Ok(conflicts.flatten().collect())
}

/// The conflict of a route with the publication's, if there is a call that both take.
fn conflict(compiled: &CompiledConfig, own: &[&Arc<Route>], other: &Route) -> Option<Conflict> {
    let is_other = |taker: &(DialectName, &str)| *taker == (other.dialect, other.name.as_str());
    // What others take of that call is another conflict.
    let is_of_both = |taker: &(DialectName, &str)| taker.0 == DialectName::NATIVE || is_other(taker);
    for call in calls(own, other).into_iter().take(MAX_CALLS) {
        let mut takers = compiled.takers(&call);
        takers.retain(is_of_both);
        if !takers.iter().any(is_other) || takers.iter().all(is_other) {
            continue;
        }
        let effect = match takers.first().is_some_and(is_other) {
            true => ConflictEffect::Takes,
            false => ConflictEffect::Loses,
        };
        return Some(Conflict {
            with: other.dialect.to_string(),
            route: other.name.clone(),
            example: text_of(&call),
            effect,
            is_tie: false,
        });
    }
    None
}

/// A call in a line. Headers are named without their values, which may be secrets that callers share with the other route.
fn text_of(call: &ExplainedCall) -> String {
    let names: Vec<&str> = call.headers.iter().map(|(name, _)| name.as_str()).collect();
    match names.is_empty() {
        true => call.to_string(),
        false => format!("{call} with {}", names.join(", ")),
    }
}

/// A call that both may take, in a line.
pub fn call_of(one: &RouteMatch, other: &RouteMatch) -> String {
    calls_of(one, other).first().map(text_of).unwrap_or_default()
}

/// Calls that both may take: made of what the one asks for and what the other does.
fn calls(own: &[&Arc<Route>], other: &Route) -> Vec<ExplainedCall> {
    let own = own.iter().flat_map(|it| &it.matches);
    let pairs = own.flat_map(|one| other.matches.iter().map(move |other| (one, other)));
    let pairs = pairs.filter(|(one, other)| one.may_overlap(other, false));
    pairs.flat_map(|(one, other)| calls_of(one, other)).collect()
}

fn calls_of(one: &RouteMatch, other: &RouteMatch) -> Vec<ExplainedCall> {
    let method = common_method(&one.methods, &other.methods);
    let authority = [&one.hosts, &other.hosts].map(|it| it.as_slice());
    let authority = common_host(authority);
    let headers = other.headers.iter().chain(&one.headers);
    let headers = headers.filter_map(|it| Some((it.name.clone(), it.values.first()?.clone())));
    let headers: Vec<(String, String)> = headers.collect();
    let networks = other.remote_addrs.first().or(one.remote_addrs.first());
    let client = networks.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |it| it.addr());
    let is_tls = !one.snis.is_empty() || !other.snis.is_empty();
    let sni = other
        .snis
        .first()
        .or(one.snis.first())
        .map(|it| it.replace('*', "a"));
    let common = one.path.common_path(&other.path).map(|it| encoded(&it));
    let own = examples::paths(&one.path).into_iter();
    let more = own.chain(examples::paths(&other.path));
    let mut targets: Vec<String> = Vec::new();
    for target in common.into_iter().chain(more) {
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    let call = |target: String| ExplainedCall {
        method: method.clone(),
        is_tls,
        authority: authority.clone(),
        target,
        headers: headers.clone(),
        client,
        sni: sni.clone(),
        body: String::new(),
        consumer: None,
    };
    targets.into_iter().map(call).collect()
}

fn common_method(one: &[String], other: &[String]) -> String {
    let shared = one.iter().find(|it| other.is_empty() || other.contains(it));
    shared.or(other.first()).map_or("GET", String::as_str).to_owned()
}

/// A host that fits both lists, if there is one to be seen.
fn common_host(lists: [&[HostPattern]; 2]) -> String {
    let fits = |host: &HostPattern, list: &[HostPattern]| {
        list.is_empty() || list.iter().any(|it| it.may_overlap(host))
    };
    let all = lists.into_iter().flatten().map(examples::host);
    let fits_both = |host: &String| {
        HostPattern::parse(host).is_ok_and(|exact| lists.iter().all(|list| fits(&exact, list)))
    };
    all.filter(|it| !it.is_empty())
        .find(fits_both)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::PathPattern;

    #[test]
    fn made_up_calls_fit_both() {
        let route_match = |hosts: &[&str], path: &str, methods: &[&str]| RouteMatch {
            hosts: hosts
                .iter()
                .map(|it| HostPattern::parse(it).expect("a host"))
                .collect(),
            path: PathPattern::parse(path).expect("a path"),
            methods: methods.iter().map(|it| (*it).to_owned()).collect(),
            ..RouteMatch::default()
        };
        for (one, other, first) in [
            (
                route_match(&[], "/v1/pets/{id}", &["GET"]),
                route_match(&[], "/v1*", &[]),
                "GET /v1/pets/1",
            ),
            (
                route_match(&[], "=/v1/pets", &["POST"]),
                route_match(&["a.test"], "/*", &["GET", "POST"]),
                "POST http://a.test/v1/pets",
            ),
            (
                route_match(&["*.test"], "=/a", &[]),
                route_match(&["x.test:81"], "=/a", &[]),
                "GET http://x.test:81/a",
            ),
            (
                route_match(&["*.a.test"], "=/a", &[]),
                route_match(&["*.test"], "=/a", &["PUT"]),
                "PUT http://www.a.test/a",
            ),
        ] {
            let calls = calls_of(&one, &other);
            assert_eq!(text_of(&calls[0]), first);
        }
    }
}
