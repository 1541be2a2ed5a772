//! `skywalking-logger`: sends entries to SkyWalking over HTTP.

use super::{BatchOptions, base, common};
use crate::plugins::{PluginAdapter, PluginContext, Warnings, read};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::logger::Config;
use weir_plugins::logger::form::{Form, SkywalkingForm};
use weir_plugins::logger::target::{HttpTarget, Target};

/// The plugin `skywalking-logger`.
pub struct SkywalkingLogger;

#[derive(Deserialize)]
struct Options {
    endpoint_addr: String,
    service_name: String,
    service_instance_name: String,
    timeout: u64,
}

impl PluginAdapter for SkywalkingLogger {
    common!("skywalking-logger", 408, printed);

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        // Only the address counts, whatever path stands behind it.
        let (scheme, rest) = options
            .endpoint_addr
            .split_once("://")
            .unwrap_or(("http", &options.endpoint_addr));
        let authority = rest.split('/').next().unwrap_or_default();
        serde_json::to_value(Config {
            target: Target::Http(HttpTarget {
                url: format!("{scheme}://{authority}/v3/logs"),
                timeout_ms: options.timeout.saturating_mul(1000),
                ..HttpTarget::default()
            }),
            form: Form::Skywalking(SkywalkingForm {
                service: options.service_name,
                instance: match options.service_instance_name.as_str() {
                    "$hostname" => None,
                    name => Some(name.to_owned()),
                },
            }),
            batch: read::<BatchOptions>(config)?.batch(),
            ..base(self.name(), config, context, notes)?
        })
    }
}
