//! The stored documents of all dialects, and the one model that they make.

use super::state::ServerNames;
use crate::acme;
use std::borrow::Cow;
use std::collections::HashMap;
use weir_dialect::{DialectName, DialectSet, ENVIRONMENTS, IncrementalModel, PURGES, SkippedDocument};
use weir_model::{Consumer, Model, PluginInstance};
use weir_store::Key;

struct DialectState {
    /// The dialect, and what its keys begin with; `None`: files.
    dialect: Option<(DialectName, String)>,
    read: Box<dyn IncrementalModel>,
    /// Whether something came since the model was made.
    is_stale: bool,
    model: Model,
    broken: Vec<SkippedDocument>,
}

impl DialectState {
    fn new(dialect: Option<(DialectName, String)>, read: Box<dyn IncrementalModel>) -> Self {
        Self {
            dialect,
            read,
            is_stale: true,
            model: Model::default(),
            broken: Vec::new(),
        }
    }

    fn name(&self) -> Option<DialectName> {
        self.dialect.as_ref().map(|(name, _)| *name)
    }

    fn prefix(&self) -> &str {
        self.dialect.as_ref().map_or("", |(_, prefix)| prefix)
    }

    /// With the whole keys of documents.
    fn with_prefix(&self, skipped: Vec<SkippedDocument>) -> impl Iterator<Item = SkippedDocument> + use<> {
        let prefix = self.prefix().to_owned();
        skipped.into_iter().map(move |it| SkippedDocument {
            document: format!("{prefix}{}", it.document),
            reason: it.reason,
        })
    }
}

/// Whether gateways serve a document: it is configuration, or what came of it.
pub fn is_served(dialects: &DialectSet, key: &Key) -> bool {
    let mut prefixes = dialects.prefixes().chain(acme::FOLLOWED);
    let mut of_environments = dialects.environment_prefixes().iter();
    prefixes.any(|prefix| key.as_str().starts_with(prefix))
        || of_environments.any(|prefix| key.as_str().starts_with(prefix))
}

/// Whether a document orders caches to forget something. It is no configuration, and is soon gone.
pub fn is_purge(key: &Key) -> bool {
    key.as_str().starts_with(PURGES)
}

