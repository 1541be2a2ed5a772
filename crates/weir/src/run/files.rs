//! The configuration as it stands in files: loading it, and taking over files that change.

use super::declared::{Declarations, PendingReplacement};
use super::file_watch::FileWatch;
use super::unreached::ListenerKinds;
use crate::args::RouterArgs;
use crate::load::{self, Loaded, Replaced};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::signal::unix::Signal;
use weir_control::api::FileText;
use weir_control::secrets::Policy;
use weir_dialect::DialectName;
use weir_model::{Model, Severity};
use weir_plugin::Registry;
use weir_snapshot::{PersistentState, Snapshot};

/// How often files are looked at for changes if the system reports none.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);
/// How often they are looked at besides its reports: not every file system has them.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// How long after a report: what is written in several steps is then complete.
const SETTLE: Duration = Duration::from_millis(50);

/// Niceness of a thread that compiles while calls are served.
const BACKGROUND_NICENESS: i32 = 10;

/// The data that a load needs in addition to the files' content.
pub struct Loader {
    pub files: Vec<PathBuf>,
    pub routers: RouterArgs,
    pub registry: Registry,
    pub persistent: PersistentState,
    /// Whether there is a place for certificates that an authority signs on demand.
    pub has_store: bool,
    /// Where calls come from.
    pub listeners: ListenerKinds,
}

/// A configuration that was loaded.
pub struct LoadedConfig {
    /// Its model.
    pub model: Model,
    /// The vaults that the files describe, each under a key.
    pub vaults: Vec<(String, Vec<u8>)>,
    /// Its compiled form.
    pub snapshot: Snapshot,
    /// The notes about it.
    pub notes: Vec<String>,
    /// The files with the dialects that they came through and the texts that were read.
    pub texts: Vec<Text>,
    /// The work that is due once it is served.
    pub after: PendingReplacement,
}

/// A file as it was read.
#[derive(Debug, Clone)]
pub struct Text {
    /// The file.
    pub file: PathBuf,
    /// The dialect.
    pub dialect: DialectName,
    /// Its text, with the values of variables in it; or what an Admin API has put in its place.
    pub text: Arc<str>,
}

/// The files as lists show them.
pub fn for_lists(texts: &[Text]) -> Vec<FileText> {
    let one = |text: &Text| FileText {
        dialect: text.dialect,
        file: text.file.display().to_string(),
        text: Arc::clone(&text.text),
    };
    texts.iter().map(one).collect()
}

/// The facts that distinguish a changed file from an unchanged one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFingerprint {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
}

impl Loader {
    /// The current fingerprints of the files.
    pub fn fingerprints(&self) -> Vec<Option<FileFingerprint>> {
        use std::os::unix::fs::MetadataExt;
        let fingerprint = |file: &PathBuf| {
            let metadata = std::fs::metadata(file).ok()?;
            Some(FileFingerprint {
                modified: metadata.modified().ok(),
                length: metadata.len(),
                inode: metadata.ino(),
            })
        };
        self.files.iter().map(fingerprint).collect()
    }

    /// Loads on a thread that gives way to the workers.
    pub fn load_in_background(&self, replaced: &[Replaced]) -> Result<LoadedConfig, String> {
        // On Linux this is the calling thread's own priority. If it cannot be lowered, loading still works.
        let _unchanged = rustix::process::setpriority_process(None, BACKGROUND_NICENESS);
        self.load(replaced)
    }

    /// The configuration, or why it is refused.
    pub fn load(&self, replaced: &[Replaced]) -> Result<LoadedConfig, String> {
        let loaded = load::load_replaced(
            &self.files,
            replaced,
            self.routers,
            Policy::Serve,
            &self.registry,
            &self.persistent,
        )
        .map_err(|error| error.to_string())?;
        let is_refused = loaded.severity() == Some(Severity::Error);
        if let Some((model, _)) = &loaded.good
            && !model.acme.is_empty()
            && !self.has_store
        {
            return Err(
                "error: acme: accounts and certificates cannot be stored: set --data DIR or --store URL\n"
                    .to_owned(),
            );
        }
        let report = loaded.report();
        let vaults = loaded.vaults();
        match loaded {
            Loaded {
                good: Some((model, snapshot)),
                sources,
                ..
            } if !is_refused => Ok(LoadedConfig {
                snapshot,
                vaults,
                texts: (self.files.iter().zip(sources))
                    .map(|(file, source)| Text {
                        file: file.clone(),
                        dialect: source.dialect,
                        text: source.text.into(),
                    })
                    .collect(),
                after: PendingReplacement::default(),
                notes: (report.lines().map(str::to_owned))
                    .chain(replaced.iter().map(Replaced::note))
                    .chain(self.listeners.notes(&model))
                    .collect(),
                model,
            }),
            _ => Err(report),
        }
    }
}

