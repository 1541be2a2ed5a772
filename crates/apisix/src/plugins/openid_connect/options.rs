//! APISIX's fields of `openid-connect`, and what each is in the catalogue.

use crate::plugins::Warnings;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use weir_plugins::cookie::SameSite;
use weir_plugins::http_rules::HttpRules;
use weir_plugins::jwt::Algorithm;
use weir_plugins::openid_connect::{
    ClientAssertion, ClientAuth, Config, Logout, Method, Pkce, PushedRequests, RequiredClaims, TokenHeader,
    TokenSource, TokenValue, Unauthenticated,
};
use weir_plugins::session_cookie::SessionConfig;

/// Headers that only the plugin may set.
const OWN_HEADERS: [&str; 5] = [
    "X-Access-Token",
    "X-Userinfo",
    "X-ID-Token",
    "X-Refresh-Token",
    "X-Raw-ID-Token",
];

#[derive(Deserialize)]
pub(super) struct Options {
    client_id: String,
    client_secret: Option<String>,
    discovery: String,
    scope: String,
    ssl_verify: bool,
    timeout: u64,
    introspection_endpoint: Option<String>,
    introspection_endpoint_auth_method: String,
    token_endpoint_auth_method: String,
    bearer_only: bool,
    #[serde(default)]
    session: Option<SessionOptions>,
    realm: String,
    logout_path: String,
    redirect_uri: Option<String>,
    post_logout_redirect_uri: Option<String>,
    unauth_action: String,
    public_key: Option<String>,
    #[serde(default)]
    use_jwks: bool,
    #[serde(default)]
    use_pkce: bool,
    set_access_token_header: bool,
    access_token_in_authorization_header: bool,
    set_id_token_header: bool,
    set_userinfo_header: bool,
    set_refresh_token_header: bool,
    set_raw_id_token_header: bool,
    #[serde(default)]
    proxy_opts: Option<ProxyOptions>,
    #[serde(default)]
    authorization_params: Map<String, Value>,
    client_rsa_private_key: Option<String>,
    client_rsa_private_key_id: Option<String>,
    client_jwt_assertion_expires_in: u64,
    client_jwt_assertion_alg: Option<Algorithm>,
    client_jwt_assertion_audience: Option<String>,
    renew_access_token_on_expiry: bool,
    access_token_expires_leeway: u64,
    refresh_session_interval: Option<u64>,
    force_reauthorize: bool,
    iat_slack: u64,
    accept_none_alg: bool,
    use_nonce: bool,
    revoke_tokens_on_logout: bool,
    jwk_expires_in: u64,
    introspection_interval: u64,
    introspection_expiry_claim: Option<String>,
    #[serde(default)]
    introspection_addon_headers: Vec<String>,
    #[serde(default)]
    required_scopes: Vec<String>,
    claim_schema: Option<Map<String, Value>>,
    #[serde(default)]
    claim_validator: ClaimValidator,
    #[serde(default)]
    par: PushOptions,
    #[serde(default)]
    dpop: Toggle,
}

#[derive(Deserialize, Default)]
struct Toggle {
    #[serde(default)]
    enabled: bool,
}

#[derive(Deserialize, Default)]
struct PushOptions {
    #[serde(default)]
    enabled: bool,
    endpoint: Option<String>,
    endpoint_auth_method: Option<String>,
}

#[derive(Deserialize, Default)]
struct ProxyOptions {
    http_proxy: Option<String>,
    https_proxy: Option<String>,
    http_proxy_authorization: Option<String>,
    https_proxy_authorization: Option<String>,
}

#[derive(Deserialize, Default)]
struct ClaimValidator {
    #[serde(default)]
    issuer: IssuerOptions,
    #[serde(default)]
    audience: AudienceOptions,
}

#[derive(Deserialize, Default)]
struct IssuerOptions {
    #[serde(default)]
    valid_issuers: Vec<String>,
}

#[derive(Deserialize, Default)]
struct AudienceOptions {
    claim: Option<String>,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    match_with_client_id: bool,
}

#[derive(Deserialize)]
struct SessionOptions {
    secret: String,
    storage: Option<String>,
    cookie_name: Option<String>,
    cookie_path: Option<String>,
    cookie_domain: Option<String>,
    cookie_secure: Option<bool>,
    cookie_http_only: Option<bool>,
    cookie_same_site: Option<SameSite>,
    idling_timeout: Option<u64>,
    rolling_timeout: Option<u64>,
    absolute_timeout: Option<u64>,
    cookie: Option<OldCookie>,
}

