//! The cost of GraphQL queries, by the weights of the fields that they select: for limits that count costs instead of
//! calls.
//!
//! Weights belong to types and fields of the service's schema, which is fetched as soon as there are weights. Without a
//! schema, queries are refused, because their cost is unknown.

mod schema;
mod walk;
mod weight_tree;

use schema::{CACHE_BYTES, SchemaLookup, Schemas, Source, Types};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use walk::{NoCost, Unwritten, Walk};
use weight_tree::WeightTree;
use weir_flow::expiring::ExpiringMap;
use weir_plugin::graphql::Tree;
use weir_plugin::headers::{FieldName, is_value};
use weir_plugin::{Exchange, Outcome, Refusal, RefusalKind, Request, uri};
use weir_plugins_shared::SERVICE_LABEL;
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::graphql::{self, GraphqlError};
use weir_plugins_shared::http_request::HttpServer;

/// What queries cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueryCost {
    /// What costs something.
    pub strategy: Strategy,
    /// What costs are multiplied with, more than 0. They are rounded up, and at least 1.
    pub factor: f64,
    /// What one query may cost; one that costs more is refused with status 403, and not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// The response header with the query's cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The weights, by service.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceWeights>,
}

impl Default for QueryCost {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            factor: 1.0,
            max: None,
            header: None,
            services: Vec::new(),
        }
    }
}

/// What costs something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The operation and every field: what is selected below it, multiplied, and its own.
    #[default]
    Complexity,
    /// Only fields with an argument that multiplies, each as often as it is resolved: about as many queries as the service
    /// has to make.
    NodeQuantifier,
}

/// The weights of one service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceWeights {
    /// Its name, or its id if the dialect has ids. Left out: all services that are not named elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The source of its schema; needed if there are weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspection: Option<Introspection>,
    /// The weights, at most 10,000. What has none adds 1 and multiplies by 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10_000))]
    pub weights: Vec<Weight>,
}

/// The source of a schema. It is fetched when a query needs it, and again after ten minutes. An old schema is used for
/// up to a day if there is no newer one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Introspection {
    /// The address, `http://` or `https://`.
    pub url: String,
    /// The `Host` that is sent. Default: that of the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Whether the schema is fetched from the path of the call that needs it, instead of the path of `url`. Each path
    /// then has its own schema, so that no caller can choose the schema by which others are counted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub use_request_path: bool,
    /// Whether the `Host` of the call that needs the schema is sent, instead of `host`. Each host then has its own
    /// schema.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub use_request_host: bool,
    /// Further headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Whether the server's certificate is verified.
    pub verify_tls: bool,
}

impl Default for Introspection {
    fn default() -> Self {
        Self {
            url: String::new(),
            host: None,
            use_request_path: false,
            use_request_host: false,
            headers: BTreeMap::new(),
            verify_tls: true,
        }
    }
}

/// Headers may be secrets.
impl std::fmt::Debug for Introspection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Introspection").finish_non_exhaustive()
    }
}

/// The weight of a part of a schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Weight {
    /// What it is for: a type (`Person`: all fields of this type), a field of a type (`Person.name`), or a way from a type on
    /// (`Query.people.name`). Of several that fit, the longest way counts.
    pub path: String,
    /// What it costs itself.
    pub add: f64,
    /// Arguments whose numbers are added to that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add_arguments: Vec<String>,
    /// The factor for the cost of everything below it.
    pub multiply: f64,
    /// Arguments with whose numbers that is multiplied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub multiply_arguments: Vec<String>,
}

impl Default for Weight {
    fn default() -> Self {
        Self {
            path: String::new(),
            add: 1.0,
            add_arguments: Vec::new(),
            multiply: 1.0,
            multiply_arguments: Vec::new(),
        }
    }
}

/// Services at most. Of those with the same weights only one counts: costs that are for all services stand with each.
const MAX_SERVICES: usize = 10_000;
/// Weights of a service at most.
const MAX_WEIGHTS: usize = 10_000;
/// Names in a path at most.
const MAX_NAMES: usize = 16;
/// Arguments that add to a weight, or multiply it, at most.
const MAX_ARGUMENTS: usize = 16;

