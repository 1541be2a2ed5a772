//! Publishing, in the steps that can refuse it: lint, render, compile, conflicts, differences, approval; then one commit.
//! Rolling back and promoting are publishes of revisions that exist.

use super::adopting;
use super::clock::now;
use super::commit::{CommitResult, Write, WriteOptions};
use super::conflict_search::{ConflictSearch, ConflictsFound};
use super::entity_snapshot::{self, EntitySnapshot};
use super::rendering::contains_bytes;
use super::step::Step;
use super::test_runner::{self, TestRunner};
use super::write_effects::WriteEffects;
use super::{chains, publish_approval, secrecy, specs, versions};
use crate::access::{Action, Caller, Scope};
use crate::api::json_body::Json;
use crate::api::precondition::{Precondition, tagged};
use crate::api::writing::tried;
use crate::api::{Api, Problem, is_dry_run};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;
use weir_apis::call_tests::TestReport;
use weir_apis::diff::{self, Diff, PlanChange};
use weir_apis::entities::{
    Approval, Component, HistoryItem, LineState, Publication, PublicationState, Revision as ApiRevision,
    Runtime,
};
use weir_apis::lint::Options;
use weir_apis::openapi::Description;
use weir_apis::{Finding, Level, renames, render, states};
use weir_model::HostPattern;
use weir_store::{Key, Revision};

/// A publish.
#[derive(Deserialize, Default, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PublishRequest {
    /// A revision; left out: one of the draft, made now if the draft has changed.
    revision: Option<u32>,
    /// The runtime in this environment; left out: as it is.
    runtime: Option<Runtime>,
    /// Why.
    note: String,
    /// Publishes although the change breaks callers, or takes calls of others.
    force: bool,
    /// An approval for exactly this revision.
    approval: Option<String>,
    /// Removes the routes that the version was adopted from, in the same commit.
    take_over: bool,
    /// Publishes although tests of the version fail, for this reason.
    override_tests: Option<String>,
}

/// The next environment of a revision.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromoteRequest {
    /// The environment.
    to: String,
    /// The settings there; left out: unchanged.
    #[serde(default)]
    runtime: Option<Runtime>,
    /// Why.
    #[serde(default)]
    note: String,
    /// Publishes although the change breaks callers, or takes calls of others.
    #[serde(default)]
    force: bool,
    /// An approval for exactly this revision.
    #[serde(default)]
    approval: Option<String>,
    /// Publishes although tests of the version fail, for this reason.
    #[serde(default)]
    override_tests: Option<String>,
}

/// The change of a publication, whichever call asks for it.
struct PublicationChange<'w> {
    action: &'static str,
    api: &'w str,
    version: &'w str,
    environment: &'w str,
    request: &'w PublishRequest,
    /// Whether changes that break callers are what is asked for.
    may_break: bool,
    /// Whether nothing is committed: then the steps behind one that refuses tell what they find, too.
    is_dry: bool,
}

impl PublicationChange<'_> {
    /// The outcome of a step. A refusal ends the publish; a dry run notes it and goes on.
    fn pass<T: Default>(
        &self,
        refused: &mut Vec<Problem>,
        outcome: Result<T, Problem>,
    ) -> Result<T, Problem> {
        match outcome {
            Err(problem) if self.is_dry && problem.is_refusal() => {
                refused.push(problem);
                Ok(T::default())
            }
            // It goes no further. What was noted before comes first, as without a dry run.
            Err(problem) if !refused.is_empty() => {
                refused.push(problem);
                Err(refusal(std::mem::take(refused), json!({})))
            }
            outcome => outcome,
        }
    }
}

/// The results of the steps, for the answer.
struct PublishResult {
    publication: Publication,
    diff: Diff,
    plans: Vec<PlanChange>,
    found: ConflictsFound,
    findings: Vec<Finding>,
    forced: Vec<String>,
    approval: Option<String>,
    /// What would refuse it, in a dry run.
    refused: Vec<Problem>,
    /// Whether it is what is published already.
    is_unchanged: bool,
}

pub async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    super::entities::listed(&api, &caller, "publications").await
}

