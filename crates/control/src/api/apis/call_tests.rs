//! Tests of a version: kept with it, run on demand against its draft, a revision or what is published, and run by
//! every publish. A test explains its call; nothing is sent.

use super::clock::now;
use super::entities::{answered, body_of, check_name, parse, read_entity};
use super::entity_snapshot::{self, EntitySnapshot};
use super::rendering::rendered;
use super::test_runner::{TestRunner, call_of, tests_of};
use super::versions;
use super::write_effects::WriteEffects;
use crate::access::{Action, Caller, NoAudit, Scope};
use crate::api::json_body::Json;
use crate::api::{Api, Problem};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use weir_apis::call_tests::{self, MAX_TESTS};
use weir_apis::entities::{CallTest, Credential, Publication, PublicationState, Runtime, TestRequest};
use weir_apis::hash;

/// How long keys of subscriptions may be, in bytes.
const LENGTH_OF_KEYS: RangeInclusive<usize> = 8..=512;

/// The path of a test: API, version, name.
type TestPath = Path<(String, String, String)>;

pub async fn list(
    State(api): State<Arc<Api>>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let snapshot = api.snapshot().await?;
    snapshot.version(&name, &version)?;
    Ok(Json(json!({ "items": tests_of(&snapshot, &name, &version)? })))
}

pub async fn read(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, version, test)): TestPath,
) -> Result<Response, Problem> {
    read_entity(&api, &caller, &entity_snapshot::test_key(&name, &version, &test)).await
}

pub async fn put(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, version, test)): TestPath,
    headers: HeaderMap,
    body: String,
) -> Result<Response, Problem> {
    check_name(&test)?;
    let mut body = body_of(&body)?;
    body["name"] = test.as_str().into();
    let entity: CallTest = parse(&body)?;
    let mut wrong = call_tests::check(&entity);
    if let Err(message) = call_of(&entity.request, &Runtime::default(), None) {
        wrong.push(("request".to_owned(), message));
    }
    let key = entity_snapshot::test_key(&name, &version, &test);
    let written = api
        .manage(&caller, &headers, |snapshot| {
            snapshot.version(&name, &version)?;
            let is_new = snapshot.bytes(&key).is_none();
            let mut wrong = wrong.clone();
            wrong.extend(keys_in(snapshot, &entity.request)?);
            for (place, environment) in entity.environments.iter().enumerate() {
                if snapshot.environment(environment).is_err() {
                    let message = format!("unknown environment '{environment}': the test would never run");
                    wrong.push((format!("environments.{place}"), message));
                }
            }
            if is_new && tests_of(snapshot, &name, &version)?.len() >= MAX_TESTS {
                wrong.push((
                    String::new(),
                    format!("expected at most {MAX_TESTS} tests of a version"),
                ));
            }
            if !wrong.is_empty() {
                return Err(Problem::step("read", wrong));
            }
            snapshot.put(&key, &entity)?;
            Ok(WriteEffects::quiet(
                format!("test {test} of {name} {version}"),
                is_new,
            ))
        })
        .await?;
    Ok(answered(written.answer, &entity))
}

/// Keys in a request, which would stand in the store as plain text, at any position in it: behind a `Bearer` or in the
/// path, in a form or in JSON.
fn keys_in(snapshot: &EntitySnapshot, request: &TestRequest) -> Result<Vec<(String, String)>, Problem> {
    let credentials: Vec<Credential> = snapshot.list(&entity_snapshot::credential_key(""))?;
    let hashes: HashSet<&str> = credentials.iter().map(|it| it.hash.as_str()).collect();
    let is_key = |text: &str| {
        let is_part = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_');
        let words = text.split(|it| !is_part(it));
        let mut texts = words
            .chain([text])
            .filter(|it| LENGTH_OF_KEYS.contains(&it.len()));
        texts.any(|it| hashes.contains(hash::of_bytes(it.as_bytes()).as_str()))
    };
    let path = percent_encoding::percent_decode_str(&request.path).decode_utf8_lossy();
    let values = path.split(['?', '&']).map(|part| {
        let value = part.split_once('=').map_or(part, |(_, value)| value);
        ("request.path".to_owned(), value)
    });
    let in_headers = request
        .headers
        .iter()
        .map(|(name, value)| (format!("request.headers.{name}"), value.as_str()));
    let in_body = [("request.body".to_owned(), request.body.as_str())];
    let found = values
        .chain(in_headers)
        .chain(in_body)
        .filter(|(_, value)| is_key(value));
    let expected = "expected no key of a subscription, for a test is kept as plain text: name the application in \
        'request.application'";
    Ok(found.map(|(place, _)| (place, expected.to_owned())).collect())
}

