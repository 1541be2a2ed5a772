//! The work that is due by time alone: keys that expire, subscriptions that begin and end, notices before they end,
//! plans that are closed at a date, enforced sunsets, later shares of canaries. Pure: the time is an argument, and what
//! was done before shows in the entities.

use crate::entities::{Credential, Plan, PlanState, Publication, Subscription, SubscriptionState};
use std::collections::{BTreeMap, BTreeSet};

/// Seconds of a day.
pub const DAY: u64 = 86_400;
/// Days before the end of a subscription on which its application gets a notice, if the plan does not say.
pub const NOTICE_DAYS: [u32; 3] = [30, 7, 1];

/// Work that is due.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum DueAction {
    /// The subscription of this id has ended.
    Ended(String),
    /// The application is to get the notice that the subscription of this id ends in so many days.
    Notice(String, u32),
    /// The plan is closed.
    ClosePlan,
    /// The publication's sunset has come, and is enforced.
    Sunset,
    /// The canary gets this share.
    Share(u32),
    /// Keys or subscriptions of the publication have begun or ended: gateways' documents change.
    Render,
}

/// The entities to look at.
#[derive(Debug, Clone, Copy)]
pub struct Input<'i> {
    /// The publications.
    pub publications: &'i [Publication],
    /// The plans.
    pub plans: &'i [Plan],
    /// The subscriptions.
    pub subscriptions: &'i [Subscription],
    /// Their credentials.
    pub credentials: &'i [Credential],
}

/// The id of a plan in due work: the key of its document.
fn plan_id(plan: &Plan) -> String {
    match plan.product.as_str() {
        "" => format!("apis/plans/{}/{}/{}", plan.api, plan.version, plan.name),
        product => format!("apis/product-plans/{product}/{}", plan.name),
    }
}

/// By publication, product or plan (by the key of its document), what is due at a time. What was rendered at `since` or before is not rendered again; `None`: it is
/// not known what was.
pub fn due(input: &Input<'_>, since: Option<u64>, now: u64) -> BTreeMap<String, BTreeSet<DueAction>> {
    let mut found: BTreeMap<String, BTreeSet<DueAction>> = BTreeMap::new();
    let is_new = |at: u64| at <= now && since.is_none_or(|since| at > since);
    for publication in input.publications {
        let id = publication.id();
        let mut add = |due: DueAction| found.entry(id.clone()).or_default().insert(due);
        if !publication.retired && sunset(publication).is_some_and(|at| at <= now) {
            add(DueAction::Sunset);
        }
        if let Some(share) = share(publication, now) {
            add(DueAction::Share(share));
        }
    }
    for plan in input
        .plans
        .iter()
        .filter(|it| close_of(it).is_some_and(|at| at <= now))
    {
        found
            .entry(plan_id(plan))
            .or_default()
            .insert(DueAction::ClosePlan);
    }
    let mut of_subscription: BTreeMap<&str, &Subscription> = BTreeMap::new();
    for subscription in input.subscriptions {
        of_subscription.insert(&subscription.id, subscription);
        let mut add = |due: DueAction| {
            found.entry(subscription.target()).or_default().insert(due);
        };
        if can_end(subscription) {
            if subscription.ends.is_some_and(|at| at <= now) {
                add(DueAction::Ended(subscription.id.clone()));
            } else if let Some(days) = notice(subscription, plan_of(input.plans, subscription), now) {
                add(DueAction::Notice(subscription.id.clone(), days));
            }
        }
        if subscription.starts.is_some_and(is_new) {
            add(DueAction::Render);
        }
    }
    for credential in input.credentials {
        let ends = credential.expires.filter(|_| credential.revoked.is_none());
        if ends.is_some_and(is_new)
            && let Some(subscription) = of_subscription.get(credential.subscription.as_str())
        {
            found
                .entry(subscription.target())
                .or_default()
                .insert(DueAction::Render);
        }
    }
    found
}

/// When something is due next, after a time.
pub fn next(input: &Input<'_>, now: u64) -> Option<u64> {
    let of_publications = input.publications.iter().flat_map(|publication| {
        let canary = publication.canary.as_ref();
        let steps = canary
            .into_iter()
            .flat_map(|it| it.steps.iter().map(|step| it.started + step.after));
        sunset(publication).into_iter().chain(steps)
    });
    let of_subscriptions = input
        .subscriptions
        .iter()
        .filter(|it| can_end(it))
        .flat_map(|it| {
            let plan = plan_of(input.plans, it);
            let days = notice_days(plan);
            let notices = end_of(it, plan).into_iter().flat_map(move |end| {
                days.clone()
                    .into_iter()
                    .map(move |days| end.saturating_sub(u64::from(days) * DAY))
            });
            it.starts.into_iter().chain(it.ends).chain(notices)
        });
    let of_credentials = input
        .credentials
        .iter()
        .filter(|it| it.revoked.is_none())
        .filter_map(|it| it.expires);
    of_publications
        .chain(input.plans.iter().filter_map(close_of))
        .chain(of_subscriptions)
        .chain(of_credentials)
        .filter(|at| *at > now)
        .min()
}

