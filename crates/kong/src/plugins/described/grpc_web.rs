//! `grpc-web`: browsers in front of gRPC.

use super::{Definition, passing};
use crate::schema::{Default, Field, Kind, Record};

/// The plugin.
pub const DEFINITION: Definition = passing("grpc-web", 3, CONFIG);

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("proto", Kind::String),
    Field::new("pass_stripped_path", Kind::Boolean),
    Field::new("allow_origin_header", Kind::String).or(Default::Text("*")),
];
