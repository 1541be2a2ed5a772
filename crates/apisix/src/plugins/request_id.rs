//! `request-id`: `request-id` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, boolean, integer, object, text};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::LazyLock;
use weir_plugins::request_id::{Config, Echo, Generator};

/// Characters of a random id. (A `J` is missing, as in the original.)
const CHARACTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIGKLMNOPQRSTUVWXYZ0123456789";
const LENGTH: u32 = 16;

/// The plugin `request-id`.
pub struct RequestId;

#[derive(Deserialize)]
struct Options {
    header_name: String,
    include_in_response: bool,
    algorithm: String,
    range_id: Range,
}

#[derive(Deserialize)]
struct Range {
    char_set: String,
    length: u64,
}

impl PluginAdapter for RequestId {
    fn name(&self) -> &'static str {
        "request-id"
    }

    fn priority(&self) -> i64 {
        12_015
    }

    fn phases(&self) -> Phases {
        Phases {
            rewrite: true,
            response: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([
                ("header_name", text().or("X-Request-Id")),
                ("include_in_response", boolean().or(true)),
                (
                    "algorithm",
                    text()
                        .options(["uuid", "nanoid", "range_id", "ksuid", "uuidv7"])
                        .or("uuid"),
                ),
                (
                    "range_id",
                    object([
                        ("length", integer().at_least(6).or(LENGTH)),
                        ("char_set", text().longer(6).or(CHARACTERS)),
                    ])
                    .or(json!({"length": LENGTH, "char_set": CHARACTERS})),
                ),
                ("_meta", meta::shape()),
            ])
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "request-id"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            header: options.header_name,
            generator: match options.algorithm.as_str() {
                "uuidv7" => Generator::UuidV7,
                "nanoid" => Generator::Nanoid,
                "ksuid" => Generator::Ksuid,
                "range_id" => random(options.range_id, notes),
                _ => Generator::Uuid,
            },
            keep_client_id: true,
            echo: if options.include_in_response {
                Echo::IfAbsent
            } else {
                Echo::No
            },
        })
    }
}

fn random(range: Range, notes: &mut Warnings) -> Generator {
    const LONGEST: u16 = 256;
    let length = u16::try_from(range.length).unwrap_or(u16::MAX);
    if length > LONGEST {
        notes.warn("range_id", format!("ids are at most {LONGEST} characters long"));
    }
    Generator::Random {
        characters: range.char_set,
        length: length.min(LONGEST),
    }
}
