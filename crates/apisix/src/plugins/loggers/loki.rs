//! `loki-logger`: APISIX's fields and defaults for `logger` of the catalogue with Loki as its target.

use super::{BatchOptions, URL, base, common, first, with_batches, with_entry};
use crate::plugins::{PluginAdapter, PluginContext, Warnings, read};
use crate::schema::{Schema, array, boolean, integer, object, text};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::logger::Config;
use weir_plugins::logger::form::Form;
use weir_plugins::logger::target::{HttpTarget, Target};

/// The plugin `loki-logger`.
pub struct LokiLogger;

#[derive(Deserialize)]
struct Options {
    endpoint_addrs: Vec<String>,
    endpoint_uri: String,
    tenant_id: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    log_labels: BTreeMap<String, String>,
    ssl_verify: bool,
    timeout: u64,
}

impl PluginAdapter for LokiLogger {
    common!("loki-logger", 414);

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let texts = || object([]).each_field(".*", text().longer(1));
            let shape = object([
                ("endpoint_addrs", array(text().pattern(URL)).min_items(1)),
                ("endpoint_uri", text().longer(1).or("/loki/api/v1/push")),
                ("tenant_id", text().or("fake")),
                ("headers", texts()),
                ("log_labels", texts().or(json!({"job": "apisix"}))),
                ("ssl_verify", boolean().or(false)),
                ("timeout", integer().at_least(1).at_most(60_000).or(3000)),
                ("keepalive", boolean().or(true)),
                ("keepalive_timeout", integer().at_least(1000).or(60_000)),
                ("keepalive_pool", integer().at_least(1).or(5)),
            ]);
            with_batches(with_entry(shape), "loki logger").required(["endpoint_addrs"])
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
        let mut headers = options.headers;
        headers.retain(|name, _| !name.eq_ignore_ascii_case("content-type"));
        headers.insert("X-Scope-OrgID".to_owned(), options.tenant_id);
        let address = first("endpoint_addrs", options.endpoint_addrs, notes);
        serde_json::to_value(Config {
            target: Target::Http(HttpTarget {
                url: address + &options.endpoint_uri,
                headers,
                timeout_ms: options.timeout,
                verify_tls: options.ssl_verify,
                ..HttpTarget::default()
            }),
            form: Form::Loki(options.log_labels),
            batch: read::<BatchOptions>(config)?.batch(),
            ..base(self.name(), config, context, notes)?
        })
    }
}
