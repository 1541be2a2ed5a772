//! Annotations for charts: the latest commits of the configuration, and which publications they changed.
//!
//! They are read from the store's history once; later calls read what has come since. Only so many are known, so old
//! ranges may have none.

use std::collections::BTreeMap;
use tokio::sync::Mutex;
use weir_analytics::query::{AnnotationKind, ChartAnnotation};
use weir_dialect::{DialectSet, ENVIRONMENTS};
use weir_model::unix_time;
use weir_store::{HistoryEntry, Revision, Store, StoreError};

/// Marks that are known, at most.
const MAX_KNOWN: usize = 2_000;
/// Marks of an answer, at most: the latest.
const MAX_ANNOTATIONS: usize = 200;
/// Changes that are read at once, and at most.
const BATCH: usize = 100;
const MAX_CHANGES: usize = 10_000;
/// The prefix of the keys of publications.
const PUBLICATIONS: &str = "apis/publications/";
/// Publications that a mark names.
const MAX_PUBLICATIONS: usize = 20;

/// The marks that are known.
#[derive(Default)]
pub struct ChartAnnotations(Mutex<CachedMarks>);

#[derive(Default)]
struct CachedMarks {
    /// Every commit up to this one is known, as far as it is among the latest.
    through: u64,
    /// By revision.
    marks: BTreeMap<u64, ChartAnnotation>,
}

impl ChartAnnotations {
    /// The marks between two times, in seconds, the oldest first. Both belong to it: a range up to now may end in the
    /// second of a commit. Publications of other environments are left out if environments are named.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn between(
        &self,
        (store, dialects): (&dyn Store, &DialectSet),
        (from, to): (u64, u64),
        environments: &[String],
    ) -> Result<Vec<ChartAnnotation>, StoreError> {
        let mut known = self.0.lock().await;
        known.update(store, dialects).await?;
        let is_near = |mark: &ChartAnnotation| {
            let of = |id: &String| {
                let environment = id.rsplit('/').next().unwrap_or_default();
                environments.iter().any(|it| it == environment)
            };
            environments.is_empty() || mark.publications.is_empty() || mark.publications.iter().any(of)
        };
        let wanted = known.marks.values().rev();
        let wanted = wanted.filter(|mark| (from..=to).contains(&mark.at) && is_near(mark));
        let mut marks: Vec<ChartAnnotation> = wanted.take(MAX_ANNOTATIONS).cloned().collect();
        marks.reverse();
        Ok(marks)
    }
}

impl CachedMarks {
    /// Reads the commits that came since the last time.
    async fn update(&mut self, store: &dyn Store, dialects: &DialectSet) -> Result<(), StoreError> {
        // Publications come last: a commit that is made meanwhile is seen with them, if it changes one.
        let prefixes: Vec<&str> = dialects.prefixes().chain([ENVIRONMENTS, PUBLICATIONS]).collect();
        let through = self.through;
        for prefix in prefixes {
            let (mut before, mut read) = (None, 0);
            loop {
                let batch = store.history(prefix, before, BATCH).await?;
                let newer = batch.iter().take_while(|it| it.revision.0 > through);
                let count = newer.map(|change| self.note(change)).count();
                read += count;
                if count < batch.len() || batch.len() < BATCH || read >= MAX_CHANGES {
                    break;
                }
                before = batch.last().map(|it| it.revision);
            }
        }
        while self.marks.len() > MAX_KNOWN {
            self.marks.pop_first();
        }
        Ok(())
    }

