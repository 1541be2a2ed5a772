//! `jwt-signer` of the paid edition: `jwt-signer` of the catalogue.
//!
//! The original has each field twice: for the access token and for the channel token.

use super::enterprise_fields::only_defaults;
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, Kind, Record, joined};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use weir_plugins::consumer_names::ConsumerName;
use weir_plugins::jwt::Algorithm;
use weir_plugins::jwt_signer::{ClaimRules, Config, Introspection, KeyServer, Signing, TokenRules};
use weir_plugins::private_key::PrivateKey;

/// The definition of `jwt-signer`.
pub const DEFINITION: Definition = Definition {
    name: "jwt-signer",
    priority: 1_020,
    config: Record::of(FIELDS),
    checks: &[EntityCheck::Distinct(&[
        "config.access_token_upstream_header",
        "config.channel_token_upstream_header",
        "config.original_access_token_upstream_header",
        "config.original_channel_token_upstream_header",
    ])],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "jwt-signer",
    translate,
};

const ON: Field = Field::element(Kind::Boolean).or(Default::Boolean(true));
const OFF: Field = Field::element(Kind::Boolean).or(Default::Boolean(false));
const ZERO: Field = Field::element(Kind::Number).or(Default::Integer(0));
const TEXT: Field = Field::element(Kind::String);
const LIST: Field = Field::element(Kind::Array(&Field::element(Kind::String)));
const SCOPE: Field = LIST.or(Default::Texts(&["scope"]));
const NOTHING: Field = LIST.or(Default::Texts(&[]));
const KONG: Field = TEXT.or(Default::Text("kong"));
const CLAIMS: Field = Field::element(Kind::Map {
    keys: &Field::element(Kind::String),
    values: &Field::element(Kind::String),
});
const NAMES: Field = Field::element(Kind::Array(
    &Field::element(Kind::String).check(&[Check::OneOf(&["id", "username", "custom_id"])]),
))
.or(Default::Texts(&["username", "custom_id"]));
const ALGORITHM: Field = TEXT.or(Default::Text("RS256")).check(&[Check::OneOf(&[
    "HS256", "HS384", "HS512", "RS256", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512",
    "EdDSA",
])]);

/// A field of this kind with a name.
const fn named(name: &'static str, field: Field) -> Field {
    Field { name, ..field }
}

/// The fields of one of the two tokens.
macro_rules! token_fields {
    ($token:literal, $request_header:expr, $upstream_header:expr, $hint:expr) => {
        [
            named(concat!($token, "_issuer"), KONG),
            named(concat!($token, "_keyset"), KONG),
            named(concat!($token, "_jwks_uri"), TEXT),
            named(concat!($token, "_request_header"), $request_header),
            named(concat!($token, "_leeway"), ZERO),
            named(concat!($token, "_scopes_required"), LIST),
            named(concat!($token, "_scopes_claim"), SCOPE),
            named(concat!($token, "_consumer_claim"), LIST),
            named(concat!($token, "_consumer_by"), NAMES),
            named(concat!($token, "_upstream_header"), $upstream_header),
            named(concat!($token, "_upstream_leeway"), ZERO),
            named(concat!($token, "_introspection_endpoint"), TEXT),
            named(concat!($token, "_introspection_authorization"), TEXT),
            named(concat!($token, "_introspection_body_args"), TEXT),
            named(concat!($token, "_introspection_hint"), $hint),
            named(concat!($token, "_introspection_jwt_claim"), LIST),
            named(concat!($token, "_introspection_scopes_required"), LIST),
            named(concat!($token, "_introspection_scopes_claim"), SCOPE),
            named(concat!($token, "_introspection_consumer_claim"), LIST),
            named(concat!($token, "_introspection_consumer_by"), NAMES),
            named(concat!($token, "_introspection_leeway"), ZERO),
            named(
                concat!($token, "_introspection_timeout"),
                Field::element(Kind::Number),
            ),
            named(concat!($token, "_signing_algorithm"), ALGORITHM),
            named(concat!($token, "_optional"), OFF),
            named(concat!("verify_", $token, "_signature"), ON),
            named(concat!("verify_", $token, "_expiry"), ON),
            named(concat!("verify_", $token, "_scopes"), ON),
            named(concat!("verify_", $token, "_introspection_expiry"), ON),
            named(concat!("verify_", $token, "_introspection_scopes"), ON),
            named(concat!("cache_", $token, "_introspection"), ON),
            named(concat!("trust_", $token, "_introspection"), ON),
            named(concat!("enable_", $token, "_introspection"), ON),
            named(concat!("add_", $token, "_claims"), CLAIMS),
            named(concat!("set_", $token, "_claims"), CLAIMS),
            named(concat!("remove_", $token, "_claims"), NOTHING),
            named(concat!("original_", $token, "_upstream_header"), TEXT),
            named(concat!($token, "_jwks_uri_client_username"), TEXT),
            named(concat!($token, "_jwks_uri_client_password"), TEXT),
            named(concat!($token, "_jwks_uri_client_certificate"), TEXT),
            named(concat!($token, "_jwks_uri_rotate_period"), ZERO),
            named(concat!($token, "_keyset_client_username"), TEXT),
            named(concat!($token, "_keyset_client_password"), TEXT),
            named(concat!($token, "_keyset_client_certificate"), TEXT),
            named(concat!($token, "_keyset_rotate_period"), ZERO),
        ]
    };
}

