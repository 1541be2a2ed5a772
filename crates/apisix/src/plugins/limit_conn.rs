//! `limit-conn`: `concurrency-limit` of the catalogue.

use super::limit_count::{amount, count_by, policy, scope};
use super::{Mapping, Notes, Phases, Surroundings, meta, read};
use crate::schema::{Shape, any, array, boolean, having, integer, number, object, one_of, text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::concurrency_limit::{Config, Limit};
use weir_plugins::counting::{Amount, CountBy, OnFailure};

/// The most rules that the catalogue's plugin takes.
const MOST_RULES: usize = 8;
/// The longest delay that it takes, in seconds.
const LONGEST: f64 = 3600.0;

/// The plugin.
pub struct LimitConn;

#[derive(Deserialize)]
struct Options {
    conn: Option<Amount>,
    burst: Option<Amount>,
    default_conn_delay: f64,
    key: Option<String>,
    key_type: String,
    policy: String,
    rejected_code: u16,
    rejected_msg: Option<String>,
    allow_degradation: bool,
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    conn: Amount,
    burst: Amount,
    key: String,
}

impl Mapping for LimitConn {
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

    fn shape(&self) -> &'static Shape {
        static SHAPE: LazyLock<Shape> = LazyLock::new(|| {
            let burst = || one_of([integer().at_least(0), text()]);
            let rule = object([("conn", amount()), ("burst", burst()), ("key", text())])
                .required(["conn", "burst", "key"]);
            let cluster = any().when(
                policy("redis-cluster"),
                having(["redis_cluster_nodes", "redis_cluster_name"]),
                any(),
            );
            object([
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
            ])
            .when(policy("redis"), having(["redis_host"]), cluster)
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "concurrency-limit"
    }

    fn translate(
        &self,
        config: &Value,
        surroundings: &Surroundings<'_>,
        notes: &mut Notes,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        if options.policy != "local" {
            let what = format!("policy \"{}\" of plugin \"limit-conn\"", options.policy);
            notes.not_available("policy", &what);
        }
        if options.rules.len() > MOST_RULES {
            notes.not_available("rules", &format!("a list of more than {MOST_RULES} rules"));
        }
        let mut made = Config {
            scope: Some(scope(config, surroundings.instance)),
            delay_seconds: options.default_conn_delay.min(LONGEST),
            status: options.rejected_code,
            message: options.rejected_msg,
            on_failure: match options.allow_degradation {
                true => OnFailure::Pass,
                false => OnFailure::Refuse,
            },
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
                by: Some(CountBy::Template(rule.key)),
            };
            made.limits = options.rules.into_iter().map(limit).collect();
        }
        serde_json::to_value(made)
    }
}
