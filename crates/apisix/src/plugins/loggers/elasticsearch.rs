//! `elasticsearch-logger`: sends entries to Elasticsearch.

use super::{BatchOptions, base, common, first, with_batches, with_entry};
use crate::plugins::{PluginAdapter, PluginContext, Warnings, read};
use crate::schema::{Schema, array, boolean, having, integer, object, text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::logger::Config;
use weir_plugins::logger::form::{ElasticsearchForm, Form};
use weir_plugins::logger::target::{HttpTarget, Target};

/// The plugin `elasticsearch-logger`.
pub struct ElasticsearchLogger;

#[derive(Deserialize)]
struct Options {
    endpoint_addr: Option<String>,
    endpoint_addrs: Option<Vec<String>>,
    field: FieldOptions,
    auth: Option<Auth>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    timeout: u64,
    ssl_verify: bool,
}

#[derive(Deserialize)]
struct FieldOptions {
    index: String,
}

#[derive(Deserialize)]
struct Auth {
    username: String,
    password: String,
}

impl PluginAdapter for ElasticsearchLogger {
    common!("elasticsearch-logger", 413);

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let address = || text().pattern("[^/]$");
            let auth = object([("username", text().longer(1)), ("password", text().longer(1))]);
            let headers = object([])
                .min_fields(1)
                .each_field("^[^:]+$", text().longer(1))
                .closed();
            let shape = object([
                ("endpoint_addr", address()),
                ("endpoint_addrs", array(address()).min_items(1)),
                ("field", object([("index", text())]).required(["index"])),
                ("auth", auth.one_of([having(["username", "password"])])),
                ("headers", headers),
                ("timeout", integer().at_least(1).or(10)),
                ("ssl_verify", boolean().or(true)),
            ])
            .one_of([
                having(["endpoint_addr", "field"]),
                having(["endpoint_addrs", "field"]),
            ]);
            with_batches(with_entry(shape), "elasticsearch-logger")
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
        if options.field.index.replace("${", "").contains('{') {
            notes.not_available("field", "a time in the index");
        }
        let mut headers = options.headers;
        headers.retain(|name, _| !name.eq_ignore_ascii_case("content-type"));
        if let Some(auth) = options.auth {
            let encoded = STANDARD.encode(format!("{}:{}", auth.username, auth.password));
            headers.insert("Authorization".to_owned(), format!("Basic {encoded}"));
        }
        let several = options
            .endpoint_addrs
            .or(options.endpoint_addr.map(|address| vec![address]));
        let address = first("endpoint_addrs", several.unwrap_or_default(), notes);
        serde_json::to_value(Config {
            target: Target::Http(HttpTarget {
                url: address + "/_bulk",
                content_type: "application/x-ndjson".to_owned(),
                headers,
                timeout_ms: options.timeout.saturating_mul(1000),
                verify_tls: options.ssl_verify,
                ..HttpTarget::default()
            }),
            form: Form::Elasticsearch(ElasticsearchForm {
                index: options.field.index,
                doc_type: None,
            }),
            batch: read::<BatchOptions>(config)?.batch(),
            ..base(self.name(), config, context, notes)?
        })
    }
}
