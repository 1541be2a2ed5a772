//! Plugins that a draft or an environment names, before they are stored: whether the caller may use what they use, whether
//! there are such plugins, and whether they take what is written. Without this, the first publish would tell.

use super::entity_snapshot::PREFIX;
use crate::access::{Action, Caller, Scope};
use crate::api::{Api, Problem};
use crate::secrets::Syntaxes;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use weir_apis::entities::{Backend, Draft, Plan, Runtime};
use weir_apis::naming::plugin_of;
use weir_dialect::DialectName;
use weir_store::Key;

/// The service that chains are tried in. It is not stored.
const SERVICE: &str = "native/services/weir.chains-that-are-tried";

/// A chain, and the field that it stands in.
pub type ChainWithPath<'c> = (String, &'c [Value]);

/// What a step may not use: the place, what it is, and why.
type RejectReason = (String, String);

/// Fields in which steps name plugins, tables, consumers and counters by their ids.
const NAMING: [&str; 5] = ["use", "overrides", "anonymous", "default_consumer", "scope"];

/// Fields that say whom callers count for, whichever plugin has them: consumers are those of all APIs.
const OF_CONSUMERS: [&str; 4] = ["anonymous", "default_consumer", "consumer_by", "consumer_claim"];

/// The same of single plugins.
const OF_CONSUMERS_IN: [(&str, &str); 5] = [
    ("oauth2-server", "all_services"),
    ("openid-connect", "consumer"),
    ("openid-connect", "client"),
    ("saml", "consumer"),
    ("mtls-auth", "registered"),
];

/// Plugins with which callers count for consumers that somebody else names: a server, or who knows the secret.
const ANY_CONSUMER: [&str; 2] = ["vault-auth", "session"];

/// Plugins that give away what a gateway knows of the calls and the faults of all APIs.
const OF_ALL_CALLS: [&str; 2] = ["metrics-endpoint", "gateway-log"];

/// Fields of plugins that send calls to a service or an upstream by its name.
const DESTINATIONS: [(&str, &str); 3] = [
    ("traffic-split", "service"),
    ("canary", "upstream"),
    ("route-by-header", "upstream"),
];

/// Plugins whose field `session` is not the plugin of this name; and one with fields for upstreams.
const WITH_OTHER_FIELDS: [&str; 4] = ["orchestration", "app-login", "cas-login", "casdoor-login"];

/// Plugins whose field `id` is that of a key.
const WITH_KEY_IDS: [&str; 2] = ["jwe-decrypt", "jwt-signer"];

/// Whether a plugin has fields that mean something else in others.
fn has_own_fields(plugin: &str) -> bool {
    let mut special = OF_CONSUMERS_IN.iter().chain(&DESTINATIONS);
    WITH_OTHER_FIELDS.contains(&plugin) || WITH_KEY_IDS.contains(&plugin) || special.any(|it| it.0 == plugin)
}

/// Whether a field names counters, a cache or other state of the gateway that everybody with this name shares. An instance
/// without an `id`, and a limit without a `scope`, has its own.
fn shares_state(plugin: &str, name: &str, value: &Value) -> bool {
    match name {
        "id" => value.is_string() && !WITH_KEY_IDS.contains(&plugin),
        "scope" => value.as_str().is_some_and(|it| !it.is_empty()),
        "zone" | "zone_bytes" | "purged_as" | "purge_below" => !value.is_null(),
        _ => false,
    }
}

/// Log files that are no files of the machine.
const STREAMS: [&str; 2] = ["/dev/stdout", "/dev/stderr"];

