//! Counts that gateways have reported, read from a store of analytics. Time is an argument.

use super::*;
use crate::analytics::{AnalyticsPaths as Folder, Options};
use weir_analytics::aggregate::{Aggregator, FinishedCall};

/// The first second of a day.
const DAY: u64 = 20_000 * 86_400;
const NOW: u64 = DAY + 600;

/// A store with calls: the application, the number of services that it has called, calls to each.
async fn with_calls(folder: &std::path::Path, of: &[(&str, u64, u64)], nameless: &[(&str, &str)]) -> Meter {
    let analytics = Analytics::open(&Folder::of(folder), Options::default()).expect("opened");
    let mut to = Aggregator::new("g", "", DAY * 1_000);
    let mut call = FinishedCall {
        minute: (DAY / 60 + 1) as u32,
        status: 200,
        ..FinishedCall::default()
    };
    for (application, services, calls) in of {
        call.consumer = to.name(application);
        for service in 0..*services {
            call.service = to.name(&format!("test.pets.{service}.main"));
            (0..*calls).for_each(|_| to.add(&call));
        }
    }
    for (environment, plan) in nameless {
        let call = FinishedCall {
            consumer: 0,
            environment: to.name(environment),
            api: to.name("pets"),
            version: to.name("1"),
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

fn subscription(application: &str, plan: &str) -> Subscription {
    Subscription {
        application: application.to_owned(),
        plan: plan.to_owned(),
        ..Subscription::default()
    }
}

fn place(environment: &str, service: &str) -> QuotaScope {
    QuotaScope {
        environment: environment.to_owned(),
        limit: String::new(),
        services: vec![service.to_owned()],
    }
}

/// They have more groups than an answer to people holds, together and one alone.
#[tokio::test]
async fn applications_with_few_calls_count_beside_those_with_many() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = [("large", 1_300, 2), ("small", 600, 1), ("one", 1, 1)];
    let meter = with_calls(folder.path(), &of, &[]).await;
    let all = of.map(|(name, _, _)| subscription(name, "gold"));
    let reported = meter.reported(all.iter(), (DAY, NOW)).await.expect("read");
    let reported = reported.expect("counted here");
    for (subscription, services, expected) in [
        (&all[0], "test.", 2_600),
        (&all[0], "test.pets.1299.", 2),
        (&all[1], "test.", 600),
        (&all[1], "test.pets.599.", 1),
        (&all[2], "test.", 1),
        (&all[2], "prod.", 0),
    ] {
        let used = reported.used(&place("test", services), subscription, 7);
        let expected = QuotaUsage {
            calls: expected,
            resets: 7,
            is_exact: false,
        };
        assert_eq!(used, Some(expected), "{} {services}", subscription.application);
    }
}

#[tokio::test]
async fn use_is_unknown_if_gateways_do_not_report_applications() {
    let folder = tempfile::tempdir().expect("a folder");
    let nameless = [("prod", "gold"), ("prod", "")];
    let meter = with_calls(folder.path(), &[("shop", 1, 3)], &nameless).await;
    for (environment, plan, expected) in [
        ("test", "gold", Some(3)),
        ("prod", "gold", None),
        // There are no calls with this plan.
        ("prod", "silver", Some(3)),
    ] {
        let of = subscription("shop", plan);
        let place = place(environment, "test.");
        let used = meter.used(&place, (&of, Period::Day), NOW);
        let calls = used.await.expect("read").map(|it| it.calls);
        assert_eq!(calls, expected, "{environment} {plan}");
    }
}

#[tokio::test]
async fn use_is_known_in_the_first_second_of_a_window() {
    let folder = tempfile::tempdir().expect("a folder");
    let meter = with_calls(folder.path(), &[("shop", 1, 1)], &[]).await;
    let of = subscription("shop", "gold");
    let place = place("test", "test.");
    let later = meter.used(&place, (&of, Period::Day), DAY + 86_400);
    assert_eq!(later.await.expect("read").map(|it| it.calls), Some(0));
}
