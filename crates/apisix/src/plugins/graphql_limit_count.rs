//! `graphql-limit-count`: `graphql-limit` of the catalogue. Its options are those of `limit-count`, and what a query costs.

use super::limit_count::{self, Headers, LimitCount, count_by, scope};
use super::redis::Settings;
use super::{Phases, PluginAdapter, PluginContext, Warnings, read};
use crate::schema::{Schema, boolean, number, object, text};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_plugins::graphql_limit::Config;
use weir_plugins::redis::WindowStore;

/// The plugin.
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
        if options.cost_strategy != "depth" {
            notes.not_available("cost_strategy", "a cost by the weights of fields");
        }
        let headers = Headers::of(context.metadata, self.name())?;
        let number = |value: Option<Value>| value.as_ref().and_then(Value::as_u64);
        let (limit, window) = (number(options.count), number(options.time_window));
        if limit.is_none() || window.is_none() {
            notes.not_available("count", "a count that is found out for each call, or by rules,");
        }
        let shown = |name: &str| options.show_limit_quota_header.then(|| name.to_owned());
        // A limit of 0 is none; what is more than a fraction of a whole cost does not matter.
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
            limit_header: shown(&headers.limit_header),
            remaining_header: shown(&headers.remaining_header),
            reset_header: shown(&headers.reset_header),
            cost_header: shown("X-Graphql-Query-Cost"),
            cost_factor: options.score_factor,
            max_cost,
        })
    }
}
