//! Access of callers: applications, subscriptions, credentials.

use super::{Labels, Plan, PlanSecurity, is_default};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How many keys an application has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeyMode {
    /// One for each subscription.
    #[default]
    PerSubscription,
    /// One for all.
    Shared,
}

/// A program that calls APIs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Application {
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
    /// Its owner.
    #[serde(skip_serializing_if = "is_default")]
    pub owner: String,
    /// Addresses that get a mail about each change of its subscriptions.
    #[serde(skip_serializing_if = "is_default")]
    pub mails: Vec<String>,
    /// Its client id at authorization servers: plans with `oauth2` know it by that.
    #[serde(skip_serializing_if = "is_default")]
    pub client_id: String,
    /// Its certificates in PEM: plans with `mtls` know it by them.
    #[serde(skip_serializing_if = "is_default")]
    pub certificates: Vec<String>,
    /// How many keys it has. Set once.
    pub key_mode: KeyMode,
    /// It takes no new subscriptions.
    #[serde(skip_serializing_if = "is_default")]
    pub archived: bool,
}

/// How far a subscription's life has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SubscriptionState {
    /// It waits for approval.
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
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// Since when it has this plan, if it was moved to it, in seconds since 1970: limits count from then on.
    #[serde(skip_serializing_if = "is_default")]
    pub moved: Option<u64>,
    /// How far its life has come.
    pub state: SubscriptionState,
    /// Whether the consumer has stopped a subscription that the provider has paused: both must resume it.
    #[serde(skip_serializing_if = "is_default")]
    pub stopped: bool,
    /// Seconds since 1970; absent: immediately.
    #[serde(skip_serializing_if = "is_default")]
    pub starts: Option<u64>,
    /// Seconds since 1970; absent: never.
    #[serde(skip_serializing_if = "is_default")]
    pub ends: Option<u64>,
    /// The days before its end that the application's last notice was about.
    #[serde(skip_serializing_if = "is_default")]
    pub noticed: Option<u32>,
    /// The subscriber's message.
    #[serde(skip_serializing_if = "is_default")]
    pub request: String,
    /// The subscriber's answers to the plan's questions.
    #[serde(skip_serializing_if = "is_default")]
    pub answers: Map<String, Value>,
    /// Why it is in its state.
    #[serde(skip_serializing_if = "is_default")]
    pub reason: String,
    /// The user who decided.
    #[serde(skip_serializing_if = "is_default")]
    pub processed_by: String,
    /// The revision of the plan's conditions that the subscriber has agreed to.
    #[serde(skip_serializing_if = "is_default")]
    pub conditions_revision: u32,
    /// Seconds since 1970.
    pub created: u64,
}

impl Subscription {
    /// The target to render when it changes: its publication, or its product.
    pub fn target(&self) -> String {
        match self.product.as_str() {
            "" => self.publication.clone(),
            product => format!("{}{product}", super::PRODUCTS),
        }
    }
}

/// The kind of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CredentialKind {
    /// An API key, of which only the hash is kept.
    #[default]
    Key,
    /// The public key of a caller who signs tokens.
    Jwt,
    /// A user name with a password, of which only the hash is kept.
    Basic,
    /// A name with a secret that calls are signed with. It has to be kept, in a store that is sealed.
    Hmac,
    /// The application's client at an authorization server.
    Oauth2,
    /// A certificate of the application.
    Mtls,
}

/// A public key to check a subscriber's tokens with. It is not secret.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TokenKey {
    /// The `iss` of tokens; if it is left out, the credential's id.
    #[serde(skip_serializing_if = "is_default")]
    pub issuer: String,
    /// The algorithm, such as `RS256`, `ES256` or `EdDSA`; none with a shared secret.
    pub algorithm: String,
    /// The public key in PEM.
    pub public_key: String,
}

/// A credential of a subscription. A key or a password itself is nowhere.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Credential {
    /// Its name; made by the gateway's API.
    pub id: String,
    /// The subscription.
    pub subscription: String,
    /// Its kind.
    pub kind: CredentialKind,
    /// Its name in calls: a user name, a client id, or the SHA-256 of a certificate.
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    /// The first characters of the key, to recognise it.
    pub prefix: String,
    /// SHA-256 of the key or the password, in hexadecimal digits; empty for one that has no key of its own.
    pub hash: String,
    /// The secret that signs calls.
    #[serde(skip_serializing_if = "is_default")]
    pub secret: String,
    /// The public key, for tokens.
    #[serde(skip_serializing_if = "is_default")]
    pub jwt: Option<TokenKey>,
    /// Seconds since 1970; absent: never.
    #[serde(skip_serializing_if = "is_default")]
    pub expires: Option<u64>,
    /// When it was revoked, in seconds since 1970.
    #[serde(skip_serializing_if = "is_default")]
    pub revoked: Option<u64>,
    /// Whether it is a trial key, which expires soon.
    #[serde(skip_serializing_if = "is_default")]
    pub trial: bool,
    /// The credential that it takes the place of.
    #[serde(skip_serializing_if = "is_default")]
    pub replaces: Option<String>,
    /// Seconds since 1970.
    pub created: u64,
}

/// Hash and secret are left out.
impl std::fmt::Debug for Credential {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Credential")
            .field("id", &self.id)
            .field("subscription", &self.subscription)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl Credential {
    /// The credentials of an application for a subscription to a plan that knows it by its client id or its
    /// certificates. What is no certificate brings nothing.
    pub fn of_application(subscription: &Subscription, plan: &Plan, application: &Application) -> Vec<Self> {
        let (kind, names) = match plan.security {
            PlanSecurity::Oauth2 => (CredentialKind::Oauth2, vec![application.client_id.clone()]),
            PlanSecurity::Mtls => {
                let prints = application.certificates.iter();
                (
                    CredentialKind::Mtls,
                    prints.filter_map(|it| fingerprint(it)).collect(),
                )
            }
            _ => return Vec::new(),
        };
        let names = names.into_iter().filter(|it| !it.is_empty());
        let one = |name: String| Self {
            id: format!(
                "{}.{}",
                subscription.id,
                &crate::hash::of_bytes(name.as_bytes())[..8]
            ),
            subscription: subscription.id.clone(),
            kind,
            prefix: name.chars().take(8).collect(),
            name,
            created: subscription.created,
            ..Self::default()
        };
        names.map(one).collect()
    }

    /// Whether calls with it are accepted at a time.
    pub fn is_good(&self, now: u64) -> bool {
        self.revoked.is_none() && self.expires.is_none_or(|end| now < end)
    }
}

/// SHA-256 of the first certificate of a PEM text, in hexadecimal digits; `None`: it holds no certificate.
pub fn fingerprint(pem: &str) -> Option<String> {
    weir_model::x509::Certificate::of_pem(pem).map(|it| crate::hash::of_bytes(&it.der))
}
