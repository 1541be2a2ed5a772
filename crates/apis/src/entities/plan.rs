//! Plans: how callers are recognised, how much they may call, and what subscribers are asked.

use super::{Labels, is_default};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// How callers of a plan are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanSecurity {
    /// Not at all: calls need no key.
    Keyless,
    /// By an API key.
    #[default]
    Key,
    /// By a JSON Web Token that the subscriber signs; the gateway has the public key.
    Jwt,
    /// By a user name and a password.
    Basic,
    /// By a signature over the call, made with a secret that both sides know.
    Hmac,
    /// By an access token of an authorization server: the client that it was made for is the application's.
    Oauth2,
    /// By a client certificate of the application, in the TLS handshake.
    Mtls,
}

/// How access tokens are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TokenCheck {
    /// By its signature and the server's keys.
    #[default]
    Jwks,
    /// The server is asked (RFC 7662).
    Introspection,
}

/// The authorization server whose access tokens a plan accepts.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OauthSettings {
    /// The authorization server: its issuer, or the address of its discovery document.
    pub discovery: String,
    /// How tokens are checked.
    pub check: TokenCheck,
    /// The gateway's own client id there, for an introspection.
    #[serde(skip_serializing_if = "is_default")]
    pub client_id: String,
    /// Its secret. Reads leave it out; a write without it keeps it.
    #[serde(skip_serializing_if = "is_default")]
    pub client_secret: String,
    /// The introspection endpoint; left out: the one that the server's document names.
    #[serde(skip_serializing_if = "is_default")]
    pub introspection_endpoint: String,
    /// Audiences: a token must have one of them; empty: any audience.
    #[serde(skip_serializing_if = "is_default")]
    pub audiences: Vec<String>,
    /// Scopes that a token must have, all of them.
    #[serde(skip_serializing_if = "is_default")]
    pub scopes: Vec<String>,
    /// The claims that may name the client, the first that a token has counts; empty: `client_id`, then `azp`.
    #[serde(skip_serializing_if = "is_default")]
    pub client_claims: Vec<String>,
}

/// The secret is left out.
impl std::fmt::Debug for OauthSettings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("OauthSettings")
            .field("discovery", &self.discovery)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

/// The requirements for signatures of a plan's subscribers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HmacSettings {
    /// Headers that must be signed in addition to `date` and `@request-target`.
    #[serde(skip_serializing_if = "is_default")]
    pub headers: Vec<String>,
    /// Whether the header `Digest` must be signed and hold the body's SHA-256.
    #[serde(skip_serializing_if = "is_default")]
    pub check_body: bool,
}

/// The certificates that a plan accepts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CertificateSettings {
    /// Authorities in PEM: one of them must have signed the application's certificate; empty: no authority is required.
    pub authorities: Vec<String>,
}

/// Whether subscribers give a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Comment {
    /// They cannot.
    None,
    /// They may.
    #[default]
    Asked,
    /// They must.
    Required,
}

/// The end of a plan at a date.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlannedClose {
    /// When, in seconds since 1970.
    pub at: u64,
    /// The plan that gets its subscriptions then; empty: they are closed.
    #[serde(skip_serializing_if = "is_default")]
    pub move_to: String,
}

/// How far a plan's life has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanState {
    /// It takes no subscriptions yet.
    #[default]
    Staging,
    /// It is offered.
    Published,
    /// It serves its subscribers and takes no new ones.
    Deprecated,
    /// It is over.
    Closed,
}

/// Whether subscriptions need approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Validation {
    /// They are accepted immediately.
    #[default]
    Auto,
    /// A person decides.
    Manual,
}

/// A window of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "LimitPeriod")]
pub enum Period {
    /// The second of the clock.
    Second,
    /// The minute of the clock.
    Minute,
    /// The hour of the clock.
    Hour,
    /// The day, in UTC.
    Day,
    /// The week, from Monday 00:00 UTC on.
    Week,
    /// The calendar month.
    Month,
}

/// How many calls a subscriber may make in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Calls: 1 to 1,000,000,000,000.
    pub count: u64,
    /// The window.
    pub per: Period,
}

impl Limit {
    /// Whether it is a quota: calls of a day, a week or a month. A shorter window is over before anybody reads a notice
    /// about it.
    pub fn is_quota(&self) -> bool {
        self.count > 0 && matches!(self.per, Period::Day | Period::Week | Period::Month)
    }
}

