//! `openid-connect`: callers log in at an OpenID provider, or bring one of its tokens.

mod default_fields;
mod fields;

use super::enterprise_fields::only_defaults;
use super::session_options::SessionOptions;
use super::{Consumers, Definition, UnsupportedOption, identity, typed, untyped};
use crate::schema::Record;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use weir_plugins::consumer_names::ConsumerName;
use weir_plugins::http_rules::HttpRules;
use weir_plugins::identity::GROUPS_HEADER;
use weir_plugins::openid_connect::{
    ClientAuth, Config, ConsumerRules, GrantLocation, GroupsClaim, Logout, Method, Pkce, ProviderAnswer,
    PushedRequests, RequiredClaims, TokenHeader, TokenSource, TokenValue, Unauthenticated,
};
use weir_plugins::session_cookie::SessionConfig;

/// The definition of `openid-connect`.
pub const DEFINITION: Definition = Definition {
    name: "openid-connect",
    priority: 1050,
    config: Record::of(fields::FIELDS),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "openid-connect",
    translate,
};

#[derive(Deserialize)]
struct Options {
    issuer: String,
    auth_methods: Vec<String>,
    client_id: Option<Vec<String>>,
    client_secret: Option<Vec<String>>,
    client_auth: Option<Vec<String>>,
    scopes: Option<Vec<String>>,
    audience: Option<Vec<String>>,
    redirect_uri: Option<Vec<String>>,
    issuers_allowed: Option<Vec<String>>,
    scopes_required: Option<Vec<String>>,
    scopes_claim: Vec<String>,
    audience_required: Option<Vec<String>>,
    audience_claim: Vec<String>,
    groups_required: Option<Vec<String>>,
    groups_claim: Vec<String>,
    authenticated_groups_claim: Option<Vec<String>>,
    roles_required: Option<Vec<String>>,
    roles_claim: Vec<String>,
    claims_forbidden: Option<Vec<String>>,
    consumer_claim: Option<Vec<String>>,
    consumer_by: Vec<String>,
    consumer_optional: bool,
    anonymous: Option<String>,
    run_on_preflight: bool,
    bearer_token_param_type: Vec<String>,
    bearer_token_cookie_name: Option<String>,
    password_param_type: Option<Vec<String>>,
    client_credentials_param_type: Option<Vec<String>>,
    upstream_access_token_header: Option<String>,
    upstream_id_token_header: Option<String>,
    upstream_refresh_token_header: Option<String>,
    upstream_user_info_header: Option<String>,
    upstream_introspection_header: Option<String>,
    upstream_session_id_header: Option<String>,
    upstream_headers_claims: Option<Vec<String>>,
    upstream_headers_names: Option<Vec<String>>,
    downstream_access_token_header: Option<String>,
    downstream_id_token_header: Option<String>,
    downstream_refresh_token_header: Option<String>,
    downstream_user_info_header: Option<String>,
    downstream_introspection_header: Option<String>,
    downstream_session_id_header: Option<String>,
    downstream_headers_claims: Option<Vec<String>>,
    downstream_headers_names: Option<Vec<String>>,
    introspection_endpoint: Option<String>,
    introspection_endpoint_auth_method: Option<String>,
    authorization_query_args_names: Option<Vec<String>>,
    authorization_query_args_values: Option<Vec<String>>,
    token_post_args_names: Option<Vec<String>>,
    token_post_args_values: Option<Vec<String>>,
    pushed_authorization_request_endpoint: Option<String>,
    require_pushed_authorization_requests: Option<bool>,
    require_proof_key_for_code_exchange: Option<bool>,
    logout_methods: Vec<String>,
    logout_query_arg: Option<String>,
    logout_uri_suffix: Option<String>,
    logout_revoke: bool,
    logout_redirect_uri: Option<Vec<String>>,
    refresh_tokens: bool,
    verify_nonce: bool,
    leeway: u64,
    cache_ttl: u64,
    timeout: u64,
    keepalive: bool,
    ssl_verify: bool,
    http_proxy: Option<String>,
    http_proxy_authorization: Option<String>,
    https_proxy: Option<String>,
    https_proxy_authorization: Option<String>,
    display_errors: bool,
    hide_credentials: bool,
    cache_tokens: bool,
    cache_introspection: bool,
    cache_user_info: bool,
    introspection_hint: Option<String>,
    introspection_headers_client: Option<Vec<String>>,
    unauthorized_error_message: Option<String>,
    forbidden_error_message: Option<String>,
    session_secret: Option<String>,
    #[serde(flatten)]
    session: SessionOptions,
}

