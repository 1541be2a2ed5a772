//! A write: what it changes among entities, what gateways get of it, whether that can be served, and the commit. All of
//! it at one revision of the store; if something else was committed meanwhile, all of it again.

use super::access::{Access, AllAccess, documents_of_product};
use super::clock::now;
use super::entity_snapshot::{Changes, EntitySnapshot, PREFIX};
use super::test_runner::TestRunner;
use super::{specs, unrendered};
use crate::access::Caller;
use crate::api::{Api, Problem, is_dry_run};
use crate::follow::{DialectModels, compile};
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use weir_apis::call_tests::TestReport;
use weir_apis::entities::{PRODUCTS, Publication};
use weir_apis::render::{self, Content, Input};
use weir_dialect::{DialectSet, ENVIRONMENTS};
use weir_model::unix_time;
use weir_snapshot::{CompileCache, PersistentState};
use weir_store::{Change, CommitError, Key, Transaction};

/// Attempts while others write too.
const MAX_ATTEMPTS: usize = 10;

/// The effects of a write: the note for the history, the publications that are to be rendered, and the answer.
pub struct WriteEffects<A> {
    pub note: String,
    /// As `API/VERSION/ENVIRONMENT`, and products as `products/NAME`.
    pub publications: BTreeSet<String>,
    pub answer: A,
}

impl<A> WriteEffects<A> {
    /// A write that gateways do not notice.
    pub fn quiet(note: impl Into<String>, answer: A) -> Self {
        Self {
            note: note.into(),
            publications: BTreeSet::new(),
            answer,
        }
    }
}