/// The schemas that all instances have fetched.
#[derive(Clone)]
pub(crate) struct SchemaCache(Arc<Schemas>);

impl Default for SchemaCache {
    fn default() -> Self {
        Self(ExpiringMap::new(CACHE_BYTES))
    }
}

/// Costs made ready for many calls.
pub(crate) struct CompiledCost {
    fields: CompiledFields,
    factor: f64,
    max: Option<u64>,
    header: Option<FieldName>,
}

/// The costs of fields made ready for many calls.
pub(crate) struct CompiledFields {
    plugin: &'static str,
    strategy: Strategy,
    resolve_variables: bool,
    /// By service; the empty name is for all others.
    services: BTreeMap<String, Weights>,
    none: WeightTree,
}

struct Weights {
    /// Shared by all services with the same weights.
    tree: Arc<WeightTree>,
    source: Option<Source>,
}

/// What queries cost by the fields that they select, without what is made of that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FieldCosts {
    /// What costs something.
    pub strategy: Strategy,
    /// Whether numbers outside the query's text count: those of variables, and the defaults of arguments. `false`: such
    /// an argument is ignored, and callers can hide how much they request.
    pub resolve_variables: bool,
    /// The weights, by service.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceWeights>,
}

impl Default for FieldCosts {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            resolve_variables: true,
            services: Vec::new(),
        }
    }
}

/// Says what is wrong with costs, at this field.
pub(crate) fn check(of: &QueryCost, field: &'static str, faults: &mut ConfigErrors) {
    if !(of.factor > 0.0 && of.factor.is_finite()) {
        faults.add_at(&[field, "factor"], "expected a number above 0");
    }
    if let Some(name) = &of.header
        && FieldName::new(name).is_none()
    {
        faults.add_at(
            &[field, "header"],
            format!("expected a header name, found {name:?}"),
        );
    }
    check_services(&of.services, field, faults);
}

/// Likewise for the weights of services.
pub(crate) fn check_services(services: &[ServiceWeights], field: &'static str, faults: &mut ConfigErrors) {
    if services.len() > MAX_SERVICES && kinds_of_weights(services) > MAX_SERVICES {
        faults.add_at(
            &[field, "services"],
            format!("expected at most {MAX_SERVICES} services with weights of their own"),
        );
    }
    for service in services {
        if let Some(what) = fault_of(service) {
            let name = service.service.as_deref().unwrap_or("all others");
            faults.add_at(&[field, "services"], format!("{what} (service {name})"));
        }
    }
}

/// How many lists of weights there are that differ.
fn kinds_of_weights(services: &[ServiceWeights]) -> usize {
    let kinds: HashSet<String> = services.iter().map(|it| key_of(&it.weights)).collect();
    kinds.len()
}

/// Tells lists of weights apart.
fn key_of(weights: &[Weight]) -> String {
    serde_json::json!(weights).to_string()
}

fn fault_of(service: &ServiceWeights) -> Option<String> {
    if service.weights.len() > MAX_WEIGHTS {
        return Some(format!("expected at most {MAX_WEIGHTS} weights"));
    }
    match &service.introspection {
        None if !service.weights.is_empty() => {
            return Some(
                "expected `introspection` together with `weights`: they belong to types of the schema"
                    .to_owned(),
            );
        }
        Some(of) if HttpServer::parse(&of.url).is_none() => {
            return Some(
                "expected an address that begins with http:// or https:// in `introspection`".to_owned(),
            );
        }
        Some(of)
            if of
                .host
                .as_ref()
                .is_some_and(|host| host.is_empty() || !is_value(host.as_bytes())) =>
        {
            return Some("expected a `host` of `introspection` that a header can hold".to_owned());
        }
        Some(of) if of.headers.keys().any(|name| FieldName::new(name).is_none()) => {
            return Some("expected header names in `introspection`".to_owned());
        }
        _ => {}
    }
    let mut weights = service.weights.iter();
    weights.find_map(|weight| {
        let names: Vec<&str> = weight.path.split('.').collect();
        let is_name = |name: &str| {
            let mut bytes = name.bytes();
            bytes
                .next()
                .is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
                && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        };
        if names.len() > MAX_NAMES || !names.iter().all(|name| is_name(name)) {
            return Some(format!(
                "expected a path such as `Query.products`, found {:?}",
                weight.path
            ));
        }
        if [weight.add, weight.multiply]
            .iter()
            .any(|it| !(*it >= 0.0 && it.is_finite()))
        {
            return Some(format!("expected numbers of at least 0 for {:?}", weight.path));
        }
        let arguments = weight.add_arguments.len().max(weight.multiply_arguments.len());
        (arguments > MAX_ARGUMENTS)
            .then(|| format!("expected at most {MAX_ARGUMENTS} arguments for {:?}", weight.path))
    })
}

