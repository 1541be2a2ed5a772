//! Versions of an API: a document uploaded and uploaded again, lint, revisions, differences, export.

use super::clock::now;
use super::document_body::DocumentBody;
use super::entities::{body_of, parse};
use super::entity_snapshot::{EntitySnapshot, PREFIX};
use super::write_effects::WriteEffects;
use super::{chains, entity_snapshot, renaming, reviews, secrecy, specs};
use crate::access::Caller;
use crate::api::json_body::Json;
use crate::api::precondition::tagged;
use crate::api::{Api, Problem};
use crate::run_blocking::run_blocking;
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use weir_apis::entities::{
    Api as ApiEntity, Approval, Component, Draft, LineState, LintSummary, Revision as ApiRevision,
    Subscription, SubscriptionState, Version,
};
use weir_apis::lint::{Options, Ruleset};
use weir_apis::openapi::{self, Description};
use weir_apis::{Finding, Level, Position, diff, export, import, naming, postman, renames};

/// The name of a new version, if the document is sent as it is.
#[derive(Deserialize, schemars::JsonSchema)]
pub struct NewVersion {
    /// The version; left out: `info.version` of the document.
    version: Option<String>,
}

/// A body: fields of a version with the document in `spec`, or the document alone.
struct Upload {
    fields: Value,
    spec: Option<String>,
    /// What of a collection the document does not have.
    findings: Vec<Finding>,
}

impl Upload {
    fn read(text: &str) -> Result<Self, Problem> {
        let value = run_blocking(|| openapi::parse(text)).map_err(|found| specs::unreadable(&[found]))?;
        let is_document = value.get("openapi").is_some() || value.get("swagger").is_some();
        if is_document {
            return Ok(Self::of(json!({}), Some(text.to_owned())));
        }
        if postman::is_collection(&value) {
            return Self::converted(json!({}), &value);
        }
        let Value::Object(mut fields) = value else {
            return Err(specs::unreadable(&[Finding::error(
                openapi::UNREADABLE,
                Default::default(),
                "expected an OpenAPI document, or a map with one in 'spec'",
            )]));
        };
        let spec = fields.remove("spec");
        let fields = Value::Object(fields);
        match spec {
            None => Ok(Self::of(fields, None)),
            Some(Value::String(text)) => match run_blocking(|| openapi::parse(&text)) {
                Ok(value) if postman::is_collection(&value) => Self::converted(fields, &value),
                _ => Ok(Self::of(fields, Some(text))),
            },
            Some(value) if postman::is_collection(&value) => Self::converted(fields, &value),
            Some(value) => Ok(Self::of(fields, Some(pretty(&value)?))),
        }
    }

    fn of(fields: Value, spec: Option<String>) -> Self {
        Self {
            fields,
            spec,
            findings: Vec::new(),
        }
    }

    fn converted(fields: Value, collection: &Value) -> Result<Self, Problem> {
        let mut made = postman::convert(collection).map_err(Problem::bad)?;
        let text = pretty(&made.document)?;
        openapi::locate(&text, &mut made.findings);
        Ok(Self {
            findings: made.findings,
            ..Self::of(fields, Some(text))
        })
    }

    /// Adds what a collection has lost to what lint has found.
    fn with_findings(&self, mut answer: Value) -> Value {
        if let Some(findings) = answer["findings"].as_array_mut() {
            findings.extend(self.findings.iter().map(|it| json!(it)));
        }
        answer
    }
}

fn pretty(document: &Value) -> Result<String, Problem> {
    serde_json::to_string_pretty(document).map_err(|error| Problem::bad(error.to_string()))
}

