//! `proxy-mirror`: `mirror` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, number, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::mirror::Config;

/// The plugin `proxy-mirror`.
pub struct ProxyMirror;

#[derive(Deserialize)]
struct Options {
    host: String,
    path: Option<String>,
    path_concat_mode: String,
    sample_ratio: f64,
}

impl PluginAdapter for ProxyMirror {
    fn name(&self) -> &'static str {
        "proxy-mirror"
    }

    fn priority(&self) -> i64 {
        1010
    }

    fn phases(&self) -> Phases {
        Phases {
            rewrite: true,
            // Copies carry the headers that the service gets.
            last: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let host = r"^(http(s)?|grpc(s)?):\/\/([\da-zA-Z.-]+|\[[\da-fA-F:]+\])(:\d+)?$";
            object([
                ("host", text().pattern(host)),
                ("path", text().pattern("^/[^?&]+$")),
                (
                    "path_concat_mode",
                    text().options(["replace", "prefix"]).or("replace"),
                ),
                ("sample_ratio", number().at_most(1).above(0).or(1)),
                ("_meta", meta::shape()),
            ])
            .required(["host"])
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "mirror"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        if !options.host.starts_with("http://") {
            notes.left_out("host", "mirroring over TLS or gRPC");
            return Ok(Value::Null);
        }
        let usual = Config::default();
        serde_json::to_value(Config {
            timeout_ms: context.settings.mirror_timeout_ms.unwrap_or(usual.timeout_ms),
            to: options.host,
            path: options.path,
            prefix: options.path_concat_mode == "prefix",
            sample: options.sample_ratio,
            decoded_paths: true,
            ..usual
        })
    }
}
