//! `http-logger`: sends entries to an HTTP server.

use super::{BatchOptions, URL, base, common, with_batches, with_entry};
use crate::plugins::{PluginAdapter, PluginContext, Warnings, read};
use crate::schema::{Schema, boolean, integer, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::logger::Config;
use weir_plugins::logger::form::Form;
use weir_plugins::logger::target::{HttpTarget, Target};

/// The plugin `http-logger`.
pub struct HttpLogger;

#[derive(Deserialize)]
struct Options {
    uri: String,
    auth_header: Option<String>,
    timeout: u64,
    concat_method: String,
    ssl_verify: bool,
    batch_max_size: usize,
}

impl PluginAdapter for HttpLogger {
    common!("http-logger", 410);

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let shape = object([
                ("uri", text().pattern(URL)),
                ("auth_header", text()),
                ("timeout", integer().at_least(1).or(3)),
                ("concat_method", text().options(["json", "new_line"]).or("json")),
                ("ssl_verify", boolean().or(false)),
            ]);
            with_batches(with_entry(shape), "http logger").required(["uri"])
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
        let is_json = options.concat_method == "json";
        let headers = options
            .auth_header
            .map(|value| ("Authorization".to_owned(), value));
        serde_json::to_value(Config {
            target: Target::Http(HttpTarget {
                url: options.uri,
                content_type: if is_json { "application/json" } else { "text/plain" }.to_owned(),
                headers: headers.into_iter().collect::<BTreeMap<_, _>>(),
                timeout_ms: options.timeout.saturating_mul(1000),
                verify_tls: options.ssl_verify,
                ..HttpTarget::default()
            }),
            form: match options.batch_max_size {
                1 => Form::Bare,
                _ if is_json => Form::Array,
                _ => Form::Separated,
            },
            batch: read::<BatchOptions>(config)?.batch(),
            ..base(self.name(), config, context, notes)?
        })
    }
}
