//! `orchestration`: runs a graph of nodes for a call: other servers are called, values are changed and kept, and what comes of it
//! goes into the request, into the response, or is the answer.
//!
//! ```yaml
//! nodes:
//!   - {name: user, call: {url: "http://127.0.0.1:1980/user"}, inputs: {query: request.query}}
//!   - {name: plan, jq: "{\"X-Plan\": .plan}", input: user.body, output: service_request.headers}
//! ```
//!
//! A node comes after those whose values it gets. Nodes that need nothing of the response run before the service is called,
//! in the order of their connections, one after the other; the others run when it has answered.
//!
//! Security: a call whose node fails is refused with status 500, and only the log says why, unless `debug` is on. Callers
//! choose no server: an address that is made of values must be one of `servers`.

mod cache;
mod call;
mod data;
mod graph;
mod memory;
mod messages;
mod ports;
mod progress;
mod property;
mod run;
mod servers;

use crate::jq::Program;
use crate::xml::{AttributeLocation, XmlForm};
use cache::{Caches, Store};
use call::CompiledCall;
use graph::{Graph, Origin};
use memory::MemoryBudget;
use property::{Property, TargetRules, target};
use run::{OrchestrationFilter, Task, Work};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use servers::{Servers, at};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{BuildContext, Filter, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::redis::Redis;
use weir_plugins_shared::redis_values::RedisValues;

const NAME: &str = "orchestration";
/// Nodes of an instance at most.
const MOST: usize = 64;
/// The longest that a value may be kept, in seconds.
const MOST_TTL: u64 = 1_000_000_000;
/// The most bytes of a body that a configuration can allow.
const MOST_BYTES: usize = 8 << 20;
/// The longest that all servers together may take, in milliseconds.
const MOST_TIME: u64 = 600_000;

/// Configuration of `orchestration`.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The nodes, 1 to 64.
    #[schemars(length(min = 1, max = 64))]
    pub nodes: Vec<Node>,
    /// Texts that nodes get as `secrets.NAME`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
    /// Where nodes `cache` keep values; left out: in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis: Option<Redis>,
    /// Whether callers are told which node has failed, and why. For tests only: it may tell them secrets.
    #[serde(default)]
    pub debug: bool,
    /// The most bytes of a body: of the request (else status 413), of the response (else 502), and of what a server answers.
    #[serde(default = "one_mebibyte")]
    #[schemars(range(max = 8_388_608))]
    pub max_body_bytes: usize,
    /// The longest that all servers together may take before the service is called, and again after it, in milliseconds, at
    /// most 600000.
    #[serde(default = "one_minute")]
    #[schemars(range(min = 1, max = 600_000))]
    pub timeout_ms: u64,
}

fn one_mebibyte() -> usize {
    1 << 20
}

fn one_minute() -> u64 {
    60_000
}

/// It may hold secrets.
impl std::fmt::Debug for Config {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Config")
            .field("nodes", &self.nodes)
            .finish_non_exhaustive()
    }
}

/// A node. It has a name, one kind of work, and connections: values are named `node` or `node.value`.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Node {
    /// Its name: letters, digits, `_` and `-`, with a letter first.
    pub name: String,
    /// The value that is its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Values that are its inputs, by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// The node, or its input, that gets what this one gives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The nodes, or their inputs, that get its values, by the names of the values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, String>,
    /// A request to a server. Inputs: `body`, `headers`, `query`, `url`; outputs: `body`, `headers`, `status`, `raw_body`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallNode>,
    /// A program in the language of jq. Its input is a value, or an object of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jq: Option<String>,
    /// Fixed values. Outputs: their names.
    #[serde(rename = "static", skip_serializing_if = "Option::is_none")]
    pub values: Option<BTreeMap<String, Value>>,
    /// The answer to the call, which ends here. Inputs: `body`, `headers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitNode>,
    /// A property of the call. With an input it is set, otherwise read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub property: Option<PropertyNode>,
    /// A value that is kept. Inputs: `key`, `ttl`, `data`; outputs: `hit`, `miss`, `stored`, `data`. With `data` it is stored,
    /// otherwise looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheNode>,
    /// Nodes that run only if its input is true, and others only if it is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchNode>,
    /// The JSON that an XML document is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xml_to_json: Option<XmlToJson>,
    /// The XML document that a value is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_to_xml: Option<JsonToXml>,
}

