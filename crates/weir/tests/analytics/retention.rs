//! Old counts: the file shrinks at the start, and old ranges still answer, coarser.

use super::{FLAGS, configure, query};
use crate::support::{Weir, until, upstream};
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_analytics::AnalyticsStore;
use weir_analytics::aggregate::{Aggregator, FinishedCall};
use weir_analytics::retention::{DAY, HOUR, Retention};
use weir_analytics::sqlite::SqliteAnalytics;

#[test]
fn old_counts_become_coarser_and_the_file_smaller() {
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), upstream("a"));
    let path = folder.path().join("analytics/analytics.db");
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs();
    let today = now / DAY * DAY;
    let mut expected = Vec::new();
    {
        let store = SqliteAnalytics::open(&path, Retention::default()).expect("opened");
        for age in [2, 10, 40] {
            let start = today - age * DAY;
            let mut aggregator = Aggregator::new(&format!("g{age}"), "", start * 1_000);
            for minute in 0..6 * 60_u64 {
                for number in 0..40_u64 {
                    let call = FinishedCall {
                        minute: ((start / 60) + minute) as u32,
                        service: aggregator.name("old"),
                        route: aggregator.name(&format!("r{}", number % 20)),
                        status: 200,
                        total_us: (500 + 37 * number + minute) as u32,
                        ..FinishedCall::default()
                    };
                    aggregator.add(&call);
                }
            }
            let batch = aggregator.take_batch(start + 6 * HOUR, true);
            store.ingest(&batch, start).expect("added");
            expected.push((start, 40.0 * 60.0 * 6.0));
        }
        // Nothing is old yet: all of it is brought into the file as it is.
        store
            .retain(&Retention::default(), today - 40 * DAY)
            .expect("done");
    }
    let size = || std::fs::metadata(&path).expect("there").len();
    let before = size();
    let weir = Weir::start(folder.path(), &FLAGS);
    until("the file is smaller", || size() * 2 < before);
    for ((start, calls), resolution) in expected.into_iter().zip([60, 300, 3_600]) {
        let asked = json!({
            "metrics": ["calls", "latency_p95"], "from": start, "to": start + 6 * HOUR, "step": "1m",
            "filter": { "service": "old" },
        });
        let answer = query(&weir, &asked);
        assert_eq!(answer["frames"][0]["total"]["calls"], calls, "{answer}");
        assert!(answer["resolution"].as_u64() >= Some(resolution), "{answer}");
        assert!(
            answer["frames"][0]["total"]["latency_p95"].as_f64() > Some(1_500.0),
            "{answer}"
        );
        assert!(
            answer["notes"].as_array().is_some_and(|notes| !notes.is_empty()),
            "{answer}"
        );
    }
}
