//! `datakit` of the paid edition: nodes that are run for a call. Its nodes of JWT are refused, and so are properties that have
//! no equal.

use super::enterprise_fields::flag;
use super::proxy_cache::MEMORY;
use super::proxy_cache_advanced::STRATEGY;
use super::redis::{ADVANCED_REDIS, Settings};
use super::{CataloguePlugin, Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, Fields, Kind, Record};
use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use weir_plugins::orchestration::{
    BranchNode, CacheNode, CallNode, Config, ExitNode, JsonToXml, Node, PropertyNode, XmlToJson,
};

/// The definition of `datakit`.
pub const DEFINITION: Definition = Definition {
    name: "datakit",
    priority: 810,
    config: Record::of(FIELDS),
    checks: &[EntityCheck::Test(check_nodes)],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "orchestration",
    translate,
};

const FIELDS: &[Field] = &[
    flag("debug", false),
    Field::new("nodes", Kind::Array(&NODE))
        .required()
        .check(&[Check::AtLeast(1)]),
    Field::new("resources", Kind::Record(&RESOURCES)),
];

const NODE: Field = Field::element(Kind::ByType(&NODES));

static NODES: [(&str, Record); 12] = [
    ("branch", Record::of(BRANCH)),
    ("cache", Record::of(CACHE)),
    ("call", Record::of(CALL)),
    ("exit", Record::of(EXIT)),
    ("jq", Record::of(JQ)),
    (
        "json_to_xml",
        Record {
            fields: JSON_TO_XML,
            checks: ONE_PLACE,
        },
    ),
    ("jwt_decode", Record::of(JWT)),
    ("jwt_sign", Record::of(JWT)),
    ("jwt_verify", Record::of(JWT)),
    ("property", Record::of(PROPERTY)),
    ("static", Record::of(STATIC)),
    (
        "xml_to_json",
        Record {
            fields: XML_TO_JSON,
            checks: ONE_PLACE,
        },
    ),
];

/// Where attributes of XML are.
const ONE_PLACE: &[EntityCheck] = &[EntityCheck::ExactlyOneOf(&[
    "attributes_block_name",
    "attributes_name_prefix",
])];

const NAME: Field = Field::new("name", Kind::String).required();
const TYPE: Field = Field::new("type", Kind::String).required();
const INPUT: Field = text("input");
const OUTPUT: Field = text("output");
const LINKS: Kind = Kind::Map {
    keys: &Field::element(Kind::String),
    values: &Field::element(Kind::String),
};
const NAMES: Kind = Kind::Array(&Field::element(Kind::String));
const ANYTHING: Kind = Kind::Map {
    keys: &Field::element(Kind::String),
    values: &Field::element(Kind::Any),
};

const fn text(name: &'static str) -> Field {
    Field::new(name, Kind::String)
}

const fn record(name: &'static str, record: &'static Record) -> Field {
    Field::new(name, Kind::Record(record))
}

const BRANCH: &[Field] = &[
    NAME,
    TYPE,
    INPUT,
    OUTPUT,
    record("outputs", &BRANCH_OUTPUTS),
    Field::new("then", NAMES),
    Field::new("else", NAMES),
];
static BRANCH_OUTPUTS: Record = Record::of(&[text("then"), text("else")]);

const CACHE: &[Field] = &[
    NAME,
    TYPE,
    INPUT,
    record("inputs", &CACHE_INPUTS),
    OUTPUT,
    record("outputs", &CACHE_OUTPUTS),
    Field::new("ttl", Kind::Integer),
    Field::new("bypass_on_error", Kind::Boolean),
];
static CACHE_INPUTS: Record = Record::of(&[text("key"), text("ttl"), text("data")]);
static CACHE_OUTPUTS: Record = Record::of(&[text("hit"), text("miss"), text("stored"), text("data")]);

const CALL: &[Field] = &[
    NAME,
    TYPE,
    INPUT,
    record("inputs", &CALL_INPUTS),
    OUTPUT,
    record("outputs", &CALL_OUTPUTS),
    text("url"),
    text("method")
        .or(Default::Text("GET"))
        .check(&[Check::Text(check_method)]),
    Field::new("timeout", Kind::Integer).check(&[Check::Between(0, 2_147_483_646)]),
    flag("ssl_verify", true),
    text("ssl_server_name"),
];
static CALL_INPUTS: Record = Record::of(&[
    text("body"),
    text("headers"),
    text("query"),
    text("url"),
    text("http_proxy"),
    text("https_proxy"),
    text("proxy_auth_username"),
    text("proxy_auth_password"),
]);
static CALL_OUTPUTS: Record = Record::of(&[text("body"), text("headers"), text("status"), text("raw_body")]);

