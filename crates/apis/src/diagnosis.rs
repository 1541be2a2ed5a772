//! Which plan takes a caller, and why the others do not: the reasons for a 401 or a 403, for people who look for them.

use crate::entities::{Credential, Plan, PlanSecurity, PlanState, Subscription, SubscriptionState};
use crate::render::consumer_of;
use serde::Serialize;

/// The caller, as far as a call shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallerInfo {
    /// Whether the call carries something that looks like a key.
    pub has_key: bool,
    /// SHA-256 of the texts of the call that may be keys.
    pub hashes: Vec<String>,
    /// The names that the call says for a password or a signature.
    pub names: Vec<String>,
    /// The consumer that the call is taken for if it carries no good key.
    pub consumer: Option<String>,
    /// The consumer that the gateway has recognised.
    pub recognised: Option<String>,
    /// The operation that is called; empty: none that the document names.
    pub operation: String,
}

/// The result of checking a plan for a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanVerdict {
    /// It takes the call.
    Good,
    /// The call carries no key.
    NoToken,
    /// The key is unknown.
    InvalidToken,
    /// The key was revoked.
    Revoked,
    /// The key's time is over.
    KeyExpired,
    /// The key is valid, but not for this plan of this publication.
    NoSubscription,
    /// The subscription waits for approval.
    Pending,
    /// The subscription was not accepted.
    Rejected,
    /// The subscription has not begun.
    NotStarted,
    /// The subscription has ended.
    Expired,
    /// The provider has paused the subscription.
    Paused,
    /// The consumer has stopped the subscription.
    Stopped,
    /// The subscription is closed.
    Closed,
    /// The plan does not contain this operation.
    NotInPlan,
}

/// A plan, and why it takes a call or does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct PlanDiagnosis {
    /// The plan.
    pub plan: String,
    /// In a word.
    pub verdict: PlanVerdict,
    /// In a sentence.
    pub reason: String,
    /// The subscription that the key belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
    /// Its application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
}

/// The facts for looking at plans.
#[derive(Debug, Clone, Copy)]
pub struct Input<'i> {
    /// The publication, as `API/VERSION/ENVIRONMENT`.
    pub publication: &'i str,
    /// Its plans.
    pub plans: &'i [Plan],
    /// All subscriptions.
    pub subscriptions: &'i [Subscription],
    /// All credentials.
    pub credentials: &'i [Credential],
    /// The caller.
    pub caller: &'i CallerInfo,
    /// The time, in seconds since 1970.
    pub now: u64,
}

/// The plans in the order in which they are tried.
pub fn diagnose(input: &Input<'_>) -> Vec<PlanDiagnosis> {
    let mut plans: Vec<&Plan> = input
        .plans
        .iter()
        .filter(|it| matches!(it.state, PlanState::Published | PlanState::Deprecated))
        .collect();
    plans.sort_by(|one, other| (one.order, &one.name).cmp(&(other.order, &other.name)));
    plans.into_iter().map(|plan| one(input, plan)).collect()
}

fn one(input: &Input<'_>, plan: &Plan) -> PlanDiagnosis {
    let (verdict, reason, subscription) = evaluate(input, plan);
    PlanDiagnosis {
        plan: plan.name.clone(),
        verdict,
        reason,
        subscription: subscription.map(|it| it.id.clone()),
        application: subscription.map(|it| it.application.clone()),
    }
}