fn first(values: Option<&Vec<String>>) -> Option<String> {
    values.and_then(|values| values.first()).cloned()
}

fn auth(name: &str) -> Result<ClientAuth, UnsupportedOption> {
    Ok(match name {
        "client_secret_basic" => ClientAuth::Basic,
        "client_secret_post" => ClientAuth::Post,
        "client_secret_jwt" => ClientAuth::SecretJwt,
        "none" => ClientAuth::None,
        other => {
            return Err(UnsupportedOption {
                field: "client_auth",
                what: format!("the client authentication \"{other}\""),
            });
        }
    })
}

/// The original tries methods in this order, whatever the order of the list.
const METHODS: [(&str, Method); 7] = [
    ("session", Method::Session),
    ("bearer", Method::Bearer),
    ("introspection", Method::Introspection),
    ("userinfo", Method::Userinfo),
    ("password", Method::Password),
    ("client_credentials", Method::ClientCredentials),
    ("authorization_code", Method::AuthorizationCode),
];

fn translate(config: &Value, consumers: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    only_defaults(config, default_fields::ONLY_DEFAULTS)?;
    let options: Options = typed(config)?;
    let several = |values: Option<&Vec<String>>| values.is_some_and(|values| values.len() > 1);
    if several(options.client_id.as_ref()) {
        return Err(UnsupportedOption {
            field: "client_id",
            what: "more than one client".to_owned(),
        });
    }
    let made = options.config(consumers)?;
    Ok(untyped(made))
}

impl Options {
    fn config(self, consumers: &Consumers<'_>) -> Result<Config, UnsupportedOption> {
        let secret = first(self.client_secret.as_ref());
        let named = first(self.client_auth.as_ref());
        let client_auth = match (&named, &secret) {
            (Some(name), _) => auth(name)?,
            (None, Some(_)) => ClientAuth::Basic,
            (None, None) => ClientAuth::None,
        };
        let introspection_auth = self.introspection_endpoint_auth_method.as_deref().map(auth);
        let methods = METHODS
            .iter()
            .filter(|(name, _)| self.auth_methods.iter().any(|it| it == name));
        let methods: Vec<Method> = methods.map(|(_, method)| *method).collect();
        let suffix = "/.well-known/openid-configuration";
        let issuer = self.issuer.trim_end_matches(suffix).to_owned();
        // Tokens of further issuers are taken besides the provider's own.
        let issuers = self.issuers_allowed.clone().map(|mut issuers| {
            issuers.push(issuer.clone());
            issuers
        });
        let pushed = self.pushed_authorization_request_endpoint.clone();
        let is_pushed = pushed.is_some() || self.require_pushed_authorization_requests == Some(true);
        Ok(Config {
            issuer: Some(issuer),
            introspection_auth: introspection_auth.transpose()?,
            client_auth,
            methods,
            unauthenticated: Unauthenticated::Login,
            session: self.session(secret.as_deref()),
            scopes: self.scopes.clone().unwrap_or_default(),
            redirect_uri: first(self.redirect_uri.as_ref()),
            redirect_suffix: String::new(),
            pkce: match self.require_proof_key_for_code_exchange {
                Some(true) => Pkce::Always,
                Some(false) => Pkce::Never,
                None => Pkce::Auto,
            },
            nonce: self.verify_nonce,
            pushed_requests: is_pushed.then_some(PushedRequests {
                endpoint: pushed,
                auth: None,
            }),
            authorization_arguments: self.authorization_arguments(),
            token_arguments: pairs(
                self.token_post_args_names.as_ref(),
                self.token_post_args_values.as_ref(),
            ),
            logout: self.logout(),
            bearer_locations: self.bearer_locations(),
            password_locations: grant_locations(self.password_param_type.as_ref()),
            client_credentials_locations: grant_locations(self.client_credentials_param_type.as_ref()),
            introspection_seconds: self.cache_ttl,
            issuers: issuers.unwrap_or_default(),
            required: self.required(),
            leeway_seconds: self.leeway,
            refresh: self.refresh_tokens,
            cache_seconds: self.cache_ttl.max(1),
            upstream_headers: self.upstream_headers(),
            client_headers: self.client_headers(),
            consumer: self.consumer(),
            groups: self.authenticated_groups(),
            identity: identity(self.anonymous.as_deref(), self.run_on_preflight, consumers),
            explain: self.display_errors,
            strip: self.hide_credentials,
            uncached: self.uncached(),
            introspection_hint: self.introspection_hint.clone().unwrap_or_default(),
            introspection_headers: self.introspection_headers_client.clone().unwrap_or_default(),
            unauthorized_message: own_words(self.unauthorized_error_message.as_ref(), "Unauthorized"),
            forbidden_message: own_words(self.forbidden_error_message.as_ref(), "Forbidden"),
            http: self.http(),
            introspection_endpoint: self.introspection_endpoint,
            client_secret: secret,
            ..Config::new(self.issuer, first(self.client_id.as_ref()).unwrap_or_default())
        })
    }

