//! Adoption: a version of an API made of routes that exist already, in whichever dialect they are written. It describes
//! them and says with which runtime a publication would do the same. It changes nothing.
//!
//! **What it is not**: a converter. What a publication has no word for, such as a path that is a regular expression, is
//! named in the notes, and people decide.

use crate::entities::{Backend, Component, OperationSettings, Runtime, Target};
use crate::naming::{MAX_LENGTH, slug};
use crate::path_pattern;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use weir_model::{DialectName, Model, PathPattern, Route, RouteMatch, RouteTarget, Service, TemplatePart};

/// The methods of a route that takes all.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
/// The name of the backend and of the first component.
const MAIN: &str = "main";

/// The result of adopting routes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Adopted {
    /// The OpenAPI document.
    pub document: Value,
    /// The components: one for the operations, and one for each path with all that is below it.
    pub components: Vec<Component>,
    /// Which operations belong to which component.
    pub operations: BTreeMap<String, OperationSettings>,
    /// The runtime with which a publication sends the same calls to the same backend.
    pub runtime: Runtime,
    /// The names of the routes.
    pub routes: Vec<String>,
    /// The differences of a publication from the routes.
    pub notes: Vec<String>,
}

/// Makes a version of the routes of a service.
///
/// # Errors
/// There is no such service with routes. The message names those that there are.
pub fn adopt(model: &Model, dialect: DialectName, service: &str, version: &str) -> Result<Adopted, String> {
    let of_dialect = |it: &&Route| it.dialect == dialect;
    let routes = model.routes.iter().map(AsRef::as_ref).filter(of_dialect);
    let is_of_it = |it: &&Route| matches!(&it.target, RouteTarget::Service(name) if name == service);
    let own: Vec<&Route> = routes.clone().filter(is_of_it).collect();
    let target = model.services.iter().find(|it| it.name == service);
    let (false, Some(target)) = (own.is_empty(), target) else {
        let known: BTreeSet<&str> = routes
            .filter_map(|it| match &it.target {
                RouteTarget::Service(name) => Some(name.as_str()),
                RouteTarget::Respond(_) => None,
            })
            .collect();
        let known: Vec<&str> = known.into_iter().take(20).collect();
        return Err(match known.is_empty() {
            true => format!("{dialect} has no service with routes"),
            false => format!(
                "{dialect} has no service '{service}' with routes; it has {}",
                known.join(", ")
            ),
        });
    };
    let mut adoption = Adoption::of(&own);
    adoption.hosts(&own);
    for route in &own {
        adoption.route(route);
    }
    adoption.backend(model, target, &own);
    let mut adopted = adoption.adopted;
    adopted.routes = own.iter().map(|it| it.name.clone()).collect();
    adopted.document = json!({
        "openapi": "3.1.0",
        "info": { "title": service, "version": version },
        "paths": adoption.paths,
    });
    Ok(adopted)
}

#[derive(Debug, Default)]
struct Adoption {
    adopted: Adopted,
    paths: Map<String, Value>,
    ids: BTreeSet<String>,
    /// The path that is taken off all calls, which is the base path then.
    stripped: Option<String>,
}

/// The path of a pattern that takes this path and what is below it.
fn whole(pattern: &PathPattern) -> Option<&str> {
    match pattern {
        PathPattern::Any => Some("/"),
        PathPattern::Prefix(path) | PathPattern::Segments(path) => Some(path),
        _ => None,
    }
}

impl Adoption {
    fn of(routes: &[&Route]) -> Self {
        let mut adoption = Self::default();
        adoption.adopted.components.push(Component {
            name: MAIN.to_owned(),
            backend: MAIN.to_owned(),
            ..Component::default()
        });
        let all = || {
            routes
                .iter()
                .flat_map(|route| route.matches.iter().map(move |it| (route, it)))
        };
        let mut paths = all().map(|(_, it)| whole(&it.path));
        if let Some(Some(first)) = paths.next()
            && first != "/"
            && paths.all(|it| it == Some(first))
            && routes.iter().all(|it| it.path.strip_matched)
        {
            let base = first.trim_end_matches('/').to_owned();
            adoption.adopted.runtime.base_path.clone_from(&base);
            adoption.adopted.runtime.strip_base_path = true;
            adoption.stripped = Some(base);
        }
        adoption
    }