/// Refuses steps that use more than their author may. Who defines an API decides about its calls alone: other parts of the
/// configuration, secrets and files of gateways are for callers who may read or write all of it. What management names
/// is its own for all callers.
pub async fn permit(api: &Api, caller: &Caller, chains: &[ChainWithPath<'_>]) -> Result<(), Problem> {
    if chains.is_empty() {
        return Ok(());
    }
    let environments = format!("{PREFIX}environments/");
    let (documents, _) = api.store.read(&environments).await?;
    let names = documents
        .iter()
        .filter_map(|it| it.key.as_str().strip_prefix(&environments));
    let syntaxes = Syntaxes::of(&api.options.dialects);
    let references = syntaxes.within(Some(DialectName::NATIVE));
    let check = ChainRights {
        environments: names.collect(),
        is_reference: &|text: &str| references.is_reference(text),
        reads_all: caller.can(Action::ConfigurationRead, &Scope::Everything),
        writes_all: caller.can(Action::ConfigurationWrite, &Scope::Everything),
    };
    let refused: Vec<RejectReason> = chains.iter().flat_map(|it| check.refused(it)).collect();
    forbid(refused)
}

/// Refuses references to secrets in addresses, for the same reason.
pub fn permit_runtime(api: &Api, caller: &Caller, known: &Runtime, wanted: &Runtime) -> Result<(), Problem> {
    let (known, wanted) = (&known.backends, &wanted.backends);
    permit_backends(api, caller, "runtime.backends", known, wanted)
}

/// The same of a plan: its texts go to gateways, and some of them from there to a server that it names. What it has already
/// stays, as long as it goes to the same server.
pub fn permit_plan(api: &Api, caller: &Caller, before: Option<&Plan>, wanted: &Plan) -> Result<(), Problem> {
    if caller.can(Action::ConfigurationWrite, &Scope::Everything) {
        return Ok(());
    }
    let syntaxes = Syntaxes::of(&api.options.dialects);
    let references = syntaxes.within(Some(DialectName::NATIVE));
    let places = new_references(&|text| references.is_reference(text), before, wanted);
    forbid(places.into_iter().map(|it| (it, SECRET.to_owned())).collect())
}

/// The places of a plan with references that are not known there.
fn new_references(is_reference: &dyn Fn(&str) -> bool, before: Option<&Plan>, wanted: &Plan) -> Vec<String> {
    let server = |it: &Plan| {
        let settings = it.oauth2.clone().unwrap_or_default();
        (settings.discovery, settings.introspection_endpoint)
    };
    let mut known = json!(before);
    if before.is_some_and(|it| server(it) != server(wanted)) {
        known["oauth2"] = Value::Null;
    }
    let mut places = Vec::new();
    unknown_references(is_reference, ("", &json!(wanted)), &known, &mut places);
    places
}

fn unknown_references(
    is_reference: &dyn Fn(&str) -> bool,
    (place, value): (&str, &Value),
    known: &Value,
    places: &mut Vec<String>,
) {
    match value {
        Value::String(text) if value != known && is_reference(text) => places.push(place.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let inner = format!("{place}[{index}]");
                unknown_references(is_reference, (&inner, item), &known[index], places);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let inner = match place {
                    "" => name.clone(),
                    _ => format!("{place}.{name}"),
                };
                unknown_references(is_reference, (&inner, field), &known[name], places);
            }
        }
        _ => {}
    }
}

/// The same of backends.
pub fn permit_backends(
    api: &Api,
    caller: &Caller,
    place: &str,
    known: &BTreeMap<String, Backend>,
    wanted: &BTreeMap<String, Backend>,
) -> Result<(), Problem> {
    if caller.can(Action::ConfigurationWrite, &Scope::Everything) {
        return Ok(());
    }
    let syntaxes = Syntaxes::of(&api.options.dialects);
    let references = syntaxes.within(Some(DialectName::NATIVE));
    let new = wanted.iter().filter(|(name, it)| known.get(*name) != Some(*it));
    let refused = new.filter(|(_, it)| references.are_in(&json!(it)));
    forbid(
        refused
            .map(|(name, _)| (format!("{place}.{name}"), SECRET.to_owned()))
            .collect(),
    )
}

const SECRET: &str = "referring to a secret requires the right to write the whole configuration";

fn forbid(refused: Vec<RejectReason>) -> Result<(), Problem> {
    let Some((place, message)) = refused.first() else {
        return Ok(());
    };
    let detail = format!("{place}: {message}");
    Err(Problem::listing(
        axum::http::StatusCode::FORBIDDEN,
        detail,
        refused,
    ))
}

/// The rights that a chain is held to.
struct ChainRights<'r> {
    environments: BTreeSet<&'r str>,
    /// Whether a text refers to a secret.
    is_reference: &'r dyn Fn(&str) -> bool,
    reads_all: bool,
    writes_all: bool,
}

