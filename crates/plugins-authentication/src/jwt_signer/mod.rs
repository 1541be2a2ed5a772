//! `jwt-signer`: checks one or two tokens of a call, and shows the upstream tokens that the gateway has signed.
//!
//! ```yaml
//! access_token:
//!   verification_keys: {address: https://id.example.com/jwks}
//!   signing:
//!     issuer: gateway
//!     scheme: Bearer
//!     key_server: {address: https://keys.example.com/private}
//! ```
//!
//! Signed tokens are checked with the keys of their signers, and a server checks opaque ones. Upstreams then only need
//! the gateway's key. While a server does not answer, calls that need it are refused; all others go on.
//!
//! Security: the keys decide which algorithms are good; there is no `none`, and no public key is taken for a secret. What
//! callers send in the headers of the gateway's tokens never reaches the upstream, and neither do their own tokens, unless
//! `original_header` passes them on. With `verify_signature: false`, everybody can write tokens that the gateway signs again.

mod claims;
mod config;
mod filter;
mod sources;

pub use config::{ClaimRules, Config, Introspection, KeyServer, Signing, TokenRules};

/// Private JSON Web Keys for an original that makes its keys to sign with by itself: one for each algorithm that needs no secret.
/// It takes a good part of a second.
pub use crate::jose::generate as generate_keys;

use crate::consumer_names::ConsumerNames;
use crate::identity::{self, Gate};
use crate::jose::SigningKey;
use filter::{Signer, SignerFilter, Token};
use serde_json::Value;
use sources::{Caches, Explainer, KeySource};
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::{OwnedNames, is_name, is_value};
use weir_plugin::{BuildContext, Filter, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::http_request::ServerCallRules;

/// The plugin's name.
const NAME: &str = "jwt-signer";

/// The plugin `jwt-signer`.
#[derive(Default)]
pub struct JwtSigner {
    caches: Arc<Caches>,
}

impl Plugin for JwtSigner {
    fn name(&self) -> &'static str {
        "jwt-signer"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        let rules = config.http.rules();
        let tokens: Vec<Token> = given(&config)
            .map(|(field, token)| built(field, token, &rules, &mut faults))
            .collect();
        check_headers(&config, &mut faults);
        faults.check_value("realm", config.realm.as_ref());
        if config
            .realm
            .as_ref()
            .is_some_and(|realm| realm.contains(['"', '\\']))
        {
            faults.add("realm", "expected a text without \" and \\");
        }
        config.http.check(&mut faults);
        faults.done()?;
        let names_consumers = tokens.iter().any(Token::names_consumer);
        Ok(Arc::new(SignerFilter {
            gate: Gate::build(NAME, identity::Config::default(), context)?,
            consumers: names_consumers.then(|| ConsumerNames::of(context)),
            caches: Arc::clone(&self.caches),
            realm: config.realm,
            tokens,
            rules,
        }))
    }

    fn warnings(&self, config: &Value, _: &BuildContext<'_>) -> Vec<Diagnostic> {
        let Ok(config) = parse_config::<Config>(config) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for (field, token) in given(&config) {
            let path = DocPath::root().field(field);
            let mut warn = |steps: &[&str], message: &str| {
                let path = steps.iter().fold(path.clone(), |path, step| path.field(*step));
                found.push(Diagnostic::warning(path, message));
            };
            if !token.verify_signature {
                let message =
                    "everybody can write tokens that pass: check signatures, unless something before does";
                warn(&["verify_signature"], message);
            } else if token.verification_keys.is_none() && token.introspection.is_none() {
                let message = "calls with signed tokens get 500: name the document with the keys of those who sign them";
                warn(&["verification_keys"], message);
            }
            let is_open =
                |server: Option<&KeyServer>| server.is_some_and(|it| it.address.starts_with("http://"));
            if is_open(token.verification_keys.as_ref()) {
                let message = "others on the way to the server can replace the keys: use https";
                warn(&["verification_keys", "address"], message);
            }
            if is_open(token.signing.as_ref().and_then(|it| it.key_server.as_ref())) {
                let message = "others on the way to the server can read the private keys: use https";
                warn(&["signing", "key_server", "address"], message);
            }
        }
        found
    }
}

