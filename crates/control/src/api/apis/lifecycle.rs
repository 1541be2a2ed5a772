//! Changes of a publication after it was published: deprecation, retirement, canaries, switching off, removal.

use super::chains;
use super::clock::now;
use super::entity_snapshot::{self, EntitySnapshot, PREFIX};
use super::step::Step;
use super::write_effects::WriteEffects;
use crate::api::Problem;
use crate::api::json_body::Json;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use weir_apis::entities::{
    Canary, CanaryKey, Deprecation, LineState, Product, Publication, PublicationState, Subscription,
    SubscriptionState, Version,
};
use weir_apis::states;

type JsonResult = Result<Json<Value>, Problem>;

pub async fn deprecate(mut step: Step) -> JsonResult {
    let note = step.take_note();
    let asked: Deprecation = step.parse()?;
    let is_dated = step.body.get("since").is_some();
    step.body["note"] = note.into();
    step.change("deprecate", |publication, version| {
        let mut deprecation = asked.clone();
        if !is_dated {
            // Callers have been told a date already: it stands.
            let known = publication.deprecation.as_ref();
            deprecation.since = known.map_or_else(now, |it| it.since);
        }
        check_deprecation(&deprecation)?;
        version.line = states::line(version.line, LineState::Deprecated)?;
        let is_by_hand = publication.is_retired_by_hand(now());
        publication.deprecation = Some(deprecation);
        // A sunset that has come may be put off. Who retires by hand ends it for good.
        publication.retired &= is_by_hand || publication.is_past_sunset(now());
        Ok(())
    })
    .await
}

/// Checks times and links. Links stand in a header of every answer, and browsers follow them.
fn check_deprecation(deprecation: &Deprecation) -> Result<(), Problem> {
    let mut wrong = Vec::new();
    if deprecation
        .sunset
        .is_some_and(|sunset| sunset < deprecation.since)
    {
        wrong.push(("sunset", "expected a time that is not before 'since'"));
    }
    for (field, link) in [("link", &deprecation.link), ("successor", &deprecation.successor)] {
        let is_link = |link: &String| {
            ["https://", "http://", "/"]
                .iter()
                .any(|begin| link.starts_with(begin))
                && !link.contains(|it: char| it.is_whitespace() || it.is_control() || "<>\"".contains(it))
        };
        if !link.as_ref().is_none_or(is_link) {
            wrong.push((
                field,
                "expected an address such as https://example.com/news, or a path",
            ));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Problem::step(
            "read",
            wrong
                .into_iter()
                .map(|(place, message)| (place.to_owned(), message.to_owned()))
                .collect(),
        )),
    }
}

