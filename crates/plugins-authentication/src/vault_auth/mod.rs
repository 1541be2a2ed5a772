//! `vault-auth`: recognises consumers by two tokens, which a vault knows.
//!
//! ```yaml
//! vault: {address: https://vault.example.com:8200, mount: callers, token: TEXT}
//! ```
//!
//! The vault speaks as HashiCorp's does. Its key/value engine holds a secret for each caller: its name is the access token, and
//! its fields are `access_token`, `secret_token`, `consumer: {id: ID}` and, if wanted, `ttl` in seconds. One request gets it for
//! all calls, until that time is over. While the vault does not answer, calls whose tokens are not known are refused.
//!
//! Security: secrets are kept as hashes and compared in constant time. An access token can name nothing outside of the
//! engine's folder. What the vault does not know, it is not asked about again for some seconds.

mod writing;
pub use writing::{HEADERS, last_version};

use crate::consumer_names::{ConsumerName, ConsumerNames};
use crate::http_rules::HttpRules;
use crate::identity::{self, Gate};
pub use crate::key_locations::KeyLocation;
use crate::key_locations::{Lookup, MultipleKeys, form_of_body};
use crate::query::remove_argument_and_encode;
use crate::shared_fetch::{FetchRequest, Step, hashed, require_value, trust, unshared};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{self, SHA256, SHA256_OUTPUT_LEN};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_flow::expiring::{ExpiringMap, Lifetime};
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::{
    AuthFailure, BuildContext, Exchange, Filter, Identity, Outcome, Phases, Plugin, Refusal, RefusalKind,
    Request, SubrequestResponse, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::http_request::{HttpRequest, HttpServer, ServerCallRules};

/// The plugin's name.
const NAME: &str = "vault-auth";
/// The most bytes of what is known of tokens.
const CACHE_BYTES: usize = 16 << 20;
/// How long the vault is not asked about a token after a failure.
const RETRY_MS: u64 = 1_000;
/// How long a token that the vault does not know is not looked up again.
const UNKNOWN_MS: u64 = 5_000;
/// The longest that a secret says it may be kept, in seconds.
const LONGEST_S: f64 = 86_400.0;
/// Longer access tokens are not looked up.
const MAX_TOKEN: usize = 512;

/// Configuration of `vault-auth`.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The vault. Absent: every call is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vault: Option<VaultServer>,
    /// The locations of the access token. The first one that holds a token counts.
    #[serde(default = "access_places")]
    pub access_token: Vec<KeyLocation>,
    /// The locations of the secret token. The first one that holds a token counts.
    #[serde(default = "secret_places")]
    pub secret_token: Vec<KeyLocation>,
    /// Whether both tokens are removed from the request before it is forwarded.
    #[serde(default)]
    pub strip: bool,
    /// The most bytes of a body that are read to look for tokens, for places in bodies.
    #[serde(default = "standard_body_limit")]
    pub max_body_bytes: usize,
    /// How long what the vault says is used if it names no `ttl`, in seconds; 0: each call asks the vault, and `ttl` does not count.
    #[serde(default = "one_minute")]
    pub cache_seconds: u64,
    /// The headers that name the caller to upstreams, and the anonymous consumer.
    #[serde(default)]
    pub identity: identity::Config,
    /// The HTTP settings for calls to the vault.
    #[serde(default)]
    pub http: HttpRules,
}

/// A vault, and a key/value engine in it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VaultServer {
    /// Its address, without a path.
    pub address: String,
    /// The path of the engine.
    pub mount: String,
    /// The engine's version.
    #[serde(default)]
    pub version: EngineVersion,
    /// The token that lets the gateway read.
    pub token: String,
}

/// What proves to the vault who asks is left out.
impl std::fmt::Debug for VaultServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("VaultServer")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// The version of a key/value engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EngineVersion {
    /// The first one, which keeps one version of a secret.
    #[default]
    V1,
    /// The second one.
    V2,
}

impl Config {
    /// All else as it usually is.
    pub fn new(vault: Option<VaultServer>) -> Self {
        Self {
            vault,
            access_token: access_places(),
            secret_token: secret_places(),
            strip: false,
            max_body_bytes: standard_body_limit(),
            cache_seconds: one_minute(),
            identity: identity::Config::default(),
            http: HttpRules::default(),
        }
    }
}

