//! `saml`: logs browsers in through a SAML 2.0 identity provider.
//!
//! ```yaml
//! issuer: https://api.example.com/saml
//! provider:
//!   login_url: https://idp.example.com/sso
//!   certificates:
//!     - ${CERTIFICATE}
//! callback: /saml/callback
//! session: {secret: 0123456789abcdef0123456789abcdef}
//! ```
//!
//! Browsers without a session are sent to the provider with a request, and come back to `callback` with a signed answer.
//!
//! Security: a response is valid once, for the browser that asked, and only if it answers that browser's request. Only
//! the signed parts are read (see `weir-saml`). Unsolicited responses are refused. All gateways of a store learn within
//! moments that a response was used and that the provider has ended a session; without a store, only the gateway that
//! received the message does.

mod config;
mod filter;
mod login;
mod logout;
#[cfg(test)]
mod tests;
mod user;

pub use config::{
    Binding, Config, ConsumerRules, HashName, LogoutRules, Provider, RequestRules, ResponseRules, Signing,
    Unauthenticated, UserHeader, UserValue,
};

use crate::consumer_names::ConsumerNames;
use crate::identity::Gate;
use crate::session_cookie::Sessions;
use crate::shared_revocations::{RevocationRecords, SharedRevocations};
use aws_lc_rs::digest;
use filter::SamlFilter;
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::is_name;
use weir_plugin::{BuildContext, Filter, Plugin, SharedRecords, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::cookie::SameSite;
use weir_plugins_shared::http_request::HttpServer;
use weir_plugins_shared::random::{Random, system_random};
use weir_saml::{DecryptionKey, Hash, Limits, SigningKey, Trust, VerifyingKey};

const NAME: &str = "saml";
/// The bytes of what is remembered of answers that were used, and of sessions that have ended.
const MARK_BYTES: usize = 16 << 20;
const URL_EXPECTED: &str = "expected an address that begins with http:// or https://";
const PLACE_EXPECTED: &str = "expected a path, or an address that begins with http:// or https://";

/// The plugin `saml`.
pub struct Saml {
    /// Answers and messages that were used, and sessions that have ended.
    marks: Arc<SharedRevocations>,
    random: Random,
}

impl Default for Saml {
    fn default() -> Self {
        Self {
            marks: SharedRevocations::new(MARK_BYTES),
            random: system_random,
        }
    }
}

impl Plugin for Saml {
    fn name(&self) -> &'static str {
        "saml"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let mut config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        check(&config, &mut faults);
        let trust = trust(&config, &mut faults);
        let (signing, decryption) = keys(&config, &mut faults);
        faults.extend(config.session.faults(&DocPath::root().field("session")));
        let gate = match Gate::build(NAME, config.identity.clone(), context) {
            Ok(gate) => Some(gate),
            Err(more) => {
                faults.extend(more);
                None
            }
        };
        faults.done()?;
        // Sessions of one provider are not those of another, whatever their secrets.
        let digest = digest::digest(
            &digest::SHA256,
            format!(
                "{}|{}|{}",
                config.issuer, config.provider.login_url, config.callback
            )
            .as_bytes(),
        );
        let digest = data_encoding::HEXLOWER.encode(digest.as_ref());
        config.session.audience.push_str(&digest);
        let consumers = config
            .consumer
            .clone()
            .map(|rules| (rules, ConsumerNames::of(context)));
        Ok(Arc::new(SamlFilter {
            callback_path: path_of(&config.callback).unwrap_or_default(),
            logout_callback_path: config
                .logout
                .as_ref()
                .and_then(|logout| path_of(logout.callback.as_ref()?)),
            limits: Limits {
                bytes: config.response.max_bytes,
                ..Limits::default()
            },
            sessions: Sessions::new(config.session.clone(), self.random),
            gate: gate.expect("invariant: its absence has been reported"),
            trust,
            signing,
            decryption,
            consumers,
            marks: Arc::clone(&self.marks),
            random: self.random,
            context: digest,
            config,
        }))
    }

    fn shared_records(&self) -> Option<Arc<dyn SharedRecords>> {
        Some(Arc::new(RevocationRecords(Arc::clone(&self.marks))))
    }
}

/// The path of a place: a path, or a whole address. `None`: it is neither.
fn path_of(place: &str) -> Option<String> {
    match place.contains("://") {
        false => Some(place.to_owned()).filter(|path| path.starts_with('/') && !path.contains(['?', '#'])),
        true => HttpServer::parse(place).map(|it| it.target.split('?').next().unwrap_or_default().to_owned()),
    }
}