/// The fields of a draft that a body may change. Those that are left out stay as they are.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DraftEdit")]
pub struct Edit {
    /// The version, if this creates one; left out: `info.version` of the document.
    #[serde(default)]
    version: Option<String>,
    /// Its name for people.
    #[serde(default)]
    display_name: Option<String>,
    /// What it is for.
    #[serde(default)]
    description: Option<String>,
    /// Free labels.
    #[serde(default)]
    labels: Option<weir_apis::entities::Labels>,
    /// The backends that operations belong to; the first one has those that name none.
    #[serde(default)]
    components: Option<Vec<Component>>,
    /// Settings of operations, by their ids.
    #[serde(default)]
    operations: Option<std::collections::BTreeMap<String, weir_apis::entities::OperationSettings>>,
    /// Plugins of all operations, as chains of a `weir.yaml` have them.
    #[serde(default)]
    chain: Option<Vec<Value>>,
    /// The OpenAPI document or Postman collection: a text in JSON or YAML, or a map.
    #[serde(default)]
    #[expect(
        dead_code,
        reason = "`upload` takes it from the body; it is listed here for the API's document"
    )]
    spec: Option<Value>,
}

impl Edit {
    /// Refuses components that no publish could serve.
    fn check_components(&self) -> Result<(), Problem> {
        let components = self.components.as_deref();
        let unnamed = components.into_iter().flatten().enumerate();
        let unnamed = unnamed.filter(|(_, it)| it.backend.trim().is_empty());
        let mut wrong: Vec<(String, String)> = unnamed
            .map(|(index, _)| {
                let message = "expected the name of a backend, such as main".to_owned();
                (format!("components[{index}].backend"), message)
            })
            .collect();
        if components.is_some_and(<[Component]>::is_empty) {
            let message =
                "expected at least one component: operations belong to one, and it names their backend";
            wrong.push(("components".to_owned(), message.to_owned()));
        }
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(Problem::step("read", wrong)),
        }
    }

    fn has_plugins(&self) -> bool {
        self.chain.is_some() || self.components.is_some() || self.operations.is_some()
    }
}

/// Refuses plugins that an edit brings and that the caller may not use, or that no gateway could serve.
async fn chains_of(api: &Api, caller: &Caller, before: &Draft, edit: &Edit) -> Result<(), Problem> {
    let wanted = Draft {
        components: edit.components.clone().unwrap_or_default(),
        operations: edit.operations.clone().unwrap_or_default(),
        chain: edit.chain.clone().unwrap_or_default(),
        ..Draft::default()
    };
    let chains = chains::of_draft(&wanted, before);
    chains::permit(api, caller, &chains).await?;
    let complete = chains.into_iter().filter(chains::is_complete);
    chains::check(api, complete.collect()).await
}

pub async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    let snapshot = api.snapshot().await?;
    let versions: Vec<Version> = snapshot.list(&format!("{PREFIX}versions/{name}/"))?;
    let mut items: Vec<Value> = versions.iter().map(|it| json!(it)).collect();
    for item in &mut items {
        secrecy::hide(&caller, "versions", item);
    }
    Ok(Json(json!({ "items": items })))
}

