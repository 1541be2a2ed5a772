//! `tls-handshake-modifier`: asks clients for a certificate.

use super::{Consumers, Definition, UnsupportedOption};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde_json::{Value, json};

/// The definition of `tls-handshake-modifier`.
pub const DEFINITION: Definition = Definition {
    name: "tls-handshake-modifier",
    priority: 997,
    config: Record::of(&[Field::new("tls_client_certificate", Kind::String)
        .or(Default::Text("REQUEST"))
        .check(&[Check::OneOf(&["REQUEST"])])]),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "client-certificate-request",
    translate,
};

fn translate(_: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    Ok(json!({}))
}
