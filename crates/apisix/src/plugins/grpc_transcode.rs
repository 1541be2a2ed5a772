//! `grpc-transcode`: that of the catalogue, for one method.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::document::{Id, proto};
use crate::schema::{Schema, array, boolean, id, integer, number, object, text};
use serde::Deserialize;
use serde::de::Error;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::grpc_transcode::{Config, ErrorBody, Errors, Refusals, check};
use weir_plugins::protobuf::{Enums, Integers, JsonForm, Mapping as Messages, Names};

/// The plugin `grpc-transcode`.
pub struct GrpcTranscode;

#[derive(Deserialize)]
struct Options {
    proto_id: Id,
    service: String,
    method: String,
    deadline: f64,
    pb_option: Vec<String>,
    show_status_in_body: bool,
    status_detail_type: Option<String>,
    max_resp_body_size: u64,
}

/// The form of JSON by the options; of several about one thing, the last one in alphabetical order counts.
fn json_form(mut options: Vec<String>) -> JsonForm {
    options.sort_unstable();
    let mut form = JsonForm {
        mapping: Messages::Fields,
        names: Names::Proto,
        integers: Integers::Number,
        enums: Enums::Name,
        defaults: true,
    };
    for option in &options {
        match option.as_str() {
            "enum_as_name" => form.enums = Enums::Name,
            "enum_as_value" => form.enums = Enums::Number,
            "int64_as_number" => form.integers = Integers::Number,
            "int64_as_string" => form.integers = Integers::MarkedText,
            "int64_as_hexstring" => form.integers = Integers::MarkedHex,
            "no_default_values" | "use_default_metatable" => form.defaults = false,
            "auto_default_values" | "use_default_values" => form.defaults = true,
            _ => {}
        }
    }
    form
}

impl PluginAdapter for GrpcTranscode {
    fn name(&self) -> &'static str {
        "grpc-transcode"
    }

    fn priority(&self) -> i64 {
        506
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
            let option = text().any_of([
                text().options(["enum_as_name", "enum_as_value"]),
                text().options(["int64_as_number", "int64_as_string", "int64_as_hexstring"]),
                text().options([
                    "auto_default_values",
                    "no_default_values",
                    "use_default_values",
                    "use_default_metatable",
                ]),
                text().options(["enable_hooks", "disable_hooks"]),
            ]);
            let usual = serde_json::json!([
                "enum_as_name",
                "int64_as_number",
                "auto_default_values",
                "disable_hooks"
            ]);
            object([
                ("max_resp_body_size", integer().at_least(1).or(64 << 20)),
                ("proto_id", id()),
                ("service", text()),
                ("method", text()),
                ("deadline", number().or(0)),
                ("pb_option", array(option).min_items(1).or(usual)),
                ("show_status_in_body", boolean().or(false)),
                ("status_detail_type", text()),
                ("_meta", meta::shape()),
            ])
            .required(["proto_id", "service", "method"])
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "grpc-transcode"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let id = &options.proto_id.0;
        let Some(content) = context.protos.get(id) else {
            return Err(Error::custom(format!("failed to find proto by id: {id}")));
        };
        if options.pb_option.iter().any(|option| option == "enable_hooks") {
            notes.warn(
                "pb_option",
                "enable_hooks changes nothing: hooks are functions in Lua",
            );
        }
        let made = Config {
            proto: Some(proto::definitions(content)),
            method: Some(format!("{}/{}", options.service, options.method)),
            // It cannot be sent in less than milliseconds, nor in more than eight digits.
            deadline_ms: options.deadline.clamp(0.0, 99_999_999.0).ceil() as u64,
            json: json_form(options.pb_option),
            errors: Errors {
                body: match options.show_status_in_body {
                    true => ErrorBody::Details,
                    false => ErrorBody::None,
                },
                detail_type: options.status_detail_type,
                unknown_status: 599,
                ..Errors::default()
            },
            refusals: Refusals::Status,
            any_origin: false,
            joined: false,
            max_request_bytes: 64 << 20,
            max_message_bytes: options.max_resp_body_size.min(64 << 20) as usize,
        };
        match check(&made) {
            Ok(()) => serde_json::to_value(made),
            Err(found) => Err(Error::custom(format!("proto {id}: {}", found.message))),
        }
    }
}
