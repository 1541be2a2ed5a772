//! Fields that many of these plugins have in common.

use crate::schema::{Check, Default, Field, Kind, Record};

/// A port number.
pub const PORT: &[Check] = &[Check::Between(0, 65_535)];
/// Milliseconds.
pub const TIMEOUT: &[Check] = &[Check::Between(0, 2_147_483_646)];
/// A whole URL.
pub const URL: &[Check] = &[Check::Text(check_url)];

/// How accounts of calls wait for being sent.
pub const QUEUE: Field = Field::new("queue", Kind::Record(&QUEUE_FIELDS)).required();

static QUEUE_FIELDS: Record = Record::of(&[
    Field::new("max_batch_size", Kind::Integer)
        .or(Default::Integer(1))
        .check(&[Check::Between(1, 1_000_000)]),
    Field::new("max_coalescing_delay", Kind::Number)
        .or(Default::Integer(1))
        .check(&[Check::Between(0, 3600)]),
    Field::new("max_entries", Kind::Integer)
        .or(Default::Integer(10_000))
        .check(&[Check::Between(1, 1_000_000)]),
    Field::new("max_bytes", Kind::Integer),
    Field::new("max_retry_time", Kind::Number).or(Default::Integer(60)),
    Field::new("initial_retry_delay", Kind::Number)
        .or(Default::Json("0.01"))
        .check(&[Check::Range(0.001, 1_000_000.0)]),
    Field::new("max_retry_delay", Kind::Number)
        .or(Default::Integer(60))
        .check(&[Check::Range(0.001, 1_000_000.0)]),
    Field::new("concurrency_limit", Kind::Integer)
        .or(Default::Integer(1))
        .check(&[Check::OneOfNumbers(&[-1, 1])]),
]);

/// Fields that code of the administrator adds to accounts of calls.
pub const CUSTOM_FIELDS_BY_LUA: Field = Field::new(
    "custom_fields_by_lua",
    Kind::Map {
        keys: &Field::element(Kind::String),
        values: &Field::element(Kind::String),
    },
);

/// Which headers carry a trace; the format if none did is the plugin's own.
pub const PROPAGATION: Field = Field::new("propagation", Kind::Record(&PROPAGATION_FIELDS)).required();

static PROPAGATION_FIELDS: Record = Record::of(&[
    Field::new(
        "extract",
        Kind::Array(&Field::element(Kind::String).check(&[Check::OneOf(&[
            "gcp", "ot", "w3c", "datadog", "b3", "aws", "jaeger",
        ])])),
    ),
    Field::new("clear", Kind::Array(&Field::element(Kind::String))),
    Field::new(
        "inject",
        Kind::Array(&Field::element(Kind::String).check(&[Check::OneOf(&[
            "preserve",
            "gcp",
            "ot",
            "w3c",
            "datadog",
            "b3",
            "aws",
            "b3-single",
            "jaeger",
        ])])),
    ),
    Field::new("default_format", Kind::String)
        .required()
        .check(&[Check::OneOf(&[
            "gcp",
            "ot",
            "w3c",
            "datadog",
            "b3",
            "aws",
            "b3-single",
            "jaeger",
        ])]),
]);

/// How long a chat may be, in bytes.
pub const MAX_REQUEST_BODY_SIZE: Field = Field::new("max_request_body_size", Kind::Integer)
    .or(Default::Integer(8192))
    .check(&[Check::Above(0)]);
/// Whose form chats have.
pub const LLM_FORMAT: Field = Field::new("llm_format", Kind::String)
    .or(Default::Text("openai"))
    .check(&[Check::OneOf(&["openai", "bedrock", "gemini"])]);

fn check_url(text: &str) -> Result<(), String> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", ""));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match (scheme, host) {
        (_, "") => Err("missing host in url".to_owned()),
        ("", _) => Err("missing scheme in url".to_owned()),
        _ => Ok(()),
    }
}
