//! Components as services, operations as routes.

use super::access::Head;
use super::backends::Upstreams;
use super::{Content, Renderer, canary_condition};
use crate::entities::{Canary, Component, OperationSettings};
use crate::naming::{plugin_of, slug};
use crate::openapi::{Operation, UniqueNames};
use crate::path_pattern::{encoded, is_dots, pattern};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

impl Renderer<'_> {
    /// The service documents of a revision. Those of a canary are added to the others, under a condition.
    pub fn services(
        &mut self,
        content: &Content<'_>,
        upstreams: &Upstreams,
        head: &Head,
        canary: Option<&Canary>,
    ) {
        let components = &content.revision.components;
        if components.is_empty() {
            self.fault(
                "components",
                "expected at least one component, with the name of a backend",
            );
            return;
        }
        for (index, component) in components.iter().enumerate() {
            let Some(upstream) = upstreams.get(&component.backend) else {
                let place = format!("runtime.backends.{}", component.backend);
                let message = format!(
                    "the component '{}' needs an address of the backend '{}' in this environment",
                    component.name, component.backend
                );
                if !self.faults.iter().any(|it| it.place == place) {
                    self.fault(place, message);
                }
                continue;
            };
            let is_other = canary.is_some_and(|it| it.backends.contains_key(&component.backend));
            let backend = match is_other {
                true => format!("{}.canary", component.backend),
                false => component.backend.clone(),
            };
            let strip = self.strip(&backend, path_of(upstream));
            let suffix = if canary.is_some() { ".canary" } else { "" };
            let name = format!("{}.{}{suffix}", self.name, component.name);
            let mut routes = Routes {
                name: &name,
                content,
                component,
                head,
                strip: strip.as_deref(),
                canary,
                names: UniqueNames::default(),
                made: Vec::new(),
            };
            routes.all(self, index == 0);
            let made = routes.made;
            if made.is_empty() {
                continue;
            }
            let mut service = Map::new();
            service.insert("name".to_owned(), name.as_str().into());
            service.extend(upstream.clone());
            if let Some(retries) = component.retries {
                service.insert("retries".to_owned(), retries.into());
            }
            if let Some(timeouts) = &component.timeouts {
                service.insert("timeouts".to_owned(), timeouts.clone());
            }
            service.insert("routes".to_owned(), Value::Array(made));
            self.document("services", name, Value::Object(service));
        }
    }

    /// A route for calls below the base path that no operation takes: wrong methods and unknown paths of a version that
    /// ends. It says so as all others do, and goes behind every other route.
    pub fn unmatched(&mut self, head: &Head) {
        let publication = self.input.publication;
        let base = encoded(publication.runtime.base_path.trim_end_matches('/'));
        let hosts = &publication.runtime.hosts;
        // What has neither is not told from calls for others.
        if head.headers.is_empty() || (base.is_empty() && hosts.is_empty()) {
            return;
        }
        let of = |path: String| {
            let mut condition = json!({ "path": path, "precedence": 0 });
            if !hosts.is_empty() {
                condition["hosts"] = json!(hosts);
            }
            condition
        };
        let mut matches = vec![of(format!("{base}/*"))];
        if !base.is_empty() {
            matches.push(of(format!("={base}")));
        }
        let name = format!("{}.unmatched", self.name);
        let value = json!({
            "name": name,
            "match": matches,
            "to": { "respond": { "status": 404, "before_plugins": true, "last": true } },
            "response_headers": head.headers,
            "labels": {
                "api": publication.api,
                "version": publication.version,
                "environment": publication.environment,
                "operation": "",
                "revision": self.input.stable.revision.number.to_string(),
            },
        });
        self.document("routes", name, value);
    }

    /// The plugin that puts a backend's path in place of the base path.
    fn strip(&mut self, backend: &str, path: &str) -> Option<String> {
        let runtime = &self.input.publication.runtime;
        let base = runtime.base_path.trim_end_matches('/');
        if !runtime.strip_base_path || base.is_empty() {
            return None;
        }
        let suffix = match path.is_empty() {
            true => "strip".to_owned(),
            false => format!("strip.{backend}"),
        };
        let id = format!("{}.{suffix}", self.name);
        if self
            .documents
            .iter()
            .any(|it| it.kind == "plugins" && it.name == id)
        {
            return Some(id);
        }
        let pattern = format!("^{}/?", regex::escape(&encoded(base)));
        let config = json!({ "path_patterns": [{ "pattern": pattern, "replacement": format!("{path}/") }] });
        Some(self.plugin(&suffix, "request-rewrite", config))
    }
}

