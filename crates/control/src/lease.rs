//! Leases: of several control planes over one store, one at a time does a job.

use crate::operational::{OperationalEntry, OperationalError, OperationalStore};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};
use weir_store::Key;

/// Below here are leases.
const PREFIX: &str = "leases/";

#[derive(Serialize, Deserialize)]
struct LeaseRecord {
    by: String,
}

/// Takes a lease, or takes it again. `false`: another one has it. A lease that is not taken again ends after its time;
/// it is renewed once half of that is over, so holding it costs few writes.
///
/// # Errors
/// The store cannot be read or written.
pub async fn hold(
    store: &OperationalStore,
    name: &str,
    (holder, life): (&str, Duration),
    now: SystemTime,
) -> Result<bool, OperationalError> {
    let key = Key::new(&format!("{PREFIX}{name}")).map_err(OperationalError::Name)?;
    let held = store
        .update(&key, now, |known: Option<&OperationalEntry<LeaseRecord>>| {
            let is_fresh =
                |it: &OperationalEntry<LeaseRecord>| it.ends.is_some_and(|end| end > now + life / 2);
            match known {
                Some(known) if known.value.by != holder || is_fresh(known) => None,
                _ => Some((
                    LeaseRecord {
                        by: holder.to_owned(),
                    },
                    Some(now + life),
                )),
            }
        })
        .await?;
    Ok(held.is_some_and(|it| it.by == holder))
}

/// Gives back all leases of a holder, so that another one need not wait for their end.
///
/// # Errors
/// The store cannot be read or written.
pub async fn release(
    store: &OperationalStore,
    holder: &str,
    now: SystemTime,
) -> Result<(), OperationalError> {
    let mut held: Vec<OperationalEntry<LeaseRecord>> = store.list(PREFIX, now).await?;
    held.retain(|it| it.value.by == holder);
    store.remove(held.into_iter().map(|it| it.key), now).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    #[tokio::test]
    async fn one_at_a_time_holds_it_and_another_one_follows() {
        let store = OperationalStore::in_memory();
        let life = Duration::from_secs(60);
        for (at, holder, expected) in [
            (1_000, "one", true),
            (1_001, "two", false),
            (1_059, "one", true),
            (1_061, "two", false),
            (1_118, "two", false),
            (1_120, "two", true),
            (1_121, "one", false),
        ] {
            let now = UNIX_EPOCH + Duration::from_secs(at);
            let held = hold(&store, "job", (holder, life), now).await.expect("a store");
            assert_eq!(held, expected, "{holder} at {at}");
        }
    }

    #[tokio::test]
    async fn what_is_given_back_is_free_at_once() {
        let store = OperationalStore::in_memory();
        let (life, now) = (Duration::from_secs(60), UNIX_EPOCH + Duration::from_secs(1_000));
        let held = async |name, holder| hold(&store, name, (holder, life), now).await.expect("a store");
        for name in ["job", "another"] {
            assert!(held(name, "one").await);
        }
        assert!(held("third", "two").await);
        release(&store, "one", now).await.expect("a store");
        assert!(held("job", "two").await && held("another", "three").await);
        assert!(!held("third", "one").await, "that of another one stays");
    }
}
