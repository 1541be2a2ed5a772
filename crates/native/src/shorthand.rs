//! The words of `weir.yaml` that are not the model's own: short forms for what most documents say.
//!
//! A short form never says more than the model's longer one; `translate` turns it into that. The doc comments
//! here are what the JSON Schema shows.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_model::{
    ChainStep, Consumer, Credential, HeaderMatch, HostPattern, Model, PathPattern, PluginInstance, Route,
    RouteMatch, Service, StreamRoute, Target, Upstream,
};

/// What a route may say in short.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RouteShorthand {
    /// Any of these hosts; left out: every host. Instead of `match`.
    pub hosts: Vec<HostPattern>,
    /// Any of these paths; left out: every path. Instead of `match`.
    pub paths: Vec<PathPattern>,
    /// Any of these methods; left out: every method. Instead of `match`.
    pub methods: Vec<String>,
    /// All of these headers. Instead of `match`.
    pub headers: Vec<HeaderMatch>,
    /// The service that gets the calls, by its name. Instead of `to`.
    #[schemars(with = "String")]
    pub service: Option<String>,
    /// Cut off the part of the path that matched. Short for `path: {strip_matched: true}`.
    #[schemars(with = "bool")]
    pub strip_prefix: Option<bool>,
    /// The upstream sees the Host that the client sent. Short for `upstream_host: client`.
    #[schemars(with = "bool")]
    pub preserve_host: Option<bool>,
    /// It takes no calls for the time being. It is checked all the same.
    pub disabled: bool,
}

/// The words of [`RouteShorthand`] that say which calls match.
pub(crate) const MATCH_WORDS: [&str; 4] = ["hosts", "paths", "methods", "headers"];

impl RouteShorthand {
    /// The matches that the words stand for: one a path.
    pub fn into_matches(self) -> Vec<RouteMatch> {
        let common = RouteMatch {
            hosts: self.hosts,
            methods: self.methods,
            headers: self.headers,
            ..RouteMatch::default()
        };
        if self.paths.is_empty() {
            return vec![common];
        }
        let with_path = |path| RouteMatch {
            path,
            ..common.clone()
        };
        self.paths.into_iter().map(with_path).collect()
    }
}

/// What a service may say in short.
#[derive(JsonSchema)]
#[allow(
    dead_code,
    reason = "read by hand, route by route; the type is there for the schema"
)]
pub(crate) struct ServiceShorthand {
    /// The routes that lead to this service. They come before the document's own `routes`.
    pub routes: Vec<Value>,
}

/// What a consumer may say in short.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "read by hand; the type is there for the schema")]
pub(crate) struct ConsumerShorthand {
    /// The consumer's name, as `id` and as the `username` that is sent to upstreams.
    pub name: String,
}

/// The fields that documents may have at each place, as they are there: from the types' schemas.
pub(crate) struct Fields {
    pub document: Vec<String>,
    pub service: Vec<String>,
    pub route: Vec<String>,
    pub nested_route: Vec<String>,
    pub route_words: Vec<String>,
    pub stream_route: Vec<String>,
    pub upstream: Vec<String>,
    pub target: Vec<String>,
    pub consumer: Vec<String>,
    pub credential: Vec<String>,
    pub instance: Vec<String>,
    pub step: Vec<String>,
}

/// The fields of each place.
pub(crate) static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    let mut route = of::<Route>();
    let route_words = of::<RouteShorthand>();
    // The words that a newcomer needs first are named first.
    route.splice(1..1, route_words.iter().cloned());
    let nested_route = route
        .iter()
        .filter(|name| !matches!(name.as_str(), "service" | "to"))
        .cloned()
        .collect();
    Fields {
        document: of::<Model>(),
        service: join(of::<Service>(), of::<ServiceShorthand>()),
        route,
        nested_route,
        route_words,
        stream_route: of::<StreamRoute>(),
        upstream: of::<Upstream>(),
        target: of::<Target>(),
        consumer: join(of::<ConsumerShorthand>(), of::<Consumer>()),
        credential: of::<Credential>(),
        instance: of::<PluginInstance>(),
        step: of::<ChainStep>(),
    }
});

/// The fields of a type, in their order.
fn of<T: JsonSchema>() -> Vec<String> {
    let schema = schemars::schema_for!(T);
    match schema.get("properties") {
        Some(Value::Object(properties)) => properties.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

fn join(mut first: Vec<String>, second: Vec<String>) -> Vec<String> {
    first.extend(second);
    first
}

/// The catalogue's plugin names, and those among them that have credentials.
pub(crate) struct PluginNames {
    pub all: Vec<&'static str>,
    pub with_credentials: Vec<&'static str>,
}

/// The plugin names of this build.
pub(crate) static PLUGINS: LazyLock<PluginNames> = LazyLock::new(|| {
    let registry = weir_plugins::registry();
    PluginNames {
        all: registry.iter().map(weir_plugin::Plugin::name).collect(),
        with_credentials: registry
            .iter()
            .filter(|plugin| plugin.credentials().is_some())
            .map(weir_plugin::Plugin::name)
            .collect(),
    }
});