impl ChainRights<'_> {
    fn refused(&self, (place, steps): &ChainWithPath<'_>) -> Vec<RejectReason> {
        let mut refused = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            self.look("", (&format!("{place}[{index}]"), step), &mut refused);
        }
        refused
    }

    /// `plugin`: the one whose configuration this is, if it has fields of its own that are refused.
    fn look(&self, plugin: &str, (place, value): (&str, &Value), refused: &mut Vec<RejectReason>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let place = format!("{place}.{name}");
                    let name = plugin_of(fields, name);
                    let inner = if has_own_fields(name) { name } else { plugin };
                    if let Some(message) = self.fault(plugin, name, value) {
                        refused.push((place, message));
                    } else {
                        self.look(inner, (&place, value), refused);
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.look(plugin, (&format!("{place}[{index}]"), item), refused);
                }
            }
            Value::String(text) if !self.writes_all && (self.is_reference)(text) => {
                refused.push((place.to_owned(), SECRET.to_owned()));
            }
            _ => {}
        }
    }

    /// What speaks against a field, whatever else it holds.
    fn fault(&self, plugin: &str, name: &str, value: &Value) -> Option<String> {
        // Upstreams by a value of the call lead to all of them.
        let is_upstream_property = plugin == "orchestration" && value["name"] == "upstream_name";
        let is_destination = DESTINATIONS.contains(&(plugin, name)) && value.is_string();
        if NAMING.contains(&name) || is_destination {
            let texts = value
                .as_array()
                .map_or(std::slice::from_ref(value), Vec::as_slice);
            let mut texts = texts.iter().filter_map(Value::as_str);
            if let Some(made) = texts.clone().find(|it| self.is_made(it)) {
                return Some(format!(
                    "'{made}' is a name that Weir generates for publications and subscriptions"
                ));
            }
            let is_shared = matches!(name, "use" | "overrides") && texts.next().is_some();
            if is_shared && !self.reads_all {
                let message = "using shared plugins requires the right to read the whole configuration";
                return Some(message.to_owned());
            }
        }
        let for_writers = [
            (
                is_destination || is_upstream_property,
                "naming a service or an upstream",
            ),
            (
                finds_consumers(plugin, name, value),
                "setting the consumer of a caller",
            ),
            (uses_machine(name, value), "using files and sockets of gateways"),
            (
                shares_state(plugin, name, value),
                "sharing state of gateways by a name",
            ),
        ];
        if let Some((_, what)) = for_writers.iter().find(|(is_it, _)| *is_it && !self.writes_all) {
            return Some(format!(
                "{what} requires the right to write the whole configuration"
            ));
        }
        let tells_of_all = plugin.is_empty() && OF_ALL_CALLS.contains(&name);
        (tells_of_all && !self.reads_all).then(|| {
            format!("'{name}' shows data of all APIs: it requires the right to read the whole configuration")
        })
    }

    /// Whether management makes such names: `sub.ID`, `products.NAME.…` and `ENV.API.VERSION.…`.
    fn is_made(&self, text: &str) -> bool {
        match text.split_once('.') {
            Some(("sub" | "products", _)) => true,
            Some((environment, rest)) => {
                self.environments.contains(environment) && rest.matches('.').count() >= 2
            }
            None => false,
        }
    }
}

/// Whether a field names a file or a socket of the gateway's machine, whichever plugin has it.
fn uses_machine(name: &str, value: &Value) -> bool {
    let is_set = |field: &str| value.get(field).is_some_and(|it| !it.is_null());
    let is_stream = || {
        let path = value.pointer("/file/path").and_then(Value::as_str);
        path.is_some_and(|it| STREAMS.contains(&it))
    };
    match name {
        "proxy-cache" => is_set("disk"),
        "target" => is_set("local") || is_set("file") && !is_stream(),
        "proto" => is_set("file"),
        _ => false,
    }
}

