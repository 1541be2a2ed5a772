//! `route-by-header` of the paid edition: other upstreams by headers.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use weir_plugins::route_by_header::{Config, Rule};

/// The definition of `route-by-header`.
pub const DEFINITION: Definition = Definition {
    name: "route-by-header",
    priority: 850,
    config: Record::of(&[Field::new("rules", Kind::Array(&RULE)).or(Default::Json("[]"))]),
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "route-by-header",
    translate,
};

const RULE: Field = Field::element(Kind::Record(&RULE_FIELDS));
static RULE_FIELDS: Record = Record::of(&[
    Field::new("upstream_name", Kind::String).required(),
    Field::new(
        "condition",
        Kind::Map {
            keys: &TEXT,
            values: &TEXT,
        },
    )
    .required(),
]);
const TEXT: Field = Field::element(Kind::String);

#[derive(Deserialize)]
struct Options {
    rules: Option<Vec<RuleOptions>>,
}

#[derive(Deserialize)]
struct RuleOptions {
    upstream_name: String,
    condition: BTreeMap<String, String>,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    let rules = options.rules.unwrap_or_default().into_iter();
    Ok(untyped(Config {
        rules: rules
            .filter(|rule| !rule.condition.is_empty())
            .map(|rule| Rule {
                headers: rule.condition,
                host: Some(rule.upstream_name.clone()),
                upstream: rule.upstream_name,
            })
            .collect(),
    }))
}
