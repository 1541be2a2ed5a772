//! Secrets in answers to writes: as APISIX stores and answers them, encrypted with its keyring.
//!
//! The store keeps documents in its own safety, so they are stored as they were written. Values that have been
//! encrypted with the keyring already, in private keys taken from an APISIX, are opened before they are stored.
//!
//! And secrets in answers to reads: a caller who may only read does not see them.

use super::key::Role;
use super::kind::Kind;
use crate::schema::is_secret_reference;
use aws_lc_rs::cipher::{
    AES_128, AES_256, DecryptionContext, EncryptionContext, PaddedBlockDecryptingKey,
    PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use weir_model::secrets;

/// The fields of plugins' configurations that are secrets.
const FIELDS: [(&str, &str); 33] = [
    ("authz-casdoor", "client_secret"),
    ("authz-keycloak", "client_secret"),
    ("azure-functions", "master_apikey"),
    ("basic-auth", "password"),
    ("cas-auth", "cookie/secret"),
    ("clickhouse-logger", "password"),
    ("csrf", "key"),
    ("dingtalk-auth", "app_secret"),
    ("dingtalk-auth", "secret"),
    ("feishu-auth", "app_secret"),
    ("feishu-auth", "secret"),
    ("hmac-auth", "secret_key"),
    ("http-logger", "auth_header"),
    ("jwe-decrypt", "key"),
    ("jwe-decrypt", "secret"),
    ("jwt-auth", "secret"),
    ("kafka-proxy", "sasl/password"),
    ("key-auth", "key"),
    ("lago", "token"),
    ("ldap-auth-advanced", "ldap_password"),
    ("limit-conn", "redis_password"),
    ("limit-count", "redis_password"),
    ("limit-count", "sentinel_password"),
    ("limit-req", "redis_password"),
    ("loggly", "customer_token"),
    ("openid-connect", "client_secret"),
    ("openid-connect", "client_rsa_private_key"),
    ("openwhisk", "service_token"),
    ("rocketmq-logger", "secret_key"),
    ("saml-auth", "secret"),
    ("saml-auth", "sp_private_key"),
    ("sls-logger", "access_key_secret"),
    ("splunk-hec-logging", "endpoint/token"),
];

/// Where documents hold private keys.
const PRIVATE_KEYS: [&str; 3] = ["/key", "/tls/client_key", "/upstream/tls/client_key"];

/// The keys by which secrets are encrypted, each of 16 or 32 bytes; the first encrypts, all decrypt.
#[derive(Clone, Default)]
pub struct Keyring {
    /// The keys.
    pub keys: Vec<String>,
    /// Whether secrets of plugins are encrypted; private keys of certificates are in any case.
    pub encrypts_fields: bool,
}

/// Keys are secrets.
impl fmt::Debug for Keyring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Keyring({} keys)", self.keys.len())
    }
}

impl Keyring {
    /// The keys of APISIX's stock configuration.
    pub fn stock() -> Self {
        Self {
            keys: vec!["qeddd145sfvddff3".to_owned(), "edd1c9f0985e76a2".to_owned()],
            encrypts_fields: true,
        }
    }

    /// A document with its secrets encrypted, as it is returned to the client that wrote it.
    pub fn encrypt_fields(&self, kind: Kind, mut value: Value) -> Value {
        let plugins = match kind {
            Kind::PluginMetadata => None,
            _ if !self.encrypts_fields => None,
            _ => value.get_mut("plugins"),
        };
        if let Some(plugins) = plugins {
            for (plugin, field) in FIELDS {
                if let Some(Value::String(text)) = plugins.pointer_mut(&format!("/{plugin}/{field}")) {
                    *text = self.encrypted(text);
                }
            }
        }
        self.each_private_key(kind, &mut value, |key| {
            key.starts_with("---").then(|| self.encrypted(key))
        });
        value
    }

