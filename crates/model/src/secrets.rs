//! What is shown of documents to callers who may not know the secrets in them: one policy for all dialects, and for
//! every place that shows documents.
//!
//! Documents are of all dialects and of plugins of many kinds, and some are of plugins that Weir does not have. A
//! secret is therefore known by the name of its field and by the form of its text. When in doubt, a value is hidden.
//! Tests go through the schemas of all dialects and check that every field that holds a secret by its type is hidden.

use serde_json::{Map, Value};

/// Stands in the place of a secret.
pub const HIDDEN: &str = "***";
/// Stands in the place of a secret that was another one before.
pub const HIDDEN_OTHER: &str = "*** (another)";

/// The name of a field that holds a secret has one of these in it.
const WORDS: [&str; 19] = [
    "auth",
    "clientid",
    "connection_string",
    "cookie",
    "credential",
    "dsn",
    "eab_kid",
    "hash",
    "hmac",
    "jwk",
    "key",
    "passphrase",
    "passw",
    "private",
    "salt",
    "secret",
    "service_account",
    "session",
    "token",
];

/// Names with one of these words that hold no secret.
const PUBLIC: [&str; 17] = [
    "auth_groups",
    "auth_scheme",
    "authenticated_groups",
    "authorities",
    "author",
    "authority",
    "cookie_samesite",
    "cookie_same_site",
    "cookies",
    "hide_credentials",
    "key_header",
    "keyspace",
    "max_tokens",
    "session_affinity",
    "token_challenge",
    "token_limit",
    "tokens",
];

/// Endings of names whose value describes a secret but is not one.
const PUBLIC_ENDS: [&str; 38] = [
    "_algorithm",
    "_algorithms",
    "_arg",
    "_at",
    "_claim",
    "_claims",
    "_count",
    "_domain",
    "_enabled",
    "_endpoint",
    "_expiration",
    "_expires",
    "_expiry",
    "_fallback",
    "_field",
    "_file",
    "_format",
    "_group",
    "_groups",
    "_id",
    "_ids",
    "_length",
    "_lifetime",
    "_method",
    "_methods",
    "_mode",
    "_name",
    "_names",
    "_on",
    "_path",
    "_scheme",
    "_size",
    "_timeout",
    "_ttl",
    "_type",
    "_uri",
    "public_key",
    "public_keys",
];

/// A name with one of these in it holds a secret unless it ends in one of [`DESCRIBING_ENDS`]: `secret_id` is one.
const STRONG_WORDS: [&str; 4] = ["passphrase", "passw", "private", "secret"];

/// Ends of names that describe a secret, whatever stands before them.
const DESCRIBING_ENDS: [&str; 9] = [
    "_algorithm",
    "_file",
    "_length",
    "_name",
    "_names",
    "_path",
    "_size",
    "_ttl",
    "_type",
];

/// `key` beside one of these fields names what is counted or hashed.
const BESIDE_SELECTORS: [&str; 8] = [
    "burst", "conn", "count", "hash_on", "key_type", "nodes", "rate", "rules",
];

/// Objects in which every text is a secret, whatever the name of its field.
const SECRET_OBJECTS: [&str; 5] = ["auth", "authorization", "jwk", "jwks", "vault"];
/// So are those whose names end like this. Plugins may be called `key-auth`, so that most names say nothing of objects.
const SECRET_OBJECT_ENDS: [&str; 4] = ["_key", "_keys", "token", "apikey"];
/// The secret members of a JSON Web Key (RFC 7518, 6.2 to 6.4).
const JWK_SECRETS: [&str; 8] = ["k", "d", "p", "q", "dp", "dq", "qi", "oth"];
/// What a stored session holds about its user.
const SESSION_DATA: &str = "data";

/// Headers for a server elsewhere, as loggers and exporters send them. Any of them may let its sender in.
const HEADER_OBJECTS: [&str; 3] = ["headers", "request_headers", "custom_headers"];
/// Those that never do.
const PUBLIC_HEADERS: [&str; 5] = ["accept", "content-encoding", "content-type", "host", "user-agent"];
/// Arguments of a URL that hold a secret, though their names do not say so: signed URLs and functions of Azure have them.
const SECRET_ARGUMENTS: [&str; 2] = ["code", "sig"];
/// Words before credentials in a header, other than `Bearer` and `Basic`.
const CREDENTIAL_WORDS: [&str; 8] = [
    "apikey",
    "digest",
    "genie-key",
    "negotiate",
    "ntlm",
    "sharedkey",
    "splunk",
    "token",
];

