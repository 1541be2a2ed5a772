//! The bodies and answers of the calls about applications, as types: the OpenAPI document is made of them.

use crate::people::TeamRole;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use weir_apis::entities::TokenKey;

/// Applications.
#[derive(Serialize, JsonSchema)]
pub struct AppList {
    /// By title.
    pub items: Vec<AppLine>,
}

/// An application.
#[derive(Serialize, JsonSchema)]
pub struct AppLine {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its description.
    pub description: String,
    /// The team that it belongs to; `null`: it is your own.
    pub team: Option<String>,
    /// The team's name.
    pub team_name: String,
    /// The caller's role: `viewer`, `member` or `owner`.
    pub role: TeamRole,
    /// Its subscriptions.
    pub subscriptions: usize,
}

/// An application with its subscriptions.
#[derive(Serialize, JsonSchema)]
pub struct AppDetail {
    /// The application.
    pub app: AppLine,
    /// What plans know it by that give out no keys.
    #[serde(flatten)]
    pub known_by: AppIdentity,
    /// Its subscriptions, the latest first.
    pub subscriptions: Vec<SubscriptionLine>,
}

/// What plans know an application by that give out no keys.
#[derive(Serialize, JsonSchema)]
pub struct AppIdentity {
    /// Its client id at authorization servers, for plans with `oauth2`; empty: it has none.
    pub client_id: String,
    /// Its certificates in PEM, for plans with `mtls`.
    pub certificates: Vec<String>,
}

/// An application, as it is downloaded.
#[derive(Serialize, JsonSchema)]
pub struct OwnApp {
    /// The application.
    pub application: AppLine,
    /// What plans know it by that give out no keys.
    #[serde(flatten)]
    pub known_by: AppIdentity,
    /// Its subscriptions, the latest first.
    pub subscribed: Vec<SubscriptionLine>,
}

/// A subscription.
#[derive(Serialize, JsonSchema)]
pub struct SubscriptionLine {
    /// Its id.
    pub id: String,
    /// The publication, as `API/VERSION/ENVIRONMENT`.
    pub publication: String,
    /// The product, if it is to one: then there is no publication.
    pub product: String,
    /// The plan.
    pub plan: String,
    /// The plan's title.
    pub plan_title: String,
    /// How its caller is known: `key`, `jwt`, `basic`, `hmac`, `oauth2` or `mtls`; empty: the plan is gone.
    pub security: String,
    /// For `oauth2`, the client id of the application; for `mtls`, the SHA-256 of its certificates.
    pub known_by: Vec<String>,
    /// `pending`, `accepted`, `rejected`, `paused`, `stopped`, `closed` or `expired`.
    pub state: String,
    /// Whether the application has stopped it, also while the provider has paused it.
    pub stopped: bool,
    /// Why.
    pub reason: String,
    /// Seconds since 1970.
    pub created: u64,
    /// When it ends.
    pub ends: Option<u64>,
    /// The subscriber's message to the provider.
    pub request: String,
    /// The answers to the plan's questions, in their order.
    pub answers: Vec<AnswerLine>,
    /// Its keys, the latest first.
    pub keys: Vec<KeyLine>,
    /// The key that was made with it, this once.
    pub key: Option<IssuedKey>,
}

/// The answer to a question of a plan.
#[derive(Serialize, JsonSchema)]
pub struct AnswerLine {
    /// The question, by its title.
    pub question: String,
    /// The answer.
    pub answer: String,
}

/// A key, without its secret.
#[derive(Serialize, JsonSchema)]
pub struct KeyLine {
    /// Its id.
    pub id: String,
    /// How it begins; empty for a public key.
    pub prefix: String,
    /// The user name that it belongs to; for a public key, the issuer of the tokens that it checks; else empty.
    pub name: String,
    /// Seconds since 1970.
    pub created: u64,
    /// Until when it is valid.
    pub expires: Option<u64>,
    /// Whether it is a trial key. Those that have ended are left out.
    pub is_trial: bool,
    /// When it was revoked.
    pub revoked: Option<u64>,
    /// The day of its last use: its start in UTC. Only the page of the application shows it.
    pub last_used: Option<u64>,
}

/// A key that was made.
#[derive(Serialize, JsonSchema)]
pub struct IssuedKey {
    /// Its id.
    pub id: String,
    /// The key itself; empty for a public key.
    pub key: String,
    /// The user name that it belongs to; for a public key, the issuer of its tokens; else empty.
    pub name: String,
}

/// A field that is there, if only as `null`.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// An application to be made or changed.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewApp {
    /// Its title.
    pub title: String,
    /// Its description.
    #[serde(default)]
    pub description: String,
    /// The team that it belongs to; `null`: you. Left out: it stays where it is, and a new one is your own.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<String>")]
    pub team: Option<Option<String>>,
    /// Its client id at authorization servers, for plans with `oauth2`: no other application may have it. Left out: it stays.
    #[serde(default)]
    pub client_id: Option<String>,
    /// Its certificates in PEM, each by itself, for plans with `mtls`: no other application may have them. Left out: they stay.
    #[serde(default)]
    pub certificates: Option<Vec<String>>,
}

/// A subscription to be made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSubscription {
    /// The publication, as `API/VERSION/ENVIRONMENT`.
    pub publication: String,
    /// The plan.
    pub plan: String,
    /// The revision of the plan's conditions that is agreed to.
    #[serde(default)]
    pub conditions_revision: u32,
    /// A message for the approver.
    #[serde(default)]
    pub request: String,
    /// Answers to the plan's questions, by their names.
    #[serde(default)]
    pub answers: Map<String, Value>,
}

/// The state of a subscription.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewState {
    /// `stopped`, `accepted` (to start it again) or `closed`.
    pub state: String,
}

/// A key to be made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// The key that it replaces.
    #[serde(default)]
    pub replaces: Option<String>,
    /// For how many seconds the old one stays valid; left out: the plan's setting.
    #[serde(default)]
    pub overlap: Option<u64>,
    /// The public key to check tokens with, for a plan with `jwt`.
    #[serde(default)]
    pub jwt: Option<TokenKey>,
}

/// Subscriptions that a trial key can be made of.
#[derive(Serialize, JsonSchema)]
pub struct TrialSubscriptions {
    /// By the titles of their applications.
    pub items: Vec<TrialSubscription>,
}

/// A subscription that a trial key can be made of.
#[derive(Serialize, JsonSchema)]
pub struct TrialSubscription {
    /// The application.
    pub app: String,
    /// Its title.
    pub app_title: String,
    /// The subscription.
    pub subscription: String,
    /// The plan's title.
    pub plan_title: String,
}

/// A trial key.
#[derive(Serialize, JsonSchema)]
pub struct TrialKey {
    /// Its id.
    pub id: String,
    /// The key itself.
    pub key: String,
    /// Until when it is valid, in seconds since 1970.
    pub expires: u64,
}
