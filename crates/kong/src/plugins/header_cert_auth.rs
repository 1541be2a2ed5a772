//! `header-cert-auth`: recognises callers by a certificate that a proxy in front sends in a header.

use super::enterprise_fields::flag;
use super::mtls_auth::{FIRST, LAST, common};
use super::{Consumers, Definition, UnsupportedOption, typed};
use crate::schema::{Check, Field, Kind, Record, joined};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::mtls_auth::{HeaderEncoding, HeaderSource, Source};

/// The definition of `header-cert-auth`.
pub const DEFINITION: Definition = Definition {
    name: "header-cert-auth",
    priority: 1_009,
    config: Record::of(FIELDS),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "mtls-auth",
    translate,
};

const FIELDS: &[Field] = &joined::<18>(&[
    &FIRST,
    &LAST,
    &[
        Field::new("certificate_header_name", Kind::String).required(),
        Field::new("certificate_header_format", Kind::String)
            .required()
            .check(&[Check::OneOf(&["base64_encoded", "url_encoded"])]),
        flag("secure_source", true),
    ],
]);

#[derive(Deserialize)]
struct Options {
    certificate_header_name: String,
    certificate_header_format: String,
    secure_source: bool,
}

/// The peers that are believed with `secure_source`. The original's list of trusted addresses is not in documents.
const OWN_HOST: [&str; 2] = ["127.0.0.0/8", "::1/128"];

fn translate(config: &Value, consumers: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    let networks: &[&str] = match options.secure_source {
        true => &OWN_HOST,
        false => &["0.0.0.0/0", "::/0"],
    };
    let source = Source::Header(HeaderSource {
        name: options.certificate_header_name,
        encoding: match options.certificate_header_format.as_str() {
            "url_encoded" => HeaderEncoding::Url,
            _ => HeaderEncoding::Base64,
        },
        trusted: networks.iter().filter_map(|net| net.parse().ok()).collect(),
    });
    common(config, source, consumers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_own_host_is_believed_by_default() {
        for (secure, trusted) in [
            (true, json!(["127.0.0.0/8", "::1/128"])),
            (false, json!(["0.0.0.0/0", "::/0"])),
        ] {
            let config = json!({
                "ca_certificates": [], "skip_consumer_lookup": false, "allow_partial_chain": false,
                "revocation_check_mode": "SKIP", "http_timeout": 1, "cert_cache_ttl": 1,
                "certificate_header_name": "X-Cert", "certificate_header_format": "url_encoded",
                "secure_source": secure,
            });
            let made = translate(&config, &Consumers::NONE).expect("it is served");
            let source = &made["source"]["header"];
            assert_eq!(
                (&source["name"], &source["encoding"]),
                (&json!("X-Cert"), &json!("url"))
            );
            assert_eq!(source["trusted"], trusted, "{secure}");
        }
    }
}
