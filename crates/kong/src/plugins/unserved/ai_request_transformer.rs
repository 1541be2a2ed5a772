//! `ai-request-transformer`: has a language model change requests.

use super::llm::{LLM, check_chat};
use super::shared::{MAX_REQUEST_BODY_SIZE, PORT};
use super::{Definition, blocking};
use crate::schema::{Check, Default, EntityCheck, Field, Kind, Record, text};

/// The definition of `ai-request-transformer`.
pub const DEFINITION: Definition = blocking("ai-request-transformer", 777, CONFIG)
    .with_checks(&[
        EntityCheck::Test(check_chat),
        EntityCheck::MutuallyRequired(&["config.http_proxy_host", "config.http_proxy_port"]),
        EntityCheck::MutuallyRequired(&["config.https_proxy_host", "config.https_proxy_port"]),
    ])
    .never_on_consumers();

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("prompt", Kind::String).required(),
    Field::new("transformation_extract_pattern", Kind::String),
    Field::new("http_timeout", Kind::Integer)
        .required()
        .or(Default::Integer(60_000)),
    Field::new("https_verify", Kind::Boolean)
        .required()
        .or(Default::Boolean(true)),
    MAX_REQUEST_BODY_SIZE,
    Field::new("http_proxy_host", Kind::String).check(&[Check::Text(text::host)]),
    Field::new("http_proxy_port", Kind::Integer).check(PORT),
    Field::new("https_proxy_host", Kind::String).check(&[Check::Text(text::host)]),
    Field::new("https_proxy_port", Kind::Integer).check(PORT),
    Field::new("llm", Kind::Record(&LLM)),
];