/// When all calls are refused from then on.
fn sunset(publication: &Publication) -> Option<u64> {
    let deprecation = publication.deprecation.as_ref().filter(|it| it.enforce);
    deprecation.and_then(|it| it.sunset)
}

/// The share that a canary should have by now, if it is another one.
fn share(publication: &Publication, now: u64) -> Option<u32> {
    let canary = publication.canary.as_ref()?;
    let passed = canary.steps.iter().filter(|it| canary.started + it.after <= now);
    let latest = passed.max_by_key(|it| it.after)?;
    (latest.share != canary.share).then_some(latest.share)
}

fn can_end(subscription: &Subscription) -> bool {
    matches!(
        subscription.state,
        SubscriptionState::Accepted | SubscriptionState::Paused | SubscriptionState::Stopped
    )
}

/// When a plan is closed by time.
fn close_of(plan: &Plan) -> Option<u64> {
    let closes = plan.closes.as_ref().filter(|_| plan.state != PlanState::Closed);
    closes.map(|it| it.at)
}

/// When a subscription is over: at its own end, or with a plan that hands its subscriptions to no other.
fn end_of(subscription: &Subscription, plan: Option<&Plan>) -> Option<u64> {
    let is_moved = |plan: &&Plan| plan.closes.as_ref().is_some_and(|it| !it.move_to.is_empty());
    let of_plan = plan.filter(|it| !is_moved(it)).and_then(close_of);
    subscription.ends.into_iter().chain(of_plan).min()
}

fn plan_of<'p>(plans: &'p [Plan], subscription: &Subscription) -> Option<&'p Plan> {
    let mut parts = subscription.publication.split('/');
    let (api, version) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_it = |it: &&Plan| {
        let is_of = match it.product.as_str() {
            "" => it.api == api && it.version == version,
            product => product == subscription.product,
        };
        is_of && it.name == subscription.plan
    };
    plans.iter().find(is_it)
}

fn notice_days(plan: Option<&Plan>) -> Vec<u32> {
    match plan.and_then(|it| it.notice_days.clone()) {
        Some(days) => days,
        None => NOTICE_DAYS.to_vec(),
    }
}