const OF_BOTH: [Field; 5] = [
    named("realm", TEXT),
    named("enable_hs_signatures", OFF),
    named("enable_instrumentation", OFF),
    named("add_claims", CLAIMS),
    named("set_claims", CLAIMS),
];
const ACCESS: [Field; 44] = token_fields!(
    "access_token",
    TEXT.or(Default::Text("Authorization")),
    TEXT.or(Default::Text("Authorization:Bearer")),
    TEXT.or(Default::Text("access_token"))
);
const CHANNEL: [Field; 44] = token_fields!("channel_token", TEXT, TEXT, TEXT);
const SERVED: [Field; 93] = joined(&[&OF_BOTH, &ACCESS, &CHANNEL]);

/// The fields of one of the two tokens of which only the default is served.
macro_rules! default_fields {
    ($token:literal, $($kind:literal),*) => {
        [
            $(
                named(concat!($token, $kind, "_audience_claim"), LIST.or(Default::Texts(&["aud"]))),
                named(concat!($token, $kind, "_audiences_allowed"), LIST),
                named(concat!($token, $kind, "_issuer_claim"), LIST.or(Default::Texts(&["iss"]))),
                named(concat!($token, $kind, "_issuers_allowed"), LIST),
                named(concat!($token, $kind, "_subject_claim"), LIST.or(Default::Texts(&["sub"]))),
                named(concat!($token, $kind, "_subjects_allowed"), LIST),
                named(concat!($token, $kind, "_expiry_claim"), LIST.or(Default::Texts(&["exp"]))),
                named(concat!($token, $kind, "_notbefore_claim"), LIST.or(Default::Texts(&["nbf"]))),
                named(concat!($token, $kind, "_optional_claims"), PATHS),
                named(concat!($token, $kind, "_required_claims"), PATHS),
                named(concat!("verify_", $token, $kind, "_audience"), ON),
                named(concat!("verify_", $token, $kind, "_issuer"), ON),
                named(concat!("verify_", $token, $kind, "_subject"), ON),
                named(concat!("verify_", $token, $kind, "_notbefore"), OFF),
            )*
        ]
    };
}

const PATHS: Field = Field::element(Kind::Array(&Field::element(Kind::Any))).or(Default::Texts(&[]));
const DEFAULTS_OF_ACCESS: [Field; 28] = default_fields!("access_token", "", "_introspection");
const DEFAULTS_OF_CHANNEL: [Field; 28] = default_fields!("channel_token", "", "_introspection");
const ONLY_DEFAULTS: &[Field] = &joined::<56>(&[&DEFAULTS_OF_ACCESS, &DEFAULTS_OF_CHANNEL]);
const FIELDS: &[Field] = &joined::<{ SERVED.len() + ONLY_DEFAULTS.len() }>(&[&SERVED, ONLY_DEFAULTS]);

