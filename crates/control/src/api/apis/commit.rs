//! A write: what it changes among entities, what gateways get of it, whether that can be served, and the commit. All of
//! it at one revision of the store; if something else was committed meanwhile, all of it again.

use super::clock::now;
use super::conflict_search::{ConflictSearch, ConflictsFound};
use super::entity_snapshot::{Changes, EntitySnapshot, PREFIX};
use super::rendering::{environments, rendered};
use super::test_runner::TestRunner;
use super::write_effects::WriteEffects;
use crate::access::Caller;
use crate::api::{Api, Problem, is_dry_run};
use crate::follow::{DialectModels, compile};
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use weir_apis::call_tests::TestReport;
use weir_dialect::{DialectSet, ENVIRONMENTS};
use weir_model::unix_time;
use weir_snapshot::{CompileCache, PersistentState};
use weir_store::{Change, CommitError, Key, Transaction};

/// Attempts while others write too.
const MAX_ATTEMPTS: usize = 10;

/// A write of API management: what it changes, and what is looked at before the changes are committed.
pub(super) trait Write: Send {
    /// What the caller is answered with.
    type Answer: Send;

    /// Changes entities. It is called again if something else was committed meanwhile.
    fn change(&mut self, snapshot: &mut EntitySnapshot) -> Result<WriteEffects<Self::Answer>, Problem>;

    /// The search for calls that the write takes from others; `None`: it takes none.
    fn conflict_search(&self, _answer: &Self::Answer) -> Option<ConflictSearch> {
        None
    }

    /// Refuses the conflicts that were found, or notes them.
    fn settle(
        &self,
        _snapshot: &mut EntitySnapshot,
        _answer: &mut Self::Answer,
        _found: ConflictsFound,
    ) -> Result<(), Problem> {
        Ok(())
    }

    /// The tests that are run by what gateways would serve.
    fn test_runner(&self, _answer: &Self::Answer) -> Option<TestRunner> {
        None
    }

    /// Refuses a write whose tests fail.
    fn evaluate(&self, _report: &TestReport) -> Result<(), Problem> {
        Ok(())
    }
}

/// A write that only changes entities.
struct ChangeOnly<W>(W);

impl<A: Send, W> Write for ChangeOnly<W>
where
    W: FnMut(&mut EntitySnapshot) -> Result<WriteEffects<A>, Problem> + Send,
{
    type Answer = A;

    fn change(&mut self, snapshot: &mut EntitySnapshot) -> Result<WriteEffects<A>, Problem> {
        (self.0)(snapshot)
    }
}

/// In whose name a write is made, when, and whether it is only tried.
pub(super) struct WriteOptions<'a> {
    pub author: &'a str,
    /// Unix time in seconds.
    pub now: u64,
    pub is_dry: bool,
    /// Whether a dry run that is refused also tells what would change.
    pub reports_refusal: bool,
}

/// The outcome of a commit, or of a dry run.
pub struct CommitResult<A> {
    pub answer: A,
    /// Changes of gateways' documents.
    pub documents: Vec<Value>,
    /// The results of the tests, if any were to be run.
    pub report: Option<TestReport>,
    /// What a dry run found last, if that would refuse the write.
    pub refusal: Option<Problem>,
    /// The store's revision.
    pub revision: u64,
    pub is_dry: bool,
}

impl Api {
    /// Reads the entities.
    pub(in crate::api) async fn snapshot(&self) -> Result<EntitySnapshot, Problem> {
        let (documents, _) = self.store.read(PREFIX).await?;
        Ok(EntitySnapshot::new(documents))
    }

    /// Makes a write that only changes entities. `work` may be called several times.
    pub(super) async fn manage<A: Send>(
        self: &Arc<Self>,
        caller: &Caller,
        headers: &HeaderMap,
        work: impl FnMut(&mut EntitySnapshot) -> Result<WriteEffects<A>, Problem> + Send,
    ) -> Result<CommitResult<A>, Problem> {
        let options = WriteOptions {
            author: &caller.name(),
            now: now(),
            is_dry: is_dry_run(headers),
            reports_refusal: false,
        };
        self.commit_write(options, ChangeOnly(work)).await
    }

