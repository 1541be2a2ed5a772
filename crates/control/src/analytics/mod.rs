//! Analytics in a process: the store, the request log and the alert rules, and the tasks that look after them.
//!
//! Counting itself is done where calls are served; here counts arrive as batches, from this process or from gateways
//! that follow it ([`delivery`]).

pub mod alerting;
pub mod backlog;
pub mod call_delivery;
pub mod chart_annotations;
pub mod clickhouse;
pub mod delivery;
pub mod reporting;
pub mod sampler;
pub mod workspaces;

pub use backlog::Backlog;
pub use call_delivery::CallDelivery;
pub use delivery::Delivery;
pub use workspaces::ServiceLookup;

use crate::outbox::Outbox;
use clickhouse::ClickhouseServer;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};
use weir_analytics::alerts::States;
use weir_analytics::calls::{CallLog, CallLogOptions};
use weir_analytics::clickhouse::ClickhouseAnalytics;
use weir_analytics::privacy::Privacy;
use weir_analytics::retention::Retention;
use weir_analytics::sqlite::SqliteAnalytics;
use weir_analytics::{AnalyticsStore, StoreError};
use weir_model::unix_time;

/// How often the request log is written to its files.
const FLUSH: Duration = Duration::from_secs(10);
/// After how many of these times the store clears up.
const CLEAR_UP: u32 = 60;

/// Seconds since the Unix epoch.
pub(crate) fn now() -> u64 {
    unix_time::seconds(SystemTime::now())
}

/// The place of analytics.
#[derive(Debug, Clone)]
pub struct AnalyticsPaths {
    /// The database.
    pub database: PathBuf,
    /// The folder of the request log.
    pub calls: PathBuf,
    /// The folder of batches that wait to be delivered.
    pub backlog: PathBuf,
}

impl AnalyticsPaths {
    /// In a folder; or next to a database, if the path is one: a file, or a name that ends in `.db`.
    pub fn of(path: &Path) -> Self {
        let is_database = path.is_file() || path.extension().is_some_and(|it| it == "db");
        match is_database {
            true => Self {
                database: path.to_owned(),
                calls: path.with_extension("calls"),
                backlog: path.with_extension("backlog"),
            },
            false => Self {
                database: path.join("analytics.db"),
                calls: path.join("calls"),
                backlog: path.join("backlog"),
            },
        }
    }
}

/// Analytics that are kept here. Cheap to share.
#[derive(Clone)]
pub struct Analytics(Arc<AnalyticsStorage>);

/// How analytics are kept.
#[derive(Default)]
pub struct Options {
    /// The store of the counts; `None`: the database of the place.
    pub store: Option<ClickhouseServer>,
    /// The data about callers and clients that this process keeps.
    pub privacy: Privacy,
    /// The public address of the console, for links in mails.
    pub console_url: Option<String>,
}

/// The stores and settings of analytics.
pub struct AnalyticsStorage {
    /// The counts.
    pub store: Arc<dyn AnalyticsStore>,
    /// Alert rules, boards and reports. They are in a database here, in whichever store the counts are.
    pub documents: Arc<SqliteAnalytics>,
    /// How long counts are kept.
    pub retention: Retention,
    /// The data about callers and clients that this process keeps.
    pub privacy: Privacy,
    /// The request log.
    pub log: CallLog,
    /// How alert rules stand.
    states: Mutex<States>,
    /// How they stood when that was kept last.
    kept_states: Mutex<String>,
    /// Whether the counts are in another store than the documents.
    pub is_elsewhere: bool,
    /// The public address of the console.
    console_url: Option<String>,
    /// Sends alerts and reports.
    outbox: OnceLock<Outbox>,
    /// The services that workspaces have.
    services: OnceLock<ServiceLookup>,
}

