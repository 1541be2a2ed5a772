//! Where documents and files refer to secrets: every text that is a reference, with its place. Values are not known here.

use super::index::FileText;
use crate::access::Scope;
use crate::secrets::Syntaxes;
use serde_json::Value;
use std::collections::BTreeMap;
use weir_dialect::{DialectName, DialectSet, ENVIRONMENTS, SecretStore, SecretTarget};
use weir_model::document;
use weir_store::Key;

/// Most references of one document that are listed.
const MAX_IN_DOCUMENT: usize = 1000;

/// All references of documents. Files are read when they are asked for.
#[derive(Debug)]
pub struct References {
    dialects: DialectSet,
    syntaxes: Syntaxes,
    documents: BTreeMap<Key, DocumentReferences>,
}

/// Finds references in documents. It knows no stores of secrets: whether a text is a reference does not depend on them.
/// So documents are read without the lock of what knows them.
#[derive(Debug)]
pub struct ReferenceFinder {
    dialects: DialectSet,
    syntaxes: Syntaxes,
}

/// What refers to secrets in one document.
#[derive(Debug)]
pub struct DocumentReferences {
    dialect: DialectName,
    scope: Scope,
    /// Pointers (RFC 6901) with texts.
    texts: Vec<(String, String)>,
}

/// Where a reference stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// The key of a document of the store.
    Document(String),
    /// The name of a file.
    File(String),
}

/// A text that refers to a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceUse {
    /// The dialect in whose way it is written.
    pub dialect: DialectName,
    /// The text.
    pub text: String,
    /// The store that it names.
    pub store: Option<String>,
    /// Where it leads; or that it leads nowhere, and why.
    pub target: Result<SecretTarget, String>,
    /// Where it stands.
    pub holder: Holder,
    /// Its place there (RFC 6901).
    pub pointer: String,
    /// Where one must have the right to see it.
    pub scope: Scope,
}

impl References {
    /// None yet.
    pub fn new(dialects: &DialectSet) -> Self {
        Self {
            dialects: dialects.clone(),
            syntaxes: Syntaxes::of(dialects),
            documents: BTreeMap::new(),
        }
    }

    /// Takes over a document, `None`: it is gone, with what a [`ReferenceFinder`] has found in it.
    pub fn apply(&mut self, key: &Key, value: Option<&[u8]>, found: Option<DocumentReferences>) {
        self.syntaxes.apply(key.as_str(), value);
        match found {
            Some(found) => self.documents.insert(key.clone(), found),
            None => self.documents.remove(key),
        };
    }

    /// The stores of documents, each with its dialect and the key of its document.
    pub fn stores(&self) -> Vec<(DialectName, Option<String>, SecretStore)> {
        let all = self.syntaxes.stores().into_iter();
        all.map(|(dialect, prefix, store)| {
            let key = store.key.as_ref().map(|key| format!("{prefix}{key}"));
            (dialect, key, store)
        })
        .collect()
    }

    /// Where one must have the right to see the document with this key.
    pub fn scope_of(&self, key: &str) -> Scope {
        let workspace = self.dialects.of_key(key).map(|(dialect, short)| {
            let workspace = dialect.overview(short, &Value::Null).workspace;
            workspace.unwrap_or_else(|| dialect.workspace().to_owned())
        });
        workspace.map_or(Scope::Everything, |it| Scope::workspace(&it))
    }

    /// Every use in documents.
    pub fn uses(&self) -> Vec<ReferenceUse> {
        let mut uses = Vec::new();
        for (key, found) in &self.documents {
            for (pointer, text) in &found.texts {
                let holder = Holder::Document(key.as_str().to_owned());
                let place = (holder, pointer.clone(), found.scope.clone());
                uses.extend(one(&self.syntaxes, found.dialect, text, place));
            }
        }
        uses
    }

    /// Every use in files. What a file says of vaults is not used: its references lead to the environment alone.
    pub fn uses_of_files(dialects: &DialectSet, files: &[FileText]) -> Vec<ReferenceUse> {
        let mut uses = Vec::new();
        let without_vaults = Syntaxes::of(dialects);
        for file in files {
            let document = document::parse(&file.text).unwrap_or_default();
            let references = without_vaults.within(Some(file.dialect));
            let mut texts = Vec::new();
            collect(
                &document,
                &mut String::new(),
                &|text| references.is_reference(text),
                &mut texts,
            );
            for (pointer, text) in texts {
                let place = (Holder::File(file.file.clone()), pointer, Scope::Everything);
                uses.extend(one(&without_vaults, file.dialect, &text, place));
            }
        }
        uses
    }

    /// Where a text leads that documents of a dialect may hold; `None`: it is no reference.
    pub fn locate(&self, dialect: DialectName, text: &str) -> Option<Result<SecretTarget, String>> {
        let references = self.syntaxes.within(Some(dialect));
        references.is_reference(text).then(|| references.locate(text))
    }
}

impl ReferenceFinder {
    /// One for documents of these dialects.
    pub fn new(dialects: &DialectSet) -> Self {
        Self {
            dialects: dialects.clone(),
            syntaxes: Syntaxes::of(dialects),
        }
    }

    /// Whether the document with this key may hold references. No other one has to be read.
    pub fn has_place(&self, key: &str) -> bool {
        self.dialects.of_key(split(key).1).is_some()
    }

