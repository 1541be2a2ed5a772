//! `forward-auth`: `forward-auth` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, array, boolean, integer, object, text};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::forward_auth::Config;

/// The plugin `forward-auth`.
pub struct ForwardAuth;

#[derive(Deserialize)]
struct Options {
    uri: String,
    allow_degradation: bool,
    status_on_error: u16,
    ssl_verify: bool,
    request_method: String,
    max_req_body_size: usize,
    request_headers: Vec<String>,
    #[serde(default)]
    extra_headers: BTreeMap<String, String>,
    upstream_headers: Vec<String>,
    client_headers: Vec<String>,
    timeout: u64,
    keepalive: bool,
    keepalive_timeout: u64,
    keepalive_pool: u32,
}

impl PluginAdapter for ForwardAuth {
    fn name(&self) -> &'static str {
        "forward-auth"
    }

    fn priority(&self) -> i64 {
        2002
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let names = || array(text()).or(json!([]));
            let extra_headers = object([]).min_fields(1).each_field("^[^:]+$", text());
            object([
                ("uri", text()),
                ("allow_degradation", boolean().or(false)),
                ("status_on_error", integer().at_least(200).at_most(599).or(403)),
                ("ssl_verify", boolean().or(true)),
                ("request_method", text().options(["GET", "POST"]).or("GET")),
                ("max_req_body_size", integer().at_least(1).or(67_108_864)),
                ("request_headers", names()),
                ("extra_headers", extra_headers),
                ("upstream_headers", names()),
                ("client_headers", names()),
                ("timeout", integer().at_least(1).at_most(60_000).or(3000)),
                ("keepalive", boolean().or(true)),
                ("keepalive_timeout", integer().at_least(1000).or(60_000)),
                ("keepalive_pool", integer().at_least(1).or(5)),
                ("_meta", meta::shape()),
            ])
            .required(["uri"])
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "forward-auth"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            send_body: options.request_method == "POST",
            max_body_bytes: options.max_req_body_size,
            verify_tls: options.ssl_verify,
            request_headers: options.request_headers,
            extra_headers: options.extra_headers,
            upstream_headers: options.upstream_headers,
            client_headers: options.client_headers,
            timeout_ms: options.timeout,
            pool_size: if options.keepalive {
                options.keepalive_pool
            } else {
                0
            },
            pool_idle_timeout_ms: options.keepalive_timeout,
            pass_on_failure: options.allow_degradation,
            failure_status: options.status_on_error,
            ..Config::new(options.uri)
        })
    }
}
