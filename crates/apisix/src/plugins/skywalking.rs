//! `skywalking`: segments of sampled calls for SkyWalking; `config.yaml` (`plugin_attr.skywalking`) has the address.

use super::{Phases, PluginAdapter, PluginContext, Warnings, printed_shape, read};
use crate::schema::{Schema, integer, object, text};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::LazyLock;
use weir_plugins::logger::Batch;
use weir_plugins::logger::target::HttpTarget;
use weir_plugins::skywalking::Config;

/// The plugin `skywalking`.
pub struct Skywalking;

/// The number of APISIX among SkyWalking's components.
const COMPONENT: u32 = 6002;

#[derive(Deserialize)]
struct Options {
    sample_ratio: f64,
}

/// The settings of `plugin_attr.skywalking`.
#[derive(Deserialize)]
struct Attributes {
    service_name: String,
    service_instance_name: String,
    endpoint_addr: String,
    report_interval: Option<u64>,
}

/// The form of `plugin_attr.skywalking`.
pub fn attributes_shape() -> &'static Schema {
    static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
        object([
            ("service_name", text().or("APISIX")),
            ("service_instance_name", text().or("APISIX Instance Name")),
            ("endpoint_addr", text().or("http://127.0.0.1:12800")),
            ("report_interval", integer()),
        ])
    });
    &SHAPE
}

impl PluginAdapter for Skywalking {
    fn name(&self) -> &'static str {
        "skywalking"
    }

    fn priority(&self) -> i64 {
        12_010
    }

    fn phases(&self) -> Phases {
        Phases {
            rewrite: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> =
            LazyLock::new(|| printed_shape(include_str!("schemas/skywalking.json"), "schema"));
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "skywalking"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let attributes = context.settings.skywalking.clone();
        let mut attributes = attributes.unwrap_or_else(|| json!({}));
        // What the file says is good already; this adds the defaults if it says nothing.
        let _checked = attributes_shape().check(&mut attributes);
        let attributes: Attributes = read(&attributes)?;
        let server = attributes.endpoint_addr.trim_end_matches('/');
        serde_json::to_value(Config {
            service: attributes.service_name,
            instance: match attributes.service_instance_name.as_str() {
                "$hostname" => None,
                name => Some(name.to_owned()),
            },
            server: HttpTarget {
                url: format!("{server}/v3/segments"),
                verify_tls: false,
                ..HttpTarget::default()
            },
            sample_ratio: options.sample_ratio,
            component: COMPONENT,
            batch: Batch {
                max_entries: 100,
                delay_ms: attributes.report_interval.unwrap_or(3).saturating_mul(1_000),
                retries: 0,
                ..Batch::default()
            },
            ..Config::default()
        })
    }
}
