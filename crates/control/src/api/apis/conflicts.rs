//! Native routes of others that would take calls of a publication. Those of other dialects: `foreign_conflicts`.

use super::library::Library;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use weir_apis::{path_pattern, render};

/// A call that two would take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "PublishConflict")]
pub struct Conflict {
    /// Whose route it is: a publication, or a document.
    pub with: String,
    /// The route.
    pub route: String,
    /// A call that both take.
    pub example: String,
    /// The outcome for that call.
    pub effect: ConflictEffect,
}

/// The outcome for a call that two would take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConflictEffect {
    /// The other route takes it, or it is unclear which one does.
    Takes,
    /// The other route has taken it so far, and loses it to the publication.
    Loses,
}

impl Conflict {
    /// In words.
    pub fn text(&self) -> String {
        let verb = match self.effect {
            ConflictEffect::Takes => "which takes",
            ConflictEffect::Loses => "which would lose",
        };
        format!(
            "{} has the route {}, {verb} {}",
            self.with, self.route, self.example
        )
    }
}

/// The calls of a route: hosts (none: all), the path without the names of parameters, and a method.
type RouteClaim = (String, String);

struct Route {
    name: String,
    hosts: Vec<String>,
    taken: Vec<RouteClaim>,
}

fn texts(value: &Value) -> Vec<String> {
    let list = value.as_array();
    list.into_iter()
        .flatten()
        .filter_map(|it| it.as_str().map(str::to_owned))
        .collect()
}

fn routes(document: &Value) -> Vec<Route> {
    let own = document.get("paths").map(|_| document);
    let nested = document.get("routes").and_then(Value::as_array);
    let all = nested.into_iter().flatten().chain(own);
    all.map(|route| {
        let methods = match texts(&route["methods"]) {
            methods if methods.is_empty() => vec!["*".to_owned()],
            methods => methods,
        };
        let paths = texts(&route["paths"]);
        let shape = |path: &str| match path.starts_with('~') {
            true => path.to_owned(),
            false => path_pattern::shape(path),
        };
        let taken = paths
            .iter()
            .flat_map(|path| methods.iter().map(move |method| (method.clone(), shape(path))));
        Route {
            name: route["name"].as_str().unwrap_or_default().to_owned(),
            hosts: texts(&route["hosts"]),
            taken: taken.collect(),
        }
    })
    .collect()
}

fn share_a_host(one: &Route, other: &Route) -> bool {
    match (one.hosts.is_empty(), other.hosts.is_empty()) {
        (true, true) => true,
        // The one with a host is the more specific.
        (true, false) | (false, true) => false,
        (false, false) => one.hosts.iter().any(|it| other.hosts.contains(it)),
    }
}

/// Conflicts between the documents of a publication and all others that gateways of its environment serve.
pub fn find(library: &Library, environment: &str, owner: &str, own: &[Value]) -> Vec<Conflict> {
    let own: Vec<Route> = own.iter().flat_map(routes).collect();
    let mut index: HashMap<&RouteClaim, Vec<&Route>> = HashMap::new();
    for route in &own {
        for taken in &route.taken {
            index.entry(taken).or_default().push(route);
        }
    }
    let prefix = render::prefix(environment);
    let mut conflicts = Vec::new();
    for (key, value) in library.documents() {
        let key = key.as_str();
        let of_routes = ["native/services/", "native/routes/"]
            .iter()
            .any(|it| key.starts_with(it));
        // What goes in the same commit takes no calls.
        if library.bytes(key).is_none() {
            continue;
        }
        if !of_routes && !key.starts_with(&format!("{prefix}services/")) {
            continue;
        }
        let Ok(document) = serde_json::from_slice::<Value>(value) else {
            continue;
        };
        let with = document["owned_by"].as_str().unwrap_or(key);
        if with == owner {
            continue;
        }
        for other in routes(&document) {
            let clash = other.taken.iter().find(|taken| {
                let mine = index.get(taken).into_iter().flatten();
                mine.into_iter().any(|it| share_a_host(it, &other))
            });
            if let Some((method, path)) = clash {
                let host = other.hosts.first().map_or("", String::as_str);
                conflicts.push(Conflict {
                    with: with.to_owned(),
                    route: other.name.clone(),
                    effect: ConflictEffect::Takes,
                    example: format!(
                        "{method} {host}{}",
                        path.trim_start_matches('=').replace("{}", "1")
                    ),
                });
            }
        }
    }
    conflicts
}
