//! The notices behind the bell of a portal: the latest of each application, in one document, and up to when a
//! developer has read.

use super::store::{failed, key};
use crate::api::Problem;
use crate::operational::{OperationalError, OperationalStore, OperationalWrite};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};
use weir_model::unix_time::seconds;
use weir_store::Key;

/// Notices of an application, the latest.
const MAX_NOTICES: usize = 50;
/// For how long they are kept.
const KEPT: Duration = Duration::from_secs(180 * 86_400);

/// A notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// When, in seconds since 1970.
    pub at: u64,
    /// The kind of the event, such as `subscription.accepted`.
    pub kind: String,
    /// In a few words.
    pub title: String,
    /// In sentences.
    pub text: String,
}

/// The notices of an application, the latest last.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Inbox {
    notices: Vec<Notice>,
}

/// Up to when a developer has read.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ReadMarker {
    until: u64,
}

fn inbox_key(application: &str) -> Result<Key, OperationalError> {
    Key::new(&format!("notices/{application}")).map_err(OperationalError::Name)
}

impl Inbox {
    /// The notices of an application, the latest last.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn of(
        store: &OperationalStore,
        application: &str,
        now: SystemTime,
    ) -> Result<Vec<Notice>, OperationalError> {
        let found = store.read::<Self>(&inbox_key(application)?, now).await?;
        Ok(found.map_or_else(Vec::new, |it| it.value.notices))
    }

    /// Removes the notices of applications.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn forget(
        store: &OperationalStore,
        applications: &[String],
        now: SystemTime,
    ) -> Result<(), OperationalError> {
        let keys = applications.iter().map(|it| inbox_key(it));
        let keys: Vec<Key> = keys.collect::<Result<_, _>>()?;
        store.remove(keys, now).await
    }

    /// Writes further notices. One process at a time writes them.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn with(
        store: &OperationalStore,
        application: &str,
        more: Vec<Notice>,
        now: SystemTime,
    ) -> Result<OperationalWrite, OperationalError> {
        let mut notices = Self::of(store, application, now).await?;
        notices.extend(more);
        let gone = notices.len().saturating_sub(MAX_NOTICES);
        notices.drain(..gone);
        OperationalWrite::put(inbox_key(application)?, &Self { notices }, Some(now + KEPT))
    }
}

fn read_key(portal: &str, developer: &str) -> Result<Key, Problem> {
    key(portal, &format!("read/{developer}"))
}

/// Up to when a developer has read, in seconds since 1970.
///
/// # Errors
/// The store cannot be read.
pub async fn read_until(
    store: &OperationalStore,
    (portal, developer): (&str, &str),
    now: SystemTime,
) -> Result<u64, Problem> {
    let found = store.read::<ReadMarker>(&read_key(portal, developer)?, now).await;
    Ok(found.map_err(failed)?.map_or(0, |it| it.value.until))
}

/// A developer has read everything up to now.
///
/// # Errors
/// The store cannot be written.
pub async fn has_read(
    store: &OperationalStore,
    (portal, developer): (&str, &str),
    now: SystemTime,
) -> Result<(), Problem> {
    let read = ReadMarker { until: seconds(now) };
    let key = read_key(portal, developer)?;
    let written = store.put(&key, &read, (Some(now + KEPT), now)).await;
    written.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(at: u64) -> Notice {
        Notice {
            at,
            kind: "subscription.accepted".to_owned(),
            title: "Accepted".to_owned(),
            text: String::new(),
        }
    }

    #[tokio::test]
    async fn the_latest_notices_stay() {
        let store = OperationalStore::in_memory();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        for at in 0..MAX_NOTICES as u64 + 3 {
            let write = Inbox::with(&store, "till", vec![notice(at)], now)
                .await
                .expect("a write");
            store.write(vec![write], now).await.expect("written");
        }
        let found = Inbox::of(&store, "till", now).await.expect("read");
        assert_eq!((found.len(), found[0].at), (MAX_NOTICES, 3));
        assert_eq!(Inbox::of(&store, "till", now + KEPT).await.expect("read"), []);
        assert_eq!(Inbox::of(&store, "tills", now).await.expect("read"), []);
        Inbox::forget(&store, &["till".to_owned(), "tills".to_owned()], now)
            .await
            .expect("removed");
        assert_eq!(Inbox::of(&store, "till", now).await.expect("read"), []);
    }

    #[tokio::test]
    async fn what_was_read_is_known_by_developer() {
        let store = OperationalStore::in_memory();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(77);
        has_read(&store, ("main", "ann"), now).await.expect("written");
        for (portal, developer, expected) in [("main", "ann", 77), ("main", "bob", 0), ("other", "ann", 0)] {
            let found = read_until(&store, (portal, developer), now).await.expect("read");
            assert_eq!(found, expected, "{portal} {developer}");
        }
    }
}
