//! The caller's identity as upstreams see it, shared by all authentication plugins.
//!
//! Upstreams trust the headers that are set here, so a client's own copies never get through. After a plugin has
//! checked a call, it removes the headers that it does not set, and also those whose names differ only in `_` and `-`,
//! because many servers treat these as the same. The same holds for the caller's groups: only groups that a plugin of
//! this call has found reach the upstream.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::{FieldName, OwnedNames, is_name, is_value};
use weir_plugin::{
    AuthFailure, BuildContext, ConsumerIdentity, Exchange, Identity, Outcome, Refusal, RefusalKind,
};

/// The part of an authentication plugin's configuration that is the same for all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Id of the consumer under which calls without a valid credential continue. Absent: such calls are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anonymous: Option<String>,
    /// Whether to skip the check if another plugin has already authenticated the call with a credential. Together with
    /// `anonymous` on several plugins, any one of them is then enough.
    #[serde(default)]
    pub skip_authenticated: bool,
    /// Whether calls with the method `OPTIONS` must be authenticated too. `false` lets all of them through without an
    /// identity.
    #[serde(default = "weir_plugins_shared::yes")]
    pub on_preflight: bool,
    /// Request headers that identify the caller to the upstream. Copies that a client sends are always removed.
    #[serde(default = "standard_headers")]
    pub headers: Vec<IdentityHeader>,
    /// Request header (`true`) that marks the anonymous consumer for the upstream.
    #[serde(default = "standard_anonymous_header")]
    pub anonymous_header: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            anonymous: None,
            skip_authenticated: false,
            on_preflight: true,
            headers: standard_headers(),
            anonymous_header: standard_anonymous_header(),
        }
    }
}

/// One request header about the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdentityHeader {
    /// The header's name.
    pub name: String,
    /// The header's value. If the caller has no such value, the header is left out.
    pub value: IdentityValue,
}

impl IdentityHeader {
    /// A header with this name and value.
    pub fn new(name: impl Into<String>, value: IdentityValue) -> Self {
        Self {
            name: name.into(),
            value,
        }
    }
}

/// A fact about the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdentityValue {
    /// The consumer's id.
    ConsumerId,
    /// The consumer's name.
    ConsumerUsername,
    /// The consumer's name in another system.
    ConsumerCustomId,
    /// The consumer's group.
    ConsumerGroup,
    /// A label of the consumer.
    ConsumerLabel(String),
    /// The credential's id; absent for the anonymous consumer.
    CredentialId,
    /// The same text for every caller.
    Text(String),
}

fn standard_headers() -> Vec<IdentityHeader> {
    vec![
        IdentityHeader::new("X-Consumer-ID", IdentityValue::ConsumerId),
        IdentityHeader::new("X-Consumer-Custom-ID", IdentityValue::ConsumerCustomId),
        IdentityHeader::new("X-Consumer-Username", IdentityValue::ConsumerUsername),
        IdentityHeader::new("X-Credential-Identifier", IdentityValue::CredentialId),
    ]
}

fn standard_anonymous_header() -> Option<String> {
    Some("X-Anonymous-Consumer".into())
}

/// The request header in which upstreams expect the caller's groups.
pub const GROUPS_HEADER: &str = "X-Authenticated-Groups";

/// What a plugin does with a call once it knows whether the call carries a good credential.
pub(crate) struct Gate {
    plugin: &'static str,
    anonymous: Option<Option<Identity>>,
    skip_authenticated: bool,
    on_preflight: bool,
    /// The headers for upstreams, with checked names.
    headers: Vec<(FieldName, IdentityValue)>,
    anonymous_header: Option<FieldName>,
    /// The header that names a credential.
    credential_header: Option<FieldName>,
    /// The names of all these headers, and of those that the next one of the list replaces.
    owned: OwnedNames,
    /// These, and the caller's groups.
    owned_with_groups: OwnedNames,
    /// Stands for the id of credentials without one, so that their callers do not look anonymous.
    unnamed: Arc<str>,
}

