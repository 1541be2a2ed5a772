//! Consumers with the credentials that Weir's plugins accept.

use crate::document::{BasicauthCredential, Document, Entity, JwtSecret};
use crate::plugins::GROUPS;
use serde_json::Value;
use std::collections::HashMap;
use uuid::Uuid;
use weir_model::{Consumer, Credential, Diagnostic};
use weir_plugins::{basic_auth, hmac_auth, jwt, key_auth};

/// Translates consumers and credentials.
pub fn translate(document: &Document, found: &mut Vec<Diagnostic>) -> Vec<Consumer> {
    let mut credentials: HashMap<Uuid, Vec<Credential>> = HashMap::new();
    for Entity { place, value: key } in &document.keyauth_credentials {
        let Some(text) = &key.key else {
            let message = "a credential without a key was skipped: Weir generates no keys in files";
            found.push(Diagnostic::warning(place.to_path(), message));
            continue;
        };
        let config = key_auth::Credential::plain(text);
        push(
            &mut credentials,
            key.consumer,
            key.id.to_string(),
            "key-auth",
            config,
        );
    }
    for Entity { place, value: secret } in &document.jwt_secrets {
        match jwt_credential(secret) {
            // Upstreams are told the key by which tokens name the credential, not its id.
            Ok(config) => {
                let name = config.key.clone();
                if config.short_rsa_key {
                    let message = "an RSA key of fewer than 2048 bits can be broken";
                    found.push(Diagnostic::warning(place.to_path(), message));
                }
                push(&mut credentials, secret.consumer, name, "jwt", config);
            }
            Err(message) => found.push(Diagnostic::warning(place.to_path(), message)),
        }
    }
    for Entity { value, .. } in &document.basicauth_credentials {
        let config = password(value, document.hashed_passwords);
        let name = value.username.clone();
        push(&mut credentials, value.consumer, name, "basic-auth", config);
    }
    for Entity { place, value } in &document.hmacauth_credentials {
        let Some(secret) = value.secret.clone() else {
            let message = "a credential without a secret was skipped: Weir generates no secrets in files";
            found.push(Diagnostic::warning(place.to_path(), message));
            continue;
        };
        let key = value.username.clone();
        let config = hmac_auth::Credential { key, secret };
        push(
            &mut credentials,
            value.consumer,
            value.username.clone(),
            "hmac-auth",
            config,
        );
    }
    let mut groups: HashMap<Uuid, Vec<&str>> = HashMap::new();
    for Entity { value, .. } in &document.acls {
        groups.entry(value.consumer).or_default().push(&value.group);
    }
    groups.values_mut().for_each(|groups| groups.sort_unstable());
    let labels = |consumer| {
        let groups = groups.get(&consumer)?;
        let text = serde_json::to_string(groups).unwrap_or_default();
        Some((GROUPS.to_owned(), text))
    };
    document
        .consumers
        .iter()
        .map(|Entity { value: consumer, .. }| Consumer {
            id: consumer.id.to_string(),
            username: consumer.username.clone(),
            custom_id: consumer.custom_id.clone(),
            group: None,
            labels: labels(consumer.id).into_iter().collect(),
            credentials: credentials.remove(&consumer.id).unwrap_or_default(),
            dialect: crate::NAME,
            workspace: None,
        })
        .collect()
}

/// A hash is one of the password with the consumer's id behind it.
fn password(credential: &BasicauthCredential, is_hashed: bool) -> basic_auth::Credential {
    let text = credential.password.clone();
    let (password, password_sha1) = match is_hashed {
        false => (Some(text), None),
        true => {
            let salt = credential.consumer.to_string();
            (None, Some(basic_auth::Sha1 { hash: text, salt }))
        }
    };
    basic_auth::Credential {
        username: credential.username.clone(),
        password,
        password_sha1,
    }
}

fn push(
    credentials: &mut HashMap<Uuid, Vec<Credential>>,
    consumer: Uuid,
    name: String,
    plugin: &str,
    config: impl serde::Serialize,
) {
    credentials.entry(consumer).or_default().push(Credential {
        id: Some(name),
        plugin: plugin.to_owned(),
        config: serde_json::to_value(config).unwrap_or_default(),
    });
}

fn jwt_credential(secret: &JwtSecret) -> Result<jwt::Credential, &'static str> {
    let unusable = "a credential without a secret was skipped: Weir generates no secrets in files";
    let key = secret.key.clone().ok_or(unusable)?;
    let name = secret.algorithm.as_deref().unwrap_or("HS256");
    let algorithm = serde_json::from_value(Value::from(name)).map_err(|_| "an unknown algorithm")?;
    let is_shared = name.starts_with("HS");
    if is_shared && secret.secret.is_none() {
        return Err(unusable);
    }
    if !is_shared && secret.rsa_public_key.is_none() {
        return Err("a secret without the public key of its algorithm was left out");
    }
    let public_key = secret.rsa_public_key.clone().filter(|_| !is_shared);
    Ok(jwt::Credential {
        key,
        algorithm,
        secret: secret.secret.clone().filter(|_| is_shared),
        secret_is_base64: false,
        short_rsa_key: public_key
            .as_deref()
            .is_some_and(jwt::Credential::is_short_rsa_key),
        public_key,
        leeway_seconds: 0,
    })
}
