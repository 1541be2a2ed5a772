//! Adoption: a version of routes that exist already, and the publish that takes them over.
//!
//! Adopting writes the version and nothing else: its routes stay as they are, whichever dialect or file they are in.

use super::clock::now;
use super::conflicts::{Conflict, ConflictEffect};
use super::entities::{body_of, parse};
use super::entity_snapshot::{self, EntitySnapshot};
use super::write_effects::WriteEffects;
use super::{specs, versions};
use crate::access::{Action, Caller, Scope};
use crate::api::compiled_config::model_of;
use crate::api::json_body::Json;
use crate::api::view::IndexedRow;
use crate::api::{Api, Problem};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_apis::adopt::{self, Adopted};
use weir_apis::entities::{Api as ApiEntity, Environment, Publication, PublicationState, Source, Version};
use weir_apis::{hash, naming};
use weir_dialect::DialectName;
use weir_model::overview::{List, Row};

/// The routes that are to be adopted.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdoptRequest {
    /// The dialect that they are written in, such as `native`.
    dialect: String,
    /// The service that they lead to.
    service: String,
    /// The version that is made of them.
    version: String,
}

pub async fn adopt(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Result<Response, Problem> {
    let wanted: AdoptRequest = parse(&body_of(&body)?)?;
    // It shows what others have written.
    if !caller.can(Action::ConfigurationRead, &Scope::Everything) {
        return Err(Problem::forbidden(
            "adopting routes requires the right to read the whole configuration",
        ));
    }
    if !naming::is_version(&wanted.version) {
        let detail = format!(
            "'{}' is not a valid version: expected {}",
            wanted.version,
            naming::EXPECTED_VERSION
        );
        return Err(Problem::bad(detail));
    }
    let (adopted, source) = found(&api, &wanted).await?;
    let text =
        serde_json::to_string_pretty(&adopted.document).map_err(|error| Problem::bad(error.to_string()))?;
    let description = specs::read(&text)?;
    let key = entity_snapshot::version_key(&name, &wanted.version);
    let written = api
        .manage(&caller, &headers, |snapshot| {
            snapshot.get::<ApiEntity>(&entity_snapshot::api_key(&name))?;
            if snapshot.bytes(&key).is_some() {
                let detail = format!("{name} {} exists", wanted.version);
                return Err(Problem::new(StatusCode::CONFLICT, detail));
            }
            let mut entity = Version {
                api: name.clone(),
                version: wanted.version.clone(),
                source: Some(Source {
                    hash: hash_of(snapshot, &source.documents),
                    ..source.clone()
                }),
                created: now(),
                modified: now(),
                ..Version::default()
            };
            entity.draft.spec = specs::keep(snapshot, &text)?;
            entity.draft.changed_by(&caller.name());
            entity.draft.components.clone_from(&adopted.components);
            entity.draft.operations.clone_from(&adopted.operations);
            snapshot.put(&key, &entity)?;
            let (dialect, service) = (&source.dialect, &source.service);
            let note = format!("adopt {service} of {dialect} as {name} {}", wanted.version);
            Ok(WriteEffects::quiet(note, entity))
        })
        .await?;
    let mut answer = versions::to_response(&written.answer, &text, &description);
    answer["runtime"] = json!(adopted.runtime);
    answer["routes"] = json!(adopted.routes);
    answer["notes"] = json!(adopted.notes);
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

/// Finds the routes of a service, the version to make of them, and their positions.
async fn found(api: &Arc<Api>, wanted: &AdoptRequest) -> Result<(Adopted, Source), Problem> {
    let refuse = |place: &str, message: String| Problem::step("read", vec![(place.to_owned(), message)]);
    let unknown = || refuse("dialect", format!("there is no dialect '{}'", wanted.dialect));
    let dialect = DialectName::read(&wanted.dialect).ok_or_else(unknown)?;
    let (documents, _) = api.store.read("").await?;
    let (service, version) = (wanted.service.clone(), wanted.version.clone());
    let working = Arc::clone(api);
    let work = move || {
        let adopted = adopt::adopt(&model_of(&working, &documents), dialect, &service, &version)?;
        let [routes, plugins] = [List::Routes, List::Plugins].map(|list| working.index.rows(list));
        let of_dialect = |it: &&Arc<IndexedRow>| it.row.dialect == dialect;
        let is_of_it = |it: &&Arc<IndexedRow>| {
            let is_known = |name: &String| adopted.routes.contains(name);
            it.row.service.as_ref() == Some(&service) || is_known(&it.row.name) || is_known(&it.own_id)
        };
        let routes: Vec<&Arc<IndexedRow>> = routes.iter().filter(of_dialect).filter(is_of_it).collect();
        let names = routes.iter().flat_map(|it| [&it.row.name, &it.own_id]);
        let applied: BTreeSet<String> = names.map(|it| format!("route {it}")).collect();
        let is_for_them = |it: &&Arc<IndexedRow>| {
            let mut applies_to = it.row.applies_to.iter().flat_map(|it| it.split(", "));
            applies_to.any(|it| applied.contains(it))
        };
        let plugins = plugins.iter().filter(of_dialect).filter(is_for_them);
        let all: Vec<&Row> = routes.iter().copied().chain(plugins).map(|it| &it.row).collect();
        let unique = |of: fn(&Row) -> Option<&String>| -> Vec<String> {
            let found: BTreeSet<String> = all.iter().filter_map(|it| of(it).cloned()).collect();
            found.into_iter().collect()
        };
        let source = Source {
            dialect: dialect.to_string(),
            service,
            documents: unique(|it| it.document.as_ref()),
            files: unique(|it| it.file.as_ref()),
            hash: String::new(),
            taken_over: None,
        };
        Ok((adopted, source))
    };
    let worked = tokio::task::spawn_blocking(work).await;
    let worked =
        worked.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    worked.map_err(|message: String| refuse("service", message))
}

/// The hash of the content of documents.
fn hash_of(snapshot: &EntitySnapshot, documents: &[String]) -> String {
    let mut all = Vec::new();
    for key in documents {
        let bytes = snapshot.bytes(key).unwrap_or_default();
        // Lengths keep the end of one apart from the beginning of the next.
        all.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        all.extend_from_slice(bytes);
    }
    hash::of_bytes(&all)
}

/// Removes the routes that a version was adopted from: its publications take their calls from now on.
pub fn remove_adopted(
    snapshot: &mut EntitySnapshot,
    version: &mut Version,
    environment: &str,
) -> Result<(), Problem> {
    let refuse = |detail: String| Err(Problem::new(StatusCode::CONFLICT, format!("take_over: {detail}")));
    let Some(source) = version.source.as_mut().filter(|it| it.taken_over.is_none()) else {
        return refuse("the version was not adopted, or its routes were already taken over".to_owned());
    };
    if !source.files.is_empty() {
        let files = source.files.join(", ");
        return refuse(format!("the routes are in {files}: remove them there"));
    }
    if !source.hash.is_empty() && source.hash != hash_of(snapshot, &source.documents) {
        let documents = source.documents.join(", ");
        return refuse(format!(
            "the routes have changed since they were adopted, and the changes would be lost ({documents}): adopt them again as another version"
        ));
    }
    // The routes serve gateways of all environments.
    let environments: Vec<Environment> = snapshot.list(&entity_snapshot::environment_key(""))?;
    let is_live = |it: &Environment| -> Result<bool, Problem> {
        let id = format!("{}/{}/{}", version.api, version.version, it.name);
        let known: Option<Publication> = snapshot.find(&entity_snapshot::publication_key(&id))?;
        Ok(known.is_some_and(|it| it.state == PublicationState::Live))
    };
    let mut missing = Vec::new();
    for it in environments.iter().filter(|it| it.name != environment) {
        if !is_live(it)? {
            missing.push(it.name.clone());
        }
    }
    if !missing.is_empty() {
        return refuse(format!(
            "the routes serve all environments, and there is no publication in {} yet",
            missing.join(", ")
        ));
    }
    for key in &source.documents {
        snapshot.remove(key);
    }
    source.taken_over = Some(now());
    Ok(())
}

/// Routes that a version was adopted from and that are still there, without the conflicts that are known.
pub fn conflicts(snapshot: &EntitySnapshot, version: &Version, known: &[Conflict]) -> Vec<Conflict> {
    let source = version.source.as_ref().filter(|it| it.taken_over.is_none());
    let Some(source) = source else {
        return Vec::new();
    };
    let in_store = source
        .documents
        .iter()
        .filter(|key| snapshot.bytes(key).is_some());
    let conflict = |with: &String| Conflict {
        with: with.clone(),
        route: source.service.clone(),
        effect: ConflictEffect::Loses,
        is_tie: false,
        example: "the calls that it was adopted for: 'take_over' removes it".to_owned(),
    };
    let all = in_store.chain(&source.files).map(conflict);
    all.filter(|it| !known.iter().any(|other| other.with == it.with))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(files: &[&str]) -> Version {
        Version {
            api: "orders".into(),
            version: "1".into(),
            source: Some(Source {
                documents: vec!["native/services/orders".into()],
                files: files.iter().map(|it| (*it).to_owned()).collect(),
                ..Source::default()
            }),
            ..Version::default()
        }
    }

    #[test]
    fn routes_are_taken_over_once_and_where_nothing_is_lost() {
        let mut snapshot = EntitySnapshot::new(Vec::new());
        let environment = |name: &str| Environment {
            name: name.to_owned(),
            ..Environment::default()
        };
        for name in ["test", "prod"] {
            snapshot
                .put(&entity_snapshot::environment_key(name), &environment(name))
                .expect("put");
        }
        snapshot.put_bytes("native/services/orders", b"{}").expect("put");
        let refused = |snapshot: &mut EntitySnapshot, version: &mut Version| {
            let refused = remove_adopted(snapshot, version, "test").expect_err("refused");
            refused.to_string()
        };
        assert!(refused(&mut snapshot, &mut version(&["routes.yaml"])).contains("routes.yaml"));
        let mut adopted = version(&[]);
        assert!(refused(&mut snapshot, &mut adopted).contains("no publication in prod"));
        assert_eq!(conflicts(&snapshot, &adopted, &[]).len(), 1);
        let live = Publication::default();
        snapshot
            .put(&entity_snapshot::publication_key("orders/1/prod"), &live)
            .expect("put");
        let known = adopted.source.as_ref().expect("adopted").documents.clone();
        adopted.source.as_mut().expect("adopted").hash = hash_of(&snapshot, &known);
        snapshot
            .put_bytes("native/services/orders", b"{\"routes\":[]}")
            .expect("put");
        assert!(refused(&mut snapshot, &mut adopted).contains("have changed"));
        snapshot.put_bytes("native/services/orders", b"{}").expect("put");
        remove_adopted(&mut snapshot, &mut adopted, "test").expect("taken over");
        assert!(snapshot.bytes("native/services/orders").is_none());
        assert!(conflicts(&snapshot, &adopted, &[]).is_empty());
        assert!(refused(&mut snapshot, &mut adopted).contains("already"));
        assert!(refused(&mut snapshot, &mut Version::default()).contains("not adopted"));
    }
}