    fn note(&mut self, text: String) {
        if !self.adopted.notes.contains(&text) {
            self.adopted.notes.push(text);
        }
    }

    fn hosts(&mut self, routes: &[&Route]) {
        let of_match = |it: &RouteMatch| it.hosts.iter().map(ToString::to_string).collect::<Vec<String>>();
        let mut all = routes.iter().flat_map(|it| it.matches.iter().map(of_match));
        let first = all.next().unwrap_or_default();
        if all.all(|it| it == first) {
            self.adopted.runtime.hosts = first;
        } else {
            self.note(
                "the routes have different hosts; a publication has one list for all: see 'hosts'".to_owned(),
            );
        }
    }

    fn route(&mut self, route: &Route) {
        let name = &route.name;
        if route.path.strip_matched && self.stripped.is_none() {
            self.note(format!(
                "the route {name} strips its path before a call is forwarded; a publication forwards the whole path"
            ));
        }
        if !route.plugins.is_empty() {
            self.note(format!(
                "the route {name} runs {} plugins; add the ones that you need to the version's chain",
                route.plugins.len()
            ));
        }
        for one in &route.matches {
            let has_more = !one.headers.is_empty()
                || !one.remote_addrs.is_empty()
                || !one.snis.is_empty()
                || one.when.is_some();
            if has_more {
                self.note(format!(
                    "the route {name} has conditions besides host, path and method"
                ));
            }
            match (&one.path, whole(&one.path)) {
                (_, Some(path)) => self.prefix(name, path, &one.methods),
                (PathPattern::Exact(path), _) => self.operations(name, path, &one.methods, None),
                (PathPattern::Template(parts), _) => match template(parts) {
                    Some(path) => self.operations(name, &path, &one.methods, None),
                    None => self.note(format!(
                        "the route {name} matches paths below a parameter: {}",
                        one.path
                    )),
                },
                _ => self.note(format!(
                    "the route {name} has a path that is a regular expression: {}",
                    one.path
                )),
            }
        }
    }

    /// A path with all that is below it: a component of its own.
    fn prefix(&mut self, route: &str, path: &str, methods: &[String]) {
        let prefix = match &self.stripped {
            Some(_) => String::new(),
            None => path.to_owned(),
        };
        let same = |it: &Component| it.prefix.as_ref() == Some(&prefix) && it.methods == methods;
        if self.adopted.components.iter().any(same) {
            return;
        }
        let name = self.unique(slug(route), |it, name| {
            it.adopted.components.iter().any(|known| known.name == name)
        });
        self.adopted.components.push(Component {
            name: name.clone(),
            backend: MAIN.to_owned(),
            prefix: Some(prefix.clone()),
            methods: methods.to_vec(),
            ..Component::default()
        });
        let shown = if prefix.is_empty() { "/" } else { &prefix };
        self.operations(route, shown, methods, Some(&name));
    }

    fn operations(&mut self, route: &str, path: &str, methods: &[String], component: Option<&str>) {
        let all: Vec<String> = METHODS.iter().map(|it| (*it).to_owned()).collect();
        let methods = if methods.is_empty() {
            all.as_slice()
        } else {
            methods
        };
        let names = path_pattern::parameters(path);
        for method in methods.iter().filter(|it| *it != "HEAD" && *it != "CONNECT") {
            let method = method.to_lowercase();
            if self.paths.get(path).is_some_and(|it| it.get(&method).is_some()) {
                continue;
            }
            let id = self.unique(slug(&format!("{route}-{method}")), |it, id| it.ids.contains(id));
            self.ids.insert(id.clone());
            let parameter = |name: &&str| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
            let mut operation = json!({
                "operationId": id,
                "summary": format!("The route {route}"),
                "responses": { "default": { "description": "Whatever the backend answers" } },
            });
            if !names.is_empty() {
                operation["parameters"] = names.iter().map(parameter).collect();
            }
            let item = self.paths.entry(path.to_owned()).or_insert_with(|| json!({}));
            item[&method] = operation;
            if let Some(component) = component {
                let settings = OperationSettings {
                    component: Some(component.to_owned()),
                    ..OperationSettings::default()
                };
                self.adopted.operations.insert(id, settings);
            }
        }
    }

