//! The configuration as it stands in files: loading it, and taking over files that change.

use crate::args::RouterArgs;
use crate::doors::Door;
use crate::load::{self, Loaded};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tokio::signal::unix::Signal;
use weir_control::secrets::Policy;
use weir_model::{Model, Severity};
use weir_plugin::Registry;
use weir_snapshot::{Carry, Snapshot};

/// How often files are looked at for changes.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// Niceness of a thread that compiles while calls are served.
const BACKGROUND_NICENESS: i32 = 10;

/// What a load needs besides the files' content.
pub struct Loader {
    pub files: Vec<PathBuf>,
    pub routers: RouterArgs,
    pub registry: Registry,
    pub carry: Carry,
    /// Whether there is a place for certificates that an authority signs on demand.
    pub has_store: bool,
}

/// A configuration that was loaded.
pub struct Good {
    /// What it says.
    pub model: Model,
    /// Its compiled form.
    pub snapshot: Snapshot,
    /// What is to be said about it.
    pub notes: Vec<String>,
    /// The doors that the files came through.
    pub doors: Vec<Door>,
}

/// What tells a changed file from an unchanged one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStamp {
    modified: Option<SystemTime>,
    length: u64,
    inode: u64,
}

impl Loader {
    /// What the files look like now.
    pub fn stamps(&self) -> Vec<Option<FileStamp>> {
        use std::os::unix::fs::MetadataExt;
        let stamp = |file: &PathBuf| {
            let metadata = std::fs::metadata(file).ok()?;
            Some(FileStamp {
                modified: metadata.modified().ok(),
                length: metadata.len(),
                inode: metadata.ino(),
            })
        };
        self.files.iter().map(stamp).collect()
    }

    /// Loads on a thread that gives way to the workers.
    pub fn load_in_background(&self) -> Result<Good, String> {
        // On Linux this is the calling thread's own priority. Where it cannot be lowered, loading still works.
        let _unchanged = rustix::process::setpriority_process(None, BACKGROUND_NICENESS);
        self.load()
    }

    /// The configuration, or why it is refused.
    pub fn load(&self) -> Result<Good, String> {
        let loaded = load::load(
            &self.files,
            self.routers,
            Policy::Serve,
            &self.registry,
            &self.carry,
        )
        .map_err(|error| error.to_string())?;
        let is_refused = loaded.severity() == Some(Severity::Error);
        if let Some((model, _)) = &loaded.good
            && !model.acme.is_empty()
            && !self.has_store
        {
            return Err("error: acme: there is no place to keep accounts and certificates: give --data DIR or --store URL\n".to_owned());
        }
        let report = loaded.report();
        match loaded {
            Loaded {
                good: Some((model, snapshot)),
                sources,
                ..
            } if !is_refused => Ok(Good {
                model,
                snapshot,
                doors: sources.iter().map(|source| source.door).collect(),
                notes: report.lines().map(str::to_owned).collect(),
            }),
            _ => Err(report),
        }
    }
}

/// Files that are watched.
pub struct Watched {
    loader: std::sync::Arc<Loader>,
    stamps: Vec<Option<FileStamp>>,
    tick: tokio::time::Interval,
}

impl Watched {
    /// Files that looked like that when they were loaded.
    pub fn new(loader: Loader, stamps: Vec<Option<FileStamp>>) -> Self {
        let mut tick = tokio::time::interval(WATCH_INTERVAL);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        Self {
            loader: loader.into(),
            stamps,
            tick,
        }
    }

    /// Loads them once they have changed, and on SIGHUP also when they do not look so. `meanwhile` is called now and
    /// then.
    pub async fn changed(&mut self, hangup: &mut Signal, meanwhile: impl Fn()) -> Result<Good, String> {
        loop {
            let is_asked = tokio::select! {
                _ = self.tick.tick() => false,
                _ = hangup.recv() => true,
            };
            meanwhile();
            let current = self.loader.stamps();
            if current == self.stamps && !is_asked {
                continue;
            }
            self.stamps = current;
            let loader = std::sync::Arc::clone(&self.loader);
            // Off the control runtime, so that /status answers meanwhile.
            return tokio::task::spawn_blocking(move || loader.load_in_background())
                .await
                .unwrap_or_else(|error| Err(format!("loading has failed: {error}")));
        }
    }
}

/// Logs why files are refused.
pub fn tell_refused(report: &str) {
    for line in report.lines() {
        tracing::error!("{line}");
    }
    tracing::error!("the changed configuration is refused; the last good one goes on serving");
}
