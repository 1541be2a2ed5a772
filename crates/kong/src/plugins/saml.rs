//! `saml`: callers log in at a SAML identity provider.

use super::enterprise_fields::flag;
use super::session_options::SessionOptions;
use super::{Consumers, Definition, UnsupportedOption, identity, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::consumer_names::ConsumerName;
use weir_plugins::cookie::SameSite;
use weir_plugins::saml::{
    Binding, Config, ConsumerRules, HashName, Provider, RequestRules, ResponseRules, Signing, Unauthenticated,
};

/// The definition of `saml`.
pub const DEFINITION: Definition = Definition {
    name: "saml",
    priority: 1_010,
    config: Record::of(FIELDS),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "saml",
    translate,
};

const fn text(name: &'static str) -> Field {
    Field::new(name, Kind::String)
}

const fn number(name: &'static str, default: i64) -> Field {
    Field::new(name, Kind::Number).or(Default::Integer(default))
}

const fn hash(name: &'static str, names: &'static [Check]) -> Field {
    text(name).or(Default::Text("SHA256")).check(names)
}

const SIGNATURES: &[Check] = &[Check::OneOf(&["SHA256", "SHA384", "SHA512"])];
const DIGESTS: &[Check] = &[Check::OneOf(&["SHA256", "SHA1"])];
const HEADERS: Kind = Kind::Set(&Field::element(Kind::String).check(&[Check::OneOf(&[
    "id",
    "audience",
    "subject",
    "timeout",
    "idling-timeout",
    "rolling-timeout",
    "absolute-timeout",
])]));

const FIELDS: &[Field] = &[
    text("assertion_consumer_path")
        .required()
        .check(&[Check::Text(crate::schema::text::path)]),
    text("idp_sso_url").required(),
    text("idp_certificate"),
    text("response_encryption_key"),
    text("request_signing_key"),
    text("request_signing_certificate"),
    hash("response_signature_algorithm", SIGNATURES),
    hash("request_signature_algorithm", SIGNATURES),
    hash("response_digest_algorithm", DIGESTS),
    hash("request_digest_algorithm", DIGESTS),
    text("issuer").required(),
    text("nameid_format")
        .or(Default::Text("EmailAddress"))
        .check(&[Check::OneOf(&[
            "Unspecified",
            "EmailAddress",
            "Persistent",
            "Transient",
        ])]),
    flag("validate_assertion_signature", true),
    text("anonymous"),
    text("session_secret").required().check(&[Check::Text(secret)]),
    text("session_audience").or(Default::Text("default")),
    text("session_cookie_name").or(Default::Text("session")),
    flag("session_remember", false),
    text("session_remember_cookie_name").or(Default::Text("remember")),
    number("session_remember_rolling_timeout", 604_800),
    number("session_remember_absolute_timeout", 2_592_000),
    number("session_idling_timeout", 900),
    number("session_rolling_timeout", 3_600),
    number("session_absolute_timeout", 86_400),
    text("session_cookie_path").or(Default::Text("/")),
    text("session_cookie_domain"),
    text("session_cookie_same_site")
        .or(Default::Text("Lax"))
        .check(&[Check::OneOf(&["Strict", "Lax", "None", "Default"])]),
    flag("session_cookie_http_only", true),
    Field::new("session_cookie_secure", Kind::Boolean),
    Field::new("session_request_headers", HEADERS),
    Field::new("session_response_headers", HEADERS),
    text("session_storage")
        .or(Default::Text("cookie"))
        .check(&[Check::OneOf(&["cookie", "memcache", "memcached", "redis"])]),
];

/// 32 characters of the Base64 alphabet.
fn secret(text: &str) -> Result<(), String> {
    let is_known = |it: char| it.is_ascii_alphanumeric() || matches!(it, '/' | '_' | '+');
    match (text.len(), text.chars().all(is_known)) {
        (32, true) => Ok(()),
        (32, false) => Err("invalid value: ".to_owned() + text),
        _ => Err("length must be 32".to_owned()),
    }
}

#[derive(Deserialize)]
struct Options {
    assertion_consumer_path: String,
    idp_sso_url: String,
    idp_certificate: Option<String>,
    response_encryption_key: Option<String>,
    request_signing_key: Option<String>,
    request_signing_certificate: Option<String>,
    request_signature_algorithm: String,
    response_digest_algorithm: String,
    request_digest_algorithm: String,
    issuer: String,
    nameid_format: String,
    validate_assertion_signature: bool,
    anonymous: Option<String>,
    session_secret: String,
    session_request_headers: Option<Vec<String>>,
    session_response_headers: Option<Vec<String>>,
    #[serde(flatten)]
    session: SessionOptions,
}

fn hash_name(name: &str) -> HashName {
    match name {
        "SHA1" => HashName::Sha1,
        "SHA384" => HashName::Sha384,
        "SHA512" => HashName::Sha512,
        _ => HashName::Sha256,
    }
}

fn name_id_format(name: &str) -> &'static str {
    match name {
        "Unspecified" => "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified",
        "Persistent" => "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
        "Transient" => "urn:oasis:names:tc:SAML:2.0:nameid-format:transient",
        _ => "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress",
    }
}

