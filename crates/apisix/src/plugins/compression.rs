//! `gzip` and `brotli`: `compression` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, any, any_of, array, boolean, integer, object, text};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::LazyLock;
use weir_plugins::compression::{Coding, Config};

/// The plugin `gzip`.
pub struct Gzip;

/// The plugin `brotli`.
pub struct Brotli;

#[derive(Deserialize)]
struct Options {
    types: Value,
    min_length: u64,
    comp_level: u8,
    http_version: f64,
    #[serde(default)]
    vary: bool,
    #[serde(default)]
    lgwin: u8,
}

const PHASES: Phases = Phases {
    rewrite: false,
    access: false,
    response: true,
    last: true,
};

/// The shape of what both have in common.
fn shape() -> Schema {
    object([
        (
            "types",
            any_of([array(text().longer(1)).min_items(1), any().options(["*"])]).or(json!(["text/html"])),
        ),
        ("min_length", integer().at_least(1).or(20)),
        ("http_version", any().decimals([1.1, 1.0]).or(1.1)),
        ("vary", boolean()),
        ("_meta", meta::shape()),
    ])
}

fn translate(config: &Value, coding: Coding) -> Result<Value, serde_json::Error> {
    let options: Options = read(config)?;
    let types = match &options.types {
        Value::Array(types) => types
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => vec!["*".to_owned()],
    };
    serde_json::to_value(Config {
        coding,
        types,
        min_length: options.min_length,
        level: options.comp_level,
        // 0 lets the library choose.
        window_bits: if options.lgwin == 0 { 22 } else { options.lgwin },
        http_1_0: options.http_version < 1.05,
        vary: options.vary,
    })
}

impl PluginAdapter for Gzip {
    fn name(&self) -> &'static str {
        "gzip"
    }

    fn priority(&self) -> i64 {
        995
    }

    fn phases(&self) -> Phases {
        PHASES
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let buffers = object([
                ("number", integer().at_least(1).or(32)),
                ("size", integer().at_least(1).or(4096)),
            ]);
            shape()
                .field("comp_level", integer().at_least(1).at_most(9).or(1))
                .field("buffers", buffers.or(json!({"number": 32, "size": 4096})))
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "compression"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        translate(config, Coding::Gzip)
    }
}

impl PluginAdapter for Brotli {
    fn name(&self) -> &'static str {
        "brotli"
    }

    fn priority(&self) -> i64 {
        996
    }

    fn phases(&self) -> Phases {
        PHASES
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let windows = [0, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24];
            let blocks = [0, 16, 17, 18, 19, 20, 21, 22, 23, 24];
            shape()
                .field("comp_level", integer().at_least(0).at_most(11).or(6))
                .field("mode", integer().at_least(0).at_most(2).or(0))
                .field("lgwin", integer().numbers(windows).or(19))
                .field("lgblock", integer().numbers(blocks).or(0))
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "compression"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        translate(config, Coding::Brotli)
    }
}