const EXIT: &[Field] = &[
    NAME,
    TYPE,
    INPUT,
    record("inputs", &EXIT_INPUTS),
    Field::new("status", Kind::Integer)
        .or(Default::Integer(200))
        .check(&[Check::Between(200, 599)]),
    Field::new("warn_headers_sent", Kind::Boolean),
];
static EXIT_INPUTS: Record = Record::of(&[text("body"), text("headers")]);

const JQ: &[Field] = &[
    NAME,
    TYPE,
    INPUT,
    Field::new("inputs", LINKS),
    OUTPUT,
    text("jq").required(),
];

const ATTRIBUTES_MEMBER: Field = text("attributes_block_name");
const ATTRIBUTE_PREFIX: Field = text("attributes_name_prefix");
const TEXT_MEMBER: Field = text("text_block_name").or(Default::Text("#text"));

const JSON_TO_XML: &[Field] = &[
    NAME,
    TYPE,
    INPUT,
    Field::new("inputs", LINKS),
    OUTPUT,
    ATTRIBUTES_MEMBER,
    ATTRIBUTE_PREFIX,
    text("root_element_name"),
    TEXT_MEMBER,
];

const XML_TO_JSON: &[Field] = &[
    NAME,
    TYPE,
    INPUT,
    OUTPUT,
    ATTRIBUTES_MEMBER,
    ATTRIBUTE_PREFIX,
    flag("recognize_type", true),
    flag("text_as_property", false),
    TEXT_MEMBER,
    text("xpath"),
];

/// Of the three nodes of JWT, which are read and refused.
const JWT: &[Field] = &[
    NAME,
    TYPE,
    INPUT,
    Field::new("inputs", LINKS),
    OUTPUT,
    Field::new("outputs", LINKS),
    text("algorithm"),
    Field::new("expires_in", Kind::Integer),
    text("kid"),
    Field::new("not_before", Kind::Integer),
    Field::new("static_claims", ANYTHING),
    text("typ"),
    Field::new("allowed_algorithms", NAMES),
    Field::new("audiences", NAMES),
    Field::new("issuers", NAMES),
    Field::new("leeway", Kind::Integer),
    Field::new("required_claims", NAMES),
    Field::new("validate_exp", Kind::Boolean),
    Field::new("validate_nbf", Kind::Boolean),
];

const PROPERTY: &[Field] = &[
    NAME,
    TYPE,
    INPUT,
    OUTPUT,
    text("property").required(),
    text("content_type").check(&[Check::OneOf(&[
        "application/json",
        "application/octet-stream",
        "text/plain",
    ])]),
    flag("non_nil", false),
];

const STATIC: &[Field] = &[
    NAME,
    TYPE,
    OUTPUT,
    Field::new("outputs", LINKS),
    Field::new("values", ANYTHING).required(),
];

static RESOURCES: Record = Record::of(&[record("cache", &CACHE_RESOURCE), Field::new("vault", LINKS)]);

static CACHE_RESOURCE: Record = Record::of(&[
    STRATEGY.required(),
    MEMORY,
    Field::new("redis", Kind::Record(&ADVANCED_REDIS)).required(),
]);

fn check_method(method: &str) -> Result<(), String> {
    match method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        true => Ok(()),
        false => Err(format!("invalid value: {method}")),
    }
}

/// Nodes `cache` need a cache.
fn check_nodes(plugin: &Fields) -> Result<(), String> {
    let config = plugin.get("config");
    let nodes = config.and_then(|config| config["nodes"].as_array());
    let has_cache = config.is_some_and(|config| config["resources"]["cache"].is_object());
    let mut nodes = nodes.into_iter().flatten();
    match nodes.any(|node| node["type"] == "cache") && !has_cache {
        true => Err("a node of type 'cache' needs 'resources.cache'".to_owned()),
        false => Ok(()),
    }
}

#[derive(Deserialize)]
struct Options {
    debug: bool,
    nodes: Vec<NodeOptions>,
    resources: Option<ResourceOptions>,
}

