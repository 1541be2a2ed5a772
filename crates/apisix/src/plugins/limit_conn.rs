//! `limit-conn`: `concurrency-limit` of the catalogue.

use super::limit_count::{amount, count_by, scope};
use super::redis::{Settings, with_policies};
use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, array, boolean, having, integer, number, object, one_of, text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::concurrency_limit::{Config, Limit};
use weir_plugins::rate_key::{LimitValue, OnFailure, RateLimitKey};
use weir_plugins::redis::{OnUnavailable, Store};

/// The most rules that the catalogue's plugin takes.
const MOST_RULES: usize = 8;
/// The longest delay that it takes, in seconds.
const LONGEST: f64 = 3600.0;

/// The plugin `limit-conn`.
pub struct LimitConn;

#[derive(Deserialize)]
struct Options {
    conn: Option<LimitValue>,
    burst: Option<LimitValue>,
    default_conn_delay: f64,
    key: Option<String>,
    key_type: String,
    key_ttl: Option<u32>,
    #[serde(flatten)]
    redis: Settings,
    rejected_code: u16,
    rejected_msg: Option<String>,
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    conn: LimitValue,
    burst: LimitValue,
    key: String,
}

impl PluginAdapter for LimitConn {
    fn name(&self) -> &'static str {
        "limit-conn"
    }

    fn priority(&self) -> i64 {
        1003
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let burst = || one_of([integer().at_least(0), text()]);
            let rule = object([("conn", amount()), ("burst", burst()), ("key", text())])
                .required(["conn", "burst", "key"]);
            let shape = object([
                ("conn", amount()),
                ("burst", burst()),
                ("default_conn_delay", number().above(0)),
                ("only_use_default_delay", boolean().or(false)),
                ("key", text()),
                ("key_type", text().options(["var", "var_combination"]).or("var")),
                (
                    "policy",
                    text().options(["redis", "redis-cluster", "local"]).or("local"),
                ),
                ("rejected_code", integer().at_least(200).at_most(599).or(503)),
                ("rejected_msg", text().longer(1)),
                ("allow_degradation", boolean().or(false)),
                ("rules", array(rule)),
                ("_meta", meta::shape()),
            ])
            .one_of([
                having(["conn", "burst", "default_conn_delay", "key"]),
                having(["default_conn_delay", "rules"]),
            ]);
            with_policies(shape, false, true)
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "concurrency-limit"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let redis = options.redis.redis(notes);
        let on_unavailable = options.redis.on_unavailable();
        if options.rules.len() > MOST_RULES {
            notes.not_available("rules", &format!("a list of more than {MOST_RULES} rules"));
        }
        let mut made = Config {
            scope: Some(scope(config, context.instance)),
            delay_seconds: options.default_conn_delay.min(LONGEST),
            status: options.rejected_code,
            message: options.rejected_msg,
            on_failure: match on_unavailable {
                OnUnavailable::Pass => OnFailure::Pass,
                _ => OnFailure::Refuse,
            },
            store: redis.map(|redis| Store {
                on_unavailable,
                ..Store::new(redis)
            }),
            forget_after_seconds: options.key_ttl.unwrap_or(3600).max(1),
            ..Config::default()
        };
        if let (Some(count), Some(burst), Some(key)) = (options.conn, options.burst, options.key) {
            made.by = count_by(&options.key_type, &key);
            let by = None;
            made.limits = vec![Limit { count, burst, by }];
        } else {
            let limit = |rule: Rule| Limit {
                count: rule.conn,
                burst: rule.burst,
                by: Some(RateLimitKey::Template(rule.key)),
            };
            made.limits = options.rules.into_iter().map(limit).collect();
        }
        serde_json::to_value(made)
    }
}