/// A publication, with what is computed: whether it differs from the draft, and how far it has come.
pub async fn read(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, version, environment)): Path<(String, String, String)>,
) -> Result<Response, Problem> {
    let snapshot = api.snapshot().await?;
    let publication = snapshot.publication(&format!("{name}/{version}/{environment}"))?;
    let entity = snapshot.version(&name, &version)?;
    let mut answer = json!(publication);
    secrecy::hide(&caller, "publications", &mut answer);
    answer["differs_from_draft"] = (entity.draft.hash() != publication.hash).into();
    let revision = rendered_at(&api, &publication).await?;
    let rollout = api
        .options
        .gateways
        .rollout(&publication.environment, revision, SystemTime::now());
    answer["rollout"] = json!(rollout);
    let version = snapshot.version_of(&entity_snapshot::publication_key(&publication.id()));
    Ok(tagged(Json(answer).into_response(), version))
}

/// The revision of the store with which gateways have all of a publication.
async fn rendered_at(api: &Api, publication: &Publication) -> Result<Revision, Problem> {
    let key = entity_snapshot::publication_key(&publication.id());
    let (own, _) = api.store.read(&key).await?;
    let (documents, _) = api.store.read(&render::prefix(&publication.environment)).await?;
    let mark = format!("\"owned_by\":\"{}\"", render::owner(publication));
    let rendered = documents
        .iter()
        .filter(|it| contains_bytes(&it.value, mark.as_bytes()));
    let own = own.iter().filter(|it| it.key.as_str() == key);
    let revisions = own.chain(rendered).map(|it| it.modified);
    Ok(revisions.max().unwrap_or_default())
}

pub async fn publish(step: Step) -> Result<Response, Problem> {
    let request: PublishRequest = step.parse()?;
    run(&step, "publish", &step.environment, &request).await
}

pub async fn rollback(step: Step) -> Result<Response, Problem> {
    let mut request: PublishRequest = step.parse()?;
    if request.revision.is_none() {
        let known = step.api.snapshot().await?.publication(&step.id())?;
        let missing = || {
            Problem::new(
                StatusCode::CONFLICT,
                "there is no earlier revision: set 'revision'",
            )
        };
        request.revision = Some(known.revision_before().ok_or_else(missing)?);
    }
    run(&step, "rollback", &step.environment, &request).await
}

pub async fn promote(step: Step) -> Result<Response, Problem> {
    let promotion: PromoteRequest = step.parse()?;
    let source = step.api.snapshot().await?.publication(&step.id())?;
    if promotion.to == step.environment {
        return Err(Problem::bad("expected another environment in 'to'"));
    }
    // The right in the environment that it comes from says nothing about the one that it goes to.
    let there = [
        Scope::Environment(promotion.to.clone()),
        Scope::Api(step.name.clone()),
    ];
    let caller = &step.caller;
    if !there.iter().any(|scope| caller.can(Action::ApisPublish, scope)) {
        return Err(Problem::forbidden(format!(
            "{} may not publish to {}",
            caller.name(),
            promotion.to
        )));
    }
    let request = PublishRequest {
        revision: Some(source.revision),
        runtime: promotion.runtime,
        note: promotion.note,
        force: promotion.force,
        approval: promotion.approval,
        take_over: false,
        override_tests: promotion.override_tests,
    };
    run(&step, "promote", &promotion.to, &request).await
}

async fn run(
    step: &Step,
    action: &'static str,
    environment: &str,
    request: &PublishRequest,
) -> Result<Response, Problem> {
    let wanted = PublicationChange {
        action,
        api: &step.name,
        version: &step.version,
        environment,
        request,
        // Going back takes away what was added since.
        may_break: action == "rollback",
        is_dry: is_dry_run(&step.headers),
    };
    if request
        .override_tests
        .as_deref()
        .is_some_and(|it| it.trim().is_empty())
    {
        let message = "expected a reason why tests may fail".to_owned();
        return Err(Problem::step(
            "read",
            vec![("override_tests".to_owned(), message)],
        ));
    }
    let id = format!("{}/{}/{environment}", step.name, step.version);
    let key = entity_snapshot::publication_key(&id);
    let snapshot = step.api.snapshot().await?;
    if let Some(runtime) = &request.runtime {
        let known: Option<Publication> = snapshot.find(&key)?;
        chains::permit_runtime(
            &step.api,
            &step.caller,
            &known.unwrap_or_default().runtime,
            runtime,
        )?;
    }
    let precondition = Precondition::of(&step.headers);
    let mut write = PublishWrite {
        caller: &step.caller,
        wanted: &wanted,
        // Tests that came after an older revision do not keep anybody from going back to it.
        may_fail: request.override_tests.is_some() || action == "rollback",
        precondition: &precondition,
        key: Key::new(&key).map_err(|error| Problem::bad(error.to_string()))?,
        first: snapshot.version_of(&key),
        before: None,
        is_stale: false,
    };
    drop(snapshot);
    let options = WriteOptions {
        author: &step.caller.name(),
        now: now(),
        is_dry: wanted.is_dry,
        reports_refusal: wanted.is_dry,
    };
    let written = step.api.commit_write(options, &mut write).await;
    let PublishWrite {
        key,
        before,
        is_stale,
        ..
    } = write;
    match written {
        Ok(written) => answer(written),
        Err(_) if is_stale => Err(precondition.overtaken(&*step.api.store, &key, before).await),
        Err(problem) => Err(problem),
    }
}

