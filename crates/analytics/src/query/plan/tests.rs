//! Tests of plans.

use super::*;
use crate::query::{OneOrMany, TimePoint};

const NOW: u64 = 1_700_000_000;

fn query(metrics: &[&str], group_by: &[&str], from: &str, step: Option<&str>) -> Query {
    Query {
        metrics: metrics.iter().map(|it| (*it).to_owned()).collect(),
        from: TimePoint::Text(from.to_owned()),
        step: step.map(|it| Length::Text(it.to_owned())),
        group_by: group_by.iter().map(|it| (*it).to_owned()).collect(),
        ..Query::of("calls", 0, 0)
    }
}

fn plan(
    metrics: &[&str],
    group_by: &[&str],
    from: &str,
    step: Option<&str>,
) -> Result<QueryPlan, QueryError> {
    let query = Query {
        to: None,
        ..query(metrics, group_by, from, step)
    };
    QueryPlan::of(&query, &Retention::default(), NOW)
}

#[test]
fn queries_find_their_cube_step_and_resolution() {
    for (metrics, group_by, from, step, expected) in [
        (
            &["calls"][..],
            &[][..],
            "-1h",
            Some("auto"),
            (Cube::Route, 60, Some(60)),
        ),
        (
            &["calls"],
            &["class"],
            "-1d",
            Some("auto"),
            (Cube::Route, 60, Some(300)),
        ),
        (&["calls"], &["consumer"], "-1h", None, (Cube::Caller, 60, None)),
        (
            &["calls"],
            &["consumer", "route"],
            "-1h",
            None,
            (Cube::CallerRoute, 60, None),
        ),
        (
            &["latency_p95"],
            &["route"],
            "-1h",
            Some("1m"),
            (Cube::Route, 60, Some(60)),
        ),
        (
            &["latency_p95"],
            &["route"],
            "-2d",
            Some("1m"),
            (Cube::Route, 900, Some(900)),
        ),
        (
            &["latency_p95"],
            &["route"],
            "-9d",
            Some("1h"),
            (Cube::Route, 3_600, Some(3_600)),
        ),
        (
            &["latency_p95"],
            &["consumer"],
            "-1h",
            Some("1m"),
            (Cube::Caller, 3_600, Some(3_600)),
        ),
        (
            &["upstream_p95"],
            &["target"],
            "-1h",
            None,
            (Cube::Target, 3_600, None),
        ),
        (&["calls"], &["plugin"], "-1h", None, (Cube::Refusal, 60, None)),
        (&["calls"], &["path"], "-1h", None, (Cube::Path, 60, None)),
        (
            &["calls"],
            &["gateway"],
            "-20d",
            Some("1h"),
            (Cube::Gateway, 300, Some(3_600)),
        ),
        (
            &["calls"],
            &[],
            "-60d",
            Some("auto"),
            (Cube::Route, 3_600, Some(86_400)),
        ),
        (
            &["calls"],
            &[],
            "-600d",
            Some("auto"),
            (Cube::Route, 86_400, Some(604_800)),
        ),
    ] {
        let plan =
            plan(metrics, group_by, from, step).unwrap_or_else(|error| panic!("{group_by:?}: {error}"));
        let found = match plan.source {
            Source::Cube(cube) => (cube, plan.resolution, plan.step),
            Source::Uniques => panic!("{group_by:?}"),
        };
        assert_eq!(found, expected, "{metrics:?} {group_by:?} {from} {step:?}");
        assert_eq!(plan.from % plan.resolution, 0);
        assert!(plan.times().len() as u64 <= MAX_POINTS);
    }
}