/// What happens to a call.
pub(crate) enum Costs {
    /// It costs so much.
    This(u64),
    /// It goes on like this.
    Otherwise(Outcome),
}

/// What the fields of a call cost.
pub(crate) enum FieldSum {
    /// So much.
    This(f64),
    /// Unknown, because the service does not reveal its schema.
    NoSchema,
    /// It goes on like this.
    Otherwise(Outcome),
}

/// Whether a service may find another query in a request than the one that is looked at here: some read the address of a
/// POST first, or the body of a GET.
fn is_ambiguous(request: &Request) -> bool {
    let names: [&[u8]; 4] = [b"query", b"variables", b"operationName", b"extensions"];
    let arguments = request
        .query
        .as_deref()
        .unwrap_or_default()
        .split(|byte| *byte == b'&');
    let times = |name: &[u8]| {
        let is_it = |pair: &&[u8]| {
            let end = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
            &*uri::unescape(&pair[..end]) == name
        };
        arguments.clone().filter(is_it).count()
    };
    match request.method.as_slice() {
        b"POST" => names.iter().any(|name| times(name) > 0),
        _ => request.has_body || names.iter().any(|name| times(name) > 1),
    }
}

impl CompiledFields {
    /// Those of an instance of this plugin. The configuration has been checked.
    pub(crate) fn new(of: &FieldCosts, plugin: &'static str, owner: &str, schemas: &SchemaCache) -> Self {
        let mut trees: HashMap<String, Arc<WeightTree>> = HashMap::new();
        let services = of.services.iter().map(|service| {
            let source = service.introspection.as_ref();
            let tree = trees
                .entry(key_of(&service.weights))
                .or_insert_with(|| Arc::new(WeightTree::new(&service.weights)));
            let weights = Weights {
                tree: Arc::clone(tree),
                source: source.and_then(|it| Source::new(it, owner, &schemas.0)),
            };
            (service.service.clone().unwrap_or_default(), weights)
        });
        Self {
            plugin,
            strategy: of.strategy,
            resolve_variables: of.resolve_variables,
            services: services.collect(),
            none: WeightTree::new(&[]),
        }
    }

    /// The weights that are for a call, if there are any.
    fn weights(&self, exchange: &Exchange) -> Option<&Weights> {
        let route = exchange.route.as_deref();
        let service = route.map_or("", |route| match route.labels.get(SERVICE_LABEL) {
            Some(id) => id,
            None => &route.service,
        });
        let own = self.services.get(service).or_else(|| self.services.get(""));
        own.filter(|weights| !weights.tree.is_empty())
    }

    /// What the fields of a call cost, or what the engine has to do first.
    pub(crate) fn of(&self, exchange: &mut Exchange, max_bytes: usize) -> FieldSum {
        let weights = self.weights(exchange);
        let mut types = None;
        if let Some(Weights {
            source: Some(source), ..
        }) = weights
        {
            match source.find(exchange) {
                SchemaLookup::Types(found) => types = Some(found),
                SchemaLookup::Wait(outcome) => return FieldSum::Otherwise(outcome),
                SchemaLookup::Nothing => return FieldSum::NoSchema,
            }
        }
        let tree = weights.map_or(&self.none, |weights| &*weights.tree);
        if is_ambiguous(&exchange.request) {
            let message = "Invalid graphql request: its address and its body both ask".to_owned();
            return FieldSum::Otherwise(GraphqlError::Invalid(message).outcome(self.plugin));
        }
        let query = match graphql::query(&exchange.request, max_bytes) {
            Ok(Some(query)) => query,
            Ok(None) => return FieldSum::Otherwise(Outcome::NeedBody { max_bytes }),
            Err(fault) => return FieldSum::Otherwise(fault.outcome(self.plugin)),
        };
        match self.sum(&query, tree, types.as_deref(), exchange) {
            Ok(sum) => FieldSum::This(sum),
            Err(fault) => FieldSum::Otherwise(fault.outcome(self.plugin)),
        }
    }