/// Files that are watched, and what Admin APIs put in their place.
pub struct WatchedFiles {
    loader: Arc<Loader>,
    fingerprints: Vec<Option<FileFingerprint>>,
    watch: FileWatch,
    tick: tokio::time::Interval,
    declarations: Declarations,
    replaced: Vec<Replaced>,
}

/// The reason for another load.
enum Cause {
    /// Files look different.
    Changed(Vec<Option<FileFingerprint>>),
    /// An order to read the files.
    Asked,
    /// An Admin API brings another text.
    Replaced(DialectName, weir_store::Replacement),
}

impl WatchedFiles {
    /// Files that looked like that when they were loaded.
    pub fn new(
        loader: Loader,
        fingerprints: Vec<Option<FileFingerprint>>,
        declarations: Declarations,
    ) -> Self {
        let watch = FileWatch::new(&loader.files);
        let mut tick = tokio::time::interval(match watch.is_blind() {
            true => WATCH_INTERVAL,
            false => LOOK_INTERVAL,
        });
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        Self {
            loader: loader.into(),
            fingerprints,
            watch,
            tick,
            declarations,
            replaced: Vec::new(),
        }
    }

    /// Loads what is to be served once that is something else: because files have changed, on SIGHUP, or because an
    /// Admin API brings another text.
    ///
    /// # Errors
    /// Why changed files are refused. Who brings a text that is refused learns it directly.
    pub async fn changed(&mut self, hangup: &mut Signal) -> Result<LoadedConfig, String> {
        loop {
            let may_have_changed = async {
                tokio::select! {
                    _ = self.tick.tick() => {}
                    () = self.watch.changed() => tokio::time::sleep(SETTLE).await,
                }
            };
            let cause = tokio::select! {
                () = may_have_changed => {
                    let current = self.loader.fingerprints();
                    if current == self.fingerprints {
                        continue;
                    }
                    Cause::Changed(current)
                }
                _ = hangup.recv() => Cause::Asked,
                (dialect, replacement) = self.declarations.replacement() => Cause::Replaced(dialect, replacement),
            };
            match cause {
                Cause::Replaced(dialect, replacement) => {
                    if let Some(good) = self.replace(dialect, replacement).await {
                        return Ok(good);
                    }
                }
                Cause::Changed(current) => {
                    let is_same = |it: &Replaced| {
                        let mut files = self
                            .loader
                            .files
                            .iter()
                            .zip(self.fingerprints.iter().zip(&current));
                        files.any(|(file, (old, new))| *file == it.file && old == new)
                    };
                    let replaced = self.replaced.iter().filter(|it| is_same(it)).cloned().collect();
                    self.fingerprints = current;
                    return self.load(replaced).await;
                }
                Cause::Asked => {
                    self.fingerprints = self.loader.fingerprints();
                    return self.load(Vec::new()).await;
                }
            }
        }
    }

    /// Loads with a text that an Admin API brings; `None`: it is refused.
    async fn replace(
        &mut self,
        dialect: DialectName,
        replacement: weir_store::Replacement,
    ) -> Option<LoadedConfig> {
        let Some(file) = self.declarations.file(dialect) else {
            replacement.answer(Err("there is no file for it".to_owned()));
            return None;
        };
        let mut replaced = self.replaced.clone();
        replaced.retain(|it| it.file != file);
        replaced.push(Replaced {
            file,
            dialect,
            text: Arc::clone(&replacement.text),
        });
        match self.load(replaced).await {
            Ok(good) => Some(LoadedConfig {
                after: good.after.answering(replacement),
                ..good
            }),
            Err(report) => {
                replacement.answer(Err(report));
                None
            }
        }
    }

    async fn load(&mut self, replaced: Vec<Replaced>) -> Result<LoadedConfig, String> {
        let loader = Arc::clone(&self.loader);
        let given = replaced.clone();
        // Off the control runtime, so that /status answers meanwhile.
        let good = tokio::task::spawn_blocking(move || loader.load_in_background(&given))
            .await
            .unwrap_or_else(|error| Err(format!("loading has failed: {error}")))?;
        self.replaced = replaced;
        Ok(LoadedConfig {
            after: self.declarations.after(&good.texts),
            ..good
        })
    }
}

/// Logs why files are refused.
pub fn log_refused(report: &str) {
    for line in report.lines() {
        tracing::error!("{line}");
    }
    tracing::error!("the changed configuration is invalid; Weir keeps serving the previous configuration");
}