/// What is searched for among entities before they are rendered; it may take its time.
pub type Search<F> = Box<dyn FnOnce(&Api, &EntitySnapshot) -> Result<F, Problem> + Send>;

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

    /// Makes a write. `work` changes entities; it may be called several times.
    pub(super) async fn manage<A: Send>(
        self: &Arc<Self>,
        caller: &Caller,
        headers: &HeaderMap,
        work: impl FnMut(&mut EntitySnapshot) -> Result<WriteEffects<A>, Problem> + Send,
    ) -> Result<CommitResult<A>, Problem> {
        self.manage_as((&caller.name(), is_dry_run(headers)), now(), work)
            .await
    }

    /// The same, with a search on a thread of its own, whose result `settle` puts into the write, and with tests that
    /// are run by what gateways would serve; `evaluate` says whether what came of them refuses it. With `reports_refusal`, a dry run
    /// that is refused tells as much as it can.
    pub(super) async fn manage_tested<A: Send, F: Send + 'static>(
        self: &Arc<Self>,
        (caller, headers, reports_refusal): (&Caller, &HeaderMap, bool),
        work: impl FnMut(&mut EntitySnapshot) -> Result<WriteEffects<A>, Problem> + Send,
        searching: (
            impl Fn(&A) -> Option<Search<F>> + Send,
            impl Fn(&mut EntitySnapshot, &mut WriteEffects<A>, F) -> Result<(), Problem> + Send,
        ),
        testing: (
            impl Fn(&A) -> Option<TestRunner> + Send,
            impl Fn(&TestReport) -> Result<(), Problem> + Send,
        ),
    ) -> Result<CommitResult<A>, Problem> {
        let is_dry = is_dry_run(headers);
        let write_options = (&*caller.name(), is_dry, is_dry && reports_refusal);
        self.manage_with(write_options, now(), work, (searching, testing))
            .await
    }

    /// The same at a given time, in a user's name.
    pub(super) async fn manage_as<A: Send>(
        self: &Arc<Self>,
        write_options: (&str, bool),
        now: u64,
        work: impl FnMut(&mut EntitySnapshot) -> Result<WriteEffects<A>, Problem> + Send,
    ) -> Result<CommitResult<A>, Problem> {
        let searching = (
            |_: &A| None,
            |_: &mut EntitySnapshot, _: &mut WriteEffects<A>, (): ()| Ok(()),
        );
        let testing = (|_: &A| None, |_: &TestReport| Ok(()));
        let write_options = (write_options.0, write_options.1, false);
        self.manage_with(write_options, now, work, (searching, testing))
            .await
    }

    async fn manage_with<A: Send, F: Send + 'static>(
        self: &Arc<Self>,
        // The last: whether a refusal is told together with what would change.
        (author, is_dry, reports_refusal): (&str, bool, bool),
        now: u64,
        mut work: impl FnMut(&mut EntitySnapshot) -> Result<WriteEffects<A>, Problem> + Send,
        ((search, settle), (trial, evaluate)): (
            (
                impl Fn(&A) -> Option<Search<F>> + Send,
                impl Fn(&mut EntitySnapshot, &mut WriteEffects<A>, F) -> Result<(), Problem> + Send,
            ),
            (
                impl Fn(&A) -> Option<TestRunner> + Send,
                impl Fn(&TestReport) -> Result<(), Problem> + Send,
            ),
        ),
    ) -> Result<CommitResult<A>, Problem> {
        // Writers of this process take turns: each of them would begin again after every other one's commit.
        let _turn = match is_dry {
            true => None,
            false => Some(self.managing.lock().await),
        };
        for _ in 0..MAX_ATTEMPTS {
            let (documents, head) = self.store.read("").await?;
            let mut snapshot = EntitySnapshot::new(documents);
            let mut done = work(&mut snapshot)?;
            let mut refusal = None;
            if let Some(search) = search(&done.answer) {
                let (searched, found) = self.search(snapshot, search).await?;
                snapshot = searched;
                match found {
                    Ok(found) => settle(&mut snapshot, &mut done, found)?,
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
            let report = match trial(&done.answer) {
                Some(trial) if refusal.is_none() => Some(trial.run(self, &snapshot, &rendered).await?),
                _ => None,
            };
            if let Some(report) = &report {
                refusal = defer_refusal(reports_refusal, evaluate(report))?;
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

    /// Searches among entities, and gives them back.
    async fn search<F: Send + 'static>(
        self: &Arc<Self>,
        snapshot: EntitySnapshot,
        search: Search<F>,
    ) -> Result<(EntitySnapshot, Result<F, Problem>), Problem> {
        let api = Arc::clone(self);
        let searching = tokio::task::spawn_blocking(move || {
            let found = search(&api, &snapshot);
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

/// The changes of gateways' documents when these publications and products are rendered.
pub fn rendered(snapshot: &EntitySnapshot, targets: &BTreeSet<String>, now: u64) -> Result<Changes, Problem> {
    let mut changes = Changes::new();
    if targets.is_empty() {
        return Ok(changes);
    }
    let all = AllAccess::read(snapshot)?;
    for id in targets {
        let mut wanted: BTreeMap<Key, Arc<[u8]>> = BTreeMap::new();
        let mut put = |environment: &str, document: &render::Document| -> Result<(), Problem> {
            let key =
                Key::new(&document.key(environment)).map_err(|error| Problem::bad(error.to_string()))?;
            wanted.insert(key, document.value.to_string().into_bytes().into());
            Ok(())
        };
        let (prefix, owner) = match id.strip_prefix(PRODUCTS) {
            Some(name) => {
                if let Some(product) = all.product(name) {
                    let documents = documents_of_product(snapshot, &all, product, now)?;
                    for environment in product.environments() {
                        documents.iter().try_for_each(|it| put(&environment, it))?;
                    }
                }
                (ENVIRONMENTS.to_owned(), id.clone())
            }
            None => {
                let environment = id.rsplit('/').next().unwrap_or_default();
                if let Some(publication) =
                    snapshot.find::<Publication>(&super::entity_snapshot::publication_key(id))?
                {
                    let documents = documents(snapshot, &all, &publication, now)?;
                    documents.iter().try_for_each(|it| put(environment, it))?;
                }
                (render::prefix(environment), format!("publications/{id}"))
            }
        };
        let mark = format!("\"owned_by\":\"{owner}\"");
        let known = snapshot
            .documents()
            .filter(|(key, _)| key.as_str().starts_with(&prefix));
        for (key, value) in known {
            let is_owned = contains_bytes(value, mark.as_bytes());
            if is_owned && !wanted.contains_key(key) {
                changes.insert(key.clone(), None);
            }
        }
        for (key, value) in wanted {
            if snapshot.before(key.as_str()) != Some(&*value) {
                changes.insert(key, Some(value));
            }
        }
    }
    Ok(changes)
}

/// Whether a part stands in a text.
pub(super) fn contains_bytes(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|it| it == part)
}

/// The documents of a publication.
pub fn documents(
    snapshot: &EntitySnapshot,
    all: &AllAccess,
    publication: &Publication,
    now: u64,
) -> Result<Vec<render::Document>, Problem> {
    let (api, version) = (&publication.api, &publication.version);
    let environment = snapshot.environment(&publication.environment)?;
    let revision = snapshot.revision(api, version, publication.revision)?;
    let description = specs::description(snapshot, &revision.spec)?;
    let candidate = match &publication.canary {
        None => None,
        Some(canary) => {
            let revision = snapshot.revision(api, version, canary.revision)?;
            let description = specs::description(snapshot, &revision.spec)?;
            Some((revision, description))
        }
    };
    let access = Access::of_publication(snapshot, all, &publication.id())?;
    let input = Input {
        environment: &environment,
        publication,
        stable: Content {
            revision: &revision,
            description: &description,
        },
        candidate: candidate.as_ref().map(|(revision, description)| Content {
            revision,
            description,
        }),
        plans: &access.plans,
        subscriptions: &access.subscriptions,
        credentials: &access.credentials,
        now,
    };
    render::render(input).map_err(|faults| unrendered(&faults))
}

/// The environments whose documents change.
pub fn environments(rendered: &Changes) -> BTreeSet<String> {
    let names = rendered
        .keys()
        .filter_map(|key| key.as_str().strip_prefix(ENVIRONMENTS)?.split('/').next());
    names.map(str::to_owned).collect()
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
