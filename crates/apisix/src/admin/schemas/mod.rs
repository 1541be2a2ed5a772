//! The schemas of resources and plugins, as JSON Schema.

mod priorities;

use super::call::ApiCall;
use super::check::{AUTHENTICATING, STREAM_PLUGINS};
use super::encrypted_fields::secret_fields;
use super::kind::Kind;
use super::response::ApiResponse;
use crate::plugins::{is_known, mapping, meta_shape, mqtt_proxy, unserved};
use crate::schema::{Schema, array, boolean, integer, number, object, text};
use axum::http::StatusCode;
use priorities::{NOT_LOADED, PRIORITIES};
use serde_json::{Map, Value, json};
use weir_dialect::plugin_fields::{self, ConfigPart, FieldTable};

/// The kinds whose schema the control API shows.
const TOLD: [Kind; 11] = [
    Kind::Consumer,
    Kind::ConsumerGroup,
    Kind::GlobalRule,
    Kind::CostDecoration,
    Kind::PluginConfig,
    Kind::Proto,
    Kind::Route,
    Kind::Service,
    Kind::Ssl,
    Kind::StreamRoute,
    Kind::Upstream,
];

/// Plugins whose version is not the first.
const VERSIONS: [(&str, f64); 4] = [
    ("ai-proxy", 0.5),
    ("ai-proxy-multi", 0.5),
    ("limit-count", 0.5),
    ("openid-connect", 0.2),
];

/// The descriptions of the fields of `_meta`.
const META: [(&str, &str); 3] = [
    (
        "filter",
        "filter determines whether the plugin needs to be executed at runtime",
    ),
    ("priority", "priority of plugins by customized order"),
    (
        "pre_function",
        "function to be executed in each phase before execution of plugins. The pre_function will have access to \
         two arguments: `conf` and `ctx`.",
    ),
];

/// Plugins that work for all calls or for none.
const GLOBAL: [&str; 6] = [
    "ai",
    "batch-requests",
    "error-log-logger",
    "log-rotate",
    "node-status",
    "server-info",
];

/// The list of plugins to load.
fn plugins_shape() -> Schema {
    array(object([("name", text().longer(1)), ("stream", boolean())]).required(["name"]))
}

/// `GET /schema/{resource}`.
pub fn resource(name: &str) -> ApiResponse {
    let kind = Kind::ALL.into_iter().find(|kind| kind.schema_name() == name);
    let schema = match (kind.and_then(Kind::shape), name) {
        (Some(shape), _) => shape.to_json_schema(),
        (None, "plugins") => plugins_shape().to_json_schema(),
        (None, _) => return ApiResponse::bad(format!("not found schema: {name}")),
    };
    ApiResponse::json(StatusCode::OK, &schema)
}

/// `GET /plugins/{name}` and `GET /schema/plugins/{name}`.
pub fn plugin(call: &ApiCall, name: &str) -> ApiResponse {
    let subsystem = call.arg("subsystem").unwrap_or("http");
    if !["http", "stream"].contains(&subsystem) {
        return ApiResponse::bad(format!("unsupported subsystem: {subsystem}"));
    }
    let is_stream = subsystem == "stream";
    if call.arg("all") == Some("true") {
        return ApiResponse::json(StatusCode::OK, &all(is_stream));
    }
    let is_there = match is_stream {
        true => STREAM_PLUGINS.contains(&name),
        false => is_known(name),
    };
    if !is_there {
        return ApiResponse::error(
            StatusCode::NOT_FOUND,
            format!("plugin not found in subsystem {subsystem}"),
        );
    }
    let about = match is_stream {
        true => about_stream(name),
        false => about(name),
    };
    let schema = match call.arg("schema_type") {
        Some("consumer") => about.get("consumer_schema"),
        _ => about.get("schema"),
    };
    match schema {
        Some(schema) => ApiResponse::json(StatusCode::OK, schema),
        None => ApiResponse::bad("not found schema"),
    }
}

/// `GET /plugins/list`: names, the one that works first first.
pub fn plugin_names(call: &ApiCall) -> ApiResponse {
    let names: Vec<&str> = match call.arg("subsystem") {
        None | Some("http") => PRIORITIES
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| !NOT_LOADED.contains(name) || mapping(name).is_some())
            .collect(),
        Some("stream") => STREAM_PLUGINS.to_vec(),
        Some(_) => return ApiResponse::text(StatusCode::BAD_REQUEST, "invalid subsystem passed"),
    };
    ApiResponse::json(StatusCode::OK, &names)
}

/// The names of all plugins, the one that works first first.
pub fn in_order() -> impl Iterator<Item = &'static str> {
    let served_elsewhere = STREAM_PLUGINS
        .into_iter()
        .filter(|name| PRIORITIES.iter().all(|(known, _)| known != name));
    PRIORITIES.iter().map(|(name, _)| *name).chain(served_elsewhere)
}

