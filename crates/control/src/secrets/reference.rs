//! References: texts that stand for a secret that is kept elsewhere.

use serde_json::Value;

/// What a reference names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reference {
    /// Kong's `{vault://PREFIX/RESOURCE/KEY}`.
    Kong {
        /// The vault's prefix; `env` is always there.
        vault: String,
        /// Where in the vault.
        resource: String,
        /// What of the secret, where it holds several values.
        field: Option<String>,
        /// `?prefix=` behind it, in place of the vault's own.
        prefix: Option<String>,
    },
    /// APISIX's `$env://NAME/FIELD`.
    Variable {
        /// The variable.
        name: String,
        /// What of its value, where that is JSON.
        field: Option<String>,
    },
    /// APISIX's `$secret://vault/ID/PATH/FIELD`.
    Secret {
        /// Which kind of vault, and which one: `vault/ID`.
        vault: String,
        /// Where in it.
        path: String,
        /// What of the secret.
        field: String,
    },
}

/// Which references a dialect's documents may hold; another text is only a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretSyntax {
    /// Kong's.
    Kong,
    /// APISIX's.
    Apisix,
    /// All of them.
    All,
}

impl SecretSyntax {
    /// What a text refers to in these forms.
    pub fn read(self, text: &str) -> Option<Reference> {
        Reference::of(text).filter(|reference| match self {
            Self::Kong => matches!(reference, Reference::Kong { .. }),
            Self::Apisix => !matches!(reference, Reference::Kong { .. }),
            Self::All => true,
        })
    }
}

impl Reference {
    /// What a text refers to; `None`: it is no reference. One that is broken refers to what is not there.
    pub fn of(text: &str) -> Option<Self> {
        if let Some(inner) = text
            .strip_prefix("{vault://")
            .and_then(|rest| rest.strip_suffix('}'))
        {
            return Some(Self::of_kong(inner));
        }
        let start = text.get(..7)?;
        if start.eq_ignore_ascii_case("$env://") {
            let (name, field) = match text[7..].split_once('/') {
                Some((name, field)) => (name, Some(field.to_owned())),
                None => (&text[7..], None),
            };
            return Some(Self::Variable {
                name: name.to_owned(),
                field,
            });
        }
        let inner = text.strip_prefix("$secret://")?;
        let mut parts = inner.splitn(3, '/');
        let vault = format!(
            "{}/{}",
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default()
        );
        let (path, field) = parts
            .next()
            .and_then(|rest| rest.rsplit_once('/'))
            .unwrap_or_default();
        Some(Self::Secret {
            vault,
            path: path.to_owned(),
            field: field.to_owned(),
        })
    }

    fn of_kong(inner: &str) -> Self {
        let (path, query) = inner.split_once('?').unwrap_or((inner, ""));
        let prefix = query.split('&').find_map(|pair| pair.strip_prefix("prefix="));
        let (vault, rest) = path.split_once('/').unwrap_or((path, ""));
        let rest = rest.trim_end_matches('/');
        let (resource, field) = match rest.rsplit_once('/') {
            Some((resource, field)) => (resource, Some(field.to_owned())),
            None => (rest, None),
        };
        Self::Kong {
            vault: vault.to_owned(),
            resource: resource.to_owned(),
            field,
            prefix: prefix.map(str::to_owned),
        }
    }
}

/// Calls `visit` with every text of a value that is a reference.
pub fn each(forms: SecretSyntax, value: &mut Value, visit: &mut impl FnMut(&mut String, Reference)) {
    match value {
        Value::String(text) => {
            if let Some(reference) = forms.read(text) {
                visit(text, reference);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each(forms, item, visit)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each(forms, field, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A value of a secret: all of it, or one of its fields. Texts stand for themselves, other values for their JSON.
pub fn field_of(secret: &str, field: Option<&str>) -> Option<String> {
    let Some(field) = field else {
        return Some(secret.to_owned());
    };
    let secret: Value = serde_json::from_str(secret).ok()?;
    match secret.get(field)? {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_told_from_texts() {
        let kong = |vault: &str, resource: &str, field: Option<&str>| Reference::Kong {
            vault: vault.to_owned(),
            resource: resource.to_owned(),
            field: field.map(str::to_owned),
            prefix: None,
        };
        for (text, reference) in [
            ("{vault://env/my-key}", Some(kong("env", "my-key", None))),
            ("{vault://hcv/a/b/key}", Some(kong("hcv", "a/b", Some("key")))),
            ("{vault://}", Some(kong("", "", None))),
            ("{vault://env/x", None),
            ("vault://env/x", None),
            (
                "$ENV://A/b",
                Some(Reference::Variable {
                    name: "A".into(),
                    field: Some("b".into()),
                }),
            ),
            (
                "$secret://vault/1/jack/key",
                Some(Reference::Secret {
                    vault: "vault/1".into(),
                    path: "jack".into(),
                    field: "key".into(),
                }),
            ),
            (
                "$secret://",
                Some(Reference::Secret {
                    vault: "/".into(),
                    path: String::new(),
                    field: String::new(),
                }),
            ),
            ("$secret", None),
            ("ééé€€", None),
            ("", None),
        ] {
            assert_eq!(Reference::of(text), reference, "{text}");
        }
    }

    #[test]
    fn each_door_has_its_own_forms() {
        for (text, kong, apisix) in [
            ("{vault://env/a}", true, false),
            ("$env://A", false, true),
            ("$secret://vault/1/a/b", false, true),
            ("a", false, false),
        ] {
            let read = |forms: SecretSyntax| forms.read(text).is_some();
            assert_eq!(
                (read(SecretSyntax::Kong), read(SecretSyntax::Apisix)),
                (kong, apisix),
                "{text}"
            );
            assert_eq!(read(SecretSyntax::All), kong || apisix, "{text}");
        }
    }

    #[test]
    fn secrets_may_hold_fields() {
        for (secret, field, value) in [
            ("a", None, Some("a")),
            ("{\"a\":\"b\",\"n\":1}", Some("a"), Some("b")),
            ("{\"a\":\"b\",\"n\":1}", Some("n"), Some("1")),
            ("{\"a\":null}", Some("a"), None),
            ("no JSON", Some("a"), None),
        ] {
            assert_eq!(field_of(secret, field).as_deref(), value, "{secret} {field:?}");
        }
    }
}