fn access_places() -> Vec<KeyLocation> {
    vec![KeyLocation::Header("access-token".into())]
}

fn secret_places() -> Vec<KeyLocation> {
    vec![KeyLocation::Header("secret-token".into())]
}

fn standard_body_limit() -> usize {
    1 << 20
}

fn one_minute() -> u64 {
    60
}

/// What the vault knows of an access token.
struct Pair {
    /// The SHA-256 of the secret token.
    secret: [u8; SHA256_OUTPUT_LEN],
    consumer: String,
}

/// By access tokens; `None`: the vault does not know it.
type Pairs = ExpiringMap<Option<Arc<Pair>>>;

/// The plugin `vault-auth`.
pub struct VaultAuth(Arc<Pairs>);

impl Default for VaultAuth {
    fn default() -> Self {
        Self(ExpiringMap::new(CACHE_BYTES))
    }
}

impl Plugin for VaultAuth {
    fn name(&self) -> &'static str {
        "vault-auth"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        let vault = config.vault.as_ref().and_then(|vault| built(vault, &mut faults));
        for (field, places) in [
            ("access_token", &config.access_token),
            ("secret_token", &config.secret_token),
        ] {
            if places.is_empty() {
                faults.add(field, "expected at least one place");
            }
            let is_bad =
                |place: &KeyLocation| matches!(place, KeyLocation::Header(name) if !is_name(name.as_bytes()));
            if places.iter().any(is_bad) {
                faults.add(field, "expected names of headers");
            }
        }
        config.http.check(&mut faults);
        faults.done()?;
        Ok(Arc::new(PairFilter {
            gate: Gate::build(NAME, config.identity.clone(), context)?,
            consumers: ConsumerNames::of(context),
            pairs: Arc::clone(&self.0),
            rules: config.http.rules(),
            vault,
            config,
        }))
    }

    fn warnings(&self, config: &Value, _: &BuildContext<'_>) -> Vec<Diagnostic> {
        let Ok(config) = parse_config::<Config>(config) else {
            return Vec::new();
        };
        let Some(vault) = config.vault else {
            let message = "every call is refused: name the vault that knows the tokens";
            return vec![Diagnostic::warning(DocPath::root().field("vault"), message)];
        };
        let is_open = vault.address.starts_with("http://") || !config.http.verify_tls;
        let message = "others on the way to the vault can read its token and the callers' secrets, and pretend to be it: use \
                       https, and check certificates";
        let path = DocPath::root().field("vault").field("address");
        is_open
            .then(|| Diagnostic::warning(path, message))
            .into_iter()
            .collect()
    }
}

/// Builds a vault, and reports what is wrong with its configuration.
fn built(vault: &VaultServer, faults: &mut ConfigErrors) -> Option<Vault> {
    let server = HttpServer::parse(&vault.address).filter(|it| it.target == "/");
    if server.is_none() {
        faults.add_at(
            &["vault", "address"],
            "expected an address that begins with http:// or https://, without a path",
        );
    }
    let mount = vault.mount.trim_matches('/');
    if mount.is_empty() || !mount.split('/').all(is_segment) {
        faults.add_at(&["vault", "mount"], "expected the path of a key/value engine");
    }
    if vault.token.is_empty() || !is_value(vault.token.as_bytes()) {
        faults.add_at(&["vault", "token"], "expected a token that lets the gateway read");
    }
    Some(Vault {
        server: server?,
        folder: match vault.version {
            EngineVersion::V1 => format!("/v1/{mount}/"),
            EngineVersion::V2 => format!("/v1/{mount}/data/"),
        },
        version: vault.version,
        token: vault.token.clone(),
    })
}

/// Whether a text can be a segment of a path that leads nowhere else.
fn is_segment(text: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'\\' | b'?' | b'#' | b'%');
    !text.is_empty() && text.bytes().any(|byte| byte != b'.') && text.bytes().all(is_fine)
}