    /// Opens the private keys of a document that have been encrypted before.
    pub fn open(&self, kind: Kind, value: &mut Value) {
        self.each_private_key(kind, value, |key| {
            let is_plain = key.contains("---") || is_secret_reference(key);
            (!is_plain).then(|| self.decrypted(key)).flatten()
        });
    }

    fn each_private_key(&self, kind: Kind, value: &mut Value, change: impl Fn(&str) -> Option<String>) {
        let replace = |place: &mut Value| {
            if let Some(changed) = place.as_str().and_then(&change) {
                *place = Value::String(changed);
            }
        };
        for place in PRIVATE_KEYS {
            if kind != Kind::Ssl && place == "/key" {
                continue;
            }
            value.pointer_mut(place).into_iter().for_each(replace);
        }
        if kind == Kind::Ssl
            && let Some(Value::Array(keys)) = value.get_mut("keys")
        {
            keys.iter_mut().for_each(replace);
        }
    }

    /// AES in CBC mode, the key being the initial vector too, in Base64. Without a key, the text itself.
    fn encrypted(&self, text: &str) -> String {
        let sealed = self.keys.first().and_then(|key| {
            let (key, vector) = cipher_key(key)?;
            let key = PaddedBlockEncryptingKey::cbc_pkcs7(key).ok()?;
            let mut bytes = text.as_bytes().to_vec();
            let context = EncryptionContext::Iv128(FixedLength::from(vector));
            key.less_safe_encrypt(&mut bytes, context).ok()?;
            Some(STANDARD.encode(bytes))
        });
        sealed.unwrap_or_else(|| text.to_owned())
    }

    fn decrypted(&self, text: &str) -> Option<String> {
        let bytes = STANDARD.decode(text).ok()?;
        self.keys.iter().find_map(|key| {
            let (key, vector) = cipher_key(key)?;
            let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).ok()?;
            let mut bytes = bytes.clone();
            let context = DecryptionContext::Iv128(FixedLength::from(vector));
            let opened = key.decrypt(&mut bytes, context).ok()?;
            String::from_utf8(opened.to_vec()).ok()
        })
    }
}

/// A document as it is shown to its reader. The private keys of a certificate are never shown, as in APISIX; all
/// other secrets to callers who may write.
pub fn redact(kind: Kind, value: &Value, role: Role) -> Cow<'_, Value> {
    let is_certificate = kind == Kind::Ssl;
    if role == Role::Admin && !is_certificate {
        return Cow::Borrowed(value);
    }
    let mut value = value.clone();
    if is_certificate {
        take_keys(&mut value);
    }
    if role == Role::Viewer {
        secrets::hide(&mut value);
    }
    Cow::Owned(value)
}

/// Takes the private keys out of a document, wherever they are in it.
pub fn take_private_keys(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|name, value| name != "client_key" && !is_private_key(value));
            map.values_mut().for_each(take_private_keys);
        }
        Value::Array(items) => {
            items.retain(|item| !is_private_key(item));
            items.iter_mut().for_each(take_private_keys);
        }
        _ => {}
    }
}

fn is_private_key(value: &Value) -> bool {
    value.as_str().is_some_and(secrets::is_private_key)
}

/// Takes the private keys out of a certificate.
fn take_keys(value: &mut Value) {
    if let Value::Object(map) = value {
        map.shift_remove("key");
        map.shift_remove("keys");
    }
}

/// The fields of a plugin's configuration that are secrets.
pub fn secret_fields(plugin: &str) -> impl Iterator<Item = String> {
    FIELDS
        .into_iter()
        .filter(move |(name, _)| *name == plugin)
        .map(|(_, field)| field.replace('/', "."))
}