    fn unique(&self, wanted: String, is_taken: impl Fn(&Self, &str) -> bool) -> String {
        let wanted = if wanted.is_empty() {
            "route".to_owned()
        } else {
            wanted
        };
        let mut name = wanted.clone();
        let mut number = 2;
        while is_taken(self, &name) {
            let end = format!("-{number}");
            let room = wanted.len().min(MAX_LENGTH - end.len());
            name = format!("{}{end}", wanted[..room].trim_end_matches('-'));
            number += 1;
        }
        name
    }

    fn backend(&mut self, model: &Model, service: &Service, routes: &[&Route]) {
        let bases: BTreeSet<Option<&str>> = routes.iter().map(|it| it.path.base.as_deref()).collect();
        let base = match bases.len() {
            1 => bases.into_iter().next().flatten(),
            _ => {
                self.note("the routes put different paths before that of a call".to_owned());
                None
            }
        };
        let base = base.or(service.path.as_deref()).unwrap_or_default();
        let path = base.trim_end_matches('/');
        let mut backend = Backend::default();
        if let Some(url) = &service.url {
            backend.url = Some(format!("{}{path}", url.trim_end_matches('/')));
        }
        let upstream = service.upstream.as_ref();
        let upstream = upstream.and_then(|name| model.upstreams.iter().find(|it| it.name == *name));
        if let Some(upstream) = upstream {
            backend.scheme = json!(upstream.scheme).as_str().map(str::to_owned);
            backend.path = (!path.is_empty()).then(|| path.to_owned());
            let target = |it: &weir_model::Target| Target {
                host: it.host.clone(),
                port: it.port,
                weight: it.weight,
            };
            backend.targets = upstream.targets.iter().map(target).collect();
            if upstream.checks.is_some() {
                self.note("the upstream has health checks; add them to the backend".to_owned());
            }
        }
        if service.tls != weir_model::UpstreamTls::default() {
            self.note("the service has settings of TLS; add them to the backend".to_owned());
        }
        self.adopted.runtime.backends.insert(MAIN.to_owned(), backend);
    }
}