fn evaluate<'i>(input: &Input<'i>, plan: &Plan) -> (PlanVerdict, String, Option<&'i Subscription>) {
    use PlanVerdict::{Good, InvalidToken, KeyExpired, NoToken, NotInPlan, Revoked};
    let caller = input.caller;
    if plan.security == PlanSecurity::Keyless {
        return match opens(plan, &caller.operation) {
            true => (Good, "it accepts calls without a key".to_owned(), None),
            false => (NotInPlan, not_in_plan(&caller.operation), None),
        };
    }
    let is = |wanted: &Option<String>, it: &Subscription| {
        let wanted = wanted.as_ref();
        wanted.is_some_and(|wanted| *wanted == it.id || *wanted == consumer_of(it))
    };
    // Of several credentials, the gateway has chosen the one that counts.
    let mut subscriptions = input.subscriptions.iter();
    if let Some(subscription) = subscriptions.find(|it| is(&caller.recognised, it)) {
        let (verdict, reason) = of_subscription(input, plan, subscription);
        return (verdict, reason, Some(subscription));
    }
    let mut credentials = input.credentials.iter();
    let by_hash = credentials.clone().find(|it| caller.hashes.contains(&it.hash));
    let credential = by_hash.or_else(|| credentials.find(|it| caller.names.contains(&it.name)));
    let named = |it: &&Subscription| is(&caller.consumer, it);
    let by_key = |it: &&Subscription| credential.is_some_and(|key| key.subscription == it.id);
    let subscription = match credential {
        Some(_) => input.subscriptions.iter().find(by_key),
        None => input.subscriptions.iter().find(named),
    };
    let Some(subscription) = subscription else {
        return match caller.has_key {
            true => (InvalidToken, "the key is unknown".to_owned(), None),
            false => (NoToken, "the call carries no key".to_owned(), None),
        };
    };
    let (verdict, reason) = match credential {
        Some(key) if key.revoked.is_some() => (Revoked, format!("the key {}… was revoked", key.prefix)),
        Some(key) if !key.is_good(input.now) => {
            (KeyExpired, format!("the time of the key {}… is over", key.prefix))
        }
        Some(key) if by_hash.is_none() && !named(&subscription) => (
            InvalidToken,
            format!("the password or the signature of {} is wrong", key.name),
        ),
        _ => of_subscription(input, plan, subscription),
    };
    (verdict, reason, Some(subscription))
}

/// How a plan stands to the subscription that a call counts for.
fn of_subscription(input: &Input<'_>, plan: &Plan, subscription: &Subscription) -> (PlanVerdict, String) {
    let operation = &input.caller.operation;
    if subscription.publication != input.publication {
        let reason = format!("no subscription: the key is for {}", subscription.target());
        return (PlanVerdict::NoSubscription, reason);
    }
    if subscription.plan != plan.name {
        let reason = format!(
            "no subscription: the call counts for the subscription to the plan '{}'",
            subscription.plan
        );
        return (PlanVerdict::NoSubscription, reason);
    }
    match of_state(subscription, input.now) {
        (PlanVerdict::Good, _) if !opens(plan, operation) => (PlanVerdict::NotInPlan, not_in_plan(operation)),
        judged => judged,
    }
}

fn not_in_plan(operation: &str) -> String {
    match operation {
        "" => "the plan contains only some operations, and the document does not have this one".to_owned(),
        _ => format!("the plan does not contain the operation '{operation}'"),
    }
}

fn opens(plan: &Plan, operation: &str) -> bool {
    plan.operations.is_empty() || plan.operations.iter().any(|it| it == operation)
}