fn cipher_key(key: &str) -> Option<(UnboundCipherKey, [u8; 16])> {
    let algorithm = match key.len() {
        16 => &AES_128,
        32 => &AES_256,
        _ => return None,
    };
    let vector = key.as_bytes().first_chunk()?;
    Some((UnboundCipherKey::new(algorithm, key.as_bytes()).ok()?, *vector))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn private_keys_are_for_whoever_may_write() {
        let pem = "-----BEGIN RSA PRIVATE KEY-----\n";
        let tls = json!({"client_cert": "c", "client_key": "$secret://vault/1/k"});
        let open = json!({"client_cert": "c", "client_key": "***"});
        let split = |tls: &Value| json!({"plugins": {"traffic-split": {"rules": [{"weighted_upstreams": [{"upstream": {"tls": tls}}]}]}}});
        for (kind, stored, for_admin, for_viewer) in [
            (
                Kind::Ssl,
                json!({"cert": "c", "key": "k", "keys": ["k"], "snis": ["a"]}),
                json!({"cert": "c", "snis": ["a"]}),
                json!({"cert": "c", "snis": ["a"]}),
            ),
            (
                Kind::Upstream,
                json!({"tls": tls}),
                json!({"tls": tls}),
                json!({"tls": open}),
            ),
            (
                Kind::Service,
                json!({"upstream": {"tls": tls}}),
                json!({"upstream": {"tls": tls}}),
                json!({"upstream": {"tls": open}}),
            ),
            (Kind::Route, split(&tls), split(&tls), split(&open)),
            (
                Kind::GlobalRule,
                json!({"plugins": {"openid-connect": {"client_rsa_private_key": pem}, "x": {"keys": [pem, "a"]}}}),
                json!({"plugins": {"openid-connect": {"client_rsa_private_key": pem}, "x": {"keys": [pem, "a"]}}}),
                json!({"plugins": {"openid-connect": {"client_rsa_private_key": "***"}, "x": {"keys": ["***", "***"]}}}),
            ),
        ] {
            assert_eq!(*redact(kind, &stored, Role::Admin), for_admin);
            assert_eq!(*redact(kind, &stored, Role::Viewer), for_viewer);
        }
    }

    /// What the original encrypts is a secret, and is none of a reader's business.
    #[test]
    fn what_the_original_encrypts_is_hidden_from_readers() {
        for (plugin, field) in FIELDS {
            let mut config = json!("the secret");
            for name in field.rsplit('/') {
                config = json!({ name: config });
            }
            for (kind, document) in [
                (Kind::Route, json!({"plugins": {plugin: config}})),
                (
                    Kind::Consumer,
                    json!({"username": "u", "plugins": {plugin: config}}),
                ),
                (Kind::Secret, json!({"id": "vault/1", "token": "the secret"})),
                (
                    Kind::PluginMetadata,
                    json!({"id": plugin, "password": "the secret"}),
                ),
            ] {
                let hidden = redact(kind, &document, Role::Viewer);
                assert!(
                    !hidden.to_string().contains("the secret"),
                    "{plugin} {field}: {hidden}"
                );
                assert_eq!(*redact(kind, &document, Role::Admin), document);
            }
        }
    }

    #[test]
    fn secrets_are_encrypted() {
        let keyring = Keyring::stock();
        let document = json!({"plugins": {"key-auth": {"key": "auth-one"}, "cors": {}}, "upstream": {"tls": {"client_key": "---k"}}});
        let mut encrypted = keyring.encrypt_fields(Kind::Consumer, document.clone());
        assert_eq!(
            encrypted.pointer("/plugins/key-auth/key"),
            Some(&json!("4y+JvURBE6ZwRbbgaryrhg=="))
        );
        assert_ne!(encrypted["upstream"], document["upstream"]);
        let open = Keyring {
            encrypts_fields: false,
            ..Keyring::stock()
        };
        let plain = open.encrypt_fields(Kind::Consumer, document.clone());
        assert_eq!(plain["plugins"], document["plugins"]);
        assert_ne!(plain["upstream"], document["upstream"]);
        keyring.open(Kind::Consumer, &mut encrypted);
        assert_eq!(encrypted["upstream"], document["upstream"]);
        assert_eq!(
            Keyring::default().encrypt_fields(Kind::Consumer, document.clone()),
            document
        );
    }
}