#[derive(Deserialize)]
struct OldCookie {
    lifetime: Option<u64>,
}

impl SessionOptions {
    fn config(self) -> SessionConfig {
        let standard = SessionConfig::new(self.secret);
        let lifetime = self.cookie.and_then(|cookie| cookie.lifetime);
        SessionConfig {
            cookie_name: self.cookie_name.unwrap_or(standard.cookie_name),
            cookie_path: self.cookie_path.unwrap_or(standard.cookie_path),
            cookie_domain: self.cookie_domain,
            cookie_secure: self.cookie_secure.unwrap_or(false),
            cookie_http_only: self.cookie_http_only.unwrap_or(true),
            cookie_same_site: self.cookie_same_site.unwrap_or_default(),
            idling_timeout_seconds: self.idling_timeout.unwrap_or(standard.idling_timeout_seconds),
            rolling_timeout_seconds: self.rolling_timeout.unwrap_or(standard.rolling_timeout_seconds),
            absolute_timeout_seconds: self
                .absolute_timeout
                .or(lifetime)
                .unwrap_or(standard.absolute_timeout_seconds),
            ..SessionConfig::new(standard.secret)
        }
    }
}

/// How a client proves who it is, by its name in the original.
fn auth(name: &str) -> ClientAuth {
    match name {
        "client_secret_post" => ClientAuth::Post,
        "client_secret_jwt" => ClientAuth::SecretJwt,
        "private_key_jwt" => ClientAuth::PrivateKeyJwt,
        "none" => ClientAuth::None,
        _ => ClientAuth::Basic,
    }
}

impl Options {
    /// Notes what is served in another way, or cannot be.
    fn note(&self, notes: &mut Warnings) {
        if self.dpop.enabled {
            notes.not_available("dpop", "DPoP");
        }
        if self.force_reauthorize {
            notes.not_available("force_reauthorize", "`force_reauthorize: true`");
        }
        if self.refresh_session_interval.is_some() {
            notes.warn(
                "refresh_session_interval",
                "it is not used: sessions last as long as `session` says",
            );
        }
        if self
            .introspection_expiry_claim
            .as_deref()
            .is_some_and(|claim| claim != "exp")
        {
            notes.warn(
                "introspection_expiry_claim",
                "it is not used: answers are kept until `exp`",
            );
        }
        let storage = self
            .session
            .as_ref()
            .and_then(|session| session.storage.as_deref());
        if storage == Some("redis") {
            notes.warn(
                "session",
                "sessions are kept in their cookies, and not in a Redis",
            );
        }
    }

    /// The catalogue's configuration.
    pub(super) fn config(self, notes: &mut Warnings) -> Config {
        self.note(notes);
        let methods = self.methods();
        let upstream_headers = self.upstream_headers();
        let required = self.required();
        let http = self.http();
        let has_secret = self.client_secret.is_some();
        // A client without a secret is a public one, whatever it is said to show.
        let own = |name: &str| match auth(name) {
            ClientAuth::Basic | ClientAuth::Post | ClientAuth::SecretJwt if !has_secret => ClientAuth::None,
            auth => auth,
        };
        let authorization = self.authorization_params.iter();
        let argument = |(name, value): (&String, &Value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (name.clone(), text)
        };
        Config {
            client_auth: own(&self.token_endpoint_auth_method),
            introspection_auth: Some(own(&self.introspection_endpoint_auth_method)),
            client_assertion: Some(ClientAssertion {
                private_key: self.client_rsa_private_key,
                key_id: self.client_rsa_private_key_id,
                algorithm: self.client_jwt_assertion_alg,
                seconds: self.client_jwt_assertion_expires_in,
                audience: self.client_jwt_assertion_audience,
            }),
            methods,
            unauthenticated: match self.unauth_action.as_str() {
                _ if self.bearer_only => Unauthenticated::Refuse,
                "deny" => Unauthenticated::Refuse,
                "pass" => Unauthenticated::Pass,
                _ => Unauthenticated::Login,
            },
            session: self.session.map(SessionOptions::config),
            scopes: self.scope.split_ascii_whitespace().map(str::to_owned).collect(),
            redirect_uri: self.redirect_uri,
            redirect_suffix: "/.apisix/redirect".into(),
            pkce: if self.use_pkce { Pkce::Always } else { Pkce::Never },
            nonce: self.use_nonce,
            pushed_requests: self.par.enabled.then(|| PushedRequests {
                endpoint: self.par.endpoint.clone(),
                auth: self.par.endpoint_auth_method.as_deref().map(own),
            }),
            authorization_arguments: authorization.map(argument).collect::<BTreeMap<_, _>>(),
            logout: Logout {
                path: Some(self.logout_path),
                revoke: self.revoke_tokens_on_logout,
                redirect_uri: self.post_logout_redirect_uri,
                ..Logout::default()
            },
            bearer_locations: vec![TokenSource::Bearer, TokenSource::Header("X-Access-Token".into())],
            public_key: self.public_key,
            introspection_endpoint: self.introspection_endpoint,
            introspection_headers: self.introspection_addon_headers,
            introspection_seconds: self.introspection_interval,
            issuers: self.claim_validator.issuer.valid_issuers,
            required,
            leeway_seconds: self.iat_slack,
            accept_unsigned_id_tokens: self.accept_none_alg,
            refresh: self.renew_access_token_on_expiry,
            refresh_leeway_seconds: self.access_token_expires_leeway,
            cache_seconds: self.jwk_expires_in.max(1),
            upstream_headers,
            cleared_headers: OWN_HEADERS.map(str::to_owned).to_vec(),
            realm: Some(self.realm),
            explain: true,
            login_failure_status: 500,
            http,
            client_secret: self.client_secret,
            ..Config::new(self.discovery, self.client_id)
        }
    }