pub async fn create(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Query(new): Query<NewVersion>,
    headers: HeaderMap,
    DocumentBody(body): DocumentBody,
) -> Result<Response, Problem> {
    let upload = Upload::read(&body)?;
    let spec = upload.spec.clone().ok_or_else(|| {
        let message = "expected an OpenAPI document, or a map with one in 'spec': neither 'openapi' nor 'swagger' \
            is a text";
        let found = Finding::error(openapi::UNREADABLE, Default::default(), message);
        specs::unreadable(&[found.at(Position::START)])
    })?;
    let edit: Edit = parse(&upload.fields)?;
    edit.check_components()?;
    let description = specs::read(&spec)?;
    chains_of(&api, &caller, &Draft::default(), &edit).await?;
    if let (Some(in_body), Some(in_address)) = (&edit.version, &new.version)
        && in_body != in_address
    {
        let message = format!("the address asks for version '{in_address}', and the body says '{in_body}'");
        return Err(Problem::step("read", vec![("version".to_owned(), message)]));
    }
    let version = match edit.version.clone().or(new.version) {
        Some(version) => version,
        None => naming::version_of(&json!({ "info": description.info }))
            .map_err(|message| Problem::step("read", vec![("info.version".to_owned(), message)]))?
            .unwrap_or_else(|| "1".to_owned()),
    };
    if !naming::is_version(&version) {
        let detail = format!(
            "'{version}' is not a valid version: expected {}",
            naming::EXPECTED_VERSION
        );
        return Err(Problem::bad(detail));
    }
    let key = entity_snapshot::version_key(&name, &version);
    let written = api
        .manage(&caller, &headers, |snapshot| {
            snapshot.get::<ApiEntity>(&entity_snapshot::api_key(&name))?;
            if snapshot.bytes(&key).is_some() {
                return Err(Problem::new(
                    StatusCode::CONFLICT,
                    format!("{name} {version} exists"),
                ));
            }
            let mut entity = Version {
                api: name.clone(),
                version: version.clone(),
                created: now(),
                modified: now(),
                ..Version::default()
            };
            entity.draft.spec = specs::keep(snapshot, &spec)?;
            entity.draft.changed_by(&caller.name());
            entity.draft.components = vec![Component {
                name: "main".to_owned(),
                backend: "main".to_owned(),
                ..Component::default()
            }];
            apply(&mut entity, &edit);
            check(&entity, &description)?;
            snapshot.put(&key, &entity)?;
            Ok(WriteEffects::quiet(
                format!("new version {version} of {name}"),
                entity,
            ))
        })
        .await?;
    let answer = upload.with_findings(to_response(&written.answer, &spec, &description));
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

fn apply(entity: &mut Version, edit: &Edit) {
    macro_rules! take {
        ($($from:ident => $to:expr),*) => { $(if let Some(value) = &edit.$from { $to = value.clone(); })* };
    }
    take!(
        display_name => entity.display_name,
        description => entity.description,
        labels => entity.labels,
        components => entity.draft.components,
        operations => entity.draft.operations,
        chain => entity.draft.chain
    );
}

fn check(entity: &Version, description: &Description) -> Result<(), Problem> {
    let mut errors = Vec::new();
    let components = &entity.draft.components;
    let mut names: HashSet<&str> = HashSet::new();
    let operations: HashSet<&str> = description.operations.iter().map(|it| it.id.as_str()).collect();
    for (index, component) in components.iter().enumerate() {
        let place = format!("components[{index}].name");
        if !naming::is_name(&component.name) {
            errors.push((
                place,
                format!(
                    "'{}' is not a valid name: expected {}",
                    component.name,
                    naming::EXPECTED_NAME
                ),
            ));
        } else if !names.insert(&component.name) {
            errors.push((place, format!("two components are named '{}'", component.name)));
        }
    }
    for (id, settings) in &entity.draft.operations {
        let is_known = operations.contains(id.as_str()) || !settings.known_as.is_empty();
        let place = format!("operations.{id}");
        if !is_known {
            errors.push((place, "the document has no such operation".to_owned()));
        } else if let Some(name) = settings
            .component
            .as_ref()
            .filter(|name| !names.contains(name.as_str()))
        {
            errors.push((
                format!("{place}.component"),
                format!("no component is named '{name}'"),
            ));
        }
    }
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Problem::step("read", errors)),
    }
}

/// A version with its operations and findings.
pub(super) fn to_response(entity: &Version, spec: &str, description: &Description) -> Value {
    let findings = specs::findings(spec, description, &Ruleset::default(), Options::default());
    let operations: Vec<Value> = description
        .operations
        .iter()
        .map(|it| {
            let settings = entity.draft.operations.get(&it.id);
            let standard = entity.draft.components.first().map(|it| it.name.as_str());
            let component = settings.and_then(|it| it.component.as_deref()).or(standard);
            json!({
                "id": it.id, "method": it.method, "path": it.path, "summary": it.summary,
                "deprecated": it.deprecated, "tags": it.tags, "component": component,
                "hidden": settings.is_some_and(|it| it.hidden),
            })
        })
        .collect();
    let mut answer = json!(entity);
    answer["hash"] = entity.draft.hash().into();
    answer["format"] = description.format.as_str().into();
    answer["operations"] = Value::Array(operations);
    answer["findings"] = json!(findings);
    answer
}

