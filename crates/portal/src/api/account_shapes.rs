//! The bodies and answers of the calls about accounts, as types: the OpenAPI document is made of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The developer who is signed in.
#[derive(Serialize, JsonSchema)]
pub struct ProfileResponse {
    /// The developer's id; `null`: the caller is not signed in.
    pub id: Option<String>,
    /// The mail address.
    pub mail: String,
    /// The name.
    pub name: String,
    /// Whether there is a password: developers who sign in through an identity provider need none.
    pub has_password: bool,
    /// Whether a code of an authenticator app is required besides the password.
    pub has_second_factor: bool,
}

/// A second factor.
#[derive(Serialize, JsonSchema)]
pub struct SecondFactorState {
    /// Whether there is one.
    pub is_on: bool,
    /// Recovery codes that were not used.
    pub recovery_codes_left: usize,
}

/// The password, for calls that require it again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordProof {
    /// The password.
    pub password: String,
}

/// The data for an authenticator app.
#[derive(Serialize, JsonSchema)]
pub struct NewSecondFactor {
    /// The secret, to type it.
    pub secret: String,
    /// The same as a link that apps open.
    pub uri: String,
    /// The link as a QR code.
    pub qr: QrCode,
}

/// A QR code, to be drawn.
#[derive(Serialize, JsonSchema)]
pub struct QrCode {
    /// Width and height, with the light margin.
    pub size: u32,
    /// Its dark parts, as the path of an SVG of that size.
    pub path: String,
}

/// The first code of an app.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FirstCode {
    /// Six digits.
    pub code: String,
}

/// Password and code, for calls that require both again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactorProof {
    /// The password.
    pub password: String,
    /// Six digits of the app, or a recovery code.
    pub code: String,
}

/// Recovery codes. Each can be used once.
#[derive(Serialize, JsonSchema)]
pub struct RecoveryCodes {
    /// The codes.
    pub codes: Vec<String>,
}

/// A sentence for people.
#[derive(Serialize, JsonSchema)]
pub struct MessageResponse {
    /// The sentence.
    pub message: String,
}

/// A developer who signs up.
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

/// A developer's sign-in.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// The mail address.
    pub mail: String,
    /// The password.
    pub password: String,
    /// Six digits of the authenticator app, or a recovery code, if the account has a second factor.
    #[serde(default)]
    pub code: Option<String>,
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

/// The changes of an account.
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
    /// Whether a new password ends the personal tokens that were made before; left out: it does.
    #[serde(default = "yes")]
    pub end_tokens: bool,
}

fn yes() -> bool {
    true
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
    /// Its id, to end it.
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

/// A personal token to be made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Its purpose.
    pub name: String,
    /// For how many days it is valid, 1 to 366.
    pub days: u16,
    /// The password. Without one, the last login through an identity provider must be at most ten minutes old.
    #[serde(default)]
    pub password: Option<String>,
}

/// Personal tokens.
#[derive(Serialize, JsonSchema)]
pub struct TokenList {
    /// The tokens, the latest first.
    pub items: Vec<TokenLine>,
}

/// A personal token.
#[derive(Serialize, JsonSchema)]
pub struct TokenLine {
    /// Its id, to revoke it.
    pub id: String,
    /// Its purpose.
    pub name: String,
    /// Seconds since 1970.
    pub created: u64,
    /// Until when it is valid, in seconds since 1970.
    pub ends: u64,
    /// When it was last used, to the hour, in seconds since 1970; `null`: never.
    pub last_used: Option<u64>,
    /// The token itself, right after it was made; `null` from then on.
    pub token: Option<String>,
}