/// Whether a field, or a plugin, makes callers consumers by something else than the credentials of these.
fn finds_consumers(plugin: &str, name: &str, value: &Value) -> bool {
    let is_set = match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(_) => true,
        Value::Bool(is_on) => *is_on,
        _ => false,
    };
    let is_field = OF_CONSUMERS.contains(&name) || OF_CONSUMERS_IN.contains(&(plugin, name));
    // Other plugins have a field 'session', too.
    let is_plugin = plugin.is_empty() && ANY_CONSUMER.contains(&name);
    // Left out, names in certificates find consumers.
    let is_by_name = name == "mtls-auth"
        && value.is_object()
        && value["consumer_by"].as_array().is_none_or(|it| !it.is_empty());
    is_by_name || (is_set && (is_field || is_plugin))
}

/// Whether a chain can be checked before it is known where it will be published: each environment may have shared plugins of
/// its own.
pub fn is_complete((_, steps): &ChainWithPath<'_>) -> bool {
    !steps.iter().any(is_shared)
}

/// Refuses chains that no gateway could serve, each fault with its place.
pub async fn check(api: &Api, chains: Vec<ChainWithPath<'_>>) -> Result<(), Problem> {
    if chains.is_empty() {
        return Ok(());
    }
    let name = SERVICE.rsplit('/').next();
    let routes: Vec<Value> = chains
        .iter()
        .enumerate()
        .map(|(index, (_, steps))| {
            json!({ "name": format!("{}.{index}", name.unwrap_or_default()), "paths": [format!("=/{index}")], "plugins": steps })
        })
        .collect();
    let service = json!({ "name": name, "url": "http://127.0.0.1:1", "routes": routes });
    let key = Key::new(SERVICE).map_err(|error| Problem::bad(error.to_string()))?;
    let checked = api.resources.check(&key, Some(&service)).await;
    checked.map(|_| ()).map_err(|problem| {
        let places = chains.iter().enumerate();
        places.fold(problem, |problem, (index, (place, _))| {
            problem.renamed(&format!("routes[{index}].plugins"), place)
        })
    })
}

/// The chains of a draft that are not as they were.
pub fn of_draft<'d>(draft: &'d Draft, before: &Draft) -> Vec<ChainWithPath<'d>> {
    let mut chains = Vec::new();
    let mut add = |place: String, steps: &'d [Value], known: Option<&[Value]>| {
        if !steps.is_empty() && known != Some(steps) {
            chains.push((place, steps));
        }
    };
    add("chain".to_owned(), &draft.chain, Some(&before.chain));
    for (index, component) in draft.components.iter().enumerate() {
        let known = before.components.iter().find(|it| it.name == component.name);
        let known = known.map(|it| it.plugins.as_slice());
        add(format!("components[{index}].plugins"), &component.plugins, known);
    }
    for (id, settings) in &draft.operations {
        let known = before.operations.get(id).map(|it| it.plugins.as_slice());
        add(format!("operations.{id}.plugins"), &settings.plugins, known);
    }
    chains
}