#[derive(Deserialize)]
struct ResourceOptions {
    cache: Option<CacheOptions>,
    vault: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct CacheOptions {
    strategy: String,
    redis: Settings,
}

/// The fields of all types of nodes.
#[derive(Deserialize)]
struct NodeOptions {
    name: String,
    r#type: String,
    input: Option<String>,
    inputs: Option<BTreeMap<String, String>>,
    output: Option<String>,
    outputs: Option<BTreeMap<String, String>>,
    then: Option<Vec<String>>,
    r#else: Option<Vec<String>>,
    ttl: Option<i64>,
    bypass_on_error: Option<bool>,
    url: Option<String>,
    method: Option<String>,
    timeout: Option<u64>,
    ssl_verify: Option<bool>,
    ssl_server_name: Option<String>,
    status: Option<u16>,
    jq: Option<String>,
    attributes_block_name: Option<String>,
    attributes_name_prefix: Option<String>,
    root_element_name: Option<String>,
    text_block_name: Option<String>,
    recognize_type: Option<bool>,
    text_as_property: Option<bool>,
    xpath: Option<String>,
    property: Option<String>,
    content_type: Option<String>,
    non_nil: Option<bool>,
    values: Option<BTreeMap<String, Value>>,
}

/// The longest that values are kept, in seconds.
const MOST_TTL: i64 = 1_000_000_000;

/// The label with the document of a route, as a property of the catalogue names it.
const ROUTE: &str = "route_label_route_document";
const SERVICE: &str = "route_label_service_document";

/// Properties of the original by their names here; those that are entities come as JSON.
const PROPERTIES: [(&str, &str); 20] = [
    ("kong.client.consumer", "consumer"),
    ("kong.client.forwarded_ip", "remote_addr"),
    ("kong.client.forwarded_port", "remote_port"),
    ("kong.client.ip", "realip_remote_addr"),
    ("kong.client.port", "peer_port"),
    ("kong.client.protocol", "scheme"),
    ("kong.ctx.plugin.", "own."),
    ("kong.ctx.shared.", "shared."),
    ("kong.request.forwarded_host", "host"),
    ("kong.request.forwarded_port", "server_port"),
    ("kong.request.forwarded_scheme", "scheme"),
    ("kong.request.port", "server_port"),
    ("kong.response.status", "response_status"),
    ("kong.route_name", "route_name"),
    ("kong.router.route", ROUTE),
    ("kong.router.service", SERVICE),
    ("kong.service_name", "service_name"),
    ("kong.service.response.status", "upstream_status"),
    ("kong.service.target", "upstream_target"),
    ("kong.service.upstream", "upstream_name"),
];

/// Whether an instance reads what is written about routes and services.
pub fn reads_documents(made: &CataloguePlugin) -> bool {
    let nodes = made.config["nodes"].as_array().into_iter().flatten();
    let mut names = nodes.filter_map(|node| node["property"]["name"].as_str());
    made.name == DEFINITION.catalogue_name && names.any(|name| name == ROUTE || name == SERVICE)
}

fn refused(field: &'static str, what: String) -> UnsupportedOption {
    UnsupportedOption { field, what }
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let mut options: Options = typed(config)?;
    rename_reserved(&mut options.nodes);
    let resources = options.resources;
    let (cache, vault) = resources.map_or((None, None), |resources| (resources.cache, resources.vault));
    let secrets = vault.unwrap_or_default();
    let nodes = options.nodes.iter().map(|of| node(of, &options.nodes, &secrets));
    Ok(untyped(Config {
        nodes: nodes.collect::<Result<_, _>>()?,
        redis: cache
            .filter(|it| it.strategy == "redis")
            .map(|it| it.redis.redis())
            .transpose()?,
        secrets,
        debug: options.debug,
        max_body_bytes: 1 << 20,
        timeout_ms: 120_000,
    }))
}

/// Gives a node another name that has one which stands for secrets here.
fn rename_reserved(nodes: &mut [NodeOptions]) {
    const RESERVED: &str = "secrets";
    if !nodes.iter().any(|node| node.name == RESERVED) {
        return;
    }
    let mut fresh = format!("{RESERVED}-node");
    while nodes.iter().any(|node| node.name == fresh) {
        fresh.push('-');
    }
    let rename = |text: &mut String| match text.strip_prefix(RESERVED) {
        Some(rest) if rest.is_empty() || rest.starts_with('.') => *text = format!("{fresh}{rest}"),
        _ => {}
    };
    for node in nodes {
        let links = [&mut node.inputs, &mut node.outputs].into_iter().flatten();
        let links = links.flat_map(BTreeMap::values_mut);
        let names = [&mut node.then, &mut node.r#else].into_iter().flatten().flatten();
        let whole = [&mut node.input, &mut node.output].into_iter().flatten();
        links.chain(names).chain(whole).for_each(rename);
        rename(&mut node.name);
    }
}

/// A connection, with the name that secrets have here.
fn link(text: &str) -> String {
    match text.strip_prefix("vault") {
        Some(rest) if rest.is_empty() || rest.starts_with('.') => format!("secrets{rest}"),
        _ => text.to_owned(),
    }
}

fn node(
    of: &NodeOptions,
    all: &[NodeOptions],
    secrets: &BTreeMap<String, String>,
) -> Result<Node, UnsupportedOption> {
    let links = |of: &Option<BTreeMap<String, String>>| -> BTreeMap<String, String> {
        let links = of.iter().flatten();
        links.map(|(name, text)| (name.clone(), link(text))).collect()
    };
    let mut node = Node {
        name: of.name.clone(),
        input: of.input.as_deref().map(link),
        inputs: links(&of.inputs),
        output: of.output.as_deref().map(link),
        outputs: links(&of.outputs),
        ..Node::default()
    };
    let refused = |what: &str| Err(refused("nodes", format!("{what} of the node `{}`", of.name)));
    match of.r#type.as_str() {
        "branch" if node.output.is_some() || !node.outputs.is_empty() => {
            return refused("an output (a `branch` has none: name nodes in `then` and `else`)");
        }
        "branch" => {
            node.branch = Some(BranchNode {
                then: of.then.clone().unwrap_or_default(),
                otherwise: of.r#else.clone().unwrap_or_default(),
            });
        }
        "cache" => {
            let usual = CacheNode::default();
            node.cache = Some(CacheNode {
                ttl_seconds: of.ttl.map_or(usual.ttl_seconds, |ttl| {
                    u64::try_from(ttl.clamp(1, MOST_TTL)).unwrap_or(1)
                }),
                bypass_on_error: of.bypass_on_error.unwrap_or(false),
            });
        }
        "call" => {
            let proxies = Proxies::take(of, all, secrets, &mut node.inputs)?;
            let may_be_any =
                node.inputs.contains_key("url") || node.input.is_some() || gets_url(all, &of.name);
            node.call = Some(call(of, may_be_any, proxies));
        }
        "exit" => {
            node.exit = Some(ExitNode {
                status: of.status.unwrap_or(200),
            });
        }
        "jq" => node.jq = Some(of.jq.clone().unwrap_or_default()),
        "static" => node.values = Some(of.values.clone().unwrap_or_default()),
        "property" => node.property = Some(property(of)?),
        "xml_to_json" if of.xpath.is_some() => {
            return refused("`xpath` (a `jq` node selects parts)");
        }
        "xml_to_json" => {
            node.xml_to_json = Some(XmlToJson {
                attributes_member: of.attributes_block_name.clone(),
                attribute_prefix: of.attributes_name_prefix.clone(),
                text_member: of.text_block_name.clone().unwrap_or_default(),
                text_is_member: of.text_as_property.unwrap_or(false),
                recognize_types: of.recognize_type.unwrap_or(true),
            });
        }
        "json_to_xml" => {
            node.json_to_xml = Some(JsonToXml {
                root: of.root_element_name.clone(),
                attributes_member: of.attributes_block_name.clone(),
                attribute_prefix: of.attributes_name_prefix.clone(),
                text_member: of.text_block_name.clone().unwrap_or_default(),
            });
        }
        other => return refused(&format!("the type `{other}`")),
    }
    Ok(node)
}

/// Whether a node gives its values to this call as a whole, or to its `url`.
fn gets_url(all: &[NodeOptions], name: &str) -> bool {
    let gives = |text: &String| match text.strip_prefix(name) {
        Some(rest) => rest.is_empty() || rest == ".url",
        None => false,
    };
    all.iter().any(|node| {
        let one = node.output.iter();
        let named = node.outputs.iter().flat_map(BTreeMap::values);
        one.chain(named).any(gives)
    })
}

fn call(of: &NodeOptions, may_be_any: bool, proxies: Proxies) -> CallNode {
    let (proxy, https_proxy) = match (proxies.http, proxies.https) {
        // The one for other addresses is not for these.
        (Some(http), None) => (Some(http), Some(String::new())),
        both => both,
    };
    CallNode {
        url: of.url.clone(),
        // The original calls whatever server it is given.
        servers: if may_be_any {
            vec!["*".to_owned()]
        } else {
            Vec::new()
        },
        method: of.method.clone().unwrap_or_else(|| "GET".to_owned()),
        timeout_ms: of.timeout.filter(|time| *time > 0).unwrap_or(60_000).min(60_000),
        verify_tls: of.ssl_verify.unwrap_or(true),
        server_name: of.ssl_server_name.clone(),
        proxy,
        https_proxy,
        proxy_authorization: proxies.authorization,
    }
}

/// The proxies of a call, by the schemes of addresses.
struct Proxies {
    http: Option<String>,
    https: Option<String>,
    authorization: Option<String>,
}

impl Proxies {
    /// Takes what says it out of the inputs of a call: fixed texts, and values that are known before.
    fn take(
        of: &NodeOptions,
        all: &[NodeOptions],
        secrets: &BTreeMap<String, String>,
        inputs: &mut BTreeMap<String, String>,
    ) -> Result<Self, UnsupportedOption> {
        let whole = of.input.as_deref().and_then(|name| static_values(all, name));
        let mut fixed = |name: &str| match inputs.remove(name) {
            Some(text) => fixed_text(&text, all, secrets).map(Some).ok_or_else(|| {
                refused(
                    "nodes",
                    format!("`{name}` that a node computes, in the node `{}`,", of.name),
                )
            }),
            None => Ok(whole.and_then(|values| values.get(name)?.as_str().map(str::to_owned))),
        };
        let (http, https) = (fixed("http_proxy")?, fixed("https_proxy")?);
        let (user, password) = (fixed("proxy_auth_username")?, fixed("proxy_auth_password")?);
        let has_proxy = http.is_some() || https.is_some();
        let authorization = user.filter(|_| has_proxy).map(|user| {
            let pair = format!("{user}:{}", password.unwrap_or_default());
            format!("Basic {}", BASE64.encode(pair.as_bytes()))
        });
        Ok(Self {
            http,
            https,
            authorization,
        })
    }
}

fn static_values<'n>(all: &'n [NodeOptions], name: &str) -> Option<&'n BTreeMap<String, Value>> {
    all.iter().find(|node| node.name == name)?.values.as_ref()
}

