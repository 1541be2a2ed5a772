//! `udp-log`: an account of every call to a UDP server.

use super::shared::{CUSTOM_FIELDS_BY_LUA, PORT};
use super::{Definition, passing};
use crate::schema::{Default, Field, Kind, Record};

/// The plugin.
pub const DEFINITION: Definition = passing("udp-log", 8, CONFIG);

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("host", Kind::String).required(),
    Field::new("port", Kind::Integer).required().check(PORT),
    Field::new("timeout", Kind::Number).or(Default::Integer(10_000)),
    CUSTOM_FIELDS_BY_LUA,
];
