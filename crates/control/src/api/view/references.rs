//! References to secrets in documents and files: every text that is a reference, with its place. Values are not known
//! here.

use super::index::FileText;
use crate::access::Scope;
use crate::secrets::Syntaxes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_dialect::{DialectName, DialectSet, ENVIRONMENTS, SecretStore, SecretTarget};
use weir_model::document;
use weir_store::Key;

/// Most references of one document that are listed; the others are counted.
pub const MAX_IN_DOCUMENT: usize = 1000;
/// The same of a file, which may hold all that is configured.
const MAX_IN_FILE: usize = 100_000;

/// All references of documents. A clone costs little, and stays as it is while documents change.
#[derive(Debug, Clone)]
pub struct References {
    dialects: DialectSet,
    syntaxes: Arc<Syntaxes>,
    documents: Arc<BTreeMap<Key, Arc<DocumentReferences>>>,
}

/// All references of files. What a file says of vaults is not used: its references lead to the environment alone.
#[derive(Debug)]
pub struct FileReferences {
    syntaxes: Syntaxes,
    /// Files' names, with what is in them.
    files: Vec<(String, DocumentReferences)>,
}

/// Finds references in documents. It knows no stores of secrets: whether a text is a reference does not depend on them.
/// So documents are read without the lock of what knows them.
#[derive(Debug)]
pub struct ReferenceFinder {
    dialects: DialectSet,
    syntaxes: Syntaxes,
}

/// The references to secrets in one document.
#[derive(Debug)]
pub struct DocumentReferences {
    dialect: DialectName,
    scope: Scope,
    /// Pointers (RFC 6901) with texts.
    texts: Vec<(String, String)>,
    /// How many more there are.
    skipped: usize,
}

/// The holder of a reference.
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
    /// The dialect of its syntax.
    pub dialect: DialectName,
    /// The text.
    pub text: String,
    /// The store that it names.
    pub store: Option<String>,
    /// The target, or why it leads nowhere.
    pub target: Result<SecretTarget, String>,
    /// The document or file that holds it.
    pub holder: Holder,
    /// Its place there (RFC 6901).
    pub pointer: String,
    /// The scope in which a user must have the right to see it.
    pub scope: Scope,
}

impl References {
    /// None yet.
    pub fn new(dialects: &DialectSet) -> Self {
        Self {
            dialects: dialects.clone(),
            syntaxes: Arc::new(Syntaxes::of(dialects)),
            documents: Arc::default(),
        }
    }

