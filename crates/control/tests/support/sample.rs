//! A small dialect, to see that a further one needs no change anywhere: it is this file, and a line in a list.
//!
//! Its files are `sample: {ID: {path: …}}`; its documents in a store are the items, `sample/routes/ID`. The texts of its
//! documents that begin with its name and a `:` refer to secrets.

#![allow(dead_code, reason = "each program that includes it uses a part")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weir_dialect::{
    AccessError, AdminAccess, Dialect, DialectName, DialectSet, FileForm, IncrementalModel, KeyRole,
    RefusedReply, SecretLocation, SecretStore, SecretSyntax, SecretTarget, SkippedDocument, bearer,
};
use weir_model::{Diagnostic, DocPath, Model};
use weir_plugin::error_renderer::ErrorRenderer;

/// The dialect. Two that differ in the name can stand side by side.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// Another name than `sample`.
    pub is_other: bool,
    /// Whether references that lead nowhere stay texts.
    pub keeps_texts: bool,
    /// Whether the keys that everybody knows are asked for.
    pub has_stock_keys: bool,
    /// The keys of its Admin API.
    pub keys: Vec<(String, KeyRole)>,
    /// Whether its Admin API wants no key from this machine.
    pub is_open: bool,
    /// Whether it asks for the routes of others.
    pub asks: bool,
}

/// A key that its clients know from its documentation.
pub const STOCK_KEY: &str = "everybody-knows-this";

/// The native dialect alone.
pub fn native() -> DialectSet {
    DialectSet::new(vec![Arc::new(weir_native::NativeDialect)])
}

/// Two samples and the native dialect.
pub fn all() -> DialectSet {
    let other = Sample {
        is_other: true,
        ..Sample::default()
    };
    let sample = Sample {
        keeps_texts: true,
        asks: true,
        ..Sample::default()
    };
    DialectSet::new(vec![
        Arc::new(sample),
        Arc::new(other),
        Arc::new(weir_native::NativeDialect),
    ])
}

impl Sample {
    fn word(&self) -> &'static str {
        if self.is_other { "other" } else { "sample" }
    }
}

impl Dialect for Sample {
    fn name(&self) -> DialectName {
        DialectName::new(self.word())
    }

    fn title(&self) -> &'static str {
        if self.is_other { "Other" } else { "Sample" }
    }

    fn file_form(&self) -> FileForm {
        FileForm {
            name: "sample.yaml",
            marks: if self.is_other { &["other"] } else { &["sample"] },
            may_be_several: true,
            refuses_repeated_keys: false,
            serves_the_rest: false,
            has_admin: false,
            opens_admin: false,
        }
    }

    fn translate(&self, document: &Value) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
        let items = document[self.word()].as_object().into_iter().flatten();
        let mut whole = Model::default();
        for (id, item) in items {
            let place = || DocPath::root().field(self.word()).field(id);
            match route(self.name(), id, item) {
                Ok(model) => whole.merge(model),
                Err(message) => return Err(vec![Diagnostic::error(place(), message)]),
            }
        }
        Ok((whole, Vec::new()))
    }

    fn prefix(&self) -> &'static str {
        if self.is_other { "other/" } else { "sample/" }
    }

    fn incremental_model(&self) -> Box<dyn IncrementalModel> {
        Box::new(Documents {
            name: self.name(),
            all: BTreeMap::new(),
        })
    }

    /// `until`, in seconds.
    fn end_of(&self, _key: &str, value: &[u8]) -> Option<SystemTime> {
        let value: Value = serde_json::from_slice(value).ok()?;
        Some(UNIX_EPOCH + Duration::from_secs(value["until"].as_u64()?))
    }

    fn asks_for_other_routes(&self) -> bool {
        self.asks
    }

    fn error_renderer(&self) -> Arc<dyn ErrorRenderer> {
        Arc::new(weir_native::NativeErrorRenderer)
    }

    fn secret_syntax(&self) -> Option<Box<dyn SecretSyntax>> {
        Some(Box::new(References {
            mark: format!("{}:", self.word()),
            keeps_texts: self.keeps_texts,
            vault: None,
        }))
    }

    fn admin_access(&self) -> &dyn AdminAccess {
        self
    }
}

impl AdminAccess for Sample {
    fn token(&self, _query: &str, header: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        header("sample-key").or_else(|| bearer(header))
    }

    fn is_status(&self, method: &str, path: &str) -> bool {
        method == "GET" && path.starts_with("/state/")
    }