/// The fields of one token that are read, without the token's name in the fields' names.
#[derive(Deserialize)]
struct Options {
    issuer: Option<String>,
    keyset: Option<String>,
    jwks_uri: Option<String>,
    request_header: Option<String>,
    leeway: Option<f64>,
    scopes_required: Option<Vec<String>>,
    scopes_claim: Option<Vec<String>>,
    consumer_claim: Option<Vec<String>>,
    consumer_by: Option<Vec<String>>,
    upstream_header: Option<String>,
    upstream_leeway: Option<f64>,
    introspection_endpoint: Option<String>,
    introspection_authorization: Option<String>,
    introspection_body_args: Option<String>,
    introspection_hint: Option<String>,
    introspection_jwt_claim: Option<Vec<String>>,
    introspection_scopes_required: Option<Vec<String>>,
    introspection_scopes_claim: Option<Vec<String>>,
    introspection_consumer_claim: Option<Vec<String>>,
    introspection_consumer_by: Option<Vec<String>>,
    introspection_leeway: Option<f64>,
    introspection_timeout: Option<f64>,
    signing_algorithm: Algorithm,
    optional: Option<bool>,
    verify_signature: Option<bool>,
    verify_expiry: Option<bool>,
    verify_scopes: Option<bool>,
    verify_introspection_expiry: Option<bool>,
    verify_introspection_scopes: Option<bool>,
    cache_introspection: Option<bool>,
    trust_introspection: Option<bool>,
    enable_introspection: Option<bool>,
    add_claims: Option<BTreeMap<String, String>>,
    set_claims: Option<BTreeMap<String, String>>,
    remove_claims: Option<Vec<String>>,
    original_upstream_header: Option<String>,
    jwks_uri_client_username: Option<String>,
    jwks_uri_client_password: Option<String>,
    jwks_uri_client_certificate: Option<String>,
    jwks_uri_rotate_period: Option<f64>,
    keyset_client_username: Option<String>,
    keyset_client_password: Option<String>,
    keyset_client_certificate: Option<String>,
    keyset_rotate_period: Option<f64>,
}

/// The fields of both tokens.
#[derive(Deserialize)]
struct Common {
    realm: Option<String>,
    enable_hs_signatures: Option<bool>,
    add_claims: Option<BTreeMap<String, String>>,
    set_claims: Option<BTreeMap<String, String>>,
}

/// The names of fields that may ask for what there is not.
struct KeysetFieldNames {
    of_keyset: &'static str,
    of_keys: &'static str,
}

fn translate(config: &Value, known: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    only_defaults(config, ONLY_DEFAULTS)?;
    let common: Common = typed(config)?;
    let names = KeysetFieldNames {
        of_keyset: "access_token_keyset_client_certificate",
        of_keys: "access_token_jwks_uri_client_certificate",
    };
    let access_token = token(typed(&fields_of(config, "access_token"))?, &common, &names, known)?;
    let names = KeysetFieldNames {
        of_keyset: "channel_token_keyset_client_certificate",
        of_keys: "channel_token_jwks_uri_client_certificate",
    };
    let channel: Options = typed(&fields_of(config, "channel_token"))?;
    // Without a header, there is no such token.
    let channel_token = match given(channel.request_header.as_ref()) {
        Some(_) => Some(token(channel, &common, &names, known)?),
        None => None,
    };
    Ok(untyped(Config {
        access_token,
        channel_token,
        realm: common.realm,
        ..Config::default()
    }))
}

/// The fields of a token under names that both tokens have.
fn fields_of(config: &Value, token: &str) -> Value {
    let mut own = Map::new();
    for (name, value) in config.as_object().into_iter().flatten() {
        if let Some((before, after)) = name.split_once(token) {
            let name = format!("{before}{}", after.trim_start_matches('_'));
            own.insert(name, value.clone());
        }
    }
    Value::Object(own)
}

fn token(
    options: Options,
    common: &Common,
    names: &KeysetFieldNames,
    known: &Consumers<'_>,
) -> Result<TokenRules, UnsupportedOption> {
    for (certificate, field) in [
        (&options.keyset_client_certificate, names.of_keyset),
        (&options.jwks_uri_client_certificate, names.of_keys),
    ] {
        if given(certificate.as_ref()).is_some() {
            return Err(UnsupportedOption {
                field,
                what: "a client certificate for a server of keys".to_owned(),
            });
        }
    }
    let header = given(options.upstream_header.as_ref());
    let signing = header.map(|header| signing(header, &options, common, known));
    let introspection = introspection(&options);
    let keys = given(options.jwks_uri.as_ref()).map(|address| KeyServer {
        username: options.jwks_uri_client_username,
        password: options.jwks_uri_client_password,
        cache_seconds: period(options.jwks_uri_rotate_period),
        ..KeyServer::new(address.to_owned())
    });
    Ok(TokenRules {
        request_header: given(options.request_header.as_ref()).map(str::to_owned),
        optional: options.optional == Some(true),
        verify_signature: options.verify_signature != Some(false),
        verification_keys: keys,
        allow_symmetric_keys: common.enable_hs_signatures == Some(true),
        claims: ClaimRules {
            verify_expiry: options.verify_expiry != Some(false),
            leeway_seconds: seconds(options.leeway),
            scopes: checked(options.verify_scopes, options.scopes_required),
            scopes_claim: options.scopes_claim.unwrap_or_default(),
            consumer_claim: options.consumer_claim.unwrap_or_default(),
            consumer_by: by(options.consumer_by),
        },
        introspection,
        signing,
        original_header: given(options.original_upstream_header.as_ref()).map(str::to_owned),
    })
}

