//! Documents that go by themselves. The store removes them, but a gateway that is cut off from it does not learn of that, and a
//! copy on disk knows nothing of time: so their ends are looked at here too.

use super::source::SourceEvent;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use weir_dialect::DialectSet;
use weir_store::Key;

/// How long the store may take to say so itself. A gateway that went ahead of it would have other documents than the others of the
/// same revision.
const GRACE: Duration = Duration::from_secs(10);
/// How long to wait at most before the clock, which may be set, is looked at again.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The ends of the documents that were heard of and have one.
#[derive(Debug)]
pub struct ExpiryQueue {
    dialects: DialectSet,
    of: HashMap<Key, SystemTime>,
    in_order: BTreeSet<(SystemTime, Key)>,
}

impl ExpiryQueue {
    /// Nothing has come yet.
    pub fn new(dialects: DialectSet) -> Self {
        Self {
            dialects,
            of: HashMap::new(),
            in_order: BTreeSet::new(),
        }
    }

    /// Notes the ends of what was heard, and takes out of it what should be gone by now.
    pub fn observe(&mut self, heard: &mut SourceEvent, now: SystemTime) {
        match heard {
            SourceEvent::Whole { documents, .. } => self.observe_all(documents, now),
            SourceEvent::Changed { documents, .. } => {
                for (key, value) in documents {
                    if value.as_ref().is_some_and(|it| !self.note(key, it, now)) {
                        *value = None;
                    }
                    if value.is_none() {
                        self.forget(key);
                    }
                }
            }
            SourceEvent::Unreachable(_) => {}
        }
    }

    /// As [`Self::observe`], of documents in place of all others.
    pub fn observe_all(&mut self, documents: &mut Vec<(Key, Arc<[u8]>)>, now: SystemTime) {
        self.of.clear();
        self.in_order.clear();
        documents.retain(|(key, value)| self.note(key, value, now));
    }

    /// Notes the end of a document, if it has one. Whether it is still to be there.
    fn note(&mut self, key: &Key, value: &[u8], now: SystemTime) -> bool {
        self.forget(key);
        let end = self.dialects.end_of(key.as_str(), value);
        let end = end.and_then(|end| end.checked_add(GRACE));
        let Some(end) = end else {
            return true;
        };
        if end > now {
            self.of.insert(key.clone(), end);
            self.in_order.insert((end, key.clone()));
        }
        end > now
    }

    fn forget(&mut self, key: &Key) {
        if let Some(end) = self.of.remove(key) {
            self.in_order.remove(&(end, key.clone()));
        }
    }

    /// Takes out the documents whose end has come.
    pub fn over(&mut self, now: SystemTime) -> Vec<Key> {
        let mut over = Vec::new();
        while self.in_order.first().is_some_and(|(end, _)| *end <= now)
            && let Some((_, key)) = self.in_order.pop_first()
        {
            self.of.remove(&key);
            over.push(key);
        }
        over
    }

    /// Waits until the next end may have come; without one, for ever.
    pub async fn next(&self) {
        match self.in_order.first() {
            Some((end, _)) => {
                let left = end.duration_since(SystemTime::now()).unwrap_or_default();
                tokio::time::sleep(left.min(LONGEST_WAIT)).await;
            }
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;
    use weir_store::Revision;

    fn route(id: u64, end: Option<u64>) -> (Key, Arc<[u8]>) {
        let key = Key::new(&format!("sample/routes/{id}")).expect("a key");
        let value = end.map_or("{}".to_owned(), |end| format!("{{\"until\":{end}}}"));
        (key, value.into_bytes().into())
    }

    fn names(keys: &[Key]) -> Vec<&str> {
        keys.iter()
            .map(|key| &key.as_str()["sample/routes/".len()..])
            .collect()
    }

    #[test]
    fn expiry_needs_no_further_event() {
        let at = |seconds| UNIX_EPOCH + GRACE + Duration::from_secs(seconds);
        let mut ends = ExpiryQueue::new(crate::sample::all());
        let mut whole = vec![
            route(1, None),
            route(2, Some(10)),
            route(3, Some(20)),
            route(4, Some(5)),
        ];
        ends.observe_all(&mut whole, at(5));
        assert_eq!(whole.len(), 3, "one is over");
        assert!(ends.over(at(9)).is_empty());
        assert_eq!(names(&ends.over(at(10))), ["2"]);
        assert!(ends.over(at(10)).is_empty());
        let change = |(key, value)| (key, Some(value));
        let mut heard = SourceEvent::Changed {
            revision: Revision(2),
            documents: vec![
                change(route(2, Some(15))),
                change(route(3, None)),
                change(route(5, Some(9))),
                change(route(6, Some(16))),
                (route(6, None).0, None),
            ],
        };
        ends.observe(&mut heard, at(11));
        let SourceEvent::Changed { documents, .. } = heard else {
            panic!("{heard:?}");
        };
        let are_there: Vec<bool> = documents.iter().map(|(_, value)| value.is_some()).collect();
        assert_eq!(are_there, [true, true, false, true, false]);
        assert_eq!(names(&ends.over(at(100))), ["2"]);
    }
}