    /// Takes over a document, `None`: it is gone, with what a [`ReferenceFinder`] has found in it.
    pub fn apply(&mut self, key: &Key, value: Option<&[u8]>, found: Option<DocumentReferences>) {
        Arc::make_mut(&mut self.syntaxes).apply(key.as_str(), value);
        let documents = Arc::make_mut(&mut self.documents);
        match found {
            Some(found) => documents.insert(key.clone(), Arc::new(found)),
            None => documents.remove(key),
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

    /// The scope in which a user must have the right to see the document with this key.
    pub fn scope_of(&self, key: &str) -> Scope {
        let workspace = self.dialects.of_key(key).map(|(dialect, short)| {
            let workspace = dialect.overview(short, &Value::Null).workspace;
            workspace.unwrap_or_else(|| dialect.workspace().to_owned())
        });
        workspace.map_or(Scope::Everything, |it| Scope::workspace(&it))
    }

    /// Every use in the documents that may be seen.
    pub fn uses(&self, is_visible: impl Fn(&Scope) -> bool) -> impl Iterator<Item = ReferenceUse> {
        let visible = self.documents.iter().filter(move |(_, it)| is_visible(&it.scope));
        visible
            .flat_map(|(key, found)| found.uses(&self.syntaxes, || Holder::Document(key.as_str().to_owned())))
    }

    /// How many more references these documents hold.
    pub fn skipped(&self, is_visible: impl Fn(&Scope) -> bool) -> usize {
        let visible = self.documents.values().filter(|it| is_visible(&it.scope));
        visible.map(|it| it.skipped).sum()
    }

    /// The target of a text that documents of a dialect may hold; `None`: it is no reference.
    pub fn locate(&self, dialect: DialectName, text: &str) -> Option<Result<SecretTarget, String>> {
        let references = self.syntaxes.within(Some(dialect));
        references.is_reference(text).then(|| references.locate(text))
    }
}

impl FileReferences {
    /// Those of these files.
    pub fn of(dialects: &DialectSet, files: &[FileText]) -> Self {
        let syntaxes = Syntaxes::of(dialects);
        let read = |file: &FileText| {
            // What is served can be read.
            let document = document::parse(&file.text).unwrap_or_default();
            let references = syntaxes.within(Some(file.dialect));
            let found = Collected::of(&document, MAX_IN_FILE, &|text| references.is_reference(text));
            let found = found.of_document(file.dialect, Scope::Everything);
            (file.file.clone(), found)
        };
        Self {
            files: files.iter().map(read).collect(),
            syntaxes,
        }
    }

    /// Every use in files, if they may be seen.
    pub fn uses(&self, is_visible: impl Fn(&Scope) -> bool) -> impl Iterator<Item = ReferenceUse> {
        let visible = self.files.iter().filter(move |(_, it)| is_visible(&it.scope));
        visible.flat_map(|(name, found)| found.uses(&self.syntaxes, || Holder::File(name.clone())))
    }

    /// How many more references these files hold.
    pub fn skipped(&self, is_visible: impl Fn(&Scope) -> bool) -> usize {
        let visible = self.files.iter().filter(|(_, it)| is_visible(&it.scope));
        visible.map(|(_, it)| it.skipped).sum()
    }
}

impl DocumentReferences {
    fn uses(&self, syntaxes: &Syntaxes, holder: impl Fn() -> Holder) -> impl Iterator<Item = ReferenceUse> {
        let references = syntaxes.within(Some(self.dialect));
        self.texts.iter().filter_map(move |(pointer, text)| {
            let (dialect, store) = references.store_of(text)?;
            Some(ReferenceUse {
                dialect,
                text: text.clone(),
                store,
                target: references.locate(text),
                holder: holder(),
                pointer: pointer.clone(),
                scope: self.scope.clone(),
            })
        })
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
        let found = Collected::of(value, MAX_IN_DOCUMENT, &|text| references.is_reference(text));
        let workspace = dialect.overview(short, value).workspace;
        let scope = match environment {
            Some(name) => Scope::Environment(name.to_owned()),
            None => Scope::workspace(workspace.as_deref().unwrap_or_else(|| dialect.workspace())),
        };
        Some(found.of_document(dialect.name(), scope))
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

/// The texts of a value that are references, with their pointers.
struct Collected {
    texts: Vec<(String, String)>,
    most: usize,
    skipped: usize,
}

impl Collected {
    fn of(value: &Value, most: usize, is_reference: &impl Fn(&str) -> bool) -> Self {
        let mut found = Self {
            texts: Vec::new(),
            most,
            skipped: 0,
        };
        found.collect(value, &mut String::new(), is_reference);
        found
    }

    fn of_document(self, dialect: DialectName, scope: Scope) -> DocumentReferences {
        DocumentReferences {
            dialect,
            scope,
            texts: self.texts,
            skipped: self.skipped,
        }
    }

    fn collect(&mut self, value: &Value, pointer: &mut String, is_reference: &impl Fn(&str) -> bool) {
        let before = pointer.len();
        match value {
            Value::String(text) if is_reference(text) => match self.texts.len() < self.most {
                true => self.texts.push((pointer.clone(), text.clone())),
                false => self.skipped += 1,
            },
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    pointer.push_str(&format!("/{index}"));
                    self.collect(item, pointer, is_reference);
                    pointer.truncate(before);
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    pointer.push('/');
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                    self.collect(field, pointer, is_reference);
                    pointer.truncate(before);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_dialect::SecretLocation;

    /// The text, the store, whether it leads somewhere, the holder's name, the pointer, and the scope of each use.
    fn described_uses(uses: Vec<ReferenceUse>) -> Vec<String> {
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
            let in_file = FileReferences::of(&set, std::slice::from_ref(&file));
            let in_documents = references.uses(|_| true);
            described_uses(in_documents.chain(in_file.uses(|_| true)).collect())
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