    /// The original makes a secret up if none is given. Here all gateways must have the same, so it is the client's.
    fn session(&self, client_secret: Option<&str>) -> Option<SessionConfig> {
        let own = self.session_secret.clone();
        let secret = own.or_else(|| client_secret.map(|secret| format!("session of {secret}")))?;
        Some(self.session.config(secret))
    }

    fn authorization_arguments(&self) -> BTreeMap<String, String> {
        let mut arguments = pairs(
            self.authorization_query_args_names.as_ref(),
            self.authorization_query_args_values.as_ref(),
        );
        if let Some(audience) = &self.audience {
            arguments.insert("audience".to_owned(), audience.join(" "));
        }
        arguments
    }

    fn uncached(&self) -> Vec<ProviderAnswer> {
        let all = [
            (self.cache_tokens, ProviderAnswer::Tokens),
            (self.cache_introspection, ProviderAnswer::Introspection),
            (self.cache_user_info, ProviderAnswer::Userinfo),
        ];
        let uncached = all.into_iter().filter(|(is_kept, _)| !is_kept);
        uncached.map(|(_, answer)| answer).collect()
    }

    fn logout(&self) -> Logout {
        Logout {
            path: None,
            path_suffix: self.logout_uri_suffix.clone(),
            query_argument: self.logout_query_arg.clone(),
            methods: self.logout_methods.clone(),
            revoke: self.logout_revoke,
            redirect_uri: first(self.logout_redirect_uri.as_ref()),
            at_provider: true,
        }
    }

    fn bearer_locations(&self) -> Vec<TokenSource> {
        let mut places = Vec::new();
        for kind in &self.bearer_token_param_type {
            match kind.as_str() {
                "header" => places.extend([
                    TokenSource::Bearer,
                    TokenSource::Header("access-token".into()),
                    TokenSource::Header("x-access-token".into()),
                ]),
                "query" => places.push(TokenSource::Query("access_token".into())),
                "body" => places.push(TokenSource::Body("access_token".into())),
                "cookie" => places.extend(self.bearer_token_cookie_name.clone().map(TokenSource::Cookie)),
                _ => {}
            }
        }
        places
    }

    fn required(&self) -> RequiredClaims {
        RequiredClaims {
            scopes: self.scopes_required.clone().unwrap_or_default(),
            scopes_claim: self.scopes_claim.clone(),
            audiences: self.audience_required.clone().unwrap_or_default(),
            audiences_claim: self.audience_claim.clone(),
            audience_present: false,
            groups: self.groups_required.clone().unwrap_or_default(),
            groups_claim: self.groups_claim.clone(),
            roles: self.roles_required.clone().unwrap_or_default(),
            roles_claim: self.roles_claim.clone(),
            forbidden: self.claims_forbidden.clone().unwrap_or_default(),
            access_token: false,
            schema: None,
        }
    }

