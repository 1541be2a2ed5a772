//! The thread that turns documents into snapshots: it takes what was heard, reads, compiles, and hands over.

use super::background::Background;
use super::compile;
use super::dialects::{DialectModels, is_purge, is_served};
use super::documents::Documents;
use super::last_known_good::{LastKnownGoodFile, LastKnownGoodWriter};
use super::source::SourceEvent;
use super::state::{Contact, StateHandle};
use crate::acme::AcmeConfigs;
use crate::secrets::Secrets;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{mpsc, oneshot};
use weir_dialect::{DialectSet, SkippedDocument};
use weir_model::{Diagnostic, Model};
use weir_plugin::Registry;
use weir_snapshot::{CompileCache, PersistentState, Snapshot};
use weir_store::{Key, Revision};

/// Under a storm of changes, from the begin of one compile to that of the next.
const MIN_COMPILE_INTERVAL: Duration = Duration::from_millis(50);
/// A compile that begins so soon after another is one of a storm.
const BURST_WINDOW: Duration = Duration::from_millis(250);
/// Documents that are left out by name, and as many that are served otherwise than they are written.
const MAX_NAMED: usize = 100;

/// An event for the thread.
pub enum EngineEvent {
    /// Something from the source.
    Source(SourceEvent),
    /// The end of these documents has come.
    Over(Vec<Key>),
    /// The documents that were served before this process began, because the source is away.
    LastKnownGood(Vec<(Key, Arc<[u8]>)>, Revision),
    /// The content of the files.
    Files(FileContent),
    /// Secrets that documents refer to have changed.
    Secrets,
    /// Keep what is served on disk.
    Keep,
}

/// The content of files.
pub struct FileContent {
    /// The model.
    pub model: Box<Model>,
    /// The vaults that they describe, each under a key.
    pub vaults: Vec<(String, Vec<u8>)>,
    /// Dropped once the model is served, or refused.
    pub done: Option<oneshot::Sender<()>>,
}

impl FileContent {
    /// Content that is served some time later.
    pub fn new(model: Model, vaults: Vec<(String, Vec<u8>)>) -> Self {
        Self {
            model: Box::new(model),
            vaults,
            done: None,
        }
    }
}

/// Has caches forget what a document says.
pub type InvalidateFn = Box<dyn FnMut(&[u8]) + Send>;

/// The data of the thread.
pub struct Engine {
    /// The plugins.
    pub registry: Registry,
    /// The state that outlives snapshots.
    pub persistent: PersistentState,
    /// How many times as long as a compile took the engine pauses after it, under a storm of changes: the more there is
    /// to compile, the more changes a compile takes together.
    pub duty_factor: u32,
    /// The targets of references to secrets.
    pub secrets: Secrets,
    /// Receives the state of following.
    pub followed: StateHandle,
    /// Receives the certificates that are wanted.
    pub acme: AcmeConfigs,
    /// Takes a snapshot over.
    pub serve: Box<dyn FnMut(Snapshot) + Send>,
    /// Has caches forget what a document says.
    pub purge: InvalidateFn,
}

/// An engine at work.
pub(super) struct Work {
    engine: Engine,
    /// Keeps, for the next start, what is served.
    writer: Option<LastKnownGoodWriter>,
    /// The file of the last known good documents.
    last_known_good: Option<LastKnownGoodFile>,
    set: DialectSet,
    dialects: DialectModels,
    documents: Documents,
    /// Hash of what the files say.
    files_hash: u64,
    /// The vaults that the files describe, each under a key.
    vaults_of_files: Vec<(String, Vec<u8>)>,
    /// Dropped once what the files say is served.
    waiting: Vec<oneshot::Sender<()>>,
    /// The parts that were compiled before.
    cache: CompileCache,
    revision: Revision,
    /// Whether there is something to compile.
    is_due: bool,
    /// Whether the documents come from the source itself.
    is_heard: bool,
}

impl Engine {
    /// Works until nothing can come any more.
    pub(super) fn run(
        self,
        dialects: DialectSet,
        (writer, last_known_good): (Option<LastKnownGoodWriter>, Option<LastKnownGoodFile>),
        background: &Background<Work>,
        mut inputs: mpsc::Receiver<EngineEvent>,
    ) {
        let mut work = Work::new(self, dialects, writer, last_known_good);
        // When the last compile ended, and the next may begin.
        let (mut ended, mut earliest) = (None::<Instant>, Instant::now());
        while let Some(input) = inputs.blocking_recv() {
            work.take(input);
            if work.is_due {
                std::thread::sleep(earliest.saturating_duration_since(Instant::now()));
            }
            while let Ok(input) = inputs.try_recv() {
                work.take(input);
            }
            if !work.is_due {
                work.note_revision();
                work.waiting.clear();
                continue;
            }
            let begun = Instant::now();
            // A user waits for a single change; calls must not notice a storm of them.
            if ended.is_some_and(|ended| begun.duration_since(ended) < BURST_WINDOW) {
                match background.work_on(work) {
                    Some(done) => work = done,
                    None => return,
                }
            } else {
                work.build();
            }
            earliest = (begun + MIN_COMPILE_INTERVAL)
                .max(Instant::now() + begun.elapsed() * work.engine.duty_factor);
            ended = Some(Instant::now());
        }
    }
}

