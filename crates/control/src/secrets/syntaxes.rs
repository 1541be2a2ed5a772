//! The ways of all dialects to refer to secrets, and which of them count in a document.

use super::Policy;
use crate::http::host_of;
use serde_json::Value;
use weir_dialect::{DialectName, DialectSet, SecretLocation, SecretStore, SecretSyntax, SecretTarget};

/// The references of all dialects.
#[derive(Debug, Clone, Default)]
pub struct Syntaxes(Vec<Syntax>);

#[derive(Debug)]
struct Syntax {
    dialect: DialectName,
    /// The prefix of the keys of the dialect's documents.
    prefix: &'static str,
    syntax: Box<dyn SecretSyntax>,
}

impl Clone for Syntax {
    fn clone(&self) -> Self {
        Self {
            dialect: self.dialect,
            prefix: self.prefix,
            syntax: self.syntax.snapshot(),
        }
    }
}

impl Syntaxes {
    /// Those of these dialects.
    pub fn of(dialects: &DialectSet) -> Self {
        let each = dialects.secret_syntaxes().into_iter();
        let each = each.map(|(dialect, syntax)| Syntax {
            dialect: dialect.name(),
            prefix: dialect.prefix(),
            syntax,
        });
        Self(each.collect())
    }

    /// Takes over one document if it defines the targets of references. Returns whether it does.
    pub fn apply(&mut self, key: &str, value: Option<&[u8]>) -> bool {
        let mut all = self.0.iter_mut();
        all.any(|it| {
            key.strip_prefix(it.prefix)
                .is_some_and(|key| it.syntax.apply(key, value))
        })
    }

    /// The stores of secrets that references may name, each with its dialect and what the keys of its documents begin with.
    pub fn stores(&self) -> Vec<(DialectName, &'static str, SecretStore)> {
        let each = self.0.iter().map(|it| (it, it.syntax.stores()));
        each.flat_map(|(it, stores)| {
            stores
                .into_iter()
                .map(move |store| (it.dialect, it.prefix, store))
        })
        .collect()
    }

    /// The references that count in documents of a dialect: its own, or those of all if it has none.
    pub fn within(&self, dialect: Option<DialectName>) -> References<'_> {
        let own = dialect.and_then(|name| self.0.iter().find(|it| it.dialect == name));
        References { all: &self.0, own }
    }
}

/// The references that count in some documents; other texts are only texts.
#[derive(Clone, Copy)]
pub struct References<'s> {
    all: &'s [Syntax],
    /// `None`: all count.
    own: Option<&'s Syntax>,
}

impl References<'_> {
    fn found(&self, text: &str) -> Option<&Syntax> {
        match self.own {
            Some(own) => own.syntax.is_reference(text).then_some(own),
            None => self.all.iter().find(|it| it.syntax.is_reference(text)),
        }
    }

    fn syntax(&self, text: &str) -> Option<&dyn SecretSyntax> {
        self.found(text).map(|it| &*it.syntax)
    }

    /// The dialect in whose way a text refers to a secret, and the store that it names; `None`: it is no reference.
    pub fn store_of(&self, text: &str) -> Option<(DialectName, Option<String>)> {
        let found = self.found(text)?;
        Some((found.dialect, found.syntax.store_of(text)))
    }

    /// Whether a text is a reference.
    pub fn is_reference(&self, text: &str) -> bool {
        self.syntax(text).is_some()
    }

    /// Whether a value holds a reference.
    pub fn are_in(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.is_reference(text),
            Value::Array(items) => items.iter().any(|it| self.are_in(it)),
            Value::Object(fields) => fields.values().any(|it| self.are_in(it)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Calls `visit` with every text of a value that is a reference.
    pub fn each(&self, value: &mut Value, visit: &mut impl FnMut(&mut String)) {
        match value {
            Value::String(text) => {
                if self.is_reference(text) {
                    visit(text);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.each(item, visit)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.each(field, visit)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The target of a reference.
    ///
    /// # Errors
    /// Nowhere, and why.
    pub fn locate(&self, reference: &str) -> Result<SecretTarget, String> {
        let syntax = self.syntax(reference).ok_or("it is not a valid reference")?;
        let target = syntax.locate(reference, &|name| std::env::var(name).ok())?;
        if let SecretLocation::Http { url, .. } = &target.place {
            host_of(url).map_err(|error| error.to_string())?;
        }
        Ok(target)
    }

    /// Whether a reference without a value stays as a text. For a look, all do that may have one on another machine.
    pub fn keeps(&self, policy: Policy, reference: &str, is_credential: bool) -> bool {
        let stays = || self.own.is_some_and(|it| it.syntax.stays_text(reference));
        let may_have_value = || policy == Policy::Look && self.locate(reference).is_ok();
        may_have_value() || (!is_credential && stays())
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
    fn references_of_a_dialect_are_texts_in_another() {
        let syntaxes = Syntaxes::of(&crate::sample::all());
        for (text, of_sample, of_other) in [
            ("sample:A", true, false),
            ("other:A", false, true),
            ("a", false, false),
        ] {
            let is_in = |dialect: Option<&str>| {
                let dialect = dialect.map(DialectName::new);
                syntaxes.within(dialect).is_reference(text)
            };
            assert_eq!(is_in(Some("sample")), of_sample, "{text}");
            assert_eq!(is_in(Some("other")), of_other, "{text}");
            for all in [None, Some("native")] {
                assert_eq!(is_in(all), of_sample || of_other, "{text}");
            }
        }
    }

    #[test]
    fn references_lead_to_servers_that_can_be_asked() {
        let mut syntaxes = Syntaxes::of(&crate::sample::all());
        assert!(!syntaxes.apply("sample/routes/1", Some(b"{}")));
        for (vault, expected) in [
            (None, "there is no vault"),
            (Some("http://v:1"), "http://v:1/a"),
            (
                Some("http://jack:secret@v:1"),
                "expected a URL without user and password",
            ),
        ] {
            assert!(syntaxes.apply("sample/vault", vault.map(str::as_bytes)));
            let found = syntaxes.within(None).locate("sample:vault/a");
            let description = found.map_or_else(
                |error| error,
                |it| match it.place {
                    SecretLocation::Http { url, .. } => url,
                    SecretLocation::Variable(name) => name,
                },
            );
            assert_eq!(description, expected, "{vault:?}");
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
