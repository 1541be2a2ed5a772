//! The bodies and answers of the calls about applications, as types: the OpenAPI document is made of them.

use crate::people::TeamRole;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// The team that it belongs to; `null`: it is one's own.
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
    /// Its subscriptions, the latest first.
    pub subscriptions: Vec<SubscriptionLine>,
}

/// An application, as it is downloaded.
#[derive(Serialize, JsonSchema)]
pub struct OwnApp {
    /// The application.
    pub application: AppLine,
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
    /// `pending`, `accepted`, `rejected`, `paused`, `stopped`, `closed` or `expired`.
    pub state: String,
    /// Why.
    pub reason: String,
    /// Seconds since 1970.
    pub created: u64,
    /// When it ends.
    pub ends: Option<u64>,
    /// Its keys, the latest first.
    pub keys: Vec<KeyLine>,
    /// The key that was made with it, this once.
    pub key: Option<IssuedKey>,
}

/// A key, without its secret.
#[derive(Serialize, JsonSchema)]
pub struct KeyLine {
    /// Its id.
    pub id: String,
    /// How it begins.
    pub prefix: String,
    /// Seconds since 1970.
    pub created: u64,
    /// Until when it is good.
    pub expires: Option<u64>,
    /// Whether it is a trial key. Those that have ended are left out.
    pub is_trial: bool,
    /// When it was revoked.
    pub revoked: Option<u64>,
    /// The day on which it was used last, by its beginning in UTC. Only the page of the application shows it.
    pub last_used: Option<u64>,
}

/// A key that was made.
#[derive(Serialize, JsonSchema)]
pub struct IssuedKey {
    /// Its id.
    pub id: String,
    /// The key itself.
    pub key: String,
}

/// An application to be made or changed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewApp {
    /// Its title.
    pub title: String,
    /// Its description.
    #[serde(default)]
    pub description: String,
    /// The team that it belongs to; left out: oneself.
    #[serde(default)]
    pub team: Option<String>,
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
    /// For how many seconds the old one stays good; left out: as the plan says.
    #[serde(default)]
    pub overlap: Option<u64>,
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
    /// Until when it is good, in seconds since 1970.
    pub expires: u64,
}
