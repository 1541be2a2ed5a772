//! Places in the outbox. Everybody who signs up can name a receiver that hangs: webhooks of developers have few places of
//! their own, and few of them wait for one application. Mails, alerts and webhooks of operators do not wait for them.

use super::message::{Attempt, Delivery, DeliveryState, Message, NOT_SENT};
use super::{DONE, KEPT, Outbox, WAITING, key};
use crate::operational::{OperationalEntry, OperationalError, OperationalWrite};
use std::collections::BTreeMap;
use std::time::SystemTime;
use weir_model::unix_time::seconds;

/// Messages that wait for one application, at most.
pub const MOST_OF_APPLICATION: usize = 50;
/// Messages of applications that are tried in a round: it ends while the lease is held, and new ones get their turn.
const A_ROUND: usize = 4;

/// Messages that are delivered side by side with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Queue {
    /// Mails, and webhooks of operators.
    Own,
    /// Webhooks of applications.
    OfApplications,
}

impl Queue {
    /// Whether a message goes here.
    pub fn has(self, message: &Message) -> bool {
        message.of_application().is_some() == (self == Self::OfApplications)
    }

    /// Messages that are tried at once.
    pub fn at_once(self) -> usize {
        match self {
            Self::Own => 6,
            Self::OfApplications => 2,
        }
    }

    /// The lease of who delivers.
    pub fn lease(self) -> &'static str {
        match self {
            Self::Own => "outbox",
            Self::OfApplications => "outbox-applications",
        }
    }

    /// The due messages that are tried in this round, and those that are left for the next one. Of applications, each
    /// gets its first message before one gets its second.
    pub fn round(
        self,
        mut due: Vec<OperationalEntry<Delivery>>,
    ) -> (Vec<OperationalEntry<Delivery>>, Vec<OperationalEntry<Delivery>>) {
        if self == Self::Own {
            return (due, Vec::new());
        }
        due.sort_by_key(|it| it.value.due);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let ranked = due.into_iter().map(|it| {
            let application = it.value.message.of_application().map(|it| it.0.clone());
            let count = counts.entry(application.unwrap_or_default()).or_default();
            *count += 1;
            (*count, it)
        });
        let mut ranked: Vec<_> = ranked.collect();
        ranked.sort_by_key(|it| it.0);
        let mut now: Vec<_> = ranked.into_iter().map(|it| it.1).collect();
        let later = now.split_off(now.len().min(A_ROUND));
        (now, later)
    }
}

/// How many messages wait, by application.
#[derive(Debug, Default)]
pub struct PendingByApplication(BTreeMap<String, usize>);

impl PendingByApplication {
    pub(super) fn of(waiting: &[OperationalEntry<Delivery>]) -> Self {
        let mut counted = Self::default();
        for it in waiting {
            let _counted = counted.take(&it.value.message);
        }
        counted
    }

    /// Counts one more. `false`: too many wait already.
    pub(super) fn take(&mut self, message: &Message) -> bool {
        let Some((application, _)) = message.of_application() else {
            return true;
        };
        let count = self.0.entry(application.clone()).or_default();
        *count += 1;
        *count <= MOST_OF_APPLICATION
    }
}

/// How a webhook of an application is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HookState {
    InUse,
    Disabled,
    Gone,
}

/// The writes by which messages of webhooks that are disabled or gone are not sent.
pub(super) fn stopped(
    waiting: &[OperationalEntry<Delivery>],
    state_of: impl Fn(&str, &str) -> HookState,
    now: SystemTime,
) -> Result<Vec<OperationalWrite>, OperationalError> {
    let mut writes = Vec::new();
    for it in waiting {
        let Some((application, name)) = it.value.message.of_application() else {
            continue;
        };
        let state = state_of(application, name);
        if state == HookState::InUse {
            continue;
        }
        writes.push(OperationalWrite::Remove(it.key.clone()));
        if state == HookState::Disabled {
            let mut failed = it.value.clone();
            failed.state = DeliveryState::Failed;
            failed.attempts.push(Attempt {
                at: seconds(now),
                is_delivered: false,
                outcome: NOT_SENT.to_owned(),
            });
            writes.push(OperationalWrite::put(
                key(DONE, &failed.id)?,
                &failed,
                Some(now + KEPT),
            )?);
        }
    }
    Ok(writes)
}

impl Outbox {
    /// How many messages wait.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn waiting(&self, now: SystemTime) -> Result<PendingByApplication, OperationalError> {
        let waiting: Vec<OperationalEntry<Delivery>> = self.0.store.list(WAITING, now).await?;
        Ok(PendingByApplication::of(&waiting))
    }

    /// Whether as many messages wait for an application as may.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn is_full(&self, application: &str, now: SystemTime) -> Result<bool, OperationalError> {
        let count = self.waiting(now).await?.0.get(application).copied();
        Ok(count.unwrap_or_default() >= MOST_OF_APPLICATION)
    }
}