/// A set of keys that a configuration signs with.
pub struct NamedKeys<'c> {
    field: &'static str,
    algorithm_field: &'static str,
    /// The name of the set.
    pub name: &'c str,
    /// The algorithm needs a secret.
    is_secret: bool,
}

/// The sets of keys that a configuration signs with. Addresses of such sets are not among them.
pub fn named_keys(config: &Value) -> impl Iterator<Item = NamedKeys<'_>> {
    let text = |field: &str| config[field].as_str().filter(|text| !text.is_empty());
    let tokens = [
        ("access_token_keyset", "access_token_signing_algorithm"),
        ("channel_token_keyset", "channel_token_signing_algorithm"),
    ];
    tokens.into_iter().filter_map(move |(field, algorithm_field)| {
        let token = field.trim_end_matches("_keyset");
        // Without a header, there is no such token.
        let is_there = token == "access_token" || text("channel_token_request_header").is_some();
        let signs = is_there && text(&format!("{token}_upstream_header")).is_some();
        let name = text(field).unwrap_or("kong");
        let is_address = name.starts_with("http://") || name.starts_with("https://");
        (signs && !is_address).then(|| NamedKeys {
            field,
            algorithm_field,
            name,
            is_secret: text(algorithm_field).is_some_and(|algorithm| algorithm.starts_with("HS")),
        })
    })
}

/// A name in a configuration that does not exist, and is not made by the gateway either.
pub(super) fn missing(config: &Value, known: &Consumers<'_>) -> Option<UnsupportedOption> {
    named_keys(config).find_map(|named| {
        let name = named.name;
        if (known.key_set)(name).is_some() {
            return None;
        }
        match (known.signing_keys)(name) {
            Some(keys) if named.is_secret && !keys.iter().any(is_secret) => Some(UnsupportedOption {
                field: named.algorithm_field,
                what: format!(
                    "signing with a secret that the gateway makes and shows to no one (write the secret into a key set with the \
                     name '{name}', or choose an algorithm without one)"
                ),
            }),
            Some(_) => None,
            None => Some(UnsupportedOption {
                field: named.field,
                what: format!(
                    "making keys in a configuration of a file, which could not keep them (write the private key to sign with into \
                     a key set with the name '{name}', or name the address of one)"
                ),
            }),
        }
    })
}

/// Whether a key is a secret.
fn is_secret(key: &PrivateKey) -> bool {
    let jwk = key.jwk.as_deref().map(serde_json::from_str::<Value>);
    matches!(jwk, Some(Ok(jwk)) if jwk["kty"] == "oct")
}

fn introspection(options: &Options) -> Option<Introspection> {
    let endpoint = given(options.introspection_endpoint.as_ref())?;
    let is_on = options.enable_introspection != Some(false);
    let scopes = options.introspection_scopes_required.clone();
    let timeout = options.introspection_timeout.filter(|timeout| *timeout >= 1.0);
    is_on.then(|| Introspection {
        endpoint: endpoint.to_owned(),
        authorization: options.introspection_authorization.clone(),
        hint: options.introspection_hint.clone(),
        arguments: options.introspection_body_args.clone(),
        timeout_ms: timeout.map(|timeout| timeout as u64),
        cache_seconds: if options.cache_introspection == Some(false) {
            0
        } else {
            60
        },
        claims: ClaimRules {
            verify_expiry: options.verify_introspection_expiry != Some(false),
            leeway_seconds: seconds(options.introspection_leeway),
            scopes: checked(options.verify_introspection_scopes, scopes),
            scopes_claim: options.introspection_scopes_claim.clone().unwrap_or_default(),
            consumer_claim: options.introspection_consumer_claim.clone().unwrap_or_default(),
            consumer_by: by(options.introspection_consumer_by.clone()),
        },
        token_claim: options.introspection_jwt_claim.clone().unwrap_or_default(),
        is_trusted: options.trust_introspection != Some(false),
    })
}

