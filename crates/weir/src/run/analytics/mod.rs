//! Analytics of `weir run`: what is opened at the start, the thread that counts calls, and its end.

mod collector;
mod names;

use super::plan::{Origin, RunMode, UsageError};
use crate::args::{AnalyticsLocation, RoleArg, RunArgs};
use crate::clock::unix_milliseconds;
use anyhow::Context;
use collector::{CallSink, Collector};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_analytics::aggregate::Aggregator;
use weir_analytics::privacy::{MAX_HEADERS, Privacy};
use weir_control::analytics::clickhouse::ClickhouseServer;
use weir_control::analytics::{Analytics, AnalyticsPaths, Backlog, CallDelivery, Delivery, Options};
use weir_proxy::{Calls, PublishedSnapshot};
use weir_telemetry::calls::AnalyticsStats;
use weir_telemetry::metrics;

/// How long the last counts may take to be stored, and to be delivered.
const TIMEOUT: Duration = Duration::from_secs(10);
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(2);

/// The analytics of this process.
#[derive(Default)]
pub struct Setup {
    /// The rings that workers write to; `None`: calls are not counted.
    pub calls: Option<Arc<Calls<PublishedSnapshot>>>,
    /// The analytics that are kept here.
    pub kept: Option<Analytics>,
    /// To whom counts are delivered.
    control: Option<(String, Option<String>)>,
    /// The folder of batches that wait to be delivered.
    backlog: Option<AnalyticsPaths>,
    interval: Duration,
    /// The environment of calls whose routes name none; empty: there are several, or none.
    environment: String,
    privacy: Privacy,
    stats: Arc<AnalyticsStats>,
    running: Mutex<Option<Running>>,
}

/// The thread that counts.
struct Running {
    /// Dropping it ends the thread, once that is unparked.
    stop: Sender<()>,
    thread: JoinHandle<Collector>,
}

impl Setup {
    /// Opens what the flags ask for.
    pub fn of(args: &RunArgs, plan: &RunMode, metrics: &metrics::Registry) -> anyhow::Result<Self> {
        let management = match plan {
            RunMode::Files => None,
            RunMode::Managed(management) => Some(management),
        };
        let control = match management.map(|it| &it.origin) {
            Some(Origin::Control { url, token }) => Some((url.clone(), token.clone())),
            _ => None,
        };
        let data = args.management.data.as_deref();
        let place = match (&args.analytics.analytics, data) {
            (Some(AnalyticsLocation::Off), _) => return Ok(Self::default()),
            (Some(AnalyticsLocation::At(path)), _) => Some(AnalyticsPaths::of(path)),
            (None, Some(folder)) => Some(AnalyticsPaths::of(&folder.join("analytics"))),
            (None, None) if control.is_some() => None,
            (None, None) => return Ok(Self::default()),
        };
        let privacy = args.analytics.privacy();
        let is_control_plane = management.is_some_and(|it| it.role == RoleArg::Control);
        let stats = Arc::new(AnalyticsStats::default());
        metrics.observe_analytics(Arc::clone(&stats));
        let kept = match (&control, &place) {
            (None, Some(place)) => {
                let options = Options {
                    store: clickhouse_server(args)?,
                    privacy: privacy.clone(),
                    console_url: args.outbox.console_url.clone(),
                };
                Analytics::open(place, options).inspect_err(warn_of_no_store).ok()
            }
            _ => None,
        };
        let headers = privacy.headers.clone();
        let plugins = || {
            weir_plugins::registry()
                .iter()
                .map(|plugin| plugin.name())
                .collect::<Vec<_>>()
        };
        Ok(Self {
            calls: (!is_control_plane).then(|| Arc::new(Calls::new(plugins()).with_headers(headers))),
            kept,
            backlog: place.filter(|_| control.is_some() || args.analytics.analytics_store.is_some()),
            control,
            interval: args.analytics.analytics_interval.0,
            environment: match args.management.environment.as_slice() {
                [only] if only != "default" => only.clone(),
                _ => String::new(),
            },
            privacy,
            stats,
            running: Mutex::default(),
        })
    }

    /// Looks after what is kept, and evaluates alert rules. To be called inside of a tokio runtime.
    pub fn run_maintenance(&self) {
        if let Some(kept) = &self.kept {
            tokio::spawn(kept.clone().run_maintenance());
            tokio::spawn(kept.clone().watch_alerts(3 * self.interval));
            tokio::spawn(kept.clone().watch_reports(3 * self.interval));
        }
    }

    /// What waits to be delivered: in its folder, or in memory if that cannot be used.
    fn open_backlog(&self) -> anyhow::Result<Backlog> {
        let folder: Option<&Path> = self.backlog.as_ref().map(|place| place.backlog.as_path());
        let opened = Backlog::open(folder).inspect_err(|error| {
            let folder = folder.map(Path::display).map(tracing::field::display);
            tracing::error!(folder, %error, "the backlog folder cannot be used; undelivered counts are kept in memory only");
        });
        opened
            .or_else(|_| Backlog::open(None))
            .context("a backlog in memory")
    }

