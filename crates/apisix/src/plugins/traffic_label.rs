//! `traffic-label`: `traffic-label` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, headers, meta, read};
use crate::schema::{Schema, any, any_of, array, integer, object, text};
use crate::translate::vars;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_plugins::traffic_label::{Action, Config, Rule};

/// The plugin `traffic-label`.
pub struct TrafficLabel;

#[derive(Deserialize)]
struct Options {
    rules: Vec<RuleOptions>,
}

#[derive(Deserialize)]
struct RuleOptions {
    r#match: Option<Vec<Value>>,
    actions: Vec<ActionOptions>,
}

#[derive(Deserialize)]
struct ActionOptions {
    weight: u32,
    #[serde(default)]
    set_headers: Map<String, Value>,
}

impl PluginAdapter for TrafficLabel {
    fn name(&self) -> &'static str {
        "traffic-label"
    }

    fn priority(&self) -> i64 {
        967
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let action = object([
                ("weight", integer().at_least(1).or(1)),
                ("set_headers", object([]).min_fields(1)),
            ]);
            let rule = object([
                ("match", array(any_of([array(any()), text()])).min_items(1)),
                ("actions", array(action).min_items(1)),
            ]);
            object([
                ("rules", array(rule.required(["actions"])).min_items(1)),
                ("_meta", meta::shape()),
            ])
            .required(["rules"])
        });
        &SHAPE
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let rules = config.get("rules").and_then(Value::as_array);
        for rule in rules.into_iter().flatten() {
            if let Some(conditions) = rule.get("match").and_then(Value::as_array) {
                vars::check(conditions)
                    .map_err(|error| format!("failed to validate the 'match' expression: {error}"))?;
            }
            let actions = rule.get("actions").and_then(Value::as_array);
            let names = actions
                .into_iter()
                .flatten()
                .filter_map(Value::as_object)
                .flat_map(Map::keys);
            for name in names {
                if !["weight", "set_headers"].contains(&name.as_str()) {
                    return Err(format!("not supported action: {name}"));
                }
            }
        }
        Ok(())
    }

    fn plugin(&self) -> &'static str {
        "traffic-label"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let rules = options.rules.into_iter().map(|rule| Rule {
            when: match rule.r#match.as_deref().map(vars::compile) {
                Some(Ok(condition)) => condition,
                Some(Err(fault)) => {
                    notes.error("rules", fault.to_string());
                    None
                }
                None => None,
            },
            actions: (rule.actions.into_iter())
                .map(|action| Action {
                    weight: action.weight,
                    headers: headers::set_steps(&action.set_headers),
                })
                .collect(),
        });
        serde_json::to_value(Config {
            rules: rules.collect(),
        })
    }
}
