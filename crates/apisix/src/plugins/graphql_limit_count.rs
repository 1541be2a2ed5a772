//! `graphql-limit-count`: `graphql-limit` of the catalogue. Its options are those of `limit-count`, and what a query costs.

use super::limit_count::{self, Headers, LimitCount, count_by, scope};
use super::redis::Settings;
use super::{Phases, PluginAdapter, PluginContext, Warnings, read};
use crate::document::{CostDecoration, Item, Node, Service};
use crate::schema::{Schema, boolean, number, object, text};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::graphql_cost::{FieldCosts, Introspection, ServiceWeights, Strategy, Weight};
use weir_plugins::graphql_limit::Config;
use weir_plugins::redis::WindowStore;

/// The plugin `graphql-limit-count`.
pub struct GraphqlLimitCount;

#[derive(Deserialize)]
struct Options {
    count: Option<Value>,
    time_window: Option<Value>,
    key: String,
    key_type: String,
    window_type: String,
    group: Option<String>,
    sync_interval: f64,
    #[serde(flatten)]
    redis: Settings,
    rejected_code: u16,
    rejected_msg: Option<String>,
    show_limit_quota_header: bool,
    cost_strategy: String,
    max_cost: f64,
    score_factor: f64,
    resolve_variables: bool,
    introspection_endpoint: Option<String>,
    #[serde(default)]
    introspection_headers: BTreeMap<String, String>,
}

/// The summand of a cost by weights before it is rounded up: the original rounds each such cost strictly up.
const OFFSET: f64 = 0.01;
/// Decorations of a service that are looked at.
const MOST: usize = 10_000;

impl Options {
    /// The costs of fields; `None`: depths count.
    fn fields(&self, context: &PluginContext<'_>) -> Option<FieldCosts> {
        let strategy = match self.cost_strategy.as_str() {
            "complexity" => Strategy::Complexity,
            "node_quantifier" => Strategy::NodeQuantifier,
            _ => return None,
        };
        let services = context.services.iter().filter_map(|service| {
            let costs = context.graphql_costs.get(&service.id)?;
            Some(ServiceWeights {
                service: Some(service.id.clone()),
                introspection: Some(self.introspection(service, context)),
                weights: costs.values().take(MOST).map(weight).collect(),
            })
        });
        Some(FieldCosts {
            strategy,
            resolve_variables: self.resolve_variables,
            services: services.collect(),
        })
    }

    /// The address for the schema of a service: its first node by name, with the path and the `Host` of the call.
    fn introspection(&self, service: &Item<Service>, context: &PluginContext<'_>) -> Introspection {
        let common = Introspection {
            headers: self.introspection_headers.clone(),
            verify_tls: false,
            ..Introspection::default()
        };
        if let Some(url) = &self.introspection_endpoint {
            return Introspection {
                url: url.clone(),
                ..common
            };
        }
        let service = &service.value;
        let known = || {
            let id = service.upstream_id.as_ref()?;
            let mut upstreams = context.upstreams.iter();
            upstreams.find(|it| it.id == id.0).map(|it| &it.value)
        };
        let upstream = service.upstream.as_ref().or_else(known);
        let url = upstream.and_then(|upstream| {
            let scheme = match upstream.scheme.as_str() {
                "https" | "grpcs" => "https",
                _ => "http",
            };
            let mut nodes: Vec<String> = upstream.nodes.iter().flatten().map(authority).collect();
            nodes.sort();
            Some(format!("{scheme}://{}/", nodes.first()?))
        });
        Introspection {
            // Nothing listens there: without nodes, the cost of queries is unknown.
            url: url.unwrap_or_else(|| "http://127.0.0.1:1/".to_owned()),
            host: upstream
                .filter(|upstream| upstream.pass_host == "rewrite")
                .and_then(|upstream| upstream.upstream_host.clone()),
            use_request_host: upstream.is_some_and(|upstream| upstream.pass_host == "pass"),
            use_request_path: true,
            ..common
        }
    }
}

/// A node as an address has it.
fn authority(node: &Node) -> String {
    let host = match node.host.contains(':') && !node.host.starts_with('[') {
        true => format!("[{}]", node.host),
        false => node.host.clone(),
    };
    match node.port {
        Some(port) => format!("{host}:{port}"),
        None => host,
    }
}

fn weight(of: &CostDecoration) -> Weight {
    Weight {
        path: of.field_path.clone(),
        add: of.add_value,
        add_arguments: of.add_arguments.clone(),
        multiply: of.mul_value,
        multiply_arguments: of.mul_arguments.clone(),
    }
}

impl PluginAdapter for GraphqlLimitCount {
    fn name(&self) -> &'static str {
        "graphql-limit-count"
    }

    fn priority(&self) -> i64 {
        1004
    }

    fn phases(&self) -> Phases {
        LimitCount.phases()
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            limit_count::shape()
                .field(
                    "cost_strategy",
                    text()
                        .options(["depth", "complexity", "node_quantifier"])
                        .or("depth"),
                )
                .field("max_cost", number().at_least(0).or(0))
                .field("score_factor", number().above(0).or(1))
                .field("resolve_variables", boolean().or(true))
                .field("introspection_endpoint", text().pattern("^https?://"))
                .field("introspection_headers", object([]).each_field("^[^:]+$", text()))
        });
        &SHAPE
    }

    fn metadata_shape(&self) -> Option<&'static Schema> {
        LimitCount.metadata_shape()
    }

    fn explain(&self, config: &Value, error: String) -> String {
        LimitCount.explain(config, error)
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        LimitCount.check(config)
    }

    fn plugin(&self) -> &'static str {
        "graphql-limit"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let store = options.redis.redis(notes).map(|redis| WindowStore {
            on_unavailable: options.redis.on_unavailable(),
            unavailable_message: Some("failed to limit count".to_owned()),
            sync_interval_seconds: (options.sync_interval > 0.0).then(|| options.sync_interval.min(3600.0)),
            ..WindowStore::new(redis)
        });
        if options.window_type != "fixed" {
            notes.not_available(
                "window_type",
                "a sliding window of plugin \"graphql-limit-count\"",
            );
        }
        let fields = options.fields(context);
        let headers = Headers::of(context.metadata, self.name())?;
        let number = |value: Option<Value>| value.as_ref().and_then(Value::as_u64);
        let (limit, window) = (number(options.count), number(options.time_window));
        if limit.is_none() || window.is_none() {
            notes.not_available("count", "a count that is found out for each call, or by rules,");
        }
        let header = |name: &str| options.show_limit_quota_header.then(|| name.to_owned());
        // A limit of 0 means no limit; what is more than a fraction of a whole cost does not matter.
        let max_cost = (options.max_cost > 0.0).then_some(options.max_cost as u64);
        serde_json::to_value(Config {
            limit: limit.unwrap_or(0),
            window_seconds: window.unwrap_or(1),
            by: count_by(&options.key_type, &options.key),
            scope: Some(match &options.group {
                Some(group) => format!("graphql-limit-count/group/{group}"),
                None => scope(config, context.instance),
            }),
            status: options.rejected_code,
            message: options.rejected_msg,
            store,
            limit_header: header(&headers.limit_header),
            remaining_header: header(&headers.remaining_header),
            reset_header: header(&headers.reset_header),
            cost_header: header("X-Graphql-Query-Cost"),
            cost_factor: options.score_factor,
            cost_offset: fields.as_ref().map_or(0.0, |_| OFFSET),
            fields,
            max_cost,
            max_body_bytes: context.settings.graphql_max_bytes,
        })
    }
}