/// The write of a publish.
struct PublishWrite<'p> {
    caller: &'p Caller,
    wanted: &'p PublicationChange<'p>,
    /// Whether tests of the version may fail.
    may_fail: bool,
    precondition: &'p Precondition,
    key: Key,
    /// The publication's version when the call came. Of two who publish at once, the one who was first has won.
    first: Option<Revision>,
    /// The publication's version at the last look.
    before: Option<Revision>,
    /// Whether somebody else has changed the publication.
    is_stale: bool,
}

impl Write for &mut PublishWrite<'_> {
    type Answer = PublishResult;

    fn change(&mut self, snapshot: &mut EntitySnapshot) -> Result<WriteEffects<PublishResult>, Problem> {
        self.before = snapshot.version_of(self.key.as_str());
        self.is_stale = self.first != self.before || !self.precondition.holds(self.before);
        match self.is_stale {
            true => Err(Problem::precondition("another version", None)),
            false => steps(snapshot, self.caller, self.wanted),
        }
    }

    fn conflict_search(&self, outcome: &PublishResult) -> Option<ConflictSearch> {
        (!outcome.is_unchanged).then(|| ConflictSearch {
            publication: outcome.publication.clone(),
        })
    }

    fn settle(
        &self,
        snapshot: &mut EntitySnapshot,
        outcome: &mut PublishResult,
        found: ConflictsFound,
    ) -> Result<(), Problem> {
        conclude(snapshot, self.caller, self.wanted, (outcome, found))
    }

    fn test_runner(&self, outcome: &PublishResult) -> Option<TestRunner> {
        // What is published already may have tests by now that fail.
        (!outcome.is_unchanged || !self.may_fail).then(|| TestRunner {
            publication: outcome.publication.clone(),
            names: Vec::new(),
            sees_others: self.caller.can(Action::ConfigurationRead, &Scope::Everything),
        })
    }

    fn evaluate(&self, report: &TestReport) -> Result<(), Problem> {
        match report.failed == 0 || self.may_fail {
            true => Ok(()),
            false => Err(failing(report)),
        }
    }
}

/// Tests of the version do not hold.
fn failing(report: &TestReport) -> Problem {
    let failures = report.failures();
    let messages: Vec<String> = failures
        .iter()
        .map(|(name, text)| format!("{name}: {text}"))
        .collect();
    let detail = format!(
        "tests: {} of {} fail: {}; 'override_tests' with a reason publishes all the same",
        report.failed,
        report.results.len(),
        messages.join("; ")
    );
    Problem::listing(StatusCode::CONFLICT, detail, failures).of_type("tests")
}

fn answer(written: CommitResult<PublishResult>) -> Result<Response, Problem> {
    let PublishResult {
        publication,
        diff,
        plans,
        found,
        findings,
        forced,
        mut refused,
        is_unchanged,
        ..
    } = written.answer;
    refused.extend(written.refusal);
    let count = |level: Level| findings.iter().filter(|it| it.level == level).count();
    let mut body = json!({
        "publication": publication.id(),
        "revision": publication.revision,
        "hash": publication.hash,
        "state": publication.state,
        "commit": if written.is_dry || is_unchanged { Value::Null } else { written.revision.into() },
        "breaking": diff.is_breaking(),
        "text": text_of((&publication, &diff, &plans), (&found, is_unchanged), &written.documents),
        "diff": { "operations": diff.operations, "documents": written.documents, "plans": plans },
        "conflicts": found.conflicts,
        "lint": { "errors": count(Level::Error), "warnings": count(Level::Warn) },
        "forced": forced,
        "tests": written.report,
    });
    if found.unchecked > 0 {
        body["unchecked_routes"] = found.unchecked.into();
    }
    if is_unchanged {
        body["unchanged"] = true.into();
    }
    Ok(match (written.is_dry, refused.is_empty()) {
        (true, true) => tried(Json(body)),
        (true, false) => tried(refusal(refused, body)),
        (false, _) => Json(body).into_response(),
    })
}