/// An option that would let in answers that are not signed, or that no browser can use.
fn refused(options: &Options) -> Option<UnsupportedOption> {
    let unsupported = |field, what: &str| {
        Some(UnsupportedOption {
            field,
            what: what.to_owned(),
        })
    };
    if !options.validate_assertion_signature {
        return unsupported(
            "validate_assertion_signature",
            "answers whose signature is not checked",
        );
    }
    if options.idp_certificate.is_none() {
        return unsupported(
            "idp_certificate",
            "answers without a certificate to check them with",
        );
    }
    if options.session.session_cookie_same_site == SameSite::Strict {
        return unsupported(
            "session_cookie_same_site",
            "a session whose cookie browsers do not send when they come back from the provider",
        );
    }
    let has_headers = |headers: &Option<Vec<String>>| headers.as_ref().is_some_and(|it| !it.is_empty());
    if has_headers(&options.session_request_headers) {
        return unsupported("session_request_headers", "headers about the session");
    }
    if has_headers(&options.session_response_headers) {
        return unsupported("session_response_headers", "headers about the session");
    }
    None
}

fn translate(config: &Value, consumers: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    if let Some(refused) = refused(&options) {
        return Err(refused);
    }
    let signing = options.request_signing_key.map(|key| Signing {
        key,
        certificate: options.request_signing_certificate,
        hash: hash_name(&options.request_signature_algorithm),
        digest: hash_name(&options.request_digest_algorithm),
    });
    Ok(untyped(Config {
        issuer: options.issuer,
        provider: Provider {
            issuer: None,
            login_url: options.idp_sso_url,
            logout_url: None,
            certificates: options.idp_certificate.into_iter().collect(),
        },
        callback: options.assertion_consumer_path,
        request: RequestRules {
            binding: Binding::Post,
            answer: Binding::Post,
            name_id_format: Some(name_id_format(&options.nameid_format).to_owned()),
            signing,
        },
        response: ResponseRules {
            decryption_key: options.response_encryption_key,
            allow_sha1: options.response_digest_algorithm == "SHA1",
            ..ResponseRules::default()
        },
        logout: None,
        unauthenticated: Unauthenticated::LoginPages,
        consumer: Some(ConsumerRules {
            attribute: None,
            by: vec![ConsumerName::Username, ConsumerName::CustomId],
            optional: false,
        }),
        upstream_headers: Vec::new(),
        session: options.session.config(options.session_secret),
        identity: identity(options.anonymous.as_deref(), true, consumers),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config() -> Value {
        json!({
            "assertion_consumer_path": "/consume", "idp_sso_url": "https://idp.test/sso", "idp_certificate": "MII",
            "request_signing_key": "KEY", "response_signature_algorithm": "SHA256",
            "request_signature_algorithm": "SHA384", "response_digest_algorithm": "SHA1",
            "request_digest_algorithm": "SHA256", "issuer": "urn:sp", "nameid_format": "Persistent",
            "validate_assertion_signature": true, "session_secret": "0123456789abcdef0123456789abcdef",
            "session_audience": "default", "session_cookie_name": "session", "session_cookie_path": "/",
            "session_cookie_same_site": "Lax", "session_cookie_http_only": true, "session_remember": false,
            "session_idling_timeout": 900, "session_rolling_timeout": 3600, "session_absolute_timeout": 86_400,
        })
    }

    #[test]
    fn options_become_those_of_the_catalogue() {
        let made = translate(&config(), &Consumers::NONE).expect("it is served");
        assert_eq!(made["callback"], json!("/consume"));
        assert_eq!(made["provider"]["certificates"], json!(["MII"]));
        assert_eq!(made["request"]["binding"], json!("post"));
        assert_eq!(made["request"]["signing"]["hash"], json!("sha384"));
        assert_eq!(
            made["request"]["name_id_format"],
            json!("urn:oasis:names:tc:SAML:2.0:nameid-format:persistent")
        );
        assert_eq!(made["response"]["allow_sha1"], json!(true));
        assert_eq!(made["unauthenticated"], json!("login-pages"));
        assert_eq!(made["consumer"]["by"], json!(["username", "custom-id"]));
    }

    #[test]
    fn what_would_weaken_logins_is_refused() {
        for (field, value) in [
            ("validate_assertion_signature", json!(false)),
            ("idp_certificate", Value::Null),
            ("session_cookie_same_site", json!("Strict")),
            ("session_request_headers", json!(["id"])),
            ("session_response_headers", json!(["id"])),
        ] {
            let mut changed = config();
            changed[field] = value;
            assert_eq!(
                translate(&changed, &Consumers::NONE).expect_err("refused").field,
                field
            );
        }
    }

    #[test]
    fn secrets_have_32_characters() {
        for (text, expected) in [
            ("0123456789abcdef0123456789abcd/+", Ok(())),
            ("short", Err("length must be 32".to_owned())),
            (
                "0123456789abcdef0123456789abcd-!",
                Err("invalid value: 0123456789abcdef0123456789abcd-!".to_owned()),
            ),
        ] {
            assert_eq!(secret(text), expected);
        }
    }
}
