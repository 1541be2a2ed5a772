//! The stored documents of all dialects, and the one model that they make.

use crate::acme;
use crate::secrets::SecretSyntax;
use std::borrow::Cow;
use std::time::SystemTime;
use weir_model::{Dialect, Model};
use weir_store::Key;

/// A document that is not served.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SkippedDocument {
    /// Its key; or what a person calls the resource, where that is all that is known.
    pub document: String,
    /// Why.
    pub reason: String,
}

/// How the dialects' documents are read.
#[derive(Debug, Clone, Copy, Default)]
pub struct DialectOptions {
    /// Kong's documents; `None`: they come from a file instead.
    pub kong: Option<weir_kong::Options>,
    /// APISIX's documents; `None`: they come from a file instead.
    pub apisix: Option<weir_apisix::Options>,
    /// Whose words answer calls as long as there are no documents.
    pub dialect: Dialect,
}

/// One dialect's documents, read.
trait DialectModel: Send {
    fn apply(&mut self, key: &str, value: Option<&[u8]>);
    fn model(&mut self) -> (Model, Vec<SkippedDocument>);

    /// Documents that are served otherwise than they ask for.
    fn notes(&self) -> Vec<SkippedDocument> {
        Vec::new()
    }
}

impl DialectModel for weir_native::IncrementalModel {
    fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        Self::apply(self, key, value);
    }

    fn model(&mut self) -> (Model, Vec<SkippedDocument>) {
        let (model, broken) = Self::model(self);
        let broken = broken.into_iter().map(|it| told("native/", &it.key, it.reason));
        (model, broken.collect())
    }
}

impl DialectModel for weir_kong::incremental::IncrementalModel {
    fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        Self::apply(self, key, value);
    }

    fn model(&mut self) -> (Model, Vec<SkippedDocument>) {
        let (model, broken) = Self::model(self);
        let broken = broken.into_iter().map(|it| told("kong/", &it.key, it.reason));
        (model, broken.collect())
    }

    fn notes(&self) -> Vec<SkippedDocument> {
        let notes = weir_kong::incremental::IncrementalModel::notes(self).into_iter();
        notes.map(|it| told("kong/", &it.key, it.reason)).collect()
    }
}

impl DialectModel for weir_apisix::IncrementalModel {
    fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        Self::apply(self, key, value);
    }

    fn model(&mut self) -> (Model, Vec<SkippedDocument>) {
        let (model, broken) = Self::model(self);
        let broken = broken.into_iter().map(|it| told("apisix/", &it.key, it.reason));
        (model, broken.collect())
    }
}

/// What files say, which comes whole.
impl DialectModel for Model {
    fn apply(&mut self, _key: &str, _value: Option<&[u8]>) {}

    fn model(&mut self) -> (Model, Vec<SkippedDocument>) {
        (self.clone(), Vec::new())
    }
}

fn told(prefix: &str, key: &str, reason: String) -> SkippedDocument {
    SkippedDocument {
        document: format!("{prefix}{key}"),
        reason,
    }
}

struct DialectState {
    /// What its keys begin with.
    prefix: &'static str,
    read: Box<dyn DialectModel>,
    /// Whether something came since the model was made.
    is_stale: bool,
    model: Model,
    broken: Vec<SkippedDocument>,
}

impl DialectState {
    fn new(prefix: &'static str, read: Box<dyn DialectModel>) -> Self {
        Self {
            prefix,
            read,
            is_stale: true,
            model: Model::default(),
            broken: Vec::new(),
        }
    }

    /// What may refer to secrets in its documents. Whoever writes a file may do all that Weir can.
    fn forms(&self) -> SecretSyntax {
        match self.prefix {
            "kong/" => SecretSyntax::Kong,
            "apisix/" => SecretSyntax::Apisix,
            _ => SecretSyntax::All,
        }
    }
}

/// What the keys of served documents begin with that are configuration.
pub const PREFIXES: [&str; 3] = ["kong/", "apisix/", "native/"];

/// Whether gateways serve a document: it is configuration, or what came of it.
pub fn is_served(key: &Key) -> bool {
    let mut prefixes = PREFIXES.iter().chain(&acme::FOLLOWED);
    prefixes.any(|prefix| key.as_str().starts_with(prefix))
}

/// When a document goes by itself; `None`: it stays.
pub fn end_of(key: &str, value: &[u8]) -> Option<SystemTime> {
    match key.split_once('/')? {
        ("kong", key) => weir_kong::incremental::end_of(key, value),
        ("apisix", _) => weir_apisix::end_of(value),
        _ => None,
    }
}