/// The answer to a dry run that would be refused: the first refusal, with all of them, and what would change.
fn refusal(mut refused: Vec<Problem>, mut outcome: Value) -> Problem {
    outcome["refused"] = refused.iter().map(Problem::body).collect();
    let members = outcome.as_object_mut().map(std::mem::take);
    refused.swap_remove(0).with_members(members.unwrap_or_default())
}

/// The changes of a publish, in lines: the console and the command line show exactly this.
fn text_of(
    (publication, diff, plans): (&Publication, &Diff, &[PlanChange]),
    (found, is_unchanged): (&ConflictsFound, bool),
    documents: &[Value],
) -> String {
    let mut text = format!(
        "{} r{}\n{}{}",
        publication.id(),
        publication.revision,
        diff::in_lines(diff),
        diff::plans_in_lines(plans)
    );
    if publication.state == PublicationState::Disabled {
        text.push_str("! it is disabled and not served until it is enabled\n");
    }
    if is_unchanged {
        text.push_str("nothing changes: this is already published\n");
    }
    for it in found.messages() {
        text.push_str(&format!("! {it}\n"));
    }
    for document in documents {
        let sign = match (document["before"].is_null(), document["after"].is_null()) {
            (true, _) => '+',
            (_, true) => '-',
            _ => '~',
        };
        text.push_str(&format!(
            "{sign} {}\n",
            document["document"].as_str().unwrap_or_default()
        ));
    }
    text
}

/// The steps up to the search for conflicts.
fn steps(
    snapshot: &mut EntitySnapshot,
    caller: &Caller,
    wanted: &PublicationChange<'_>,
) -> Result<WriteEffects<PublishResult>, Problem> {
    let (name, version) = (wanted.api, wanted.version);
    let id = format!("{name}/{version}/{}", wanted.environment);
    let environment = snapshot.environment(wanted.environment)?;
    let request = wanted.request;
    let revision = match request.revision {
        Some(number) => snapshot.revision(name, version, number)?,
        None => versions::freeze(snapshot, (name, version), &caller.name(), &request.note, now())?,
    };
    let known: Option<Publication> = snapshot.find(&entity_snapshot::publication_key(&id))?;
    let mut publication = known.clone().unwrap_or_else(|| Publication {
        api: name.to_owned(),
        version: version.to_owned(),
        environment: wanted.environment.to_owned(),
        ..Publication::default()
    });
    if let Some(runtime) = &request.runtime {
        let draft = snapshot.version(name, version)?.draft;
        let components = [revision.components.as_slice(), &draft.components].concat();
        publication.runtime = checked(runtime, &publication.runtime, &components)?;
    }
    let mut refused = Vec::new();
    let findings = linted(snapshot, &environment, &revision, &publication.runtime)?;
    wanted.pass(&mut refused, passable(&environment, &findings))?;
    (publication.revision, publication.hash) = (revision.number, revision.hash.clone());
    (publication.canary, publication.canary_rollback) = (None, None);
    let both = (known.as_ref(), &publication);
    let named = request.approval.as_deref().map(|name| (name, request.take_over));
    let approval = publish_approval::approved(snapshot, caller, &environment, both, named);
    let approval = wanted.pass(&mut refused, approval)?;
    let diff = difference(snapshot, known.as_ref(), &revision)?;
    let plans = plan_changes(snapshot, known.as_ref(), &revision)?;
    let mut forced = Vec::new();
    if known.is_some() && diff.is_breaking() && !wanted.may_break {
        match request.force {
            true => forced = broken_by(&diff),
            false => {
                let problem = unforced("breaking", "callers would break", &broken_by(&diff));
                wanted.pass(&mut refused, Err::<(), Problem>(problem))?;
            }
        }
    }
    // Also if its publication would stay as it is: callers get 410 all the same.
    let is_retired = snapshot.version(name, version)?.line == LineState::Retired;
    if is_retired || known.as_ref().is_some_and(|it| it.is_retired_by_hand(now())) {
        let problem = Problem::new(StatusCode::CONFLICT, format!("{name} {version} is retired"));
        wanted.pass(&mut refused, Err::<(), Problem>(problem))?;
    }
    let is_unchanged =
        !request.take_over && snapshot.changes().is_empty() && known.as_ref() == Some(&publication);
    let mut answer = PublishResult {
        publication,
        diff,
        plans,
        found: ConflictsFound::default(),
        findings,
        forced,
        approval,
        refused,
        is_unchanged,
    };
    if is_unchanged {
        // Nothing of it is rendered again: what gateways have stays as it is.
        return Ok(WriteEffects::quiet("", answer));
    }
    snapshot.put(&entity_snapshot::publication_key(&id), &answer.publication)?;
    if request.take_over {
        // The routes may be those of another team, which has no say in this API.
        if !caller.can(Action::ConfigurationWrite, &Scope::Everything) {
            let problem = Problem::forbidden(
                "taking over routes removes them from the configuration: this requires the right to write all of it",
            );
            wanted.pass(&mut answer.refused, Err::<(), Problem>(problem))?;
        }
        let mut entity = snapshot.version(name, version)?;
        adopting::remove_adopted(snapshot, &mut entity, wanted.environment)?;
        snapshot.put(&entity_snapshot::version_key(name, version), &entity)?;
    }
    Ok(WriteEffects {
        note: format!(
            "{} {name} {version} r{} to {}",
            wanted.action, revision.number, wanted.environment
        ),
        publications: BTreeSet::from([id]),
        answer,
    })
}

