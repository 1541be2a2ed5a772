//! From files to what is served: read, translate, merge, compile; with every finding at its place in a file.

use crate::args::RouterArgs;
use crate::assemble::Assembler;
use crate::dialects;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_control::secrets::Policy;
use weir_dialect::{DialectName, DialectSet};
use weir_model::diagnostic::PathStep;
use weir_model::{Diagnostic, DocPath, Model, Severity};
use weir_plugin::Registry;
use weir_snapshot::{PersistentState, Snapshot};

/// Most findings that are shown of one configuration; finding the line of each means to read the file again.
const MAX_SHOWN: usize = 100;

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{file}: cannot be read: {reason}")]
pub struct UnreadableFile {
    /// The file.
    pub file: String,
    /// Why.
    pub reason: std::io::Error,
}

/// A file's text and what it was read as.
pub struct Source {
    /// The file's name, as it was given.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The dialect that it came through.
    pub dialect: DialectName,
    document: Value,
    /// How many resources of each kind in the merged model come from the files before, and how many from this.
    extents: Vec<(&'static str, usize, usize)>,
}

impl Source {
    /// How many resources of this kind (a list of the model, such as `routes`) are in the file.
    pub fn count(&self, list: &str) -> usize {
        self.extent(list).map_or(0, |(_, count)| count)
    }

    /// The vaults that it describes, each with its key.
    pub fn vaults(&self, dialects: &DialectSet) -> Vec<(String, Vec<u8>)> {
        let dialect = dialects.get(self.dialect).into_iter();
        let described = dialect.flat_map(|it| {
            let all = it.vaults_of_file(&self.document).into_iter();
            all.map(|(key, vault)| (format!("{}{key}", it.prefix()), vault.to_string().into_bytes()))
        });
        described.collect()
    }

    fn extent(&self, list: &str) -> Option<(usize, usize)> {
        let found = self.extents.iter().find(|(name, ..)| *name == list)?;
        Some((found.1, found.2))
    }
}

/// A finding as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its severity for the configuration.
    pub severity: Severity,
    /// `file:line: error: path: message`.
    pub text: String,
}

/// A text that an Admin API has put in the place of a file.
#[derive(Debug, Clone)]
pub struct Replaced {
    /// The file.
    pub file: PathBuf,
    /// The dialect that the text comes through.
    pub dialect: DialectName,
    /// The text.
    pub text: Arc<str>,
}

impl Replaced {
    /// The note about it.
    pub fn note(&self) -> String {
        format!(
            "{}: an Admin API has replaced its content in memory; the file counts again once it changes",
            self.file.display()
        )
    }
}

/// A configuration as it was loaded.
pub struct Loaded {
    /// The dialects of the files.
    dialects: DialectSet,
    /// The files, in the order in which they were given.
    pub sources: Vec<Source>,
    /// The model of all of them, and its compiled form; `None` when something refuses it.
    pub good: Option<(Model, Snapshot)>,
    /// The findings about it.
    pub findings: Vec<Finding>,
    /// How many findings are not among `findings`.
    pub not_shown: usize,
}

impl Loaded {
    /// The configuration of a store, which has no places in files.
    pub fn of_store(dialects: DialectSet, model: Model, snapshot: Snapshot, findings: Vec<Finding>) -> Self {
        Self {
            dialects,
            sources: Vec::new(),
            good: Some((model, snapshot)),
            findings,
            not_shown: 0,
        }
    }

    /// The dialects of the files.
    pub fn dialects(&self) -> &DialectSet {
        &self.dialects
    }

    /// The vaults that the files describe, each under a key.
    pub fn vaults(&self) -> Vec<(String, Vec<u8>)> {
        let sources = self.sources.iter();
        sources.flat_map(|it| it.vaults(&self.dialects)).collect()
    }

