//! `session`: sessions for those whom another plugin recognised.

use super::{Consumers, Definition, Shorthand, UnsupportedOption, identity, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::cookie::SameSite;
use weir_plugins::identity::GROUPS_HEADER;
use weir_plugins::session::Config;
use weir_plugins::session_cookie::SessionConfig;

/// The definition of `session`.
pub const DEFINITION: Definition = Definition {
    name: "session",
    priority: 1900,
    config: CONFIG,
    checks: &[],
    shorthands: SHORTHANDS,
    on_consumers: false,
    catalogue_name: "session",
    translate,
};

/// Names from before version 3.2 of the original.
const SHORTHANDS: &[Shorthand] = &[
    ("cookie_lifetime", "", "rolling_timeout"),
    ("cookie_idletime", "", "idling_timeout"),
    ("cookie_renew", "", ""),
    ("cookie_discard", "", "stale_ttl"),
    ("cookie_samesite", "", "cookie_same_site"),
    ("cookie_httponly", "", "cookie_http_only"),
    ("cookie_persistent", "", "remember"),
];

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("secret", Kind::String).or(Default::Text(STANDARD_SECRET)),
    Field::new("storage", Kind::String)
        .or(Default::Text("cookie"))
        .check(&[Check::OneOf(&["cookie", "kong"])]),
    Field::new("audience", Kind::String).or(Default::Text("default")),
    Field::new("idling_timeout", Kind::Number).or(Default::Integer(900)),
    Field::new("rolling_timeout", Kind::Number).or(Default::Integer(3600)),
    Field::new("absolute_timeout", Kind::Number).or(Default::Integer(86_400)),
    Field::new("stale_ttl", Kind::Number).or(Default::Integer(10)),
    Field::new("cookie_name", Kind::String).or(Default::Text("session")),
    Field::new("cookie_path", Kind::String).or(Default::Text("/")),
    Field::new("cookie_domain", Kind::String),
    Field::new("cookie_same_site", Kind::String)
        .or(Default::Text("Strict"))
        .check(&[Check::OneOf(&["Strict", "Lax", "None", "Default"])]),
    Field::new("cookie_http_only", Kind::Boolean).or(Default::Boolean(true)),
    Field::new("cookie_secure", Kind::Boolean).or(Default::Boolean(true)),
    Field::new("remember", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("remember_cookie_name", Kind::String).or(Default::Text("remember")),
    Field::new("remember_rolling_timeout", Kind::Number).or(Default::Integer(604_800)),
    Field::new("remember_absolute_timeout", Kind::Number).or(Default::Integer(2_592_000)),
    Field::new(
        "response_headers",
        Kind::Set(&Field::element(Kind::String).check(&[Check::OneOf(&[
            "id",
            "audience",
            "subject",
            "timeout",
            "idling-timeout",
            "rolling-timeout",
            "absolute-timeout",
        ])])),
    ),
    Field::new(
        "request_headers",
        Kind::Set(&Field::element(Kind::String).check(&[Check::OneOf(&[
            "id",
            "audience",
            "subject",
            "timeout",
            "idling-timeout",
            "rolling-timeout",
            "absolute-timeout",
        ])])),
    ),
    Field::new("read_body_for_logout", Kind::Boolean).or(Default::Boolean(false)),
    Field::new(
        "logout_methods",
        Kind::Set(&Field::element(Kind::String).check(&[Check::OneOf(&["GET", "POST", "DELETE"])])),
    )
    .or(Default::Texts(&["POST", "DELETE"])),
    Field::new("logout_query_arg", Kind::String).or(Default::Text("session_logout")),
    Field::new("logout_post_arg", Kind::String).or(Default::Text("session_logout")),
];

/// The stand-in for the secret that the original makes up. Everybody knows it, so it seals nothing.
const STANDARD_SECRET: &str = "JWTZ0PkEqnEJkbnNb36YXCfCZ3zz9uzsKKpneCns3P4z";

#[derive(Deserialize)]
struct Options {
    secret: String,
    audience: String,
    idling_timeout: f64,
    rolling_timeout: f64,
    absolute_timeout: f64,
    cookie_name: String,
    cookie_path: String,
    cookie_domain: Option<String>,
    cookie_same_site: SameSite,
    cookie_http_only: bool,
    cookie_secure: bool,
    remember: bool,
    remember_rolling_timeout: f64,
    remember_absolute_timeout: f64,
    response_headers: Option<Vec<String>>,
    request_headers: Option<Vec<String>>,
    read_body_for_logout: bool,
    logout_methods: Vec<String>,
    logout_query_arg: String,
    logout_post_arg: String,
}

fn translate(config: &Value, consumers: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: Options = typed(config)?;
    let refuse = |field, what: &str| {
        Err(UnsupportedOption {
            field,
            what: what.to_owned(),
        })
    };
    if config.secret == STANDARD_SECRET {
        return refuse("secret", "a session without a secret of its own");
    }
    for (field, headers) in [
        ("response_headers", &config.response_headers),
        ("request_headers", &config.request_headers),
    ] {
        if headers.iter().flatten().any(|name| name != "id") {
            return refuse(field, "a header about the session other than \"id\"");
        }
    }
    let has_id = |headers: &Option<Vec<String>>| headers.as_ref().is_some_and(|it| !it.is_empty());
    let (rolling, absolute) = match config.remember {
        true => (config.remember_rolling_timeout, config.remember_absolute_timeout),
        false => (config.rolling_timeout, config.absolute_timeout),
    };
    let session = SessionConfig {
        audience: config.audience,
        cookie_name: config.cookie_name,
        cookie_path: config.cookie_path,
        cookie_domain: config.cookie_domain,
        cookie_same_site: config.cookie_same_site,
        cookie_http_only: config.cookie_http_only,
        cookie_secure: config.cookie_secure,
        persistent: config.remember,
        idling_timeout_seconds: if config.remember {
            0
        } else {
            config.idling_timeout as u64
        },
        rolling_timeout_seconds: rolling as u64,
        absolute_timeout_seconds: absolute as u64,
        ..SessionConfig::new(config.secret)
    };
    Ok(untyped(Config {
        logout_query_argument: Some(config.logout_query_arg),
        logout_body_argument: config.read_body_for_logout.then_some(config.logout_post_arg),
        groups_header: Some(GROUPS_HEADER.to_owned()),
        logout_methods: config.logout_methods,
        upstream_id: has_id(&config.request_headers),
        client_id: has_id(&config.response_headers),
        identity: identity(None, true, consumers),
        ..Config::new(session)
    }))
}
