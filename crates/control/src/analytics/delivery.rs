//! Handing batches over: to the store of this process, or to the control plane that a gateway follows. What may be away,
//! a control plane or a store in another process, gets them from a backlog.

use super::{Analytics, Backlog, now};
use crate::http::ClientRequest;
use hyper::{Method, StatusCode};
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::Notify;
use weir_analytics::StoreError;
use weir_analytics::batch::Batch;
use weir_telemetry::calls::AnalyticsStats;

/// Batches that wait for the store of this process.
const MAX_WAITING: usize = 720;
/// The first pause after a failure, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];

/// The target of batches.
pub enum Delivery {
    /// Into the store of this process, by a thread of its own: it waits for the disk.
    Here(LocalDelivery),
    /// To a control plane, or to a store in another process.
    Away(Arc<Remote>),
}

/// A target that may be away.
enum Destination {
    /// A control plane.
    Control { url: String, token: Option<String> },
    /// A store in another process.
    Store(Analytics),
}

/// The outcome of a delivery.
pub(super) enum DeliveryResult {
    Over,
    /// It is not taken, and would not be another time.
    Refused(String),
}

/// Delivery to the store of this process.
pub struct LocalDelivery {
    batches: SyncSender<Batch>,
    thread: JoinHandle<()>,
    /// Minutes of batches for which there was no room.
    lost: Mutex<Option<(u32, u32)>>,
    stats: Arc<AnalyticsStats>,
}

/// Delivery to what may be away.
pub struct Remote {
    to: Destination,
    backlog: Backlog,
    came: Notify,
    stats: Arc<AnalyticsStats>,
}

impl Delivery {
    /// Delivers into a store.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn here(analytics: Analytics, stats: Arc<AnalyticsStats>) -> io::Result<Self> {
        let (batches, waiting) = sync_channel(MAX_WAITING);
        let counted = Arc::clone(&stats);
        let thread = std::thread::Builder::new()
            .name("weir-analytics".to_owned())
            .spawn(move || store(&analytics, &waiting, &counted))?;
        Ok(Self::Here(LocalDelivery {
            batches,
            thread,
            lost: Mutex::default(),
            stats,
        }))
    }

    /// Delivers to a control plane. To be called inside of a tokio runtime.
    pub fn to_control(
        (url, token): (&str, Option<String>),
        gateway: &str,
        backlog: Backlog,
        stats: Arc<AnalyticsStats>,
    ) -> Self {
        let to = Destination::Control {
            url: format!(
                "{}/api/v1/gateways/{gateway}/analytics",
                url.trim_end_matches('/')
            ),
            token,
        };
        Self::away(to, backlog, stats)
    }

    /// Delivers into a store in another process. To be called inside of a tokio runtime.
    pub fn to_store(analytics: Analytics, backlog: Backlog, stats: Arc<AnalyticsStats>) -> Self {
        Self::away(Destination::Store(analytics), backlog, stats)
    }

    fn away(to: Destination, backlog: Backlog, stats: Arc<AnalyticsStats>) -> Self {
        let remote = Arc::new(Remote {
            to,
            backlog,
            came: Notify::new(),
            stats,
        });
        tokio::spawn(Arc::clone(&remote).run());
        Self::Away(remote)
    }

    /// Takes a batch. Never waits long.
    pub fn take(&self, batch: Batch) {
        match self {
            Self::Here(here) => {
                if let Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) =
                    here.batches.try_send(batch)
                {
                    here.stats.lost.fetch_add(1, Relaxed);
                    let mut lost = here.lost.lock().unwrap_or_else(PoisonError::into_inner);
                    let lost = lost.get_or_insert((batch.complete, batch.complete));
                    lost.1 = batch.complete;
                }
            }
            Self::Away(remote) => {
                remote.backlog.push(&batch);
                remote.stats.lost.store(remote.backlog.dropped(), Relaxed);
                remote.came.notify_one();
            }
        }
    }

    /// The minutes of batches that were thrown away since the last time.
    pub fn take_lost(&self) -> Option<(u32, u32)> {
        match self {
            Self::Here(here) => here.lost.lock().unwrap_or_else(PoisonError::into_inner).take(),
            Self::Away(remote) => remote.backlog.take_lost(),
        }
    }

    /// Waits until what was taken is stored; of a control plane, for a while. What is in files is delivered after the
    /// next start.
    pub async fn finish(self, timeout: Duration) {
        match self {
            Self::Here(here) => {
                drop(here.batches);
                let joined = tokio::task::spawn_blocking(move || here.thread.join());
                if tokio::time::timeout(timeout, joined).await.is_err() {
                    tracing::warn!("the last counts are not stored in time");
                }
            }
            Self::Away(remote) => {
                let _late = tokio::time::timeout(timeout, remote.deliver()).await;
            }
        }
    }
}

