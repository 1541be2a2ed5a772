//! Counts that gateways have reported, read from a store of analytics. Time is an argument.

use super::*;
use crate::analytics::{AnalyticsPaths as Folder, Options};
use weir_analytics::aggregate::{Aggregator, FinishedCall};

/// The first second of a day.
const DAY: u64 = 20_000 * 86_400;
const NOW: u64 = DAY + 600;

/// A store with calls: the subscription, the number of environments in which it has called, calls in each.
async fn with_calls(folder: &std::path::Path, of: &[(&str, u64, u64)], nameless: &[(&str, &str)]) -> Meter {
    let analytics = Analytics::open(&Folder::of(folder), Options::default()).expect("opened");
    let mut to = Aggregator::new("g", "", DAY * 1_000);
    let mut call = FinishedCall {
        minute: (DAY / 60 + 1) as u32,
        status: 200,
        consumer: to.name("shop"),
        api: to.name("pets"),
        version: to.name("1"),
        ..FinishedCall::default()
    };
    for (subscription, environments, calls) in of {
        call.subscription = to.name(subscription);
        for number in 0..*environments {
            call.environment = to.name(&format!("test{number}"));
            (0..*calls).for_each(|_| to.add(&call));
        }
    }
    for (environment, plan) in nameless {
        let call = FinishedCall {
            consumer: 0,
            subscription: 0,
            environment: to.name(environment),
            plan: to.name(plan),
            ..call
        };
        to.add(&call);
    }
    let batch = to.take_batch(NOW, false);
    let ingested = analytics.with(move |kept| kept.store.ingest(&batch, NOW)).await;
    ingested.expect("counted");
    Meter::new(Arc::new(|_, _| None), Some(analytics))
}

fn subscription(id: &str, plan: &str) -> Subscription {
    Subscription {
        id: id.to_owned(),
        application: "shop".to_owned(),
        plan: plan.to_owned(),
        ..Subscription::default()
    }
}

fn place(environment: &str) -> QuotaScope {
    QuotaScope {
        environment: environment.to_owned(),
        limit: String::new(),
    }
}

/// All are of one application. They have more groups than an answer to people holds, together and one alone.
#[tokio::test]
async fn subscriptions_with_few_calls_count_beside_those_with_many() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = [("large", 1_300, 2), ("small", 600, 1), ("one", 1, 1)];
    let meter = with_calls(folder.path(), &of, &[]).await;
    let all = of.map(|(name, _, _)| subscription(name, "gold"));
    let reported = meter.reported(all.iter(), (DAY, NOW)).await.expect("read");
    let reported = reported.expect("counted here");
    for (subscription, environment, expected) in [
        (&all[0], "test0", 2),
        (&all[0], "test1299", 2),
        (&all[0], "test1300", 0),
        (&all[1], "test0", 1),
        (&all[1], "test599", 1),
        (&all[2], "test0", 1),
        (&all[2], "test1", 0),
    ] {
        let used = reported.used(&place(environment), subscription, 7);
        let expected = QuotaUsage {
            calls: expected,
            resets: 7,
            is_exact: false,
        };
        assert_eq!(used, Some(expected), "{} {environment}", subscription.id);
    }
}

#[tokio::test]
async fn use_is_unknown_if_gateways_do_not_report_applications() {
    let folder = tempfile::tempdir().expect("a folder");
    let nameless = [("prod", "gold"), ("prod", "")];
    let meter = with_calls(folder.path(), &[("s", 1, 3)], &nameless).await;
    for (environment, plan, expected) in [
        ("test0", "gold", Some(3)),
        ("prod", "gold", None),
        // There are no calls with this plan.
        ("prod", "silver", Some(0)),
    ] {
        let of = subscription("s", plan);
        let place = place(environment);
        let used = meter.used(&place, (&of, Period::Day), NOW);
        let calls = used.await.expect("read").map(|it| it.calls);
        assert_eq!(calls, expected, "{environment} {plan}");
    }
}

#[tokio::test]
async fn use_is_known_in_the_first_second_of_a_window() {
    let folder = tempfile::tempdir().expect("a folder");
    let meter = with_calls(folder.path(), &[("s", 1, 1)], &[]).await;
    let of = subscription("s", "gold");
    let place = place("test0");
    let later = meter.used(&place, (&of, Period::Day), DAY + 86_400);
    assert_eq!(later.await.expect("read").map(|it| it.calls), Some(0));
}

/// Calls by the plan that it had before count for that one.
#[tokio::test]
async fn a_plan_counts_from_when_a_subscription_was_moved_to_it() {
    let folder = tempfile::tempdir().expect("a folder");
    // All calls are of the second minute of the day.
    let meter = with_calls(folder.path(), &[("s", 1, 3)], &[]).await;
    let place = place("test0");
    for (moved, expected) in [(None, 3), (Some(DAY - 1), 3), (Some(DAY + 300), 0)] {
        let of = Subscription {
            moved,
            ..subscription("s", "gold")
        };
        let used = meter.used(&place, (&of, Period::Day), NOW).await.expect("read");
        assert_eq!(used.map(|it| it.calls), Some(expected), "{moved:?}");
    }
}