    fn methods(&self) -> Vec<Method> {
        let mut methods = Vec::new();
        if self.public_key.is_some() || self.use_jwks {
            methods.push(Method::Bearer);
        } else if self.bearer_only || self.introspection_endpoint.is_some() {
            methods.push(Method::Introspection);
        }
        if !self.bearer_only {
            methods.extend([Method::Session, Method::AuthorizationCode]);
        }
        methods
    }

    fn upstream_headers(&self) -> Vec<TokenHeader> {
        let token = match self.access_token_in_authorization_header {
            true => ("Authorization", TokenValue::BearerToken),
            false => ("X-Access-Token", TokenValue::AccessToken),
        };
        let all = [
            (self.set_access_token_header, token),
            (self.set_id_token_header, ("X-ID-Token", TokenValue::IdClaims)),
            (self.set_userinfo_header, ("X-Userinfo", TokenValue::Userinfo)),
            (
                self.set_refresh_token_header,
                ("X-Refresh-Token", TokenValue::RefreshToken),
            ),
            (
                self.set_raw_id_token_header,
                ("X-Raw-ID-Token", TokenValue::IdToken),
            ),
        ];
        let set = all.into_iter().filter(|(is_set, _)| *is_set);
        let header = |(_, (name, value)): (bool, (&str, TokenValue))| TokenHeader {
            name: name.to_owned(),
            value,
        };
        set.map(header).collect()
    }

    fn required(&self) -> RequiredClaims {
        let audience = &self.claim_validator.audience;
        let standard = RequiredClaims::default();
        RequiredClaims {
            scopes: match self.required_scopes.is_empty() {
                true => Vec::new(),
                false => vec![self.required_scopes.join(" ")],
            },
            audiences: match audience.match_with_client_id {
                true => vec![self.client_id.clone()],
                false => Vec::new(),
            },
            audiences_claim: audience
                .claim
                .clone()
                .map_or(standard.audiences_claim, |claim| vec![claim]),
            audience_present: audience.required || audience.match_with_client_id,
            schema: self.claim_schema.clone(),
            ..RequiredClaims::default()
        }
    }

    fn http(&self) -> HttpRules {
        // Seconds; the original once took milliseconds, and still knows them.
        let is_milliseconds = self.timeout >= 1_000 && self.timeout.is_multiple_of(1_000);
        let proxy = self.proxy_opts.as_ref();
        let is_https = self.discovery.starts_with("https://");
        let by_scheme = |https: Option<String>, http: Option<String>| if is_https { https } else { http };
        HttpRules {
            timeout_ms: if is_milliseconds {
                self.timeout
            } else {
                self.timeout.max(1) * 1_000
            },
            verify_tls: self.ssl_verify,
            proxy: proxy.and_then(|it| by_scheme(it.https_proxy.clone(), it.http_proxy.clone())),
            proxy_authorization: proxy.and_then(|it| {
                by_scheme(
                    it.https_proxy_authorization.clone(),
                    it.http_proxy_authorization.clone(),
                )
            }),
            ..HttpRules::default()
        }
    }
}