    /// The same at a given time, in a user's name, and for good.
    pub(super) async fn manage_at<A: Send>(
        self: &Arc<Self>,
        author: &str,
        now: u64,
        work: impl FnMut(&mut EntitySnapshot) -> Result<WriteEffects<A>, Problem> + Send,
    ) -> Result<CommitResult<A>, Problem> {
        let options = WriteOptions {
            author,
            now,
            is_dry: false,
            reports_refusal: false,
        };
        self.commit_write(options, ChangeOnly(work)).await
    }

    /// Makes a write.
    pub(super) async fn commit_write<W: Write>(
        self: &Arc<Self>,
        options: WriteOptions<'_>,
        mut write: W,
    ) -> Result<CommitResult<W::Answer>, Problem> {
        let WriteOptions {
            author,
            now,
            is_dry,
            reports_refusal,
        } = options;
        // Writers of this process take turns: each of them would begin again after every other one's commit.
        let _turn = match is_dry {
            true => None,
            false => Some(self.managing.lock().await),
        };
        for _ in 0..MAX_ATTEMPTS {
            let (documents, head) = self.store.read("").await?;
            let mut snapshot = EntitySnapshot::new(documents);
            let mut done = write.change(&mut snapshot)?;
            let mut refusal = None;
            if let Some(search) = write.conflict_search(&done.answer) {
                let (searched, found) = self.search(snapshot, search).await?;
                snapshot = searched;
                match found {
                    Ok(found) => write.settle(&mut snapshot, &mut done.answer, found)?,
                    Err(problem) => refusal = defer_refusal(reports_refusal, Err(problem))?,
                }
            }
            super::access::note_plans(&mut snapshot, &done.publications)?;
            let mut rendered = match rendered(&snapshot, &done.publications, now) {
                Ok(rendered) => rendered,
                Err(problem) => {
                    refusal = refusal.or(defer_refusal(reports_refusal, Err(problem))?);
                    Changes::new()
                }
            };
            // Routes that a publication takes over are gateways' documents, too.
            let is_entity = |key: &Key| key.as_str().starts_with(PREFIX);
            let others = snapshot.changes().iter().filter(|(key, _)| !is_entity(key));
            rendered.extend(others.map(|(key, value)| (key.clone(), value.clone())));
            let snapshot = Arc::new(snapshot);
            if refusal.is_none() && !rendered.is_empty() {
                let compiled = self.dry_compile(&snapshot, &rendered, &done.publications);
                refusal = defer_refusal(reports_refusal, compiled.await)?;
            }
            let report = match write.test_runner(&done.answer) {
                Some(runner) if refusal.is_none() => Some(runner.run(self, &snapshot, &rendered).await?),
                _ => None,
            };
            if let Some(report) = &report {
                refusal = defer_refusal(reports_refusal, write.evaluate(report))?;
            }
            let entities = snapshot.changes().iter().filter(|(key, _)| is_entity(key));
            let changes: Vec<Change> = entities.chain(&rendered).map(change).collect();
            if refusal.is_none() {
                refusal = defer_refusal(
                    reports_refusal,
                    check_sizes(&changes, self.store.largest_document()),
                )?;
            }
            let documents = changes_json(&snapshot, &rendered);
            let written = |revision: u64, answer| CommitResult {
                answer,
                documents,
                report,
                refusal,
                revision,
                is_dry,
            };
            if is_dry || changes.is_empty() {
                return Ok(written(head.0, done.answer));
            }
            let transaction = Transaction {
                author: author.to_owned(),
                note: done.note,
                time: unix_time::from_seconds(now),
                changes,
            };
            match self.store.commit(transaction, head).await {
                Ok(revision) => return Ok(written(revision.0, done.answer)),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(
            Problem::new(StatusCode::CONFLICT, "conflicting concurrent writes; try again")
                .of_type("concurrent-writes"),
        )
    }

    /// Searches for conflicts on a thread of its own, and gives the entities back.
    async fn search(
        self: &Arc<Self>,
        snapshot: EntitySnapshot,
        search: ConflictSearch,
    ) -> Result<(EntitySnapshot, Result<ConflictsFound, Problem>), Problem> {
        let api = Arc::clone(self);
        let searching = tokio::task::spawn_blocking(move || {
            let found = search.find(&api, &snapshot);
            (snapshot, found)
        });
        searching
            .await
            .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
    }

    /// Refuses what would not be served whole, and is not broken without the write.
    async fn dry_compile(
        self: &Arc<Self>,
        snapshot: &Arc<EntitySnapshot>,
        rendered: &Changes,
        publications: &BTreeSet<String>,
    ) -> Result<(), Problem> {
        let (api, snapshot, rendered) = (Arc::clone(self), Arc::clone(snapshot), rendered.clone());
        let compiled = tokio::task::spawn_blocking(move || newly_broken(&api, &snapshot, &rendered)).await;
        let broken =
            compiled.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
        match broken.is_empty() {
            true => Ok(()),
            false => {
                let placed = broken
                    .into_iter()
                    .map(|(what, reason)| (place_of(what, publications), reason));
                Err(Problem::step("compile", placed.collect()))
            }
        }
    }
}

/// The field that a resource of a gateway was made of, if it is the address of a backend; else the resource itself.
fn place_of(resource: String, publications: &BTreeSet<String>) -> String {
    let field = |(kind, field)| {
        let name = resource.strip_prefix(kind)?.strip_suffix('\'')?;
        // The names of a version 1.0 begin as those of a version 1 do.
        let backends = publications.iter().filter_map(|id| {
            let (version, environment) = id.rsplit_once('/')?;
            let begin = format!("{environment}.{}.", version.replace('/', "."));
            name.strip_prefix(&begin)
        });
        let backend = backends.min_by_key(|it| it.len())?;
        Some(match backend.strip_suffix(".canary") {
            Some(backend) => format!("canary.backends.{backend}.{field}"),
            None => format!("runtime.backends.{backend}.{field}"),
        })
    };
    let found = [("service '", "url"), ("upstream '", "targets")]
        .into_iter()
        .find_map(field);
    found.unwrap_or(resource)
}

/// What refuses a write, where it is told together with what would change; elsewhere it ends the write.
fn defer_refusal(reports_refusal: bool, outcome: Result<(), Problem>) -> Result<Option<Problem>, Problem> {
    match outcome {
        Ok(()) => Ok(None),
        Err(problem) if reports_refusal && problem.is_refusal() => Ok(Some(problem)),
        Err(problem) => Err(problem),
    }
}

/// Refuses documents that are larger than the store takes.
fn check_sizes(changes: &[Change], most: Option<usize>) -> Result<(), Problem> {
    let Some(most) = most else { return Ok(()) };
    let too_large = changes.iter().filter_map(|it| match it {
        Change::Put { key, value, .. } => {
            let bytes = key.as_str().len() + value.len();
            (bytes > most).then(|| (key.as_str().to_owned(), too_large(key, bytes, most)))
        }
        Change::Delete { .. } => None,
    });
    let too_large: Vec<_> = too_large.collect();
    match too_large.is_empty() {
        true => Ok(()),
        false => Err(Problem::step("store", too_large)),
    }
}

/// What is wrong with a document that is too large, and what helps.
fn too_large(key: &Key, bytes: usize, most: usize) -> String {
    let is_service = key.as_str().starts_with(ENVIRONMENTS) && key.as_str().contains("/services/");
    let remedy = match is_service {
        true => "give some of its operations to another component",
        false => "make it smaller",
    };
    format!(
        "the document has {bytes} bytes; the store accepts at most {most}: {remedy}, or use a SQLite store, which accepts larger ones"
    )
}

fn change((key, value): (&Key, &Option<Arc<[u8]>>)) -> Change {
    match value {
        Some(value) => Change::put(key.clone(), Arc::clone(value)),
        None => Change::Delete { key: key.clone() },
    }
}

fn newly_broken(api: &Api, snapshot: &EntitySnapshot, rendered: &Changes) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for environment in environments(rendered) {
        let set: DialectSet = api.options.dialects.clone().in_environments(vec![environment]);
        let mut dialects = DialectModels::new(&set);
        for (key, value) in snapshot.documents() {
            dialects.apply(key.as_str(), Some(value));
        }
        let before: HashSet<(String, String)> = broken(api, &mut dialects).into_iter().collect();
        for (key, value) in rendered {
            dialects.apply(key.as_str(), value.as_deref());
        }
        found.extend(
            broken(api, &mut dialects)
                .into_iter()
                .filter(|it| !before.contains(it)),
        );
    }
    found
}

/// The resources that are not served whole, and why.
fn broken(api: &Api, dialects: &mut DialectModels) -> Vec<(String, String)> {
    let (model, skipped) = dialects.model(|_, _| Vec::new());
    let mut broken: Vec<(String, String)> = skipped.into_iter().map(|it| (it.document, it.reason)).collect();
    let (persistent, mut cache) = (PersistentState::default(), CompileCache::default());
    match compile(&model, 0, &(api.options.registry)(), &persistent, &mut cache) {
        Ok((_, skipped)) => broken.extend(skipped.into_iter().map(|it| (it.name, it.reason))),
        Err(found) => broken.extend(found.into_iter().map(|it| (it.path.to_string(), it.message))),
    }
    broken
}

/// Changes of gateways' documents, for people and their tools. Hashes of keys are hidden.
fn changes_json(snapshot: &EntitySnapshot, rendered: &Changes) -> Vec<Value> {
    let read = |bytes: Option<&[u8]>| -> Value {
        let mut value = bytes
            .and_then(|it| serde_json::from_slice(it).ok())
            .unwrap_or_default();
        weir_model::secrets::hide(&mut value);
        value
    };
    let one = |(key, after): (&Key, &Option<Arc<[u8]>>)| json!({ "document": key.as_str(), "before": read(snapshot.before(key.as_str())), "after": read(after.as_deref()) });
    rendered.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The defect: a dry run knew nothing of the store's limits.
    #[test]
    fn documents_that_the_store_does_not_take_are_refused_with_their_sizes() {
        let document = |key: &str, length: usize| {
            Change::put(
                Key::new(key).expect("a key"),
                Arc::<[u8]>::from(vec![b'x'; length]),
            )
        };
        let (service, draft) = ("env/test/native/services/test.pets.1.main", "apis/drafts/a");
        let changes = [
            document(service, 100 - service.len()),
            document(draft, 100 - draft.len()),
        ];
        for (most, found) in [
            (None, &[][..]),
            (Some(100), &[]),
            (
                Some(99),
                &[(service, "another component"), (draft, "make it smaller")],
            ),
        ] {
            let refused = check_sizes(&changes, most);
            let errors = refused.map_or_else(|it| it.body()["errors"].clone(), |()| json!([]));
            let errors = errors.as_array().expect("a list");
            assert_eq!(errors.len(), found.len(), "{most:?}: {errors:?}");
            for (error, (path, text)) in errors.iter().zip(found) {
                let message = error["message"].as_str().expect("a text");
                assert!(
                    error["path"] == *path && message.contains("has 100 bytes") && message.contains(text),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn a_field_is_that_of_the_version_whose_name_it_has() {
        let publications: BTreeSet<String> = ["pets/1/test", "pets/1.0/test"].map(str::to_owned).into();
        for (resource, expected) in [
            ("service 'test.pets.1.main'", "runtime.backends.main.url"),
            ("service 'test.pets.1.0.main'", "runtime.backends.main.url"),
            (
                "upstream 'test.pets.1.0.main.canary'",
                "canary.backends.main.targets",
            ),
            ("service 'prod.pets.1.main'", "service 'prod.pets.1.main'"),
            ("route 'test.pets.1.main.get'", "route 'test.pets.1.main.get'"),
        ] {
            assert_eq!(
                place_of(resource.to_owned(), &publications),
                expected,
                "{resource}"
            );
        }
    }
}
