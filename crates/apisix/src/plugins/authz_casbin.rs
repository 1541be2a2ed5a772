//! `authz-casbin`: `casbin` of the catalogue. Model and policy stand in the configuration, in files that it names, or in the
//! plugin's metadata.

use super::printed_schemas::PrintedSchemas;
use super::{Phases, PluginAdapter, PluginContext, Warnings, read};
use crate::schema::{Schema, object, text};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_plugins::casbin::{self, Config};

/// The plugin `authz-casbin`.
pub struct AuthzCasbin;

static SCHEMAS: PrintedSchemas = PrintedSchemas::new(include_str!("schemas/authz-casbin.json"));

#[derive(Deserialize)]
struct Options {
    username: String,
    model_path: Option<String>,
    policy_path: Option<String>,
    model: Option<String>,
    policy: Option<String>,
}

#[derive(Deserialize)]
struct Rules {
    model: String,
    policy: String,
}

/// A model by which no call is allowed.
const NOTHING: &str = "r = sub, obj, act\np = sub, obj, act\ne = some(where (p.eft == allow))\nm = false\n";

impl PluginAdapter for AuthzCasbin {
    fn name(&self) -> &'static str {
        "authz-casbin"
    }

    fn priority(&self) -> i64 {
        2560
    }

    fn phases(&self) -> Phases {
        Phases {
            rewrite: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        SCHEMAS.request()
    }

    fn metadata_shape(&self) -> Option<&'static Schema> {
        static SHAPE: LazyLock<Schema> =
            LazyLock::new(|| object([("model", text()), ("policy", text())]).required(["model", "policy"]));
        Some(&SHAPE)
    }

    fn is_completed_by_metadata(&self, config: &Map<String, Value>) -> bool {
        config.contains_key("username")
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let text = |field: &str| config.get(field).and_then(Value::as_str);
        match text("model").zip(text("policy")) {
            Some((model, policy)) => casbin::check(model, policy),
            None => Ok(()),
        }
    }

    fn plugin(&self) -> &'static str {
        "casbin"
    }

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let files = &context.settings.files;
        let mut file = |field: &'static str, name: &str| {
            let text = files.text(name).map_err(|reason| {
                notes.warn(
                    field,
                    format!("{name} cannot be read: {reason}: calls are refused"),
                );
            });
            text.unwrap_or_default()
        };
        let metadata = || {
            let found = context.metadata.get("authz-casbin")?;
            let rules = Rules::deserialize(found).ok()?;
            Some((rules.model, rules.policy))
        };
        let found = match (options.model_path, options.policy_path) {
            (Some(model), Some(policy)) => Some((file("model_path", &model), file("policy_path", &policy))),
            _ => options.model.zip(options.policy).or_else(metadata),
        };
        let usable = found.filter(|(model, policy)| casbin::check(model, policy).is_ok());
        let (model, policy) = usable.unwrap_or_else(|| {
            notes.warn("model", "there is no model that can be used: calls are refused");
            (NOTHING.to_owned(), String::new())
        });
        serde_json::to_value(Config {
            user_header: options.username,
            model,
            policy,
        })
    }
}
