//! `uri-restriction`: refuses calls by their path and query.
//!
//! ```yaml
//! deny: ["\\.(git|env)(/|$)", "^/admin"]
//! ignore_case: true
//! ```
//!
//! The expressions are searched for in path and query together. Security: this filters unwanted requests and is not a
//! lock; protect what must not be reached with a route of its own, or with no route.

use regex::bytes::RegexSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Refusal, RefusalKind, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::regex_list::compile_set;
use weir_plugins_shared::request_uri::{UriForm, with_uri};

/// Configuration of `uri-restriction`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Regular expressions; calls in whose address one of them finds something are refused.
    pub deny: Vec<String>,
    /// Whether upper and lower case are the same.
    #[serde(default)]
    pub ignore_case: bool,
    /// In which form of the address they are searched for.
    #[serde(default)]
    pub form: UriForm,
    /// Status of the response, 200 to 599.
    #[serde(default = "forbidden")]
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// The message of a refusal, instead of the dialect's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Default for Config {
    /// The defaults of all options, with nothing in the list yet.
    fn default() -> Self {
        Self {
            deny: Vec::new(),
            ignore_case: false,
            form: UriForm::default(),
            status: forbidden(),
            message: None,
        }
    }
}

fn forbidden() -> u16 {
    403
}

/// The plugin `uri-restriction`.
pub struct UriRestriction;

impl Plugin for UriRestriction {
    fn name(&self) -> &'static str {
        "uri-restriction"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_status("status", config.status);
        let path = DocPath::root().field("deny");
        let deny = compile_set(&config.deny, config.ignore_case, &path).unwrap_or_else(|found| {
            faults.extend(found);
            RegexSet::empty()
        });
        faults.done()?;
        Ok(Arc::new(UriFilter { config, deny }))
    }
}

/// An instance of `uri-restriction`.
struct UriFilter {
    config: Config,
    deny: RegexSet,
}

impl Filter for UriFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if !with_uri(self.config.form, &exchange.request, |uri| self.deny.is_match(uri)) {
            return Outcome::Continue;
        }
        let kind = RefusalKind::Forbidden {
            plugin: "uri-restriction",
        };
        let mut refusal = Refusal::with_status(kind, self.config.status);
        refusal.message.clone_from(&self.config.message);
        Outcome::Refuse(Box::new(refusal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    #[test]
    fn addresses_are_refused_as_configured() {
        let rules = json!({"deny": ["root.exe", "root.m+$", "=x&y"]});
        let any_case = json!({"deny": ["aa|b", "c"], "ignore_case": true});
        for (config, line, is_refused) in [
            (&rules, "GET /root.exe?a=a", true),
            (&rules, "GET /x/rootxexe", true),
            (&rules, "GET /root.mmm", true),
            (&rules, "GET /root.mmm/", false),
            (&rules, "GET /ok?f=root.exe", true),
            (&rules, "GET /?a=x&y", true),
            (&rules, "GET /ROOT.EXE", false),
            (&any_case, "GET /AA", true),
            (&any_case, "GET /C", true),
            (&any_case, "GET /d", false),
            (&json!({"deny": []}), "GET /", false),
            (
                &example(include_str!("uri_restriction.rs")),
                "GET /x/.GIT/config",
                true,
            ),
        ] {
            let mut exchange = exchange();
            prepare(&mut exchange, line, &[]);
            let filter = build(&UriRestriction, config).expect("valid");
            let expected = if is_refused { "forbidden 403" } else { "continue" };
            assert_eq!(
                word(&filter.on_request(&mut exchange)),
                expected,
                "{config} {line}"
            );
        }
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        for (config, places) in [
            (json!({}), &["deny"][..]),
            (json!({"deny": ["a", "("], "status": 1}), &["status", "deny[1]"]),
        ] {
            let mut found = refused_at(&UriRestriction, &config);
            found.iter_mut().for_each(|place| {
                if place.is_empty() {
                    *place = "deny".into();
                }
            });
            assert_eq!(found, places, "{config}");
        }
    }
}
