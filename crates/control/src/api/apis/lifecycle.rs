//! What happens to a publication after it was published: deprecation, retirement, canaries, switching off, removal.

use super::commit::{Done, now};
use super::entities::{body_of, parse};
use super::library;
use crate::access::Caller;
use crate::api::{Api, Problem};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_apis::entities::{
    Canary, Deprecation, HistoryItem, LineState, Publication, PublicationState, Version,
};
use weir_apis::states;

type Names = Path<(String, String, String)>;

/// Changes a publication and its version, renders it, and notes the step.
async fn change(
    api: &Arc<Api>,
    caller: &Caller,
    headers: &HeaderMap,
    (name, version, environment): &(String, String, String),
    (action, note): (&'static str, String),
    work: impl Fn(&mut Publication, &mut Version) -> Result<(), Problem> + Send + Sync,
) -> Result<Json<Value>, Problem> {
    let id = format!("{name}/{version}/{environment}");
    let written = api
        .manage(caller, headers, |library| {
            let mut publication = library.publication(&id)?;
            let mut entity = library.version(name, version)?;
            work(&mut publication, &mut entity)?;
            if let Some(canary) = &publication.canary {
                library.revision(name, version, canary.revision)?;
            }
            publication.note(HistoryItem {
                action: action.to_owned(),
                revision: publication.revision,
                hash: publication.hash.clone(),
                by: caller.name(),
                at: now(),
                note: note.clone(),
                ..HistoryItem::default()
            });
            library.put(&library::publication_key(&id), &publication)?;
            library.put(&library::version_key(name, version), &entity)?;
            Ok(Done {
                note: format!("{action} {name} {version} in {environment}"),
                publications: BTreeSet::from([id.clone()]),
                answer: publication,
            })
        })
        .await?;
    Ok(Json(json!(written.answer)))
}

fn note_of(body: &mut Value) -> String {
    let fields = body.as_object_mut();
    let note = fields.and_then(|it| it.remove("note"));
    note.and_then(|it| it.as_str().map(str::to_owned))
        .unwrap_or_default()
}

pub async fn deprecate(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(names): Names,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, Problem> {
    let mut body = body_of(&body)?;
    let note = note_of(&mut body);
    let deprecation: Deprecation = parse(&body)?;
    if deprecation
        .sunset
        .is_some_and(|sunset| sunset < deprecation.since)
    {
        return Err(Problem::step(
            "read",
            vec![(
                "sunset".to_owned(),
                "expected a time that is not before 'since'".to_owned(),
            )],
        ));
    }
    change(
        &api,
        &caller,
        &headers,
        &names,
        ("deprecate", note),
        |publication, version| {
            version.line = states::line(version.line, LineState::Deprecated)?;
            publication.deprecation = Some(deprecation.clone());
            Ok(())
        },
    )
    .await
}

/// Takes a deprecation back: people err.
pub async fn undeprecate(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(names): Names,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    change(
        &api,
        &caller,
        &headers,
        &names,
        ("undeprecate", String::new()),
        |publication, version| {
            version.line = states::line(version.line, LineState::Published)?;
            publication.deprecation = None;
            Ok(())
        },
    )
    .await
}

pub async fn retire(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(names): Names,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, Problem> {
    let note = note_of(&mut body_of(&body)?);
    change(
        &api,
        &caller,
        &headers,
        &names,
        ("retire", note),
        |publication, version| {
            // Other environments of the version may be retired already.
            if version.line != LineState::Retired {
                version.line = states::line(version.line, LineState::Retired)?;
            }
            publication.retired = true;
            publication.canary = None;
            Ok(())
        },
    )
    .await
}

pub async fn canary(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(names): Names,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, Problem> {
    let mut body = body_of(&body)?;
    let note = note_of(&mut body);
    let canary: Canary = parse(&body)?;
    check_canary(&canary)?;
    change(
        &api,
        &caller,
        &headers,
        &names,
        ("canary", note),
        |publication, _| {
            publication.canary = Some(Canary {
                started: now(),
                ..canary.clone()
            });
            Ok(())
        },
    )
    .await
}

/// Says what is wrong with shares and guards.
fn check_canary(canary: &Canary) -> Result<(), Problem> {
    let mut wrong = Vec::new();
    let shares = [("share".to_owned(), canary.share)].into_iter().chain(
        canary
            .steps
            .iter()
            .enumerate()
            .map(|(index, it)| (format!("steps[{index}].share"), it.share)),
    );
    for (place, share) in shares {
        if share > 10_000 {
            let message = "expected a share in hundredths of a percent, 0 to 10000".to_owned();
            wrong.push((place, message));
        }
    }
    for (index, guard) in canary.guards.iter().enumerate() {
        if let Err(error) = super::guards::rule(&Publication::default(), Vec::new(), guard).check() {
            wrong.push((format!("guards[{index}].{}", error.field), error.message));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Problem::step("read", wrong)),
    }
}

pub async fn abort_canary(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(names): Names,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    change(
        &api,
        &caller,
        &headers,
        &names,
        ("abort canary", String::new()),
        |publication, _| {
            publication.canary = None;
            Ok(())
        },
    )
    .await
}

pub async fn disable(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(names): Names,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, Problem> {
    let note = note_of(&mut body_of(&body)?);
    change(
        &api,
        &caller,
        &headers,
        &names,
        ("disable", note),
        |publication, _| {
            publication.state = PublicationState::Disabled;
            Ok(())
        },
    )
    .await
}

pub async fn enable(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(names): Names,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, Problem> {
    let note = note_of(&mut body_of(&body)?);
    change(
        &api,
        &caller,
        &headers,
        &names,
        ("enable", note),
        |publication, _| {
            publication.state = PublicationState::Live;
            Ok(())
        },
    )
    .await
}

pub async fn remove(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((name, version, environment)): Names,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let id = format!("{name}/{version}/{environment}");
    api.manage(&caller, &headers, |library| {
        let _there = library.publication(&id)?;
        library.remove(&library::publication_key(&id));
        Ok(Done {
            note: format!("remove {name} {version} from {environment}"),
            publications: BTreeSet::from([id.clone()]),
            answer: (),
        })
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}
