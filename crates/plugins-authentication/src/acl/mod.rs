//! `acl`: lets calls pass by who makes them, once another plugin has found that out.
//!
//! ```yaml
//! allow: [{of: {label: team}, values: [blue, green]}]
//! deny: [{of: consumer, values: [mallory]}]
//! ```
//!
//! Security: it believes the plugins before it. Put it behind one that authenticates; without one, no call passes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::{
    AuthFailure, BuildContext, Exchange, Filter, Identity, Outcome, Phases, Plugin, Refusal, RefusalKind,
    parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::consumer_labels::ConsumerLabels;

/// Configuration of `acl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What must be known of a call; one of which it is not is not authenticated.
    #[serde(default)]
    pub require: AclSubject,
    /// Where there are any, one of these must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Rule>,
    /// None of these may hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Rule>,
    /// Methods that are left to some. Whom `allow` names may use all of them, and so may those who are not listed here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<Methods>,
    /// Whether an anonymous caller who has no label that `allow` asks for counts as not authenticated.
    #[serde(default)]
    pub anonymous_must_have: bool,
    /// A request header that tells the upstream the values of a label. A caller's own copy never gets through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tell: Option<LabelHeader>,
    /// Status of the answer to those who may not, 200 to 599.
    #[serde(default = "forbidden")]
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// What they are told, in place of the dialect's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What those are told who are not authenticated (status 401), in place of the dialect's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_message: Option<String>,
}

impl Default for Config {
    /// The defaults of all options, with nothing in the lists yet.
    fn default() -> Self {
        Self {
            require: AclSubject::default(),
            allow: Vec::new(),
            deny: Vec::new(),
            methods: Vec::new(),
            anonymous_must_have: false,
            tell: None,
            status: forbidden(),
            message: None,
            missing_message: None,
        }
    }
}

fn forbidden() -> u16 {
    403
}

/// A fact about a call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AclSubject {
    /// The consumer's name.
    #[default]
    Consumer,
    /// The consumer's group.
    ConsumerGroup,
    /// The route's name.
    Route,
    /// The service's name, or the `service_id` that the route's labels tell; empty: the route has none.
    Service,
    /// A label of the consumer. It holds several values as a JSON list, or with commas between them.
    Label(String),
}

/// Holds when the fact has one of the values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The fact.
    pub of: AclSubject,
    /// The values.
    pub values: Vec<String>,
}

/// The methods that are left to some.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Methods {
    /// The value of the required fact, such as the consumer's name.
    pub of: String,
    /// The methods.
    pub methods: Vec<String>,
}

/// A header about a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelHeader {
    /// The header.
    pub header: String,
    /// The label.
    pub label: String,
    /// Whether the header is sent, without a value, for callers who do not have the label.
    #[serde(default)]
    pub if_empty: bool,
}

/// The plugin.
pub struct Acl;

impl Plugin for Acl {
    fn name(&self) -> &'static str {
        "acl"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let mut config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_any(&[
            ("allow", config.allow.is_empty()),
            ("deny", config.deny.is_empty()),
            ("methods", config.methods.is_empty()),
        ]);
        faults.check_status("status", config.status);
        if let Some(tell) = &config.tell {
            faults.check_name("tell", &tell.header);
        }
        faults.done()?;
        for rule in config.allow.iter_mut().chain(&mut config.deny) {
            rule.values.sort_unstable();
        }
        Ok(Arc::new(AclFilter {
            config,
            labels: ConsumerLabels::of(context),
        }))
    }
}

/// An instance of `acl`. The values of its rules are sorted.
struct AclFilter {
    config: Config,
    labels: Arc<ConsumerLabels>,
}

/// What comes of looking at a call.
enum Finding {
    Passes,
    Unauthenticated,
    Forbidden,
}