struct Routes<'r> {
    name: &'r str,
    content: &'r Content<'r>,
    component: &'r Component,
    head: &'r Head,
    strip: Option<&'r str>,
    canary: Option<&'r Canary>,
    names: UniqueNames,
    made: Vec<Value>,
}

impl Routes<'_> {
    fn all(&mut self, renderer: &mut Renderer<'_>, is_first: bool) {
        if let Some(prefix) = &self.component.prefix {
            let path = encoded(&joined(&renderer.input.publication.runtime.base_path, prefix));
            let methods: Vec<&str> = self.component.methods.iter().map(String::as_str).collect();
            self.add(renderer, "all".to_owned(), &path, &methods, None, &[]);
            return;
        }
        let none = OperationSettings::default();
        let operations = &self.content.description.operations;
        let has_head: HashSet<&str> = operations
            .iter()
            .filter(|it| it.method == "HEAD")
            .map(|it| it.path.as_str())
            .collect();
        for operation in operations {
            let settings = self
                .content
                .revision
                .operations
                .get(&operation.id)
                .unwrap_or(&none);
            let is_here = match &settings.component {
                Some(name) => *name == self.component.name,
                None => is_first,
            };
            if !is_here || settings.hidden || !is_served(&operation.method) {
                continue;
            }
            let path = joined(&renderer.input.publication.runtime.base_path, &operation.path);
            let path = pattern(&path, |it| it.is_ascii_alphanumeric() || it == '_');
            let mut methods = vec![operation.method.as_str()];
            if operation.method == "GET" && !has_head.contains(operation.path.as_str()) {
                methods.push("HEAD");
            }
            let name = self.name_of(operation);
            self.add(
                renderer,
                name,
                &path,
                &methods,
                Some(operation),
                &settings.plugins,
            );
        }
    }

    fn name_of(&mut self, operation: &Operation) -> String {
        let wanted = slug(&operation.id);
        self.names.unique(match wanted.is_empty() {
            true => "operation".to_owned(),
            false => wanted,
        })
    }

    fn add(
        &mut self,
        renderer: &Renderer<'_>,
        name: String,
        path: &str,
        methods: &[&str],
        operation: Option<&Operation>,
        own: &[Value],
    ) {
        let publication = renderer.input.publication;
        let mut chain = self.head.steps(operation.map(|it| it.id.as_str()));
        let owner = format!("{}.{}", publication.environment, publication.api);
        let written = self.content.revision.chain.iter().chain(&self.component.plugins);
        chain.extend(written.chain(own).map(|step| with_own_cache_keys(step, &owner)));
        chain.extend(self.strip.map(|id| json!({ "use": id })));
        let mut route = json!({ "name": format!("{}.{name}", self.name) });
        let hosts = &publication.runtime.hosts;
        match self.canary {
            None => {
                if !hosts.is_empty() {
                    route["hosts"] = json!(hosts);
                }
                route["paths"] = json!([path]);
                if !methods.is_empty() {
                    route["methods"] = json!(methods);
                }
            }
            Some(canary) => {
                let mut condition = json!({ "path": path, "when": canary_condition(canary) });
                if !hosts.is_empty() {
                    condition["hosts"] = json!(hosts);
                }
                if !methods.is_empty() {
                    condition["methods"] = json!(methods);
                }
                route["match"] = json!([condition]);
            }
        }
        let mut headers = self.head.headers.clone();
        if headers.is_empty() && operation.is_some_and(|it| it.deprecated) {
            let since = format!("@{}", self.content.revision.created);
            headers.push(json!({ "name": "Deprecation", "value": { "text": since } }));
        }
        if !headers.is_empty() {
            route["response_headers"] = Value::Array(headers);
        }
        route["labels"] = json!({
            "api": publication.api,
            "version": publication.version,
            "environment": publication.environment,
            "operation": operation.map_or("", |it| it.id.as_str()),
            "revision": self.content.revision.number.to_string(),
        });
        if !chain.is_empty() {
            route["plugins"] = Value::Array(chain);
        }
        self.made.push(route);
    }
}

/// A step of a chain whose cache, if it is one, has keys that no other API's cache has. All caches of one name share a store.
fn with_own_cache_keys(step: &Value, owner: &str) -> Value {
    let mut step = step.clone();
    add_owner(&mut step, owner);
    step
}

fn add_owner(value: &mut Value, owner: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| add_owner(item, owner)),
        Value::Object(fields) => {
            let is_cache = |field: &&String| plugin_of(fields, field) == "proxy-cache";
            let caches: Vec<String> = fields.keys().filter(is_cache).cloned().collect();
            for field in caches {
                if let Some(Value::Array(key)) = fields[&field].get_mut("key") {
                    key.insert(0, owner.into());
                }
            }
            fields.values_mut().for_each(|field| add_owner(field, owner));
        }
        _ => {}
    }
}

