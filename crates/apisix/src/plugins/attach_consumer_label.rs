//! `attach-consumer-label`: `consumer-headers` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::consumer_headers::Config;
use weir_plugins::identity::{IdentityHeader, IdentityValue};

/// The plugin `attach-consumer-label`.
pub struct AttachConsumerLabel;

#[derive(Deserialize)]
struct Options {
    headers: BTreeMap<String, String>,
}

impl PluginAdapter for AttachConsumerLabel {
    fn name(&self) -> &'static str {
        "attach-consumer-label"
    }

    fn priority(&self) -> i64 {
        2399
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let headers = object([]).min_fields(1).each_field("", text().pattern(r"^\$.*"));
            object([("headers", headers), ("_meta", meta::shape())]).required(["headers"])
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "consumer-headers"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let header = |(name, label): (String, String)| {
            let label = label.trim_start_matches('$').to_owned();
            IdentityHeader::new(name, IdentityValue::ConsumerLabel(label))
        };
        serde_json::to_value(Config {
            headers: options.headers.into_iter().map(header).collect(),
        })
    }
}