impl Analytics {
    /// Opens what is kept at a place.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(place: &AnalyticsPaths, options: Options) -> Result<Self, StoreError> {
        let retention = Retention::default();
        let documents = Arc::new(SqliteAnalytics::open(&place.database, retention)?);
        let log = CallLog::open(CallLogOptions {
            folder: Some(place.calls.clone()),
            ..CallLogOptions::default()
        });
        let log = log.map_err(|error| StoreError::Engine(format!("{}: {error}", place.calls.display())))?;
        let states = alerting::known_states(&documents)?;
        let is_elsewhere = options.store.is_some();
        let store: Arc<dyn AnalyticsStore> = match options.store {
            Some(server) => Arc::new(ClickhouseAnalytics::new(
                server,
                Arc::clone(&documents),
                retention,
            )),
            None => Arc::clone(&documents) as _,
        };
        Ok(Self(Arc::new(AnalyticsStorage {
            is_elsewhere,
            store,
            console_url: options.console_url,
            documents,
            retention,
            privacy: options.privacy,
            log,
            kept_states: Mutex::default(),
            states: Mutex::new(states),
            outbox: OnceLock::new(),
            services: OnceLock::new(),
        })))
    }

    /// From now on the services of workspaces are found by this. Until then no query about a workspace is answered.
    pub fn find_services_by(&self, services: ServiceLookup) {
        let _is_first = self.0.services.set(services);
    }

    /// From now on alerts are sent by this. Until then they are only logged.
    pub fn send_by(&self, outbox: Outbox) {
        let _is_first = self.0.outbox.set(outbox);
    }

    fn outbox(&self) -> Option<&Outbox> {
        self.0.outbox.get()
    }

    /// The stores. Their functions block.
    pub fn kept(&self) -> &AnalyticsStorage {
        &self.0
    }

    /// Runs work that blocks, if that does no harm. To be called inside of a tokio runtime.
    ///
    /// # Errors
    /// What the work says, and that it has panicked.
    pub async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&AnalyticsStorage) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let kept = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&kept)).await;
        done.unwrap_or_else(|error| Err(StoreError::Engine(error.to_string())))
    }

    /// Writes the request log to its files and clears up, until the process ends.
    pub async fn run_maintenance(self) {
        let mut tick = tokio::time::interval(FLUSH);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for round in 0_u32.. {
            tick.tick().await;
            let done = self.with(move |kept| kept.run_maintenance(round)).await;
            if let Err(error) = done {
                tracing::warn!(%error, "analytics maintenance failed; retrying");
            }
        }
    }
}

impl AnalyticsStorage {
    /// The address of a page of the console; `None`: the console's public URL is unknown.
    fn link(&self, page: &str) -> Option<String> {
        let url = self.console_url.as_ref()?;
        let url = url.trim_end_matches('/');
        // The console is below `/ui`; somebody may have written that.
        Some(format!("{}/ui/{page}", url.strip_suffix("/ui").unwrap_or(url)))
    }

    fn run_maintenance(&self, round: u32) -> Result<(), StoreError> {
        self.flush()?;
        if round.is_multiple_of(CLEAR_UP) {
            self.store.retain(&self.retention, now())?;
        }
        Ok(())
    }

    /// Writes the request log to its files.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn flush(&self) -> Result<(), StoreError> {
        let flushed = self.log.flush(now() * 1_000);
        flushed.map_err(|error| StoreError::Engine(format!("the request log: {error}")))
    }

    fn states(&self) -> std::sync::MutexGuard<'_, States> {
        // Every change leaves them whole.
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_folder_or_a_database() {
        let folder = AnalyticsPaths::of(Path::new("/a/b"));
        assert_eq!(folder.database, Path::new("/a/b/analytics.db"));
        assert_eq!(folder.backlog, Path::new("/a/b/backlog"));
        let file = AnalyticsPaths::of(Path::new("/a/b.db"));
        assert_eq!(file.database, Path::new("/a/b.db"));
        assert_eq!(file.calls, Path::new("/a/b.calls"));
    }
}