/// Whether a step is a shared plugin, named by its id.
fn is_shared(step: &Value) -> bool {
    step.get("use").is_some_and(Value::is_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The defect: an owner of one API wrote a secret of gateways into a plan, which sent it to a server of the owner's.
    #[test]
    fn plans_refer_to_no_secrets_that_they_do_not_have() {
        let plan = |oauth2: &Value| -> Plan {
            let settings = serde_json::from_value(oauth2.clone()).expect("settings");
            Plan {
                oauth2: Some(settings),
                ..Plan::default()
            }
        };
        let secret = "oauth2.client_secret";
        let known =
            json!({"discovery": "https://good/d", "client_id": "$env://ID", "client_secret": "$env://S"});
        let with = |field: &str, value: &str| {
            let mut settings = known.clone();
            settings[field] = value.into();
            settings
        };
        for (before, wanted, expected) in [
            (
                None,
                json!({"discovery": "https://good/d", "client_secret": "s"}),
                vec![],
            ),
            (
                None,
                json!({"discovery": "https://good/d", "client_secret": "$env://S"}),
                vec![secret],
            ),
            (
                None,
                json!({"audiences": ["a", "$env://S"]}),
                vec!["oauth2.audiences[1]"],
            ),
            (Some(&known), known.clone(), vec![]),
            (Some(&known), with("client_secret", ""), vec![]),
            (Some(&known), with("client_secret", "$env://T"), vec![secret]),
            (
                Some(&known),
                with("introspection_endpoint", "https://evil/i"),
                vec!["oauth2.client_id", secret],
            ),
        ] {
            let before = before.map(&plan);
            let is_reference = |text: &str| text.starts_with("$env://");
            let found = new_references(&is_reference, before.as_ref(), &plan(&wanted));
            assert_eq!(found, expected, "{wanted}");
        }
    }

    /// Holds steps to the rights of authors. A row: the step, and the end of what is said to somebody who may write all, read all,
    /// or neither; empty: nothing.
    fn check_rights(rows: Vec<(Value, [&str; 3])>) {
        for (step, expected) in rows {
            for ((reads_all, writes_all), expected) in [(true, true), (true, false), (false, false)]
                .into_iter()
                .zip(expected)
            {
                let rights = ChainRights {
                    environments: BTreeSet::from(["test"]),
                    is_reference: &|text: &str| text.starts_with("$env://"),
                    reads_all,
                    writes_all,
                };
                let steps = [step.clone()];
                let refused = rights.refused(&("chain".to_owned(), &steps));
                let refusal = refused.first().map_or("", |(_, message)| message);
                assert_eq!(refusal.is_empty(), expected.is_empty(), "{step} {refused:?}");
                assert!(refusal.contains(expected), "{step} {refused:?}");
                assert!(
                    refused.iter().all(|it| it.0.starts_with("chain[0].")),
                    "{refused:?}"
                );
            }
        }
    }

    #[test]
    fn steps_are_held_to_the_rights_of_their_author() {
        let (shared, file) = ("read the whole configuration", "files and sockets of gateways");
        let (made, state) = ("that Weir generates", "sharing state of gateways");
        check_rights(vec![
            (json!({"cors": {}}), ["", "", ""]),
            (
                json!({"cors": {"allow_origins": ["$env://HOME"]}}),
                ["", SECRET, SECRET],
            ),
            (json!({"use": "corp"}), ["", "", shared]),
            (json!({"cors": {}, "overrides": ["corp"]}), ["", "", shared]),
            (json!({"use": "test.b.1.plan.gold"}), [made; 3]),
            (json!({"use": "other.b.1.plan.gold"}), ["", "", shared]),
            (
                json!({"rate-limit": {"scope": "test.b.1.2.plan.gold"}}),
                [made; 3],
            ),
            (
                json!({"rate-limit": {"scope": "products.x.plan.gold"}}),
                [made; 3],
            ),
            (json!({"rate-limit": {"scope": "mine"}}), ["", state, state]),
            // Ids are the names of counters, too.
            (
                json!({"rate-limit": {"scope": "native/test.b.1.getPet/rate-limit/0"}}),
                ["", state, state],
            ),
            (
                json!({"use": {"id": "corp", "name": "rate-limit", "config": {}}}),
                ["", state, state],
            ),
            (json!({"id": "corp", "circuit-breaker": {}}), ["", state, state]),
            (json!({"jwe-decrypt": {"keys": [{"id": "k"}]}}), ["", "", ""]),
            (json!({"proxy-cache": {"zone": "default"}}), ["", state, state]),
            (
                json!({"metrics-endpoint": {"purge_below": "/p"}}),
                ["", state, "data of all APIs"],
            ),
            (json!({"metrics-endpoint": {}}), ["", "", "data of all APIs"]),
            (json!({"app-login": {"session": {}}}), ["", "", ""]),
            (json!({"cas-login": {"session": {}}}), ["", "", ""]),
            (
                json!({"key-auth": {"identity": {"anonymous": "sub.s1"}}}),
                [made; 3],
            ),
            (
                json!({"multi-auth": {"any_of": [{"key-auth": {"identity": {"anonymous": "sub.s1"}}}]}}),
                [made; 3],
            ),
            (
                json!({"proxy-cache": {"disk": {"path": "/tmp/x"}}}),
                ["", file, file],
            ),
            (
                json!({"use": {"name": "proxy-cache", "config": {"disk": {"path": "/tmp/x"}}}}),
                ["", file, file],
            ),
            (json!({"proxy-cache": {"disk": null}}), ["", "", ""]),
            (
                json!({"logger": {"target": {"file": {"path": "a.log"}}}}),
                ["", file, file],
            ),
            (
                json!({"logger": {"target": {"file": {"path": "/dev/stdout"}}}}),
                ["", "", ""],
            ),
        ]);
    }

    /// Places of plugins' configurations whose names speak of something outside of the API: each is refused to an owner of one
    /// API, or is known to be harmless. A new plugin's field is one or the other before this test passes.
    #[test]
    fn each_field_that_names_something_else_is_decided() {
        const NAMES: [&str; 23] = [
            "all_services",
            "anonymous",
            "by_consumer",
            "client",
            "consumer",
            "consumer_by",
            "consumer_claim",
            "default_consumer",
            "disk",
            "file",
            "id",
            "local",
            "overrides",
            "purge_below",
            "purged_as",
            "registered",
            "scope",
            "service",
            "socket",
            "upstream",
            "use",
            "zone",
            "zone_bytes",
        ];
        // They name something of the call or of a server of the API's own, or are no more than a text.
        const HARMLESS: [&str; 17] = [
            "callout.upstream",
            "degraphql.routes.[].service",
            "dubbo.service",
            "jwe-decrypt.keys.[].id",
            "jwt-signer.access_token.signing.keys.[].id",
            "jwt-signer.channel_token.signing.keys.[].id",
            "graphql-limit.fields.services.[].service",
            "logger.form.skywalking.service",
            "opa.consumer",
            "opa.service",
            "prometheus.families.[].labels.[].value.upstream",
            "rate-limit.graphql.services.[].service",
            "remote-function.sign.service",
            "skywalking.service",
            "tracing.spans.root.source.upstream",
            "websocket-validation.client",
            "websocket-validation.upstream",
        ];
        let schema = weir_native::schema();
        let mut undecided = Vec::new();
        let instance = &schema["$defs"]["PluginInstance"]["properties"];
        for (plugin, config) in instance.as_object().expect("plugins") {
            if ["id", "name", "config", "when", "on_refusal"].contains(&plugin.as_str()) {
                continue;
            }
            let mut places = BTreeSet::new();
            places_in(
                &schema,
                config,
                &mut vec![plugin.clone()],
                &mut BTreeSet::new(),
                &mut places,
            );
            for place in places {
                let is_named = place.last().is_some_and(|it| NAMES.contains(&it.as_str()));
                let text = place.join(".");
                if is_named && !HARMLESS.contains(&text.as_str()) && !is_refused(&place) {
                    undecided.push(text);
                }
            }
        }
        assert_eq!(undecided, Vec::<String>::new(), "refuse them, or say why not");
    }

    /// Each place of a schema, as names of fields; `[]` is an item.
    fn places_in(
        root: &Value,
        schema: &Value,
        at: &mut Vec<String>,
        open: &mut BTreeSet<String>,
        found: &mut BTreeSet<Vec<String>>,
    ) {
        if let Some(reference) = schema["$ref"].as_str()
            && open.insert(reference.to_owned())
        {
            let target = root.pointer(reference.trim_start_matches('#')).expect("a type");
            places_in(root, target, at, open, found);
            open.remove(reference);
        }
        for alternatives in ["anyOf", "oneOf", "allOf"] {
            for inner in schema[alternatives].as_array().into_iter().flatten() {
                places_in(root, inner, at, open, found);
            }
        }
        let fields = schema["properties"].as_object().into_iter().flatten();
        let fields = fields.map(|(name, inner)| (name.clone(), inner));
        let items = ["items", "additionalProperties"].into_iter();
        let items = items.filter(|it| schema[*it].is_object());
        for (name, inner) in fields.chain(items.map(|it| ("[]".to_owned(), &schema[it]))) {
            at.push(name);
            found.insert(at.clone());
            places_in(root, inner, at, open, found);
            at.pop();
        }
    }

    /// Whether an owner of one API is refused a field, whatever kind of value it has.
    fn is_refused(place: &[String]) -> bool {
        let rights = ChainRights {
            environments: BTreeSet::new(),
            is_reference: &|_| false,
            reads_all: false,
            writes_all: false,
        };
        [json!("x"), json!(true), json!(["x"]), json!({"path": "x"})]
            .into_iter()
            .any(|leaf| {
                let step = place.iter().rev().fold(leaf, |inner, name| match name.as_str() {
                    "[]" => json!([inner]),
                    _ => json!({ name: inner }),
                });
                !rights.refused(&("chain".to_owned(), &[step])).is_empty()
            })
    }

    /// The defect: an owner of one API reached backends of others, and callers were subscribers of others.
    #[test]
    fn services_and_consumers_are_for_who_may_write_all() {
        let made = "that Weir generates";
        let (to, who) = ("a service or an upstream", "the consumer of a caller");
        check_rights(vec![
            (
                json!({"traffic-split": {"rules": [{"choices": [{"service": "test.b.1.main"}]}]}}),
                [made; 3],
            ),
            (
                json!({"traffic-split": {"rules": [{"choices": [{"service": "mine"}, {"weight": 2}]}]}}),
                ["", to, to],
            ),
            (
                json!({"traffic-split": {"rules": [{"choices": [{"weight": 1}]}]}}),
                ["", "", ""],
            ),
            (json!({"canary": {"percent": 1, "upstream": "u"}}), ["", to, to]),
            (
                json!({"name": "canary", "config": {"percent": 1, "upstream": "u"}}),
                ["", to, to],
            ),
            (
                json!({"use": {"name": "traffic-split", "config": {"rules": [{"choices": [{"service": "s"}]}]}}}),
                ["", to, to],
            ),
            (
                json!({"orchestration": {"nodes": [{"name": "n", "property": {"name": "upstream_name"}}]}}),
                ["", to, to],
            ),
            (
                json!({"orchestration": {"nodes": [{"name": "n", "property": {"name": "own.x"}}]}}),
                ["", "", ""],
            ),
            (
                json!({"name": "vault-auth", "config": {"vault": {}}}),
                ["", who, who],
            ),
            (
                json!({"name": "mtls-auth", "config": {"authorities": []}}),
                ["", who, who],
            ),
            (json!({"canary": {"percent": 1, "host": "h"}}), ["", "", ""]),
            (
                json!({"route-by-header": {"rules": [{"headers": {}, "upstream": "u"}]}}),
                ["", to, to],
            ),
            (json!({"opa": {"service": true, "consumer": true}}), ["", "", ""]),
            (
                json!({"mtls-auth": {"consumer_by": [], "default_consumer": "sub.s1"}}),
                [made; 3],
            ),
            (
                json!({"mtls-auth": {"consumer_by": [], "default_consumer": "shop"}}),
                ["", who, who],
            ),
            (json!({"mtls-auth": {"authorities": []}}), ["", who, who]),
            (
                json!({"mtls-auth": {"consumer_by": [], "registered": "b/1/test/gold"}}),
                ["", who, who],
            ),
            (json!({"mtls-auth": {"consumer_by": []}}), ["", "", ""]),
            (
                json!({"openid-connect": {"consumer": {"claim": ["sub"], "by": ["id"]}}}),
                ["", who, who],
            ),
            (
                json!({"openid-connect": {"client": {"scope": "b/1/test/gold"}}}),
                ["", who, who],
            ),
            (
                json!({"openid-connect": {"session": {"secret": "s"}, "consumer": null}}),
                ["", "", ""],
            ),
            (
                json!({"multi-auth": {"any_of": [{"saml": {"consumer": {"by": ["id"]}}}]}}),
                ["", who, who],
            ),
            (json!({"ldap-auth": {"consumer_by": ["id"]}}), ["", who, who]),
            (
                json!({"jwt-signer": {"access_token": {"consumer_claim": ["sub"]}}}),
                ["", who, who],
            ),
            (
                json!({"key-auth": {"identity": {"anonymous": "guest"}}}),
                ["", who, who],
            ),
            (json!({"vault-auth": {"vault": {}}}), ["", who, who]),
            (json!({"session": {"session": {}}}), ["", who, who]),
        ]);
    }
}