fn of_state(subscription: &Subscription, now: u64) -> (PlanVerdict, String) {
    let (verdict, text) = match subscription.state {
        SubscriptionState::Pending => (PlanVerdict::Pending, "the subscription waits to be accepted"),
        SubscriptionState::Rejected => (PlanVerdict::Rejected, "the subscription was rejected"),
        SubscriptionState::Paused => (PlanVerdict::Paused, "the provider has paused the subscription"),
        SubscriptionState::Stopped => (
            PlanVerdict::Stopped,
            "the application has stopped the subscription",
        ),
        SubscriptionState::Closed => (PlanVerdict::Closed, "the subscription is closed"),
        SubscriptionState::Expired => (PlanVerdict::Expired, "the subscription has ended"),
        SubscriptionState::Accepted if subscription.ends.is_some_and(|end| now >= end) => {
            (PlanVerdict::Expired, "the subscription has ended")
        }
        SubscriptionState::Accepted if subscription.starts.is_some_and(|start| now < start) => {
            (PlanVerdict::NotStarted, "the subscription has not begun")
        }
        SubscriptionState::Accepted => (PlanVerdict::Good, "the subscription is good"),
    };
    let reason = match subscription.reason.as_str() {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    (verdict, format!("{text}{reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscription(id: &str, publication: &str, state: SubscriptionState) -> Subscription {
        Subscription {
            id: id.into(),
            application: "shop".into(),
            publication: publication.into(),
            plan: "gold".into(),
            state,
            starts: Some(100),
            ends: Some(200),
            ..Subscription::default()
        }
    }

    fn key(subscription: &str, expires: Option<u64>, revoked: Option<u64>) -> Credential {
        Credential {
            id: format!("k-{subscription}"),
            subscription: subscription.into(),
            hash: format!("h-{subscription}"),
            prefix: "12345678".into(),
            expires,
            revoked,
            ..Credential::default()
        }
    }

    #[test]
    fn every_reason_has_its_word() {
        use SubscriptionState::{Accepted, Closed, Expired, Paused, Pending, Rejected, Stopped};
        let gold = Plan {
            name: "gold".into(),
            state: PlanState::Published,
            operations: vec!["list".into()],
            ..Plan::default()
        };
        let plans = [
            Plan {
                name: "silver".into(),
                order: 1,
                operations: Vec::new(),
                ..gold.clone()
            },
            gold,
            Plan {
                name: "old".into(),
                state: PlanState::Closed,
                ..Plan::default()
            },
        ];
        let here = "pets/1/test";
        let cases = [
            ("a", here, Accepted, 150, PlanVerdict::Good),
            ("a", here, Accepted, 50, PlanVerdict::NotStarted),
            ("a", here, Accepted, 200, PlanVerdict::Expired),
            ("a", here, Expired, 150, PlanVerdict::Expired),
            ("a", here, Paused, 150, PlanVerdict::Paused),
            ("a", here, Stopped, 150, PlanVerdict::Stopped),
            ("a", here, Pending, 150, PlanVerdict::Pending),
            ("a", here, Rejected, 150, PlanVerdict::Rejected),
            ("a", here, Closed, 150, PlanVerdict::Closed),
            ("a", "cats/1/test", Accepted, 150, PlanVerdict::NoSubscription),
        ];
        for (id, publication, state, now, expected) in cases {
            let subscriptions = [subscription(id, publication, state)];
            let caller = CallerInfo {
                has_key: true,
                hashes: vec![format!("h-{id}")],
                operation: "list".into(),
                ..CallerInfo::default()
            };
            let input = Input {
                publication: here,
                plans: &plans,
                subscriptions: &subscriptions,
                credentials: &[key(id, None, None)],
                caller: &caller,
                now,
            };
            let found = diagnose(&input);
            let names: Vec<&str> = found.iter().map(|it| it.plan.as_str()).collect();
            assert_eq!(names, ["gold", "silver"]);
            assert_eq!(found[0].verdict, expected, "{state:?} at {now}");
            assert_eq!(
                found[1].verdict,
                PlanVerdict::NoSubscription,
                "{state:?} at {now}"
            );
        }
    }

    /// The diagnosis of a caller at 150 seconds.
    fn diagnosed(
        (plans, subscriptions, credential): (&[Plan], &[Subscription], Credential),
        caller: &CallerInfo,
    ) -> Vec<PlanDiagnosis> {
        diagnose(&Input {
            publication: "pets/1/test",
            plans,
            subscriptions,
            credentials: &[credential],
            caller,
            now: 150,
        })
    }

    #[test]
    fn keys_are_judged_before_subscriptions() {
        let plans = [Plan {
            name: "gold".into(),
            state: PlanState::Published,
            operations: vec!["list".into()],
            ..Plan::default()
        }];
        let subscriptions = [subscription("a", "pets/1/test", SubscriptionState::Accepted)];
        for (hash, consumer, has_key, operation, credential, expected) in [
            (
                None,
                None,
                false,
                "list",
                key("a", None, None),
                PlanVerdict::NoToken,
            ),
            (
                Some("h-x"),
                None,
                true,
                "list",
                key("a", None, None),
                PlanVerdict::InvalidToken,
            ),
            (
                Some("h-a"),
                None,
                true,
                "list",
                key("a", Some(150), None),
                PlanVerdict::KeyExpired,
            ),
            (
                Some("h-a"),
                None,
                true,
                "list",
                key("a", None, Some(1)),
                PlanVerdict::Revoked,
            ),
            (
                Some("h-a"),
                None,
                true,
                "add",
                key("a", None, None),
                PlanVerdict::NotInPlan,
            ),
            (
                None,
                Some("sub.a"),
                false,
                "list",
                key("a", None, None),
                PlanVerdict::Good,
            ),
        ] {
            let caller = CallerInfo {
                has_key,
                hashes: hash.map(str::to_owned).into_iter().collect(),
                consumer: consumer.map(str::to_owned),
                operation: operation.to_owned(),
                ..CallerInfo::default()
            };
            let found = diagnosed((&plans, &subscriptions, credential), &caller);
            assert_eq!(found[0].verdict, expected, "{found:?}");
        }
    }

    #[test]
    fn a_keyless_plan_takes_calls_of_its_operations() {
        let plans = [Plan {
            name: "free".into(),
            state: PlanState::Published,
            security: PlanSecurity::Keyless,
            operations: vec!["list".into()],
            ..Plan::default()
        }];
        for (operation, expected) in [
            ("list", PlanVerdict::Good),
            // The defect: calls below a prefix went past plans of some operations.
            ("", PlanVerdict::NotInPlan),
            ("add", PlanVerdict::NotInPlan),
        ] {
            let caller = CallerInfo {
                operation: operation.into(),
                ..CallerInfo::default()
            };
            let found = diagnosed((&plans, &[], key("a", None, None)), &caller);
            assert_eq!(found[0].verdict, expected, "{operation}");
        }
    }

    /// The defect: a call with a key and a token was said to count for the key's plan, though the gateway had taken the token.
    #[test]
    fn of_several_credentials_the_one_that_the_gateway_has_taken_counts() {
        let plan = |name: &str| Plan {
            name: name.into(),
            state: PlanState::Published,
            ..Plan::default()
        };
        let plans = [plan("by-key"), plan("by-token")];
        let of = |id: &str, plan: &str| Subscription {
            plan: plan.into(),
            ..subscription(id, "pets/1/test", SubscriptionState::Accepted)
        };
        let subscriptions = [of("k", "by-key"), of("t", "by-token")];
        let (good, none) = (PlanVerdict::Good, PlanVerdict::NoSubscription);
        for (recognised, revoked, expected) in [
            (Some("sub.k"), None, [good, none]),
            (Some("sub.t"), None, [none, good]),
            (Some("sub.t"), Some(1), [none, good]),
            (None, Some(1), [PlanVerdict::Revoked; 2]),
        ] {
            let caller = CallerInfo {
                has_key: true,
                hashes: vec!["h-k".into()],
                recognised: recognised.map(str::to_owned),
                ..CallerInfo::default()
            };
            let found = diagnosed((&plans, &subscriptions, key("k", None, revoked)), &caller);
            let verdicts: Vec<PlanVerdict> = found.iter().map(|it| it.verdict).collect();
            assert_eq!(verdicts, expected, "{recognised:?} {found:?}");
        }
    }

    /// Of a name, only the gateway can say whether the password or the signature with it is right.
    #[test]
    fn names_are_judged_by_what_the_gateway_makes_of_them() {
        let plans = [Plan {
            name: "gold".into(),
            state: PlanState::Published,
            ..Plan::default()
        }];
        let subscriptions = [subscription("a", "pets/1/test", SubscriptionState::Accepted)];
        for (name, recognised, revoked, expected) in [
            ("u", Some("sub.a"), None, PlanVerdict::Good),
            ("u", None, None, PlanVerdict::InvalidToken),
            ("u", None, Some(1), PlanVerdict::Revoked),
            ("v", None, None, PlanVerdict::InvalidToken),
        ] {
            let credential = Credential {
                name: "u".into(),
                ..key("a", None, revoked)
            };
            let caller = CallerInfo {
                has_key: true,
                names: vec![name.into()],
                recognised: recognised.map(str::to_owned),
                ..CallerInfo::default()
            };
            let found = diagnosed((&plans, &subscriptions, credential), &caller);
            assert_eq!(found[0].verdict, expected, "{found:?}");
        }
    }
}