    fn note(&mut self, change: &HistoryEntry) {
        let Revision(revision) = change.revision;
        self.through = self.through.max(revision);
        let mark = self.marks.entry(revision).or_insert_with(|| ChartAnnotation {
            kind: AnnotationKind::Commit,
            at: unix_time::seconds(change.time),
            revision,
            author: change.author.clone(),
            note: change.note.clone(),
            publications: Vec::new(),
            diff: format!("/api/v1/diff?from={}&to={revision}", revision.saturating_sub(1)),
        });
        let Some(id) = change.key.as_str().strip_prefix(PUBLICATIONS) else {
            return;
        };
        mark.kind = AnnotationKind::Publication;
        let is_new = !mark.publications.iter().any(|it| it == id);
        if is_new && mark.publications.len() < MAX_PUBLICATIONS {
            mark.publications.push(id.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use std::time::Duration;
    use weir_store::memory::MemoryStore;
    use weir_store::{Change, Key, Transaction};

    async fn commit(store: &MemoryStore, revision: u64, keys: &[&str]) {
        let put = |key: &&str| {
            let key = Key::new(key).expect("a key");
            Change::put(key, revision.to_string().into_bytes())
        };
        let transaction = Transaction {
            author: "ann".to_owned(),
            note: format!("note {revision}"),
            time: UNIX_EPOCH + Duration::from_secs(1_000 + revision),
            changes: keys.iter().map(put).collect(),
        };
        let made = store.commit(transaction, Revision(revision - 1)).await;
        assert_eq!(made.expect("made"), Revision(revision));
    }

    #[tokio::test]
    async fn commits_and_publications_are_marks() {
        let (store, dialects) = (MemoryStore::new(), crate::sample::all());
        let marks = ChartAnnotations::default();
        let annotations = async |from, to, environments: &[String]| -> Vec<(u64, bool)> {
            let annotations = marks.between((&store, &dialects), (from, to), environments).await;
            let annotations = annotations.expect("marks");
            annotations
                .iter()
                .map(|it| (it.revision, it.kind == AnnotationKind::Publication))
                .collect()
        };
        assert_eq!(annotations(0, 5_000, &[]).await, []);
        commit(&store, 1, &["native/routes/a"]).await;
        commit(&store, 2, &["weir/users/ann", "weir/audit/1"]).await;
        commit(
            &store,
            3,
            &["apis/publications/pets/1.0.0/test", "env/test/native/routes/p"],
        )
        .await;
        assert_eq!(annotations(0, 5_000, &[]).await, [(1, false), (3, true)]);
        let annotation = marks.between((&store, &dialects), (1_003, 1_004), &[]).await;
        let annotation = annotation.expect("marks").pop().expect("one");
        assert_eq!(
            (
                annotation.at,
                annotation.author.as_str(),
                annotation.note.as_str(),
                annotation.diff.as_str()
            ),
            (1_003, "ann", "note 3", "/api/v1/diff?from=2&to=3")
        );
        assert_eq!(annotation.publications, ["pets/1.0.0/test"]);
        // What comes later is read then, and each commit is one mark.
        commit(
            &store,
            4,
            &["apis/publications/pets/1.0.0/prod", "native/routes/b"],
        )
        .await;
        assert_eq!(
            annotations(0, 5_000, &[]).await,
            [(1, false), (3, true), (4, true)]
        );
        assert_eq!(annotations(1_002, 1_003, &[]).await, [(3, true)]);
        assert_eq!(
            annotations(1_003, 1_004, &[]).await,
            [(3, true), (4, true)],
            "both ends are in it"
        );
        assert_eq!(
            annotations(0, 5_000, &["prod".to_owned()]).await,
            [(1, false), (4, true)]
        );
    }

    #[tokio::test]
    async fn the_latest_of_many_are_listed() {
        let (store, dialects) = (MemoryStore::new(), crate::sample::all());
        let last = MAX_ANNOTATIONS as u64 + 150;
        for revision in 1..=last {
            commit(&store, revision, &["native/routes/a"]).await;
        }
        let annotations = ChartAnnotations::default();
        let annotations = annotations
            .between((&store, &dialects), (0, 100_000), &[])
            .await
            .expect("marks");
        assert_eq!(
            (annotations.len(), annotations[0].revision),
            (MAX_ANNOTATIONS, last - MAX_ANNOTATIONS as u64 + 1)
        );
    }
}
