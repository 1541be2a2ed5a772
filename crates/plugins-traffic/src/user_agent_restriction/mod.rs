//! `user-agent-restriction`: lets calls pass by the program that makes them.
//!
//! ```yaml
//! known_bots: true
//! except: [Googlebot]
//! deny: ["^Old-App/1\\."]
//! ```
//!
//! Security: a program can send any name. This keeps out only programs that do not hide.

mod bots;

use bots::is_bot;
use regex::bytes::RegexSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Refusal, RefusalKind, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::regex_list::compile_set;

/// Configuration of `user-agent-restriction`. The lists are regular expressions that are searched for in
/// `User-Agent`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// These pass, whatever the other options say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
    /// If there are any, only these programs pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// These programs are refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Whether known bots are refused too: crawlers, scrapers, monitors, and the HTTP clients of some programming
    /// languages.
    #[serde(default)]
    pub known_bots: bool,
    /// Whether calls pass that do not name their program.
    #[serde(default = "weir_plugins_shared::yes")]
    pub allow_missing: bool,
    /// Whether a call may name several programs (each is checked). `false`: it is refused with status 400.
    #[serde(default)]
    pub allow_multiple: bool,
    /// Status of the refusal, 200 to 599.
    #[serde(default = "forbidden")]
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// The message of a refusal, instead of the dialect's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The message for callers that name several programs, instead of the dialect's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiple_message: Option<String>,
}

impl Default for Config {
    /// The defaults of all options, with nothing in the lists yet.
    fn default() -> Self {
        Self {
            except: Vec::new(),
            allow: Vec::new(),
            deny: Vec::new(),
            known_bots: false,
            allow_missing: true,
            allow_multiple: false,
            status: forbidden(),
            message: None,
            multiple_message: None,
        }
    }
}

fn forbidden() -> u16 {
    403
}

/// The plugin `user-agent-restriction`.
pub struct UserAgentRestriction;

impl Plugin for UserAgentRestriction {
    fn name(&self) -> &'static str {
        "user-agent-restriction"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_status("status", config.status);
        let mut read = |field: &str, list: &[String]| {
            let set = compile_set(list, false, &DocPath::root().field(field)).unwrap_or_else(|found| {
                faults.extend(found);
                RegexSet::empty()
            });
            (!list.is_empty()).then_some(set)
        };
        let (except, allow, deny) = (
            read("except", &config.except),
            read("allow", &config.allow),
            read("deny", &config.deny),
        );
        faults.done()?;
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Ok(Arc::new(AgentFilter {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            config,
            except,
            allow,
            deny,
        }))
    }
}

/// An instance of `user-agent-restriction`. Lists without expressions are absent.
struct AgentFilter {
    /// Tells it from all others that the process has had.
    number: u64,
    config: Config,
    except: Option<RegexSet>,
    allow: Option<RegexSet>,
    deny: Option<RegexSet>,
}

/// Programs that each worker remembers, and the longest name of one.
const REMEMBERED: usize = 64;
const MAX_NAME: usize = 384;

/// The recent result for a program, at one instance.
struct Verdict {
    number: u64,
    agent: Vec<u8>,
    passes: bool,
}

thread_local! {
    static LATELY: RefCell<[Option<Verdict>; REMEMBERED]> = const { RefCell::new([const { None }; REMEMBERED]) };
}

impl AgentFilter {
    /// The same as [`Self::passes`] for the one program that is named. Most calls come from few programs, and the
    /// expressions take many times longer than it takes to recognise one.
    fn passes_one(&self, exchange: &Exchange, agent: &[u8]) -> bool {
        if agent.len() > MAX_NAME {
            return self.passes(exchange);
        }
        let place = (weir_flow::hash_bytes(agent) ^ self.number) as usize % REMEMBERED;
        LATELY.with_borrow_mut(|lately| match &mut lately[place] {
            Some(known) if known.number == self.number && known.agent == agent => known.passes,
            slot => {
                let passes = self.passes(exchange);
                *slot = Some(Verdict {
                    number: self.number,
                    agent: agent.to_vec(),
                    passes,
                });
                passes
            }
        })
    }

