//! Trial keys: keys of a subscription to try a call with. They end by themselves after a quarter of an hour, there are few at a
//! time, and those that have ended are removed when the next one is made.
//!
//! **What it is not**: a way around a plan. A call with one counts, and is refused, as with every other key of the subscription.

use super::clock::now;
use super::entity_snapshot::{self, EntitySnapshot, PREFIX};
use crate::api::Problem;
use axum::http::StatusCode;
use weir_apis::entities::{Credential, Plan, PlanSecurity, Subscription, SubscriptionState};

/// How long one is good, in seconds.
const LIFE: u64 = 15 * 60;
/// Those of a subscription that are good at a time.
const MAX_GOOD: usize = 5;

/// Makes a trial key of a key that is not stored yet.
pub fn shorten(
    snapshot: &mut EntitySnapshot,
    (subscription, plan): (&Subscription, &Plan),
    credential: &mut Credential,
) -> Result<(), Problem> {
    let conflict = |detail: String| Err(Problem::new(StatusCode::CONFLICT, detail));
    if subscription.state != SubscriptionState::Accepted {
        return conflict("calls of this subscription are refused now, so there is no trial key".to_owned());
    }
    if plan.security != PlanSecurity::Key {
        return conflict("the plan needs no key, so there is no trial key".to_owned());
    }
    let mut known: Vec<Credential> = snapshot.list(&format!("{PREFIX}credentials/"))?;
    known.retain(|it| it.subscription == subscription.id && it.trial);
    let (good, over): (Vec<_>, Vec<_>) = known.into_iter().partition(|it| it.is_good(now()));
    if good.len() >= MAX_GOOD {
        let next = good.iter().filter_map(|it| it.expires).min().unwrap_or_default();
        let minutes = next.saturating_sub(now()).div_ceil(60);
        return conflict(format!(
            "there are already {MAX_GOOD} trial keys, the maximum: the first ends in {minutes} minutes"
        ));
    }
    for it in over {
        snapshot.remove(&entity_snapshot::credential_key(&it.id));
    }
    let end = now() + LIFE;
    credential.trial = true;
    credential.expires = Some(credential.expires.map_or(end, |known| known.min(end)));
    Ok(())
}