/// Whether calls with a method, in capital letters, reach a route at all.
pub fn is_served(method: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_');
    !matches!(method, "" | "CONNECT" | "TRACE") && method.bytes().all(is_good)
}

/// The path of a backend, without a slash at its end.
fn path_of(upstream: &Map<String, Value>) -> &str {
    let text = |field: &str| upstream.get(field).and_then(Value::as_str);
    let of_url = text("url").and_then(|url| url.split_once("://"));
    let path = match of_url {
        Some((_, rest)) => rest.find('/').map_or("", |at| &rest[at..]),
        None => text("path").unwrap_or_default(),
    };
    path.trim_end_matches('/')
}

/// Why no call could begin with a base path.
pub fn base_path_fault(base: &str) -> Option<String> {
    let is_ambiguous = |segment: &str| {
        let upper = segment.to_ascii_uppercase();
        segment.is_empty() || is_dots(segment) || upper.contains("%2F") || upper.contains("%5C")
    };
    let whole = base.trim_end_matches('/');
    if whole.is_empty() {
        return None;
    }
    let wrong = match whole.strip_prefix('/') {
        None => "that begins with '/'",
        Some(rest) if rest.contains(|it: char| it.is_control() || "?#\\".contains(it)) => {
            "without '?', '#', '\\' and control characters"
        }
        Some(rest) if rest.split('/').any(is_ambiguous) => {
            "without empty segments, '.', '..', '%2F' and '%5C'"
        }
        // The parameters of a path are those of its operations: here they would take any segment, and no message would say so.
        Some(rest) if rest.contains(['{', '}']) => {
            "without parameters: '{' and '}' belong to paths of operations"
        }
        Some(_) => return None,
    };
    Some(format!("expected a path {wrong}, found '{base}'"))
}

/// The base path, followed by a path.
fn joined(base: &str, path: &str) -> String {
    format!("{}{path}", base.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_have_paths() {
        for (upstream, expected) in [
            (json!({"url": "http://a:1"}), ""),
            (json!({"url": "http://a:1/"}), ""),
            (json!({"url": "https://a/b/c"}), "/b/c"),
            (json!({"upstream": "u", "path": "/p/"}), "/p"),
            (json!({"upstream": "u"}), ""),
        ] {
            assert_eq!(
                path_of(upstream.as_object().expect("a map")),
                expected,
                "{upstream}"
            );
        }
    }

    #[test]
    fn base_paths_are_such_that_calls_can_have_them() {
        for base in ["", "/", "/v1", "/v1/", "/old files/ü", "/v1.2/~x"] {
            assert_eq!(base_path_fault(base), None, "{base}");
        }
        for base in [
            "v1",
            "/v1?x",
            "/v1#x",
            "/a//b",
            "//a",
            "/a/../b",
            "/./a",
            "/%2e%2e",
            "/a/%2E",
            "/.%2e/a",
            "/a%2fb",
            "/a\\b",
            "/a\nb",
            "/{tenant}/v1",
            "/a}",
        ] {
            assert!(base_path_fault(base).is_some(), "{base}");
        }
    }

    #[test]
    fn paths_follow_the_base_path() {
        assert_eq!(joined("/v1/", "/a"), "/v1/a");
        assert_eq!(joined("", "/a"), "/a");
    }

    /// An API that names another one's route in the key of its cache neither reads nor replaces what is kept for that.
    #[test]
    fn keys_of_caches_belong_to_their_api() {
        for (step, expected) in [
            (
                json!({"proxy-cache": {"key": ["test.other.1.main.x", "$uri"]}}),
                json!({"proxy-cache": {"key": ["test.orders", "test.other.1.main.x", "$uri"]}}),
            ),
            (
                json!({"name": "proxy-cache", "config": {"key": ["$uri"]}}),
                json!({"name": "proxy-cache", "config": {"key": ["test.orders", "$uri"]}}),
            ),
            (
                json!({"use": {"name": "proxy-cache", "config": {"key": ["$uri"]}}}),
                json!({"use": {"name": "proxy-cache", "config": {"key": ["test.orders", "$uri"]}}}),
            ),
            (json!({"proxy-cache": {}}), json!({"proxy-cache": {}})),
            (json!({"cors": {"key": ["a"]}}), json!({"cors": {"key": ["a"]}})),
        ] {
            assert_eq!(with_own_cache_keys(&step, "test.orders"), expected);
        }
    }
}
