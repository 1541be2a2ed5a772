//! The day on which credentials were last used. Only credentials of subscribers are recorded: people ask for these.
//!
//! A call compares a number. Once a day per credential, the use is added to a list of the process, which is sent to the
//! control plane. **What it is not**: it does not know the control plane, and stores nothing permanently; the list is
//! bounded.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The label by which a consumer is known for a subscriber: the name of its application.
pub const SUBSCRIBER_LABEL: &str = "application";
/// The most uses that wait to be reported.
pub const MAX_WAITING: usize = 100_000;
/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

/// Used credentials by their ids: the day, counted from 1970.
pub type LastUseDays = BTreeMap<Arc<str>, u32>;

/// The uses that wait to be reported.
static WAITING: Mutex<LastUseDays> = Mutex::new(BTreeMap::new());
/// The days of credentials that are served, by their ids: a new configuration knows what has been reported.
static SERVED: Mutex<Option<HashMap<Arc<str>, Weak<AtomicU32>>>> = Mutex::new(None);

/// The credentials of a consumer whose uses are noted, each with the day of its last use.
#[derive(Debug, Clone, Default)]
pub struct CredentialUses(Arc<[(Arc<str>, Arc<AtomicU32>)]>);

fn locked<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change leaves them whole.
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A use is no part of what a consumer is.
impl PartialEq for CredentialUses {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for CredentialUses {}

impl CredentialUses {
    /// Those of these ids.
    pub fn of(ids: impl Iterator<Item = Arc<str>>) -> Self {
        let mut ids = ids.peekable();
        if ids.peek().is_none() {
            return Self::default();
        }
        let mut served = locked(&SERVED);
        let served = served.get_or_insert_default();
        // Those that are served no longer go when the room for new ones is used up.
        if served.len() == served.capacity() {
            served.retain(|_, day| day.strong_count() > 0);
        }
        let one = |id: Arc<str>| {
            let known = served.get(&id).and_then(Weak::upgrade);
            let day = known.unwrap_or_default();
            served.insert(Arc::clone(&id), Arc::downgrade(&day));
            (id, day)
        };
        Self(ids.map(one).collect())
    }

    /// Whether none is noted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes that the credential with this very id is used at a time.
    #[inline]
    pub fn note(&self, id: &Arc<str>, unix_ms: u64) {
        let today = (unix_ms / DAY_MS) as u32;
        let known = self.0.iter().find(|(known, _)| Arc::ptr_eq(known, id));
        // Workers read the same number; it is written once a day.
        let is_new = |day: &AtomicU32| {
            day.load(Ordering::Relaxed) != today && day.swap(today, Ordering::Relaxed) != today
        };
        if let Some((id, _)) = known.filter(|(_, day)| is_new(day)) {
            give_back(BTreeMap::from([(Arc::clone(id), today)]));
        }
    }
}

/// Takes what was used since the last time.
pub fn take_used() -> LastUseDays {
    std::mem::take(&mut *locked(&WAITING))
}

/// Puts uses back on the list after a report has failed.
pub fn give_back(used: LastUseDays) {
    let mut waiting = locked(&WAITING);
    for (id, day) in used {
        if waiting.len() < MAX_WAITING || waiting.contains_key(&id) {
            let known = waiting.entry(id).or_insert(day);
            *known = day.max(*known);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_reported_once_a_day() {
        let ids: Vec<Arc<str>> = ["last-use-a", "last-use-b"].map(Arc::from).into();
        let uses = CredentialUses::of(ids.iter().cloned());
        let taken = || {
            let all = take_used();
            let own = all.into_iter().filter(|(id, _)| id.starts_with("last-use-"));
            own.map(|(id, day)| (id.to_string(), day)).collect::<Vec<_>>()
        };
        for (id, day, expected) in [
            (&ids[0], 20_000, vec![("last-use-a".to_owned(), 20_000)]),
            (&ids[0], 20_000, vec![]),
            (&ids[1], 20_000, vec![("last-use-b".to_owned(), 20_000)]),
            (&ids[0], 20_001, vec![("last-use-a".to_owned(), 20_001)]),
            // Another text of the same letters is another credential.
            (&Arc::from("last-use-a"), 20_002, vec![]),
        ] {
            uses.note(id, day * DAY_MS + 5);
            assert_eq!(taken(), expected, "{id} {day}");
        }
        // A new configuration knows what was reported, as long as there is one before it.
        let again = CredentialUses::of(["last-use-a"].map(Arc::from).into_iter());
        again.note(&again.0[0].0, 20_001 * DAY_MS);
        assert_eq!(taken(), []);
        // A use that could not be reported is reported the next time, with the latest day.
        give_back(BTreeMap::from([(Arc::clone(&ids[0]), 7)]));
        give_back(BTreeMap::from([(Arc::clone(&ids[0]), 6)]));
        assert_eq!(taken(), [("last-use-a".to_owned(), 7)]);
    }
}
