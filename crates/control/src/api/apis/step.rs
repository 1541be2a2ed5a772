//! A call that changes a publication: which one, in whose name, and its body.

use super::clock::now;
use super::commit::{Write, WriteOptions};
use super::conflict_search::{ConflictSearch, ConflictsFound};
use super::entities::{body_of, parse};
use super::entity_snapshot::{self, EntitySnapshot};
use super::publish::unforced;
use super::write_effects::WriteEffects;
use crate::access::{Action, Caller, Scope};
use crate::api::json_body::Json;
use crate::api::{Api, Problem, is_dry_run};
use axum::Extension;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::HeaderMap;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_apis::entities::{HistoryItem, LineState, Publication, Version};

/// Whether a version is still published elsewhere: it is over when somebody has retired the last one. A sunset that has come may be
/// taken back.
fn has_others(snapshot: &EntitySnapshot, publication: &Publication) -> Result<bool, Problem> {
    let (api, version) = (&publication.api, &publication.version);
    let all: Vec<Publication> =
        snapshot.list(&entity_snapshot::publication_key(&format!("{api}/{version}/")))?;
    let mut others = all.iter().filter(|it| it.environment != publication.environment);
    Ok(others.any(|it| !it.is_retired_by_hand(now())))
}

/// A call that changes a publication.
pub struct Step {
    pub api: Arc<Api>,
    pub caller: Caller,
    pub headers: HeaderMap,
    pub name: String,
    pub version: String,
    pub environment: String,
    /// The body; an empty map if the call has none.
    pub body: Value,
}

impl FromRequest<Arc<Api>> for Step {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let wrong = |error: &dyn std::fmt::Display| Problem::bad(error.to_string());
        let Extension(caller) = Extension::<Caller>::from_request_parts(&mut parts, api)
            .await
            .map_err(|error| wrong(&error))?;
        let Path((name, version, environment)) =
            Path::<(String, String, String)>::from_request_parts(&mut parts, api)
                .await
                .map_err(|error| wrong(&error))?;
        let headers = parts.headers.clone();
        let text = String::from_request(Request::from_parts(parts, body), api)
            .await
            .map_err(|error| wrong(&error))?;
        Ok(Self {
            api: Arc::clone(api),
            caller,
            headers,
            name,
            version,
            environment,
            body: body_of(&text)?,
        })
    }
}

impl Step {
    /// `API/VERSION/ENVIRONMENT`.
    pub fn id(&self) -> String {
        format!("{}/{}/{}", self.name, self.version, self.environment)
    }

    /// Takes the note out of the body.
    pub fn take_note(&mut self) -> String {
        let fields = self.body.as_object_mut();
        let note = fields.and_then(|it| it.remove("note"));
        note.and_then(|it| it.as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// Takes `force` out of the body: whether the step is made although others take its calls.
    pub fn take_force(&mut self) -> Result<bool, Problem> {
        let fields = self.body.as_object_mut();
        match fields.and_then(|it| it.remove("force")) {
            None => Ok(false),
            Some(Value::Bool(force)) => Ok(force),
            Some(other) => {
                let message = format!("expected true or false, found {other}");
                Err(Problem::step("read", vec![("force".to_owned(), message)]))
            }
        }
    }

    /// The body as a value.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        parse(&self.body)
    }

    /// Refuses what is not allowed in a protected environment. Going back to what is approved is.
    pub fn permit(&self, snapshot: &EntitySnapshot, action: &str) -> Result<(), Problem> {
        let scope = Scope::Environment(self.environment.clone());
        let is_open = action == "abort canary" || !snapshot.environment(&self.environment)?.protected;
        match is_open || self.caller.can(Action::ApisPublishProtected, &scope) {
            true => Ok(()),
            false => Err(Problem::forbidden(format!(
                "{} is protected: '{action}' requires '{}' there; approvals are only for publishing",
                self.environment,
                Action::ApisPublishProtected.as_str()
            ))),
        }
    }

    /// Changes the publication and its version, renders it, and notes the step. A step that finds all as it should be is no
    /// commit, and the answer says so.
    pub async fn change(
        self,
        action: &'static str,
        work: impl Fn(&mut Publication, &mut Version) -> Result<(), Problem> + Send + Sync,
    ) -> Result<Json<Value>, Problem> {
        self.change_unless(action, work, None).await
    }

    /// The same for a step that may take calls of others, which refuses it, unless it is forced, or an earlier step was
    /// forced for the same reasons.
    pub async fn change_calls(
        self,
        action: &'static str,
        work: impl Fn(&mut Publication, &mut Version) -> Result<(), Problem> + Send + Sync,
        force: bool,
    ) -> Result<Json<Value>, Problem> {
        self.change_unless(action, work, Some(force)).await
    }

    /// `force`: whether it may take calls of others; `None`: it takes none.
    async fn change_unless(
        mut self,
        action: &'static str,
        work: impl Fn(&mut Publication, &mut Version) -> Result<(), Problem> + Send + Sync,
        force: Option<bool>,
    ) -> Result<Json<Value>, Problem> {
        let note = self.take_note();
        let options = WriteOptions {
            author: &self.caller.name(),
            now: now(),
            is_dry: is_dry_run(&self.headers),
            reports_refusal: false,
        };
        let write = StepWrite {
            step: &self,
            action,
            note,
            work,
            force,
        };
        let written = self.api.commit_write(options, write).await?;
        let (publication, is_unchanged) = written.answer;
        let mut answer = json!(publication);
        if is_unchanged {
            answer["unchanged"] = true.into();
        }
        Ok(Json(answer))
    }
}

/// The write of a step.
struct StepWrite<'s, W> {
    step: &'s Step,
    action: &'static str,
    note: String,
    work: W,
    /// Whether it may take calls of others; `None`: it takes none.
    force: Option<bool>,
}

