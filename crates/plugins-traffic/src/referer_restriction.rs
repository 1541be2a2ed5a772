//! `referer-restriction`: admits or refuses calls by the host of the referring page.
//!
//! ```yaml
//! allow: [example.com, "*.example.com"]
//! allow_missing: true
//! ```
//!
//! Security: browsers send the true page or none; other programs can send what they like.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Refusal, RefusalKind, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `referer-restriction`. Hosts are compared literally, with their case; a `*` at the start matches
/// any text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// If there are any, only calls from these hosts pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Calls from these hosts are refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Whether calls pass that have no `Referer`, or one that is not a web address.
    #[serde(default)]
    pub allow_missing: bool,
    /// Status of the refusal, 200 to 599.
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
            allow_missing: false,
            status: forbidden(),
            message: None,
        }
    }
}

fn forbidden() -> u16 {
    403
}

/// The plugin `referer-restriction`.
pub struct RefererRestriction;

impl Plugin for RefererRestriction {
    fn name(&self) -> &'static str {
        "referer-restriction"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_any(&[
            ("allow", config.allow.is_empty()),
            ("deny", config.deny.is_empty()),
        ]);
        faults.check_status("status", config.status);
        faults.done()?;
        Ok(Arc::new(RefererFilter {
            allow: Hosts::new(&config.allow),
            deny: Hosts::new(&config.deny),
            config,
        }))
    }
}

/// Hosts made ready for many questions.
struct Hosts {
    /// In ascending order.
    exact: Vec<Vec<u8>>,
    endings: Vec<Vec<u8>>,
}

impl Hosts {
    fn new(list: &[String]) -> Self {
        let endings = list.iter().filter_map(|host| host.strip_prefix('*'));
        let endings = endings.map(|host| host.as_bytes().to_vec()).collect();
        let exact = list.iter().filter(|host| !host.starts_with('*'));
        let mut exact: Vec<Vec<u8>> = exact.map(|host| host.as_bytes().to_vec()).collect();
        exact.sort_unstable();
        Self { exact, endings }
    }

    fn has(&self, host: &[u8]) -> bool {
        self.exact
            .binary_search_by(|known| known.as_slice().cmp(host))
            .is_ok()
            || self.endings.iter().any(|ending| host.ends_with(ending))
    }
}

/// An instance of `referer-restriction`.
struct RefererFilter {
    allow: Hosts,
    deny: Hosts,
    config: Config,
}

impl Filter for RefererFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let referer = exchange.request.headers.get(b"referer");
        let passes = match referer.and_then(host) {
            None => self.config.allow_missing,
            Some(host) => (self.config.allow.is_empty() || self.allow.has(host)) && !self.deny.has(host),
        };
        if passes {
            return Outcome::Continue;
        }
        let kind = RefusalKind::Forbidden {
            plugin: "referer-restriction",
        };
        let mut refusal = Refusal::with_status(kind, self.config.status);
        refusal.message.clone_from(&self.config.message);
        Outcome::Refuse(Box::new(refusal))
    }
}

/// The host in an address on the web, without its port.
fn host(address: &[u8]) -> Option<&[u8]> {
    let behind_scheme = [&b"https:"[..], b"http:"]
        .into_iter()
        .find_map(|scheme| address.strip_prefix(scheme))
        .unwrap_or(address);
    let rest = behind_scheme.strip_prefix(b"//")?;
    let length = match rest.first()? {
        b'[' => 1 + rest.iter().position(|byte| *byte == b']')?,
        _ => rest
            .iter()
            .position(|byte| matches!(byte, b':' | b'/' | b'?' | b'['))
            .unwrap_or(rest.len()),
    };
    (length > 0).then(|| &rest[..length])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    #[test]
    fn calls_pass_by_where_they_come_from() {
        let allow = json!({"allow": ["yy.com", "*.zz.com", "[::1]"]});
        let deny = json!({"deny": ["yy.com", "*.zz.com"]});
        let missing = json!({"deny": ["yy.com"], "allow_missing": true});
        for (config, referer, passes) in [
            (&allow, Some("http://yy.com/p?x"), true),
            (&allow, Some("https://www.zz.com"), true),
            (&allow, Some("//yy.com:80/"), true),
            (&allow, Some("http://[::1]:80/"), true),
            (&allow, Some("http://zz.com"), false),
            (&allow, Some("http://www.yy.com"), false),
            (&allow, Some("http://YY.com"), false),
            (&allow, Some("yy.com"), false),
            (&allow, Some(""), false),
            (&allow, None, false),
            (&deny, Some("http://yy.com/p"), false),
            (&deny, Some("http://a.zz.com:99"), false),
            (&deny, Some("http://ok.com"), true),
            (&deny, Some("junk"), false),
            (&deny, None, false),
            (&missing, None, true),
            (&missing, Some("http://"), true),
            (&missing, Some("http://yy.com"), false),
            (&example(include_str!("referer_restriction.rs")), None, true),
        ] {
            let mut exchange = exchange();
            if let Some(referer) = referer {
                exchange.request.headers.append(b"Referer", referer.as_bytes());
            }
            let filter = build(&RefererRestriction, config).expect("valid");
            let expected = if passes { "continue" } else { "forbidden 403" };
            assert_eq!(
                word(&filter.on_request(&mut exchange)),
                expected,
                "{config} {referer:?}"
            );
        }
    }

    #[test]
    fn bad_configurations_are_refused() {
        assert_eq!(
            refused_at(&RefererRestriction, &json!({"status": 600})),
            ["", "status"]
        );
    }
}