#[test]
fn what_is_not_kept_is_said() {
    for (metrics, group_by, step, field, part) in [
        (
            &["hits"][..],
            &[][..],
            None,
            "metrics",
            "no metric 'hits'; there are calls",
        ),
        (&[], &[], None, "metrics", "at least one"),
        (&["calls"], &["colour"], None, "group_by", "no dimension 'colour'"),
        (
            &["calls"],
            &["service", "route", "class"],
            None,
            "group_by",
            "at most two",
        ),
        (
            &["calls"],
            &["consumer", "target"],
            None,
            "group_by",
            "not counted by consumer + target together",
        ),
        (
            &["latency_p95"],
            &["plugin"],
            None,
            "metrics",
            "not all of them are kept by plugin",
        ),
        (&["bytes_in"], &["path"], None, "metrics", "these are: calls"),
        (
            &["unique_callers"],
            &["route"],
            None,
            "metrics",
            "environment and service only",
        ),
        (
            &["unique_callers", "calls"],
            &[],
            None,
            "metrics",
            "a separate query",
        ),
        (&["calls"], &[], Some("90s"), "step", "whole number of minutes"),
        (&["calls"], &[], Some("x"), "step", "not a valid length of time"),
    ] {
        let error = plan(metrics, group_by, "-1h", step).expect_err(part);
        assert_eq!(error.field, field, "{error}");
        assert!(error.message.contains(part), "{error}");
    }
    let error = plan(&["calls"], &[], "-7d", Some("1m")).expect_err("too many points");
    assert!(error.message.contains("points are more than 1500"), "{error}");
    let mut unordered = query(&["calls"], &[], "-1h", None);
    unordered.to = None;
    unordered.order = Some("retries".to_owned());
    let error = QueryPlan::of(&unordered, &Retention::default(), NOW).expect_err("order");
    assert!(error.message.contains("not among the metrics"), "{error}");
    unordered.order = None;
    unordered
        .filter
        .insert("nothing".to_owned(), OneOrMany::One(String::new()));
    assert_eq!(
        QueryPlan::of(&unordered, &Retention::default(), NOW)
            .expect_err("filter")
            .field,
        "filter"
    );
}

#[test]
fn the_definition_names_a_cube_for_every_metric() {
    for (metric, cubes) in kept() {
        assert_eq!(cubes.is_empty(), metric == "unique_callers", "{metric}");
    }
}

#[test]
fn filters_take_numbers_and_lists_of_them() {
    let read = |filter: &str| {
        serde_json::from_str::<Query>(&format!(r#"{{"metrics": ["calls"], "filter": {filter}}}"#))
    };
    for (filter, expected) in [
        (r#"{"status": 404}"#, &["404"][..]),
        (r#"{"status": "404"}"#, &["404"]),
        (r#"{"status": [404, "429"]}"#, &["404", "429"]),
    ] {
        let query = read(filter).expect(filter);
        assert_eq!(query.filter["status"].values(), expected, "{filter}");
    }
    for filter in [
        r#"{"status": -1}"#,
        r#"{"status": 4.5}"#,
        r#"{"status": null}"#,
        r#"{"status": {}}"#,
    ] {
        let error = read(filter).expect_err(filter).to_string();
        assert!(error.contains("a whole number, or a list"), "{error}");
    }
}

#[test]
fn values_that_no_call_can_have_are_refused() {
    for (dimension, value, message) in [
        (
            "status",
            "4xx",
            "write a status such as '404', or filter by 'class': '4xx'",
        ),
        ("status", "", "write a status such as '404'"),
        ("protocol", "h2", "there are http/1.0, http/1.1"),
        ("status", "40", "write a status such as '404'"),
        ("class", "404", "there are 1xx, 2xx, 3xx, 4xx, 5xx, _other"),
        ("class", "4XX", "there are 1xx"),
        ("method", "get", "methods are written in capitals"),
    ] {
        let mut query = query(&["calls"], &[], "-1h", None);
        query.to = None;
        query
            .filter
            .insert(dimension.to_owned(), OneOrMany::Many(vec![value.to_owned()]));
        let error = QueryPlan::of(&query, &Retention::default(), NOW).expect_err(value);
        assert_eq!(error.field, format!("filter.{dimension}"));
        assert!(error.message.contains(message), "{error}");
    }
}

#[test]
fn operations_and_revisions_are_kept_together_and_subscriptions_with_their_application() {
    for (group_by, expected) in [
        (&["operation", "revision"][..], Cube::Operation),
        (&["revision"], Cube::Operation),
        (&["api"], Cube::Usage),
        (&["application", "plan"], Cube::Usage),
        (&["application", "subscription"], Cube::Subscription),
    ] {
        let found = plan(&["calls", "share_5xx"], group_by, "-1h", None).expect("kept");
        assert_eq!(found.source, Source::Cube(expected), "{group_by:?}");
    }
}