impl<W> Write for StepWrite<'_, W>
where
    W: Fn(&mut Publication, &mut Version) -> Result<(), Problem> + Send + Sync,
{
    /// The publication, and whether it is as it was.
    type Answer = (Publication, bool);

    fn change(&mut self, snapshot: &mut EntitySnapshot) -> Result<WriteEffects<Self::Answer>, Problem> {
        let (step, action) = (self.step, self.action);
        let (name, version, id) = (&step.name, &step.version, step.id());
        step.permit(snapshot, action)?;
        let mut publication = snapshot.publication(&id)?;
        let mut entity = snapshot.version(name, version)?;
        let before = (publication.clone(), entity.clone());
        (self.work)(&mut publication, &mut entity)?;
        if entity.line == LineState::Retired && has_others(snapshot, &publication)? {
            entity.line = before.1.line;
        }
        if (&publication, &entity) == (&before.0, &before.1) {
            return Ok(WriteEffects::quiet("", (publication, true)));
        }
        if let Some(canary) = &publication.canary {
            snapshot.revision(name, version, canary.revision)?;
        }
        publication.note(HistoryItem {
            action: action.to_owned(),
            revision: publication.revision,
            hash: publication.hash.clone(),
            by: step.caller.name(),
            at: now(),
            note: self.note.clone(),
            ..HistoryItem::default()
        });
        snapshot.put(&entity_snapshot::publication_key(&id), &publication)?;
        snapshot.put(&entity_snapshot::version_key(name, version), &entity)?;
        Ok(WriteEffects {
            note: format!("{action} {name} {version} in {}", step.environment),
            publications: BTreeSet::from([id]),
            answer: (publication, false),
        })
    }

    fn conflict_search(&self, (publication, is_unchanged): &Self::Answer) -> Option<ConflictSearch> {
        (self.force.is_some() && !is_unchanged).then(|| ConflictSearch {
            publication: publication.clone(),
        })
    }

    fn settle(
        &self,
        snapshot: &mut EntitySnapshot,
        (publication, _): &mut Self::Answer,
        found: ConflictsFound,
    ) -> Result<(), Problem> {
        let messages = found.new_messages(publication);
        match (messages.is_empty(), self.force) {
            (true, _) => Ok(()),
            (false, Some(true)) => {
                found.permit_force(&self.step.caller, &self.step.name, &messages)?;
                if let Some(item) = publication.history.iter_mut().last() {
                    item.forced = messages;
                }
                snapshot.put(&entity_snapshot::publication_key(&publication.id()), publication)
            }
            (false, _) => Err(unforced("conflicts", "others take these calls", &messages)),
        }
    }
}