/// Hides the secrets of a document.
pub fn hide(value: &mut Value) {
    hide_within(value, None, false);
}

/// Hides the secrets of a document, and says which of them are others than those in `before`.
pub fn hide_compared(value: &mut Value, before: &Value) {
    hide_within(value, Some(before), false);
}

/// Hides the secrets among the fields of a document.
pub fn hide_fields(fields: &mut Map<String, Value>) {
    hide_object(fields, None, false);
}

/// Whether a text in a field of this name is a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let is_strong = STRONG_WORDS.iter().any(|word| name.contains(word));
    let ends = if is_strong {
        &DESCRIBING_ENDS[..]
    } else {
        &PUBLIC_ENDS
    };
    let is_public = PUBLIC.contains(&name.as_str()) || ends.iter().any(|end| name.ends_with(end));
    !is_public && WORDS.iter().any(|word| name.contains(word))
}

/// Whether a text is a secret, whatever the name of its field: a private key, a header line with its name in front
/// of it, credentials for a header, or a URL that has some.
pub fn is_secret_text(text: &str) -> bool {
    is_private_key(text) || is_header_line(text) || is_authorization(text) || is_sensitive_url(text)
}

/// Whether a text holds a private key.
pub fn is_private_key(text: &str) -> bool {
    text.contains("PRIVATE KEY-----")
}

fn is_header_line(text: &str) -> bool {
    text.split_once(':').is_some_and(|(name, value)| {
        let is_name = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        // A host with its port is not a secret.
        let is_port = value.len() <= 5 && value.bytes().all(|byte| byte.is_ascii_digit());
        let is_secret =
            is_secret_name(name) || name.eq_ignore_ascii_case("sig") || is_credential(value.trim_start());
        is_name && !is_port && !value.starts_with("//") && is_secret
    })
}

fn is_authorization(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(' ') else {
        return false;
    };
    let is = |word: &&str| scheme.eq_ignore_ascii_case(word);
    // A sentence may begin with one of the other words.
    let is_one = rest.len() >= 8 && !rest.contains(' ');
    ["bearer", "basic"].iter().any(is) || (is_one && CREDENTIAL_WORDS.iter().any(is))
}

/// A URL, or a path with its query.
/// Credentials behind the name of their scheme, and no sentence that begins with it.
fn is_credential(text: &str) -> bool {
    is_authorization(text) && text.split(' ').count() == 2
}