fn signing(header: &str, options: &Options, common: &Common, known: &Consumers<'_>) -> Signing {
    let (header, scheme) = match header.split_once(':') {
        Some((header, scheme)) => (header, Some(scheme.trim()).filter(|it| !it.is_empty())),
        None => (header, None),
    };
    let keyset = options.keyset.as_deref().unwrap_or("kong");
    let is_address = keyset.starts_with("http://") || keyset.starts_with("https://");
    let key_server = is_address.then(|| KeyServer {
        username: options.keyset_client_username.clone(),
        password: options.keyset_client_password.clone(),
        cache_seconds: period(options.keyset_rotate_period),
        ..KeyServer::new(keyset.to_owned())
    });
    // With none, the instance cannot be made, and its routes serve no calls.
    let keys = match is_address {
        true => None,
        false => (known.signing_keys)(keyset),
    };
    let both = [&common.add_claims, &options.add_claims];
    let set = [&common.set_claims, &options.set_claims];
    Signing {
        header: header.trim().to_owned(),
        scheme: scheme.map(str::to_owned),
        issuer: options.issuer.clone().unwrap_or_else(|| "kong".to_owned()),
        algorithm: options.signing_algorithm,
        keys: keys.unwrap_or_default(),
        key_server,
        leeway_seconds: seconds(options.upstream_leeway),
        remove_claims: options.remove_claims.clone().unwrap_or_default(),
        add_claims: decoded(both),
        set_claims: decoded(set),
    }
}

/// Claims are texts, which may be JSON.
fn decoded(claims: [&Option<BTreeMap<String, String>>; 2]) -> Map<String, Value> {
    let all = claims.into_iter().flatten().flatten();
    let claim = |(name, text): (&String, &String)| {
        let value = serde_json::from_str(text);
        (name.clone(), value.unwrap_or_else(|_| Value::from(text.as_str())))
    };
    all.map(claim).collect()
}

fn by(names: Option<Vec<String>>) -> Vec<ConsumerName> {
    let name = |name: &String| match name.as_str() {
        "id" => ConsumerName::Id,
        "username" => ConsumerName::Username,
        _ => ConsumerName::CustomId,
    };
    names.unwrap_or_default().iter().map(name).collect()
}

/// The checked claims, unless that is switched off.
fn checked(is_on: Option<bool>, required: Option<Vec<String>>) -> Vec<String> {
    match is_on {
        Some(false) => Vec::new(),
        _ => required.unwrap_or_default(),
    }
}

fn seconds(number: Option<f64>) -> i64 {
    number.unwrap_or(0.0) as i64
}

/// How long keys are used; the original uses them until they do not fit.
fn period(seconds: Option<f64>) -> u64 {
    match seconds {
        Some(seconds) if seconds >= 1.0 => seconds as u64,
        _ => 3_600,
    }
}

