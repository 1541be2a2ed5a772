//! `grpc-web`: APISIX's fields and defaults for `grpc-web` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, integer, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::grpc_web::{Config, CrossOrigin, NonGrpcPolicy, Path, Preflight, Trailers};

/// The plugin `grpc-web`.
pub struct GrpcWeb;

#[derive(Deserialize)]
struct Options {
    max_req_body_size: u64,
    cors_allow_headers: String,
}

impl PluginAdapter for GrpcWeb {
    fn name(&self) -> &'static str {
        "grpc-web"
    }

    fn priority(&self) -> i64 {
        505
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            response: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([
                ("max_req_body_size", integer().at_least(1).or(64 << 20)),
                (
                    "cors_allow_headers",
                    text().or("content-type,x-grpc-web,x-user-agent"),
                ),
                ("_meta", meta::shape()),
            ])
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "grpc-web"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            path: Path::Remainder,
            others: NonGrpcPolicy::Refuse,
            cross_origin: Some(CrossOrigin {
                allow_origin: "*".to_owned(),
                keep_existing: true,
                allow_methods: "POST".to_owned(),
                allow_headers: options.cors_allow_headers,
                expose_headers: Some("grpc-message,grpc-status".to_owned()),
                preflight: Preflight::default(),
            }),
            trailers: Trailers::Status,
            refusals_as_status: false,
            max_request_bytes: options.max_req_body_size.min(64 << 20) as usize,
            ..Config::default()
        })
    }
}
