//! The users that speak for gateways, and the list of all gateways.

use super::*;
use std::time::UNIX_EPOCH;
use weir_store::memory::MemoryStore;
use weir_store::{Change, Transaction};

#[test]
fn what_is_too_long_is_not_kept() {
    let gateways = Gateways::default();
    let report = |length: usize| GatewayReport {
        revision: 1,
        state: SERVING.to_owned(),
        version: "1".repeat(length),
        ..GatewayReport::default()
    };
    for (name, length) in [
        ("a", MAX_TEXT),
        ("b", MAX_TEXT + 1),
        (&*"c".repeat(MAX_TEXT + 1), 1),
    ] {
        gateways.note(name, report(length), UNIX_EPOCH);
    }
    let listed = gateways.to_json(UNIX_EPOCH);
    assert_eq!((listed.len(), &listed[0]["name"]), (1, &json!("a")));
}

#[test]
fn one_user_at_a_time_speaks_for_a_name() {
    let mut known = FleetState::default();
    let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    for (name, speaker, seconds, expected) in [
        ("edge-1", "one", 100, true),
        ("edge-1", "other", 101, false),
        ("edge-2", "other", 101, true),
        ("edge-1", "one", 120, true),
        ("edge-1", "other", 150, false),
        // 30 seconds of silence: what was refused is no word of it.
        ("edge-1", "other", 151, true),
        ("edge-1", "one", 152, false),
    ] {
        let may = known.claim_name(name, speaker, at(seconds));
        assert_eq!(may, expected, "{speaker} for {name} at {seconds}");
    }
    // Names are bounded; those that are silent make room, as `edge-2` is.
    let mut named = |range: std::ops::Range<usize>, seconds: u64| {
        range
            .filter(|it| known.claim_name(&format!("n{it}"), "many", at(seconds)))
            .count()
    };
    assert_eq!(named(0..MAX_GATEWAYS, 160), MAX_GATEWAYS - 1);
    assert_eq!(named(0..MAX_GATEWAYS, 160), MAX_GATEWAYS - 1);
    assert_eq!(named(MAX_GATEWAYS..MAX_GATEWAYS + 5, 300), 5);
}

#[test]
fn a_gateway_that_follows_the_store_speaks_for_its_name() {
    let (gateways, at) = (Gateways::default(), |seconds| {
        UNIX_EPOCH + Duration::from_secs(seconds)
    });
    let token = |name: &str, seconds| gateways.known().claim_name(name, "token", at(seconds));
    let stored = |name: &str, seconds| {
        gateways.note_stored(name, GatewayReport::default(), ReportAge::New, at(seconds));
    };
    assert!(token("late", 100));
    stored("edge", 100);
    stored("late", 101);
    for (name, seconds, expected) in [
        ("edge", 101, false),
        ("late", 102, false),
        ("edge", 130, false),
        ("edge", 131, true),
    ] {
        assert_eq!(token(name, seconds), expected, "{name} {seconds}");
    }
    stored(&"x".repeat(MAX_TEXT + 1), 200);
    assert_eq!(gateways.known().speakers.len(), 2);
}

#[tokio::test]
async fn reports_that_are_found_at_the_start_hold_their_names_from_when_they_were_made() {
    let store = MemoryStore::new();
    let now = SystemTime::now();
    let made = |ago: i64| {
        let now = now.duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as i64;
        (now - ago * 1_000) as u64
    };
    let report = |(name, ago): (&str, i64)| {
        let key = Key::new(&format!("{PREFIX}{name}")).expect("a key");
        Change::put(key, json!({ "time": made(ago) }).to_string().into_bytes())
    };
    let reports = Transaction {
        author: "test".to_owned(),
        note: String::new(),
        time: now,
        changes: [("moved", 35), ("silent", 20), ("ahead", -60)].map(report).into(),
    };
    store.commit(reports, Revision(0)).await.expect("made");
    let (gateways, (commits, _told)) = (Gateways::default(), crate::events::commits());
    let opened = gateways.open(Arc::new(store), Vec::new(), commits).await;
    opened.expect("opened");
    assert_eq!(gateways.to_json(now).len(), 3);
    for (name, later, expected) in [
        ("moved", 0, true),
        ("silent", 5, false),
        ("silent", 11, true),
        ("ahead", 25, false),
        ("ahead", 40, true),
    ] {
        let may = gateways
            .known()
            .claim_name(name, "token", now + Duration::from_secs(later));
        assert_eq!(may, expected, "{name} after {later}");
    }
}

