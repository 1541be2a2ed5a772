//! `session`: sessions for those whom another plugin recognised.

use super::{Definition, Shorthand, refusing};
use crate::schema::{Check, Default, Field, Kind, Record};

/// The plugin.
pub const DEFINITION: Definition = refusing("session", 1900, CONFIG)
    .with_shorthands(SHORTHANDS)
    .never_on_consumers();

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
    Field::new("secret", Kind::String).or(Default::Text("JWTZ0PkEqnEJkbnNb36YXCfCZ3zz9uzsKKpneCns3P4z")),
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
