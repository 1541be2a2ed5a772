//! Consumers with the credentials that Weir's plugins accept.

use crate::document::{
    self, BasicauthCredential, Document, Entity, JwtSecret, OAuth2Credential, OAuth2Token,
};
use crate::plugins::{GROUPS, OAUTH2};
use aws_lc_rs::digest::{SHA256, digest};
use data_encoding::HEXLOWER;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;
use weir_model::{Consumer, Credential, Diagnostic};
use weir_plugins::{basic_auth, hmac_auth, jwt, key_auth, oauth2_server};

/// Translates consumers and credentials.
pub fn translate(document: &Document, found: &mut Vec<Diagnostic>) -> Vec<Consumer> {
    let mut credentials: HashMap<Uuid, Vec<Credential>> = HashMap::new();
    let keys = document.keyauth_credentials.iter();
    for Entity { place, value: key } in keys.chain(&document.keyauth_enc_credentials) {
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
            // Upstreams get the key by which tokens name the credential, not its id.
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
    for (consumer, client) in oauth2_clients(document, found) {
        let name = client.client_id.clone();
        push(&mut credentials, consumer, name, OAUTH2, client);
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
            details: details(consumer),
            credentials: credentials.remove(&consumer.id).unwrap_or_default(),
            dialect: crate::NAME,
            workspace: None,
        })
        .collect()
}

/// What policy agents are told about a consumer besides its names. Most have nothing of it, and take no room for it.
fn details(consumer: &document::Consumer) -> BTreeMap<String, Value> {
    let tags = consumer.tags.clone().filter(|tags| !tags.is_null());
    tags.map(|tags| ("tags".to_owned(), tags)).into_iter().collect()
}

/// Clients of OAuth 2.0 with the tokens that an administrator has written, each with its consumer.
fn oauth2_clients(
    document: &Document,
    found: &mut Vec<Diagnostic>,
) -> Vec<(Uuid, oauth2_server::Credential)> {
    let mut tokens: HashMap<Uuid, Vec<oauth2_server::StoredToken>> = HashMap::new();
    for Entity { place, value: token } in &document.oauth2_tokens {
        match stored_token(token) {
            Ok(stored) => tokens.entry(token.credential).or_default().push(stored),
            Err(message) => found.push(Diagnostic::warning(place.to_path(), message)),
        }
    }
    let mut clients = Vec::with_capacity(document.oauth2_credentials.len());
    for Entity { place, value } in &document.oauth2_credentials {
        match oauth2_client(value, document.hashed_passwords) {
            Ok(mut client) => {
                client.tokens = tokens.remove(&value.id).unwrap_or_default();
                clients.push((value.consumer, client));
            }
            Err(message) => found.push(Diagnostic::warning(place.to_path(), message)),
        }
    }
    clients
}

fn oauth2_client(
    credential: &OAuth2Credential,
    is_hashed: bool,
) -> Result<oauth2_server::Credential, &'static str> {
    let public = credential.client_type == "public";
    let missing = "a client without an id or a secret was skipped: Weir generates none in files";
    let secret = credential.client_secret.clone().filter(|_| !public);
    if secret.is_none() && !public {
        return Err(missing);
    }
    let (client_secret, client_secret_pbkdf2) = match is_hashed && credential.hash_secret {
        true => (None, secret),
        false => (secret, None),
    };
    Ok(oauth2_server::Credential {
        id: Some(credential.id.to_string()),
        client_id: credential.client_id.clone().ok_or(missing)?,
        client_secret,
        client_secret_pbkdf2,
        redirect_uris: credential.redirect_uris.clone(),
        public,
        tokens: Vec::new(),
    })
}

fn stored_token(token: &OAuth2Token) -> Result<oauth2_server::StoredToken, &'static str> {
    let access_token = token.access_token.as_deref();
    let access_token =
        access_token.ok_or("a token without access_token was skipped: Weir generates none in files")?;
    if token.expires_in > 0 && token.created_at.is_none() {
        return Err("a token that expires was skipped: without created_at it is not known when");
    }
    let sha256 = |text: &str| HEXLOWER.encode(digest(&SHA256, text.as_bytes()).as_ref());
    Ok(oauth2_server::StoredToken {
        access_token_sha256: sha256(access_token),
        refresh_token_sha256: token.refresh_token.as_deref().map(sha256),
        service: token.service.map(|id| id.to_string()),
        scope: token.scope.clone(),
        authenticated_user: token.authenticated_userid.clone(),
        created_at: token.created_at.unwrap_or_default(),
        expires_seconds: token.expires_in.max(0) as u64,
    })
}

/// A hash is one of the password followed by the consumer's id.
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
        password_sha256: None,
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
        expires: None,
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