    fn stock_keys(&self) -> &'static [(&'static str, KeyRole)] {
        if self.has_stock_keys {
            &[(STOCK_KEY, KeyRole::Admin)]
        } else {
            &[]
        }
    }

    fn keys(&self) -> Vec<(String, KeyRole)> {
        self.keys.clone()
    }

    fn is_open(&self) -> bool {
        self.is_open
    }

    fn refuse(&self, refused: &AccessError) -> RefusedReply {
        RefusedReply {
            status: 403,
            content_type: "text/plain",
            body: format!("{refused:?}"),
            headers: Vec::new(),
        }
    }
}

/// The model of an item.
fn route(name: DialectName, id: &str, item: &Value) -> Result<Model, String> {
    let path = item["path"]
        .as_str()
        .ok_or("expected a text in the field 'path'")?;
    let document = json!({"weir": 1, "services": [{
        "name": format!("{name}/{id}"),
        "url": "http://127.0.0.1:1",
        "routes": [{
            "name": format!("{name}/{id}"),
            "dialect": name,
            "paths": [path],
            "plugins": item.get("plugins").cloned().unwrap_or_else(|| json!([])),
        }],
    }]});
    weir_native::translate(&document)
        .map(|(model, _)| model)
        .map_err(|found| format!("{found:?}"))
}

/// The documents in a store.
struct Documents {
    name: DialectName,
    all: BTreeMap<String, Vec<u8>>,
}

impl IncrementalModel for Documents {
    fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        match value {
            Some(value) => self.all.insert(key.to_owned(), value.to_vec()),
            None => self.all.remove(key),
        };
    }

    fn model(&mut self) -> (Model, Vec<SkippedDocument>) {
        let (mut whole, mut skipped) = (Model::default(), Vec::new());
        for (key, value) in &self.all {
            let id = key.trim_start_matches("routes/");
            let item: Value = serde_json::from_slice(value).unwrap_or_default();
            match route(self.name, id, &item) {
                Ok(model) => whole.merge(model),
                Err(reason) => skipped.push(SkippedDocument {
                    document: key.clone(),
                    reason,
                }),
            }
        }
        (whole, skipped)
    }

    /// What the documents themselves say in the field `warning`.
    fn warnings(&self) -> Vec<SkippedDocument> {
        let items = self.all.iter().filter_map(|(key, value)| {
            let item: Value = serde_json::from_slice(value).ok()?;
            Some(SkippedDocument {
                document: key.clone(),
                reason: item["warning"].as_str()?.to_owned(),
            })
        });
        items.collect()
    }
}

/// `sample:NAME` is a variable of the environment; `sample:vault/PATH` is in the vault of the document `vault`.
#[derive(Debug, Clone)]
struct References {
    mark: String,
    keeps_texts: bool,
    vault: Option<String>,
}

impl SecretSyntax for References {
    fn apply(&mut self, key: &str, value: Option<&[u8]>) -> bool {
        let is_vault = key == "vault";
        if is_vault {
            self.vault = value.map(|value| String::from_utf8_lossy(value).into_owned());
        }
        is_vault
    }

    fn is_reference(&self, text: &str) -> bool {
        text.starts_with(&self.mark)
    }

    fn locate(
        &self,
        reference: &str,
        _environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<SecretTarget, String> {
        let name = reference.trim_start_matches(&self.mark);
        let place = match name.strip_prefix("vault/") {
            None => SecretLocation::variable(name)?,
            Some(path) => SecretLocation::Http {
                url: format!("{}/{path}", self.vault.as_deref().ok_or("there is no vault")?),
                token: String::new(),
                namespace: None,
            },
        };
        Ok(SecretTarget {
            place,
            field: None,
            life: SecretTarget::LIFE,
        })
    }

    fn store_of(&self, reference: &str) -> Option<String> {
        let name = reference.trim_start_matches(&self.mark);
        let is_in_vault = name.starts_with("vault/");
        Some(if is_in_vault { "vault" } else { "env" }.to_owned())
    }

    fn stores(&self) -> Vec<SecretStore> {
        let vault = self.vault.iter().map(|address| SecretStore {
            name: "vault".to_owned(),
            kind: "vault".to_owned(),
            key: Some("vault".to_owned()),
            address: Some(address.clone()),
        });
        std::iter::once(SecretStore::environment()).chain(vault).collect()
    }

    fn snapshot(&self) -> Box<dyn SecretSyntax> {
        Box::new(self.clone())
    }

    fn stays_text(&self, _reference: &str) -> bool {
        self.keeps_texts
    }
}
