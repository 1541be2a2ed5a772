//! Who may call: plans, applications, subscriptions, credentials; and who has to agree: approvals.

use super::{Labels, Runtime, is_default};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How callers of a plan are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanSecurity {
    /// Not at all: calls need no key.
    Keyless,
    /// By an API key.
    #[default]
    Key,
    /// By a JSON Web Token that the subscriber signs; the gateway has the public key.
    Jwt,
}

/// How far a plan's life has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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

/// Whether somebody has to accept subscriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Validation {
    /// They are accepted at once.
    #[default]
    Auto,
    /// Somebody decides.
    Manual,
}

/// A window of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Period {
    /// The second of the clock.
    Second,
    /// The minute of the clock.
    Minute,
    /// The hour of the clock.
    Hour,
    /// The day, in UTC.
    Day,
    /// Seven days.
    Week,
    /// The calendar month.
    Month,
}

/// How many calls a subscriber may make in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Calls.
    pub count: u64,
    /// The window.
    pub per: Period,
}

impl Limit {
    /// Whether it is a quota: calls of a day, a week or a month. What is used up in a shorter time is over before somebody reads
    /// of it.
    pub fn is_quota(&self) -> bool {
        self.count > 0 && matches!(self.per, Period::Day | Period::Week | Period::Month)
    }
}

impl Plan {
    /// Whether gateways count a subscriber's calls together, those of its shorter limits, too: they do for a quota.
    pub fn is_shared(&self) -> bool {
        self.limits.iter().any(Limit::is_quota)
    }
}

/// A way to call a version of an API.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
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
    /// What it offers.
    #[serde(skip_serializing_if = "is_default")]
    pub description: String,
    /// Free labels.
    #[serde(skip_serializing_if = "is_default")]
    pub labels: Labels,
    /// How callers are recognised.
    pub security: PlanSecurity,
    /// How many calls a subscriber may make. All have to allow a call.
    #[serde(skip_serializing_if = "is_default")]
    pub limits: Vec<Limit>,
    /// Limits of single operations, by their ids, beside those of the plan: both have to allow a call.
    #[serde(skip_serializing_if = "is_default")]
    pub operation_limits: BTreeMap<String, Vec<Limit>>,
    /// The operations that it opens, by their ids; empty: all.
    #[serde(skip_serializing_if = "is_default")]
    pub operations: Vec<String>,
    /// Whether somebody accepts subscriptions.
    pub validation: Validation,
    /// The conditions that subscribers agree to.
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: String,
    /// Grows with each change of the conditions.
    #[serde(skip_serializing_if = "is_default")]
    pub conditions_revision: u32,
    /// Groups that see it; empty: all people.
    #[serde(skip_serializing_if = "is_default")]
    pub visible_to: Vec<String>,
    /// Which plan goes first for a call that could use several, lowest first.
    pub order: u32,
    /// Seconds that a key is good for; absent: until it is revoked.
    #[serde(skip_serializing_if = "is_default")]
    pub key_lifetime: Option<u64>,
    /// Seconds that the old key stays good after a rotation; absent: two hours.
    #[serde(skip_serializing_if = "is_default")]
    pub overlap: Option<u64>,
    /// Days before a subscription ends on which its application is told; absent: 30, 7 and 1.
    #[serde(skip_serializing_if = "is_default")]
    pub notice_days: Option<Vec<u32>>,
    /// What it costs, as a text for people.
    #[serde(skip_serializing_if = "is_default")]
    pub price: String,
    /// How far its life has come.
    pub state: PlanState,
}

/// How many keys an application has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyMode {
    /// One for each subscription.
    #[default]
    PerSubscription,
    /// One for all.
    Shared,
}

/// A program that calls APIs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Application {
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "is_default")]
    pub display_name: String,
    /// What it does.
    #[serde(skip_serializing_if = "is_default")]
    pub description: String,
    /// Free labels.
    #[serde(skip_serializing_if = "is_default")]
    pub labels: Labels,
    /// Whose it is.
    #[serde(skip_serializing_if = "is_default")]
    pub owner: String,
    /// Addresses that are told what becomes of its subscriptions.
    #[serde(skip_serializing_if = "is_default")]
    pub mails: Vec<String>,
    /// How many keys it has. Set once.
    pub key_mode: KeyMode,
    /// It takes no new subscriptions.
    #[serde(skip_serializing_if = "is_default")]
    pub archived: bool,
}

/// How far a subscription's life has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubscriptionState {
    /// Somebody has to accept it.
    #[default]
    Pending,
    /// It is good.
    Accepted,
    /// It was not accepted.
    Rejected,
    /// The provider has stopped it for now: calls get 403.
    Paused,
    /// The consumer has stopped it for now: calls get 403.
    Stopped,
    /// It is over: its keys are unknown, calls get 401.
    Closed,
    /// Its time is over: calls get 403, and a new end opens it again.
    Expired,
}