/// A segment as it stands in a path (RFC 3986, 3.3).
fn encoded(segment: &str) -> String {
    let mut out = String::new();
    for byte in segment.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// An instance of `vault-auth`.
struct PairFilter {
    config: Config,
    gate: Gate,
    consumers: Arc<ConsumerNames>,
    pairs: Arc<Pairs>,
    /// Absent: no token is accepted.
    vault: Option<Vault>,
    rules: ServerCallRules,
}

/// A vault that is asked.
struct Vault {
    server: HttpServer,
    /// The path before the name of a secret.
    folder: String,
    version: EngineVersion,
    token: String,
}

/// A token of a call.
enum CallToken {
    Token(Vec<u8>),
    Not(AuthFailure),
    /// The body must be read first.
    Body,
}

fn find_token(places: &[KeyLocation], request: &Request) -> CallToken {
    for place in places {
        match place.look(request, MultipleKeys::Refuse) {
            Lookup::Absent => {}
            Lookup::Key(key) if key.is_empty() => return CallToken::Not(AuthFailure::Missing),
            Lookup::Key(key) => return CallToken::Token(key.into_owned()),
            Lookup::Several => return CallToken::Not(AuthFailure::Duplicate),
            Lookup::Wrong => return CallToken::Not(AuthFailure::Invalid),
            Lookup::Body => return CallToken::Body,
        }
    }
    CallToken::Not(AuthFailure::Missing)
}

impl PairFilter {
    fn places(&self) -> impl Iterator<Item = &KeyLocation> {
        self.config.access_token.iter().chain(&self.config.secret_token)
    }

    /// Whether the body has to be read before tokens can be taken out of it.
    fn lacks_body(&self, request: &Request) -> bool {
        let is_in_body = self.places().any(|place| matches!(place, KeyLocation::Body(_)));
        is_in_body && self.config.strip && request.body.is_none() && form_of_body(request).is_some()
    }

    /// The consumer of the tokens.
    fn evaluate(&self, exchange: &mut Exchange, access: &[u8], secret: &[u8]) -> Step<TokenVerdict> {
        let wrong = |reason| Ok(TokenVerdict::Refused(AuthFailure::Rejected(reason)));
        let access = std::str::from_utf8(access).ok();
        let Some(access) = access.filter(|it| it.len() <= MAX_TOKEN && is_segment(it)) else {
            return wrong("the access token has a form that no vault gives");
        };
        let Some(pair) = self.pair(exchange, access)? else {
            return Ok(TokenVerdict::Unknown);
        };
        let Some(pair) = pair else {
            return wrong("the vault does not know the access token");
        };
        let given = digest::digest(&SHA256, secret);
        if verify_slices_are_equal(given.as_ref(), &pair.secret).is_err() {
            return wrong("the secret token is wrong");
        }
        match self.consumers.find(&pair.consumer, &[ConsumerName::Id]) {
            Some(consumer) => Ok(TokenVerdict::Good(Identity {
                consumer: Arc::clone(consumer),
                credential_id: None,
            })),
            None => wrong("the tokens are those of a consumer that does not exist"),
        }
    }

    /// What the vault knows; `None`: it does not answer.
    fn pair(&self, exchange: &mut Exchange, access: &str) -> Step<Option<Option<Arc<Pair>>>> {
        let Some(vault) = &self.vault else {
            return Ok(None);
        };
        let cache_seconds = self.config.cache_seconds;
        let key = hashed(&[
            if vault.server.is_https { "https" } else { "http" },
            &vault.server.authority,
            &vault.folder,
            &vault.token,
            &trust(&self.rules, cache_seconds),
            access,
        ]);
        let ask = |_: &mut Exchange| self.subrequest(vault, access);
        let summary = |exchange: &mut Exchange| {
            let answer = exchange.subrequest_response.take()??;
            let (pair, fresh_ms) = read(&answer, access, vault.version, cache_seconds)?;
            Some((pair.map(Arc::new), fresh_ms))
        };
        if cache_seconds == 0 {
            let found = require_value(unshared(&key, self, exchange, ask, summary))?;
            return Ok(found.map(|(pair, _)| pair));
        }
        let wanted = FetchRequest {
            map: &self.pairs,
            key: &key,
            since_ms: 0,
            retry_ms: RETRY_MS,
            timeout: self.rules.timeout,
        };
        require_value(wanted.find(self, exchange, ask, |exchange| {
            let (pair, fresh_ms) = summary(exchange)?;
            let bytes = 128 + pair.as_ref().map_or(0, |pair| pair.consumer.len());
            Some((pair, bytes, Lifetime::fresh(fresh_ms)))
        }))
    }

    /// The subrequest to the vault.
    fn subrequest(&self, vault: &Vault, access: &str) -> Outcome {
        let server = HttpServer {
            target: format!("{}{}", vault.folder, encoded(access)),
            ..vault.server.clone()
        };
        let headers = [
            ("X-Vault-Token", vault.token.as_str()),
            // Without it, agents before a vault refuse (they protect themselves from forged requests so).
            ("X-Vault-Request", "true"),
        ];
        let request = HttpRequest {
            headers: &headers,
            ..HttpRequest::GET
        };
        Outcome::Subrequest(Box::new(server.request(request, &self.rules)))
    }
}

/// What an answer says, and for how long. `None`: it cannot be used.
fn read(
    answer: &SubrequestResponse,
    access: &str,
    version: EngineVersion,
    cache_seconds: u64,
) -> Option<(Option<Pair>, u64)> {
    let unknown = Some((None, UNKNOWN_MS));
    if answer.status == 404 {
        return unknown;
    }
    if answer.status != 200 {
        return None;
    }
    let body: Value = serde_json::from_slice(&answer.body).ok()?;
    // Something else than a vault answers.
    body["data"].as_object()?;
    let fields = match version {
        EngineVersion::V1 => &body["data"],
        EngineVersion::V2 => &body["data"]["data"],
    };
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let (Some(own), Some(secret), Some(consumer)) = (
        text(&fields["access_token"]),
        text(&fields["secret_token"]),
        text(&fields["consumer"]["id"]),
    ) else {
        return unknown;
    };
    // Another secret of the engine is no pair of this name.
    if own != access {
        return unknown;
    }
    let mut hash = [0; SHA256_OUTPUT_LEN];
    hash.copy_from_slice(digest::digest(&SHA256, secret.as_bytes()).as_ref());
    let ttl = match &fields["ttl"] {
        Value::String(text) => text.parse().ok(),
        other => other.as_f64(),
    };
    let ttl = ttl.filter(|ttl: &f64| *ttl >= 0.0).map(|ttl| ttl.min(LONGEST_S));
    let fresh_ms = ttl.map_or(cache_seconds.saturating_mul(1_000), |ttl| (ttl * 1_000.0) as u64);
    let pair = Pair {
        secret: hash,
        consumer,
    };
    Some((Some(pair), fresh_ms.max(1)))
}

/// The result of checking a call's tokens.
enum TokenVerdict {
    Good(Identity),
    Refused(AuthFailure),
    /// The vault does not answer.
    Unknown,
}

impl Filter for PairFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if self.gate.skips(exchange) {
            return Outcome::Continue;
        }
        let max_bytes = self.config.max_body_bytes;
        // It comes first, so that the vault is asked once.
        if self.lacks_body(&exchange.request) {
            return Outcome::NeedBody { max_bytes };
        }
        let request = &exchange.request;
        let tokens = [&self.config.access_token, &self.config.secret_token];
        let judged = match tokens.map(|places| find_token(places, request)) {
            [CallToken::Body, _] | [_, CallToken::Body] => return Outcome::NeedBody { max_bytes },
            [CallToken::Token(access), CallToken::Token(secret)] => {
                match self.evaluate(exchange, &access, &secret) {
                    Ok(judged) => judged,
                    Err(wait) => return *wait,
                }
            }
            [CallToken::Not(failure), _] | [_, CallToken::Not(failure)] => TokenVerdict::Refused(failure),
        };
        if self.config.strip {
            for place in self.places() {
                place.remove(&mut exchange.request, remove_argument_and_encode);
            }
        }
        match judged {
            TokenVerdict::Good(identity) => self.gate.accept(exchange, &identity),
            TokenVerdict::Refused(failure) => self.gate.reject(exchange, failure, None),
            TokenVerdict::Unknown => {
                let kind = RefusalKind::PluginFailed {
                    plugin: NAME,
                    reason: "the vault does not answer",
                };
                Outcome::Refuse(Box::new(Refusal::new(kind)))
            }
        }
    }
}

#[cfg(test)]
mod tests;
