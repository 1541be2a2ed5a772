//! Upstreams and their targets: fields, and the values that translation reads.

use super::common::{CREATED_AT, ID, PATH, TAGS, UPDATED_AT};
use crate::schema::{
    Check, Default, EntityCheck, Field, FieldTest, Kind, RawFields, Record, Requirement, text,
};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

const HASH_INPUTS: &[&str] = &[
    "none",
    "consumer",
    "ip",
    "header",
    "cookie",
    "path",
    "query_arg",
    "uri_capture",
];

/// The fields of an upstream.
pub static UPSTREAM: Record = Record {
    fields: &[
        ID,
        CREATED_AT,
        Field::new("name", Kind::String)
            .required()
            .check(&[Check::Text(text::upstream_name)])
            .unique(),
        UPDATED_AT,
        Field::new("algorithm", Kind::String)
            .or(Default::Text("round-robin"))
            .check(&[Check::OneOf(&[
                "consistent-hashing",
                "least-connections",
                "round-robin",
                "latency",
            ])]),
        hash_input("hash_on"),
        hash_input("hash_fallback"),
        Field::new("hash_on_header", Kind::String).check(&[Check::Text(text::header_name)]),
        Field::new("hash_fallback_header", Kind::String).check(&[Check::Text(text::header_name)]),
        Field::new("hash_on_cookie", Kind::String).check(&[Check::Text(text::cookie_name)]),
        Field::new("hash_on_cookie_path", Kind::String)
            .or(Default::Text("/"))
            .check(PATH),
        Field::new("hash_on_query_arg", Kind::String),
        Field::new("hash_fallback_query_arg", Kind::String),
        Field::new("hash_on_uri_capture", Kind::String),
        Field::new("hash_fallback_uri_capture", Kind::String),
        Field::new("slots", Kind::Integer)
            .or(Default::Integer(10_000))
            .check(&[Check::Between(10, 65_536)]),
        Field::new("healthchecks", Kind::Record(&HEALTHCHECKS)).required(),
        TAGS,
        Field::new("host_header", Kind::String).check(&[Check::Text(text::host_with_port)]),
        Field::new("client_certificate", Kind::Foreign("certificates")),
        Field::new("use_srv_name", Kind::Boolean).or(Default::Boolean(false)),
    ],
    checks: &[
        needs("hash_on", "header", "hash_on_header"),
        needs("hash_fallback", "header", "hash_fallback_header"),
        needs("hash_on", "cookie", "hash_on_cookie"),
        needs("hash_fallback", "cookie", "hash_on_cookie"),
        falls_back("none", &["none"]),
        falls_back("cookie", &["none"]),
        falls_back(
            "consumer",
            &[
                "none",
                "ip",
                "header",
                "cookie",
                "path",
                "query_arg",
                "uri_capture",
            ],
        ),
        falls_back(
            "ip",
            &[
                "none",
                "consumer",
                "header",
                "cookie",
                "path",
                "query_arg",
                "uri_capture",
            ],
        ),
        falls_back(
            "path",
            &[
                "none",
                "consumer",
                "header",
                "cookie",
                "query_arg",
                "ip",
                "uri_capture",
            ],
        ),
        EntityCheck::Distinct(&["hash_on_header", "hash_fallback_header"]),
        needs("hash_on", "query_arg", "hash_on_query_arg"),
        needs("hash_fallback", "query_arg", "hash_fallback_query_arg"),
        EntityCheck::Distinct(&["hash_on_query_arg", "hash_fallback_query_arg"]),
        needs("hash_on", "uri_capture", "hash_on_uri_capture"),
        needs("hash_fallback", "uri_capture", "hash_fallback_uri_capture"),
        EntityCheck::Distinct(&["hash_on_uri_capture", "hash_fallback_uri_capture"]),
    ],
};

const fn hash_input(name: &'static str) -> Field {
    Field::new(name, Kind::String)
        .or(Default::Text("none"))
        .check(&[Check::OneOf(HASH_INPUTS)])
}

const fn needs(field: &'static str, value: &'static str, then: &'static str) -> EntityCheck {
    EntityCheck::When {
        field,
        is: FieldTest::Equal(value),
        then,
        must: Requirement::BeGiven,
    }
}

