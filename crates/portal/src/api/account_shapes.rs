//! What the calls about accounts take and answer, as types: the OpenAPI document is made of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who is signed in.
#[derive(Serialize, JsonSchema)]
pub struct ProfileResponse {
    /// The developer's id; `null`: somebody who is not signed in.
    pub id: Option<String>,
    /// The mail address.
    pub mail: String,
    /// The name.
    pub name: String,
    /// Whether there is a password: who signs in through an identity provider needs none.
    pub has_password: bool,
}

/// A sentence for people.
#[derive(Serialize, JsonSchema)]
pub struct MessageResponse {
    /// The sentence.
    pub message: String,
}

/// Somebody who signs up.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDeveloper {
    /// The mail address.
    pub mail: String,
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
    /// The secret of an invitation's link.
    #[serde(default)]
    pub invitation: Option<String>,
}

/// A link of a mail.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsedLink {
    /// The secret in it.
    pub token: String,
}

/// What somebody signs in with.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// The mail address.
    pub mail: String,
    /// The password.
    pub password: String,
}

/// A mail address.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Address {
    /// The mail address.
    pub mail: String,
}

/// A new password by a link.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPassword {
    /// The secret of the link.
    pub token: String,
    /// The new password.
    pub password: String,
}

/// What changes of an account.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountChange {
    /// The name.
    #[serde(default)]
    pub name: Option<String>,
    /// The password as it was, to change it.
    #[serde(default)]
    pub old_password: Option<String>,
    /// The new password.
    #[serde(default)]
    pub new_password: Option<String>,
}

/// Sessions.
#[derive(Serialize, JsonSchema)]
pub struct SessionList {
    /// The sessions, the latest last.
    pub items: Vec<SessionLine>,
}

/// A session.
#[derive(Serialize, JsonSchema)]
pub struct SessionLine {
    /// By what it is ended.
    pub id: String,
    /// Seconds since 1970.
    pub created: u64,
    /// From which address.
    pub address: String,
    /// With which browser.
    pub agent: String,
    /// Whether it is the one that asks.
    pub is_current: bool,
}
