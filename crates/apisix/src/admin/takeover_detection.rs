//! Computes which calls and sessions a write would take from other workspaces. **What it is not**: what a write of this
//! dialect takes from another route of it is no matter, as all of them are of one workspace.

use super::state::AdminState;
use super::write::ChangePlan;
use crate::settings::Settings;
use crate::translate::{Options, Router, translate};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use weir_dialect::{DEFAULT_WORKSPACE, ForeignRoutes, RouteOwner};
use weir_model::{Model, RouteMatch, StreamRoute};

/// The fields of a route and of its service that say which calls it takes.
const OF_ROUTES: [&str; 13] = [
    "id",
    "uri",
    "uris",
    "host",
    "hosts",
    "methods",
    "remote_addr",
    "remote_addrs",
    "vars",
    "status",
    "server_addr",
    "server_port",
    "sni",
];

/// How routes are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub router: Router,
    pub settings: &'static Settings,
}

/// Documents after a write, where it changes them, and before it.
struct Documents<'d> {
    state: &'d AdminState,
    written: BTreeMap<&'d str, Option<&'d Value>>,
}

impl Documents<'_> {
    fn before(&self, key: &str) -> Option<&Value> {
        self.state.get(key).map(|it| &it.value)
    }

    fn after(&self, key: &str) -> Option<&Value> {
        match self.written.get(key) {
            Some(written) => *written,
            None => self.before(key),
        }
    }

    /// The routes whose calls the write may change: those that it writes, and those of services that it writes.
    fn touched(&self) -> Vec<&str> {
        let is_route = |key: &str| key.starts_with("routes/") || key.starts_with("stream_routes/");
        let mut keys = Vec::new();
        for key in self.written.keys() {
            if is_route(key) {
                keys.push(*key);
            } else if key.starts_with("services/") {
                let referrers = self.state.referrers(key).map(|it| &*it.key);
                keys.extend(referrers.filter(|key| is_route(key)));
            }
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// Whether a plan has a route take calls or sessions of another workspace's route. What a route takes already stays, so
/// that it can be changed in other ways, and be made to take less.
pub(super) fn takes_calls(
    plan: &ChangePlan,
    state: &AdminState,
    reading: Reading,
    others: &dyn ForeignRoutes,
) -> bool {
    let written = plan
        .changes
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_ref()));
    let documents = Documents {
        state,
        written: written.collect(),
    };
    documents.touched().into_iter().any(|key| {
        let model = |at: &dyn Fn(&str) -> Option<Value>| taken(key, at(key), at, reading);
        // What cannot be read may take anything.
        let Some(after) = model(&|key| documents.after(key).cloned()) else {
            return true;
        };
        let before = model(&|key| documents.before(key).cloned()).unwrap_or_default();
        let known: Vec<&RouteMatch> = before.routes.iter().flat_map(|it| &it.matches).collect();
        let matches = after.routes.iter().flat_map(|it| &it.matches);
        let more: Vec<&RouteMatch> = matches
            .filter(|own| !known.iter().any(|known| own.is_within(known)))
            .collect();
        let streams = after.stream_routes.iter();
        let more_streams: Vec<&StreamRoute> = streams
            .filter(|own| !before.stream_routes.contains(own))
            .collect();
        let is_foreign = |owner: RouteOwner<'_>| owner.is_behind && owner.workspace != DEFAULT_WORKSPACE;
        let takes = |other: &RouteMatch| more.iter().any(|own| own.may_overlap(other, false));
        (!more.is_empty()
            && others.any(crate::NAME, &mut |other, owner| {
                is_foreign(owner) && other.iter().any(takes)
            }))
            || (!more_streams.is_empty()
                && others.any_stream(crate::NAME, &mut |other, owner| {
                    is_foreign(owner) && more_streams.iter().any(|own| own.may_overlap(other))
                }))
    })
}

/// The model of a route that has nothing but what says which calls it takes; `None`: it cannot be read.
fn taken(
    key: &str,
    route: Option<Value>,
    at: &dyn Fn(&str) -> Option<Value>,
    reading: Reading,
) -> Option<Model> {
    let Some(Value::Object(mut route)) = route else {
        return Some(Model::default());
    };
    let section = key.split('/').next().unwrap_or_default();
    let service = route.get("service_id").and_then(crate::document::id_text);
    let service = service.and_then(|id| at(&format!("services/{id}")));
    route.retain(|name, _| OF_ROUTES.contains(&name.as_str()));
    let no_hosts = !route.contains_key("host") && !route.contains_key("hosts");
    if section == "routes"
        && no_hosts
        && let Some(hosts) = service.and_then(|mut service| Some(service.get_mut("hosts")?.take()))
    {
        route.insert("hosts".to_owned(), hosts);
    }
    let upstream = json!({"type": "roundrobin", "nodes": {"127.0.0.1:1": 1}});
    route.insert("upstream".to_owned(), upstream);
    let document = Map::from_iter([(section.to_owned(), json!([route]))]);
    let options = Options {
        router: reading.router,
        delete_uri_tail_slash: reading.settings.delete_uri_tail_slash,
        settings: reading.settings,
    };
    let translated = translate(&Value::Object(document), &options);
    translated.ok().map(|(model, _)| model)
}
