//! Plugins without an effect of their own: what they are for is always so, or is the work of others.

use super::PluginAdapter;

/// `proxy-buffering`: bodies are always passed on as they come.
pub struct ProxyBuffering;

/// `log-rotate`: the system rotates log files.
pub struct LogRotate;

/// `server-info`: the gateway's status shows it.
pub struct ServerInfo;

/// `ocsp-stapling`: `ocsp_stapling` of certificates says all that there is to say.
pub struct OcspStapling;

/// `node-status`: `public-api` makes the node's status public.
pub struct NodeStatus;

/// The parts of an adapter that does nothing on routes. Its name, its schemas' file and its priority are given; with
/// `metadata`, its metadata have a schema too.
macro_rules! no_op_parts {
    ($name:literal, $priority:literal $(, $metadata:ident)?) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn priority(&self) -> i64 {
            $priority
        }

        fn phases(&self) -> $crate::plugins::Phases {
            $crate::plugins::Phases::default()
        }

        fn shape(&self) -> &'static $crate::schema::Schema {
            $crate::plugins::no_op::printed!($name, "schema")
        }

        $(
            fn metadata_shape(&self) -> Option<&'static $crate::schema::Schema> {
                Some($crate::plugins::no_op::printed!($name, "metadata_schema", $metadata))
            }
        )?

        fn translate(
            &self,
            _: &serde_json::Value,
            _: &$crate::plugins::PluginContext<'_>,
            _: &mut $crate::plugins::Warnings,
        ) -> Result<serde_json::Value, serde_json::Error> {
            Ok(serde_json::Value::Null)
        }
    };
}

/// One of the schemas that the original prints for a plugin.
macro_rules! printed {
    ($name:literal, $which:literal $(, $metadata:ident)?) => {{
        static SHAPE: std::sync::LazyLock<$crate::schema::Schema> = std::sync::LazyLock::new(|| {
            $crate::plugins::printed_shape(include_str!(concat!("schemas/", $name, ".json")), $which)
        });
        &SHAPE
    }};
}

pub(super) use {no_op_parts, printed};

macro_rules! idle {
    ($type:ident, $name:literal, $priority:literal) => {
        impl PluginAdapter for $type {
            no_op_parts!($name, $priority);

            fn plugin(&self) -> &'static str {
                ""
            }
        }
    };
}

idle!(ProxyBuffering, "proxy-buffering", 21991);
idle!(LogRotate, "log-rotate", 100);
idle!(ServerInfo, "server-info", 990);
idle!(NodeStatus, "node-status", 1000);
idle!(OcspStapling, "ocsp-stapling", -44);
