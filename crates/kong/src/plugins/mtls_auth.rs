//! `mtls-auth`: recognises callers by the certificate of their connection. What it has in common with `header-cert-auth` is
//! here too.

use super::enterprise_fields::flag;
use super::{Consumers, Definition, UnsupportedOption, identity, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record, joined};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::consumer_names::ConsumerName;
use weir_plugins::http_rules::HttpRules;
use weir_plugins::mtls_auth::{CertificateGroup, Config, Revocation, Source};

/// The definition of `mtls-auth`.
pub const DEFINITION: Definition = Definition {
    name: "mtls-auth",
    priority: 1_600,
    config: Record::of(FIELDS),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "mtls-auth",
    translate,
};

const FIELDS: &[Field] = &joined::<16>(&[&FIRST, &[flag("send_ca_dn", false)], &LAST]);

/// The fields with which both plugins begin.
pub(super) const FIRST: [Field; 10] = [
    Field::new("anonymous", Kind::String),
    Field::new(
        "consumer_by",
        Kind::Array(&Field::element(Kind::String).check(&[Check::OneOf(&["username", "custom_id"])])),
    )
    .or(Default::Texts(&["custom_id", "username"])),
    Field::new("ca_certificates", Kind::Array(&Field::element(Kind::Uuid))).required(),
    Field::new("cache_ttl", Kind::Number)
        .required()
        .or(Default::Integer(60)),
    Field::new("skip_consumer_lookup", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    flag("allow_partial_chain", false),
    Field::new("authenticated_group_by", Kind::String)
        .or(Default::Text("CN"))
        .check(&[Check::OneOf(&["CN", "DN"])]),
    Field::new("revocation_check_mode", Kind::String)
        .or(Default::Text("IGNORE_CA_ERROR"))
        .check(&[Check::OneOf(&["SKIP", "IGNORE_CA_ERROR", "STRICT"])]),
    Field::new("http_timeout", Kind::Number).or(Default::Integer(30_000)),
    Field::new("cert_cache_ttl", Kind::Number).or(Default::Integer(60_000)),
];

/// The fields that both plugins have after these.
pub(super) const LAST: [Field; 5] = [
    Field::new("http_proxy_host", Kind::String),
    Field::new("http_proxy_port", Kind::Integer).check(&[Check::Between(0, 65_535)]),
    Field::new("https_proxy_host", Kind::String),
    Field::new("https_proxy_port", Kind::Integer).check(&[Check::Between(0, 65_535)]),
    Field::new("default_consumer", Kind::String),
];

#[derive(Deserialize)]
struct Options {
    anonymous: Option<String>,
    consumer_by: Option<Vec<String>>,
    ca_certificates: Vec<String>,
    skip_consumer_lookup: bool,
    authenticated_group_by: Option<String>,
    allow_partial_chain: bool,
    revocation_check_mode: String,
    http_timeout: f64,
    cert_cache_ttl: f64,
    #[serde(default)]
    send_ca_dn: bool,
    http_proxy_host: Option<String>,
    http_proxy_port: Option<u16>,
    default_consumer: Option<String>,
}

/// The common part of both plugins.
pub(super) fn common(
    config: &Value,
    source: Source,
    consumers: &Consumers<'_>,
) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    if options.send_ca_dn {
        return Err(UnsupportedOption {
            field: "send_ca_dn",
            what: "naming the authorities in the handshake".to_owned(),
        });
    }
    let ids = options.ca_certificates.iter();
    // With none that exists, no certificate is good.
    let authorities = ids.filter_map(|id| (consumers.authority)(id)).collect();
    let proxy = options.http_proxy_host.zip(options.http_proxy_port);
    let names = options.consumer_by.unwrap_or_default();
    Ok(untyped(Config {
        source,
        partial_chain: options.allow_partial_chain,
        consumer_by: names
            .iter()
            .filter(|_| !options.skip_consumer_lookup)
            .map(|name| match name.as_str() {
                "custom_id" => ConsumerName::CustomId,
                _ => ConsumerName::Username,
            })
            .collect(),
        consumer_required: !options.skip_consumer_lookup,
        group: options.authenticated_group_by.map(|by| match by.as_str() {
            "DN" => CertificateGroup::Subject,
            _ => CertificateGroup::CommonName,
        }),
        default_consumer: options.default_consumer,
        revocation: match options.revocation_check_mode.as_str() {
            "SKIP" => Revocation::Skip,
            "STRICT" => Revocation::Strict,
            _ => Revocation::Lenient,
        },
        cache_seconds: (options.cert_cache_ttl / 1_000.0) as u64,
        http: HttpRules {
            timeout_ms: (options.http_timeout as u64).max(1),
            proxy: proxy.map(|(host, port)| format!("http://{host}:{port}")),
            ..HttpRules::default()
        },
        identity: identity(options.anonymous.as_deref(), true, consumers),
        ..Config::new(authorities)
    }))
}

fn translate(config: &Value, consumers: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    common(config, Source::Handshake, consumers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config() -> Value {
        json!({
            "consumer_by": ["custom_id", "username"], "ca_certificates": ["known", "unknown"],
            "skip_consumer_lookup": true, "allow_partial_chain": false, "revocation_check_mode": "STRICT",
            "http_timeout": 1000, "cert_cache_ttl": 60_000, "send_ca_dn": false,
            "http_proxy_host": "proxy.test", "http_proxy_port": 3128, "anonymous": "guest",
        })
    }

    #[test]
    fn authorities_are_found_by_their_ids() {
        let known = Consumers {
            find: &|name| Some(format!("id of {name}")),
            authority: &|id| (id == "known").then(|| "PEM".to_owned()),
            ..Consumers::NONE
        };
        let made = translate(&config(), &known).expect("it is served");
        assert_eq!(made["authorities"], json!(["PEM"]));
        assert_eq!(
            (&made["revocation"], &made["cache_seconds"]),
            (&json!("strict"), &json!(60))
        );
        assert_eq!(
            (&made["consumer_required"], &made["source"]),
            (&json!(false), &json!("handshake"))
        );
        assert_eq!(made["http"]["proxy"], json!("http://proxy.test:3128"));
        assert_eq!(made["identity"]["anonymous"], json!("id of guest"));
        let mut named = config();
        named["send_ca_dn"] = json!(true);
        assert_eq!(
            translate(&named, &known).expect_err("refused").field,
            "send_ca_dn"
        );
    }

    #[test]
    fn without_an_authority_no_certificate_is_good() {
        let made = translate(&config(), &Consumers::NONE).expect("it is served");
        assert_eq!(made["authorities"], json!([]));
    }
}