impl Plan {
    /// Whether its subscribers are known by what their application has: a client id, or certificates. Others have
    /// credentials of their own.
    pub fn is_of_application(&self) -> bool {
        matches!(self.security, PlanSecurity::Oauth2 | PlanSecurity::Mtls)
    }

    /// Whether gateways count a subscriber's calls together, those of its shorter limits, too: they do for a quota.
    pub fn is_shared(&self) -> bool {
        self.limits.iter().any(Limit::is_quota)
    }
}

/// A way to call a version of an API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Plan {
    /// The API.
    pub api: String,
    /// The version.
    pub version: String,
    /// The product, for a plan of one; it has no API and no version then.
    #[serde(skip_serializing_if = "is_default")]
    pub product: String,
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "is_default")]
    pub display_name: String,
    /// Its description.
    #[serde(skip_serializing_if = "is_default")]
    pub description: String,
    /// Free labels.
    #[serde(skip_serializing_if = "is_default")]
    pub labels: Labels,
    /// How callers are recognised.
    pub security: PlanSecurity,
    /// The authorization server whose access tokens it accepts, for `oauth2`.
    #[serde(skip_serializing_if = "is_default")]
    pub oauth2: Option<OauthSettings>,
    /// The requirements for signatures, for `hmac`.
    #[serde(skip_serializing_if = "is_default")]
    pub hmac: Option<HmacSettings>,
    /// The certificates that it accepts, for `mtls`.
    #[serde(skip_serializing_if = "is_default")]
    pub mtls: Option<CertificateSettings>,
    /// How many calls a subscriber may make. All have to allow a call.
    #[serde(skip_serializing_if = "is_default")]
    pub limits: Vec<Limit>,
    /// Limits of single operations, by their ids, in addition to those of the plan: both have to allow a call.
    #[serde(skip_serializing_if = "is_default")]
    pub operation_limits: BTreeMap<String, Vec<Limit>>,
    /// The operations that it opens, by their ids; empty: all.
    #[serde(skip_serializing_if = "is_default")]
    pub operations: Vec<String>,
    /// Whether subscriptions need approval.
    pub validation: Validation,
    /// The conditions that subscribers agree to.
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: String,
    /// Grows with each change of the conditions.
    #[serde(skip_serializing_if = "is_default")]
    pub conditions_revision: u32,
    /// Whether subscribers must give a reason in `request`.
    #[serde(skip_serializing_if = "is_default")]
    pub comment: Comment,
    /// Questions that subscribers answer: a JSON Schema of a map with texts, numbers and truth values.
    #[serde(skip_serializing_if = "is_default")]
    pub form: Option<Value>,
    /// Groups that see it; empty: all people.
    #[serde(skip_serializing_if = "is_default")]
    pub visible_to: Vec<String>,
    /// The order of plans for a call that could use several, lowest first.
    pub order: u32,
    /// Seconds that a key is valid for; absent: until it is revoked.
    #[serde(skip_serializing_if = "is_default")]
    pub key_lifetime: Option<u64>,
    /// Seconds that the old key stays valid after a rotation; absent: two hours.
    #[serde(skip_serializing_if = "is_default")]
    pub overlap: Option<u64>,
    /// Days before a subscription ends on which its application gets a notice; absent: 30, 7 and 1.
    #[serde(skip_serializing_if = "is_default")]
    pub notice_days: Option<Vec<u32>>,
    /// Its price, as a text for people.
    #[serde(skip_serializing_if = "is_default")]
    pub price: String,
    /// How far its life has come.
    pub state: PlanState,
    /// When it will be closed. Set with its state.
    #[serde(skip_serializing_if = "is_default")]
    pub closes: Option<PlannedClose>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_count_together_if_one_limit_is_a_quota() {
        for (limits, expected) in [
            (vec![], false),
            (vec![(9, Period::Minute), (99, Period::Hour)], false),
            (vec![(9, Period::Minute), (99, Period::Day)], true),
            (vec![(9, Period::Week)], true),
            (vec![(9, Period::Month)], true),
            (vec![(0, Period::Month)], false),
        ] {
            let limits: Vec<Limit> = limits
                .into_iter()
                .map(|(count, per)| Limit { count, per })
                .collect();
            let plan = Plan {
                limits,
                ..Plan::default()
            };
            assert_eq!(plan.is_shared(), expected, "{plan:?}");
        }
    }
}
