//! `acl`: APISIX's fields and defaults for `acl` of the catalogue.

use super::uri_blocker::answerable;
use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, any, array, having, integer, object, text};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::acl::{AclSubject, Config, Rule};

/// The plugin `acl`.
pub struct Acl;

#[derive(Deserialize)]
struct Options {
    #[serde(default)]
    allow_labels: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    deny_labels: BTreeMap<String, Vec<String>>,
    rejected_code: u64,
    rejected_msg: Option<String>,
}

impl PluginAdapter for Acl {
    fn name(&self) -> &'static str {
        "acl"
    }

    fn priority(&self) -> i64 {
        2410
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let labels = || {
                object([])
                    .min_fields(1)
                    .each_field(".*", array(text()).min_items(1))
            };
            let segmented = object([(
                "external_user_label_field_parser",
                any().options(["segmented_text"]),
            )])
            .required(["external_user_label_field_parser"]);
            object([
                ("external_user_label_field", text().longer(1).or("groups")),
                ("external_user_label_field_key", text().longer(1)),
                (
                    "external_user_label_field_parser",
                    text().options(["segmented_text", "json", "table"]),
                ),
                ("external_user_label_field_separator", text().longer(1)),
                ("allow_labels", labels()),
                ("deny_labels", labels()),
                ("rejected_code", integer().at_least(200).or(403)),
                ("rejected_msg", text()),
                ("_meta", meta::shape()),
            ])
            .all_of([any().when(segmented, having(["external_user_label_field_separator"]), any())])
            .any_of([having(["allow_labels"]), having(["deny_labels"])])
        });
        &SHAPE
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let field = config.get("external_user_label_field").and_then(Value::as_str);
        match field.filter(|field| field.starts_with('$') && !closes_brackets(field)) {
            Some(path) => Err(format!(
                "invalid external_user_label_field: invalid expression \"{path}\""
            )),
            None => Ok(()),
        }
    }

    fn plugin(&self) -> &'static str {
        "acl"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let rules = |labels: BTreeMap<String, Vec<String>>| {
            let rule = |(label, values)| Rule {
                of: AclSubject::Label(label),
                values,
            };
            labels.into_iter().map(rule).collect()
        };
        serde_json::to_value(Config {
            allow: rules(options.allow_labels),
            deny: rules(options.deny_labels),
            status: answerable(options.rejected_code),
            message: Some(
                options
                    .rejected_msg
                    .unwrap_or_else(|| "The consumer is forbidden.".to_owned()),
            ),
            ..Config::default()
        })
    }
}

/// Whether all brackets of a path into a document are closed in turn.
fn closes_brackets(path: &str) -> bool {
    let mut open = Vec::new();
    let closed = path.chars().all(|character| match character {
        '[' => {
            open.push(']');
            true
        }
        '(' => {
            open.push(')');
            true
        }
        ']' | ')' => open.pop() == Some(character),
        _ => true,
    });
    closed && open.is_empty()
}