/// Fixed values and proxies may be secrets.
impl std::fmt::Debug for Node {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Node")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A request to a server. A response with another status than 200 to 299, none in time, and JSON that is invalid are failures.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallNode {
    /// The address, `http://` or `https://`. The input `url` replaces it, unless that is null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Servers that the input `url` may name besides that of `url`, as `host:port`; `*`: any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// The method.
    pub method: String,
    /// The longest that the response may take, in milliseconds, at most 60000.
    #[schemars(range(min = 1, max = 60_000))]
    pub timeout_ms: u64,
    /// Whether the server's certificate is verified.
    pub verify_tls: bool,
    /// The server name in the TLS handshake; left out: that of the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// An HTTP proxy: `http://host:port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// The one for addresses that begin with `https://`; left out: `proxy`; empty: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https_proxy: Option<String>,
    /// `Proxy-Authorization`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_authorization: Option<String>,
}

impl Default for CallNode {
    fn default() -> Self {
        Self {
            url: None,
            servers: Vec::new(),
            method: "GET".to_owned(),
            timeout_ms: 10_000,
            verify_tls: true,
            server_name: None,
            proxy: None,
            https_proxy: None,
            proxy_authorization: None,
        }
    }
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExitNode {
    /// Its status, 200 to 599.
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
}

impl Default for ExitNode {
    fn default() -> Self {
        Self { status: 200 }
    }
}

/// A property of the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PropertyNode {
    /// Which one: a variable such as `remote_addr`, `consumer`, `peer_port`, `shared.NAME`, `own.NAME`, `response_status`,
    /// `upstream_target` or `upstream_name`.
    pub name: String,
    /// Whether its value is kept as a text of JSON.
    #[serde(default)]
    pub json: bool,
    /// Whether null is a failure.
    #[serde(default)]
    pub required: bool,
    /// Targets that `upstream_target` may be, as `host:port`; `*`: any. A fixed value needs none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// What the name of `upstream_name` begins with before the value, which has no `/` then; left out: the value is the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// A value that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CacheNode {
    /// For how many seconds a value is kept, unless the input `ttl` says it: 1 to 1000000000.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub ttl_seconds: u64,
    /// Whether a Redis that is unavailable counts as one without the value. Otherwise it is a failure.
    pub bypass_on_error: bool,
}

impl Default for CacheNode {
    fn default() -> Self {
        Self {
            ttl_seconds: 300,
            bypass_on_error: false,
        }
    }
}

/// Nodes that run, or not. Each node is in one list at most.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BranchNode {
    /// Those that run if the input is true.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<String>,
    /// Those that run if it is false.
    #[serde(rename = "else", skip_serializing_if = "Vec::is_empty")]
    pub otherwise: Vec<String>,
}

/// The JSON of a document: an object whose member is the outermost element; several elements of a name are a list, one without
/// anything is an empty object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct XmlToJson {
    /// The member with the attributes of an element. This or `attribute_prefix` must be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes_member: Option<String>,
    /// What the names of members that are attributes begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribute_prefix: Option<String>,
    /// The member with the text of an element that has others.
    pub text_member: String,
    /// Whether the text is in that member of all elements.
    pub text_is_member: bool,
    /// Whether texts that are numbers, `true`, `false` or `null` are these.
    pub recognize_types: bool,
}

impl Default for XmlToJson {
    fn default() -> Self {
        Self {
            attributes_member: None,
            attribute_prefix: None,
            text_member: text_member(),
            text_is_member: false,
            recognize_types: true,
        }
    }
}

fn text_member() -> String {
    "#text".to_owned()
}

/// The document of a value. A text is read as JSON first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JsonToXml {
    /// The name of the outermost element. Left out: the value is an object with one member, which is that element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The member with the attributes of an element. This or `attribute_prefix` must be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attributes_member: Option<String>,
    /// What the names of members that are attributes begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribute_prefix: Option<String>,
    /// The member with the text of an element that has others.
    pub text_member: String,
}

impl Default for JsonToXml {
    fn default() -> Self {
        Self {
            root: None,
            attributes_member: None,
            attribute_prefix: None,
            text_member: text_member(),
        }
    }
}

/// The plugin; it knows the values that are kept, and how much the calls hold that wait.
#[derive(Default)]
pub struct Orchestration {
    caches: Caches,
    held: MemoryBudget,
}

