//! `acl`: lets calls pass by who makes them, once another plugin has found that out.
//!
//! ```yaml
//! allow: [{of: {label: team}, values: [blue, green]}]
//! deny: [{of: consumer, values: [mallory]}]
//! ```
//!
//! Security: it believes the plugins before it. Put it behind one that authenticates; without one, no call passes.

use crate::{authenticated_groups, user_headers};
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
    /// The fact that a call must have. A call without it is not authenticated.
    #[serde(default)]
    pub require: AclSubject,
    /// If there are any rules here, one of them must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Rule>,
    /// None of these may hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Rule>,
    /// Methods that only some callers may use. Callers that `allow` matches may use all of them, and so may callers
    /// that are not listed here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<Methods>,
    /// Whether an anonymous caller without the label that `allow` requires counts as not authenticated.
    #[serde(default)]
    pub anonymous_must_have: bool,
    /// Judges callers by the groups that a directory or a token names, instead of by the rules' own subjects. Absent:
    /// off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authenticated_groups: Option<AuthenticatedGroups>,
    /// The request header with the values of a label, for the upstream. The caller's own copy is always removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_header: Option<LabelHeader>,
    /// Status of the refusal, 200 to 599.
    #[serde(default = "forbidden")]
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// The message of a refusal, instead of the dialect's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The message for callers who are not authenticated (status 401), instead of the dialect's own.
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
            authenticated_groups: None,
            label_header: None,
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
    /// The service's name, or the `service_id` label of the route; empty if the route has none.
    Service,
    /// A label of the consumer. It holds several values as a JSON list, or with commas between them.
    Label(String),
    /// A group that a directory, a token or a certificate names, as another plugin has found it.
    AuthenticatedGroup,
}

/// How callers are judged by groups that another plugin has found: the values of all rules are names of groups then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthenticatedGroups {
    /// Whose groups count.
    pub of: GroupHolders,
    /// The request header with the groups, for the upstream. The caller's own copy is always removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
}

/// Whose groups count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GroupHolders {
    /// Those of callers without a consumer, and of the anonymous consumer.
    WithoutCredential,
    /// Those of all callers.
    Everybody,
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

/// The plugin `acl`.
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
        if let Some(label_header) = &config.label_header {
            faults.check_name("label_header", &label_header.header);
        }
        let groups = config.authenticated_groups.as_ref();
        if let Some(header) = groups.and_then(|groups| groups.header.as_deref()) {
            faults.check_name("authenticated_groups.header", header);
        }
        faults.done()?;
        for rule in config.allow.iter_mut().chain(&mut config.deny) {
            rule.values.sort_unstable();
        }
        let mut rules = config.allow.iter().chain(&config.deny);
        let asks_groups = config.authenticated_groups.is_some()
            || config.require == AclSubject::AuthenticatedGroup
            || rules.any(|rule| rule.of == AclSubject::AuthenticatedGroup);
        Ok(Arc::new(AclFilter {
            config,
            asks_groups,
            labels: ConsumerLabels::of(context),
        }))
    }
}

/// An instance of `acl`. The values of its rules are sorted.
struct AclFilter {
    config: Config,
    /// Whether the groups that other plugins have found matter.
    asks_groups: bool,
    labels: Arc<ConsumerLabels>,
}

impl Rule {
    /// Whether it names a value. Its values are sorted.
    fn lists(&self, value: &str) -> bool {
        self.values.binary_search_by(|it| it.as_str().cmp(value)).is_ok()
    }
}

/// A call, with the groups that other plugins have found.
struct JudgedCall<'c> {
    exchange: &'c Exchange,
    groups: Option<&'c [String]>,
}

/// The result of checking a call.
enum Finding {
    Passes,
    Unauthenticated,
    Forbidden,
}

