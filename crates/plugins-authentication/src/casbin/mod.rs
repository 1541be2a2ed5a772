//! `casbin`: decides by a policy who may call what, with a model of Casbin.
//!
//! ```yaml
//! user_header: X-User
//! model: |
//!   [request_definition]
//!   r = sub, obj, act
//!   [policy_definition]
//!   p = sub, obj, act
//!   [policy_effect]
//!   e = some(where (p.eft == allow))
//!   [matchers]
//!   m = r.sub == p.sub && keyMatch(r.obj, p.obj) && r.act == p.act
//! policy: |
//!   p, alice, /orders/*, GET
//! ```
//!
//! A request has a subject (the header; without it `anonymous`), an object (the path) and an action (the method). Models may have
//! roles (`g`), the four effects of Casbin, and matchers of comparisons, `&&`, `||`, `!`, `in` and the functions `keyMatch` to
//! `keyMatch5`, `regexMatch`, `ipMatch` and `globMatch`.
//!
//! Security: the subject is a header. Let a plugin that recognises callers set it, or callers choose who they are. What
//! cannot be evaluated matches nothing.

mod functions;
mod matcher;
mod model;

use crate::browser::refused;
use model::{Enforcer, Request};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `casbin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The header with the subject.
    pub user_header: String,
    /// The model.
    pub model: String,
    /// The policy: lines of `p` and `g`.
    pub policy: String,
}

const NAME: &str = "casbin";

/// Whether a model and its policy can be used.
///
/// # Errors
/// Why not.
pub fn check(model: &str, policy: &str) -> Result<(), String> {
    let read = Enforcer::read(model, policy);
    read.map(|_| ())
        .map_err(|(field, message)| format!("{field}: {message}"))
}

/// The plugin `casbin`.
pub struct Casbin;

impl Plugin for Casbin {
    fn name(&self) -> &'static str {
        "casbin"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_name("user_header", &config.user_header);
        match Enforcer::read(&config.model, &config.policy) {
            Ok(enforcer) => {
                faults.done()?;
                Ok(Arc::new(PolicyFilter {
                    user_header: config.user_header,
                    enforcer,
                }))
            }
            Err((field, message)) => {
                faults.add(field, message);
                faults.done()?;
                unreachable!("invariant: a fault was reported")
            }
        }
    }
}

/// An instance of `casbin`.
struct PolicyFilter {
    user_header: String,
    enforcer: Enforcer,
}

impl Filter for PolicyFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let request = &exchange.request;
        let mut users = request.headers.get_all(self.user_header.as_bytes());
        let user = match (users.next(), users.next()) {
            (None, _) => Some("anonymous"),
            (Some(user), None) => std::str::from_utf8(user).ok(),
            (Some(_), Some(_)) => None,
        };
        let asked = user.and_then(|subject| {
            Some(Request {
                subject,
                object: std::str::from_utf8(&request.path).ok()?,
                action: std::str::from_utf8(&request.method).ok()?,
            })
        });
        match asked.is_some_and(|asked| self.enforcer.allows(&asked)) {
            true => Outcome::Continue,
            false => refused(NAME, 403, "Access Denied"),
        }
    }
}

#[cfg(test)]
mod tests;
