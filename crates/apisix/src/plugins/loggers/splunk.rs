//! `splunk-hec-logging`: sends entries to Splunk's HTTP event collector.

use super::{BatchOptions, URL, base, common, with_batches, with_format};
use crate::plugins::{PluginAdapter, PluginContext, Warnings, read};
use crate::schema::{Schema, boolean, integer, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::logger::Config;
use weir_plugins::logger::form::Form;
use weir_plugins::logger::layout::Layout;
use weir_plugins::logger::target::{HttpTarget, Target};

/// The plugin `splunk-hec-logging`.
pub struct SplunkHecLogging;

#[derive(Deserialize)]
struct Options {
    endpoint: Endpoint,
    ssl_verify: bool,
}

#[derive(Deserialize)]
struct Endpoint {
    uri: String,
    token: String,
    channel: Option<String>,
    timeout: u64,
}

impl PluginAdapter for SplunkHecLogging {
    common!("splunk-hec-logging", 409);

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let endpoint = object([
                ("uri", text().pattern(URL)),
                ("token", text()),
                ("channel", text()),
                ("timeout", integer().at_least(1).or(10)),
                ("keepalive_timeout", integer().at_least(1000).or(60_000)),
            ]);
            let shape = object([
                ("endpoint", endpoint.required(["uri", "token"])),
                ("ssl_verify", boolean().or(true)),
            ]);
            with_batches(with_format(shape), "splunk-hec-logging").required(["endpoint"])
        });
        &SHAPE
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let endpoint = options.endpoint;
        let mut headers =
            BTreeMap::from([("Authorization".to_owned(), format!("Splunk {}", endpoint.token))]);
        if let Some(channel) = endpoint.channel {
            headers.insert("X-Splunk-Request-Channel".to_owned(), channel);
        }
        serde_json::to_value(Config {
            target: Target::Http(HttpTarget {
                url: endpoint.uri,
                headers,
                timeout_ms: endpoint.timeout.saturating_mul(1000),
                verify_tls: options.ssl_verify,
                ..HttpTarget::default()
            }),
            form: Form::Splunk("apache-apisix-splunk-hec-logging".to_owned()),
            layout: Layout::Event,
            batch: read::<BatchOptions>(config)?.batch(),
            ..base(self.name(), config, context, notes)?
        })
    }
}