    fn sum(
        &self,
        query: &str,
        weights: &WeightTree,
        types: Option<&Types>,
        exchange: &Exchange,
    ) -> Result<f64, GraphqlError> {
        let invalid = |what: &str| GraphqlError::Invalid(format!("Invalid graphql request: {what}"));
        let request = &exchange.request;
        request.work.allow_pass(query.len());
        let spent = request.work.spend(query.len() / 2);
        spent.map_err(|exhausted| invalid(&exhausted.to_string()))?;
        let tree = Tree::read(query).ok_or_else(|| invalid("failed to parse graphql query"))?;
        let parameters = graphql::parameters(request)?;
        let unwritten = match self.resolve_variables {
            true => Unwritten::Counts(parameters.variables.as_ref()),
            false => Unwritten::CountsNot,
        };
        let mut walk = Walk::new(self.strategy, weights, types, &tree, unwritten);
        let cost = walk.cost(parameters.operation_name.as_deref());
        cost.map_err(|fault| match fault {
            NoCost::Cycle => invalid("fragment spreads must not form cycles"),
            NoCost::Twice => invalid("an argument or a variable appears twice"),
            NoCost::TooLarge => invalid("the query expands too many selections"),
        })
    }
}

/// A cost that can be counted: a whole number of at least 1.
pub(crate) fn countable(cost: f64) -> u64 {
    (cost.min(walk::MAX_COST).ceil() as u64).max(1)
}

impl CompiledCost {
    /// Those of an instance of this plugin. The configuration has been checked.
    pub(crate) fn new(of: &QueryCost, plugin: &'static str, owner: &str, schemas: &SchemaCache) -> Self {
        let fields = FieldCosts {
            strategy: of.strategy,
            services: of.services.clone(),
            ..FieldCosts::default()
        };
        Self {
            fields: CompiledFields::new(&fields, plugin, owner, schemas),
            factor: of.factor,
            max: of.max,
            header: of.header.as_deref().and_then(FieldName::new),
        }
    }

    /// What a call costs, or what the engine has to do first.
    pub(crate) fn of(&self, exchange: &mut Exchange) -> Costs {
        match self.fields.of(exchange, graphql::DEFAULT_MAX_BODY_BYTES) {
            FieldSum::This(sum) => self.bound(countable(sum * self.factor), exchange),
            FieldSum::NoSchema => Costs::Otherwise(self.refuse_without_schema()),
            FieldSum::Otherwise(outcome) => Costs::Otherwise(outcome),
        }
    }

    /// Tells the cost, and refuses what costs more than any query may.
    fn bound(&self, cost: u64, exchange: &mut Exchange) -> Costs {
        if let Some(name) = &self.header {
            let mut digits = itoa::Buffer::new();
            exchange
                .response_headers
                .set_named(name, digits.format(cost).as_bytes());
        }
        let Some(most) = self.max.filter(|most| cost > *most) else {
            return Costs::This(cost);
        };
        let plugin = self.fields.plugin;
        let mut refusal = Refusal::new(RefusalKind::Forbidden { plugin });
        refusal.message = Some(format!(
            "Invalid graphql request: query cost {cost} exceeds max_cost {most}"
        ));
        Costs::Otherwise(Outcome::Refuse(Box::new(refusal)))
    }

    fn refuse_without_schema(&self) -> Outcome {
        Outcome::refuse(RefusalKind::PluginFailed {
            plugin: self.fields.plugin,
            reason: "the GraphQL schema of the service is not known",
        })
    }
}