    /// The gravest finding; `None` if nothing was found.
    pub fn severity(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    /// All findings, one a line.
    pub fn report(&self) -> String {
        let mut report: String = self.findings.iter().map(|it| format!("{}\n", it.text)).collect();
        if self.not_shown > 0 {
            report.push_str(&format!("… and {} more\n", self.not_shown));
        }
        report
    }

    /// The location of a resource of the merged model: the file and, if it can be found out, the line.
    pub fn place_of(&self, path: &DocPath) -> Option<String> {
        let located = locate(
            &self.dialects,
            &self.sources,
            Diagnostic::warning(path.clone(), ""),
        )?;
        let line = located
            .is_in_document
            .then(|| weir_model::document::line_of(&located.source.text, &located.diagnostic.path))
            .flatten();
        Some(match line {
            Some(line) => format!("{}:{line}", located.source.file),
            None => located.source.file.clone(),
        })
    }
}

/// Loads files as one configuration.
///
/// # Errors
/// If a file cannot be read. A file that is wrong is no error here: see [`Loaded::findings`].
pub fn load(
    files: &[PathBuf],
    routers: RouterArgs,
    policy: Policy,
    registry: &Registry,
    persistent: &PersistentState,
) -> Result<Loaded, UnreadableFile> {
    load_replaced(files, &[], routers, policy, registry, persistent)
}

/// Loads files as one configuration; what is in `replaced` counts in their place.
///
/// # Errors
/// If a file cannot be read. A file that is wrong is no error here: see [`Loaded::findings`].
pub fn load_replaced(
    files: &[PathBuf],
    replaced: &[Replaced],
    routers: RouterArgs,
    policy: Policy,
    registry: &Registry,
    persistent: &PersistentState,
) -> Result<Loaded, UnreadableFile> {
    let mut sources = Vec::with_capacity(files.len());
    let mut findings = Findings::default();
    let mut parts = Some(Vec::new());
    let mut merged = Model::default();
    let dialects = &dialects::of_files(routers);
    for warning in dialects.iter().flat_map(|it| it.warnings()) {
        findings.push(Severity::Warning, || warning);
    }
    for file in files {
        let text;
        let reading = match replaced.iter().find(|it| it.file == *file) {
            Some(replaced) => dialects::read_replacement(dialects, replaced.dialect, &replaced.text),
            None => {
                text = read_file(file)?;
                dialects::read(dialects, &text, policy)
            }
        };
        let mut source = Source {
            file: file.display().to_string(),
            text: reading.text.into_owned(),
            dialect: reading.dialect,
            document: reading.document,
            extents: Vec::new(),
        };
        for found in reading.findings {
            findings.add(&source, &found);
        }
        match (reading.model, &mut parts) {
            (Some(model), Some(parts)) => {
                source.extents = extents(&merged, &model);
                parts.push((source.dialect, model.clone()));
                merged.merge(model);
            }
            _ => parts = None,
        }
        if let Some(message) = multiple_files_warning(dialects, source.dialect)
            && sources
                .iter()
                .any(|other: &Source| other.dialect == source.dialect)
        {
            findings.add(&source, &Diagnostic::error(DocPath::root(), &message));
            parts = None;
        }
        sources.push(source);
    }
    let good = parts.and_then(|parts| {
        let assembler = Assembler {
            sources: &sources,
            dialects,
            registry,
            persistent,
        };
        assembler.compile(merged, parts, policy, &mut findings)
    });
    Ok(Loaded {
        dialects: dialects.clone(),
        sources,
        good,
        findings: findings.shown,
        not_shown: findings.not_shown,
    })
}

/// The warning about two files of a dialect whose original knows one file only. What holds globally in
/// one (an access check, say) would silently not hold for the routes of the other.
fn multiple_files_warning(dialects: &DialectSet, dialect: DialectName) -> Option<String> {
    let form = dialects.get(dialect)?.file_form();
    let message = || {
        format!(
            "several {} files cannot be served together: put them into one",
            form.name
        )
    };
    (!form.may_be_several).then(message)
}

fn read_file(file: &Path) -> Result<String, UnreadableFile> {
    std::fs::read_to_string(file).map_err(|reason| UnreadableFile {
        file: file.display().to_string(),
        reason,
    })
}

/// For each list of the model: how long it is already, and how many items follow.
fn extents(merged: &Model, more: &Model) -> Vec<(&'static str, usize, usize)> {
    vec![
        ("services", merged.services.len(), more.services.len()),
        ("routes", merged.routes.len(), more.routes.len()),
        (
            "stream_routes",
            merged.stream_routes.len(),
            more.stream_routes.len(),
        ),
        ("upstreams", merged.upstreams.len(), more.upstreams.len()),
        ("consumers", merged.consumers.len(), more.consumers.len()),
        ("plugins", merged.plugins.len(), more.plugins.len()),
        (
            "consumer_tables",
            merged.consumer_tables.len(),
            more.consumer_tables.len(),
        ),
        ("certificates", merged.certificates.len(), more.certificates.len()),
        ("acme", merged.acme.len(), more.acme.len()),
    ]
}

/// A finding about the merged model, in terms of the file that it concerns.
struct Located<'s> {
    source: &'s Source,
    diagnostic: Diagnostic,
    /// Whether the diagnostic's path leads into the file's document.
    is_in_document: bool,
}

