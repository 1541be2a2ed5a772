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

/// The fields of plugins' configurations that are secrets: names of fields, one inside of the other, through lists too.
/// At their end stands a text, or texts in a list or a map.
const FIELDS: [(&str, &str); 71] = [
    ("ai-aliyun-content-moderation", "access_key_secret"),
    ("ai-cache", "redis_password"),
    ("ai-cache", "semantic.embedding.openai.api_key"),
    ("ai-cache", "semantic.embedding.azure_openai.api_key"),
    ("ai-lakera-guard", "api_key"),
    ("ai-proxy", "auth.header"),
    ("ai-proxy", "auth.query"),
    ("ai-proxy", "auth.gcp.service_account_json"),
    ("ai-proxy", "auth.aws.secret_access_key"),
    ("ai-proxy", "auth.aws.session_token"),
    ("ai-proxy-multi", "instances.auth.header"),
    ("ai-proxy-multi", "instances.auth.query"),
    ("ai-proxy-multi", "instances.auth.gcp.service_account_json"),
    ("ai-proxy-multi", "instances.auth.aws.secret_access_key"),
    ("ai-proxy-multi", "instances.auth.aws.session_token"),
    ("ai-proxy-multi", "semantic_opts.embeddings.auth.header"),
    ("ai-proxy-multi", "semantic_opts.embeddings.auth.query"),
    ("ai-rag", "embeddings_provider.azure_openai.api_key"),
    ("ai-rag", "vector_search_provider.azure_ai_search.api_key"),
    ("ai-rate-limiting", "redis_password"),
    ("ai-rate-limiting", "sentinel_password"),
    ("authz-casdoor", "client_secret"),
    ("authz-keycloak", "client_secret"),
    ("aws-lambda", "authorization.apikey"),
    ("aws-lambda", "authorization.iam.accesskey"),
    ("aws-lambda", "authorization.iam.secretkey"),
    ("azure-functions", "authorization.apikey"),
    ("basic-auth", "password"),
    ("cas-auth", "cookie.secret"),
    ("clickhouse-logger", "password"),
    ("csrf", "key"),
    ("dingtalk-auth", "app_secret"),
    ("dingtalk-auth", "secret"),
    ("dingtalk-auth", "secret_fallbacks"),
    ("elasticsearch-logger", "auth.password"),
    ("elasticsearch-logger", "headers"),
    ("feishu-auth", "app_secret"),
    ("feishu-auth", "secret"),
    ("feishu-auth", "secret_fallbacks"),
    ("google-cloud-logging", "auth_config.private_key"),
    ("graphql-limit-count", "redis_password"),
    ("graphql-limit-count", "sentinel_password"),
    ("hmac-auth", "secret_key"),
    ("http-logger", "auth_header"),
    ("jwe-decrypt", "key"),
    ("jwe-decrypt", "secret"),
    ("jwt-auth", "secret"),
    ("kafka-logger", "brokers.sasl_config.password"),
    ("kafka-proxy", "sasl.password"),
    ("key-auth", "key"),
    ("lago", "token"),
    ("ldap-auth-advanced", "ldap_password"),
    ("limit-conn", "redis_password"),
    ("limit-count", "redis_password"),
    ("limit-count", "sentinel_password"),
    ("limit-req", "redis_password"),
    ("loggly", "customer_token"),
    ("loki-logger", "headers"),
    ("openfunction", "authorization.service_token"),
    ("openid-connect", "client_secret"),
    ("openid-connect", "client_rsa_private_key"),
    ("openid-connect", "dpop.private_key"),
    ("openid-connect", "session.secret"),
    ("openid-connect", "session.redis.password"),
    ("openwhisk", "service_token"),
    ("rocketmq-logger", "secret_key"),
    ("saml-auth", "secret"),
    ("saml-auth", "sp_private_key"),
    ("sls-logger", "access_key_secret"),
    ("splunk-hec-logging", "endpoint.token"),
    ("tencent-cloud-cls", "secret_key"),
];

/// Those of the metadata of plugins.
const METADATA_FIELDS: [(&str, &str); 3] = [
    ("azure-functions", "master_apikey"),
    ("error-log-logger", "clickhouse.password"),
    ("error-log-logger", "kafka.brokers.sasl_config.password"),
];