pub async fn read(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let snapshot = api.snapshot().await?;
    let entity = snapshot.version(&name, &version)?;
    let spec = specs::text(&snapshot, &entity.draft.spec)?;
    let description = specs::read(&spec)?;
    let mut answer = to_response(&entity, &spec, &description);
    secrecy::hide(&caller, "versions", &mut answer);
    Ok(tagged(
        Json(answer).into_response(),
        snapshot.version_of(&entity_snapshot::version_key(&name, &version)),
    ))
}

/// Changes the draft. A document that is uploaded again is merged.
pub async fn put(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, version)): Path<(String, String)>,
    headers: HeaderMap,
    DocumentBody(body): DocumentBody,
) -> Result<Response, Problem> {
    let upload = Upload::read(&body)?;
    let spec = &upload.spec;
    let edit: Edit = parse(&upload.fields)?;
    edit.check_components()?;
    let fresh = spec.as_deref().map(specs::read).transpose()?;
    let key = entity_snapshot::version_key(&name, &version);
    if edit.has_plugins() {
        // Without a version, the write says so.
        let known: Option<Version> = api.snapshot().await?.find(&key)?;
        chains_of(&api, &caller, &known.unwrap_or_default().draft, &edit).await?;
    }
    let written = api
        .manage_document(&caller, &headers, &key, |snapshot| {
            let mut entity = snapshot.version(&name, &version)?;
            if entity.line == LineState::Retired {
                return Err(Problem::new(
                    StatusCode::CONFLICT,
                    format!("{name} {version} is retired"),
                ));
            }
            let (before, hash) = (
                specs::description(snapshot, &entity.draft.spec)?,
                entity.draft.hash(),
            );
            let mut merged = import::MergeResult::default();
            if let (Some(text), Some(fresh)) = (spec, &fresh) {
                merged = import::merge(&entity.draft.operations, &before.operations, &fresh.operations);
                entity.draft.operations.clone_from(&merged.operations);
                entity.draft.spec = specs::keep(snapshot, text)?;
                renaming::rename(snapshot, &entity, &merged.renamed)?;
                if entity.last_revision > 0 {
                    let last = snapshot.revision(&name, &version, entity.last_revision)?;
                    let last = specs::description(snapshot, &last.spec)?;
                    renames::note(&mut entity, &last.operations, &fresh.operations);
                }
            }
            apply(&mut entity, &edit);
            let description = fresh.clone().unwrap_or_else(|| Arc::clone(&before));
            check(&entity, &description)?;
            if entity.draft.hash() != hash {
                reviews::outdate(snapshot, (&name, &version), &hash, &caller.name())?;
                entity.draft.changed_by(&caller.name());
                entity.modified = now();
            }
            snapshot.put(&key, &entity)?;
            let difference = specs::difference(&before, &description);
            let text = specs::text(snapshot, &entity.draft.spec)?;
            Ok(WriteEffects::quiet(
                format!("draft of {name} {version}"),
                (entity, text, description, difference, merged),
            ))
        })
        .await?;
    let (entity, text, description, difference, merged) = &written.answer;
    let mut answer = upload.with_findings(to_response(entity, text, description));
    answer["diff"] = difference_json(difference);
    answer["gone"] = json!(merged.gone);
    Ok(written.tagged(Json(answer).into_response()))
}