/// Takes a deprecation back, and the 410 of a sunset that has come: people err.
pub async fn undeprecate(step: Step) -> JsonResult {
    step.change("undeprecate", |publication, version| {
        if publication.is_retired_by_hand(now()) {
            let detail = format!("{} is retired", publication.id());
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        version.line = states::line(version.line, LineState::Published)?;
        publication.deprecation = None;
        publication.retired = false;
        Ok(())
    })
    .await
}

pub async fn retire(step: Step) -> JsonResult {
    step.change("retire", |publication, version| {
        // Other environments of the version may be retired already. As long as one is not, the version goes on: the step
        // sees to it.
        if version.line != LineState::Retired {
            version.line = states::line(version.line, LineState::Retired)?;
        }
        publication.retired = true;
        publication.canary = None;
        // From now on it is over because somebody says so, also when its sunset comes.
        if let Some(deprecation) = &mut publication.deprecation {
            deprecation.enforce = false;
        }
        Ok(())
    })
    .await
}

pub async fn canary(mut step: Step) -> JsonResult {
    let (note, force) = (step.take_note(), step.take_force()?);
    let canary: Canary = step.parse()?;
    check_canary(&canary)?;
    let known = step.api.snapshot().await?.publication(&step.id())?.canary;
    let known = known.map(|it| it.backends).unwrap_or_default();
    chains::permit_backends(&step.api, &step.caller, "backends", &known, &canary.backends)?;
    step.body["note"] = note.into();
    let work = |publication: &mut Publication, _: &mut Version| {
        if canary.revision == publication.revision && canary.backends.is_empty() {
            let message = format!(
                "{} is the revision that is live: expected another one, or other 'backends' for it",
                canary.revision
            );
            return Err(Problem::step("read", vec![("revision".to_owned(), message)]));
        }
        publication.canary_rollback = None;
        publication.canary = Some(Canary {
            started: now(),
            revision: match canary.revision {
                0 => publication.revision,
                revision => revision,
            },
            ..canary.clone()
        });
        Ok(())
    };
    step.change_calls("canary", work, force).await
}

/// Checks shares and guards.
fn check_canary(canary: &Canary) -> Result<(), Problem> {
    let mut wrong = Vec::new();
    if canary.revision == 0 && canary.backends.is_empty() {
        let message = "expected a revision, or other 'backends' for the one that is live".to_owned();
        wrong.push(("revision".to_owned(), message));
    }
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
    let mut before = (None, canary.share);
    for (index, step) in canary.steps.iter().enumerate() {
        if step.share <= before.1 {
            let message = format!("expected a larger share than the one before, {}", before.1);
            wrong.push((format!("steps[{index}].share"), message));
        }
        if before.0.is_some_and(|after| step.after <= after) {
            let message = "expected a later time than that of the step before".to_owned();
            wrong.push((format!("steps[{index}].after"), message));
        }
        before = (Some(step.after), step.share);
    }
    if let CanaryKey::Header(name) | CanaryKey::Cookie(name) = &canary.by
        && !weir_plugin::headers::is_name(name.as_bytes())
    {
        let message = "expected a name of letters, digits and hyphens; no call has another one".to_owned();
        wrong.push(("by".to_owned(), message));
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

pub async fn abort_canary(step: Step) -> JsonResult {
    let id = step.id();
    step.change("abort canary", |publication, _| {
        if publication.canary.take().is_none() {
            let detail = format!("there is no canary of {id}");
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        Ok(())
    })
    .await
}

pub async fn disable(step: Step) -> JsonResult {
    step.change("disable", |publication, _| {
        publication.state = PublicationState::Disabled;
        Ok(())
    })
    .await
}

pub async fn enable(mut step: Step) -> JsonResult {
    let force = step.take_force()?;
    let work = |publication: &mut Publication, _: &mut Version| {
        publication.state = PublicationState::Live;
        Ok(())
    };
    step.change_calls("enable", work, force).await
}

/// The removal of a publication.
#[derive(Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "PublicationRemoval")]
pub struct Removal {
    /// Removes it although subscriptions depend on it.
    force: bool,
}

pub async fn remove(step: Step) -> Result<StatusCode, Problem> {
    let id = step.id();
    let removal: Removal = step.parse()?;
    step.api
        .manage(&step.caller, &step.headers, |snapshot| {
            step.permit(snapshot, "remove")?;
            let _there = snapshot.publication(&id)?;
            if !removal.force {
                check_subscribers(snapshot, &id)?;
            }
            snapshot.remove(&entity_snapshot::publication_key(&id));
            Ok(WriteEffects {
                note: format!("remove {} {} from {}", step.name, step.version, step.environment),
                publications: BTreeSet::from([id.clone()]),
                answer: (),
            })
        })
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Refuses to remove a publication that subscribers call, by themselves or by a product.
fn check_subscribers(snapshot: &EntitySnapshot, id: &str) -> Result<(), Problem> {
    let products: Vec<Product> = snapshot.list(&entity_snapshot::product_key(""))?;
    let products: BTreeSet<&str> = products
        .iter()
        .filter(|it| it.publications.contains_key(id))
        .map(|it| it.name.as_str())
        .collect();
    let all: Vec<Subscription> = snapshot.list(&format!("{PREFIX}subscriptions/"))?;
    let depends = |it: &&Subscription| {
        let is_over = matches!(it.state, SubscriptionState::Closed | SubscriptionState::Rejected);
        !is_over && (it.publication == id || products.contains(it.product.as_str()))
    };
    let what = match all.iter().filter(depends).count() {
        0 => return Ok(()),
        1 => "one subscription depends".to_owned(),
        count => format!("{count} subscriptions depend"),
    };
    let detail = format!(
        "{what} on {id}: calls with their keys would get 404; 'force' removes it anyway and notifies their applications"
    );
    Err(Problem::new(StatusCode::CONFLICT, detail).of_type("subscribers"))
}