/// An application's right to call a publication under a plan.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Subscription {
    /// Its name; made by the gateway's API.
    pub id: String,
    /// The application.
    pub application: String,
    /// The publication, as `API/VERSION/ENVIRONMENT`; empty: it is to a product.
    pub publication: String,
    /// The product; empty: it is to a publication.
    #[serde(skip_serializing_if = "is_default")]
    pub product: String,
    /// The plan's name.
    pub plan: String,
    /// How far its life has come.
    pub state: SubscriptionState,
    /// Seconds since 1970; absent: at once.
    #[serde(skip_serializing_if = "is_default")]
    pub starts: Option<u64>,
    /// Seconds since 1970; absent: never.
    #[serde(skip_serializing_if = "is_default")]
    pub ends: Option<u64>,
    /// Of how many days before its end the application was told last.
    #[serde(skip_serializing_if = "is_default")]
    pub noticed: Option<u32>,
    /// What the subscriber says.
    #[serde(skip_serializing_if = "is_default")]
    pub request: String,
    /// Why it is in its state.
    #[serde(skip_serializing_if = "is_default")]
    pub reason: String,
    /// Who decided.
    #[serde(skip_serializing_if = "is_default")]
    pub processed_by: String,
    /// The revision of the plan's conditions that the subscriber has agreed to.
    #[serde(skip_serializing_if = "is_default")]
    pub conditions_revision: u32,
    /// Seconds since 1970.
    pub created: u64,
}

impl Subscription {
    /// What is rendered when it changes: its publication, or its product.
    pub fn target(&self) -> String {
        match self.product.as_str() {
            "" => self.publication.clone(),
            product => format!("{}{product}", super::PRODUCTS),
        }
    }
}

/// What kind of credential it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CredentialKind {
    /// An API key, of which only the hash is kept.
    #[default]
    Key,
    /// The public key of somebody who signs tokens.
    Jwt,
}

/// A public key with which a subscriber's tokens are checked. It is no secret.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TokenKey {
    /// What tokens say in `iss`; if it is left out, the credential's id.
    #[serde(skip_serializing_if = "is_default")]
    pub issuer: String,
    /// The algorithm, such as `RS256`, `ES256` or `EdDSA`; none with a shared secret.
    pub algorithm: String,
    /// The public key in PEM.
    pub public_key: String,
}

/// A credential of a subscription. The key itself is nowhere.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Credential {
    /// Its name; made by the gateway's API.
    pub id: String,
    /// The subscription.
    pub subscription: String,
    /// What kind it is.
    pub kind: CredentialKind,
    /// The first characters of the key, to recognise it.
    pub prefix: String,
    /// SHA-256 of the key, in hexadecimal digits; empty for one that has no key of its own.
    pub hash: String,
    /// The public key, for tokens.
    #[serde(skip_serializing_if = "is_default")]
    pub jwt: Option<TokenKey>,
    /// Seconds since 1970; absent: never.
    #[serde(skip_serializing_if = "is_default")]
    pub expires: Option<u64>,
    /// When it was revoked, in seconds since 1970.
    #[serde(skip_serializing_if = "is_default")]
    pub revoked: Option<u64>,
    /// Whether it is a key to try calls with, which ends soon.
    #[serde(skip_serializing_if = "is_default")]
    pub trial: bool,
    /// The credential that it takes the place of.
    #[serde(skip_serializing_if = "is_default")]
    pub replaces: Option<String>,
    /// Seconds since 1970.
    pub created: u64,
}

impl Credential {
    /// Whether calls with it are accepted at a time.
    pub fn is_good(&self, now: u64) -> bool {
        self.revoked.is_none() && self.expires.is_none_or(|end| now < end)
    }
}

/// What somebody has to agree to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalKind {
    /// A publish of a revision.
    #[default]
    Publish,
    /// A revision's way into the next environment.
    Promotion,
}

/// What has come of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalState {
    /// It is not decided.
    #[default]
    Open,
    /// Granted.
    Granted,
    /// Refused.
    Refused,
    /// The person who asked for it no longer does.
    Withdrawn,
    /// What it was asked for has changed.
    Outdated,
}

/// Somebody's agreement to one exact content.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Approval {
    /// Its name; made by the gateway's API.
    pub id: String,
    /// What it is about.
    pub kind: ApprovalKind,
    /// The publication, as `API/VERSION/ENVIRONMENT`.
    pub publication: String,
    /// The hash that it is for.
    pub hash: String,
    /// The runtime that it is for; absent: the one that the publication has.
    #[serde(skip_serializing_if = "is_default")]
    pub runtime: Option<Runtime>,
    /// What has come of it.
    pub state: ApprovalState,
    /// Who asks.
    pub requested_by: String,
    /// Who has made what is to be approved: all changes since the revision that is published there.
    #[serde(skip_serializing_if = "is_default")]
    pub authors: BTreeSet<String>,
    /// Why.
    #[serde(skip_serializing_if = "is_default")]
    pub reason: String,
    /// Who decided.
    #[serde(skip_serializing_if = "is_default")]
    pub decided_by: String,
    /// Why so.
    #[serde(skip_serializing_if = "is_default")]
    pub decision: String,
    /// What it would change.
    #[serde(skip_serializing_if = "is_default")]
    pub diff: Option<Value>,
    /// Seconds since 1970.
    pub created: u64,
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
