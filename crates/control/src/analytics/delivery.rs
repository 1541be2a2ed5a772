//! Handing batches over: to the store of this process, or to the control plane that a gateway follows. What may be away,
//! a control plane or a store in another process, gets them from a backlog.

use super::{Analytics, Backlog, now};
use crate::http::ClientRequest;
use hyper::{Method, StatusCode};
use std::io;
use std::sync::atomic::AtomicBool;
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
/// How often a batch is tried to be stored: for about two hours, with the pauses below. A disk that is full may have room
/// again.
const MAX_ATTEMPTS: u32 = 720;
/// The first pause after a failure, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];

/// The target of batches.
pub enum Delivery {
    /// Into the store of this process, by a thread of its own: it waits for the disk.
    Here(LocalDelivery),
    /// To a control plane, or to a store in another process.
    Remote(Arc<Remote>),
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
    shared: Arc<LocalState>,
}

/// What those who give batches and the thread that stores them share.
struct LocalState {
    /// Minutes of batches that are not stored.
    lost: Mutex<Option<(u32, u32)>>,
    /// Batches are tried once more, and no longer.
    is_ending: AtomicBool,
    stats: Arc<AnalyticsStats>,
}

impl LocalState {
    fn lose(&self, batch: &Batch) {
        self.stats.lost.fetch_add(1, Relaxed);
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, last) = lost.get_or_insert((batch.complete, batch.complete));
        (*first, *last) = ((*first).min(batch.complete), (*last).max(batch.complete));
    }
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
        let shared = Arc::new(LocalState {
            lost: Mutex::default(),
            is_ending: AtomicBool::new(false),
            stats,
        });
        let of_thread = Arc::clone(&shared);
        let put = move |batch: &Batch| analytics.kept().store.ingest(batch, now()).map(|_| ());
        let thread = std::thread::Builder::new()
            .name("weir-analytics".to_owned())
            .spawn(move || store(put, &waiting, &of_thread))?;
        Ok(Self::Here(LocalDelivery {
            batches,
            thread,
            shared,
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
        Self::remote(to, backlog, stats)
    }

    /// Delivers into a store in another process. To be called inside of a tokio runtime.
    pub fn to_store(analytics: Analytics, backlog: Backlog, stats: Arc<AnalyticsStats>) -> Self {
        Self::remote(Destination::Store(analytics), backlog, stats)
    }

    fn remote(to: Destination, backlog: Backlog, stats: Arc<AnalyticsStats>) -> Self {
        let remote = Arc::new(Remote {
            to,
            backlog,
            came: Notify::new(),
            stats,
        });
        tokio::spawn(Arc::clone(&remote).run());
        Self::Remote(remote)
    }

    /// Takes a batch. Never waits long.
    pub fn take(&self, batch: Batch) {
        match self {
            Self::Here(here) => {
                if let Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) =
                    here.batches.try_send(batch)
                {
                    here.shared.lose(&batch);
                }
            }
            Self::Remote(remote) => {
                remote.backlog.push(&batch);
                remote.stats.lost.store(remote.backlog.dropped(), Relaxed);
                remote.came.notify_one();
            }
        }
    }

    /// The minutes of batches that were thrown away since the last time.
    pub fn take_lost(&self) -> Option<(u32, u32)> {
        match self {
            Self::Here(here) => {
                let mut lost = here.shared.lost.lock().unwrap_or_else(PoisonError::into_inner);
                lost.take()
            }
            Self::Remote(remote) => remote.backlog.take_lost(),
        }
    }

    /// Waits until what was taken is stored; of a control plane, for a while. What is in files is delivered after the
    /// next start.
    pub async fn finish(self, timeout: Duration) {
        match self {
            Self::Here(here) => {
                here.shared.is_ending.store(true, Relaxed);
                drop(here.batches);
                here.thread.thread().unpark();
                let joined = tokio::task::spawn_blocking(move || here.thread.join());
                if tokio::time::timeout(timeout, joined).await.is_err() {
                    tracing::warn!("the last counts of calls were not stored before the shutdown timeout");
                }
            }
            Self::Remote(remote) => {
                let _late = tokio::time::timeout(timeout, remote.deliver()).await;
            }
        }
    }
}

/// Stores batches until no more come. A batch that cannot be stored is tried again before the next one, which waits.
fn store(put: impl Fn(&Batch) -> Result<(), StoreError>, batches: &Receiver<Batch>, shared: &LocalState) {
    for batch in batches {
        let mut pause = PAUSES[0];
        for attempt in 1_u32.. {
            let Err(error) = put(&batch) else {
                shared.stats.delivered.fetch_add(1, Relaxed);
                if attempt > 1 {
                    tracing::info!("counts of calls can be stored again");
                }
                break;
            };
            shared.stats.failed.fetch_add(1, Relaxed);
            if attempt == MAX_ATTEMPTS || shared.is_ending.load(Relaxed) {
                shared.lose(&batch);
                tracing::error!(%error, number = batch.number, "counts of calls are lost");
                break;
            }
            // Once for each time that the store fails.
            if attempt == 1 {
                tracing::warn!(%error, "counts of calls cannot be stored; retrying for two hours at most");
            }
            std::thread::park_timeout(pause);
            pause = (pause * 2).min(PAUSES[1]);
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
                        true => tracing::warn!(
                            error,
                            "counts of calls cannot be delivered to the control plane; retrying"
                        ),
                        false => {
                            tracing::debug!(error, "counts of calls cannot be delivered to the control plane")
                        }
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
                    tracing::warn!(
                        detail,
                        "the control plane refused a batch of counts; it is dropped"
                    );
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn state(is_ending: bool) -> LocalState {
        LocalState {
            lost: Mutex::default(),
            is_ending: AtomicBool::new(is_ending),
            stats: Arc::default(),
        }
    }

    /// Batches for a store that fails so often first: the numbers of what is stored, what is lost, and the minutes of that.
    fn stored(failures: u32, is_ending: bool) -> (Vec<u64>, u64, Option<(u32, u32)>) {
        let (give, batches) = sync_channel(3);
        for number in 1..=3 {
            let complete = 100 + number as u32;
            let batch = Batch {
                number,
                complete,
                ..Batch::default()
            };
            give.send(batch).expect("room");
        }
        drop(give);
        let shared = state(is_ending);
        let (left, taken) = (Cell::new(failures), Mutex::new(Vec::new()));
        let put = |batch: &Batch| match left.get() {
            0 => {
                taken.lock().expect("no panic").push(batch.number);
                Ok(())
            }
            some => {
                left.set(some - 1);
                // The pause that follows is over at once.
                std::thread::current().unpark();
                Err(StoreError::Engine("the disk is full".to_owned()))
            }
        };
        store(put, &batches, &shared);
        let lost = shared.lost.lock().expect("no panic").take();
        let taken = taken.into_inner().expect("no panic");
        (taken, shared.stats.lost.load(Relaxed), lost)
    }

    #[test]
    fn counts_wait_while_the_store_fails_and_what_is_lost_is_a_gap() {
        assert_eq!(stored(0, false), (vec![1, 2, 3], 0, None));
        assert_eq!(stored(MAX_ATTEMPTS - 1, false), (vec![1, 2, 3], 0, None));
        assert_eq!(stored(MAX_ATTEMPTS, false), (vec![2, 3], 1, Some((101, 101))));
        // At the end of the process, each is tried once.
        assert_eq!(stored(2, true), (vec![3], 2, Some((101, 102))));
    }
}
