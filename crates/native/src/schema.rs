//! The JSON Schema of `weir.yaml`, from the types: the model's, the short forms', and every plugin's.

use crate::shorthand::{ConsumerShorthand, FIELDS, MATCH_WORDS, RouteShorthand, ServiceShorthand};
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use weir_model::{BalancingAlgorithm, KeepalivePool, Model, PathPattern, Route, Scheme, Service, Target};

/// The JSON Schema (draft 2020-12) of `weir.yaml`, for editors and for reference.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    generator.subschema_for::<Model>();
    let words = [
        properties_of(generator.subschema_for::<RouteShorthand>().to_value(), &generator),
        properties_of(
            generator.subschema_for::<ServiceShorthand>().to_value(),
            &generator,
        ),
        properties_of(
            generator.subschema_for::<ConsumerShorthand>().to_value(),
            &generator,
        ),
    ];
    let [route_words, service_words, consumer_words] = words;
    let mut types = generator.take_definitions(true);
    for name in ["RouteShorthand", "ServiceShorthand", "ConsumerShorthand"] {
        types.remove(name);
    }
    let plugins = add_plugins(&mut types);

    add_route_words(&mut types, route_words);
    if let Some(service) = types.get_mut("Service") {
        add_properties(service, service_words);
        service["properties"]["routes"]["items"] = json!({"$ref": "#/$defs/NestedRoute"});
        service["anyOf"] = json!([{"required": ["url"]}, {"required": ["upstream"]}]);
    }
    if let Some(consumer) = types.get_mut("Consumer") {
        add_properties(consumer, consumer_words);
        consumer["anyOf"] = json!([{"required": ["name"]}, {"required": ["id"]}]);
        forget_required(consumer, &["id"]);
    }
    add_plugin_words(&mut types, &plugins);
    add_defaults(&mut types);
    allow_text(&mut types, "Target", "`host:port`");
    document(types)
}

fn document(mut types: Map<String, Value>) -> Value {
    let mut model = types.remove("Model").unwrap_or_default();
    model["required"] = json!(["weir"]);
    model["properties"]["weir"] = json!({
        "description": "Version of the text form.",
        "const": 1,
    });
    let mut root = Map::new();
    root.insert(
        "$schema".to_owned(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    root.insert("title".to_owned(), json!("weir.yaml"));
    if let Value::Object(model) = model {
        root.extend(model);
    }
    types.sort_keys();
    root.insert("$defs".to_owned(), Value::Object(types));
    Value::Object(root)
}

fn properties_of(reference: Value, generator: &schemars::SchemaGenerator) -> Map<String, Value> {
    let name = reference["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next());
    let definition = name.and_then(|name| generator.definitions().get(name));
    match definition.and_then(|definition| definition.get("properties")) {
        Some(Value::Object(properties)) => without_null_defaults(properties.clone()),
        _ => Map::new(),
    }
}

/// A word that is left out says nothing; that is no default.
fn without_null_defaults(mut properties: Map<String, Value>) -> Map<String, Value> {
    for property in properties.values_mut().filter_map(Value::as_object_mut) {
        if property.get("default").is_some_and(Value::is_null) {
            property.remove("default");
        }
    }
    properties
}

/// Defaults that are something: those that the text form leaves out, and so the generator too.
fn add_defaults(types: &mut Map<String, Value>) {
    let service: Service = minimal(json!({"name": "", "url": ""}));
    let target: Target = minimal(json!({"host": "", "port": 1}));
    let route: Route = minimal(json!({"name": "", "match": [], "to": {"service": ""}}));
    for (name, field, default) in [
        ("Service", "retries", json!(service.retries)),
        ("Service", "timeouts", json!(service.timeouts)),
        ("Target", "weight", json!(target.weight)),
        ("Route", "upgrade", json!(route.upgrade)),
        ("NestedRoute", "upgrade", json!(route.upgrade)),
        ("ForwardedHeaders", "via", json!(route.forwarded.via)),
        ("Upstream", "keepalive", json!(KeepalivePool::default())),
        ("Upstream", "algorithm", json!(BalancingAlgorithm::default())),
        ("Upstream", "scheme", json!(Scheme::default())),
        ("RouteMatch", "path", json!(PathPattern::default())),
    ] {
        if let Some(property) = types.get_mut(name).and_then(|it| it["properties"].get_mut(field)) {
            property["default"] = default;
        }
    }
}

/// A resource of which only the required fields are given.
fn minimal<T: DeserializeOwned>(fields: Value) -> T {
    serde_json::from_value(fields).expect("invariant: all required fields are given")
}

fn add_properties(schema: &mut Value, more: Map<String, Value>) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.extend(more);
    }
}

fn forget_required(schema: &mut Value, names: &[&str]) {
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !names.iter().any(|gone| name == gone));
        if required.is_empty()
            && let Value::Object(map) = schema
        {
            map.remove("required");
        }
    }
}

