//! `syslog`: sends entries to a server that speaks syslog.

use super::{BatchOptions, base, common, with_batches, with_entry};
use crate::plugins::{PluginAdapter, PluginContext, Warnings, read};
use crate::schema::{Schema, boolean, integer, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::logger::Config;
use weir_plugins::logger::form::Form;
use weir_plugins::logger::target::{Target, TcpTarget, UdpTarget};

/// The plugin `syslog`.
pub struct Syslog;

#[derive(Deserialize)]
struct Options {
    host: String,
    port: u16,
    sock_type: String,
    tls: bool,
    timeout: u64,
}

impl PluginAdapter for Syslog {
    common!("syslog", 401);

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let shape = object([
                ("host", text()),
                ("port", integer()),
                ("flush_limit", integer().at_least(1).or(4096)),
                ("drop_limit", integer().or(1_048_576)),
                ("timeout", integer().at_least(1).or(3000)),
                ("sock_type", text().options(["tcp", "udp"]).or("tcp")),
                ("pool_size", integer().at_least(5).or(5)),
                ("tls", boolean().or(false)),
            ]);
            with_batches(with_entry(shape), "sys logger").required(["host", "port"])
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
        serde_json::to_value(Config {
            target: match options.sock_type.as_str() {
                "udp" => Target::Udp(UdpTarget {
                    line_bytes: None,
                    host: options.host,
                    port: options.port,
                }),
                _ => Target::Tcp(TcpTarget {
                    host: options.host,
                    port: options.port,
                    tls: options.tls,
                    server_name: None,
                    verify_tls: false,
                    timeout_ms: options.timeout,
                }),
            },
            form: Form::Syslog("apisix".to_owned()),
            batch: read::<BatchOptions>(config)?.batch(),
            ..base(self.name(), config, context, notes)?
        })
    }
}