    /// Counts calls from now on, as those of a gateway of this name. To be called inside of a tokio runtime.
    pub fn start(&self, gateway: &str) -> anyhow::Result<()> {
        let Some(calls) = &self.calls else {
            return Ok(());
        };
        let stats = Arc::clone(&self.stats);
        let (delivery, log) = match (&self.kept, &self.control) {
            (Some(kept), _) => {
                let delivery = match kept.kept().is_elsewhere {
                    true => Delivery::to_store(kept.clone(), self.open_backlog()?, stats),
                    false => Delivery::here(kept.clone(), stats)?,
                };
                (delivery, CallSink::Here(kept.clone()))
            }
            (None, Some((url, token))) => {
                let calls = CallDelivery::start(url, token.clone(), gateway);
                let backlog = self.open_backlog()?;
                let delivery = Delivery::to_control((url, token.clone()), gateway, backlog, stats);
                (delivery, CallSink::Control(calls))
            }
            (None, None) => return Ok(()),
        };
        let aggregator = Aggregator::new(gateway, &self.environment, unix_milliseconds());
        let collector = Collector::new(
            Arc::clone(calls),
            aggregator,
            (delivery, log),
            (Arc::clone(&self.stats), self.privacy.clone()),
            self.interval,
        );
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("weir-aggregator".to_owned())
            .spawn(move || collector.run(&stopped))
            .context("the thread that counts calls cannot be started")?;
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Running { stop, thread });
        Ok(())
    }

    /// Counts the last calls, once the workers have ended, and stores what was counted.
    pub async fn finish(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { stop, thread }) = running {
            drop(stop);
            thread.thread().unpark();
            match tokio::task::spawn_blocking(move || thread.join()).await {
                Ok(Ok(collector)) => {
                    let is_away = self.control.is_some() || self.backlog.is_some();
                    let timeout = if is_away { DELIVERY_TIMEOUT } else { TIMEOUT };
                    collector.finish(timeout).await;
                }
                _ => tracing::error!("the thread that counts calls has panicked"),
            }
        }
        if let Some(kept) = &self.kept
            && let Err(error) = kept.with(|kept| kept.flush()).await
        {
            tracing::warn!(%error, "the last calls cannot be written to the request log");
        }
    }
}

/// Calls are served without analytics: they decide nothing.
fn warn_of_no_store(error: &weir_analytics::StoreError) {
    tracing::error!(
        %error,
        "analytics are off: their store cannot be opened; repair it and restart Weir, or set --analytics to another folder or to off"
    );
}

/// The store that --analytics-store names, with a ledger next to it.
fn clickhouse_server(args: &RunArgs) -> anyhow::Result<Option<ClickhouseServer>> {
    let Some(Ok(server)) = &args.analytics.analytics_store else {
        return Ok(None);
    };
    let password = match &args.analytics.analytics_store_password_file {
        Some(path) => {
            let read = std::fs::read_to_string(path);
            let read = read.with_context(|| format!("--analytics-store-password-file {}", path.display()))?;
            Some(read.trim_end().to_owned())
        }
        None => None,
    };
    Ok(Some(server.clone().with_password(password)))
}

/// Flags that do not fit together.
pub fn check(args: &RunArgs, plan: &RunMode) -> Result<(), UsageError> {
    if args.analytics.analytics_headers.len() > MAX_HEADERS {
        let message = format!("--analytics-headers takes at most {MAX_HEADERS} names");
        return Err(UsageError::new(&message));
    }
    if let Some(Err(error)) = &args.analytics.analytics_store {
        return Err(UsageError::new(&format!("--analytics-store: {error}")));
    }
    let has_store = args.analytics.analytics_store.is_some();
    let follows_control = matches!(plan, RunMode::Managed(it) if matches!(it.origin, Origin::Control { .. }));
    if has_store && follows_control {
        return Err(UsageError::new(
            "a gateway with --control delivers its counts there: give --analytics-store to the control plane",
        ));
    }
    let is_off = match &args.analytics.analytics {
        None => args.management.data.is_none(),
        Some(place) => *place == AnalyticsLocation::Off,
    };
    if has_store && is_off {
        return Err(UsageError::new(
            "--analytics-store also needs --data DIR or --analytics FOLDER, for counts that are not stored yet",
        ));
    }
    match &args.analytics.analytics {
        Some(AnalyticsLocation::At(path))
            if follows_control && path.extension().is_some_and(|it| it == "db") =>
        {
            Err(UsageError::new(
                "a gateway with --control delivers its counts there: set --analytics to a folder for undelivered counts, not to a file",
            ))
        }
        _ => Ok(()),
    }
}
