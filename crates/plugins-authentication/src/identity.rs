//! Who calls, as upstreams are told: what all authentication plugins have in common.
//!
//! Upstreams trust the headers that are set here, so a client's own copies never get through: whenever a plugin has
//! looked at a call, headers about which it has nothing to say are taken out, and with them those whose names differ only
//! in `_` and `-`, as many servers take them for the same.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::{
    AuthFailure, BuildContext, ConsumerIdentity, Exchange, Identity, Outcome, Refusal, RefusalKind,
};

/// The part of an authentication plugin's configuration that is the same for all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Id of the consumer as whom calls without a good credential go on. Absent: they are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anonymous: Option<String>,
    /// Whether a call that another plugin has authenticated with a credential passes without a look. With `anonymous`
    /// on several plugins, this makes any one of them enough.
    #[serde(default)]
    pub skip_authenticated: bool,
    /// Whether calls with the method `OPTIONS` must be authenticated too. `false` lets all of them pass without an
    /// identity.
    #[serde(default = "weir_plugins_shared::yes")]
    pub on_preflight: bool,
    /// Request headers that tell the upstream who calls. Copies that a client sends are always removed.
    #[serde(default = "standard_headers")]
    pub headers: Vec<IdentityHeader>,
    /// Request header (`true`) by which the upstream knows the anonymous consumer.
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
    /// What it tells. For a caller who has no such thing the header is left out.
    pub value: IdentityValue,
}

impl IdentityHeader {
    /// A header of this name that tells this.
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

/// What a plugin does with a call once it knows whether the call carries a good credential.
pub(crate) struct Gate {
    plugin: &'static str,
    anonymous: Option<Option<Identity>>,
    skip_authenticated: bool,
    on_preflight: bool,
    headers: Vec<IdentityHeader>,
    anonymous_header: Option<String>,
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
        if !context.dialect.consumers_may_be_missing()
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
        Ok(Self {
            plugin,
            anonymous,
            skip_authenticated: config.skip_authenticated,
            on_preflight: config.on_preflight,
            headers: config.headers,
            anonymous_header: config.anonymous_header,
            unnamed: Arc::from(""),
        })
    }

    /// Whether calls without a good credential go on, as those of the anonymous consumer.
    pub(crate) fn takes_anybody(&self) -> bool {
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
        let mut identity = identity.clone();
        identity
            .credential_id
            .get_or_insert_with(|| Arc::clone(&self.unnamed));
        self.tell(exchange, &identity);
        if let Some(name) = &self.anonymous_header {
            exchange.request.headers.remove_owned(name.as_bytes());
        }
        exchange.identity = Some(identity);
        Outcome::Continue
    }

    /// The call carries a good credential of somebody who is no consumer. Who that is, is told in the header for the
    /// credential.
    pub(crate) fn accept_unknown(&self, exchange: &mut Exchange, name: &str) {
        self.clear(exchange);
        let told = |header: &&IdentityHeader| header.value == IdentityValue::CredentialId;
        if let Some(header) = self.headers.iter().find(told)
            && is_value(name.as_bytes())
        {
            exchange
                .request
                .headers
                .append(header.name.as_bytes(), name.as_bytes());
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
                self.tell(exchange, identity);
                if let Some(name) = &self.anonymous_header {
                    exchange.request.headers.set_owned(name.as_bytes(), b"true");
                }
                exchange.identity = Some(identity.clone());
                Outcome::Continue
            }
        }
    }

    fn tell(&self, exchange: &mut Exchange, identity: &Identity) {
        let headers = &mut exchange.request.headers;
        for header in &self.headers {
            headers.remove_owned(header.name.as_bytes());
            if let Some(value) = header.value.read(identity).filter(|value| !value.is_empty()) {
                headers.append(header.name.as_bytes(), value.as_bytes());
            }
        }
    }

    fn clear(&self, exchange: &mut Exchange) {
        let names = self.headers.iter().map(|header| &header.name);
        for name in names.chain(&self.anonymous_header) {
            exchange.request.headers.remove_owned(name.as_bytes());
        }
    }
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