/// `GET /v1/schema` of the control API.
pub fn everything() -> Value {
    let mut main = Map::new();
    for kind in TOLD {
        let schema = kind.shape().map(Schema::to_json_schema);
        main.insert(kind.schema_name().to_owned(), schema.unwrap_or_default());
    }
    main.insert("plugins".to_owned(), plugins_shape().to_json_schema());
    for name in ["upstream_hash_header_schema", "upstream_hash_vars_schema"] {
        main.insert(name.to_owned(), json!({"type": "string"}));
    }
    json!({"main": main, "plugins": all(false), "stream_plugins": all(true)})
}

/// All plugins with what is known of each.
fn all(is_stream: bool) -> Map<String, Value> {
    let names: Vec<&str> = match is_stream {
        true => STREAM_PLUGINS.to_vec(),
        false => PRIORITIES.iter().map(|(name, _)| *name).collect(),
    };
    names
        .into_iter()
        .map(|name| {
            let description = match is_stream {
                true => about_stream(name),
                false => about(name),
            };
            (name.to_owned(), Value::Object(description))
        })
        .collect()
}

/// The answer for a plugin that is served: `schema`, and if it has them `consumer_schema` and `metadata_schema`.
pub fn plugin_schemas(name: &str) -> Option<Map<String, Value>> {
    mapping(name).map(|_| about(name))
}

/// What they say, as tables.
pub fn plugin_fields(name: &str) -> Vec<FieldTable> {
    let schemas = plugin_schemas(name).unwrap_or_default();
    let parts = [
        ("schema", ConfigPart::Plugin),
        ("consumer_schema", ConfigPart::Consumer),
        ("metadata_schema", ConfigPart::Metadata),
    ];
    let table = |(field, part)| {
        let mut schema = schemas.get(field)?.clone();
        // Every plugin has it, so it is not listed as a field of one.
        if let Some(fields) = schema["properties"].as_object_mut() {
            fields.retain(|name, _| name != "_meta");
        }
        let fields = plugin_fields::of_json_schema(&schema);
        Some(FieldTable { part, fields })
    };
    parts.into_iter().filter_map(table).collect()
}

/// The schemas of a plugin of connections. Some are different there than for calls.
fn about_stream(name: &str) -> Map<String, Value> {
    let own = match name {
        "limit-conn" => object([
            ("conn", integer().above(0)),
            ("burst", integer().at_least(0)),
            ("default_conn_delay", number().above(0)),
            ("only_use_default_delay", boolean().or(false)),
            ("key", text()),
            ("key_type", text().options(["var", "var_combination"]).or("var")),
        ])
        .required(["conn", "burst", "default_conn_delay", "key"]),
        mqtt_proxy::NAME => mqtt_proxy::shape(),
        name => return about(name),
    };
    let mut about = about(name);
    about.insert("schema".to_owned(), with_meta(own.to_json_schema()));
    about
}

/// The schemas of a plugin.
fn about(name: &str) -> Map<String, Value> {
    let mut about = Map::new();
    let mut put = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            about.insert(field.to_owned(), value);
        }
    };
    let version = VERSIONS.iter().find(|(known, _)| *known == name);
    put(
        "version",
        Some(json!(version.map_or(0.1, |(_, version)| *version))),
    );
    put("type", AUTHENTICATING.contains(&name).then(|| json!("auth")));
    put(
        "type",
        (name == "request-validation").then(|| json!("validation")),
    );
    put("scope", GLOBAL.contains(&name).then(|| json!("global")));
    let priority = PRIORITIES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, priority)| *priority)
        // It works on connections alone.
        .or_else(|| (name == mqtt_proxy::NAME).then_some(1000));
    match mapping(name) {
        Some(mapping) => {
            put("priority", Some(json!(mapping.priority())));
            let mut schema = with_meta(mapping.shape().to_json_schema());
            let secrets: Vec<_> = secret_fields(name).collect();
            match mapping.credentials() {
                Some(_) => schema["title"] = json!("work with route or service object"),
                None if !secrets.is_empty() => schema["encrypt_fields"] = json!(secrets),
                None => {}
            }
            put("schema", Some(schema));
            put(
                "metadata_schema",
                mapping.metadata_shape().map(Schema::to_json_schema),
            );
            if let Some(credentials) = mapping.credentials() {
                let mut schema = credentials.shape().to_json_schema();
                schema["title"] = json!("work with consumer object");
                if !secrets.is_empty() {
                    schema["encrypt_fields"] = json!(secrets);
                }
                put("consumer_schema", Some(schema));
            }
        }
        None => {
            put("priority", priority.map(Value::from));
            let schemas = unserved(name).map(|plugin| plugin.schemas());
            let schema = |which| schemas.and_then(|schemas| schemas.get(which)).cloned();
            let own = schema("schema").unwrap_or_else(|| json!({"type": "object"}));
            put("schema", Some(with_meta(own)));
            put("consumer_schema", schema("consumer_schema"));
            put("metadata_schema", schema("metadata_schema"));
        }
    }
    about
}

/// Every plugin's configuration may have `_meta`.
fn with_meta(mut schema: Value) -> Value {
    let mut meta = meta_shape().to_json_schema();
    for (field, description) in META {
        meta["properties"][field]["description"] = json!(description);
    }
    schema["properties"]["_meta"] = meta;
    // By this, tools see that `_meta` is not the plugin's own.
    schema["$comment"] = json!("this is a mark for our injected plugin schema");
    schema
}