fn is_sensitive_url(text: &str) -> bool {
    let rest = match text.split_once("://") {
        Some((_, rest)) => rest,
        None if text.starts_with('/') => text,
        None => return false,
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = place.split(['/', '#']).next().unwrap_or_default();
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    authority.contains('@')
        || pairs.any(|(name, _)| {
            is_secret_name(name) || SECRET_ARGUMENTS.iter().any(|it| name.eq_ignore_ascii_case(it))
        })
}

/// `is_secret`: the value stands in a field whose name says so.
fn hide_within(value: &mut Value, before: Option<&Value>, is_secret: bool) {
    let is_hidden = match value {
        Value::String(text) => !text.is_empty() && (is_secret || is_secret_text(text)),
        Value::Number(_) => is_secret,
        Value::Null | Value::Bool(_) => false,
        Value::Array(items) => {
            for (number, item) in items.iter_mut().enumerate() {
                hide_within(item, before.and_then(|it| it.get(number)), is_secret);
            }
            false
        }
        Value::Object(fields) => {
            hide_object(fields, before, false);
            false
        }
    };
    if is_hidden {
        let is_other = before.is_some_and(|before| before != value);
        *value = if is_other { HIDDEN_OTHER } else { HIDDEN }.into();
    }
}

/// `all`: every text in it is a secret.
fn hide_object(fields: &mut Map<String, Value>, before: Option<&Value>, all: bool) {
    let is_selector = BESIDE_SELECTORS
        .iter()
        .any(|selector| fields.contains_key(*selector));
    let is_jwk = fields.contains_key("kty");
    let is_session = fields.contains_key("session_id");
    let is_sender = fields
        .keys()
        .any(|name| name.contains("endpoint") || matches!(name.as_str(), "address" | "collector" | "url"));
    for (name, value) in fields {
        let before = before.and_then(|it| it.get(name));
        match value {
            Value::Object(inner) if is_sender && HEADER_OBJECTS.contains(&name.as_str()) => {
                for (name, value) in inner {
                    let is_public = PUBLIC_HEADERS.iter().any(|it| name.eq_ignore_ascii_case(it));
                    hide_within(value, before.and_then(|it| it.get(name)), all || !is_public);
                }
            }
            Value::Object(inner) => hide_object(inner, before, all || is_secret_object(name)),
            value => {
                let is_secret = is_secret_name(name) && !(is_selector && name == "key");
                let is_secret = is_secret || (is_jwk && JWK_SECRETS.contains(&name.as_str()));
                let is_secret = is_secret || (is_session && name == SESSION_DATA);
                hide_within(value, before, all || is_secret);
            }
        }
    }
}

/// Whether all texts of an object of this name are secrets.
fn is_secret_object(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_strong = STRONG_WORDS.iter().any(|word| lower.contains(word));
    let ends = SECRET_OBJECT_ENDS.iter().any(|end| lower.ends_with(end));
    SECRET_OBJECTS.contains(&name) || ((is_strong || ends) && is_secret_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_hidden_and_all_else_is_shown() {
        let pem = "-----BEGIN PRIVATE KEY-----\n";
        for (value, expected) in [
            (
                json!({"key": "k", "name": "n"}),
                json!({"key": "***", "name": "n"}),
            ),
            (
                json!({"key": 7, "password": ""}),
                json!({"key": "***", "password": ""}),
            ),
            (
                json!({"plugins": {"key-auth": {"header": "x", "hide": true, "key": "k"}}}),
                json!({"plugins": {"key-auth": {"header": "x", "hide": true, "key": "***"}}}),
            ),
            (
                json!({"credentials": [{"plugin": "key-auth", "config": {"key": "k"}}, {"key-auth": "k"}]}),
                json!({"credentials": [{"plugin": "key-auth", "config": {"key": "***"}}, {"key-auth": "***"}]}),
            ),
            (
                json!({"tls": {"client_cert": "c", "client_key": "$secret://vault/1/k", "x": pem}}),
                json!({"tls": {"client_cert": "c", "client_key": "***", "x": "***"}}),
            ),
            (
                json!({"key": "remote_addr", "hash_on": "vars", "nodes": []}),
                json!({"key": "remote_addr", "hash_on": "vars", "nodes": []}),
            ),
            (
                json!({"auth": {"header": {"X-Any": "v"}, "query": {"q": "v"}}}),
                json!({"auth": {"header": {"X-Any": "***"}, "query": {"q": "***"}}}),
            ),
            (
                json!({"resources": {"vault": {"any": "v", "cache": null}}, "vault": "name"}),
                json!({"resources": {"vault": {"any": "***", "cache": null}}, "vault": "name"}),
            ),
            (
                json!({"client_secret": {"value": "v", "from": ["w"]}, "api_key": {"value": "v"}}),
                json!({"client_secret": {"value": "***", "from": ["***"]}, "api_key": {"value": "***"}}),
            ),
            (
                json!({"keys": [{"kty": "oct", "kid": "1", "k": "v"}], "jwks": {"any": "v"}}),
                json!({"keys": [{"kty": "oct", "kid": "1", "k": "***"}], "jwks": {"any": "***"}}),
            ),
            (
                json!({"session_id": "s", "expires": 1, "data": "d"}),
                json!({"session_id": "s", "expires": 1, "data": "***"}),
            ),
            (json!({"data": "d"}), json!({"data": "d"})),
            (
                json!({"http_endpoint": "http://h/", "headers": {"X-Tenant": "v", "Content-Type": "a/b", "X-List": ["v"]}}),
                json!({"http_endpoint": "http://h/", "headers": {"X-Tenant": "***", "Content-Type": "a/b", "X-List": ["***"]}}),
            ),
            (
                json!({"x": "Splunk 0123-4567", "y": "token is invalid", "z": "ApiKey 01234567", "headers": {"set": {"X-A": "v"}}}),
                json!({"x": "***", "y": "token is invalid", "z": "***", "headers": {"set": {"X-A": "v"}}}),
            ),
            (
                json!({"function_uri": "http://h/x?code=s", "uri": "/x?apikey=s", "paths": ["/x?page=2", "/code"]}),
                json!({"function_uri": "***", "uri": "***", "paths": ["/x?page=2", "/code"]}),
            ),
            (
                json!({"add": ["sig:s", "x-foo:Basic c2VjcmV0", "x-foo: Bearer s", "x:y", "error: Bearer token is invalid"], "clientid": "s", "client_id": "i"}),
                json!({"add": ["***", "***", "***", "x:y", "error: Bearer token is invalid"], "clientid": "***", "client_id": "i"}),
            ),
            (
                json!({"url": "http://h/", "headers": {"X-Tok": "s"}}),
                json!({"url": "http://h/", "headers": {"X-Tok": "***"}}),
            ),
            (
                json!({"headers": ["Authorization:b", "a:b"], "set": {"X-Api-Key": "v", "X-A": "Bearer v"}}),
                json!({"headers": ["***", "a:b"], "set": {"X-Api-Key": "***", "X-A": "***"}}),
            ),
            (
                json!({"url": "redis://u:p@h/0", "b": "http://h/a@b", "c": "https://h/x?api_key=1", "d": "http://token:80/"}),
                json!({"url": "***", "b": "http://h/a@b", "c": "***", "d": "http://token:80/"}),
            ),
            (
                json!({"key_names": ["apikey"], "token_endpoint": "https://h/t", "session_cookie_lifetime": 3, "key_id": "i"}),
                json!({"key_names": ["apikey"], "token_endpoint": "https://h/t", "session_cookie_lifetime": 3, "key_id": "i"}),
            ),
            (
                json!({"approle_secret_id": "s", "approle_secret_id_file": "/f", "approle_role_id": "r"}),
                json!({"approle_secret_id": "***", "approle_secret_id_file": "/f", "approle_role_id": "r"}),
            ),
            (
                json!({"secret_fallbacks": ["a", "b"], "public_key": "p", "jwk": "{}"}),
                json!({"secret_fallbacks": ["***", "***"], "public_key": "p", "jwk": "***"}),
            ),
        ] {
            let mut hidden = value.clone();
            hide(&mut hidden);
            assert_eq!(hidden, expected, "{value}");
        }
    }

    /// Fields that the originals keep encrypted, and those of Weir's own credentials, keys and stores.
    #[test]
    fn fields_that_hold_secrets_are_known_by_their_names() {
        for name in [
            "access_key_secret",
            "api_key",
            "apikey",
            "app_secret",
            "appkey",
            "auth_header",
            "aws_key",
            "aws_secret",
            "client_key",
            "client_rsa_private_key",
            "client_secret",
            "customer_token",
            "eab_hmac_key",
            "eab_kid",
            "endpoint_key",
            "hash",
            "jwk",
            "key",
            "key_alt",
            "keys",
            "ldap_password",
            "master_apikey",
            "password",
            "password_sha1",
            "private_key",
            "provision_key",
            "redis_password",
            "salt",
            "sasl_password",
            "secret",
            "secret_access_key",
            "secret_fallbacks",
            "secret_id",
            "secret_key",
            "secret_v1",
            "sentinel_password",
            "service_account_json",
            "service_token",
            "session_token",
            "token",
            "Authorization",
            "X-Api-Key",
            "Cookie",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "certificate",
            "client_cert",
            "cookie_name",
            "hash_on",
            "hash_fallback",
            "host",
            "hosts",
            "key_claim_name",
            "key_names",
            "kid",
            "name",
            "path",
            "public_key",
            "rsa_public_key",
            "token_endpoint",
            "url",
            "username",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn another_secret_is_recognised_as_such() {
        let mut value = json!({"key": "k", "secret": "s", "hosts": ["a"]});
        hide_compared(&mut value, &json!({"key": "j", "secret": "s", "hosts": ["b"]}));
        let expected = json!({"key": "*** (another)", "secret": "***", "hosts": ["a"]});
        assert_eq!(value, expected);
    }
}