/// Removes a version with its revisions, plans and tests. One that is published or has subscribers stays.
pub async fn delete(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, version)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let key = entity_snapshot::version_key(&name, &version);
    api.manage_document(&caller, &headers, &key, |snapshot| {
        let _there = snapshot.version(&name, &version)?;
        let published = snapshot.publications(|it| it.api == name && it.version == version)?;
        if !published.is_empty() {
            let places: Vec<String> = published.into_iter().collect();
            let detail = format!(
                "{name} {version} is published: remove {} first",
                places.join(", ")
            );
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        let of_version = format!("{name}/{version}/");
        let subscriptions: Vec<Subscription> = snapshot.list(&format!("{PREFIX}subscriptions/"))?;
        let is_over =
            |it: &Subscription| matches!(it.state, SubscriptionState::Closed | SubscriptionState::Rejected);
        let open = subscriptions
            .iter()
            .filter(|it| it.publication.starts_with(&of_version) && !is_over(it))
            .count();
        if open > 0 {
            let detail = format!("{name} {version} has {open} subscriptions: close them first");
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        for kind in ["revisions", "plans", "tests"] {
            for key in snapshot.keys(&format!("{PREFIX}{kind}/{of_version}")) {
                snapshot.remove(key.as_str());
            }
        }
        for approval in snapshot.list::<Approval>(&entity_snapshot::approval_key(""))? {
            if approval.publication.starts_with(&of_version) {
                snapshot.remove(&entity_snapshot::approval_key(&approval.id));
            }
        }
        snapshot.remove(&key);
        Ok(WriteEffects::quiet(
            format!("DELETE version {name} {version}"),
            (),
        ))
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Options of lint.
#[derive(Deserialize, Default, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LintRequest {
    /// The text of a severities file.
    rules: Option<String>,
    /// The path that the API is to be published under.
    base_path: Option<String>,
}

pub async fn lint(
    State(api): State<Arc<Api>>,
    Path((name, version)): Path<(String, String)>,
    body: String,
) -> Result<Json<Value>, Problem> {
    let wanted: LintRequest = parse(&body_of(&body)?)?;
    let snapshot = api.snapshot().await?;
    let entity = snapshot.version(&name, &version)?;
    let spec = specs::text(&snapshot, &entity.draft.spec)?;
    let description = specs::read(&spec)?;
    let ruleset = specs::ruleset(wanted.rules.as_deref())?;
    let options = Options {
        base_path: wanted.base_path.as_deref(),
    };
    let findings = specs::findings(&spec, &description, &ruleset, options);
    Ok(Json(
        json!({ "summary": summary(&findings), "findings": findings }),
    ))
}

/// How many findings there are of each level.
pub fn summary(findings: &[Finding]) -> LintSummary {
    let count = |level: Level| findings.iter().filter(|it| it.level == level).count() as u32;
    LintSummary {
        errors: count(Level::Error),
        warnings: count(Level::Warn),
        others: count(Level::Info) + count(Level::Hint),
    }
}

/// Why there is a revision.
#[derive(Deserialize, Default, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RevisionRequest {
    /// A few words.
    note: String,
}

/// Makes a revision of the draft. A draft that is as the last revision makes none.
pub fn freeze(
    snapshot: &mut EntitySnapshot,
    (name, version): (&str, &str),
    author: &str,
    note: &str,
    now: u64,
) -> Result<ApiRevision, Problem> {
    let mut entity = snapshot.version(name, version)?;
    if entity.last_revision > 0 {
        let last = snapshot.revision(name, version, entity.last_revision)?;
        if last.hash == entity.draft.hash() {
            return Ok(last);
        }
    }
    let spec = specs::text(snapshot, &entity.draft.spec)?;
    let description = specs::read(&spec)?;
    let findings = specs::findings(&spec, &description, &Ruleset::default(), Options::default());
    let revision = ApiRevision {
        lint: summary(&findings),
        author: author.to_owned(),
        note: note.to_owned(),
        created: now,
        ..entity.draft.revision(name, version, entity.last_revision + 1)
    };
    entity.last_revision = revision.number;
    entity.draft.frozen();
    snapshot.put(
        &entity_snapshot::revision_key(name, version, revision.number),
        &revision,
    )?;
    snapshot.put(&entity_snapshot::version_key(name, version), &entity)?;
    Ok(revision)
}

pub async fn revisions(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let snapshot = api.snapshot().await?;
    let all: Vec<ApiRevision> = snapshot.list(&format!("{PREFIX}revisions/{name}/{version}/"))?;
    let mut items: Vec<Value> = all.iter().map(|it| json!(it)).collect();
    for item in &mut items {
        secrecy::hide(&caller, "revisions", item);
    }
    Ok(Json(json!({ "items": items })))
}

pub async fn revise(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, version)): Path<(String, String)>,
    headers: HeaderMap,
    body: String,
) -> Result<Response, Problem> {
    let wanted: RevisionRequest = parse(&body_of(&body)?)?;
    let written = api
        .manage(&caller, &headers, |snapshot| {
            let revision = freeze(snapshot, (&name, &version), &caller.name(), &wanted.note, now())?;
            Ok(WriteEffects::quiet(
                format!("revision {} of {name} {version}", revision.number),
                revision,
            ))
        })
        .await?;
    Ok((StatusCode::CREATED, Json(json!(written.answer))).into_response())
}

