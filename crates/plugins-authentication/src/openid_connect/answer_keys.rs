//! By what the provider's answers about opaque tokens are kept. It asks nothing.

use super::config::{Config, ProviderAnswer};
use crate::shared_fetch::KeyParts;

/// What the keys of answers begin with: all that decides, besides the token, what the provider says about it.
pub(super) struct AnswerKeys {
    pub(super) introspection: KeyParts,
    pub(super) userinfo: KeyParts,
}

impl AnswerKeys {
    /// Those of an instance, whose other keys begin with `client`.
    pub(super) fn new(client: &KeyParts, config: &Config) -> Self {
        let of = |endpoint: &str, answer: ProviderAnswer| {
            let mut key = client.clone();
            key.add(endpoint.as_bytes());
            key.add(&[u8::from(config.uncached.contains(&answer))]);
            key.add(&config.introspection_seconds.to_be_bytes());
            key
        };
        let mut introspection = of("introspection", ProviderAnswer::Introspection);
        // Answers may depend on who asks, and how.
        introspection.add(config.introspection_hint.as_bytes());
        introspection.add(format!("{:?}", config.introspection_auth).as_bytes());
        for name in &config.introspection_headers {
            introspection.add(name.as_bytes());
        }
        for part in [
            &config.introspection_endpoint,
            &config.introspection_authorization,
        ] {
            introspection.add_if_there(part.as_deref().map(str::as_bytes));
        }
        Self {
            introspection,
            userinfo: of("userinfo", ProviderAnswer::Userinfo),
        }
    }
}
