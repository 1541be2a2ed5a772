//! Which state may follow which, as tables, and refusals that say why.

use crate::entities::{
    ApprovalState, DraftState, LineState, Plan, PlanState, ProductState, Subscription, SubscriptionState,
};
use std::fmt::Debug;

/// Why a change of state is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such step.
    #[error("{what} that is {from} cannot become {to}: {expected}")]
    NoStep {
        /// The entity that was to change.
        what: &'static str,
        /// Its state.
        from: String,
        /// The state that was asked for.
        to: String,
        /// The states that it can change to.
        expected: String,
    },
    /// Another side decides this step.
    #[error("{0}")]
    NotYours(&'static str),
    /// Something else forbids it.
    #[error("{0}")]
    Because(String),
}

/// The side that asks for a change of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriptionParty {
    /// The side that offers the API.
    Provider,
    /// The side that calls it.
    Consumer,
}

fn word(state: &impl Debug) -> String {
    let mut out = String::new();
    for character in format!("{state:?}").chars() {
        if character.is_uppercase() && !out.is_empty() {
            out.push(' ');
        }
        out.extend(character.to_lowercase());
    }
    out
}

fn step<S: Copy + PartialEq + Debug>(
    what: &'static str,
    table: &[(S, S)],
    from: S,
    to: S,
) -> Result<S, Refusal> {
    if table.contains(&(from, to)) {
        return Ok(to);
    }
    let next: Vec<String> = table
        .iter()
        .filter(|it| it.0 == from)
        .map(|it| word(&it.1))
        .collect();
    let expected = match next.is_empty() {
        true => "that is its last state".to_owned(),
        false => format!("expected {}", next.join(" or ")),
    };
    Err(Refusal::NoStep {
        what,
        from: word(&from),
        to: word(&to),
        expected,
    })
}

/// The steps of a version's life.
pub const LINE: [(LineState, LineState); 6] = [
    (LineState::Draft, LineState::Published),
    (LineState::Published, LineState::Published),
    (LineState::Published, LineState::Deprecated),
    // People err.
    (LineState::Deprecated, LineState::Published),
    (LineState::Deprecated, LineState::Deprecated),
    (LineState::Deprecated, LineState::Retired),
];

/// A version's next state.
///
/// # Errors
/// There is no such step.
pub fn line(from: LineState, to: LineState) -> Result<LineState, Refusal> {
    step("a version", &LINE, from, to)
}

/// The steps of a draft.
pub const DRAFT: [(DraftState, DraftState); 13] = [
    (DraftState::Clean, DraftState::Changed),
    // What was published to a first environment may still be looked at.
    (DraftState::Clean, DraftState::InReview),
    (DraftState::Changed, DraftState::Changed),
    (DraftState::Changed, DraftState::InReview),
    (DraftState::Changed, DraftState::Clean),
    (DraftState::InReview, DraftState::Approved),
    (DraftState::InReview, DraftState::ChangesAsked),
    // An approval is for one content; an edit ends it.
    (DraftState::InReview, DraftState::Changed),
    (DraftState::Approved, DraftState::Changed),
    (DraftState::Approved, DraftState::Clean),
    (DraftState::ChangesAsked, DraftState::Changed),
    (DraftState::ChangesAsked, DraftState::InReview),
    (DraftState::InReview, DraftState::Clean),
];

/// A draft's next state.
///
/// # Errors
/// There is no such step.
pub fn draft(from: DraftState, to: DraftState) -> Result<DraftState, Refusal> {
    step("a draft", &DRAFT, from, to)
}

/// The steps of a product.
pub const PRODUCT: [(ProductState, ProductState); 4] = [
    (ProductState::Unpublished, ProductState::Unpublished),
    (ProductState::Unpublished, ProductState::Published),
    (ProductState::Published, ProductState::Published),
    (ProductState::Published, ProductState::Unpublished),
];

/// A product's next state.
///
/// # Errors
/// There is no such step.
pub fn product(from: ProductState, to: ProductState) -> Result<ProductState, Refusal> {
    step("a product", &PRODUCT, from, to)
}

/// The steps of a plan.
pub const PLAN: [(PlanState, PlanState); 6] = [
    (PlanState::Staging, PlanState::Published),
    (PlanState::Staging, PlanState::Closed),
    (PlanState::Published, PlanState::Deprecated),
    (PlanState::Published, PlanState::Closed),
    (PlanState::Deprecated, PlanState::Published),
    (PlanState::Deprecated, PlanState::Closed),
];