/// The steps from the conflicts on, up to the tests.
fn conclude(
    snapshot: &mut EntitySnapshot,
    caller: &Caller,
    wanted: &PublicationChange<'_>,
    (result, found): (&mut PublishResult, ConflictsFound),
) -> Result<(), Problem> {
    let (name, version, request) = (wanted.api, wanted.version, wanted.request);
    if !found.conflicts.is_empty() || found.unchecked > 0 {
        let messages = found.messages();
        match request.force {
            true => {
                let new = found.new_messages(&result.publication);
                let permitted = found.permit_force(caller, name, &new);
                wanted.pass(&mut result.refused, permitted)?;
                result.forced.extend(messages);
            }
            false => {
                let problem = unforced("conflicts", "others take these calls", &messages);
                wanted.pass(&mut result.refused, Err::<(), Problem>(problem))?;
            }
        }
    }
    result.found = found;
    if let Some(reason) = &request.override_tests
        && !test_runner::tests_of(snapshot, name, version)?.is_empty()
    {
        result.forced.push(format!("tests were overridden: {reason}"));
    }
    if let Some(id) = &result.approval {
        let key = entity_snapshot::approval_key(id);
        let mut approval: Approval = snapshot.get(&key)?;
        approval.used = Some(now());
        snapshot.put(&key, &approval)?;
    }
    let publication = &mut result.publication;
    publication.note(HistoryItem {
        action: wanted.action.to_owned(),
        revision: publication.revision,
        hash: publication.hash.clone(),
        by: caller.name(),
        at: now(),
        note: request.note.clone(),
        forced: result.forced.clone(),
        approval: result.approval.take(),
    });
    snapshot.put(&entity_snapshot::publication_key(&publication.id()), publication)?;
    let mut entity = snapshot.version(name, version)?;
    if entity.line == LineState::Draft {
        entity.line = states::line(entity.line, LineState::Published)?;
    }
    snapshot.put(&entity_snapshot::version_key(name, version), &entity)
}

/// A runtime that a publish may set. What is stored with a base path or hosts that no call can have goes on as it is, so that a
/// write beside it is not refused.
fn checked(runtime: &Runtime, known: &Runtime, components: &[Component]) -> Result<Runtime, Problem> {
    let mut wrong = Vec::new();
    let is_known = runtime.base_path == known.base_path;
    if let Some(message) = render::base_path_fault(&runtime.base_path).filter(|_| !is_known) {
        wrong.push(("runtime.base_path".to_owned(), message));
    }
    for (index, host) in runtime.hosts.iter().enumerate() {
        if known.hosts.contains(host) {
            continue;
        }
        // Names of the DNS are in ASCII, and clients send them so.
        let fault = match HostPattern::parse(host) {
            _ if !host.is_ascii() => Some(format!(
                "no call has the host '{host}': write it in punycode (xn--…)"
            )),
            _ if host.contains("://") => Some(format!(
                "expected a host alone, such as api.example.com, found '{host}'"
            )),
            Ok(HostPattern::Any) => Some(
                "expected a host, such as api.example.com or *.example.com: to be served under every host, leave \
                 'hosts' out"
                    .to_owned(),
            ),
            parsed => parsed.err().map(|error| error.to_string()),
        };
        if let Some(message) = fault {
            wrong.push((format!("runtime.hosts[{index}]"), message));
        }
    }
    let used: BTreeSet<&str> = components.iter().map(|it| it.backend.as_str()).collect();
    for name in runtime.backends.keys() {
        if !used.contains(name.as_str()) && !known.backends.contains_key(name) {
            let used: Vec<&str> = used.iter().copied().filter(|it| !it.is_empty()).collect();
            let message = match used.is_empty() {
                true => format!(
                    "no component has a backend '{name}': this version has no component with the name of a backend; give it one in 'components'"
                ),
                false => format!(
                    "no component has a backend '{name}': the components of this version have '{}'",
                    used.join("', '")
                ),
            };
            wrong.push((format!("runtime.backends.{name}"), message));
        }
    }
    match wrong.is_empty() {
        true => Ok(runtime.clone()),
        false => Err(Problem::step("render", wrong)),
    }
}

