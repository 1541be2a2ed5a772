//! Calls below the prefix of a component: plans of some operations do not open them, and limits of operations hold.

use super::*;

const NAME: &str = "test.orders.1.2.0";

/// A case whose first component takes all calls below a prefix, and its route for them.
fn below_prefix(plans: Vec<Plan>) -> (Case, Value) {
    let mut case = Case { plans, ..orders() };
    case.revision.components[0].prefix = Some("/".into());
    case.subscriptions = vec![subscribed("g", SubscriptionState::Accepted)];
    let route = case.value(&format!("{NAME}.main"))["routes"][0].clone();
    case.documents().iter().for_each(check);
    (case, route)
}

/// The defect: a plan of one operation opened all calls below the prefix.
#[test]
fn plans_of_some_operations_open_no_calls_below_a_prefix() {
    let plan = |security, operations: &[&str]| Plan {
        name: if security == PlanSecurity::Key {
            "gold"
        } else {
            "free"
        }
        .into(),
        security,
        operations: operations.iter().map(|it| (*it).to_owned()).collect(),
        ..gold()
    };
    let (key, keyless) = (PlanSecurity::Key, PlanSecurity::Keyless);
    let list = &["listOrders"][..];
    // The plans, and whether the subscriber and callers without a key are refused; `None`: no caller is told from others.
    for (plans, subscriber, anonymous) in [
        (vec![plan(keyless, &[])], None, false),
        (vec![plan(keyless, list)], None, true),
        (vec![plan(key, &[])], Some(false), false),
        (vec![plan(key, list)], Some(true), false),
        (vec![plan(keyless, list), plan(key, &[])], Some(false), true),
        (vec![plan(keyless, &[]), plan(key, list)], Some(true), false),
    ] {
        let (case, route) = below_prefix(plans.clone());
        let steps = route["plugins"].as_array().expect("steps");
        let refused_by = |consumer: &str| {
            let tables = steps.iter().flat_map(|it| it["overrides"].as_array()).flatten();
            let mut tables = tables.filter_map(Value::as_str);
            let table = tables.find(|it| it.contains(".access")).map(|it| case.value(it));
            table.map(|it| !it["instances"][consumer].is_null())
        };
        let refusal = format!("{NAME}.without-key");
        let is_shut = steps.iter().any(|it| it["use"] == *refusal);
        let without_key = refused_by(&format!("{NAME}.anonymous"));
        assert_eq!(refused_by("sub.g"), subscriber, "{plans:?}");
        assert_eq!(is_shut || without_key == Some(true), anonymous, "{plans:?}");
    }
}

/// The defect: limits of operations that have no routes of their own held for no call.
#[test]
fn limits_of_operations_hold_below_the_prefix() {
    for (operation, expected) in [("listOrders", true), ("createOrder", false)] {
        let limits = vec![Limit {
            count: 3,
            per: Period::Minute,
        }];
        let free = Plan {
            name: "free".into(),
            security: PlanSecurity::Keyless,
            limits: Vec::new(),
            operation_limits: BTreeMap::from([(operation.to_owned(), limits)]),
            ..gold()
        };
        let (_, route) = below_prefix(vec![free]);
        let id = format!("{NAME}.plan.free.{}", slug(operation));
        let mut steps = route["plugins"].as_array().expect("steps").iter();
        assert_eq!(steps.any(|it| it["use"] == *id), expected, "{route:#}");
    }
}
