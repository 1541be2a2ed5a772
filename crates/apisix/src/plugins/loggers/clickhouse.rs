//! `clickhouse-logger`: sends entries to ClickHouse.

use super::{BatchOptions, URL, base, common, first, with_batches, with_entry};
use crate::plugins::{PluginAdapter, PluginContext, Warnings, read};
use crate::schema::{Schema, array, boolean, having, integer, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::logger::Config;
use weir_plugins::logger::form::Form;
use weir_plugins::logger::target::{HttpTarget, Target};

/// The plugin `clickhouse-logger`.
pub struct ClickhouseLogger;

#[derive(Deserialize)]
struct Options {
    endpoint_addr: Option<String>,
    endpoint_addrs: Option<Vec<String>>,
    user: String,
    password: String,
    database: String,
    logtable: String,
    timeout: u64,
    ssl_verify: bool,
}

impl PluginAdapter for ClickhouseLogger {
    common!("clickhouse-logger", 398);

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let shape = object([
                ("endpoint_addr", text().pattern(URL)),
                ("endpoint_addrs", array(text().pattern(URL)).min_items(1)),
                ("user", text().or("")),
                ("password", text().or("")),
                ("database", text().or("")),
                ("logtable", text().or("")),
                ("timeout", integer().at_least(1).or(3)),
                ("ssl_verify", boolean().or(true)),
            ])
            .one_of([
                having(["endpoint_addr", "user", "password", "database", "logtable"]),
                having(["endpoint_addrs", "user", "password", "database", "logtable"]),
            ]);
            with_batches(with_entry(shape), "clickhouse-logger")
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
        let several = options
            .endpoint_addrs
            .or(options.endpoint_addr.map(|address| vec![address]));
        let address = first("endpoint_addrs", several.unwrap_or_default(), notes);
        let headers = [
            ("X-ClickHouse-User", options.user),
            ("X-ClickHouse-Key", options.password),
            ("X-ClickHouse-Database", options.database),
        ];
        serde_json::to_value(Config {
            target: Target::Http(HttpTarget {
                url: address,
                headers: headers.map(|(name, value)| (name.to_owned(), value)).into(),
                timeout_ms: options.timeout.saturating_mul(1000),
                verify_tls: options.ssl_verify,
                ..HttpTarget::default()
            }),
            form: Form::Clickhouse(options.logtable),
            batch: read::<BatchOptions>(config)?.batch(),
            ..base(self.name(), config, context, notes)?
        })
    }
}