impl Work {
    fn new(
        engine: Engine,
        dialects: DialectSet,
        writer: Option<LastKnownGoodWriter>,
        last_known_good: Option<LastKnownGoodFile>,
    ) -> Self {
        Self {
            engine,
            writer,
            last_known_good,
            dialects: DialectModels::new(&dialects),
            set: dialects,
            documents: Documents::default(),
            files_hash: 0,
            vaults_of_files: Vec::new(),
            waiting: Vec::new(),
            cache: CompileCache::default(),
            revision: Revision(0),
            is_due: false,
            is_heard: false,
        }
    }

    fn take(&mut self, input: EngineEvent) {
        match input {
            EngineEvent::Source(SourceEvent::Whole { documents, revision }) => {
                self.is_due |= !self.is_heard;
                self.is_heard = true;
                self.replace(documents);
                self.note_contact(revision);
            }
            EngineEvent::Source(SourceEvent::Changed { revision, documents }) => {
                for (key, value) in documents {
                    self.apply(&key, value);
                }
                self.note_contact(revision);
            }
            EngineEvent::Source(SourceEvent::Unreachable(reason)) => {
                let since = SystemTime::now();
                self.engine.followed.update(|state| match &mut state.contact {
                    Contact::Unreachable { reason: known, .. } => *known = reason,
                    contact => *contact = Contact::Unreachable { since, reason },
                });
            }
            EngineEvent::Over(documents) => {
                for key in documents {
                    self.apply(&key, None);
                }
            }
            EngineEvent::LastKnownGood(documents, revision) => {
                if !self.is_heard {
                    self.replace(documents);
                    self.revision = revision;
                    self.is_due = true;
                }
            }
            EngineEvent::Files(FileContent { model, vaults, done }) => {
                self.waiting.extend(done);
                let has_other_vaults = vaults != self.vaults_of_files;
                for (key, _) in std::mem::take(&mut self.vaults_of_files) {
                    self.engine.secrets.apply(&key, None);
                }
                for (key, vault) in &vaults {
                    self.engine.secrets.apply(key, Some(vault));
                }
                self.vaults_of_files = vaults;
                self.files_hash = weir_snapshot::hash(&model);
                self.dialects.set_files(*model);
                // Documents of the store may refer to them.
                if has_other_vaults {
                    self.dialects.refresh();
                }
                // Before anything was heard, there would be less to serve than there is.
                self.is_due |= self.is_heard;
            }
            EngineEvent::Secrets => {
                self.dialects.refresh();
                self.is_due |= self.engine.followed.state().served_at.is_some();
            }
            EngineEvent::Keep => {
                if !self.is_due && self.engine.followed.state().refusal.is_none() {
                    self.keep();
                }
            }
        }
    }

    fn note_contact(&mut self, revision: Revision) {
        self.revision = revision;
        let state = self.engine.followed.state();
        if state.contact != Contact::Following {
            if let Contact::Unreachable { since, .. } = &state.contact {
                let seconds = since.elapsed().unwrap_or_default().as_secs();
                tracing::info!(seconds, "the store is reachable again");
            }
            self.engine
                .followed
                .update(|state| state.contact = Contact::Following);
        }
    }

    fn replace(&mut self, documents: Vec<(Key, Arc<[u8]>)>) {
        let kept: HashSet<&Key> = documents.iter().map(|(key, _)| key).collect();
        let gone: Vec<Key> = self
            .documents
            .iter()
            .map(|(key, _)| key)
            .filter(|key| !kept.contains(key))
            .cloned()
            .collect();
        for key in gone {
            self.apply(&key, None);
        }
        for (key, value) in documents {
            self.apply(&key, Some(value));
        }
    }

    fn apply(&mut self, key: &Key, value: Option<Arc<[u8]>>) {
        if is_purge(key) {
            // To forget twice does no harm: those of a whole may have been heard before.
            if let Some(value) = value {
                (self.engine.purge)(&value);
            }
            return;
        }
        if !is_served(&self.set, key) {
            return;
        }
        if self.documents.apply(key, value.clone()) {
            self.dialects.apply(key.as_str(), value.as_deref());
            if self.engine.secrets.apply(key.as_str(), value.as_deref()) {
                self.dialects.refresh();
            }
            self.is_due = true;
        }
    }