/// Two revisions; 0 is the draft.
#[derive(Deserialize, schemars::JsonSchema)]
pub struct RevisionDiffQuery {
    /// The revision before.
    #[serde(deserialize_with = "revision_number")]
    from: u32,
    /// The revision after; left out: the draft.
    #[serde(default, deserialize_with = "revision_number")]
    to: u32,
}

fn revision_number<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(|_| {
        let message = format!("expected the number of a revision, or 0 for the draft, found '{text}'");
        serde::de::Error::custom(message)
    })
}

pub async fn compare(
    State(api): State<Arc<Api>>,
    Path((name, version)): Path<(String, String)>,
    Query(between): Query<RevisionDiffQuery>,
) -> Result<Json<Value>, Problem> {
    let snapshot = api.snapshot().await?;
    let of = |number: u32| -> Result<Arc<Description>, Problem> {
        let spec = match number {
            0 => snapshot.version(&name, &version)?.draft.spec,
            number => snapshot.revision(&name, &version, number)?.spec,
        };
        specs::description(&snapshot, &spec)
    };
    let difference = specs::difference(&*of(between.from)?, &*of(between.to)?);
    Ok(Json(difference_json(&difference)))
}

/// A difference as it is answered: whether it breaks callers, each operation, and all of it in lines.
fn difference_json(difference: &diff::Diff) -> Value {
    json!({
        "breaking": difference.is_breaking(),
        "operations": difference.operations,
        "text": diff::in_lines(difference),
    })
}

/// For which environment.
#[derive(Deserialize, schemars::JsonSchema)]
pub struct ExportQuery {
    /// The environment to take the revision and addresses from; left out: the draft.
    environment: Option<String>,
}

pub async fn export(
    State(api): State<Arc<Api>>,
    Path((name, version)): Path<(String, String)>,
    Query(wanted): Query<ExportQuery>,
) -> Result<Json<Value>, Problem> {
    let snapshot = api.snapshot().await?;
    let entity = snapshot.version(&name, &version)?;
    let mut plans = snapshot.plans(&name, &version)?;
    let (mut spec, mut settings, mut urls, mut publication) = (
        entity.draft.spec.clone(),
        entity.draft.operations.clone(),
        Vec::new(),
        None,
    );
    if let Some(environment) = &wanted.environment {
        let found = snapshot.publication(&format!("{name}/{version}/{environment}"))?;
        let revision = snapshot.revision(&name, &version, found.revision)?;
        (spec, settings) = (revision.spec, revision.operations);
        let as_published = |plan| renames::as_of(plan, &entity.renames, found.revision);
        plans = plans.iter().map(as_published).collect();
        urls = snapshot.environment(environment)?.base_urls;
        publication = Some(found);
    }
    let description = specs::description(&snapshot, &spec)?;
    let is_hidden = |id: &str| settings.get(id).is_some_and(|it| it.hidden);
    Ok(Json(export::export(
        &description,
        &urls,
        publication.as_ref(),
        &plans,
        is_hidden,
    )))
}