/// The notice that is due: that of the fewest days, if it was not given yet. Of several that were missed, one is given.
fn notice(subscription: &Subscription, plan: Option<&Plan>, now: u64) -> Option<u32> {
    let (ends, days) = (end_of(subscription, plan)?, notice_days(plan));
    let reached = |days: &&u32| now >= ends.saturating_sub(u64::from(**days) * DAY);
    let days = *days.iter().filter(reached).min()?;
    subscription
        .noticed
        .is_none_or(|given| days < given)
        .then_some(days)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entities::{Canary, CanaryKey, CanaryStep, Deprecation};

    const END: u64 = 100 * DAY;

    fn subscription() -> Subscription {
        Subscription {
            id: "s".into(),
            publication: "pets/1/test".into(),
            plan: "gold".into(),
            state: SubscriptionState::Accepted,
            ends: Some(END),
            ..Subscription::default()
        }
    }

    fn of(input: &Input<'_>, since: Option<u64>, now: u64) -> Vec<DueAction> {
        due(input, since, now).into_values().flatten().collect()
    }

    #[test]
    fn notices_come_on_their_days_once_each_and_then_the_end() {
        let mut subscription = subscription();
        let plans = [Plan {
            api: "pets".into(),
            version: "1".into(),
            name: "gold".into(),
            notice_days: Some(vec![14, 3]),
            ..Plan::default()
        }];
        let mut events = Vec::new();
        for hour in 0..=24 * 101_u64 {
            let now = hour * 3600;
            let subscriptions = [subscription.clone()];
            let input = Input {
                publications: &[],
                plans: &plans,
                subscriptions: &subscriptions,
                credentials: &[],
            };
            for due in of(&input, Some(now.saturating_sub(3600)), now) {
                match due {
                    DueAction::Notice(_, days) => {
                        subscription.noticed = Some(days);
                        events.push((now / DAY, days));
                    }
                    DueAction::Ended(_) => {
                        subscription.state = SubscriptionState::Expired;
                        events.push((now / DAY, 0));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert_eq!(events, [(86, 14), (97, 3), (100, 0)]);
    }

    /// Subscribers of a plan that is closed at a date hear of it as if their subscriptions ended then, unless another plan
    /// gets them.
    #[test]
    fn plans_are_closed_at_their_date_and_subscribers_get_notice_before() {
        let subscriptions = [Subscription {
            ends: None,
            ..subscription()
        }];
        let plan = |move_to: &str, state| Plan {
            api: "pets".into(),
            version: "1".into(),
            name: "gold".into(),
            state,
            closes: Some(crate::entities::PlannedClose {
                at: END,
                move_to: move_to.into(),
            }),
            ..Plan::default()
        };
        for (move_to, state, now, expected, next_at) in [
            (
                "",
                PlanState::Deprecated,
                END - 5 * DAY,
                vec![DueAction::Notice("s".into(), 7)],
                Some(END - DAY),
            ),
            ("silver", PlanState::Deprecated, END - 5 * DAY, vec![], Some(END)),
            (
                "silver",
                PlanState::Deprecated,
                END,
                vec![DueAction::ClosePlan],
                None,
            ),
            ("", PlanState::Closed, END, vec![], None),
        ] {
            let plans = [plan(move_to, state)];
            let input = Input {
                publications: &[],
                plans: &plans,
                subscriptions: &subscriptions,
                credentials: &[],
            };
            assert_eq!(of(&input, Some(now - 1), now), expected, "{move_to} {state:?}");
            assert_eq!(next(&input, now), next_at, "{move_to} {state:?}");
        }
    }

    #[test]
    fn of_missed_notices_the_latest_is_given() {
        let subscriptions = [subscription()];
        let input = Input {
            publications: &[],
            plans: &[],
            subscriptions: &subscriptions,
            credentials: &[],
        };
        assert_eq!(
            of(&input, None, END - 2 * DAY),
            [DueAction::Notice("s".into(), 7)]
        );
        assert_eq!(next(&input, END - 2 * DAY), Some(END - DAY));
        assert_eq!(next(&input, END), None);
    }

    #[test]
    fn keys_and_beginnings_are_rendered_once() {
        let subscriptions = [Subscription {
            starts: Some(50),
            ends: None,
            ..subscription()
        }];
        let credentials = [
            Credential {
                subscription: "s".into(),
                expires: Some(70),
                ..Credential::default()
            },
            Credential {
                subscription: "s".into(),
                expires: Some(60),
                revoked: Some(1),
                ..Credential::default()
            },
        ];
        let input = Input {
            publications: &[],
            plans: &[],
            subscriptions: &subscriptions,
            credentials: &credentials,
        };
        for (since, now, expected) in [
            (Some(0), 49, 0),
            (Some(49), 50, 1),
            (Some(50), 69, 0),
            (Some(69), 70, 1),
            (Some(70), 80, 0),
            (None, 80, 1),
        ] {
            assert_eq!(of(&input, since, now).len(), expected, "{since:?} {now}");
        }
        assert_eq!(next(&input, 0), Some(50));
        assert_eq!(next(&input, 50), Some(70));
    }

    #[test]
    fn sunsets_that_are_enforced_and_shares_of_canaries_come() {
        let publication = |enforce, share| Publication {
            api: "pets".into(),
            version: "1".into(),
            environment: "test".into(),
            deprecation: Some(Deprecation {
                sunset: Some(500),
                enforce,
                ..Deprecation::default()
            }),
            canary: Some(Canary {
                revision: 2,
                backends: BTreeMap::new(),
                share,
                by: CanaryKey::Address,
                when: None,
                steps: vec![
                    CanaryStep {
                        after: 100,
                        share: 2_000,
                    },
                    CanaryStep {
                        after: 200,
                        share: 5_000,
                    },
                ],
                guards: Vec::new(),
                started: 1_000,
            }),
            ..Publication::default()
        };
        for (publication, now, expected) in [
            (publication(false, 1_000), 1_099, vec![]),
            (publication(true, 1_000), 1_099, vec![DueAction::Sunset]),
            (publication(false, 1_000), 1_100, vec![DueAction::Share(2_000)]),
            (publication(false, 2_000), 1_150, vec![]),
            (publication(false, 1_000), 1_300, vec![DueAction::Share(5_000)]),
        ] {
            let input = Input {
                publications: &[publication],
                plans: &[],
                subscriptions: &[],
                credentials: &[],
            };
            assert_eq!(of(&input, None, now), expected, "{now}");
        }
    }
}