#[test]
fn a_process_speaks_for_its_own_gateway() {
    let (gateways, now) = (Gateways::default(), UNIX_EPOCH + Duration::from_secs(100));
    let edge = Caller::Key(crate::access::Role::Gateway);
    assert!(gateways.claim_name("here", &edge, now).is_ok());
    gateways.note_own("here", GatewayReport::default(), now);
    assert!(gateways.claim_name("here", &edge, now).is_err());
    assert!(
        gateways
            .claim_name(&"x".repeat(MAX_TEXT + 1), &edge, now)
            .is_err()
    );
}

#[test]
fn a_gateway_is_forgotten_until_it_reports_again() {
    let gateways = Gateways::default();
    let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    assert_eq!(gateways.silence("edge", at(1)), None);
    gateways.note("edge", GatewayReport::default(), at(100));
    assert_eq!(gateways.silence("edge", at(140)), Some(Duration::from_secs(40)));
    gateways.forget("edge");
    assert!(gateways.to_json(at(140)).is_empty());
    gateways.note("edge", GatewayReport::default(), at(150));
    assert_eq!(gateways.to_json(at(150)).len(), 1);
}

#[test]
fn lag_is_what_was_committed_since() {
    let gateways = Gateways::default();
    let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    for (revision, seconds) in [(5, 100), (7, 101), (9, 104)] {
        gateways.commit(Revision(revision), at(seconds));
    }
    for (name, revision) in [("a", 9), ("b", 8), ("c", 4)] {
        let report = GatewayReport {
            revision,
            state: "serving".to_owned(),
            ..GatewayReport::default()
        };
        gateways.note(name, report, at(104));
    }
    let listed_at = |now| -> Vec<(u64, u64, String)> {
        let number = |it: &Value, field: &str| it[field].as_u64().expect("a number");
        let one = |it: &Value| {
            let state = it["state"].as_str().expect("a text").to_owned();
            (number(it, "lag_revisions"), number(it, "lag_ms"), state)
        };
        gateways.to_json(at(now)).iter().map(one).collect()
    };
    let serving = || "serving".to_owned();
    assert_eq!(
        listed_at(105),
        [(0, 0, serving()), (1, 1000, serving()), (3, 5000, serving())]
    );
    assert!(listed_at(200).iter().all(|(.., state)| state == "offline"));
    assert!(listed_at(100_000).is_empty());
}

#[test]
fn one_that_is_out_has_to_serve_a_revision_as_others_do() {
    let at = UNIX_EPOCH + Duration::from_secs(100);
    for (state, draining, revision, expected) in [
        (SERVING, false, 8, false),
        (SERVING, true, 8, false),
        (SERVING, true, 9, true),
        // What is cut off is not waited for.
        ("store-unreachable", false, 8, true),
        ("last-known-good", true, 8, true),
    ] {
        let report = GatewayReport {
            revision,
            state: state.to_owned(),
            draining,
            time: 100_000,
            ..GatewayReport::default()
        };
        let stored = serde_json::to_vec(&report).expect("a text");
        let gateways = Gateways::default();
        gateways.note("edge", report, at);
        let found = (
            gateways.serve(Revision(9), at),
            Gateways::is_at(&stored, Revision(9), at),
        );
        assert_eq!(found, (expected, expected), "{state} {draining} {revision}");
        let gateway = gateways.to_json(at).remove(0);
        assert_eq!(
            (&gateway["state"], &gateway["draining"]),
            (&json!(state), &json!(draining))
        );
    }
}

#[test]
fn a_revision_is_served_when_all_gateways_of_its_environment_have_it() {
    let gateways = Gateways::default();
    let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    let note = |name: &str, revision: u64, environments: &[&str], seconds: u64| {
        let report = GatewayReport {
            revision,
            state: SERVING.to_owned(),
            environments: environments.iter().map(|it| (*it).to_owned()).collect(),
            ..GatewayReport::default()
        };
        gateways.note(name, report, at(seconds));
    };
    note("old", 9, &[], 100);
    note("one", 9, &["test"], 100);
    note("two", 8, &["test", "prod"], 100);
    note("gone", 3, &["prod"], 50);
    for (environment, revision, served, count, behind, away) in [
        ("test", 8, true, 2, vec![], vec![]),
        ("test", 9, false, 2, vec!["two"], vec![]),
        ("prod", 8, true, 1, vec![], vec!["gone"]),
        ("default", 9, true, 1, vec![], vec![]),
        ("empty", 1, false, 0, vec![], vec![]),
    ] {
        let expected = Rollout {
            revision,
            served,
            gateways: count,
            lagging: behind.into_iter().map(str::to_owned).collect(),
            offline: away.into_iter().map(str::to_owned).collect(),
        };
        assert_eq!(
            gateways.rollout(environment, Revision(revision), at(101)),
            expected
        );
    }
}