/// The tokens of a configuration, with their fields.
fn given(config: &Config) -> impl Iterator<Item = (&'static str, &TokenRules)> {
    let channel = config.channel_token.as_ref();
    [
        ("access_token", Some(&config.access_token)),
        ("channel_token", channel),
    ]
    .into_iter()
    .filter_map(|(field, token)| Some((field, token?)))
}

/// Builds the rules for a token, and reports what is wrong with them.
fn built(field: &str, rules: &TokenRules, http: &ServerCallRules, faults: &mut ConfigErrors) -> Token {
    let address = "expected an address that begins with http:// or https://";
    let mut source = |server: Option<&KeyServer>, use_as: &str, steps: &[&str]| {
        let config = server?;
        let source = KeySource::new(config, use_as, http);
        if source.is_none() {
            faults.add_at(&[&[field], steps, &["address"]].concat(), address);
        }
        if config.username.is_some() != config.password.is_some() {
            let place = [&[field], steps, &["password"]].concat();
            faults.add_at(&place, "expected a name and a password, or neither");
        }
        source
    };
    let use_as = if rules.allow_symmetric_keys {
        "any keys"
    } else {
        "public keys"
    };
    let verification = source(rules.verification_keys.as_ref(), use_as, &["verification_keys"]);
    let signer = rules.signing.as_ref().map(|signing| {
        let use_as = format!("{:?}", signing.algorithm);
        Signer {
            own: SigningKey::first(signing.algorithm, &signing.keys).map(Arc::new),
            source: source(signing.key_server.as_ref(), &use_as, &["signing", "key_server"]),
        }
    });
    if let (Some(signer), Some(signing)) = (&signer, &rules.signing) {
        let has_server = signing.key_server.is_some();
        if signer.own.is_none() && !(has_server && signing.keys.is_empty()) {
            let message = format!(
                "expected a private key that signs with {:?} (not encrypted; RSA keys of at least 2048 bits), or \
                 `key_server` in place of keys",
                signing.algorithm
            );
            faults.add_at(&[field, "signing", "keys"], message);
        }
        if signing
            .scheme
            .as_ref()
            .is_some_and(|word| !is_name(word.as_bytes()))
        {
            faults.add_at(&[field, "signing", "scheme"], "expected one word");
        }
    }
    let explainer = rules.introspection.as_ref().and_then(|introspection| {
        let place = |step| [field, "introspection", step];
        if introspection.timeout_ms == Some(0) {
            faults.add_at(&place("timeout_ms"), "expected at least 1 millisecond");
        }
        if introspection
            .authorization
            .as_ref()
            .is_some_and(|value| !is_value(value.as_bytes()))
        {
            faults.add_at(&place("authorization"), "expected a header value");
        }
        let explainer = Explainer::new(introspection, http);
        if explainer.is_none() {
            faults.add_at(&place("endpoint"), address);
        }
        explainer
    });
    Token {
        rules: rules.clone(),
        verification,
        explainer,
        signer,
    }
}

/// Headers must have names, and no two headers for upstreams may have the same name.
fn check_headers(config: &Config, faults: &mut ConfigErrors) {
    let mut names: Vec<&str> = Vec::new();
    for (field, token) in given(config) {
        let read = token.request_header.as_deref();
        if read.is_some_and(|name| !is_name(name.as_bytes())) {
            faults.add_at(&[field, "request_header"], "expected a header name");
        }
        let signed = token.signing.as_ref().map(|it| it.header.as_str());
        let original = token.original_header.as_deref();
        for (name, place) in [
            (signed, &[field, "signing", "header"][..]),
            (original, &[field, "original_header"]),
        ] {
            let Some(name) = name else {
                continue;
            };
            if !is_name(name.as_bytes()) {
                faults.add_at(place, "expected a header name");
            } else if OwnedNames::new(names.iter().copied()).contains(name.as_bytes()) {
                faults.add_at(place, "expected a header that no other token uses");
            }
            names.push(name);
        }
    }
}

#[cfg(test)]
mod tests;
