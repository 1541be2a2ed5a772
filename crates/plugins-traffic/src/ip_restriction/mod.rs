//! `ip-restriction`: lets calls pass by the client's address.
//!
//! ```yaml
//! allow: [10.0.0.0/8, 2001:db8::/32]
//! deny: [10.1.2.3]
//! ```
//!
//! Security: it is as good as the gateway's knowledge of the client. Behind a proxy, let the gateway believe that
//! word of that proxy, and of no other peer, about the client.

use crate::networks::Networks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Refusal, RefusalKind, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `ip-restriction`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Addresses and networks; if there are any, only clients in one of them pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Addresses and networks of which no client passes, whatever `allow` says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Status of the response to others, 200 to 599.
    #[serde(default = "forbidden")]
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// The message of a refusal, instead of the dialect's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Default for Config {
    /// The defaults of all options, with nothing in the lists yet.
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            deny: Vec::new(),
            status: forbidden(),
            message: None,
        }
    }
}

fn forbidden() -> u16 {
    403
}

/// The plugin `ip-restriction`.
pub struct IpRestriction;

impl Plugin for IpRestriction {
    fn name(&self) -> &'static str {
        "ip-restriction"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn works_on_streams(&self) -> bool {
        true
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_any(&[
            ("allow", config.allow.is_empty()),
            ("deny", config.deny.is_empty()),
        ]);
        faults.check_status("status", config.status);
        let mut read = |field: &str, list: &[String]| {
            Networks::parse(list, &DocPath::root().field(field)).unwrap_or_else(|found| {
                faults.extend(found);
                Networks::default()
            })
        };
        let (allow, deny) = (read("allow", &config.allow), read("deny", &config.deny));
        faults.done()?;
        Ok(Arc::new(AddressFilter {
            allow,
            deny,
            status: config.status,
            message: config.message,
        }))
    }
}

/// An instance of `ip-restriction`.
struct AddressFilter {
    allow: Networks,
    deny: Networks,
    status: u16,
    message: Option<String>,
}

impl Filter for AddressFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let client = exchange.request.client;
        if !self.deny.contains(client) && (self.allow.is_empty() || self.allow.contains(client)) {
            return Outcome::Continue;
        }
        let kind = RefusalKind::Forbidden {
            plugin: "ip-restriction",
        };
        let mut refusal = Refusal::with_status(kind, self.status);
        refusal.message.clone_from(&self.message);
        Outcome::Refuse(Box::new(refusal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    #[test]
    fn clients_pass_by_their_address() {
        for (config, passes) in [
            (json!({"allow": ["10.0.0.0/8"]}), true),
            (json!({"allow": ["10.0.0.2", "::1"]}), false),
            (json!({"deny": ["10.0.0.1/32"]}), false),
            (json!({"deny": ["11.0.0.0/8"]}), true),
            (json!({"allow": ["10.0.0.0/8"], "deny": ["10.0.0.1"]}), false),
            (example(include_str!("mod.rs")), true),
        ] {
            let filter = build(&IpRestriction, &config).expect("valid");
            let expected = if passes { "continue" } else { "forbidden 403" };
            assert_eq!(word(&filter.on_request(&mut exchange())), expected, "{config}");
        }
    }

    #[test]
    fn the_answer_is_as_configured() {
        let config = json!({"deny": ["10.0.0.1"], "status": 451, "message": "no"});
        let filter = build(&IpRestriction, &config).expect("valid");
        match filter.on_request(&mut exchange()) {
            Outcome::Refuse(refusal) => {
                assert_eq!((refusal.status, refusal.message.as_deref()), (451, Some("no")));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        for (config, places) in [
            (json!({}), &[""][..]),
            (
                json!({"allow": ["10.0.0.1", "x"], "deny": ["y"]}),
                &["allow[1]", "deny[0]"],
            ),
            (json!({"allow": ["10.0.0.1"], "status": 99}), &["status"]),
            (json!({"allow": "10.0.0.1"}), &["allow"]),
        ] {
            assert_eq!(refused_at(&IpRestriction, &config), places, "{config}");
        }
    }
}