/// A route names its matches in one of two ways, and outside of a service also its destination.
fn add_route_words(types: &mut Map<String, Value>, words: Map<String, Value>) {
    let Some(route) = types.get_mut("Route") else {
        return;
    };
    add_properties(route, words);
    forget_required(route, &["match", "to"]);
    let matches: Vec<Value> = MATCH_WORDS
        .iter()
        .chain(&["match"])
        .map(|word| json!({"required": [word]}))
        .collect();
    route["anyOf"] = Value::Array(matches);
    let mut nested = route.clone();
    nested["description"] = json!("A route of the service that contains it.");
    if let Some(Value::Object(properties)) = nested.get_mut("properties") {
        properties.retain(|name, _| FIELDS.nested_route.contains(name));
    }
    route["oneOf"] = json!([{"required": ["service"]}, {"required": ["to"]}]);
    types.insert("NestedRoute".to_owned(), nested);
}

/// The catalogue: what instances and credentials of each plugin look like.
struct PluginSchemas {
    /// Plugin name to (schema of its configuration, of its credentials).
    configs: Vec<(&'static str, Value)>,
    credentials: Vec<(&'static str, Value)>,
}

fn add_plugins(types: &mut Map<String, Value>) -> PluginSchemas {
    let mut plugins = PluginSchemas {
        configs: Vec::new(),
        credentials: Vec::new(),
    };
    for plugin in weir_plugins::registry().iter() {
        let name = plugin.name();
        let config = adopt(types, name, plugin.config_schema().to_value());
        plugins.configs.push((name, config));
        if let Some(kind) = plugin.credentials() {
            let credential = adopt(types, &format!("{name} credential"), kind.schema.to_value());
            plugins.credentials.push((name, credential));
        }
    }
    plugins
}

/// Takes a schema that was made on its own, with the definitions it brings, in among `types`. Returns a
/// reference to it.
fn adopt(types: &mut Map<String, Value>, name: &str, mut schema: Value) -> Value {
    let prefix = format!("{}.", name.replace(' ', "-"));
    if let Value::Object(map) = &mut schema {
        map.remove("$schema");
        if let Some(Value::Object(definitions)) = map.remove("$defs") {
            for (inner, mut definition) in definitions {
                rename_references(&mut definition, &prefix);
                types.insert(format!("{prefix}{inner}"), definition);
            }
        }
        map.insert("title".to_owned(), json!(name));
    }
    rename_references(&mut schema, &prefix);
    let name = prefix.trim_end_matches('.');
    types.insert(name.to_owned(), schema);
    json!({"$ref": format!("#/$defs/{name}")})
}

fn rename_references(schema: &mut Value, prefix: &str) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match value {
                    Value::String(reference) if key == "$ref" => {
                        *reference = reference.replace("#/$defs/", &format!("#/$defs/{prefix}"));
                    }
                    value => rename_references(value, prefix),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename_references(item, prefix)),
        _ => {}
    }
}

/// The short forms of plugins and credentials: the plugin's name is a key.
fn add_plugin_words(types: &mut Map<String, Value>, plugins: &PluginSchemas) {
    let names: Vec<&str> = plugins.configs.iter().map(|(name, _)| *name).collect();
    let one_of = |long: &str, names: &[(&'static str, Value)]| -> Value {
        std::iter::once(long)
            .chain(names.iter().map(|(name, _)| *name))
            .map(|name| json!({"required": [name]}))
            .collect()
    };
    // A plugin that needs no configuration may be written with none at all.
    let or_null = |(name, schema): &(&'static str, Value)| {
        ((*name).to_owned(), json!({"anyOf": [schema, {"type": "null"}]}))
    };
    let configs: Map<String, Value> = plugins.configs.iter().map(or_null).collect();
    if let Some(instance) = types.get_mut("PluginInstance") {
        instance["properties"]["name"]["enum"] = json!(names);
        add_properties(instance, configs.clone());
        forget_required(instance, &["name"]);
        instance["oneOf"] = one_of("name", &plugins.configs);
    }
    let instance_properties = match types.get("PluginInstance").and_then(|it| it.get("properties")) {
        Some(Value::Object(properties)) => properties.clone(),
        _ => Map::new(),
    };
    if let Some(step) = types.get_mut("ChainStep") {
        add_properties(step, instance_properties);
        let mut one_of = one_of("name", &plugins.configs);
        if let Value::Array(ways) = &mut one_of {
            ways.insert(0, json!({"required": ["use"]}));
        }
        let any = json!({"required": ["overrides"]});
        step["anyOf"] = json!([{"oneOf": one_of}, any]);
    }
    if let Some(credential) = types.get_mut("Credential") {
        let short: Map<String, Value> = plugins
            .credentials
            .iter()
            .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
            .collect();
        let names: Vec<&str> = plugins.credentials.iter().map(|(name, _)| *name).collect();
        credential["properties"]["plugin"]["enum"] = json!(names);
        add_properties(credential, short);
        forget_required(credential, &["plugin", "config"]);
        credential["oneOf"] = one_of("plugin", &plugins.credentials);
    }
}

/// Lets a resource be written as a text, too.
fn allow_text(types: &mut Map<String, Value>, name: &str, form: &str) {
    if let Some(schema) = types.get_mut(name) {
        let long = schema.take();
        *schema = json!({"anyOf": [{"type": "string", "description": form}, long]});
    }
}
