//! `tcp-log`: an account of every call to a TCP server.

use super::shared::{CUSTOM_FIELDS_BY_LUA, PORT};
use super::{Definition, passing};
use crate::schema::{Default, Field, Kind, Record};

/// The plugin.
pub const DEFINITION: Definition = passing("tcp-log", 7, CONFIG);

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("host", Kind::String).required(),
    Field::new("port", Kind::Integer).required().check(PORT),
    Field::new("timeout", Kind::Number).or(Default::Integer(10_000)),
    Field::new("keepalive", Kind::Number).or(Default::Integer(60_000)),
    Field::new("tls", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("tls_sni", Kind::String),
    CUSTOM_FIELDS_BY_LUA,
];