    fn upstream_headers(&self) -> Vec<TokenHeader> {
        let mut headers = headers([
            (&self.upstream_access_token_header, TokenValue::AccessToken),
            (&self.upstream_id_token_header, TokenValue::IdToken),
            (&self.upstream_refresh_token_header, TokenValue::RefreshToken),
            (&self.upstream_user_info_header, TokenValue::Userinfo),
            (&self.upstream_introspection_header, TokenValue::Introspection),
            (&self.upstream_session_id_header, TokenValue::SessionId),
        ]);
        let names = pairs(
            self.upstream_headers_names.as_ref(),
            self.upstream_headers_claims.as_ref(),
        );
        headers.extend(names.into_iter().map(claim));
        headers
    }

    fn client_headers(&self) -> Vec<TokenHeader> {
        let mut headers = headers([
            (&self.downstream_access_token_header, TokenValue::AccessToken),
            (&self.downstream_id_token_header, TokenValue::IdToken),
            (&self.downstream_refresh_token_header, TokenValue::RefreshToken),
            (&self.downstream_user_info_header, TokenValue::Userinfo),
            (&self.downstream_introspection_header, TokenValue::Introspection),
            (&self.downstream_session_id_header, TokenValue::SessionId),
        ]);
        let names = pairs(
            self.downstream_headers_names.as_ref(),
            self.downstream_headers_claims.as_ref(),
        );
        headers.extend(names.into_iter().map(claim));
        headers
    }

    fn consumer(&self) -> Option<ConsumerRules> {
        let by = self.consumer_by.iter().map(|name| match name.as_str() {
            "username" => ConsumerName::Username,
            "custom_id" => ConsumerName::CustomId,
            _ => ConsumerName::Id,
        });
        Some(ConsumerRules {
            claim: self.consumer_claim.clone()?,
            by: by.collect(),
            optional: self.consumer_optional,
        })
    }

    fn authenticated_groups(&self) -> Option<GroupsClaim> {
        Some(GroupsClaim {
            path: self.authenticated_groups_claim.clone()?,
            header: Some(GROUPS_HEADER.to_owned()),
        })
    }

    fn http(&self) -> HttpRules {
        let is_https = self.issuer.starts_with("https://");
        let (proxy, authorization) = match is_https {
            true => (&self.https_proxy, &self.https_proxy_authorization),
            false => (&self.http_proxy, &self.http_proxy_authorization),
        };
        HttpRules {
            timeout_ms: self.timeout.max(1),
            verify_tls: self.ssl_verify,
            pool_size: if self.keepalive { 16 } else { 0 },
            proxy: proxy.clone(),
            proxy_authorization: authorization.clone(),
            ..HttpRules::default()
        }
    }
}

/// Without a list, all places are looked at.
fn grant_locations(kinds: Option<&Vec<String>>) -> Vec<GrantLocation> {
    use GrantLocation::{Body, Header, Query};
    let all = [("header", Header), ("query", Query), ("body", Body)];
    let find = |kind: &String| all.iter().find(|(name, _)| kind == name);
    match kinds {
        None => all.map(|(_, location)| location).into(),
        Some(kinds) => kinds
            .iter()
            .filter_map(find)
            .map(|(_, location)| *location)
            .collect(),
    }
}

/// A message that is not the usual one.
fn own_words(message: Option<&String>, usual: &str) -> Option<String> {
    message.filter(|message| *message != usual).cloned()
}

/// Names with their values.
fn pairs(names: Option<&Vec<String>>, values: Option<&Vec<String>>) -> BTreeMap<String, String> {
    let names = names.into_iter().flatten().cloned();
    names.zip(values.into_iter().flatten().cloned()).collect()
}

fn claim((name, claim): (String, String)) -> TokenHeader {
    TokenHeader {
        name,
        value: TokenValue::Claim(vec![claim]),
    }
}