    /// The references of a document; `None`: there are none.
    pub fn found(&self, key: &str, value: &Value) -> Option<DocumentReferences> {
        let (environment, key) = split(key);
        let (dialect, short) = self.dialects.of_key(key)?;
        let references = self.syntaxes.within(Some(dialect.name()));
        // Most documents have none: their places are not even spelled out.
        if !references.are_in(value) {
            return None;
        }
        let mut texts = Vec::new();
        collect(
            value,
            &mut String::new(),
            &|text| references.is_reference(text),
            &mut texts,
        );
        let workspace = dialect.overview(short, value).workspace;
        Some(DocumentReferences {
            dialect: dialect.name(),
            scope: match environment {
                Some(name) => Scope::Environment(name.to_owned()),
                None => Scope::workspace(workspace.as_deref().unwrap_or_else(|| dialect.workspace())),
            },
            texts,
        })
    }
}

/// The environment of a document, if it is of one only, and its key without that.
fn split(key: &str) -> (Option<&str>, &str) {
    let rest = key.strip_prefix(ENVIRONMENTS);
    match rest.and_then(|rest| rest.split_once('/')) {
        Some((environment, key)) => (Some(environment), key),
        None => (None, key),
    }
}

fn one(
    syntaxes: &Syntaxes,
    dialect: DialectName,
    text: &str,
    (holder, pointer, scope): (Holder, String, Scope),
) -> Option<ReferenceUse> {
    let references = syntaxes.within(Some(dialect));
    let (dialect, store) = references.store_of(text)?;
    Some(ReferenceUse {
        dialect,
        text: text.to_owned(),
        store,
        target: references.locate(text),
        holder,
        pointer,
        scope,
    })
}

/// Gathers the texts of a value that are references, with their pointers.
fn collect(
    value: &Value,
    pointer: &mut String,
    is_reference: &impl Fn(&str) -> bool,
    texts: &mut Vec<(String, String)>,
) {
    if texts.len() >= MAX_IN_DOCUMENT {
        return;
    }
    let before = pointer.len();
    match value {
        Value::String(text) if is_reference(text) => texts.push((pointer.clone(), text.clone())),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{index}"));
                collect(item, pointer, is_reference, texts);
                pointer.truncate(before);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                collect(field, pointer, is_reference, texts);
                pointer.truncate(before);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use weir_dialect::SecretLocation;

    /// The text, the store, whether it leads somewhere, the holder's name, the pointer, and the scope of each use.
    fn shown(uses: Vec<ReferenceUse>) -> Vec<String> {
        let one = |it: ReferenceUse| {
            let holder = match it.holder {
                Holder::Document(key) => key,
                Holder::File(name) => format!("file {name}"),
            };
            let leads = it.target.map_or_else(
                |reason| reason,
                |it| match it.place {
                    SecretLocation::Http { url, .. } => url,
                    variable @ SecretLocation::Variable(_) => format!("{variable:?}"),
                },
            );
            let store = it.store.unwrap_or_default();
            format!(
                "{} {} [{store}] {leads} | {holder}{} | {}",
                it.dialect, it.text, it.pointer, it.scope
            )
        };
        uses.into_iter().map(one).collect()
    }

    #[test]
    fn references_are_found_where_they_stand() {
        let mut references = References::new(&crate::sample::all());
        let finder = ReferenceFinder::new(&crate::sample::all());
        let mut put = |key: &str, value: Option<&str>| {
            let key = Key::new(key).expect("a key");
            let read: Option<Value> = value.and_then(|value| serde_json::from_str(value).ok());
            let found = read.and_then(|read| finder.found(key.as_str(), &read));
            references.apply(&key, value.map(str::as_bytes), found);
        };
        put(
            "sample/routes/1",
            Some(r#"{"path":"/a","plugins":[{"x":{"a/b":"sample:vault/k"}}]}"#),
        );
        put("sample/routes/2", Some(r#"{"path":"other:NO_REFERENCE_HERE"}"#));
        put("native/routes/n", Some(r#"{"name":"n","key":"other:PATH"}"#));
        put("env/prod/native/routes/e", Some(r#"{"key":"sample:vault/e"}"#));
        put("native/routes/gone", Some(r#"{"key":"other:PATH"}"#));
        put("native/routes/gone", None);
        put("audit/1", Some(r#"{"key":"sample:vault/no"}"#));
        let file = FileText {
            dialect: DialectName::new("sample"),
            file: "sample.yaml".to_owned(),
            text: Arc::from("sample: {a: {path: 'sample:vault/f'}}"),
        };
        let set = crate::sample::all();
        let with_file = |references: &References| {
            let in_file = References::uses_of_files(&set, std::slice::from_ref(&file));
            shown([references.uses(), in_file].concat())
        };
        let text = |it: &str| it.to_owned();
        let expected = |vault: &str, e: &str, k: &str| {
            vec![
                format!(
                    "sample sample:vault/e [vault] {vault}{e} | env/prod/native/routes/e/key | environment:prod"
                ),
                text("other other:PATH [env] the variable PATH | native/routes/n/key | everything"),
                format!(
                    "sample sample:vault/k [vault] {vault}{k} | sample/routes/1/plugins/0/x/a~1b | workspace:default"
                ),
                text(
                    "sample sample:vault/f [vault] there is no vault | file sample.yaml/sample/a/path | everything",
                ),
            ]
        };
        assert_eq!(with_file(&references), expected("there is no vault", "", ""));
        let vault = Key::new("sample/vault").expect("a key");
        references.apply(&vault, Some(b"http://v:1"), None);
        assert_eq!(with_file(&references), expected("http://v:1", "/e", "/k"));
        let stores: Vec<_> = references
            .stores()
            .into_iter()
            .map(|(dialect, key, store)| format!("{dialect} {} {key:?}", store.name))
            .collect();
        assert_eq!(
            stores,
            [
                "sample env None",
                r#"sample vault Some("sample/vault")"#,
                "other env None"
            ]
        );
    }
}
