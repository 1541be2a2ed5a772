//! `limit-req`: `throttle` of the catalogue.

use super::limit_count::{count_by, scope};
use super::redis::{Settings, with_policies};
use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, boolean, integer, number, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::redis::Store;
use weir_plugins::throttle::Config;

/// The plugin `limit-req`.
pub struct LimitReq;

#[derive(Deserialize)]
struct Options {
    rate: f64,
    burst: f64,
    key: String,
    key_type: String,
    #[serde(flatten)]
    redis: Settings,
    rejected_code: u16,
    rejected_msg: Option<String>,
    nodelay: bool,
}

impl PluginAdapter for LimitReq {
    fn name(&self) -> &'static str {
        "limit-req"
    }

    fn priority(&self) -> i64 {
        1001
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let shape = object([
                ("rate", number().above(0)),
                ("burst", number().at_least(0)),
                ("key", text()),
                ("key_type", text().options(["var", "var_combination"]).or("var")),
                (
                    "policy",
                    text().options(["redis", "redis-cluster", "local"]).or("local"),
                ),
                ("rejected_code", integer().at_least(200).at_most(599).or(503)),
                ("rejected_msg", text().longer(1)),
                ("nodelay", boolean().or(false)),
                ("allow_degradation", boolean().or(false)),
                ("_meta", meta::shape()),
            ])
            .required(["rate", "burst", "key"]);
            with_policies(shape, false, false)
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "throttle"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let redis = options.redis.redis(notes);
        serde_json::to_value(Config {
            burst: options.burst,
            delay: !options.nodelay,
            by: count_by(&options.key_type, &options.key),
            scope: Some(scope(config, context.instance)),
            status: options.rejected_code,
            message: options.rejected_msg,
            store: redis.map(|redis| Store {
                on_unavailable: options.redis.on_unavailable(),
                ..Store::new(redis)
            }),
            ..Config::new(options.rate)
        })
    }
}