/// The places of private keys in documents.
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
        if self.encrypts_fields {
            each_secret(kind, &mut value, &|text| *text = self.encrypted(text));
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

/// Changes the secrets of plugins in a document.
fn each_secret(kind: Kind, value: &mut Value, change: &impl Fn(&mut String)) {
    if kind == Kind::PluginMetadata {
        for (plugin, field) in METADATA_FIELDS {
            // Metadata have the id of their plugin.
            if value.get("id").is_some_and(|id| id == plugin) {
                each_text(value, field, change);
            }
        }
    } else if let Some(plugins) = value.get_mut("plugins") {
        for (plugin, field) in FIELDS {
            if let Some(config) = plugins.get_mut(plugin) {
                each_text(config, field, change);
            }
        }
    }
}

/// Changes the texts of a field, which may be inside of others.
fn each_text(value: &mut Value, field: &str, change: &impl Fn(&mut String)) {
    let (name, rest) = field.split_once('.').unwrap_or((field, ""));
    let Some(value) = value.get_mut(name) else {
        return;
    };
    match (value, rest) {
        (Value::String(text), "") => change(text),
        (Value::Array(items), "") => items.iter_mut().for_each(|item| change_text(item, change)),
        (Value::Object(fields), "") => fields.values_mut().for_each(|item| change_text(item, change)),
        (Value::Array(items), rest) => items.iter_mut().for_each(|item| each_text(item, rest, change)),
        (value, rest) => each_text(value, rest, change),
    }
}

fn change_text(value: &mut Value, change: &impl Fn(&mut String)) {
    if let Value::String(text) = value {
        change(text);
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
        hide_secrets(kind, &mut value);
    }
    Cow::Owned(value)
}

/// Puts the sign of a hidden value in place of each secret of a document.
pub fn hide_secrets(kind: Kind, value: &mut Value) {
    each_secret(kind, value, &|text| {
        if !text.is_empty() {
            *text = secrets::HIDDEN.to_owned();
        }
    });
    secrets::hide(value);
}

/// Takes the private keys out of a document, at any position in it.
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
pub fn secret_fields(plugin: &str) -> impl Iterator<Item = &'static str> {
    FIELDS
        .into_iter()
        .filter(move |(name, _)| *name == plugin)
        .map(|(_, field)| field)
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

    /// What the original encrypts is a secret that readers do not see. Its writer gets it back encrypted.
    #[test]
    fn what_the_original_encrypts_is_hidden_from_readers() {
        let keyring = Keyring::stock();
        let own = FIELDS.map(|(plugin, field)| (false, plugin, field));
        let of_metadata = METADATA_FIELDS.map(|(plugin, field)| (true, plugin, field));
        for (is_metadata, plugin, field) in own.into_iter().chain(of_metadata) {
            for leaf in [
                json!("the secret"),
                json!(["the secret"]),
                json!({"X-A": "the secret"}),
            ] {
                let parts: Vec<&str> = field.split('.').collect();
                // Lists stand where fields end in others.
                let config = parts.iter().rev().fold(leaf, |inner, name| match *name {
                    "brokers" | "instances" => json!({ *name: [{"weight": 1}, inner] }),
                    name => json!({ name: inner }),
                });
                let mut metadata = config.clone();
                metadata["id"] = plugin.into();
                let documents = match is_metadata {
                    true => vec![(Kind::PluginMetadata, metadata)],
                    false => vec![
                        (Kind::Route, json!({"plugins": {plugin: config}})),
                        (
                            Kind::Consumer,
                            json!({"username": "u", "plugins": {plugin: config}}),
                        ),
                    ],
                };
                for (kind, document) in documents {
                    let hidden = redact(kind, &document, Role::Viewer).into_owned();
                    let encrypted = keyring.encrypt_fields(kind, document.clone());
                    for response in [hidden, encrypted] {
                        assert!(
                            !response.to_string().contains("the secret"),
                            "{plugin} {field}: {response}"
                        );
                    }
                    assert_eq!(*redact(kind, &document, Role::Admin), document);
                }
            }
        }
        for (kind, document) in [
            (Kind::Secret, json!({"id": "vault/1", "token": "the secret"})),
            (
                Kind::PluginMetadata,
                json!({"id": "cors", "password": "the secret"}),
            ),
        ] {
            let hidden = redact(kind, &document, Role::Viewer);
            assert!(!hidden.to_string().contains("the secret"), "{hidden}");
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
