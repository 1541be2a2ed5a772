//! The configuration of `ldap-auth` and of its credentials, with all defaults. Faults are reported when an instance is
//! built.

use crate::consumer_names::ConsumerName;
use crate::identity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Configuration of `ldap-auth`.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The directory's name or address.
    pub host: String,
    /// Its port; absent: 389, or 636 over TLS from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Whether the directory is reached over TLS, and when TLS begins.
    #[serde(default)]
    pub tls: DirectoryTls,
    /// Whether the directory's certificate is verified, over TLS.
    #[serde(default = "weir_plugins_shared::yes")]
    pub verify_tls: bool,
    /// The entry below which users are.
    pub base_dn: String,
    /// The attribute that has a user's name.
    pub attribute: String,
    /// How a user's entry is found before the user's password is checked; absent: its name is `ATTRIBUTE=USER,BASE_DN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// How users' groups are read from the directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Groups>,
    /// The schemes before the credentials in `Authorization` and `Proxy-Authorization`.
    #[serde(default = "standard_schemes")]
    pub schemes: Vec<String>,
    /// Whether `Proxy-Authorization` is read, before `Authorization`.
    #[serde(default = "weir_plugins_shared::yes")]
    pub proxy_authorization: bool,
    /// Whether the credentials are removed from the request before it is forwarded.
    #[serde(default)]
    pub strip: bool,
    /// How long an answer of the directory is used, in seconds; 0: it is asked with each call.
    #[serde(default = "one_minute")]
    pub cache_seconds: u64,
    /// The longest that the directory may take, in milliseconds.
    #[serde(default = "ten_seconds")]
    pub timeout_ms: u64,
    /// Idle connections to the directory that each worker keeps; 0: none.
    #[serde(default = "some_connections")]
    pub pool_size: u32,
    /// How long they are kept, in milliseconds.
    #[serde(default = "one_minute_ms")]
    pub pool_idle_timeout_ms: u64,
    /// Whether a user must be a consumer: one with a credential that names the user's entry.
    #[serde(default)]
    pub consumer_required: bool,
    /// A user is also the consumer of this name, by one of these kinds of names, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumer_by: Vec<ConsumerName>,
    /// Headers that callers may not send.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cleared_headers: Vec<String>,
    /// The message of refusals; absent: the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// `WWW-Authenticate` of refusals; `null`: none.
    #[serde(default = "standard_challenge")]
    pub challenge: Option<String>,
    /// The headers that name the caller to upstreams, and the anonymous consumer.
    #[serde(default)]
    pub identity: identity::Config,
}

/// Passwords are left out.
impl std::fmt::Debug for Config {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Config")
            .field("host", &self.host)
            .field("base_dn", &self.base_dn)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// The defaults of all options, for users below an entry of a directory.
    pub fn new(host: String, base_dn: String, attribute: String) -> Self {
        Self {
            host,
            port: None,
            tls: DirectoryTls::default(),
            verify_tls: true,
            base_dn,
            attribute,
            search: None,
            groups: None,
            schemes: standard_schemes(),
            proxy_authorization: true,
            strip: false,
            cache_seconds: one_minute(),
            timeout_ms: ten_seconds(),
            pool_size: some_connections(),
            pool_idle_timeout_ms: one_minute_ms(),
            consumer_required: false,
            consumer_by: Vec::new(),
            cleared_headers: Vec::new(),
            message: None,
            challenge: standard_challenge(),
            identity: identity::Config::default(),
        }
    }
}

/// When TLS begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DirectoryTls {
    /// Never: passwords can be read on the way.
    #[default]
    None,
    /// With the connection (`ldaps`).
    Ldaps,
    /// Before the first password (`StartTLS`).
    StartTls,
}

/// A search for a user's entry.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The entry as which the gateway searches; absent: anonymously.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind_dn: Option<String>,
    /// Its password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The most entries that the directory is to send. Two are enough to see that a name is not unique.
    #[serde(default = "two")]
    #[schemars(range(min = 2))]
    pub size_limit: u32,
    /// The longest that the directory is to search, in seconds; 0: as long as it wants.
    #[serde(default = "five")]
    pub time_limit_seconds: u32,
}

impl std::fmt::Debug for Search {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Search")
            .field("bind_dn", &self.bind_dn)
            .finish_non_exhaustive()
    }
}

/// The groups of users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Groups {
    /// The attribute of a user's entry that names the entries of its groups.
    #[serde(default = "member_of")]
    pub attribute: String,
    /// The entry below which groups are, others do not count; absent: that of users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_dn: Option<String>,
    /// The attribute with a group's name, with which the name of its entry begins; absent: that of users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_attribute: Option<String>,
    /// Callers in none of these groups are refused. If an entry has several names separated by blanks, all of them are
    /// needed. Empty: no group is needed.
    #[serde(default)]
    pub required: Vec<String>,
    /// The request header with the groups, for the upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
}

/// A credential of `ldap-auth`: the entry of a consumer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// The name of the consumer's entry in the directory.
    #[schemars(length(min = 1))]
    pub user_dn: String,
}

fn standard_schemes() -> Vec<String> {
    ["ldap", "basic"].map(str::to_owned).to_vec()
}

fn one_minute() -> u64 {
    60
}

fn ten_seconds() -> u64 {
    10_000
}

fn some_connections() -> u32 {
    16
}

fn one_minute_ms() -> u64 {
    60_000
}

fn standard_challenge() -> Option<String> {
    Some("LDAP".into())
}

fn member_of() -> String {
    "memberOf".to_owned()
}

fn two() -> u32 {
    2
}

fn five() -> u32 {
    5
}
