//! `tcp-logger`: sends entries to a TCP server.

use super::{BatchOptions, base, common, with_batches, with_entry};
use crate::plugins::{PluginAdapter, PluginContext, Warnings, read};
use crate::schema::{Schema, boolean, integer, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::logger::Config;
use weir_plugins::logger::target::{Target, TcpTarget};

/// The plugin `tcp-logger`.
pub struct TcpLogger;

#[derive(Deserialize)]
struct Options {
    host: String,
    port: u16,
    tls: bool,
    tls_options: Option<String>,
    timeout: u64,
}

impl PluginAdapter for TcpLogger {
    common!("tcp-logger", 405);

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let shape = object([
                ("host", text()),
                ("port", integer().at_least(0)),
                ("tls", boolean().or(false)),
                ("tls_options", text()),
                ("timeout", integer().at_least(1).or(1000)),
            ]);
            with_batches(with_entry(shape), "tcp logger").required(["host", "port"])
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
        let batch: BatchOptions = read(config)?;
        serde_json::to_value(Config {
            target: Target::Tcp(TcpTarget {
                host: options.host,
                port: options.port,
                tls: options.tls,
                server_name: options.tls_options,
                verify_tls: false,
                timeout_ms: options.timeout,
            }),
            form: batch.form(),
            batch: batch.batch(),
            ..base(self.name(), config, context, notes)?
        })
    }
}