pub async fn delete(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, version, test)): TestPath,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let key = entity_snapshot::test_key(&name, &version, &test);
    api.manage(&caller, &headers, |snapshot| {
        let _there: CallTest = snapshot.get(&key)?;
        snapshot.remove(&key);
        Ok(WriteEffects::quiet(
            format!("test {test} of {name} {version} removed"),
            (),
        ))
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The tested content and its environment.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestRun {
    /// The environment.
    environment: String,
    /// A revision; left out: the draft.
    #[serde(default)]
    revision: Option<u32>,
    /// The publication there.
    #[serde(default)]
    published: bool,
    /// The runtime in the environment, as a publish has it; left out: as it is published there.
    #[serde(default)]
    #[schemars(with = "Option<Value>")]
    runtime: Option<Runtime>,
    /// Only these tests; empty: all.
    #[serde(default)]
    names: Vec<String>,
}

/// Runs tests on demand.
pub async fn run(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, version)): Path<(String, String)>,
    body: String,
) -> Result<Response, Problem> {
    let wanted: TestRun = parse(&body_of(&body)?)?;
    if wanted.published && (wanted.revision.is_some() || wanted.runtime.is_some()) {
        return Err(Problem::bad(
            "expected 'published', or 'revision' and 'runtime', not both",
        ));
    }
    let (documents, _) = api.store.read("").await?;
    let mut snapshot = EntitySnapshot::new(documents);
    let publication = target(&mut snapshot, (&name, &version), &wanted)?;
    let changes = rendered(&snapshot, &BTreeSet::from([publication.id()]), now())?;
    let trial = TestRunner {
        publication,
        names: wanted.names,
        sees_others: caller.can(Action::ConfigurationRead, &Scope::Everything),
    };
    let (working, snapshot) = (Arc::clone(&api), Arc::new(snapshot));
    let report = trial.run(&working, &snapshot, &changes).await?;
    // It is asked with a body, and changes nothing.
    Ok((Extension(NoAudit), Json(report)).into_response())
}

/// The publication as it would be with what is to be tested.
fn target(
    snapshot: &mut EntitySnapshot,
    (name, version): (&str, &str),
    wanted: &TestRun,
) -> Result<Publication, Problem> {
    snapshot.environment(&wanted.environment)?;
    let id = format!("{name}/{version}/{}", wanted.environment);
    let key = entity_snapshot::publication_key(&id);
    if wanted.published {
        return snapshot.publication(&id);
    }
    let revision = match wanted.revision {
        Some(number) => snapshot.revision(name, version, number)?,
        None => versions::freeze(snapshot, (name, version), "", "", now())?,
    };
    let known: Option<Publication> = snapshot.find(&key)?;
    let mut publication = known.unwrap_or_else(|| Publication {
        api: name.to_owned(),
        version: version.to_owned(),
        environment: wanted.environment.clone(),
        ..Publication::default()
    });
    if let Some(runtime) = &wanted.runtime {
        publication.runtime = runtime.clone();
    }
    (publication.revision, publication.hash) = (revision.number, revision.hash);
    publication.state = PublicationState::Live;
    publication.canary = None;
    snapshot.put(&key, &publication)?;
    Ok(publication)
}