/// A path with parameters as OpenAPI writes it; `None`: it takes what is below it, too.
fn template(parts: &[TemplatePart]) -> Option<String> {
    let mut path = String::new();
    for part in parts {
        match part {
            TemplatePart::Literal(text) => path.push_str(text),
            TemplatePart::Parameter(name) => path.push_str(&format!("{{{name}}}")),
            TemplatePart::Rest(_) => return None,
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(routes: &Value) -> Model {
        let document = json!({
            "weir": 1,
            "services": [{ "name": "orders", "upstream": "pool", "path": "/api" }, { "name": "other", "url": "http://127.0.0.1:2" }],
            "upstreams": [{ "name": "pool", "targets": [{ "host": "10.0.0.1", "port": 80, "weight": 3 }] }],
            "routes": routes,
        });
        serde_json::from_value(document).expect("a model")
    }

    fn route(name: &str, matches: &Value, more: &Value) -> Value {
        let mut route = json!({ "name": name, "match": matches, "to": { "service": "orders" } });
        for (field, value) in more.as_object().expect("a map") {
            route[field] = value.clone();
        }
        route
    }

    #[test]
    fn routes_become_operations_and_prefixes_become_components() {
        let none = json!({});
        let model = model(&json!([
            route(
                "list",
                &json!([{ "path": "=/orders", "methods": ["GET", "HEAD"], "hosts": ["a.test"] }]),
                &none
            ),
            route(
                "one",
                &json!([{ "path": "/orders/{id}", "hosts": ["a.test"], "methods": ["GET"] }]),
                &none
            ),
            route(
                "files",
                &json!([{ "path": "/files", "hosts": ["a.test"] }]),
                &none
            ),
            route(
                "old",
                &json!([{ "path": "~/v[0-9]+", "hosts": ["a.test"], "snis": ["a.test"] }]),
                &none
            ),
        ]));
        let adopted = adopt(&model, DialectName::NATIVE, "orders", "1").expect("adopted");
        let paths = adopted.document["paths"].as_object().expect("paths");
        let operations: Vec<String> = paths
            .iter()
            .flat_map(|(path, item)| {
                item.as_object()
                    .into_iter()
                    .flatten()
                    .map(move |(method, _)| format!("{method} {path}"))
            })
            .collect();
        let files = METHODS.map(|it| format!("{} /files", it.to_lowercase()));
        let mut expected: Vec<String> = vec!["get /orders".to_owned(), "get /orders/{id}".to_owned()];
        expected.extend(files);
        let sorted = |mut it: Vec<String>| {
            it.sort();
            it
        };
        assert_eq!(sorted(operations), sorted(expected));
        assert_eq!(
            adopted.document["paths"]["/orders/{id}"]["get"]["parameters"][0]["name"],
            "id"
        );
        let components: Vec<(&str, Option<&str>)> = adopted
            .components
            .iter()
            .map(|it| (it.name.as_str(), it.prefix.as_deref()))
            .collect();
        assert_eq!(components, [("main", None), ("files", Some("/files"))]);
        assert_eq!(
            adopted.operations["files-get"].component.as_deref(),
            Some("files")
        );
        let backend = &adopted.runtime.backends["main"];
        assert_eq!(
            (
                adopted.runtime.hosts.as_slice(),
                backend.targets[0].weight,
                backend.path.as_deref()
            ),
            (&["a.test".to_owned()][..], 3, Some("/api"))
        );
        assert_eq!(adopted.notes.len(), 2, "{:?}", adopted.notes);
        crate::openapi::from_value(adopted.document).expect("it is OpenAPI");
    }

    #[test]
    fn a_path_that_is_taken_off_all_calls_becomes_the_base_path() {
        let stripped = json!({ "path": { "strip_matched": true } });
        let matches = json!([{ "path": "/orders" }]);
        let adopted = adopt(
            &model(&json!([route("a", &matches, &stripped)])),
            DialectName::NATIVE,
            "orders",
            "1",
        );
        let adopted = adopted.expect("adopted");
        assert_eq!(
            (
                adopted.runtime.base_path.as_str(),
                adopted.runtime.strip_base_path
            ),
            ("/orders", true)
        );
        assert_eq!(adopted.components[1].prefix.as_deref(), Some(""));
        assert!(
            adopted.notes.is_empty() && adopted.document["paths"]["/"].is_object(),
            "{adopted:?}"
        );
        let two = json!([
            route("a", &matches, &stripped),
            route("b", &json!([{ "path": "/more" }]), &stripped)
        ]);
        let adopted = adopt(&model(&two), DialectName::NATIVE, "orders", "1").expect("adopted");
        assert!(
            !adopted.runtime.strip_base_path && adopted.notes.len() == 2,
            "{adopted:?}"
        );
    }

    #[test]
    fn services_that_there_are_are_named() {
        let model = model(&json!([route("a", &json!([{ "path": "/a" }]), &json!({}))]));
        for (service, expected) in [("nothing", "it has orders"), ("other", "it has orders")] {
            let refused = adopt(&model, DialectName::NATIVE, service, "1").expect_err("refused");
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
