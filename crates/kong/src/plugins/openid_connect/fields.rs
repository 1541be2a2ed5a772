//! The fields of Kong's `openid-connect` that are served. Others are served with their default only.

use super::default_fields::{ONLY_DEFAULTS, STORES};
use crate::schema::{Check, Default, Field, Kind, joined};

/// All fields.
pub const FIELDS: &[Field] =
    &joined::<{ SERVED.len() + ONLY_DEFAULTS.len() + STORES.len() }>(&[SERVED, ONLY_DEFAULTS, STORES]);

const TEXTS: Kind = Kind::Array(&Field::element(Kind::String));

pub(super) const fn texts(name: &'static str) -> Field {
    Field::new(name, TEXTS)
}

pub(super) const fn text(name: &'static str) -> Field {
    Field::new(name, Kind::String)
}

pub(super) const fn flag(name: &'static str, default: bool) -> Field {
    Field::new(name, Kind::Boolean)
        .required()
        .or(Default::Boolean(default))
}

pub(super) const fn number(name: &'static str, default: i64) -> Field {
    Field::new(name, Kind::Number).or(Default::Integer(default))
}

pub(super) const fn claim(name: &'static str, default: &'static [&'static str]) -> Field {
    Field::new(name, TEXTS).required().or(Default::Texts(default))
}

const GRANT_LOCATIONS: &[&str] = &["header", "query", "body"];

const fn grant_locations(name: &'static str) -> Field {
    const LOCATIONS: Kind =
        Kind::Array(&Field::element(Kind::String).check(&[Check::OneOf(GRANT_LOCATIONS)]));
    Field::new(name, LOCATIONS).or(Default::Texts(GRANT_LOCATIONS))
}

const AUTH_METHODS: &[&str] = &[
    "password",
    "client_credentials",
    "authorization_code",
    "bearer",
    "introspection",
    "userinfo",
    "kong_oauth2",
    "refresh_token",
    "session",
];

const CLIENT_AUTH: &[Check] = &[Check::OneOf(&[
    "client_secret_basic",
    "client_secret_post",
    "client_secret_jwt",
    "private_key_jwt",
    "tls_client_auth",
    "self_signed_tls_client_auth",
    "none",
])];

const SERVED: &[Field] = &[
    text("issuer").required(),
    Field::new(
        "auth_methods",
        Kind::Array(&Field::element(Kind::String).check(&[Check::OneOf(AUTH_METHODS)])),
    )
    .required()
    .or(Default::Texts(AUTH_METHODS)),
    texts("client_id"),
    texts("client_secret"),
    Field::new(
        "client_auth",
        Kind::Array(&Field::element(Kind::String).check(CLIENT_AUTH)),
    ),
    texts("scopes").or(Default::Texts(&["openid"])),
    texts("audience"),
    texts("redirect_uri"),
    texts("issuers_allowed"),
    texts("scopes_required"),
    claim("scopes_claim", &["scope"]),
    texts("audience_required"),
    claim("audience_claim", &["aud"]),
    texts("groups_required"),
    claim("groups_claim", &["groups"]),
    texts("authenticated_groups_claim"),
    texts("roles_required"),
    claim("roles_claim", &["roles"]),
    texts("claims_forbidden"),
    texts("consumer_claim"),
    Field::new(
        "consumer_by",
        Kind::Array(&Field::element(Kind::String).check(&[Check::OneOf(&["id", "username", "custom_id"])])),
    )
    .or(Default::Texts(&["username", "custom_id"])),
    flag("consumer_optional", false),
    text("anonymous"),
    flag("run_on_preflight", true),
    Field::new(
        "bearer_token_param_type",
        Kind::Array(
            &Field::element(Kind::String).check(&[Check::OneOf(&["header", "cookie", "query", "body"])]),
        ),
    )
    .or(Default::Texts(&["header", "query", "body"])),
    text("bearer_token_cookie_name"),
    grant_locations("password_param_type"),
    grant_locations("client_credentials_param_type"),
    text("upstream_access_token_header").or(Default::Text("authorization:bearer")),
    text("upstream_id_token_header"),
    text("upstream_refresh_token_header"),
    text("upstream_user_info_header"),
    text("upstream_introspection_header"),
    text("upstream_session_id_header"),
    texts("upstream_headers_claims"),
    texts("upstream_headers_names"),
    text("downstream_access_token_header"),
    text("downstream_id_token_header"),
    text("downstream_refresh_token_header"),
    text("downstream_user_info_header"),
    text("downstream_introspection_header"),
    text("downstream_session_id_header"),
    texts("downstream_headers_claims"),
    texts("downstream_headers_names"),
    text("introspection_endpoint"),
    text("introspection_endpoint_auth_method").check(CLIENT_AUTH),
    texts("authorization_query_args_names"),
    texts("authorization_query_args_values"),
    texts("token_post_args_names"),
    texts("token_post_args_values"),
    text("pushed_authorization_request_endpoint"),
    Field::new("require_pushed_authorization_requests", Kind::Boolean),
    Field::new("require_proof_key_for_code_exchange", Kind::Boolean),
    Field::new(
        "logout_methods",
        Kind::Array(&Field::element(Kind::String).check(&[Check::OneOf(&["POST", "GET", "DELETE"])])),
    )
    .or(Default::Texts(&["POST", "DELETE"])),
    text("logout_query_arg"),
    text("logout_uri_suffix"),
    flag("logout_revoke", false),
    texts("logout_redirect_uri"),
    flag("refresh_tokens", true),
    flag("verify_nonce", true),
    number("leeway", 0),
    number("cache_ttl", 3_600),
    number("timeout", 10_000),
    flag("keepalive", true),
    flag("ssl_verify", true),
    text("http_proxy"),
    text("http_proxy_authorization"),
    text("https_proxy"),
    text("https_proxy_authorization"),
    flag("display_errors", false),
    flag("hide_credentials", false),
    flag("cache_tokens", true),
    flag("cache_introspection", true),
    flag("cache_user_info", true),
    text("introspection_hint").or(Default::Text("access_token")),
    texts("introspection_headers_client"),
    text("unauthorized_error_message").or(Default::Text("Unauthorized")),
    text("forbidden_error_message").or(Default::Text("Forbidden")),
    text("session_secret"),
    text("session_storage")
        .or(Default::Text("cookie"))
        .check(&[Check::OneOf(&["cookie", "memcache", "memcached", "redis"])]),
    text("session_audience").or(Default::Text("default")),
    text("session_cookie_name").or(Default::Text("session")),
    text("session_cookie_path").or(Default::Text("/")),
    text("session_cookie_domain"),
    text("session_cookie_same_site")
        .or(Default::Text("Lax"))
        .check(&[Check::OneOf(&["Strict", "Lax", "None", "Default"])]),
    flag("session_cookie_http_only", true),
    Field::new("session_cookie_secure", Kind::Boolean),
    flag("session_remember", false),
    number("session_idling_timeout", 900),
    number("session_rolling_timeout", 3_600),
    number("session_absolute_timeout", 86_400),
];