/// The file from which an item of the merged model is, with the number of items that are from the files before.
fn source_of_item<'s>(sources: &'s [Source], list: &str, index: usize) -> Option<(&'s Source, usize)> {
    let with_item = |source: &'s Source| {
        let (before, count) = source.extent(list)?;
        (before..before + count)
            .contains(&index)
            .then_some((source, before))
    };
    // Of other lists, the first file's alone counts.
    let first = || sources.first().map(|first| (first, 0));
    sources.iter().find_map(with_item).or_else(first)
}

/// The file in which something of the merged model stands.
pub fn source_of<'s>(sources: &'s [Source], path: &DocPath) -> Option<&'s Source> {
    match path.0.as_slice() {
        [PathStep::Field(list), PathStep::Index(index), ..] => {
            source_of_item(sources, list, *index).map(|(source, _)| source)
        }
        _ => sources.first(),
    }
}

fn locate<'s>(dialects: &DialectSet, sources: &'s [Source], diagnostic: Diagnostic) -> Option<Located<'s>> {
    let (source, local) = match diagnostic.path.0.as_slice() {
        [PathStep::Field(list), PathStep::Index(index), rest @ ..] => {
            let (source, before) = source_of_item(sources, list, *index)?;
            let mut local = DocPath::root().field(list).index(index - before);
            local.0.extend_from_slice(rest);
            (source, local)
        }
        _ => (sources.first()?, diagnostic.path.clone()),
    };
    let local = Diagnostic {
        path: local,
        ..diagnostic
    };
    let (diagnostic, is_in_document) = match dialects.locate(source.dialect, &source.document, local) {
        Ok(found) => (found, true),
        Err(found) => (found, false),
    };
    Some(Located {
        source,
        diagnostic,
        is_in_document,
    })
}

/// The findings, as far as they are shown.
#[derive(Default)]
pub struct Findings {
    shown: Vec<Finding>,
    not_shown: usize,
}

impl Findings {
    fn add(&mut self, source: &Source, found: &Diagnostic) {
        self.push(found.severity, || found.render(&source.file, &source.text));
    }

    /// A finding about the merged model.
    pub fn add_compiled(
        &mut self,
        dialects: &DialectSet,
        sources: &[Source],
        found: Diagnostic,
        model: &Model,
    ) {
        let severity = found.severity;
        let name = name_of(&found.path, model);
        match locate(dialects, sources, found) {
            Some(located) if located.is_in_document => self.add(located.source, &located.diagnostic),
            Some(Located {
                source, diagnostic, ..
            }) => {
                // The model's fields are not the document's; the resource's name is what both know.
                let message = match name {
                    Some(name) => format!("{name}: {}: {}", diagnostic.path, diagnostic.message),
                    None => format!("{}: {}", diagnostic.path, diagnostic.message),
                };
                let plain = Diagnostic {
                    path: DocPath::root(),
                    message,
                    ..diagnostic
                };
                self.push(severity, || plain.render(&source.file, ""));
            }
            None => self.push(severity, String::new),
        }
    }

    /// Notes a finding.
    pub fn push(&mut self, severity: Severity, text: impl FnOnce() -> String) {
        // A grave finding is never hidden behind lighter ones.
        let is_gravest = self.shown.iter().all(|known| known.severity < severity);
        if self.shown.len() < MAX_SHOWN || is_gravest {
            self.shown.push(Finding {
                severity,
                text: text(),
            });
        } else {
            self.not_shown += 1;
        }
    }
}

/// The name, for people, of the resource at `path`.
fn name_of(path: &DocPath, model: &Model) -> Option<String> {
    let [PathStep::Field(list), PathStep::Index(index), ..] = path.0.as_slice() else {
        return None;
    };
    let index = *index;
    Some(match list.as_str() {
        "services" => format!("service '{}'", model.services.get(index)?.name),
        "routes" => format!("route '{}'", model.routes.get(index)?.name),
        "stream_routes" => format!("stream route '{}'", model.stream_routes.get(index)?.name),
        "upstreams" => format!("upstream '{}'", model.upstreams.get(index)?.name),
        "consumers" => format!("consumer '{}'", model.consumers.get(index)?.id),
        "plugins" => format!("plugin '{}'", model.plugins.get(index)?.id),
        "certificates" => {
            let name = model.certificates.get(index)?.names.first();
            format!("certificate for '{}'", name.map_or("", String::as_str))
        }
        "acme" => format!("acme '{}'", model.acme.get(index)?.name),
        _ => return None,
    })
}