/// Whether a document tells caches what to forget. It is no configuration, and is soon gone.
pub fn is_purge(key: &Key) -> bool {
    key.as_str().starts_with(weir_kong::admin::PURGES)
}

/// What the keys begin with of the documents that gateways are told of, those that are the most last.
pub fn told_prefixes() -> impl Iterator<Item = &'static str> {
    let others = [weir_kong::admin::PURGES].into_iter().chain(acme::FOLLOWED);
    others.chain(PREFIXES)
}

/// Whether gateways are told of a document.
pub fn is_told(key: &Key) -> bool {
    is_served(key) || is_purge(key)
}

/// The documents of all dialects.
pub struct DialectModels {
    dialects: Vec<DialectState>,
    /// What files say, which goes before.
    files: Option<DialectState>,
    /// What authorities have signed, and what they check.
    acme: acme::Challenges,
    dialect: Dialect,
}

impl DialectModels {
    /// No documents yet.
    pub fn new(options: &DialectOptions) -> Self {
        let mut dialects: Vec<(&'static str, Box<dyn DialectModel>)> = Vec::new();
        if let Some(options) = options.kong {
            dialects.push((
                "kong/",
                Box::new(weir_kong::incremental::IncrementalModel::new(options)),
            ));
        }
        if let Some(options) = options.apisix {
            dialects.push(("apisix/", Box::new(weir_apisix::IncrementalModel::new(options))));
        }
        dialects.push(("native/", Box::new(weir_native::IncrementalModel::new())));
        Self {
            dialects: dialects
                .into_iter()
                .map(|(prefix, read)| DialectState::new(prefix, read))
                .collect(),
            files: None,
            acme: acme::Challenges::default(),
            dialect: options.dialect,
        }
    }

    /// Takes over one document; `None`: it is gone.
    pub fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        self.acme.apply(key, value);
        for dialect in &mut self.dialects {
            if let Some(rest) = key.strip_prefix(dialect.prefix) {
                dialect.read.apply(rest, value);
                dialect.is_stale = true;
            }
        }
    }

    /// Takes over what the files say.
    pub fn set_files(&mut self, model: Model) {
        self.files = Some(DialectState::new("", Box::new(model)));
    }

    /// What the files say stands in the one where it stood in the other.
    pub(super) fn swap_files(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.files, &mut other.files);
    }

    /// Reads again what was read, because what it refers to has changed.
    pub fn refresh(&mut self) {
        let all = self.files.iter_mut().chain(&mut self.dialects);
        all.for_each(|dialect| dialect.is_stale = true);
    }

    /// Documents that are served, but otherwise than they ask for. They stand in no way of a change.
    pub fn notes(&self) -> impl Iterator<Item = SkippedDocument> {
        self.dialects.iter().flat_map(|dialect| dialect.read.notes())
    }

    /// All documents as one model, passed through `finish` dialect by dialect, and those that had to be left out.
    pub fn model(
        &mut self,
        mut finish: impl FnMut(SecretSyntax, &mut Model) -> Vec<SkippedDocument>,
    ) -> (Cow<'_, Model>, Vec<SkippedDocument>) {
        let all = self.files.iter_mut().chain(&mut self.dialects);
        for dialect in all.filter(|dialect| dialect.is_stale) {
            (dialect.model, dialect.broken) = dialect.read.model();
            dialect.broken.extend(finish(dialect.forms(), &mut dialect.model));
            dialect.is_stale = false;
        }
        let all = || self.files.iter().chain(&self.dialects);
        let broken = all().flat_map(|dialect| dialect.broken.iter().cloned()).collect();
        let mut parts = all().map(|dialect| &dialect.model).filter(|part| !is_empty(part));
        let mut model = match (parts.next(), parts.next()) {
            (None, _) => Cow::Owned(Model {
                dialect: self.dialect,
                ..Model::default()
            }),
            (Some(only), None) => Cow::Borrowed(only),
            (Some(first), Some(second)) => {
                let mut whole = first.clone();
                whole.merge(second.clone());
                parts.for_each(|part| whole.merge(part.clone()));
                Cow::Owned(whole)
            }
        };
        self.acme.finish(&mut model);
        (model, broken)
    }
}

/// Whether a model says nothing.
fn is_empty(model: &Model) -> bool {
    model.services.is_empty()
        && model.routes.is_empty()
        && model.upstreams.is_empty()
        && model.consumers.is_empty()
        && model.plugins.is_empty()
        && model.unmatched.is_empty()
        && model.certificates.is_empty()
        && model.acme.is_empty()
        && model.stream_routes.is_empty()
}