const fn falls_back(value: &'static str, to: &'static [&'static str]) -> EntityCheck {
    EntityCheck::When {
        field: "hash_on",
        is: FieldTest::Equal(value),
        then: "hash_fallback",
        must: Requirement::BeOneOf(to),
    }
}

static HEALTHCHECKS: Record = Record::of(&[
    Field::new("active", Kind::Record(&ACTIVE)).required(),
    Field::new("passive", Kind::Record(&PASSIVE)).required(),
    Field::new("threshold", Kind::Number)
        .or(Default::Integer(0))
        .check(&[Check::Between(0, 100)]),
]);

static ACTIVE: Record = Record::of(&[
    Field::new("timeout", Kind::Number)
        .or(Default::Integer(1))
        .check(&[Check::Between(0, 65_535)]),
    Field::new("healthy", Kind::Record(&ACTIVE_HEALTHY)).required(),
    Field::new("unhealthy", Kind::Record(&ACTIVE_UNHEALTHY)).required(),
    Field::new("http_path", Kind::String)
        .or(Default::Text("/"))
        .check(PATH),
    Field::new("https_sni", Kind::String).check(&[Check::Text(text::sni)]),
    Field::new("https_verify_certificate", Kind::Boolean)
        .required()
        .or(Default::Boolean(true)),
    Field::new("concurrency", Kind::Integer)
        .or(Default::Integer(10))
        .check(&[Check::Between(1, 2_147_483_648)]),
    CHECK_TYPE,
    Field::new(
        "headers",
        Kind::Map {
            keys: &Field::element(Kind::String).check(&[Check::Text(text::header_name)]),
            values: &Field::element(Kind::Array(
                &Field::element(Kind::String).check(&[Check::Text(text::header_value)]),
            )),
        },
    ),
]);

static ACTIVE_HEALTHY: Record = Record::of(&[counter("successes"), statuses(&[200, 302]), INTERVAL]);

static ACTIVE_UNHEALTHY: Record = Record::of(&[
    counter("timeouts"),
    counter("http_failures"),
    INTERVAL,
    statuses(&[429, 404, 500, 501, 502, 503, 504, 505]),
    counter("tcp_failures"),
]);

static PASSIVE: Record = Record::of(&[
    Field::new("healthy", Kind::Record(&PASSIVE_HEALTHY)).required(),
    Field::new("unhealthy", Kind::Record(&PASSIVE_UNHEALTHY)).required(),
    CHECK_TYPE,
]);

static PASSIVE_HEALTHY: Record = Record::of(&[
    statuses(&[
        200, 201, 202, 203, 204, 205, 206, 207, 208, 226, 300, 301, 302, 303, 304, 305, 306, 307, 308,
    ]),
    counter("successes"),
]);

static PASSIVE_UNHEALTHY: Record = Record::of(&[
    counter("timeouts"),
    counter("http_failures"),
    statuses(&[429, 500, 503]),
    counter("tcp_failures"),
]);

const CHECK_TYPE: Field = Field::new("type", Kind::String)
    .or(Default::Text("http"))
    .check(&[Check::OneOf(&["tcp", "http", "https", "grpc", "grpcs"])]);

const INTERVAL: Field = Field::new("interval", Kind::Number)
    .or(Default::Integer(0))
    .check(&[Check::Between(0, 65_535)]);

const fn counter(name: &'static str) -> Field {
    Field::new(name, Kind::Integer)
        .or(Default::Integer(0))
        .check(&[Check::Between(0, 255)])
}

const fn statuses(default: &'static [i64]) -> Field {
    Field::new("http_statuses", Kind::Array(&STATUS)).or(Default::Integers(default))
}

const STATUS: Field = Field::element(Kind::Integer).check(&[Check::Between(100, 999)]);

/// The fields of a target.
pub static TARGET: Record = Record::of(&[
    ID,
    // With milliseconds.
    Field::new("created_at", Kind::Number).auto(),
    Field::new("updated_at", Kind::Number).auto(),
    Field::new("upstream", Kind::Foreign("upstreams")).required(),
    Field::new("target", Kind::String)
        .required()
        .check(&[Check::Text(text::target)]),
    Field::new("weight", Kind::Integer)
        .or(Default::Integer(100))
        .check(&[Check::Between(0, 65_535)]),
    TAGS,
]);

/// The algorithm decides whether anything is hashed, and what is hashed about the algorithm.
pub fn fit_defaults(upstream: &mut RawFields<'_>) {
    let hashes_nothing = matches!(
        upstream.get("algorithm").and_then(Value::as_str),
        Some("least-connections" | "latency")
    );
    if hashes_nothing {
        upstream.insert("hash_on", Value::Null);
    }
    match upstream.get("hash_on") {
        Some(Value::Null) => upstream.insert("hash_on", "none".into()),
        Some(Value::String(input)) => {
            let algorithm = match input.as_str() {
                "none" => "round-robin",
                _ => "consistent-hashing",
            };
            upstream.insert("algorithm", algorithm.into());
        }
        _ => {}
    }
}

/// An upstream with its defaults.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct Upstream {
    pub id: Uuid,
    pub name: String,
    pub algorithm: String,
    pub hash_on: String,
    pub hash_fallback: String,
    pub hash_on_header: Option<String>,
    pub hash_fallback_header: Option<String>,
    pub hash_on_cookie: Option<String>,
    pub hash_on_cookie_path: Option<String>,
    pub hash_on_query_arg: Option<String>,
    pub hash_fallback_query_arg: Option<String>,
    pub hash_on_uri_capture: Option<String>,
    pub hash_fallback_uri_capture: Option<String>,
    pub healthchecks: Value,
    pub host_header: Option<String>,
    pub client_certificate: Option<Uuid>,
}

/// A target with its defaults.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct Target {
    pub id: Uuid,
    pub upstream: Uuid,
    pub target: String,
    pub weight: u32,
}