/// The text that an input has in all calls: the value of a `static` node, a secret, or the text itself if it names no node.
fn fixed_text(text: &str, all: &[NodeOptions], secrets: &BTreeMap<String, String>) -> Option<String> {
    let (name, field) = text.split_once('.').unwrap_or((text, ""));
    if name == "secrets" {
        return secrets.get(field).cloned();
    }
    match all.iter().any(|node| node.name == name) {
        true => static_values(all, name)?.get(field)?.as_str().map(str::to_owned),
        false => (!matches!(name, "request" | "service_response")).then(|| text.to_owned()),
    }
}

fn property(of: &NodeOptions) -> Result<PropertyNode, UnsupportedOption> {
    let name = of.property.as_deref().unwrap_or_default();
    let own = PROPERTIES
        .iter()
        .find_map(|(known, own)| match known.strip_suffix('.') {
            Some(_) => name.strip_prefix(known).map(|key| format!("{own}{key}")),
            None => (*known == name).then(|| (*own).to_owned()),
        });
    let own = own.ok_or_else(|| {
        let known: Vec<&str> = PROPERTIES.iter().map(|(known, _)| *known).collect();
        let known = known.join(", ");
        refused(
            "nodes",
            format!(
                "the property `{name}` of the node `{}` (these are: {known})",
                of.name
            ),
        )
    })?;
    let is_entity = own == ROUTE || own == SERVICE;
    let is = |name: &str| own == name;
    Ok(PropertyNode {
        // The original sends calls wherever values say.
        servers: if is("upstream_target") {
            vec!["*".to_owned()]
        } else {
            Vec::new()
        },
        // A workspace puts its name in front.
        prefix: is("upstream_name").then(String::new),
        json: is_entity || of.content_type.as_deref() == Some("application/json"),
        required: of.non_nil.unwrap_or(false),
        name: own,
    })
}