impl Plugin for Orchestration {
    fn name(&self) -> &'static str {
        "orchestration"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let root = DocPath::root();
        let mut errors = ConfigErrors::default();
        if config.nodes.is_empty() || config.nodes.len() > MOST {
            errors.add(
                "nodes",
                format!("expected 1 to {MOST} nodes, found {}", config.nodes.len()),
            );
        }
        if config.max_body_bytes > MOST_BYTES {
            errors.add("max_body_bytes", format!("expected at most {MOST_BYTES} bytes"));
        }
        if !(1..=MOST_TIME).contains(&config.timeout_ms) {
            errors.add("timeout_ms", format!("expected 1 to {MOST_TIME} milliseconds"));
        }
        let redis = config.redis.clone().and_then(|redis| {
            let prefix = format!("{}:{NAME}:", redis.prefix);
            Some(RedisValues::new(redis.compile(&["redis"], &mut errors)?, prefix))
        });
        errors.done()?;
        let list = root.field("nodes");
        let mut faults = Vec::new();
        for (index, node) in config.nodes.iter().enumerate() {
            if node.kinds() != 1 {
                let message = "expected one kind of work: `call`, `jq`, `static`, `exit`, `property`, `cache`, `branch`, \
                               `xml_to_json` or `json_to_xml`";
                faults.push(Diagnostic::error(list.index(index), message));
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let properties: Vec<bool> = config.nodes.iter().map(Node::is_of_response).collect();
        let graph = Graph::new(&config, &properties)?;
        let mut tasks = Vec::with_capacity(config.nodes.len());
        for (index, node) in config.nodes.iter().enumerate() {
            match work(&config, &graph, index) {
                Ok(work) => tasks.push(Task {
                    name: node.name.clone(),
                    work,
                }),
                Err((fields, message)) => {
                    let place = fields
                        .iter()
                        .fold(list.index(index), |place, field| place.field(*field));
                    faults.push(Diagnostic::error(place, message));
                }
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let store = Store {
            instance: context.instance_id.to_owned(),
            memory: self.caches.of(context.instance_id),
            redis,
        };
        Ok(Arc::new(OrchestrationFilter {
            tasks,
            graph,
            store,
            held: self.held.of_instance(),
            secrets: config.secrets,
            debug: config.debug,
            max_body_bytes: config.max_body_bytes,
            timeout: Duration::from_millis(config.timeout_ms),
        }))
    }
}

impl Node {
    /// How many kinds of work it has.
    fn kinds(&self) -> usize {
        let kinds = [
            self.call.is_some(),
            self.jq.is_some(),
            self.values.is_some(),
            self.exit.is_some(),
            self.property.is_some(),
            self.cache.is_some(),
            self.branch.is_some(),
            self.xml_to_json.is_some(),
            self.json_to_xml.is_some(),
        ];
        kinds.into_iter().filter(|is_given| *is_given).count()
    }

    /// Whether by itself it waits for the response.
    fn is_of_response(&self) -> bool {
        let property = self
            .property
            .as_ref()
            .and_then(|it| Property::parse(&it.name).ok());
        property.is_some_and(|property| property.is_of_response())
    }
}

/// Where below a node something is wrong, and what was expected.
type NodeError = (Vec<&'static str>, String);

/// The work of a node, made ready.
fn work(config: &Config, graph: &Graph, index: usize) -> Result<Work, NodeError> {
    let (node, inputs) = (&config.nodes[index], &graph.inputs[index]);
    let is_named = |name: &str| inputs.whole.is_some() || inputs.named.contains_key(name);
    if let Some(call) = &node.call {
        let uses = (is_named("url"), graph.is_used(index, "raw_body"));
        let call = CompiledCall::new(call, uses, config.max_body_bytes);
        return call
            .map(|call| Work::Call(Box::new(call)))
            .map_err(|(field, message)| (vec!["call", field], message));
    }
    if let Some(program) = &node.jq {
        return Program::read(program)
            .map(Work::Jq)
            .map_err(|message| (vec!["jq"], message));
    }
    if let Some(values) = &node.values {
        let values = values.iter().map(|(name, value)| (name.clone(), value.clone()));
        return Ok(Work::Static(data::Datum::json(Value::Object(values.collect()))));
    }
    if let Some(exit) = &node.exit {
        return match exit.status {
            200..=599 => Ok(Work::Exit(exit.status)),
            _ => Err((
                vec!["exit", "status"],
                "expected a status from 200 to 599".to_owned(),
            )),
        };
    }
    if let Some(property) = &node.property {
        let is_late = graph.after.contains(&index);
        let fixed = inputs.whole.as_ref().and_then(|source| match source.from {
            Origin::Node(index) => config.nodes[index].values.as_ref()?.get(source.field.as_ref()?),
            _ => None,
        });
        let is_set = !inputs.is_empty();
        return property_work(property, (is_set, is_late), fixed)
            .map_err(|(field, message)| (vec!["property", field], message));
    }
    if let Some(cache) = &node.cache {
        if !is_named("key") {
            return Err((vec!["inputs"], "expected an input `key`".to_owned()));
        }
        if !(1..=MOST_TTL).contains(&cache.ttl_seconds) {
            let message = format!("expected 1 to {MOST_TTL} seconds");
            return Err((vec!["cache", "ttl_seconds"], message));
        }
        return Ok(Work::Cache(cache.clone()));
    }
    if node.branch.is_some() {
        return match inputs.whole {
            Some(_) => Ok(Work::Branch),
            None => Err((
                vec!["input"],
                "expected an input that is true or false".to_owned(),
            )),
        };
    }
    if let Some(xml) = &node.xml_to_json {
        let places = (&xml.attributes_member, &xml.attribute_prefix);
        let form = XmlForm {
            text_is_member: xml.text_is_member,
            recognizes_types: xml.recognize_types,
            ..form(places, &xml.text_member).map_err(|message| (vec!["xml_to_json"], message))?
        };
        return Ok(Work::XmlToJson(Box::new(form)));
    }
    let xml = node.json_to_xml.clone().unwrap_or_default();
    let places = (&xml.attributes_member, &xml.attribute_prefix);
    let form = form(places, &xml.text_member).map_err(|message| (vec!["json_to_xml"], message))?;
    Ok(Work::JsonToXml(Box::new(form), xml.root))
}

/// `fixed`: the value that it is set to in all calls.
fn property_work(
    node: &PropertyNode,
    (is_set, is_late): (bool, bool),
    fixed: Option<&Value>,
) -> Result<Work, (&'static str, String)> {
    let name = &node.name;
    let property = Property::parse(name).map_err(|message| ("name", message))?;
    if is_set && !property.can_be_set() {
        let message = format!("expected no input: {name:?} can only be read");
        return Err(("name", message));
    }
    if !is_set && !property.can_be_read() {
        return Err(("name", format!("expected an input: {name:?} can only be set")));
    }
    if is_late && property.is_of_request() {
        let message = format!(
            "expected a value that is there before the service is called: {name:?} says which one is"
        );
        return Err(("name", message));
    }
    let rules = target_rules(node, &property, fixed)?;
    Ok(Work::Property {
        property,
        json: node.json,
        required: node.required,
        is_set,
        rules,
    })
}

/// What the values may be that lead calls elsewhere.
fn target_rules(
    node: &PropertyNode,
    property: &Property,
    fixed: Option<&Value>,
) -> Result<TargetRules, (&'static str, String)> {
    if node.prefix.is_some() && *property != Property::UpstreamName {
        let message = "expected none: it is for `upstream_name`".to_owned();
        return Err(("prefix", message));
    }
    let own = fixed.and_then(Value::as_str).and_then(target);
    let own: Vec<String> = own.into_iter().map(|(host, port)| at(host, port)).collect();
    match (*property == Property::UpstreamTarget, node.servers.is_empty()) {
        (false, false) => {
            let message = "expected none: they are for `upstream_target`".to_owned();
            return Err(("servers", message));
        }
        (true, true) if fixed.is_none() => {
            let message = "expected targets as `host:port`, or `*` for any: the value is known at a call";
            return Err(("servers", message.to_owned()));
        }
        _ => {}
    }
    Ok(TargetRules {
        servers: Servers::read(&node.servers, own).map_err(|message| ("servers", message))?,
        prefix: node.prefix.clone(),
    })
}

fn form(places: (&Option<String>, &Option<String>), text_member: &str) -> Result<XmlForm, String> {
    let attributes = match places {
        (Some(member), None) if !member.is_empty() => AttributeLocation::Member(member.clone().into()),
        (None, Some(prefix)) if !prefix.is_empty() => AttributeLocation::Prefix(prefix.clone()),
        _ => return Err("expected one of `attributes_member` and `attribute_prefix`".to_owned()),
    };
    Ok(XmlForm {
        attributes,
        text_member: text_member.to_owned().into(),
        drops_prefixes: false,
        recognizes_types: false,
        text_is_member: false,
        empty_is_object: true,
    })
}

#[cfg(test)]
mod tests;
