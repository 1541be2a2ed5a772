//! The outbox: mails and webhooks that wait to be delivered, are tried again, and are listed with their attempts.
//!
//! A message is a document of the operational store until it has arrived. What the configuration's store records becomes
//! messages by its history ([`feed`]): each commit is read once, so a message is neither lost nor made twice when a
//! process is killed. Code that writes to the operational store adds a message to the same transaction
//! ([`Outbox::entry`]).
//!
//! One control plane at a time delivers. A message may still arrive twice, if the process is killed after the receiver
//! has taken it and before that is written: receivers know it by its id.

mod backoff;
mod concurrency;
mod earlier_messages;
pub mod feed;
mod mail;
mod message;
mod origin;
mod receivers;
mod send;
mod signature;
pub mod webhooks;

pub use crate::webhook_addresses::WebhookAddressPolicy;
pub use backoff::{GIVE_UP, pause};
pub use concurrency::{MOST_OF_APPLICATION, PendingByApplication};
pub use mail::{Smtp, SmtpError};
pub use message::{Attachment, Attempt, Delivery, DeliveryState, Mail, Message, TEST, Webhook};
pub use origin::Origin;
pub use receivers::{Inboxes, Receivers};
pub use send::{Failure, Network, Transport};
pub use signature::{SECRET_PREFIX, sign};

use crate::lease;
use crate::operational::{OperationalEntry, OperationalError, OperationalStore, OperationalWrite};
use aws_lc_rs::rand;
use concurrency::Queue;
use data_encoding::HEXLOWER;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::{Mutex, MutexGuard, Notify};
use tokio::task::JoinSet;
use weir_model::unix_time::{self, seconds};
use weir_store::Key;

/// Below here are messages that wait.
const WAITING: &str = "outbox/waiting/";
/// Below here are messages that were delivered or given up.
const DONE: &str = "outbox/done/";
/// For how long it is known what became of a message.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Attempts that a message shows, the latest.
const MAX_ATTEMPTS: usize = 50;
/// How long the loop sleeps at most.
const INTERVAL: Duration = Duration::from_secs(5);
/// For how long a control plane delivers before it says so again.
const LEASE: Duration = Duration::from_secs(20);
/// The lease of who writes messages about events, with what portals show of them.
const WRITING: &str = "outbox-feed";

/// Messages on their way. Cheap to share.
#[derive(Clone)]
pub struct Outbox(Arc<Inner>);

struct Inner {
    store: OperationalStore,
    transport: Box<dyn Transport>,
    holder: String,
    wake: Notify,
    /// The same for webhooks of applications.
    wake_applications: Notify,
    /// Held by the task that writes messages about events: one at a time.
    writing: Mutex<()>,
}

fn key(prefix: &str, id: &str) -> Result<Key, OperationalError> {
    Key::new(&format!("{prefix}{id}")).map_err(OperationalError::Name)
}

/// An id that does not repeat.
fn random_id() -> String {
    let mut bits = [0; 16];
    // Without random bits of the system nothing else would work either.
    rand::fill(&mut bits).expect("invariant: the system yields random bits");
    HEXLOWER.encode(&bits)
}

impl Outbox {
    /// In a store, with something that sends.
    pub fn new(store: OperationalStore, transport: impl Transport + 'static) -> Self {
        Self(Arc::new(Inner {
            store,
            transport: Box::new(transport),
            holder: random_id(),
            wake: Notify::new(),
            wake_applications: Notify::new(),
            writing: Mutex::default(),
        }))
    }

    /// Without a mail server, and with webhooks to the outside only.
    pub fn without_mail(store: OperationalStore) -> Self {
        Self::new(store, Network::new(None, WebhookAddressPolicy::default()))
    }

    /// Whether mails can be sent.
    pub fn can_mail(&self) -> bool {
        self.0.transport.can_mail()
    }

    /// The name of this process among those that deliver.
    pub fn holder(&self) -> &str {
        &self.0.holder
    }

    /// The store that messages wait in.
    pub fn store(&self) -> &OperationalStore {
        &self.0.store
    }

    /// The writes for a message, for a transaction that has a reason to send it. Call [`Outbox::notify`] after the
    /// commit. With an id of the reason, the same message is written once only.
    ///
    /// # Errors
    /// The id is no name.
    pub fn entry(
        &self,
        id: Option<&str>,
        (origin, kind, message): (Origin, &str, Message),
        now: SystemTime,
    ) -> Result<OperationalWrite, OperationalError> {
        let id = id.map_or_else(random_id, str::to_owned);
        let delivery = Delivery {
            id: id.clone(),
            kind: kind.to_owned(),
            origin,
            message,
            state: DeliveryState::Waiting,
            created: seconds(now),
            due: seconds(now),
            attempts: Vec::new(),
        };
        OperationalWrite::put(key(WAITING, &id)?, &delivery, None)
    }

