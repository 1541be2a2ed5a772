//! What is shown of documents to whoever may not know their secrets.
//!
//! Documents are of all doors and of plugins of many kinds, so that secrets are known by how fields are called and by
//! what texts look like; rather too much is hidden than too little.

use serde_json::Value;

/// What stands in the place of a secret.
const HIDDEN: &str = "***";
/// What stands in the place of a secret that was another one before.
const OTHER: &str = "*** (another)";
/// What the names of fields that hold secrets have in them.
const WORDS: [&str; 12] = [
    "auth",
    "cookie",
    "credential",
    "hash",
    "hmac",
    "key",
    "passw",
    "private",
    "salt",
    "secret",
    "session",
    "token",
];

/// Hides the secrets of a document. What it was before, where it was there, tells which of them are others now.
pub fn hide_secrets(value: &mut Value, before: Option<&Value>) {
    hide(value, before, false);
}

/// Hides the private keys of a document.
pub fn hide_private_keys(value: &mut Value) {
    match value {
        Value::String(text) if is_private_key(text) => *value = HIDDEN.into(),
        Value::Array(items) => items.iter_mut().for_each(hide_private_keys),
        Value::Object(fields) => fields.values_mut().for_each(hide_private_keys),
        _ => {}
    }
}

/// `is_secret`: the value stands in a field that is called like a secret.
fn hide(value: &mut Value, before: Option<&Value>, is_secret: bool) {
    let is_hidden = match value {
        Value::String(text) => is_secret || is_telling(text),
        Value::Number(_) => is_secret,
        Value::Null | Value::Bool(_) => false,
        Value::Array(items) => {
            for (number, item) in items.iter_mut().enumerate() {
                hide(item, before.and_then(|it| it.get(number)), is_secret);
            }
            false
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let before = before.and_then(|it| it.get(name));
                hide(field, before, is_secret || is_of_secret(name));
            }
            false
        }
    };
    if is_hidden {
        let is_other = before.is_some_and(|before| before != value);
        *value = if is_other { OTHER } else { HIDDEN }.into();
    }
}

fn is_of_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}

/// A private key, a header with its name in front of it, or a URL with a password.
fn is_telling(text: &str) -> bool {
    let is_header = text.split_once(':').is_some_and(|(name, _)| is_of_secret(name));
    let has_password = text.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority.contains('@')
    });
    is_private_key(text) || is_header || has_password
}

fn is_private_key(text: &str) -> bool {
    text.contains("PRIVATE KEY-----")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_hidden_wherever_they_are() {
        let pem = "-----BEGIN PRIVATE KEY-----\n";
        for (value, before, expected) in [
            (
                json!({"key": "k", "name": "n"}),
                None,
                json!({"key": "***", "name": "n"}),
            ),
            (
                json!({"key": "k", "secret": "s", "hosts": ["a"]}),
                Some(json!({"key": "j", "secret": "s", "hosts": ["b"]})),
                json!({"key": "*** (another)", "secret": "***", "hosts": ["a"]}),
            ),
            (
                json!({"plugins": {"key-auth": {"header": "x", "hide": true}}}),
                None,
                json!({"plugins": {"key-auth": {"header": "***", "hide": true}}}),
            ),
            (
                json!({"tls": {"client_key": 7, "x": pem}, "add": {"headers": ["Authorization:b", "a:b"]}}),
                None,
                json!({"tls": {"client_key": "***", "x": "***"}, "add": {"headers": ["***", "a:b"]}}),
            ),
            (
                json!({"url": "redis://u:p@h/0", "other": "http://h/a@b"}),
                None,
                json!({"url": "***", "other": "http://h/a@b"}),
            ),
        ] {
            let mut hidden = value.clone();
            hide_secrets(&mut hidden, before.as_ref());
            assert_eq!(hidden, expected, "{value}");
        }
        let mut certificate = json!({"key": pem, "keys": [pem, "/etc/key.pem"], "name": "n"});
        hide_private_keys(&mut certificate);
        assert_eq!(
            certificate,
            json!({"key": "***", "keys": ["***", "/etc/key.pem"], "name": "n"})
        );
    }
}