impl AclFilter {
    fn judge(&self, exchange: &Exchange) -> Finding {
        let config = &self.config;
        if !self.is_known(&config.require, exchange) {
            return Finding::Unauthenticated;
        }
        let any = |rules: &[Rule]| rules.iter().any(|rule| self.holds(rule, exchange));
        if any(&config.deny) {
            return Finding::Forbidden;
        }
        let is_allowed = any(&config.allow);
        if !config.allow.is_empty() && !is_allowed {
            let identity = exchange.identity.as_ref();
            let is_anonymous = identity.is_some_and(|identity| identity.credential_id.is_none());
            let has_any = || config.allow.iter().any(|rule| self.is_known(&rule.of, exchange));
            return match config.anonymous_must_have && is_anonymous && !has_any() {
                true => Finding::Unauthenticated,
                false => Finding::Forbidden,
            };
        }
        match is_allowed || self.may_use_method(exchange) {
            true => Finding::Passes,
            false => Finding::Forbidden,
        }
    }

    fn may_use_method(&self, exchange: &Exchange) -> bool {
        let mut lists = self.config.methods.iter();
        let own = lists.find(|list| self.any_value(&self.config.require, exchange, |value| value == list.of));
        own.is_none_or(|own| {
            own.methods
                .iter()
                .any(|method| method.as_bytes() == exchange.request.method)
        })
    }

    fn is_known(&self, fact: &AclSubject, exchange: &Exchange) -> bool {
        self.any_value(fact, exchange, |_| true)
    }

    fn holds(&self, rule: &Rule, exchange: &Exchange) -> bool {
        let known = &rule.values;
        let is_listed = |value: &str| known.binary_search_by(|it| it.as_str().cmp(value)).is_ok();
        self.any_value(&rule.of, exchange, is_listed)
    }

    /// Whether the test holds for one of the fact's values. A fact that is not known has none.
    fn any_value(&self, fact: &AclSubject, exchange: &Exchange, test: impl Fn(&str) -> bool) -> bool {
        let identity = exchange.identity.as_ref();
        let consumer = identity.map(|identity| &identity.consumer);
        let route = exchange.route.as_deref();
        match fact {
            AclSubject::Consumer => consumer.is_some_and(|it| test(it.username.as_ref().unwrap_or(&it.id))),
            AclSubject::ConsumerGroup => consumer.and_then(|it| it.group.as_deref()).is_some_and(test),
            AclSubject::Route => route.is_some_and(|route| test(&route.name)),
            AclSubject::Service => route.is_some_and(|route| {
                let service = route.labels.get("service_id").unwrap_or(&route.service);
                !service.is_empty() && test(service)
            }),
            AclSubject::Label(name) => identity
                .and_then(|identity| self.labels.get(identity, name))
                .is_some_and(|label| label.values.iter().any(|value| test(value))),
        }
    }

    fn tell(&self, tell: &LabelHeader, exchange: &mut Exchange) {
        let headers = &mut exchange.request.headers;
        let label = |identity: &Identity| self.labels.get(identity, &tell.label);
        match exchange.identity.as_ref().and_then(label) {
            Some(label) => headers.set_owned(tell.header.as_bytes(), label.joined.as_bytes()),
            None if tell.if_empty => headers.set_owned(tell.header.as_bytes(), b""),
            None => headers.remove_owned(tell.header.as_bytes()),
        }
    }
}

impl Filter for AclFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let (kind, status, message) = match self.judge(exchange) {
            Finding::Passes => {
                if let Some(tell) = &self.config.tell {
                    self.tell(tell, exchange);
                }
                return Outcome::Continue;
            }
            Finding::Unauthenticated => {
                let failure = AuthFailure::Missing;
                let kind = RefusalKind::Unauthenticated {
                    plugin: "acl",
                    failure,
                };
                (kind, 401, &self.config.missing_message)
            }
            Finding::Forbidden => {
                let kind = RefusalKind::Forbidden { plugin: "acl" };
                (kind, self.config.status, &self.config.message)
            }
        };
        let mut refusal = Refusal::with_status(kind, status);
        refusal.message.clone_from(message);
        Outcome::Refuse(Box::new(refusal))
    }
}

#[cfg(test)]
mod tests;
