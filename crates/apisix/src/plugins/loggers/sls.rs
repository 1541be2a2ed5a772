//! `sls-logger`: sends entries to Alibaba Cloud's log service, as RFC 5424 over TLS.

use super::{BatchOptions, base, common};
use crate::plugins::{PluginAdapter, PluginContext, Warnings, read};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::logger::Config;
use weir_plugins::logger::form::{Form, StructuredSyslog};
use weir_plugins::logger::target::{Target, TcpTarget};

/// The plugin `sls-logger`.
pub struct SlsLogger;

#[derive(Deserialize)]
struct Options {
    host: String,
    port: u16,
    timeout: u64,
    project: String,
    logstore: String,
    access_key_id: String,
    access_key_secret: String,
    ssl_verify: bool,
}

impl PluginAdapter for SlsLogger {
    common!("sls-logger", 406, printed);

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let data = [
            ("project", options.project),
            ("logstore", options.logstore),
            ("access-key-id", options.access_key_id),
            ("access-key-secret", options.access_key_secret),
        ];
        serde_json::to_value(Config {
            target: Target::Tcp(TcpTarget {
                host: options.host,
                port: options.port,
                tls: true,
                server_name: None,
                verify_tls: options.ssl_verify,
                timeout_ms: options.timeout,
            }),
            form: Form::StructuredSyslog(StructuredSyslog {
                name: "apisix".to_owned(),
                facility: 5,
                data_id: "logservice".to_owned(),
                data: data.map(|(name, value)| (name.to_owned(), value)).into(),
                line_end: true,
                ..StructuredSyslog::default()
            }),
            batch: read::<BatchOptions>(config)?.batch(),
            ..base(self.name(), config, context, notes)?
        })
    }
}