/// `authorization:bearer` puts the word before the token; `authorization` stands for that, too.
fn headers<const N: usize>(all: [(&Option<String>, TokenValue); N]) -> Vec<TokenHeader> {
    let set = all
        .into_iter()
        .filter_map(|(name, value)| Some((name.as_ref()?, value)));
    let header = |(name, value): (&String, TokenValue)| {
        let (name, form) = name.split_once(':').unwrap_or((name, ""));
        let is_bearer = form == "bearer" || name.eq_ignore_ascii_case("authorization");
        TokenHeader {
            name: name.to_owned(),
            value: match value {
                TokenValue::AccessToken if is_bearer => TokenValue::BearerToken,
                value => value,
            },
        }
    };
    set.map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    /// A configuration with the defaults of all fields, and these.
    fn translated(changes: &Value) -> Result<Value, UnsupportedOption> {
        let fields = fields::FIELDS
            .iter()
            .map(|field| (field.name.to_owned(), field.default.value()));
        let mut config: Map<String, Value> = fields.collect();
        config.extend(
            json!({"issuer": "https://id.example", "client_id": ["c"]})
                .as_object()
                .cloned()
                .unwrap_or_default(),
        );
        config.extend(changes.as_object().cloned().unwrap_or_default());
        translate(&Value::Object(config), &Consumers::NONE)
    }

    /// The defect: these were unknown fields, also with the values that Kong itself fills in.
    #[test]
    fn fields_are_served_or_named() {
        let plain = translated(&json!({})).expect("defaults are served");
        for (changes, pointer, expected) in [
            (json!({"hide_credentials": true}), "/strip", json!(true)),
            (
                json!({"cache_introspection": false, "cache_user_info": false}),
                "/uncached",
                json!(["introspection", "userinfo"]),
            ),
            (json!({"cache_tokens": false}), "/uncached", json!(["tokens"])),
            (
                json!({"unauthorized_error_message": "who?"}),
                "/unauthorized_message",
                json!("who?"),
            ),
            (
                json!({"forbidden_error_message": "no"}),
                "/forbidden_message",
                json!("no"),
            ),
            (
                json!({"introspection_headers_client": ["X-A"]}),
                "/introspection_headers",
                json!(["X-A"]),
            ),
            (
                json!({"introspection_hint": "x"}),
                "/introspection_hint",
                json!("x"),
            ),
        ] {
            let found = translated(&changes).expect("it is served");
            assert_eq!(found.pointer(pointer), Some(&expected), "{changes}");
            assert_ne!(plain.pointer(pointer), Some(&expected), "{changes}");
        }
        for changes in [
            json!({"extra_jwks_uris": []}),
            json!({"login_action": "upstream", "login_tokens": null, "dpop_proof_lifetime": 300.0}),
            json!({"session_storage": "redis", "redis": {"host": "a"}, "session_redis_host": "b"}),
        ] {
            assert_eq!(translated(&changes).expect("it is served"), plain, "{changes}");
        }
        for (field, value) in [
            ("login_action", json!("response")),
            ("login_tokens", json!(["tokens"])),
            // The defect: an empty list passed for a default that is not empty.
            ("login_tokens", json!([])),
            ("refresh_token_param_type", json!([])),
            ("extra_jwks_uris", json!(["https://a/keys"])),
            ("credential_claim", json!(["jti"])),
            ("forbidden_redirect_uri", json!(["https://a/"])),
            ("client_arg", json!("tenant")),
            ("logout_post_arg", json!("out")),
            ("verify_signature", json!(false)),
        ] {
            let fault = translated(&json!({field: value})).expect_err("refused");
            assert_eq!(fault.field, field);
            assert!(fault.what.contains(field), "{fault}");
        }
    }

    #[test]
    fn places_of_passwords_are_those_of_the_lists() {
        let all = json!(["header", "query", "body"]);
        for (field, kinds, password, client) in [
            ("leeway", json!(0), &all, &all),
            (
                "password_param_type",
                json!(["body", "header"]),
                &json!(["body", "header"]),
                &all,
            ),
            (
                "client_credentials_param_type",
                json!(["query"]),
                &all,
                &json!(["query"]),
            ),
            ("password_param_type", json!([]), &json!([]), &all),
        ] {
            let made = translated(&json!({ field: kinds })).expect("valid");
            assert_eq!(
                (&made["password_locations"], &made["client_credentials_locations"]),
                (password, client),
                "{field}"
            );
        }
    }
}
