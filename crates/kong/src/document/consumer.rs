//! Consumers and their credentials, those of plugins that Weir does not have yet included.

use super::common::{CREATED_AT, ID, TAGS, UPDATED_AT};
use crate::schema::{Check, Default, EntityCheck, Field, FieldTest, Kind, Record, Requirement};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

/// The fields of a consumer.
pub static CONSUMER: Record = Record {
    fields: &[
        ID,
        CREATED_AT,
        UPDATED_AT,
        Field::new("username", Kind::String).unique(),
        Field::new("custom_id", Kind::String).unique(),
        TAGS,
    ],
    checks: &[EntityCheck::AtLeastOneOf(&["custom_id", "username"])],
};

const OWNER: Field = Field::new("consumer", Kind::Foreign("consumers")).required();

/// The fields of an API key.
pub static KEYAUTH: Record = Record::of(&[
    ID,
    CREATED_AT,
    OWNER,
    Field::new("key", Kind::String).unique().auto(),
    TAGS,
    Field::new("ttl", Kind::Integer),
]);

const JWT_ALGORITHMS: &[&str] = &[
    "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384",
    "PS512", "EdDSA",
];

/// The fields of a JWT secret.
pub static JWT: Record = Record {
    fields: &[
        ID,
        CREATED_AT,
        OWNER,
        Field::new("key", Kind::String).unique().auto(),
        Field::new("secret", Kind::String).auto(),
        Field::new("rsa_public_key", Kind::String),
        Field::new("algorithm", Kind::String)
            .or(Default::Text("HS256"))
            .check(&[Check::OneOf(JWT_ALGORITHMS)]),
        TAGS,
    ],
    checks: &[EntityCheck::When {
        field: "algorithm",
        is: FieldTest::OneOf(&["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA"]),
        then: "rsa_public_key",
        must: Requirement::BeText(public_key),
    }],
};

/// A key in PEM; which algorithm it fits shows with the first token.
fn public_key(text: &str) -> Result<(), String> {
    let is_reference = text.starts_with("{vault://") && text.ends_with('}');
    let is_key = || {
        let label = text.split_once("-----BEGIN ")?.1.split_once("-----")?.0;
        Some(label.ends_with("KEY") || label == "CERTIFICATE")
    };
    // How such a key begins in PEM (RFC 8410, 4).
    if text.contains("MEMwBQYDK2Vx") {
        return Err("invalid key: Weir does not have Ed448, use an Ed25519 key".to_owned());
    }
    match is_reference || is_key().unwrap_or(false) {
        true => Ok(()),
        false => Err("invalid key".to_owned()),
    }
}

/// The fields of a group membership.
pub static ACL: Record = Record::of(&[
    ID,
    CREATED_AT,
    OWNER,
    Field::new("group", Kind::String).required(),
    TAGS,
]);

/// The fields of a user name and password.
pub static BASICAUTH: Record = Record::of(&[
    ID,
    CREATED_AT,
    OWNER,
    Field::new("username", Kind::String).required().unique(),
    Field::new("password", Kind::String).required(),
    TAGS,
]);

/// The fields of a user name and secret for signatures.
pub static HMACAUTH: Record = Record::of(&[
    ID,
    CREATED_AT,
    OWNER,
    Field::new("username", Kind::String).required().unique(),
    Field::new("secret", Kind::String).auto(),
    TAGS,
]);

/// The address that an OAuth 2.0 client may be sent back to: an absolute URI without a fragment.
fn redirect_uri(text: &str) -> Result<(), String> {
    let host = text.split_once("://").and_then(|(scheme, rest)| {
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        (is_scheme && !host.is_empty()).then_some(host)
    });
    match host {
        None => Err(format!("cannot parse '{text}'")),
        Some(_) if text.contains('#') => Err(format!("fragment not allowed in '{text}'")),
        Some(_) => Ok(()),
    }
}

/// The fields of an OAuth 2.0 client.
pub static OAUTH2: Record = Record::of(&[
    ID,
    CREATED_AT,
    OWNER,
    Field::new("name", Kind::String).required(),
    Field::new("client_id", Kind::String).unique().auto(),
    Field::new("client_secret", Kind::String).auto(),
    Field::new("hash_secret", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new(
        "redirect_uris",
        Kind::Array(&Field::element(Kind::String).check(&[Check::Text(redirect_uri)])),
    ),
    TAGS,
    Field::new("client_type", Kind::String)
        .required()
        .or(Default::Text("confidential"))
        .check(&[Check::OneOf(&["confidential", "public"])]),
]);

/// A consumer.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct Consumer {
    pub id: Uuid,
    pub username: Option<String>,
    pub custom_id: Option<String>,
    pub tags: Option<Value>,
}

/// An API key of a consumer. Not `Debug`: it is a secret.
#[derive(Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct KeyauthCredential {
    pub id: Uuid,
    pub consumer: Uuid,
    pub key: Option<String>,
}

/// A JWT secret of a consumer. Not `Debug`: it is a secret.
#[derive(Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct JwtSecret {
    pub consumer: Uuid,
    pub key: Option<String>,
    pub secret: Option<String>,
    pub rsa_public_key: Option<String>,
    pub algorithm: Option<String>,
}

/// A consumer's membership of a group.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct Membership {
    pub consumer: Uuid,
    pub group: String,
}

/// A user name and password of a consumer. Not `Debug`: it is a secret.
#[derive(Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct BasicauthCredential {
    pub consumer: Uuid,
    pub username: String,
    pub password: String,
}

/// A user name and secret for signatures of a consumer. Not `Debug`: it is a secret.
#[derive(Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct HmacauthCredential {
    pub consumer: Uuid,
    pub username: String,
    pub secret: Option<String>,
}

/// A client of OAuth 2.0 of a consumer. Not `Debug`: it has a secret.
#[derive(Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct OAuth2Credential {
    pub id: Uuid,
    pub consumer: Uuid,
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    pub hash_secret: bool,
    pub redirect_uris: Option<Vec<String>>,
    pub client_type: String,
}

/// A token of OAuth 2.0 that an administrator has written. Not `Debug`: it is a secret.
#[derive(Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct OAuth2Token {
    pub credential: Uuid,
    pub service: Option<Uuid>,
    pub created_at: Option<u64>,
    pub expires_in: i64,
    pub access_token: Option<String>,
    pub refresh_token: Option<String>,
    pub authenticated_userid: Option<String>,
    pub scope: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_jwt_are_pem_and_not_ed448() {
        let pem = |body: &str| format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----");
        for (key, words) in [
            (pem("MCowBQYDK2VwAyEAAA"), None),
            ("{vault://env/key}".to_owned(), None),
            (pem("MEMwBQYDK2VxAzoAAA"), Some("Ed25519")),
            ("x".to_owned(), Some("invalid key")),
        ] {
            let fault = public_key(&key).err();
            assert_eq!(fault.is_some(), words.is_some(), "{key}: {fault:?}");
            assert!(
                words.is_none_or(|words| fault.is_some_and(|fault| fault.contains(words))),
                "{key}"
            );
        }
    }
}