/// A plan's next state.
///
/// # Errors
/// There is no such step.
pub fn plan(from: PlanState, to: PlanState) -> Result<PlanState, Refusal> {
    step("a plan", &PLAN, from, to)
}

/// The steps of a subscription.
pub const SUBSCRIPTION: [(SubscriptionState, SubscriptionState); 16] = [
    (SubscriptionState::Pending, SubscriptionState::Accepted),
    (SubscriptionState::Pending, SubscriptionState::Rejected),
    (SubscriptionState::Pending, SubscriptionState::Closed),
    (SubscriptionState::Accepted, SubscriptionState::Paused),
    (SubscriptionState::Accepted, SubscriptionState::Stopped),
    (SubscriptionState::Accepted, SubscriptionState::Closed),
    (SubscriptionState::Accepted, SubscriptionState::Expired),
    (SubscriptionState::Paused, SubscriptionState::Accepted),
    (SubscriptionState::Paused, SubscriptionState::Closed),
    (SubscriptionState::Paused, SubscriptionState::Expired),
    (SubscriptionState::Stopped, SubscriptionState::Accepted),
    (SubscriptionState::Stopped, SubscriptionState::Paused),
    (SubscriptionState::Stopped, SubscriptionState::Closed),
    (SubscriptionState::Stopped, SubscriptionState::Expired),
    // A new end opens it again.
    (SubscriptionState::Expired, SubscriptionState::Accepted),
    (SubscriptionState::Expired, SubscriptionState::Closed),
];

/// A subscription's next state.
///
/// # Errors
/// There is no such step, or it is the other side's: the provider accepts, rejects, pauses and resumes what it has
/// paused; the consumer stops and starts what it has stopped; both close.
pub fn subscription(
    from: SubscriptionState,
    to: SubscriptionState,
    side: SubscriptionParty,
) -> Result<SubscriptionState, Refusal> {
    use SubscriptionState::{Accepted, Closed, Expired, Paused, Rejected, Stopped};
    let next = step("a subscription", &SUBSCRIPTION, from, to)?;
    let refusal = match (from, to, side) {
        (_, Closed, _) => None,
        (Stopped, Accepted, SubscriptionParty::Consumer)
        | (Accepted, Stopped, SubscriptionParty::Consumer) => None,
        (Paused, Accepted, SubscriptionParty::Consumer) => {
            Some("the provider has paused it, and only the provider can resume it")
        }
        (_, _, SubscriptionParty::Consumer) => Some("the provider decides this"),
        (_, Stopped, SubscriptionParty::Provider) => Some("the consumer stops it; the provider pauses it"),
        (Stopped, Accepted, SubscriptionParty::Provider) => {
            Some("the consumer has stopped it, and only the consumer can start it")
        }
        (_, Accepted | Rejected | Paused | Expired, SubscriptionParty::Provider) => None,
        (_, SubscriptionState::Pending, _) => None,
    };
    match refusal {
        Some(reason) => Err(Refusal::NotYours(reason)),
        None => Ok(next),
    }
}

/// Changes a subscription's state. What the provider has paused and the consumer has stopped serves when both have
/// taken that back, in any order; until then it is paused.
///
/// # Errors
/// As of [`subscription`].
pub fn change_subscription(
    changed: &mut Subscription,
    to: SubscriptionState,
    side: SubscriptionParty,
) -> Result<(), Refusal> {
    use SubscriptionState::{Accepted, Paused, Stopped};
    match (changed.state, to, side) {
        (Paused, Accepted, SubscriptionParty::Consumer) if changed.stopped => changed.stopped = false,
        (Paused, Stopped, SubscriptionParty::Consumer) => changed.stopped = true,
        (Paused, Accepted, SubscriptionParty::Provider) if changed.stopped => {
            (changed.state, changed.stopped) = (Stopped, false);
        }
        (from, ..) => {
            changed.state = subscription(from, to, side)?;
            changed.stopped = (from, to) == (Stopped, Paused);
        }
    }
    Ok(())
}

/// The steps of an approval.
pub const APPROVAL: [(ApprovalState, ApprovalState); 5] = [
    (ApprovalState::Open, ApprovalState::Granted),
    (ApprovalState::Open, ApprovalState::Refused),
    (ApprovalState::Open, ApprovalState::Withdrawn),
    (ApprovalState::Open, ApprovalState::Outdated),
    (ApprovalState::Granted, ApprovalState::Outdated),
];