/// A text that says something.
fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn translated(config: &Value) -> Result<Value, UnsupportedOption> {
        let known = Consumers {
            signing_keys: &|name| {
                let key = PrivateKey {
                    id: Some("k".to_owned()),
                    ..PrivateKey::default()
                };
                (name == "kong").then(|| vec![key])
            },
            ..Consumers::NONE
        };
        translate(config, &known)
    }

    /// Fields that the original fills in.
    fn defaults() -> Value {
        json!({
            "access_token_request_header": "Authorization", "access_token_upstream_header": "Authorization:Bearer",
            "access_token_signing_algorithm": "RS256", "channel_token_signing_algorithm": "RS256",
            "access_token_keyset": "kong", "channel_token_keyset": "kong",
        })
    }

    #[test]
    fn fields_become_rules() {
        let mut config = defaults();
        let fields = config.as_object_mut().expect("an object");
        fields.extend(
            json!({
                "realm": "r", "enable_hs_signatures": true, "access_token_jwks_uri": "https://a/jwks",
                "access_token_scopes_required": ["a"], "verify_access_token_scopes": false,
                "access_token_introspection_endpoint": "https://a/i", "trust_access_token_introspection": false,
                "cache_access_token_introspection": false, "access_token_introspection_scopes_required": ["b"],
                "access_token_upstream_leeway": -5, "set_claims": {"x": "[1]", "y": "text"},
                "set_access_token_claims": {"y": "other"}, "verify_channel_token_signature": false,
                "channel_token_request_header": "X-C", "channel_token_upstream_header": "X-U",
                "channel_token_keyset": "https://a/private", "channel_token_keyset_rotate_period": 5,
            })
            .as_object()
            .expect("an object")
            .clone(),
        );
        let all = translated(&config).expect("it is served");
        for (path, expected) in [
            ("/realm", json!("r")),
            ("/access_token/allow_symmetric_keys", json!(true)),
            ("/access_token/verification_keys/address", json!("https://a/jwks")),
            ("/access_token/claims/scopes", Value::Null),
            ("/access_token/introspection/claims/scopes", json!(["b"])),
            ("/access_token/introspection/is_trusted", json!(false)),
            ("/access_token/introspection/cache_seconds", json!(0)),
            ("/access_token/signing/header", json!("Authorization")),
            ("/access_token/signing/scheme", json!("Bearer")),
            ("/access_token/signing/keys", json!([{"id": "k"}])),
            ("/access_token/signing/leeway_seconds", json!(-5)),
            (
                "/access_token/signing/set_claims",
                json!({"x": [1], "y": "other"}),
            ),
            ("/channel_token/verify_signature", json!(false)),
            ("/channel_token/request_header", json!("X-C")),
            ("/channel_token/signing/scheme", Value::Null),
            (
                "/channel_token/signing/set_claims",
                json!({"x": [1], "y": "text"}),
            ),
            (
                "/channel_token/signing/key_server/address",
                json!("https://a/private"),
            ),
            ("/channel_token/signing/key_server/cache_seconds", json!(5)),
        ] {
            assert_eq!(all.pointer(path).cloned().unwrap_or_default(), expected, "{path}");
        }
        let plain = translated(&defaults()).expect("it is served");
        assert_eq!(plain.get("channel_token"), None);
    }

    #[test]
    fn what_there_is_not_is_refused_at_its_field() {
        for (field, value) in [
            ("access_token_keyset_client_certificate", json!("id")),
            ("access_token_jwks_uri_client_certificate", json!("id")),
            ("access_token_audiences_allowed", json!(["a"])),
            // The defect: an empty list passed for a default that is not empty.
            ("access_token_audience_claim", json!([])),
            ("channel_token_introspection_required_claims", json!([["a"]])),
            ("verify_access_token_notbefore", json!(true)),
            ("verify_channel_token_introspection_issuer", json!(false)),
        ] {
            let mut config = defaults();
            config[field] = value;
            assert_eq!(translated(&config).expect_err("refused").field, field);
        }
        // The defect: these were unknown fields, also with the values that the original fills in.
        let mut config = defaults();
        for field in ONLY_DEFAULTS {
            config[field.name] = field.default.value();
        }
        config["access_token_audiences_allowed"] = json!([]);
        config["access_token_required_claims"] = json!([]);
        assert_eq!(
            translated(&config).expect("valid"),
            translated(&defaults()).expect("valid")
        );
    }

    #[test]
    fn sets_that_do_not_exist_are_reported() {
        let other = ("access_token_keyset", "other");
        let made = ("access_token_keyset", "made");
        let secret = ("access_token_signing_algorithm", "HS256");
        for (changes, expected) in [
            (&[][..], None),
            (&[secret], None),
            (&[made], None),
            (&[made, secret], Some("access_token_signing_algorithm")),
            (&[("access_token_keyset", "secret"), secret], None),
            (&[other], Some("access_token_keyset")),
            (&[other, ("access_token_upstream_header", "")], None),
            (&[("access_token_keyset", "https://a/keys")], None),
            (&[("channel_token_keyset", "other")], None),
            (
                &[
                    ("channel_token_keyset", "other"),
                    ("channel_token_request_header", "X-C"),
                    ("channel_token_upstream_header", "X-U"),
                ],
                Some("channel_token_keyset"),
            ),
        ] {
            let mut config = defaults();
            for (field, value) in changes {
                config[*field] = json!(value);
            }
            let key = |kind: &str| PrivateKey {
                jwk: Some(json!({ "kty": kind }).to_string()),
                ..PrivateKey::default()
            };
            let known = Consumers {
                key_set: &|name| (name == "kong").then(Vec::new),
                signing_keys: &|name| match name {
                    "made" => Some(vec![key("RSA")]),
                    "secret" => Some(vec![key("oct")]),
                    _ => None,
                },
                ..Consumers::NONE
            };
            let found = missing(&config, &known).map(|it| it.field);
            assert_eq!(found, expected, "{changes:?}");
        }
    }
}