    /// Nothing that is served has changed, but the source is further on.
    fn note_revision(&mut self) {
        let state = self.engine.followed.state();
        if state.served_at.is_some() && state.refusal.is_none() && state.revision != self.revision {
            self.engine
                .followed
                .update(|state| state.revision = self.revision);
        }
    }

    /// Compiles and hands over what there is.
    pub(super) fn build(&mut self) {
        self.is_due = false;
        let begun = Instant::now();
        let Engine {
            registry,
            persistent,
            secrets,
            acme,
            followed,
            ..
        } = &mut self.engine;
        let (model, mut skipped) = self
            .dialects
            .model(|dialect, model| secrets.resolve(dialect, model));
        let translated = begun.elapsed();
        followed.note_routes(&self.set, &model);
        let hash = self.documents.number() ^ self.files_hash;
        let wanted = crate::acme::wanted(&model);
        acme.send_if_modified(|known| {
            let is_other = *known != wanted;
            *known = wanted;
            is_other
        });
        let compiled = compile::compile(&model, hash, registry, persistent, &mut self.cache);
        followed.note_server_names(&self.set, self.dialects.server_names());
        tracing::debug!(revision = %self.revision, ?translated, compiled = ?begun.elapsed(), "configuration compiled");
        match compiled {
            Ok((snapshot, more)) => {
                skipped.extend(more.into_iter().map(|it| SkippedDocument {
                    document: it.name,
                    reason: it.reason,
                }));
                skipped.truncate(MAX_NAMED);
                let warnings = self.dialects.warnings().take(MAX_NAMED).collect();
                self.serve(snapshot, skipped, warnings);
            }
            Err(found) => self.refuse(&found),
        }
        self.waiting.clear();
    }

    fn refuse(&mut self, found: &[Diagnostic]) {
        let reason = found.first().map_or_else(
            || "too much is wrong with it".to_owned(),
            |first| format!("{}: {}", first.path, first.message),
        );
        tracing::error!(%reason, revision = %self.revision, "the store's configuration is invalid; Weir keeps serving the previous configuration");
        self.engine.followed.update(|state| state.refusal = Some(reason));
        if self.engine.followed.state().served_at.is_none() {
            self.serve_kept();
        }
    }

    /// Serves the last known good documents, if there are any, instead of nothing.
    fn serve_kept(&mut self) {
        let (documents, revision) = match self.last_known_good.as_ref().map(LastKnownGoodFile::load) {
            Some(Ok(Some(loaded))) => loaded,
            None | Some(Ok(None)) => return,
            Some(Err(error)) => {
                tracing::error!(%error, "the last known good configuration cannot be read");
                return;
            }
        };
        let mut known = Documents::default();
        let mut dialects = DialectModels::new(&self.set);
        dialects.swap_files(&mut self.dialects);
        for (key, value) in documents.into_iter().filter(|(key, _)| is_served(&self.set, key)) {
            dialects.apply(key.as_str(), Some(&value));
            known.apply(&key, Some(value));
        }
        let Engine {
            registry,
            persistent,
            secrets,
            ..
        } = &mut self.engine;
        let (model, mut skipped) = dialects.model(|dialect, model| secrets.resolve(dialect, model));
        skipped.truncate(MAX_NAMED);
        let hash = known.number() ^ self.files_hash;
        let compiled = compile::compile(&model, hash, registry, persistent, &mut CompileCache::default());
        drop(model);
        let warnings = dialects.warnings().take(MAX_NAMED).collect();
        dialects.swap_files(&mut self.dialects);
        let Ok((snapshot, _)) = compiled else { return };
        (self.engine.serve)(snapshot);
        self.engine.followed.update(|state| {
            state.note_served(&known, revision, skipped, warnings);
            state.is_last_known_good = true;
        });
    }

    fn serve(&mut self, snapshot: Snapshot, skipped: Vec<SkippedDocument>, warnings: Vec<SkippedDocument>) {
        let known = self.engine.followed.state();
        for broken in skipped.iter().filter(|it| !known.skipped.contains(it)) {
            tracing::error!(document = %broken.document, reason = %broken.reason, "a document is invalid and not served");
        }
        for other in warnings.iter().filter(|it| !known.warnings.contains(it)) {
            tracing::warn!(document = %other.document, reason = %other.reason, "a document is not served as written");
        }
        (self.engine.serve)(snapshot);
        self.engine.followed.update(|state| {
            state.note_served(&self.documents, self.revision, skipped, warnings);
            state.is_last_known_good = !self.is_heard;
            state.refusal = None;
        });
        self.keep();
    }

    fn keep(&self) {
        if self.is_heard
            && let Some(writer) = &self.writer
        {
            writer.give(&self.documents, self.revision);
        }
    }
}

#[cfg(test)]
mod tests;