impl AclFilter {
    /// The groups that the rules are matched against, if groups replace the rules' own subjects.
    fn counting_groups<'g>(&self, exchange: &Exchange, groups: Option<&'g [String]>) -> Option<&'g [String]> {
        let counts = self.config.authenticated_groups.as_ref()?;
        let identity = exchange.identity.as_ref();
        let has_credential = identity.is_some_and(|identity| identity.credential_id.is_some());
        groups.filter(|_| counts.of == GroupHolders::Everybody || !has_credential)
    }

    /// What the rules say of groups.
    fn evaluate_groups(&self, groups: &[String]) -> Finding {
        let any = |rules: &[Rule]| {
            rules
                .iter()
                .any(|rule| groups.iter().any(|group| rule.lists(group)))
        };
        let is_allowed = self.config.allow.is_empty() || any(&self.config.allow);
        match is_allowed && !any(&self.config.deny) {
            true => Finding::Passes,
            false => Finding::Forbidden,
        }
    }

    fn evaluate(&self, call: &JudgedCall<'_>) -> Finding {
        let (config, exchange) = (&self.config, call.exchange);
        if !self.is_known(&config.require, call) {
            // Somebody is known, who is no consumer and in no group.
            let is_somebody = config.authenticated_groups.is_some() && exchange.has_fingerprint();
            return match is_somebody {
                true => Finding::Forbidden,
                false => Finding::Unauthenticated,
            };
        }
        let any = |rules: &[Rule]| rules.iter().any(|rule| self.holds(rule, call));
        if any(&config.deny) {
            return Finding::Forbidden;
        }
        let is_allowed = any(&config.allow);
        if !config.allow.is_empty() && !is_allowed {
            let identity = exchange.identity.as_ref();
            let is_anonymous = identity.is_some_and(|identity| identity.credential_id.is_none());
            let has_any = || config.allow.iter().any(|rule| self.is_known(&rule.of, call));
            return match config.anonymous_must_have && is_anonymous && !has_any() {
                true => Finding::Unauthenticated,
                false => Finding::Forbidden,
            };
        }
        match is_allowed || self.may_use_method(call) {
            true => Finding::Passes,
            false => Finding::Forbidden,
        }
    }

    fn may_use_method(&self, call: &JudgedCall<'_>) -> bool {
        let mut lists = self.config.methods.iter();
        let own = lists.find(|list| self.any_value(&self.config.require, call, |value| value == list.of));
        own.is_none_or(|own| {
            own.methods
                .iter()
                .any(|method| method.as_bytes() == call.exchange.request.method)
        })
    }

    fn is_known(&self, fact: &AclSubject, call: &JudgedCall<'_>) -> bool {
        self.any_value(fact, call, |_| true)
    }

    fn holds(&self, rule: &Rule, call: &JudgedCall<'_>) -> bool {
        self.any_value(&rule.of, call, |value| rule.lists(value))
    }

    /// Whether the test holds for one of the fact's values. A fact that is not known has none.
    fn any_value(&self, fact: &AclSubject, call: &JudgedCall<'_>, test: impl Fn(&str) -> bool) -> bool {
        let JudgedCall { exchange, groups } = call;
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
            AclSubject::AuthenticatedGroup => {
                groups.is_some_and(|groups| groups.iter().any(|group| test(group)))
            }
        }
    }

    /// Tells of groups if they were looked at, and else of a label.
    fn set_upstream_header(&self, exchange: &mut Exchange, groups: Option<&[String]>) {
        let config = &self.config;
        let counts = config.authenticated_groups.as_ref();
        if let Some(header) = counts.and_then(|counts| counts.header.as_deref()) {
            match groups {
                Some(groups) => authenticated_groups::set_header(exchange, header, groups),
                None => user_headers::remove_forged(exchange, [header].into_iter()),
            }
        }
        match &config.label_header {
            Some(label_header) if groups.is_none() => self.set_label_header(label_header, exchange),
            Some(label_header) => exchange
                .request
                .headers
                .remove_owned(label_header.header.as_bytes()),
            None => {}
        }
    }

    fn set_label_header(&self, label_header: &LabelHeader, exchange: &mut Exchange) {
        let headers = &mut exchange.request.headers;
        let label = |identity: &Identity| self.labels.get(identity, &label_header.label);
        match exchange.identity.as_ref().and_then(label) {
            Some(label) => headers.set_owned(label_header.header.as_bytes(), label.joined.as_bytes()),
            None if label_header.if_empty => headers.set_owned(label_header.header.as_bytes(), b""),
            None => headers.remove_owned(label_header.header.as_bytes()),
        }
    }
}

impl Filter for AclFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let found = match self.asks_groups {
            true => authenticated_groups::of(exchange),
            false => None,
        };
        let counting = self.counting_groups(exchange, found.as_deref());
        let finding = match counting {
            Some(groups) => self.evaluate_groups(groups),
            None => self.evaluate(&JudgedCall {
                exchange,
                groups: found.as_deref(),
            }),
        };
        let (kind, status, message) = match finding {
            Finding::Passes => {
                self.set_upstream_header(exchange, counting);
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