    fn passes(&self, exchange: &Exchange) -> bool {
        let agents = || exchange.request.headers.get_all(b"user-agent");
        let any = |set: &Option<RegexSet>| {
            set.as_ref()
                .is_some_and(|set| agents().any(|agent| set.is_match(agent)))
        };
        let is_refused = (self.allow.is_some() && !any(&self.allow))
            || any(&self.deny)
            || (self.config.known_bots && agents().any(is_bot));
        // Last, since most calls are not refused.
        !is_refused || any(&self.except)
    }
}

impl Filter for AgentFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let plugin = "user-agent-restriction";
        let mut agents = exchange.request.headers.get_all(b"user-agent");
        let passes = match (agents.next(), agents.next()) {
            (None, _) => self.config.allow_missing,
            (Some(_), Some(_)) if !self.config.allow_multiple => {
                let mut refusal = Refusal::new(RefusalKind::Unacceptable { plugin });
                refusal.message.clone_from(&self.config.multiple_message);
                return Outcome::Refuse(Box::new(refusal));
            }
            (Some(agent), None) => self.passes_one(exchange, agent),
            _ => self.passes(exchange),
        };
        if passes {
            return Outcome::Continue;
        }
        let mut refusal = Refusal::with_status(RefusalKind::Forbidden { plugin }, self.config.status);
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
    fn programs_pass_by_their_name() {
        let deny = json!({"deny": ["bad-bot", r"Spider/(\d+)\.(\d+)"], "allow_multiple": true});
        let allow = json!({"allow": ["^my"], "allow_multiple": true, "allow_missing": false});
        let bots = json!({"known_bots": true, "except": ["good"], "deny": ["evil"]});
        type Call<'c> = (&'c Value, &'c [&'c str], &'c str);
        let cases: [Call<'_>; 19] = [
            (&deny, &["bad-bot/1"], "forbidden 403"),
            (&deny, &["BAD-BOT"], "continue"),
            (&deny, &["Spider/2.0"], "forbidden 403"),
            (&deny, &[], "continue"),
            (&deny, &["good", "bad-bot"], "forbidden 403"),
            (&allow, &["my-app"], "continue"),
            (&allow, &["other"], "forbidden 403"),
            (&allow, &["other", "my-app"], "continue"),
            (&allow, &[""], "forbidden 403"),
            (&allow, &[], "forbidden 403"),
            (&bots, &["curl/7.1.0"], "continue"),
            (&bots, &["bingbot/2.0"], "forbidden 403"),
            (&bots, &["good bingbot/2.0"], "continue"),
            (&bots, &["good evil"], "continue"),
            (&bots, &["evil"], "forbidden 403"),
            (&bots, &["a", "b"], "unacceptable 400"),
            (&bots, &[], "continue"),
            (&json!({}), &["Scrapy/1.0"], "continue"),
            (&example(include_str!("mod.rs")), &["Googlebot/2.1"], "continue"),
        ];
        for (config, agents, expected) in cases {
            let mut exchange = exchange();
            for agent in agents {
                exchange.request.headers.append(b"User-Agent", agent.as_bytes());
            }
            let filter = build(&UserAgentRestriction, config).expect("valid");
            assert_eq!(
                word(&filter.on_request(&mut exchange)),
                expected,
                "{config} {agents:?}"
            );
        }
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        for (config, places) in [
            (
                json!({"deny": ["("], "allow": ["a", "["]}),
                &["allow[1]", "deny[0]"][..],
            ),
            (json!({"status": 600}), &["status"]),
        ] {
            assert_eq!(refused_at(&UserAgentRestriction, &config), places, "{config}");
        }
    }
}