impl Gate {
    /// Makes the configuration ready.
    ///
    /// # Errors
    /// Names and texts that cannot stand in a header.
    pub(crate) fn build(
        plugin: &'static str,
        config: Config,
        context: &BuildContext<'_>,
    ) -> Result<Self, Vec<Diagnostic>> {
        let path = DocPath::root().field("identity");
        let mut faults = Vec::new();
        for (index, header) in config.headers.iter().enumerate() {
            let path = path.field("headers").index(index);
            if !is_name(header.name.as_bytes()) {
                faults.push(Diagnostic::error(path.field("name"), "expected a header name"));
            }
            if matches!(&header.value, IdentityValue::Text(text) if !is_value(text.as_bytes())) {
                faults.push(Diagnostic::error(path.field("value"), "expected a header value"));
            }
        }
        if config
            .anonymous_header
            .as_ref()
            .is_some_and(|name| !is_name(name.as_bytes()))
        {
            faults.push(Diagnostic::error(
                path.field("anonymous_header"),
                "expected a header name",
            ));
        }
        if !context.consumers_may_be_missing
            && let Some(id) = &config.anonymous
            && context.consumer(id).is_none()
        {
            let message = format!("no consumer has the id '{id}'");
            faults.push(Diagnostic::error(path.field("anonymous"), message));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let anonymous = config.anonymous.map(|id| {
            context.consumer(&id).map(|consumer| Identity {
                consumer,
                credential_id: None,
            })
        });
        let names = || {
            let headers = config.headers.iter().map(|header| header.name.as_str());
            headers.chain(config.anonymous_header.as_deref())
        };
        Ok(Self {
            plugin,
            anonymous,
            skip_authenticated: config.skip_authenticated,
            on_preflight: config.on_preflight,
            credential_header: credential_header(&config.headers),
            owned: OwnedNames::new(names()),
            owned_with_groups: OwnedNames::new(names().chain([GROUPS_HEADER])),
            headers: lasting(config.headers, config.anonymous_header.as_deref()),
            anonymous_header: config.anonymous_header.as_deref().and_then(FieldName::new),
            unnamed: Arc::from(""),
        })
    }

    /// Whether calls without a good credential go on, as those of the anonymous consumer.
    pub(crate) fn allows_anonymous(&self) -> bool {
        matches!(self.anonymous, Some(Some(_)))
    }

    /// Whether the call passes without a look at its credentials.
    pub(crate) fn skips(&self, exchange: &mut Exchange) -> bool {
        let identity = exchange.identity.as_ref();
        if self.skip_authenticated && identity.is_some_and(|identity| identity.credential_id.is_some()) {
            return true;
        }
        let skips = !self.on_preflight && exchange.request.method == b"OPTIONS";
        if skips && exchange.identity.is_none() {
            self.clear(exchange);
        }
        skips
    }

    /// The call carries a good credential of this caller.
    pub(crate) fn accept(&self, exchange: &mut Exchange, identity: &Identity) -> Outcome {
        self.set_headers(exchange, identity);
        let uses = &identity.consumer.uses;
        if let Some(credential) = identity.credential_id.as_ref().filter(|_| !uses.is_empty()) {
            uses.note(credential, exchange.unix_ms());
        }
        exchange.identify(identity, &self.unnamed);
        Outcome::Continue
    }

    /// Accepts a valid credential whose owner is not a consumer. The credential header carries the owner's name.
    pub(crate) fn accept_unknown(&self, exchange: &mut Exchange, name: &str) {
        self.remove_all(exchange);
        if let Some(header) = &self.credential_header
            && is_value(name.as_bytes())
        {
            exchange.request.headers.append_named(header, name.as_bytes());
            if let Ok(header) = str::from_utf8(header.as_bytes()) {
                exchange.note_user_header(header);
            }
        }
    }

    /// The call carries no good credential.
    pub(crate) fn reject(
        &self,
        exchange: &mut Exchange,
        failure: AuthFailure,
        challenge: Option<&String>,
    ) -> Outcome {
        match &self.anonymous {
            None => {
                let mut refusal = Refusal::new(RefusalKind::Unauthenticated {
                    plugin: self.plugin,
                    failure,
                });
                refusal.challenge = challenge.cloned();
                Outcome::Refuse(Box::new(refusal))
            }
            Some(None) => {
                let mut refusal = Refusal::new(RefusalKind::AnonymousConsumerMissing);
                refusal.challenge = challenge.cloned();
                Outcome::Refuse(Box::new(refusal))
            }
            Some(Some(identity)) => {
                self.set_headers(exchange, identity);
                if let Some(name) = &self.anonymous_header {
                    exchange.request.headers.append_named(name, b"true");
                }
                exchange.identity = Some(identity.clone());
                Outcome::Continue
            }
        }
    }

    /// Sets the headers that identify the caller, instead of what the client sent.
    fn set_headers(&self, exchange: &mut Exchange, identity: &Identity) {
        self.remove_all(exchange);
        for (name, value) in &self.headers {
            if let Some(value) = value.read(identity).map(str::as_bytes)
                && !value.is_empty()
                && is_value(value)
            {
                exchange.request.headers.append_named(name, value);
            }
        }
    }

    /// Whether this header tells the upstream who calls.
    pub(crate) fn owns(&self, header: &str) -> bool {
        self.owned.contains(header.as_bytes())
    }

    /// Takes out what the client has said about who calls. As long as no consumer is known, the header of a caller without
    /// one stays that an earlier plugin has set.
    pub(crate) fn clear(&self, exchange: &mut Exchange) {
        let is_noted = |name: &FieldName| {
            let name = str::from_utf8(name.as_bytes());
            exchange.identity.is_none() && name.is_ok_and(|name| exchange.is_user_header(name))
        };
        let noted = self.headers.iter().map(|(name, _)| name);
        let noted = noted.filter(|name| is_noted(name));
        let kept: Vec<_> = noted
            .filter_map(|name| Some((name, exchange.request.headers.get(name.as_bytes())?.to_vec())))
            .collect();
        self.remove_all(exchange);
        for (name, value) in kept {
            exchange.request.headers.append_named(name, &value);
        }
    }

    /// Removes all headers that tell who calls: other ones take their place.
    fn remove_all(&self, exchange: &mut Exchange) {
        // A plugin that was here before may have found groups.
        let owned = match exchange.is_user_header(GROUPS_HEADER) {
            true => &self.owned,
            false => &self.owned_with_groups,
        };
        exchange.request.headers.remove_all_owned(owned);
    }
}

/// The headers that are left of a list: one whose name may be taken for that of a later one, or for that of the
/// anonymous consumer's, is replaced by it.
fn lasting(headers: Vec<IdentityHeader>, anonymous: Option<&str>) -> Vec<(FieldName, IdentityValue)> {
    let mut lasting = Vec::new();
    let mut later: Vec<String> = anonymous.map(str::to_owned).into_iter().collect();
    for header in headers.into_iter().rev() {
        let is_replaced = OwnedNames::new(later.iter().map(String::as_str)).contains(header.name.as_bytes());
        if !is_replaced && let Some(name) = FieldName::new(&header.name) {
            lasting.push((name, header.value));
        }
        later.push(header.name);
    }
    lasting.reverse();
    lasting
}

fn credential_header(headers: &[IdentityHeader]) -> Option<FieldName> {
    let is_credential_id = |header: &&IdentityHeader| header.value == IdentityValue::CredentialId;
    FieldName::new(&headers.iter().find(is_credential_id)?.name)
}

impl IdentityValue {
    pub(crate) fn read<'i>(&'i self, identity: &'i Identity) -> Option<&'i str> {
        let consumer: &ConsumerIdentity = &identity.consumer;
        match self {
            Self::ConsumerId => Some(&consumer.id),
            Self::ConsumerUsername => consumer.username.as_deref(),
            Self::ConsumerCustomId => consumer.custom_id.as_deref(),
            Self::ConsumerGroup => consumer.group.as_deref(),
            Self::ConsumerLabel(name) => {
                let label = consumer.labels.iter().find(|(label, _)| label == name);
                label.map(|(_, value)| value.as_str())
            }
            Self::CredentialId => identity.credential_id.as_deref(),
            Self::Text(text) => Some(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugin::Plugin;
    use weir_plugins_testkit::{build, exchange, lines, prepare, word};

    /// The defect: plugins that find no groups let the client's own through, also with the anonymous consumer.
    #[test]
    fn groups_that_no_plugin_has_found_are_removed() {
        let identity = json!({"anonymous": "guest"});
        let directory = json!({"host": "a", "base_dn": "b", "attribute": "c", "identity": identity});
        let key = json!({"identity": identity});
        for (plugin, config) in [
            (&crate::ldap_auth::LdapAuth::default() as &dyn Plugin, &directory),
            (&crate::key_auth::KeyAuth, &key),
            (&crate::basic_auth::BasicAuth, &key),
        ] {
            let filter = build(plugin, config).expect("valid");
            for is_found in [false, true] {
                let mut call = exchange();
                let forged = [
                    ("x_authenticated_groups", "admins"),
                    ("X-Authenticated-Groups", "admins"),
                ];
                prepare(&mut call, "GET /", &forged);
                if is_found {
                    crate::authenticated_groups::set_header(&mut call, GROUPS_HEADER, &["users".to_owned()]);
                }
                assert_eq!(
                    word(&filter.on_request(&mut call)),
                    "continue",
                    "{}",
                    plugin.name()
                );
                let groups = lines(&call.request.headers)
                    .into_iter()
                    .filter(|line| line.to_ascii_lowercase().contains("groups"));
                let expected: &[&str] = if is_found {
                    &["X-Authenticated-Groups: users"]
                } else {
                    &[]
                };
                assert_eq!(groups.collect::<Vec<_>>(), expected, "{}", plugin.name());
            }
        }
    }

    /// The defect: a later plugin that finds no consumer took the header for the client's, and removed it.
    #[test]
    fn the_name_of_a_caller_without_a_consumer_stays() {
        let context = weir_plugin::EmptyContext::default();
        let context = context.of("one", weir_model::DialectName::NATIVE);
        let gate = || Gate::build("one", Config::default(), &context).expect("valid");
        let (first, later) = (gate(), gate());
        for (what, names, expected) in [
            ("a client's own", &[][..], &[][..]),
            ("one", &["ada"], &["X-Credential-Identifier: ada"]),
            ("a later one", &["ada", "bob"], &["X-Credential-Identifier: bob"]),
            ("one that cannot be written", &["ada", "b\nb"], &[]),
        ] {
            let mut call = exchange();
            let forged = [
                ("X-Credential-Identifier", "root"),
                ("x_credential_identifier", "root"),
                ("X-Consumer-ID", "1"),
            ];
            prepare(&mut call, "GET /", &forged);
            for name in names {
                first.accept_unknown(&mut call, name);
            }
            later.clear(&mut call);
            assert_eq!(lines(&call.request.headers), expected, "{what}");
        }
        // A consumer that is found later is the caller.
        let mut call = exchange();
        first.accept_unknown(&mut call, "ada");
        let consumer = Arc::new(ConsumerIdentity {
            id: "7".into(),
            ..ConsumerIdentity::default()
        });
        let identity = Identity {
            consumer,
            credential_id: None,
        };
        later.accept(&mut call, &identity);
        assert_eq!(lines(&call.request.headers), ["X-Consumer-ID: 7"]);
        // What a consumer's credential is called is not the name of a caller without a consumer.
        let named = Identity {
            credential_id: Some("k1".into()),
            ..identity
        };
        later.accept(&mut call, &named);
        first.clear(&mut call);
        assert_eq!(lines(&call.request.headers), [""; 0]);
    }

    #[test]
    fn identity_headers_are_replaced_by_later_ones_of_the_name() {
        for (names, anonymous, left) in [
            (&["X-A", "X-B"][..], None, &["X-A", "X-B"][..]),
            (&["X-A", "x_a", "X-B"], None, &["x_a", "X-B"]),
            (&["X-A", "X-B", "X-Nobody"], Some("x-nobody"), &["X-A", "X-B"]),
            (&["X-A", "X-A", "X-A"], Some("X-Other"), &["X-A"]),
            (&[], Some("X-A"), &[]),
        ] {
            let headers = names
                .iter()
                .map(|name| IdentityHeader::new(*name, IdentityValue::ConsumerId));
            let found = lasting(headers.collect(), anonymous);
            let found: Vec<_> = found
                .iter()
                .map(|(name, _)| String::from_utf8_lossy(name.as_bytes()).into_owned())
                .collect();
            assert_eq!(found, left, "{names:?} {anonymous:?}");
        }
    }
}