/// An approval's next state. Who asked for it cannot grant it.
///
/// # Errors
/// There is no such step, or it is not this person's.
pub fn approval(
    from: ApprovalState,
    to: ApprovalState,
    requested_by: &str,
    by: &str,
) -> Result<ApprovalState, Refusal> {
    let next = step("an approval", &APPROVAL, from, to)?;
    match to {
        ApprovalState::Granted if requested_by == by => Err(Refusal::NotYours(
            "an approval must be given by a person other than the one who requested it",
        )),
        ApprovalState::Withdrawn if requested_by != by => Err(Refusal::NotYours(
            "only the person who requested an approval can withdraw it",
        )),
        _ => Ok(next),
    }
}

/// The revision of a plan's conditions after a change of the plan.
pub fn conditions_revision(before: Option<&Plan>, after: &Plan) -> u32 {
    match before {
        Some(before) => before.conditions_revision + u32::from(before.conditions != after.conditions),
        None => u32::from(!after.conditions.is_empty()),
    }
}

/// Whether a plan takes a new subscription.
///
/// # Errors
/// Why not.
pub fn can_subscribe(
    plan: &Plan,
    application: &crate::entities::Application,
    agreed: u32,
) -> Result<(), Refusal> {
    use crate::entities::PlanSecurity;
    let refuse = |reason: String| Err(Refusal::Because(reason));
    match plan.state {
        PlanState::Published => {}
        PlanState::Staging => return refuse(format!("the plan '{}' is not published yet", plan.name)),
        PlanState::Deprecated => {
            return refuse(format!("the plan '{}' accepts no new subscriptions", plan.name));
        }
        PlanState::Closed => return refuse(format!("the plan '{}' is closed", plan.name)),
    }
    if plan.security == PlanSecurity::Keyless {
        return refuse("a keyless plan needs no subscription".to_owned());
    }
    if plan.security == PlanSecurity::Oauth2 && application.client_id.is_empty() {
        return refuse(format!(
            "the plan '{}' knows applications by their client id: give '{}' its 'client_id' first",
            plan.name, application.name
        ));
    }
    if plan.security == PlanSecurity::Mtls && application.certificates.is_empty() {
        return refuse(format!(
            "the plan '{}' knows applications by their certificates: give '{}' one in 'certificates' first",
            plan.name, application.name
        ));
    }
    if application.archived {
        return refuse(format!("the application '{}' is archived", application.name));
    }
    if !plan.conditions.is_empty() && agreed != plan.conditions_revision {
        return refuse(format!(
            "the conditions of the plan '{}' must be accepted in revision {}",
            plan.name, plan.conditions_revision
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entities::Application;

    const SUBSCRIPTION_STATES: [SubscriptionState; 7] = [
        SubscriptionState::Pending,
        SubscriptionState::Accepted,
        SubscriptionState::Rejected,
        SubscriptionState::Paused,
        SubscriptionState::Stopped,
        SubscriptionState::Closed,
        SubscriptionState::Expired,
    ];

    #[test]
    fn every_step_of_a_subscription_is_one_sides_or_refused() {
        let mut allowed = Vec::new();
        for from in SUBSCRIPTION_STATES {
            for to in SUBSCRIPTION_STATES {
                for (side, character) in [
                    (SubscriptionParty::Provider, 'P'),
                    (SubscriptionParty::Consumer, 'C'),
                ] {
                    match subscription(from, to, side) {
                        Ok(next) => {
                            assert_eq!(next, to);
                            allowed.push(format!("{character}:{}>{}", word(&from), word(&to)));
                        }
                        Err(refusal) => assert!(!refusal.to_string().is_empty()),
                    }
                }
            }
        }
        assert_eq!(
            allowed,
            [
                "P:pending>accepted",
                "P:pending>rejected",
                "P:pending>closed",
                "C:pending>closed",
                "P:accepted>paused",
                "C:accepted>stopped",
                "P:accepted>closed",
                "C:accepted>closed",
                "P:accepted>expired",
                "P:paused>accepted",
                "P:paused>closed",
                "C:paused>closed",
                "P:paused>expired",
                "C:stopped>accepted",
                "P:stopped>paused",
                "P:stopped>closed",
                "C:stopped>closed",
                "P:stopped>expired",
                "P:expired>accepted",
                "P:expired>closed",
                "C:expired>closed",
            ]
        );
    }

    #[test]
    fn what_both_sides_have_halted_serves_when_both_go_on() {
        use SubscriptionParty::{Consumer, Provider};
        use SubscriptionState::{Accepted, Paused, Stopped};
        for steps in [
            &[
                (Stopped, Consumer, Stopped),
                (Paused, Provider, Paused),
                (Accepted, Consumer, Paused),
                (Accepted, Provider, Accepted),
            ][..],
            &[
                (Stopped, Consumer, Stopped),
                (Paused, Provider, Paused),
                (Accepted, Provider, Stopped),
                (Accepted, Consumer, Accepted),
            ],
            &[
                (Paused, Provider, Paused),
                (Stopped, Consumer, Paused),
                (Accepted, Provider, Stopped),
                (Accepted, Consumer, Accepted),
            ],
        ] {
            let mut it = Subscription {
                state: Accepted,
                ..Subscription::default()
            };
            for (number, (to, side, expected)) in steps.iter().enumerate() {
                change_subscription(&mut it, *to, *side).expect("possible");
                assert_eq!(it.state, *expected, "step {number} of {steps:?}");
            }
            assert!(!it.stopped);
            // Now only the provider can resume what it pauses.
            change_subscription(&mut it, Paused, Provider).expect("possible");
            change_subscription(&mut it, Accepted, Consumer).expect_err("the provider's");
        }
    }

    #[test]
    fn refusals_say_what_is_possible() {
        for (refused, expected) in [
            (
                line(LineState::Draft, LineState::Retired).map(|_| ()),
                "a version that is draft cannot become retired: expected published",
            ),
            (
                line(LineState::Retired, LineState::Published).map(|_| ()),
                "a version that is retired cannot become published: that is its last state",
            ),
            (
                plan(PlanState::Closed, PlanState::Published).map(|_| ()),
                "a plan that is closed cannot become published: that is its last state",
            ),
            (
                draft(DraftState::Clean, DraftState::Approved).map(|_| ()),
                "a draft that is clean cannot become approved: expected changed or in review",
            ),
            (
                subscription(
                    SubscriptionState::Paused,
                    SubscriptionState::Accepted,
                    SubscriptionParty::Consumer,
                )
                .map(|_| ()),
                "the provider has paused it, and only the provider can resume it",
            ),
            (
                approval(ApprovalState::Open, ApprovalState::Granted, "ann", "ann").map(|_| ()),
                "an approval must be given by a person other than the one who requested it",
            ),
            (
                approval(ApprovalState::Open, ApprovalState::Withdrawn, "ann", "bob").map(|_| ()),
                "only the person who requested an approval can withdraw it",
            ),
            (
                approval(ApprovalState::Refused, ApprovalState::Granted, "ann", "bob").map(|_| ()),
                "an approval that is refused cannot become granted: that is its last state",
            ),
        ] {
            assert_eq!(refused.expect_err(expected).to_string(), expected);
        }
        assert_eq!(
            approval(ApprovalState::Open, ApprovalState::Granted, "ann", "bob"),
            Ok(ApprovalState::Granted)
        );
        assert_eq!(
            line(LineState::Deprecated, LineState::Published),
            Ok(LineState::Published)
        );
    }

    #[test]
    fn plans_take_subscribers_who_keep_to_their_rules() {
        let plan = |state| Plan {
            name: "gold".into(),
            state,
            ..Plan::default()
        };
        let good = Plan {
            conditions: "be kind".into(),
            conditions_revision: 2,
            ..plan(PlanState::Published)
        };
        let app = Application {
            name: "a".into(),
            ..Application::default()
        };
        assert_eq!(can_subscribe(&good, &app, 2), Ok(()));
        let archived = Application {
            archived: true,
            name: "a".into(),
            ..Application::default()
        };
        let of = |security| Plan {
            security,
            ..plan(PlanState::Published)
        };
        let keyless = Plan {
            security: crate::entities::PlanSecurity::Keyless,
            ..plan(PlanState::Published)
        };
        for (plan, application, part) in [
            (&good, &app, "accepted in revision 2"),
            (&plan(PlanState::Staging), &app, "not published yet"),
            (&plan(PlanState::Deprecated), &app, "accepts no new"),
            (&plan(PlanState::Closed), &app, "is closed"),
            (&keyless, &app, "needs no subscription"),
            (
                &of(crate::entities::PlanSecurity::Oauth2),
                &app,
                "give 'a' its 'client_id' first",
            ),
            (
                &of(crate::entities::PlanSecurity::Mtls),
                &app,
                "one in 'certificates' first",
            ),
            (&plan(PlanState::Published), &archived, "'a' is archived"),
        ] {
            let refused = can_subscribe(plan, application, 1).expect_err(part);
            assert!(refused.to_string().contains(part), "{refused}");
        }
    }
}