/// The prefixes of the keys that gateways get, the most frequent last.
pub fn replicated_prefixes(dialects: &DialectSet) -> impl Iterator<Item = &str> {
    let others = [PURGES]
        .into_iter()
        .chain(acme::FOLLOWED)
        .map(|it: &'static str| -> &str { it });
    let of_environments = dialects.environment_prefixes().iter().map(String::as_str);
    let of_all = dialects.prefixes().map(|it: &'static str| -> &str { it });
    others.chain(of_all).chain(of_environments)
}

/// Whether gateways get a document.
pub fn is_replicated(dialects: &DialectSet, key: &Key) -> bool {
    is_served(dialects, key) || is_purge(key)
}

/// The documents of all dialects.
pub struct DialectModels {
    dialects: Vec<DialectState>,
    /// The content of files, which takes precedence.
    files: Option<DialectState>,
    /// The certificates that authorities have signed, and the answers to their challenges.
    acme: acme::ServedDocuments,
    dialect: DialectName,
}

impl DialectModels {
    /// No documents yet.
    pub fn new(dialects: &DialectSet) -> Self {
        let states = dialects.followed().map(|it| {
            let dialect = (it.name(), it.prefix().to_owned());
            DialectState::new(Some(dialect), it.incremental_model())
        });
        let native = dialects.get(DialectName::NATIVE);
        // Each environment has names of its own.
        let of_environments = dialects.environment_prefixes().iter().filter_map(|prefix| {
            let dialect = (DialectName::NATIVE, prefix.clone());
            Some(DialectState::new(Some(dialect), native?.incremental_model()))
        });
        Self {
            dialects: states.chain(of_environments).collect(),
            files: None,
            acme: acme::ServedDocuments::default(),
            dialect: dialects.unmatched(),
        }
    }

    /// Takes over one document; `None`: it is gone.
    pub fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        self.acme.apply(key, value);
        for dialect in &mut self.dialects {
            if let Some(rest) = key.strip_prefix(dialect.prefix()) {
                dialect.read.apply(rest, value);
                dialect.is_stale = true;
            }
        }
    }

    /// Takes over what the files say.
    pub fn set_files(&mut self, model: Model) {
        self.files = Some(DialectState::new(None, Box::new(model)));
    }

    /// Swaps what the files say between the two.
    pub(super) fn swap_files(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.files, &mut other.files);
    }

    /// Reads again what was read, because what it refers to has changed.
    pub fn refresh(&mut self) {
        let all = self.files.iter_mut().chain(&mut self.dialects);
        all.for_each(|dialect| dialect.is_stale = true);
    }

    /// Documents that are served, but otherwise than they ask for. They do not block changes.
    pub fn warnings(&self) -> impl Iterator<Item = SkippedDocument> {
        self.dialects
            .iter()
            .flat_map(|dialect| dialect.with_prefix(dialect.read.warnings()))
    }

    /// The server names for which certificates are shown, as they were read last, dialect by dialect.
    pub(super) fn server_names(&self) -> impl Iterator<Item = ServerNames> {
        self.files.iter().chain(&self.dialects).flat_map(|dialect| {
            let certificates = dialect.model.certificates.iter();
            certificates.map(|it| (dialect.name(), it.names.clone()))
        })
    }

    /// All documents as one model, passed through `finish` dialect by dialect (`None`: files), and those that had to be
    /// left out.
    pub fn model(
        &mut self,
        mut finish: impl FnMut(Option<DialectName>, &mut Model) -> Vec<SkippedDocument>,
    ) -> (Cow<'_, Model>, Vec<SkippedDocument>) {
        let all = self.files.iter_mut().chain(&mut self.dialects);
        for dialect in all.filter(|dialect| dialect.is_stale) {
            let (mut model, skipped) = dialect.read.model();
            dialect.broken = dialect.with_prefix(skipped).collect();
            dialect.broken.extend(finish(dialect.name(), &mut model));
            dialect.model = model;
            dialect.is_stale = false;
        }
        let all = || self.files.iter().chain(&self.dialects);
        let broken = all().flat_map(|dialect| dialect.broken.iter().cloned()).collect();
        let mut parts = all().filter(|part| !is_empty(&part.model));
        let mut model = match (parts.next(), parts.next()) {
            (None, _) => Cow::Owned(Model {
                dialect: self.dialect,
                ..Model::default()
            }),
            (Some(only), None) => Cow::Borrowed(&only.model),
            (Some(first), Some(second)) => {
                let mut whole = first.model.clone();
                for part in std::iter::once(second).chain(parts) {
                    match part.prefix().starts_with(ENVIRONMENTS) {
                        true => merge_environment(&mut whole, part.model.clone()),
                        false => whole.merge(part.model.clone()),
                    }
                }
                Cow::Owned(whole)
            }
        };
        self.acme.finish(&mut model);
        (model, broken)
    }
}

/// Puts what an environment says behind the rest. A product gives the same consumers and limits to all of its
/// environments: they are there once.
fn merge_environment(whole: &mut Model, mut part: Model) {
    let consumers = whole
        .consumers
        .iter()
        .map(|it| ((it.dialect, it.id.as_str()), it));
    let consumers: HashMap<(DialectName, &str), &Consumer> = consumers.collect();
    part.consumers
        .retain(|it| consumers.get(&(it.dialect, it.id.as_str())) != Some(&it));
    let plugins = whole.plugins.iter().map(|it| (it.id.as_str(), it));
    let plugins: HashMap<&str, &PluginInstance> = plugins.collect();
    part.plugins.retain(|it| plugins.get(it.id.as_str()) != Some(&it));
    whole.merge(part);
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