/// The changes that break callers, in words.
fn broken_by(diff: &Diff) -> Vec<String> {
    let messages = diff.breaking().map(|(operation, change)| {
        let (method, path) = (&operation.method, &operation.path);
        format!("{method} {path} {}: {}", change.place, change.message)
    });
    messages.collect()
}

/// What speaks against a step, and can be overridden.
pub(super) fn unforced(kind: &'static str, what: &str, messages: &[String]) -> Problem {
    let errors = messages.iter().map(|it| (String::new(), it.clone())).collect();
    let detail = format!(
        "{kind}: {what}: {}; use 'force' to do it anyway",
        messages.join("; ")
    );
    Problem::listing(StatusCode::CONFLICT, detail, errors).of_type(kind)
}

fn linted(
    snapshot: &EntitySnapshot,
    environment: &weir_apis::entities::Environment,
    revision: &ApiRevision,
    runtime: &Runtime,
) -> Result<Vec<Finding>, Problem> {
    let ruleset = specs::ruleset(environment.lint_rules.as_deref())?;
    let text = specs::text(snapshot, &revision.spec)?;
    let description = specs::read(&text)?;
    let options = Options {
        base_path: Some(&runtime.base_path),
    };
    Ok(specs::findings(&text, &description, &ruleset, options))
}

/// Whether findings of lint let a publish pass.
fn passable(environment: &weir_apis::entities::Environment, findings: &[Finding]) -> Result<(), Problem> {
    // A linter's findings block nothing unless the environment says so; the compile reports what a gateway cannot
    // serve.
    if let Some(level) = environment.lint_blocks {
        let blocking: Vec<Finding> = findings.iter().filter(|it| it.level <= level).cloned().collect();
        if !blocking.is_empty() {
            return Err(specs::unreadable(&blocking));
        }
    }
    Ok(())
}

/// Operations that are not what they were where this was published before; else all are new.
pub(super) fn difference(
    snapshot: &EntitySnapshot,
    known: Option<&Publication>,
    revision: &ApiRevision,
) -> Result<Diff, Problem> {
    let fresh = specs::description(snapshot, &revision.spec)?;
    match known {
        Some(known) => {
            let before = snapshot.revision(&known.api, &known.version, known.revision)?;
            Ok(specs::difference(
                &*specs::description(snapshot, &before.spec)?,
                &fresh,
            ))
        }
        None => {
            let mut none = (*fresh).clone();
            none.operations.clear();
            Ok(specs::difference(&none, &fresh))
        }
    }
}

/// The calls that plans open and close in this environment.
fn plan_changes(
    snapshot: &EntitySnapshot,
    known: Option<&Publication>,
    revision: &ApiRevision,
) -> Result<Vec<PlanChange>, Problem> {
    let version = snapshot.version(&revision.api, &revision.version)?;
    // Plans name operations as the draft does.
    let described = |of: &ApiRevision| -> Result<Description, Problem> {
        let mut description = (*specs::description(snapshot, &of.spec)?).clone();
        for operation in &mut description.operations {
            operation.id = renames::latest(&operation.id, &version.renames, of.number).to_owned();
        }
        Ok(description)
    };
    let before = match known {
        Some(known) => {
            let before = snapshot.revision(&known.api, &known.version, known.revision)?;
            Some(described(&before)?)
        }
        None => None,
    };
    let plans = snapshot.plans(&revision.api, &revision.version)?;
    Ok(diff::plan_changes(&plans, before.as_ref(), &described(revision)?))
}