/// Stores batches until no more come. A batch that cannot be stored is tried again before the next one.
fn store(analytics: &Analytics, batches: &Receiver<Batch>, stats: &AnalyticsStats) {
    for batch in batches {
        for attempt in 0_u32.. {
            match analytics.kept().store.ingest(&batch, now()) {
                Ok(_) => {
                    stats.delivered.fetch_add(1, Relaxed);
                    break;
                }
                Err(error) if attempt < 10 => {
                    stats.failed.fetch_add(1, Relaxed);
                    tracing::warn!(%error, "counts of calls are not stored; retrying");
                    std::thread::sleep(PAUSES[0]);
                }
                Err(error) => {
                    stats.lost.fetch_add(1, Relaxed);
                    tracing::error!(%error, number = batch.number, "counts of calls are lost");
                    break;
                }
            }
        }
    }
}

impl Remote {
    /// Delivers what waits, for as long as the process runs.
    async fn run(self: Arc<Self>) {
        let mut pause = PAUSES[0];
        loop {
            match self.deliver().await {
                Ok(()) => {
                    pause = PAUSES[0];
                    self.came.notified().await;
                }
                Err(error) => {
                    self.stats.failed.fetch_add(1, Relaxed);
                    // Once for each time that it is away.
                    match pause == PAUSES[0] {
                        true => tracing::warn!(error, "counts of calls are not delivered; retrying"),
                        false => tracing::debug!(error, "counts of calls are not delivered"),
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSES[1]);
                }
            }
        }
    }

    /// Delivers until nothing waits.
    async fn deliver(&self) -> Result<(), String> {
        while let Some((id, bytes)) = self.backlog.first() {
            match self.to.take(bytes).await? {
                DeliveryResult::Over => {
                    self.stats.delivered.fetch_add(1, Relaxed);
                    self.backlog.done(id);
                }
                DeliveryResult::Refused(detail) => {
                    tracing::warn!(detail, "a batch of counts is not taken");
                    self.backlog.give_up(id);
                }
            }
        }
        Ok(())
    }
}

impl Destination {
    async fn take(&self, bytes: Vec<u8>) -> Result<DeliveryResult, String> {
        match self {
            Self::Control { url, token } => {
                post(url, token.as_deref(), ("application/octet-stream", bytes)).await
            }
            Self::Store(analytics) => {
                let batch = match Batch::decode(&bytes) {
                    Ok(batch) => batch,
                    Err(error) => return Ok(DeliveryResult::Refused(error.to_string())),
                };
                match analytics.with(move |kept| kept.store.ingest(&batch, now())).await {
                    Ok(_) => Ok(DeliveryResult::Over),
                    Err(error @ StoreError::OtherBatch { .. }) => {
                        Ok(DeliveryResult::Refused(error.to_string()))
                    }
                    Err(error) => Err(error.to_string()),
                }
            }
        }
    }
}

/// Posts a body of a type to a control plane.
pub(super) async fn post(
    url: &str,
    token: Option<&str>,
    (content_type, body): (&str, Vec<u8>),
) -> Result<DeliveryResult, String> {
    let call = ClientRequest {
        method: Method::POST,
        body,
        ..ClientRequest::get(url)
    };
    let call = call.header("content-type", content_type).token(token);
    let (status, answer) = call.make().await.map_err(|error| error.to_string())?;
    let detail = format!("{status}: {}", String::from_utf8_lossy(&answer));
    match status {
        status if status.is_success() => Ok(DeliveryResult::Over),
        // It would be refused again and again.
        StatusCode::BAD_REQUEST
        | StatusCode::CONFLICT
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNPROCESSABLE_ENTITY => Ok(DeliveryResult::Refused(detail)),
        _ => Err(detail),
    }
}
