//! `udp-logger`: sends entries to a UDP server.

use super::{BatchOptions, base, common, with_batches, with_entry};
use crate::plugins::{PluginAdapter, PluginContext, Warnings, read};
use crate::schema::{Schema, integer, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::logger::Config;
use weir_plugins::logger::target::{Target, UdpTarget};

/// The plugin `udp-logger`.
pub struct UdpLogger;

#[derive(Deserialize)]
struct Options {
    host: String,
    port: u16,
}

impl PluginAdapter for UdpLogger {
    common!("udp-logger", 400);

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let shape = object([
                ("host", text()),
                ("port", integer().at_least(0)),
                ("timeout", integer().at_least(1).or(3)),
            ]);
            with_batches(with_entry(shape), "udp logger").required(["host", "port"])
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
            target: Target::Udp(UdpTarget {
                line_bytes: None,
                host: options.host,
                port: options.port,
            }),
            form: batch.form(),
            batch: batch.batch(),
            ..base(self.name(), config, context, notes)?
        })
    }
}