    /// Gives back what this process does alone, at its end: another one, or the next one, goes on at once.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn release(&self, now: SystemTime) -> Result<(), OperationalError> {
        lease::release(&self.0.store, &self.0.holder, now).await
    }

    /// Lets one task of one control plane write messages about events: what portals show is read, and written with more.
    /// `None`: another control plane does.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn write_alone(&self, now: SystemTime) -> Result<Option<MutexGuard<'_, ()>>, OperationalError> {
        let alone = self.0.writing.lock().await;
        Ok(self.is_still_alone(now).await?.then_some(alone))
    }

    /// Whether no other control plane has come in between: for who writes alone, and takes long.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn is_still_alone(&self, now: SystemTime) -> Result<bool, OperationalError> {
        let holder = self.0.holder.as_str();
        lease::hold(&self.0.store, WRITING, (holder, LEASE), now).await
    }

    /// Sends a message as soon as possible. It is stored when this returns.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn send(
        &self,
        about: (Origin, &str, Message),
        now: SystemTime,
    ) -> Result<(), OperationalError> {
        let write = self.entry(None, about, now)?;
        self.0.store.write(vec![write], now).await?;
        self.notify();
        Ok(())
    }

    /// There are new messages.
    pub fn notify(&self) {
        self.0.wake.notify_one();
        self.0.wake_applications.notify_one();
    }

    /// All messages, waiting or done.
    async fn entries(&self, now: SystemTime) -> Result<Vec<OperationalEntry<Delivery>>, OperationalError> {
        let mut entries = self.0.store.list(WAITING, now).await?;
        entries.extend(self.0.store.list(DONE, now).await?);
        Ok(entries)
    }

    /// All messages, the newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self, now: SystemTime) -> Result<Vec<Delivery>, OperationalError> {
        let entries = self.entries(now).await?;
        let mut all: Vec<Delivery> = entries.into_iter().map(|it| it.value).collect();
        all.sort_by(|one, other| (other.created, &other.id).cmp(&(one.created, &one.id)));
        Ok(all)
    }

    /// Forgets messages, waiting or done. Returns how many.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn forget(
        &self,
        is_meant: impl Fn(&Delivery) -> bool,
        now: SystemTime,
    ) -> Result<usize, OperationalError> {
        let entries = self.entries(now).await?;
        let meant = entries.into_iter().filter(|it| is_meant(&it.value));
        let keys: Vec<Key> = meant.map(|it| it.key).collect();
        let count = keys.len();
        self.0.store.remove(keys, now).await?;
        Ok(count)
    }

    /// Tries a message that waits, or was given up, as soon as possible. `false`: it does not exist.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn retry(&self, id: &str, now: SystemTime) -> Result<bool, OperationalError> {
        for prefix in [WAITING, DONE] {
            let from = key(prefix, id)?;
            let Some(entry) = self.0.store.read::<Delivery>(&from, now).await? else {
                continue;
            };
            if entry.value.state == DeliveryState::Delivered {
                return Ok(false);
            }
            let again = Delivery {
                state: DeliveryState::Waiting,
                created: seconds(now),
                due: seconds(now),
                ..entry.value
            };
            let mut writes = vec![OperationalWrite::put(key(WAITING, id)?, &again, None)?];
            if prefix == DONE {
                writes.push(OperationalWrite::Remove(from));
            }
            self.0.store.write(writes, now).await?;
            self.notify();
            return Ok(true);
        }
        Ok(false)
    }

    /// Delivers until the process ends.
    pub async fn run(self) {
        tokio::join!(
            self.run_queue(Queue::Own),
            self.run_queue(Queue::OfApplications),
            self.complete()
        );
    }

    async fn run_queue(&self, queue: Queue) {
        let wake = match queue {
            Queue::Own => &self.0.wake,
            Queue::OfApplications => &self.0.wake_applications,
        };
        loop {
            let pause = match self.round(queue, SystemTime::now()).await {
                Ok(next) => next.map_or(INTERVAL, |next| {
                    unix_time::from_seconds(next)
                        .duration_since(SystemTime::now())
                        .unwrap_or_default()
                        .min(INTERVAL)
                }),
                Err(error) => {
                    tracing::warn!(%error, "messages cannot be delivered; retrying");
                    INTERVAL
                }
            };
            // A receiver that answers at once does not turn this into a loop without a pause.
            tokio::time::sleep(Duration::from_millis(50)).await;
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = wake.notified() => {}
            }
        }
    }

    /// Delivers what is due, if no other control plane does. Returns the time at which something is due next.
    async fn round(&self, queue: Queue, now: SystemTime) -> Result<Option<u64>, OperationalError> {
        let holder = self.0.holder.as_str();
        match lease::hold(&self.0.store, queue.lease(), (holder, LEASE), now).await? {
            true => self.deliver_of(queue, now).await,
            false => Ok(None),
        }
    }

    /// Tries the messages that are due, of applications some of them. Returns the time at which something is due next.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub async fn deliver(&self, now: SystemTime) -> Result<Option<u64>, OperationalError> {
        let own = self.deliver_of(Queue::Own, now).await?;
        let of_applications = self.deliver_of(Queue::OfApplications, now).await?;
        Ok(own.into_iter().chain(of_applications).min())
    }

    async fn deliver_of(&self, queue: Queue, now: SystemTime) -> Result<Option<u64>, OperationalError> {
        let mut waiting: Vec<OperationalEntry<Delivery>> = self.0.store.list(WAITING, now).await?;
        waiting.retain(|it| queue.has(&it.value.message));
        let (due, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|it| it.value.due <= seconds(now));
        let (due, left) = queue.round(due);
        let mut next: Vec<u64> = later.iter().chain(&left).map(|it| it.value.due).collect();
        let mut running = JoinSet::new();
        for entry in due {
            if running.len() >= queue.at_once()
                && let Some(done) = running.join_next().await
            {
                next.extend(joined(done)?);
            }
            let this = self.clone();
            running.spawn(async move { this.try_one(entry.value, now).await });
        }
        while let Some(done) = running.join_next().await {
            next.extend(joined(done)?);
        }
        Ok(next.into_iter().min())
    }

    /// Tries a message. Returns the time of its next attempt, if there is one. A message that was forgotten meanwhile
    /// stays so.
    async fn try_one(
        &self,
        mut delivery: Delivery,
        now: SystemTime,
    ) -> Result<Option<u64>, OperationalError> {
        let outcome = self.0.transport.send(&delivery.id, &delivery.message, now).await;
        let age = seconds(now).saturating_sub(delivery.created);
        let (is_final, text) = match &outcome {
            Ok(()) => (true, "delivered".to_owned()),
            Err(failure) => (
                failure.is_final || age >= GIVE_UP.as_secs() || delivery.kind == TEST,
                failure.reason.clone(),
            ),
        };
        delivery.attempts.push(Attempt {
            at: seconds(now),
            is_delivered: outcome.is_ok(),
            outcome: text,
        });
        let surplus = delivery.attempts.len().saturating_sub(MAX_ATTEMPTS);
        delivery.attempts.drain(..surplus);
        let from = key(WAITING, &delivery.id)?;
        if !is_final {
            delivery.due = seconds(now) + pause(delivery.attempts.len()).as_secs();
            let later = vec![OperationalWrite::put(from.clone(), &delivery, None)?];
            let is_there = self.0.store.write_if_there(&from, later, now).await?;
            return Ok(is_there.then_some(delivery.due));
        }
        delivery.state = match outcome {
            Ok(()) => DeliveryState::Delivered,
            Err(failure) => {
                tracing::warn!(
                    id = delivery.id,
                    to = delivery.message.receiver(),
                    reason = failure.reason,
                    "delivery of a message is given up after its last attempt"
                );
                DeliveryState::Failed
            }
        };
        if delivery.state == DeliveryState::Delivered {
            delivery.message.forget_contents();
        }
        let done = OperationalWrite::put(key(DONE, &delivery.id)?, &delivery, Some(now + KEPT))?;
        let writes = vec![OperationalWrite::Remove(from.clone()), done];
        self.0.store.write_if_there(&from, writes, now).await?;
        Ok(None)
    }
}

fn joined(
    done: Result<Result<Option<u64>, OperationalError>, tokio::task::JoinError>,
) -> Result<Option<u64>, OperationalError> {
    done.unwrap_or_else(|error| {
        tracing::error!(%error, "an attempt to deliver a message has panicked");
        Ok(None)
    })
}

#[cfg(test)]
mod tests;