fn check(config: &Config, faults: &mut ConfigErrors) {
    if config.issuer.is_empty() {
        faults.add(
            "issuer",
            "expected the name by which the provider knows this gateway",
        );
    }
    if HttpServer::parse(&config.provider.login_url).is_none() {
        faults.add_at(&["provider", "login_url"], URL_EXPECTED);
    }
    let logout_url = config.provider.logout_url.as_deref();
    if logout_url.is_some_and(|url| HttpServer::parse(url).is_none()) {
        faults.add_at(&["provider", "logout_url"], URL_EXPECTED);
    }
    let callback = path_of(&config.callback);
    if callback.is_none() {
        faults.add("callback", PLACE_EXPECTED);
    }
    if let Some(logout) = &config.logout {
        let back = logout.callback.as_deref().map(path_of);
        if back == Some(None) {
            faults.add_at(&["logout", "callback"], PLACE_EXPECTED);
        }
        if path_of(&logout.redirect).is_none() {
            faults.add_at(&["logout", "redirect"], PLACE_EXPECTED);
        }
        if !logout.path.starts_with('/') {
            faults.add_at(&["logout", "path"], "expected a path");
        }
        let back = back.flatten();
        let own = [Some(&logout.path), callback.as_ref(), back.as_ref()];
        let own: Vec<&String> = own.into_iter().flatten().collect();
        if own
            .iter()
            .enumerate()
            .any(|(index, path)| own[..index].contains(path))
        {
            faults.add(
                "logout",
                "expected three different paths: `path`, `callback`, and that of logins",
            );
        }
    }
    if config.session.cookie_same_site == SameSite::Strict {
        let message = "expected Lax, None or Default: with Strict, browsers that come back from the provider have no session";
        faults.add_at(&["session", "cookie_same_site"], message);
    }
    if !(1_024..=1 << 20).contains(&config.response.max_bytes) {
        faults.add_at(
            &["response", "max_bytes"],
            "expected a number from 1024 to 1048576",
        );
    }
    if config.response.leeway_seconds > 600 {
        faults.add_at(&["response", "leeway_seconds"], "expected at most 600");
    }
    for (index, header) in config.upstream_headers.iter().enumerate() {
        if !is_name(header.name.as_bytes()) {
            let place = DocPath::root()
                .field("upstream_headers")
                .index(index)
                .field("name");
            faults.extend(vec![Diagnostic::error(place, "expected a header name")]);
        }
    }
}

fn trust(config: &Config, faults: &mut ConfigErrors) -> Trust {
    let certificates = &config.provider.certificates;
    if certificates.len() > 8 {
        faults.add_at(
            &["provider", "certificates"],
            "expected at most eight certificates",
        );
    }
    let mut keys = Vec::new();
    for (index, text) in certificates.iter().enumerate() {
        match VerifyingKey::of_certificate(text) {
            Ok(key) => keys.push(key),
            Err(fault) => {
                let place = DocPath::root()
                    .field("provider")
                    .field("certificates")
                    .index(index);
                faults.extend(vec![Diagnostic::error(place, fault.0)]);
            }
        }
    }
    Trust {
        keys,
        sha1: config.response.allow_sha1,
    }
}

fn keys(config: &Config, faults: &mut ConfigErrors) -> (Option<SigningKey>, Option<DecryptionKey>) {
    let signing = config.request.signing.as_ref().and_then(|rules| {
        if rules.hash == HashName::Sha1 {
            faults.add_at(
                &["request", "signing", "hash"],
                "expected sha256, sha384 or sha512",
            );
        }
        let certificate = rules.certificate.as_deref();
        let made = SigningKey::new(&rules.key, certificate, hash(rules.hash), hash(rules.digest));
        made.map_err(|fault| faults.add_at(&["request", "signing"], fault.0))
            .ok()
    });
    let decryption = config.response.decryption_key.as_deref().and_then(|text| {
        let made = DecryptionKey::new(text);
        made.map_err(|fault| faults.add_at(&["response", "decryption_key"], fault.0))
            .ok()
    });
    (signing, decryption)
}

fn hash(name: HashName) -> Hash {
    match name {
        HashName::Sha1 => Hash::Sha1,
        HashName::Sha256 => Hash::Sha256,
        HashName::Sha384 => Hash::Sha384,
        HashName::Sha512 => Hash::Sha512,
    }
}
