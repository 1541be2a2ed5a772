//! `POST /api/v1/explain`: what would happen to a call, by what is served now, by an earlier revision, by a draft that is
//! not published, or by documents that are not stored. Nothing is sent and nothing is changed.

mod diagnosis;
pub mod effects;
pub mod route_access;

use super::apis::{self, PlanDiagnosis};
use super::compiled_config::{CompiledConfig, UnservedDocument, files};
use super::health::UpstreamHealth;
use super::history::served_difference;
use super::{Api, Problem};
use crate::access::NoAudit;
use crate::api::json_body::{Json, JsonBody};
use crate::explain::{ExplainedCall, Explanation};
use crate::follow::DialectModels;
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use weir_dialect::{DialectSet, ENVIRONMENTS};
use weir_model::{Model, document};
use weir_store::{Document, Revision};

/// A call to explain, and the configuration to explain it by.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainRequest {
    /// The method; left out: GET.
    #[serde(default)]
    method: Option<String>,
    /// The URL, or a path alone.
    url: String,
    /// Headers.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The body.
    #[serde(default)]
    body: String,
    /// The client's address; left out: 127.0.0.1.
    #[serde(default)]
    client: Option<IpAddr>,
    /// The server name of the TLS handshake; left out: the URL's host.
    #[serde(default)]
    sni: Option<String>,
    /// The consumer of calls without a valid credential: an id or a user name.
    #[serde(default)]
    consumer: Option<String>,
    /// The environment whose publications count; left out: those that this process serves.
    #[serde(default)]
    environment: Option<String>,
    /// The configuration right after this revision; left out: that of now.
    #[serde(default)]
    revision: Option<u64>,
    /// A draft, as if it were published to `environment`.
    #[serde(default)]
    draft: Option<DraftRef>,
    /// Documents by their keys, such as `native/routes/shop`, that are taken for stored; `null`: as if it were gone.
    #[serde(default)]
    documents: BTreeMap<String, Value>,
    /// The text of a configuration file of any dialect; the call is explained by it alone.
    #[serde(default)]
    configuration: Option<String>,
}

/// A draft that is not published.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DraftRef {
    /// The API.
    pub api: String,
    /// The version.
    pub version: String,
    /// The runtime in the environment, as a publish has it; left out: as it is published there.
    #[serde(default)]
    pub runtime: Option<Value>,
}

/// The explanation of a call.
#[derive(Serialize, JsonSchema)]
pub struct ExplainResponse {
    #[serde(flatten)]
    explanation: Explanation,
    /// The revision of the store that was used.
    revision: u64,
    /// The publication that the route belongs to: `API/VERSION/ENVIRONMENT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    publication: Option<String>,
    /// Its operation; empty: the route is of none.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<String>,
    /// The plans of the publication in the order in which they are tried, and why each accepts the call or not.
    plans: Vec<PlanDiagnosis>,
    /// The health of the upstream, as the gateway of this process sees it.
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<UpstreamHealth>,
    /// Documents that would not be served, and why.
    skipped: Vec<UnservedDocument>,
    /// What was not checked if no route matches the call: nothing is published in the environments that are served.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// Answers `POST /api/v1/explain`.
pub async fn explain(
    State(api): State<Arc<Api>>,
    JsonBody(wanted): JsonBody<ExplainRequest>,
) -> Result<Response, Problem> {
    let call = call_of(&wanted)?;
    let (documents, head) = api.store.read("").await?;
    let environment = wanted.environment.as_deref();
    // Other documents than those of now may have brought their environment.
    let dialects = match wanted.revision.is_some() || !wanted.documents.is_empty() {
        true => of_environment(&api, environment),
        false => dialects_in(&api, environment, documents.iter().map(|it| it.key.as_str()))?,
    };
    let mut changes: BTreeMap<String, Option<Arc<[u8]>>> = BTreeMap::new();
    if let Some(revision) = wanted.revision {
        if revision > head.0 {
            return Err(Problem::not_found(format_args!("revision {revision}")));
        }
        let then = served_difference(&*api.store, &dialects, Revision(revision), head).await?;
        changes.extend(
            then.into_iter()
                .map(|(key, it)| (key.as_str().to_owned(), it.before)),
        );
    }
    let revision = wanted.revision.unwrap_or(head.0);
    let working = Arc::clone(&api);
    let explained = tokio::task::spawn_blocking(move || {
        let asked = ExplainJob {
            api: &working,
            wanted: &wanted,
            dialects,
            documents,
        };
        asked.explain(&call, revision, changes)
    });
    let explained = explained
        .await
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))??;
    // It is asked with a body, and changes nothing.
    Ok((Extension(NoAudit), Json(explained)).into_response())
}

/// The dialects with the documents of an environment; without one, of those that this process serves.
fn of_environment(api: &Api, environment: Option<&str>) -> DialectSet {
    let dialects = api.options.dialects.clone();
    match environment {
        Some(name) => dialects.in_environments(vec![name.to_owned()]),
        None => dialects,
    }
}

/// The same of an environment that there is, among stored documents or those of the call.
fn dialects_in<'k>(
    api: &Api,
    environment: Option<&str>,
    mut keys: impl Iterator<Item = &'k str>,
) -> Result<DialectSet, Problem> {
    if let Some(name) = environment {
        let (entity, below) = (
            format!("{}{name}", apis::ENVIRONMENT_KEYS),
            format!("{ENVIRONMENTS}{name}/"),
        );
        let is_known = api.options.dialects.environments().iter().any(|it| it == name)
            || keys.any(|key| key == entity || key.starts_with(&below));
        if !is_known {
            return Err(Problem::not_found(format_args!("the environment '{name}'")));
        }
    }
    Ok(of_environment(api, environment))
}

