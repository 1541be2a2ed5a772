//! Prints a model as a `weir.yaml`: the text form, with short forms if they are equivalent.

use crate::shorthand::FIELDS;
use crate::translate::VERSION;
use crate::yaml;
use serde_json::{Map, Value, json};
use weir_model::{
    ChainStep, Consumer, Credential, Model, PathPattern, PathRewrite, PluginInstance, PluginRef, Route,
    RouteMatch, RouteTarget, StreamRoute, Target, Upstream, UpstreamHost,
};

/// The text form of `model`, always the same for equal models. Reading it gives an equal model.
pub fn print(model: &Model) -> String {
    yaml::to_text(&to_value(model))
}

/// The text form of `model` as a plain value.
pub(crate) fn to_value(model: &Model) -> Value {
    let mut map = fields(&Model {
        routes: Vec::new(),
        stream_routes: Vec::new(),
        upstreams: Vec::new(),
        consumers: Vec::new(),
        plugins: Vec::new(),
        unmatched: Vec::new(),
        weir: VERSION,
        ..model.clone()
    });
    let mut put = |name: &str, items: Vec<Value>| {
        if !items.is_empty() {
            map.insert(name.to_owned(), Value::Array(items));
        }
    };
    put("routes", model.routes.iter().map(|it| route(it)).collect());
    put(
        "stream_routes",
        model.stream_routes.iter().map(stream_route).collect(),
    );
    put(
        "upstreams",
        model.upstreams.iter().map(|it| upstream(it)).collect(),
    );
    put("consumers", model.consumers.iter().map(consumer).collect());
    let plugins = model.plugins.iter().map(|it| Value::Object(instance(it, true)));
    put("plugins", plugins.collect());
    put("unmatched", model.unmatched.iter().map(step).collect());
    in_order(map, &FIELDS.document)
}

fn fields<T: serde::Serialize>(value: &T) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => map,
        _ => unreachable!("invariant: the model's resources are maps of plain values"),
    }
}

/// The same map in the order of `names`, with everything else behind.
fn in_order(mut map: Map<String, Value>, names: &[String]) -> Value {
    let mut ordered = Map::new();
    for name in names {
        if let Some((name, value)) = map.remove_entry(name) {
            ordered.insert(name, value);
        }
    }
    ordered.extend(map);
    Value::Object(ordered)
}

fn route(route: &Route) -> Value {
    let plain = Route {
        plugins: Vec::new(),
        ..route.clone()
    };
    let mut map = fields(&plain);
    if let Some(words) = match_words(&route.matches) {
        map.remove("match");
        map.extend(words);
    }
    if let RouteTarget::Service(name) = &route.target {
        map.remove("to");
        map.insert("service".to_owned(), json!(name));
    }
    let only_strips = PathRewrite {
        strip_matched: true,
        ..PathRewrite::default()
    };
    if route.path == only_strips {
        map.remove("path");
        map.insert("strip_prefix".to_owned(), json!(true));
    }
    if route.upstream_host == UpstreamHost::Client {
        map.remove("upstream_host");
        map.insert("preserve_host".to_owned(), json!(true));
    }
    if !route.plugins.is_empty() {
        map.insert("plugins".to_owned(), route.plugins.iter().map(step).collect());
    }
    in_order(map, &FIELDS.route)
}

fn stream_route(route: &StreamRoute) -> Value {
    let mut map = fields(&StreamRoute {
        plugins: Vec::new(),
        ..route.clone()
    });
    if !route.plugins.is_empty() {
        map.insert("plugins".to_owned(), route.plugins.iter().map(step).collect());
    }
    Value::Object(map)
}

/// `hosts`, `paths`, `methods` and `headers`, if they express everything in the matches.
fn match_words(matches: &[RouteMatch]) -> Option<Map<String, Value>> {
    let first = matches.first()?;
    let says_more = |it: &RouteMatch| {
        !it.remote_addrs.is_empty() || !it.snis.is_empty() || it.when.is_some() || it.precedence.is_some()
    };
    let without_path = |it: &RouteMatch| RouteMatch {
        path: PathPattern::Any,
        ..it.clone()
    };
    let common = without_path(first);
    if says_more(first) || matches.iter().any(|it| without_path(it) != common) {
        return None;
    }
    let mut map = fields(&common);
    let paths: Vec<Value> = matches.iter().map(|it| json!(it.path)).collect();
    if map.is_empty() || matches.len() > 1 || first.path != PathPattern::Any {
        map.insert("paths".to_owned(), Value::Array(paths));
    }
    Some(map)
}

fn upstream(upstream: &Upstream) -> Value {
    let mut map = fields(upstream);
    map.insert(
        "targets".to_owned(),
        upstream.targets.iter().map(target).collect(),
    );
    Value::Object(map)
}

fn target(target: &Target) -> Value {
    let map = fields(target);
    // The host and the port are always there; more means a weight or a priority of its own.
    if map.len() > 2 {
        return Value::Object(map);
    }
    let Target { host, port, .. } = target;
    if host.contains(':') {
        json!(format!("[{host}]:{port}"))
    } else {
        json!(format!("{host}:{port}"))
    }
}

fn consumer(consumer: &Consumer) -> Value {
    let mut map = fields(consumer);
    if consumer.username.as_ref() == Some(&consumer.id) {
        map.remove("id");
        map.remove("username");
        map.insert("name".to_owned(), json!(consumer.id));
    }
    if !consumer.credentials.is_empty() {
        let credentials = consumer.credentials.iter().map(credential);
        map.insert("credentials".to_owned(), credentials.collect());
    }
    in_order(map, &FIELDS.consumer)
}

fn credential(credential: &Credential) -> Value {
    if FIELDS.credential.contains(&credential.plugin) {
        return json!(credential);
    }
    let mut map = Map::new();
    map.insert(credential.plugin.clone(), credential.config.clone());
    if let Some(end) = credential.expires {
        map.insert("expires".to_owned(), json!(end));
    }
    if let Some(id) = &credential.id {
        map.insert("id".to_owned(), json!(id));
    }
    Value::Object(map)
}

/// An instance with the plugin's name as a key; its id first if others refer to it.
fn instance(instance: &PluginInstance, is_shared: bool) -> Map<String, Value> {
    let mut own = fields(instance);
    let is_field = |name: &String| FIELDS.instance.contains(name) || FIELDS.step.contains(name);
    if is_field(&instance.name) {
        return own;
    }
    own.remove("name");
    own.remove("config");
    let mut map = Map::new();
    if is_shared && let Some((id, value)) = own.remove_entry("id") {
        map.insert(id, value);
    }
    map.insert(instance.name.clone(), instance.config.clone());
    map.extend(own);
    map
}

fn step(step: &ChainStep) -> Value {
    let own = fields(&ChainStep {
        plugin: None,
        ..step.clone()
    });
    let mut map = match &step.plugin {
        Some(PluginRef::Inline(inline)) => instance(inline, false),
        Some(PluginRef::Shared(id)) => Map::from_iter([("use".to_owned(), json!(id))]),
        None => Map::new(),
    };
    map.extend(own);
    Value::Object(map)
}
