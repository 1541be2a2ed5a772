//! Plugins that are accepted and have nothing to do: what they are for is always so, or is the work of others.

use super::{Phases, PluginAdapter, PluginContext, Warnings, printed_shape};
use crate::schema::Schema;
use serde_json::Value;
use std::sync::LazyLock;

/// `proxy-buffering`: bodies are always passed on as they come.
pub struct ProxyBuffering;

/// `log-rotate`: the system rotates log files.
pub struct LogRotate;

/// `server-info`: the gateway's status tells it.
pub struct ServerInfo;

/// `ocsp-stapling`: `ocsp_stapling` of certificates says all that there is to say.
pub struct OcspStapling;

/// `node-status`: `public-api` makes the node's status public.
pub struct NodeStatus;

/// The parts of an adapter that are the same for all of them.
macro_rules! idle {
    ($type:ident, $name:literal, $priority:literal) => {
        impl PluginAdapter for $type {
            fn name(&self) -> &'static str {
                $name
            }

            fn priority(&self) -> i64 {
                $priority
            }

            fn phases(&self) -> Phases {
                Phases::default()
            }

            fn shape(&self) -> &'static Schema {
                static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
                    printed_shape(include_str!(concat!("schemas/", $name, ".json")), "schema")
                });
                &SHAPE
            }

            fn plugin(&self) -> &'static str {
                ""
            }

            fn translate(
                &self,
                _: &Value,
                _: &PluginContext<'_>,
                _: &mut Warnings,
            ) -> Result<Value, serde_json::Error> {
                Ok(Value::Null)
            }
        }
    };
}

idle!(ProxyBuffering, "proxy-buffering", 21991);
idle!(LogRotate, "log-rotate", 100);
idle!(ServerInfo, "server-info", 990);
idle!(NodeStatus, "node-status", 1000);
idle!(OcspStapling, "ocsp-stapling", -44);