fn call_of(wanted: &ExplainRequest) -> Result<ExplainedCall, Problem> {
    let refuse = |message: String| Problem::step("read", vec![("url".to_owned(), message)]);
    let headers: Vec<String> = wanted
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let text = format!("{} {}", wanted.method.as_deref().unwrap_or("GET"), wanted.url);
    let client = wanted.client.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    Ok(ExplainedCall {
        sni: wanted.sni.clone(),
        body: wanted.body.clone(),
        consumer: wanted.consumer.clone(),
        ..ExplainedCall::parse(&text, &headers, client).map_err(refuse)?
    })
}

/// An explanation that is being worked on.
struct ExplainJob<'a> {
    api: &'a Api,
    wanted: &'a ExplainRequest,
    dialects: DialectSet,
    documents: Vec<Document>,
}

impl ExplainJob<'_> {
    fn explain(
        self,
        call: &ExplainedCall,
        revision: u64,
        mut changes: BTreeMap<String, Option<Arc<[u8]>>>,
    ) -> Result<ExplainResponse, Problem> {
        let mut models = DialectModels::new(&self.dialects);
        let mut skipped = Vec::new();
        if let Some(text) = &self.wanted.configuration {
            models.set_files(self.model_of_text(text)?);
        } else {
            if let Some(model) = files(self.api, &self.dialects, &mut skipped) {
                models.set_files(model);
            }
            for it in &self.documents {
                models.apply(it.key.as_str(), Some(&it.value));
            }
            self.changes(&mut changes)?;
            for (key, value) in &changes {
                models.apply(key, value.as_deref());
            }
        }
        let prepared = CompiledConfig::of_models(self.api, &self.dialects, &mut models)?;
        let explanation = prepared.explain(call);
        let note = explanation.route.is_none().then(|| self.unserved()).flatten();
        skipped.extend(prepared.skipped);
        let source = self.api.options.health.as_deref().filter(|_| self.is_of_now());
        let upstream = explanation.route.as_ref().and_then(|it| it.upstream.as_ref());
        let health = source
            .zip(upstream)
            .and_then(|(source, it)| source.upstream(&it.name));
        let (publication, plans) = diagnosis::of(&explanation, call, self.documents)?;
        let operation = publication.is_some().then(|| {
            let label = explanation.labels.get("operation");
            label.cloned().unwrap_or_default()
        });
        Ok(ExplainResponse {
            explanation,
            operation,
            revision,
            publication,
            plans,
            health,
            skipped,
            note,
        })
    }

    /// What is said of a call that no route takes, if the environments of this process have nothing: a control plane that serves
    /// none has the one that is named in no flag.
    fn unserved(&self) -> Option<String> {
        let keys = || self.documents.iter().map(|it| it.key.as_str());
        let own = self.dialects.environment_prefixes();
        let is_served = keys().any(|key| own.iter().any(|prefix| key.starts_with(prefix)));
        if self.wanted.environment.is_some() || self.wanted.configuration.is_some() || is_served {
            return None;
        }
        let served = self.dialects.environments();
        let others: Vec<&str> = keys()
            .filter_map(|key| key.strip_prefix(apis::ENVIRONMENT_KEYS))
            .filter(|name| !served.iter().any(|it| it == name))
            .collect();
        (!others.is_empty()).then(|| {
            format!(
                "nothing is published in the environments that this process serves, so no publication was checked: \
                 set 'environment' to one of: {}",
                others.join(", ")
            )
        })
    }

    /// Whether it is about what is served now.
    fn is_of_now(&self) -> bool {
        let wanted = self.wanted;
        wanted.revision.is_none()
            && wanted.draft.is_none()
            && wanted.documents.is_empty()
            && wanted.configuration.is_none()
    }

    /// The documents that a draft would make, and those that are given.
    fn changes(&self, changes: &mut BTreeMap<String, Option<Arc<[u8]>>>) -> Result<(), Problem> {
        if let Some(draft) = &self.wanted.draft {
            let environment = self
                .wanted
                .environment
                .as_deref()
                .ok_or_else(|| Problem::bad("expected the environment of the draft in 'environment'"))?;
            changes.extend(apis::documents_of_draft(
                self.documents.clone(),
                draft,
                environment,
            )?);
        }
        for (key, value) in &self.wanted.documents {
            let bytes = (!value.is_null()).then(|| Arc::from(value.to_string().into_bytes()));
            changes.insert(key.clone(), bytes);
        }
        Ok(())
    }

    fn model_of_text(&self, text: &str) -> Result<Model, Problem> {
        let read = document::parse(text).map_err(|found| Problem::invalid(&[found]))?;
        let dialect = self
            .dialects
            .of_document(&read)
            .or_else(|| self.dialects.of_text(text));
        let dialect = dialect.ok_or_else(|| {
            Problem::bad(
                "'configuration' is not in a dialect that Weir knows: it has none of their top-level keys",
            )
        })?;
        let (model, _) = dialect
            .translate(&read)
            .map_err(|found| Problem::invalid(&found))?;
        Ok(model)
    }
}
