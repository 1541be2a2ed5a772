//! `data-mask`: `data-mask` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, check_regex, printed_shape, read};
use crate::schema::Schema;
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::data_mask::{Config, MaskTarget, Masking, Rule};

/// The plugin `data-mask`.
pub struct DataMask;

#[derive(Deserialize)]
struct Options {
    #[serde(default)]
    request: Vec<Item>,
    max_body_size: usize,
    max_req_post_args: usize,
}

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type")]
    part: String,
    body_format: Option<String>,
    name: String,
    action: String,
    regex: Option<String>,
    value: Option<String>,
}

/// A path into JSON; in the original, one may leave out the root.
fn rooted(path: String) -> String {
    match path.as_bytes().first() {
        Some(b'$') | None => path,
        Some(b'[') => format!("${path}"),
        Some(_) => format!("$.{path}"),
    }
}

impl PluginAdapter for DataMask {
    fn name(&self) -> &'static str {
        "data-mask"
    }

    fn priority(&self) -> i64 {
        1500
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> =
            LazyLock::new(|| printed_shape(include_str!("schemas/data-mask.json"), "schema"));
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "data-mask"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let rules = options.request.into_iter().map(|item| {
            let value = item.value.unwrap_or_default();
            let pattern = item.regex.unwrap_or_default();
            if item.action == "regex"
                && let Err(what) = check_regex(&pattern)
            {
                let message =
                    what.map_or_else(|| format!("not a regular expression: {pattern}"), str::to_owned);
                notes.error("request", message);
            }
            Rule {
                part: match (item.part.as_str(), item.body_format.as_deref()) {
                    ("query", _) => MaskTarget::Query,
                    ("header", _) => MaskTarget::Header,
                    (_, Some("urlencoded")) => MaskTarget::BodyForm,
                    _ => MaskTarget::BodyJson,
                },
                name: match item.part.as_str() {
                    "body" if item.body_format.as_deref() != Some("urlencoded") => rooted(item.name),
                    _ => item.name,
                },
                action: match item.action.as_str() {
                    "remove" => Masking::Remove,
                    "replace" => Masking::Replace(value),
                    _ => Masking::Regex {
                        pattern,
                        replacement: value,
                    },
                },
            }
        });
        serde_json::to_value(Config {
            rules: rules.collect(),
            max_body_bytes: options.max_body_size,
            max_form_fields: match options.max_req_post_args {
                0 => usize::MAX,
                most => most,
            },
        })
    }
}
