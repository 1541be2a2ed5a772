//! The dialects of a process, and which of them a document is of. The list itself is made by the program.

use crate::{Dialect, DialectName, SecretSyntax};
use serde_json::Value;
use std::sync::Arc;
use std::time::SystemTime;
use weir_model::{Diagnostic, DocPath, Model};

/// The environment of gateways that name none.
pub const DEFAULT_ENVIRONMENT: &str = "default";
/// What the keys of documents begin with that are of one environment only; its name and a `/` come next.
pub const ENVIRONMENTS: &str = "env/";

/// The dialects of a process, in the order in which their routes are looked through. Cheap to share.
#[derive(Debug, Clone)]
pub struct DialectSet {
    all: Arc<[Arc<dyn Dialect>]>,
    /// Whose documents stand in files: those of a store are not read, as global rules of one would miss the other's
    /// routes.
    in_files: Vec<DialectName>,
    /// Whose words answer calls as long as there are no documents.
    unmatched: DialectName,
    /// The environments whose documents are served beside those of all environments.
    environments: Arc<[String]>,
    /// What the keys of those documents begin with.
    environment_prefixes: Arc<[String]>,
}

impl DialectSet {
    /// These dialects. Their names and prefixes differ.
    pub fn new(all: Vec<Arc<dyn Dialect>>) -> Self {
        let set = Self {
            all: all.into(),
            in_files: Vec::new(),
            unmatched: DialectName::NATIVE,
            environments: Arc::default(),
            environment_prefixes: Arc::default(),
        };
        set.in_environments(vec![DEFAULT_ENVIRONMENT.to_owned()])
    }

    /// The same, with the documents of these environments.
    #[must_use]
    pub fn in_environments(mut self, mut names: Vec<String>) -> Self {
        names.sort();
        names.dedup();
        let native = self.get(DialectName::NATIVE).map(|it| it.prefix());
        let prefixes = names
            .iter()
            .filter_map(|name| Some(format!("{ENVIRONMENTS}{name}/{}", native?)));
        self.environment_prefixes = prefixes.collect();
        self.environments = names.into();
        self
    }

    /// The environments whose documents are served, by name.
    pub fn environments(&self) -> &[String] {
        &self.environments
    }

    /// What the keys of their documents begin with: native documents, with the environment before.
    pub fn environment_prefixes(&self) -> &[String] {
        &self.environment_prefixes
    }

    /// The same, with documents of some dialects in files.
    #[must_use]
    pub fn with_files_of(mut self, in_files: Vec<DialectName>) -> Self {
        self.in_files = in_files;
        self
    }

    /// The same, with this dialect's words for calls as long as there are no documents.
    #[must_use]
    pub fn answering_as(mut self, dialect: DialectName) -> Self {
        self.unmatched = dialect;
        self
    }

    /// All dialects.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Dialect>> {
        self.all.iter()
    }

    /// The dialects whose documents are read from a store.
    pub fn followed(&self) -> impl Iterator<Item = &Arc<dyn Dialect>> {
        self.iter().filter(|it| !self.in_files.contains(&it.name()))
    }

    /// Whose words answer calls as long as there are no documents.
    pub fn unmatched(&self) -> DialectName {
        self.unmatched
    }

    /// A dialect by its name.
    pub fn get(&self, name: DialectName) -> Option<&Arc<dyn Dialect>> {
        self.iter().find(|it| it.name() == name)
    }

    /// The dialect that a document is of. Later ones are asked first; a document that none recognises is of the one that
    /// has no marks.
    pub fn of_document(&self, document: &Value) -> Option<&Arc<dyn Dialect>> {
        let mut all = self.all.iter().rev();
        all.find(|it| it.file_form().recognises(document))
            .or_else(|| self.without_marks())
    }

    /// The same for a text that is no YAML.
    pub fn of_text(&self, text: &str) -> Option<&Arc<dyn Dialect>> {
        let mut all = self.all.iter().rev();
        all.find(|it| it.file_form().recognises_text(text))
            .or_else(|| self.without_marks())
    }

    fn without_marks(&self) -> Option<&Arc<dyn Dialect>> {
        self.iter().find(|it| it.file_form().marks.is_empty())
    }

    /// What the keys of documents begin with that are configuration.
    pub fn prefixes(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.iter().map(|it| it.prefix())
    }

    /// The dialect that a document of a store is of, and its key without that dialect's prefix.
    pub fn of_key<'k>(&self, key: &'k str) -> Option<(&Arc<dyn Dialect>, &'k str)> {
        self.iter()
            .find_map(|it| Some((it, key.strip_prefix(it.prefix())?)))
    }

    /// When a document of a store goes by itself; `None`: it stays.
    pub fn end_of(&self, key: &str, value: &[u8]) -> Option<SystemTime> {
        let (dialect, key) = self.of_key(key)?;
        dialect.end_of(key, value)
    }

    /// The ways in which documents refer to secrets, each with its dialect.
    pub fn secret_syntaxes(&self) -> Vec<(Arc<dyn Dialect>, Box<dyn SecretSyntax>)> {
        self.iter()
            .filter_map(|it| Some((Arc::clone(it), it.secret_syntax()?)))
            .collect()
    }

    /// Unknown names of dialects in a model, each an error with its place.
    pub fn unknown_names(&self, model: &Model) -> Vec<Diagnostic> {
        let all = ["routes", "stream_routes", "consumers", "dialect_settings"];
        let named = [
            model.routes.iter().map(|it| it.dialect).collect::<Vec<_>>(),
            model.stream_routes.iter().map(|it| it.dialect).collect(),
            model.consumers.iter().map(|it| it.dialect).collect(),
            model.dialect_settings.iter().map(|it| it.dialect).collect(),
        ];
        let in_lists = all.into_iter().zip(named).flat_map(|(list, names)| {
            let names = names.into_iter().enumerate();
            names.map(move |(index, name)| (DocPath::root().field(list).index(index), name))
        });
        let of_whole = (DocPath::root(), model.dialect);
        std::iter::once(of_whole)
            .chain(in_lists)
            .filter(|(_, name)| self.get(*name).is_none())
            .map(|(place, name)| {
                let known: Vec<String> = self.iter().map(|it| it.name().to_string()).collect();
                let message = format!("no dialect is named '{name}'; there are: {}", known.join(", "));
                Diagnostic::error(place.field("dialect"), message)
            })
            .collect()
    }

    /// Where a finding about a model is in the document of a dialect that it came from.
    ///
    /// # Errors
    /// The finding as it is: its place cannot be found.
    pub fn locate(
        &self,
        name: DialectName,
        document: &Value,
        found: Diagnostic,
    ) -> Result<Diagnostic, Diagnostic> {
        match self.get(name) {
            Some(dialect) => dialect.locate(document, found),
            None => Err(found),
        }
    }
}
