//! `tls-metadata-headers`: sends the client's certificate to upstreams.

use super::enterprise_fields::flag;
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::client_certificate_headers::Config;

/// The definition of `tls-metadata-headers`.
pub const DEFINITION: Definition = Definition {
    name: "tls-metadata-headers",
    priority: 996,
    config: Record::of(FIELDS),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "client-certificate-headers",
    translate,
};

const FIELDS: &[Field] = &[
    flag("inject_client_cert_details", false),
    header("client_cert_header_name", "X-Client-Cert"),
    header("client_serial_header_name", "X-Client-Cert-Serial"),
    header("client_cert_issuer_dn_header_name", "X-Client-Cert-Issuer-DN"),
    header("client_cert_subject_dn_header_name", "X-Client-Cert-Subject-DN"),
    header("client_cert_fingerprint_header_name", "X-Client-Cert-Fingerprint"),
];

const fn header(name: &'static str, default: &'static str) -> Field {
    Field::new(name, Kind::String)
        .required()
        .or(Default::Text(default))
}

#[derive(Deserialize)]
struct Options {
    inject_client_cert_details: bool,
    client_cert_header_name: String,
    client_serial_header_name: String,
    client_cert_issuer_dn_header_name: String,
    client_cert_subject_dn_header_name: String,
    client_cert_fingerprint_header_name: String,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    Ok(untyped(Config {
        send_headers: options.inject_client_cert_details,
        certificate: options.client_cert_header_name,
        serial: options.client_serial_header_name,
        issuer: options.client_cert_issuer_dn_header_name,
        subject: options.client_cert_subject_dn_header_name,
        fingerprint: options.client_cert_fingerprint_header_name,
    }))
}
