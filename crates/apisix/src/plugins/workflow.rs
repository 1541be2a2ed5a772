//! `workflow`: `workflow` of the catalogue.

use super::limit_conn::LimitConn;
use super::limit_count::LimitCount;
use super::uri_blocker::answerable;
use super::{Phases, PluginAdapter, PluginContext, Warnings, meta};
use crate::schema::{Schema, any_of, array, integer, object, text};
use crate::translate::vars;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::workflow::{Action, Config, Refuse, Rule};

/// The plugin `workflow`.
pub struct Workflow;

/// Plugins that rules of the original can run besides.
const OTHERS: [&str; 1] = ["ai-rate-limiting"];

/// The plugins that rules can run.
fn limit(name: &str) -> Option<&'static dyn PluginAdapter> {
    match name {
        "limit-count" => Some(&LimitCount),
        "limit-conn" => Some(&LimitConn),
        _ => None,
    }
}

impl PluginAdapter for Workflow {
    fn name(&self) -> &'static str {
        "workflow"
    }

    fn priority(&self) -> i64 {
        1006
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let case = array(any_of([array(crate::schema::any()), text()])).min_items(1);
            let action = array(crate::schema::any()).min_items(1);
            let rule = object([("case", case), ("actions", array(action))]).required(["actions"]);
            object([("rules", array(rule)), ("_meta", meta::shape())]).required(["rules"])
        });
        &SHAPE
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        for rule in rules(config) {
            if let Some(case) = rule.get("case").and_then(Value::as_array) {
                vars::check(case)
                    .map_err(|error| format!("failed to validate the 'case' expression: {error}"))?;
            }
            for (name, config) in actions(rule) {
                complete(name, config)?;
            }
        }
        Ok(())
    }

    fn plugin(&self) -> &'static str {
        "workflow"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let mut made = Config::default();
        for (number, rule) in config.as_object().into_iter().flat_map(rules).enumerate() {
            let case = rule.get("case").and_then(Value::as_array);
            let when = match case.map(|case| vars::compile(case)) {
                None => None,
                Some(Ok(when)) => when,
                Some(Err(fault)) => {
                    notes.error("rules", fault.to_string());
                    continue;
                }
            };
            // Of several actions, the first alone counts.
            let Some((name, config)) = actions(rule).next() else {
                continue;
            };
            if OTHERS.contains(&name) {
                notes.not_available("rules", &format!("the action \"{name}\""));
            }
            let config = complete(name, config).unwrap_or_default();
            let then = match limit(name) {
                None => Action::Refuse(Refuse {
                    status: answerable(config.get("code").and_then(Value::as_u64).unwrap_or_default()),
                    message: Some("rejected by workflow".to_owned()),
                }),
                Some(mapping) => {
                    let instance = format!("{}/workflow/{}", context.instance, number + 1);
                    let context = PluginContext {
                        instance: &instance,
                        ..*context
                    };
                    let config = mapping.translate(&config, &context, notes)?;
                    Action::Plugin(BTreeMap::from([(mapping.plugin().to_owned(), config)]))
                }
            };
            made.rules.push(Rule { when, then });
        }
        serde_json::to_value(made)
    }
}

fn rules(config: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    let rules = config.get("rules").and_then(Value::as_array);
    rules.into_iter().flatten().filter_map(Value::as_object)
}

/// The name and the configuration of each action.
fn actions(rule: &Map<String, Value>) -> impl Iterator<Item = (&str, &Value)> {
    let actions = rule.get("actions").and_then(Value::as_array);
    actions.into_iter().flatten().filter_map(|action| {
        let action = action.as_array()?;
        Some((action.first()?.as_str()?, action.get(1).unwrap_or(&Value::Null)))
    })
}

/// An action's configuration with its defaults.
fn complete(name: &str, config: &Value) -> Result<Value, String> {
    static RETURN: LazyLock<Schema> =
        LazyLock::new(|| object([("code", integer().at_least(100).at_most(599))]).required(["code"]));
    let mut config = match config {
        Value::Array(items) if items.is_empty() => Value::Object(Map::new()),
        Value::Null => Value::Object(Map::new()),
        config => config.clone(),
    };
    let to_message = |error: String| format!("failed to validate the '{name}' action: {error}");
    match limit(name) {
        _ if name == "return" => RETURN.check(&mut config).map_err(to_message)?,
        Some(mapping) => {
            mapping.shape().check(&mut config).map_err(to_message)?;
            if config.get("group").is_some() {
                return Err(to_message("group is not supported".to_owned()));
            }
            if let Some(config) = config.as_object() {
                mapping.check(config).map_err(to_message)?;
            }
        }
        None if OTHERS.contains(&name) => {}
        None => return Err(format!("unsupported action: {name}")),
    }
    Ok(config)
}
