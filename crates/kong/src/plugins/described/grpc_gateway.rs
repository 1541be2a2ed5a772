//! `grpc-gateway`: REST in front of gRPC, by a .proto file.

use super::{Definition, passing};
use crate::schema::{Field, Kind, Record};

/// The plugin.
pub const DEFINITION: Definition = passing("grpc-gateway", 998, CONFIG);

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[Field::new("proto", Kind::String)];
