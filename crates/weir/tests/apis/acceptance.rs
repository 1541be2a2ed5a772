//! What must hold while calls come in, and when the process dies: publishes under load and under kills, shares, limits.
//! And the list of what API management has to show, with the tests that show it.

use crate::support::{Call, until, upstream};
use crate::weir::Weir;
use crate::{Plane, petstore, runtime};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

const PUBLICATION: &str = "/api/v1/publications/pets/1.0.0/test";

/// What API management has to show, and the tests that show it: their files and names.
const ACCEPTANCE: &[(&str, &[&str])] = &[
    (
        "1 a document lists operations and findings",
        &["lifecycle a_document_that_is_posted_lists_operations_and_findings_and_serves_nothing"],
    ),
    (
        "2 gateways serve their environment",
        &["lifecycle gateways_serve_their_environment_and_receive_no_other"],
    ),
    (
        "3 a publish under load",
        &[
            "acceptance a_thousand_operations_appear_at_once_and_no_call_is_lost",
            "lifecycle a_thousand_operations_are_one_commit",
        ],
    ),
    (
        "4 a publish and a kill",
        &["acceptance a_publish_that_a_kill_interrupts_is_whole_or_absent"],
    ),
    (
        "5 conflicts",
        &["lifecycle paths_of_others_are_refused_with_their_names"],
    ),
    (
        "6 a document again",
        &["lifecycle a_document_that_is_uploaded_again_is_merged_and_compared"],
    ),
    (
        "7 breaking changes",
        &[
            "lifecycle changes_that_break_callers_need_force_and_a_dry_run_changes_nothing",
            "diff changes_of_responses_are_named_and_breaking_or_not",
            "diff changes_of_parameters_are_named_and_breaking_or_not",
            "diff changes_of_bodies_are_named_and_breaking_or_not",
        ],
    ),
    (
        "8 an approval is for one hash",
        &["lifecycle approvals_are_for_one_hash_and_not_for_ones_own"],
    ),
    (
        "9 no approval of an own change",
        &["lifecycle approvals_are_for_one_hash_and_not_for_ones_own"],
    ),
    (
        "10 promotion",
        &["lifecycle promotion_and_rollback_keep_the_runtime_of_their_environment"],
    ),
    (
        "11 rollback",
        &[
            "lifecycle promotion_and_rollback_keep_the_runtime_of_their_environment",
            "lifecycle a_rollback_reaches_the_first_of_many_revisions",
        ],
    ),
    (
        "12 a rollback of the configuration",
        &["subscribing a_rollback_of_the_configuration_leaves_subscriptions_and_keys_alone"],
    ),
    (
        "13 deprecation and sunset",
        &[
            "acceptance a_sunset_is_announced_in_every_answer_and_comes_by_itself",
            "changing deprecation_reaches_every_answer_and_the_end_is_410",
        ],
    ),
    (
        "14 a canary by cookie",
        &["acceptance a_tenth_of_ten_thousand_callers_is_on_the_new_side"],
    ),
    (
        "15 owned documents",
        &["lifecycle a_document_that_a_publication_owns_is_not_written_by_hand"],
    ),
    (
        "16 a gateway's stream",
        &["lifecycle gateways_serve_their_environment_and_receive_no_other"],
    ),
    ("17 a guard", &["ticker a_failing_candidate_goes_back_by_itself"]),
    (
        "18 the same difference everywhere",
        &[
            "lifecycle changes_that_break_callers_need_force_and_a_dry_run_changes_nothing",
            "commands the_life_of_an_api_from_a_terminal",
        ],
    ),
    (
        "19 automatic and manual plans",
        &[
            "subscribing automatic_subscriptions_are_good_at_once_and_their_keys_are_nowhere",
            "subscribing manual_plans_wait_for_approval",
        ],
    ),
    (
        "20 keys are shown once",
        &["subscribing automatic_subscriptions_are_good_at_once_and_their_keys_are_nowhere"],
    ),
    (
        "21 rotation",
        &[
            "acceptance the_old_key_ends_by_itself_after_the_overlap",
            "acceptance a_revoked_key_is_refused_by_all_gateways_within_a_second",
            "ticker keys_go_when_their_time_is_over_without_another_change",
            "subscribing rotation_overlaps_and_revocation_is_at_once",
        ],
    ),
    (
        "22 a key of another API",
        &[
            "subscribing keys_open_their_api_only_and_a_pause_says_so",
            "explaining keys_of_others_and_paused_subscriptions_are_explained",
        ],
    ),
    (
        "23 a pause",
        &["subscribing keys_open_their_api_only_and_a_pause_says_so"],
    ),
    (
        "24 a plan moves its subscriptions",
        &["acceptance all_subscriptions_move_to_another_plan_without_a_refused_call"],
    ),
    (
        "25 conditions",
        &["subscribing conditions_are_accepted_in_their_current_revision"],
    ),
    (
        "26 keys and tokens",
        &["tokens keys_and_tokens_have_their_own_limits_and_the_first_plan_takes_a_call_with_both"],
    ),
    (
        "27 the end of a subscription",
        &[
            "ticker a_subscription_is_announced_before_its_end_and_refused_after",
            "notifications a_subscription_ends_by_itself",
        ],
    ),
    (
        "57 exact counts",
        &[
            "counts counts_are_exact",
            "store counts_are_exact_and_percentiles_close",
        ],
    ),
    (
        "58 kills, and a control plane that is away",
        &[
            "delivery a_kill_loses_little_and_is_reported",
            "delivery gateways_deliver_and_wait_while_the_control_plane_is_away",
            "backlog half_an_hour_waits_and_nothing_is_lost",
        ],
    ),
    (
        "59 a batch that comes twice",
        &[
            "delivery a_batch_that_is_delivered_twice_counts_once",
            "store a_batch_counts_once",
        ],
    ),
    (
        // What it costs a call is measured: weir-bench A1 --gateways weir-native,weir-analytics.
        "60 bounded memory",
        &["aggregate memory_is_bounded_with_a_million_keys"],
    ),
    (
        "61 alerts",
        &[
            "alerts an_alert_fires_once_and_ends",
            "alerts no_data_is_a_state_of_its_own",
            "notifications reports_and_alerts_come_by_mail",
            "states alerts_carry_the_first_and_the_last_value_and_a_digest_each_hour",
        ],
    ),
    (
        "62 a panel's numbers",
        &[
            "counts csv_has_the_same_numbers",
            "watching 62: the CSV of a panel is the answer of the API, and its query run by curl gives the same numbers",
        ],
    ),
    (
        "63 marks of commits",
        &[
            "showing a_commit_is_a_mark_that_leads_to_its_diff",
            "managing 63: a commit is a mark on the charts, leads to its changes, and can be switched off",
        ],
    ),
    (
        "64 retention",
        &[
            "retention old_counts_become_coarser_and_the_file_smaller",
            "store retention_makes_the_file_smaller_and_answers_coarser",
        ],
    ),
];

/// The points that are here: of definitions and plans, and of analytics. Those of portals and pages are the console's.
const NUMBERS: [std::ops::RangeInclusive<usize>; 2] = [1..=27, 57..=64];

#[test]
fn every_acceptance_has_its_tests() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut numbers = NUMBERS.into_iter().flatten();
    for (what, tests) in ACCEPTANCE {
        let number = numbers.next().expect("no more than there are");
        assert!(what.starts_with(&format!("{number} ")), "{what}");
        for test in *tests {
            let (file, name) = test.split_once(' ').expect("a file and a name");
            let path = match file {
                "diff" => format!("{root}/apis/src/diff/tests.rs"),
                "ticker" => format!("{root}/control/src/api/apis/ticker/tests.rs"),
                "backlog" => format!("{root}/control/src/analytics/backlog.rs"),
                "aggregate" => format!("{root}/analytics/src/aggregate/tests.rs"),
                "states" => format!("{root}/analytics/src/alerts/state.rs"),
                "store" => format!("{root}/analytics/tests/store.rs"),
                "counts" | "delivery" | "alerts" | "showing" | "retention" => {
                    format!("{root}/weir/tests/analytics/{file}.rs")
                }
                "managing" | "watching" => format!("{root}/../console/tests/{file}.spec.ts"),
                file => format!("{root}/weir/tests/apis/{file}.rs"),
            };
            let text = std::fs::read_to_string(&path).expect("a file");
            let has_it = match path.ends_with(".ts") {
                true => text.contains(&format!("test('{name}'")),
                false => text.contains(&format!("fn {name}(")),
            };
            assert!(has_it, "{what}: no test {name} in {path}");
        }
    }
    assert_eq!(numbers.next(), None, "a point without a test");
}

/// A connection that stays.
struct Connection {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
    host: String,
}

impl Connection {
    fn to(address: &str) -> Self {
        let writer = TcpStream::connect(address).expect("connected");
        writer
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("set");
        writer.set_nodelay(true).expect("set");
        Self {
            reader: BufReader::new(writer.try_clone().expect("cloned")),
            writer,
            host: address.to_owned(),
        }
    }

    /// The status and the head of the answer to a call.
    fn get(&mut self, path: &str, headers: &str) -> (u16, String) {
        let call = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", self.host);
        self.writer.write_all(call.as_bytes()).expect("sent");
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            assert!(
                self.reader.read_line(&mut line).expect("an answer") > 0,
                "the connection was closed: {head}"
            );
            if line == "\r\n" {
                break;
            }
            let line = line.to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a number");
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).expect("a body");
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|it| it.parse().ok())
            .expect("a status");
        (status, head)
    }
}

fn many(prefix: &str, count: usize) -> Value {
    let paths: serde_json::Map<String, Value> = (0..count)
        .map(|it| {
            let operation = json!({"get": {"operationId": format!("{prefix}{it}"), "responses": {"200": {"description": "ok"}}}});
            (format!("/{prefix}{it}"), operation)
        })
        .collect();
    json!({"openapi": "3.1.0", "info": {"title": "Pets", "version": "1"}, "paths": paths})
}

fn commits(plane: &Plane) -> usize {
    let history = plane.get("/api/v1/history?limit=1000").json();
    history["items"].as_array().expect("a list").len()
}

/// 3
#[test]
fn a_thousand_operations_appear_at_once_and_no_call_is_lost() {
    let plane = Plane::start();
    plane.version(&many("p", 1000));
    let (is_over, address) = (Arc::new(AtomicBool::new(false)), plane.weir.proxy());
    let begun = Arc::new(Barrier::new(3));
    let callers: Vec<_> = (0..2)
        .map(|caller| {
            let (is_over, address, begun) = (Arc::clone(&is_over), address.clone(), Arc::clone(&begun));
            std::thread::spawn(move || {
                let mut connection = Connection::to(&address);
                let (mut calls, mut served) = (0, 0);
                while !is_over.load(Ordering::SeqCst) || served == 0 {
                    let (status, _) = connection.get(&format!("/v1/p{}", (calls * 7 + caller) % 1000), "");
                    calls += 1;
                    if calls == 1 {
                        begun.wait();
                    }
                    match status {
                        200 => served += 1,
                        404 => assert_eq!(served, 0, "a route is missing after another one was served"),
                        other => panic!("{other}"),
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
                (calls, served)
            })
        })
        .collect();
    begun.wait();
    let before = commits(&plane);
    let begun = Instant::now();
    plane.publish("test", upstream("pets"));
    let took = begun.elapsed();
    until("the last one is served", || {
        plane.status("/v1/p999", None) == Some(200)
    });
    let served_after = begun.elapsed();
    assert_eq!(commits(&plane), before + 1);
    is_over.store(true, Ordering::SeqCst);
    for caller in callers {
        let (calls, served) = caller.join().expect("no call was lost");
        assert!(served > 0 && calls > served, "{calls} {served}");
    }
    println!("a publish of 1,000 operations took {took:?}, and was served after {served_after:?}");
}

/// 4
#[test]
fn a_publish_that_a_kill_interrupts_is_whole_or_absent() {
    const PUBLISHES: usize = 20;
    let kills: usize = std::env::var("KILLS").map_or(5, |it| it.parse().expect("KILLS is a number"));
    let folder = tempfile::tempdir().expect("a folder");
    let flags = [
        "--data",
        "data",
        "--console",
        "127.0.0.1:0",
        "--environment",
        "test",
    ];
    let server = upstream("pets");
    let put = |weir: &Weir, method: &str, path: &str, body: &Value| {
        Call::new(method, &weir.console(), path)
            .body(&body.to_string())
            .attempt()
    };
    let mut weir = Weir::start(folder.path(), &flags);
    put(&weir, "PUT", "/api/v1/environments/test", &json!({}))
        .expect("an answer")
        .expect(201);
    put(&weir, "PUT", "/api/v1/apis/pets", &json!({}))
        .expect("an answer")
        .expect(201);
    let first = many("x", 5);
    put(&weir, "POST", "/api/v1/apis/pets/versions?version=1.0.0", &first)
        .expect("an answer")
        .expect(201);
    for kill in 0..kills {
        let console = weir.console();
        let publishing = std::thread::spawn(move || {
            for publish in 0..PUBLISHES {
                let document = many(&format!("k{kill}n{publish}x"), 5);
                let draft = Call::new("PUT", &console, "/api/v1/apis/pets/versions/1.0.0")
                    .body(&document.to_string());
                let body = json!({"runtime": runtime(server), "force": true});
                let publish = Call::new("POST", &console, PUBLICATION).body(&body.to_string());
                if draft.attempt().is_none() || publish.attempt().is_none() {
                    return;
                }
            }
        });
        // At another moment each time.
        std::thread::sleep(Duration::from_millis(40 + 170 * kill as u64 % 930));
        weir.kill();
        publishing.join().expect("it ends");
        weir = Weir::start(folder.path(), &flags);
        let known = Call::get(&weir.console(), PUBLICATION).make();
        if known.status == 404 {
            continue;
        }
        let revision = known.json()["revision"].as_u64().expect("a revision");
        let exported = Call::get(
            &weir.console(),
            "/api/v1/apis/pets/versions/1.0.0/openapi?environment=test",
        )
        .make();
        let paths = exported.json()["paths"].as_object().expect("paths").clone();
        assert_eq!(paths.len(), 5, "{exported:?}");
        for path in paths.keys() {
            let explain = json!({"url": format!("http://localhost/v1{path}")});
            let explanation = put(&weir, "POST", "/api/v1/explain", &explain)
                .expect("an answer")
                .expect(200)
                .json();
            assert_eq!(
                explanation["publication"], "pets/1.0.0/test",
                "{path} of revision {revision}: {explanation:#}"
            );
        }
        let last = known.json()["history"]
            .as_array()
            .and_then(|it| it.last().cloned())
            .expect("a history");
        assert_eq!(last["revision"], revision);
    }
}

/// 13
#[test]
fn a_sunset_is_announced_in_every_answer_and_comes_by_itself() {
    let plane = Plane::start();
    plane.version(&petstore());
    let plan = json!({"state": "published", "limits": [{"count": 1, "per": "month"}]});
    plane
        .put("/api/v1/apis/pets/versions/1.0.0/plans/gold", plan)
        .expect(201);
    plane.put("/api/v1/applications/shop", json!({})).expect(201);
    plane.publish("test", upstream("pets"));
    let wanted = json!({"application": "shop", "publication": "pets/1.0.0/test", "plan": "gold"});
    let made = plane.post("/api/v1/subscriptions", wanted).expect(201).json();
    let key = made["credential"]["key"].as_str().expect("a key").to_owned();
    let at = |sunset: u64| json!({"since": now(), "sunset": sunset, "enforce": true, "successor": "https://example.com/v2"});
    let since = now();
    plane
        .put(
            &format!("{PUBLICATION}/deprecation"),
            json!({"since": since, "sunset": since + 86_400}),
        )
        .expect(200);
    until("it is told", || {
        plane
            .through("/v1/pets", None)
            .is_some_and(|it| it.header("sunset").is_some())
    });
    for (key, expected) in [(None, 401), (Some(&key), 200), (Some(&key), 429)] {
        let answer = plane
            .through("/v1/pets", key.map(String::as_str))
            .expect("an answer")
            .expect(expected);
        assert_eq!(
            answer.header("deprecation"),
            Some(format!("@{since}")),
            "{answer:?}"
        );
        assert!(answer.header("sunset").is_some(), "{answer:?}");
    }
    plane
        .put(&format!("{PUBLICATION}/deprecation"), at(now() + 8))
        .expect(200);
    until("it has come", || plane.status("/v1/pets", None) == Some(410));
    let gone = plane
        .through("/v1/pets", Some(&key))
        .expect("an answer")
        .expect(410);
    assert!(
        gone.header("link")
            .is_some_and(|it| it.contains("successor-version")),
        "{gone:?}"
    );
    until("the history tells it", || {
        let history = plane.get(PUBLICATION).json()["history"].clone();
        let last = history.as_array().and_then(|it| it.last()).expect("a history");
        (&last["action"], &last["by"]) == (&json!("sunset"), &json!("weir"))
    });
    // It can be put off, and then holds no one up.
    plane
        .put(&format!("{PUBLICATION}/deprecation"), at(now() + 86_400))
        .expect(200);
    until("it is put off", || plane.status("/v1/pets", None) == Some(401));
    plane
        .post(&format!("{PUBLICATION}/undeprecate"), json!({}))
        .expect(200);
    plane.post(PUBLICATION, json!({})).expect(200);
}

/// Seconds since 1970.
fn now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("after 1970").as_secs()
}

/// 14
#[test]
fn a_tenth_of_ten_thousand_callers_is_on_the_new_side() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane.publish("test", upstream("pets"));
    let edit = json!({"chain": [{"response-rewrite": {"headers": [{"set": {"X-Side": "new"}}]}}]});
    plane.put("/api/v1/apis/pets/versions/1.0.0", edit).expect(200);
    plane
        .post("/api/v1/apis/pets/versions/1.0.0/revisions", json!({}))
        .expect(201);
    let canary = json!({"revision": 2, "share": 1000, "by": {"cookie": "sid"}});
    plane.put(&format!("{PUBLICATION}/canary"), canary).expect(200);
    let mut connection = Connection::to(&plane.weir.proxy());
    let mut is_new = |caller: u32| {
        let (status, head) = connection.get("/v1/pets", &format!("Cookie: sid=caller-{caller}\r\n"));
        assert!(status == 200 || status == 404, "{head}");
        head.contains("x-side: new")
    };
    until("some are on the new side", || (0..50).any(&mut is_new));
    let sides: Vec<bool> = (0..10_000).map(&mut is_new).collect();
    let share = sides.iter().filter(|it| **it).count();
    assert!((900..=1100).contains(&share), "{share} of 10,000");
    assert!(
        (0..500).all(|caller| is_new(caller) == sides[caller as usize]),
        "the same side again"
    );
    let before = commits(&plane);
    plane
        .post(&format!("{PUBLICATION}/canary/abort"), json!({}))
        .expect(200);
    assert_eq!(commits(&plane), before + 1);
    until("all are on the old side", || !(0..100).any(&mut is_new));
}

/// 21
#[test]
fn the_old_key_ends_by_itself_after_the_overlap() {
    let plane = Plane::start();
    plane.version(&petstore());
    let plan = |overlap: u64| {
        let plan = json!({"state": "published", "overlap": overlap});
        plane.put("/api/v1/apis/pets/versions/1.0.0/plans/gold", plan)
    };
    plan(3600).expect(201);
    plane.put("/api/v1/applications/shop", json!({})).expect(201);
    plane.publish("test", upstream("pets"));
    let wanted = json!({"application": "shop", "publication": "pets/1.0.0/test", "plan": "gold"});
    let made = plane.post("/api/v1/subscriptions", wanted).expect(201).json();
    let text = |value: &Value, pointer: &str| {
        value
            .pointer(pointer)
            .and_then(Value::as_str)
            .expect("a text")
            .to_owned()
    };
    let path = format!("/api/v1/subscriptions/{}/credentials", text(&made, "/id"));
    let rotate = |id: String| plane.post(&path, json!({"replaces": id})).expect(201).json();
    let status = |key: &str| plane.status("/v1/pets", Some(key));
    let first = text(&made, "/credential/key");
    until("the key is good", || status(&first) == Some(200));
    let second = rotate(text(&made, "/credential/id"));
    until("the second key is good", || {
        status(&text(&second, "/key")) == Some(200)
    });
    assert_eq!(status(&first), Some(200), "both are good");
    plan(1).expect(200);
    let third = rotate(text(&second, "/id"));
    until("the second one has ended", || {
        status(&text(&second, "/key")) == Some(401)
    });
    until("the third key is good", || {
        status(&text(&third, "/key")) == Some(200)
    });
    assert_eq!(status(&first), Some(200), "its overlap is longer");
}

/// 21
#[test]
fn a_revoked_key_is_refused_by_all_gateways_within_a_second() {
    let plane = Plane::start();
    let control = format!("http://{}", plane.weir.console());
    let folder = tempfile::tempdir().expect("a folder");
    let gateway = || {
        let flags = [
            "--role",
            "gateway",
            "--control",
            &control,
            "--environment",
            "test",
        ];
        Weir::start(folder.path(), &flags)
    };
    let gateways = [gateway(), gateway(), gateway()];
    plane.version(&petstore());
    plane
        .put(
            "/api/v1/apis/pets/versions/1.0.0/plans/gold",
            json!({"state": "published"}),
        )
        .expect(201);
    plane.put("/api/v1/applications/shop", json!({})).expect(201);
    plane.publish("test", upstream("pets"));
    let wanted = json!({"application": "shop", "publication": "pets/1.0.0/test", "plan": "gold"});
    let made = plane.post("/api/v1/subscriptions", wanted).expect(201).json();
    let proxies: Vec<String> = gateways.iter().chain([&plane.weir]).map(Weir::proxy).collect();
    let all_say = |key: &str, expected: u16| {
        let status_at = |proxy: &String| {
            let call = Call::get(proxy, "/v1/pets").header("X-API-Key", key);
            call.attempt().map(|it| it.status)
        };
        proxies.iter().all(|proxy| status_at(proxy) == Some(expected))
    };
    let path = format!(
        "/api/v1/subscriptions/{}/credentials",
        made["id"].as_str().expect("an id")
    );
    // The best of a few: the machine may be busy with other tests.
    let mut shortest = Duration::MAX;
    for _ in 0..5 {
        let fresh = plane.post(&path, json!({})).expect(201).json();
        let key = fresh["key"].as_str().expect("a key");
        until("all gateways take the key", || all_say(key, 200));
        let credential = format!("{path}/{}", fresh["id"].as_str().expect("an id"));
        plane.call("DELETE", &credential, &json!({})).make().expect(204);
        let begun = Instant::now();
        until("all gateways refuse it", || all_say(key, 401));
        shortest = shortest.min(begun.elapsed());
    }
    assert!(shortest < Duration::from_secs(1), "{shortest:?}");
}

/// 24
#[test]
fn all_subscriptions_move_to_another_plan_without_a_refused_call() {
    let plane = Plane::start();
    plane.version(&petstore());
    let plans = "/api/v1/apis/pets/versions/1.0.0/plans";
    plane
        .put(&format!("{plans}/gold"), json!({"state": "published"}))
        .expect(201);
    plane
        .put(
            &format!("{plans}/silver"),
            json!({"state": "published", "limits": [{"count": 100000, "per": "month"}]}),
        )
        .expect(201);
    plane.publish("test", upstream("pets"));
    let keys: Vec<String> = (0..5)
        .map(|it| {
            plane.put(&format!("/api/v1/applications/shop-{it}"), json!({})).expect(201);
            let wanted = json!({"application": format!("shop-{it}"), "publication": "pets/1.0.0/test", "plan": "gold"});
            let made = plane.post("/api/v1/subscriptions", wanted).expect(201).json();
            made["credential"]["key"].as_str().expect("a key").to_owned()
        })
        .collect();
    let mut connection = Connection::to(&plane.weir.proxy());
    for key in &keys {
        until("the key is good", || {
            connection.get("/v1/pets", &format!("X-API-Key: {key}\r\n")).0 == 200
        });
    }
    // Calls come in all the time: while the plan is closed, and while gateways take that over.
    let is_over = Arc::new(AtomicBool::new(false));
    let begun = Arc::new(Barrier::new(2));
    let caller = {
        let (is_over, begun, keys) = (Arc::clone(&is_over), Arc::clone(&begun), keys.clone());
        std::thread::spawn(move || {
            let mut calls = 0;
            while !is_over.load(Ordering::SeqCst) {
                for key in &keys {
                    let (status, head) = connection.get("/v1/pets", &format!("X-API-Key: {key}\r\n"));
                    assert_eq!(status, 200, "{head}");
                    calls += 1;
                }
                if calls == keys.len() {
                    begun.wait();
                }
            }
            calls
        })
    };
    begun.wait();
    let before = commits(&plane);
    plane
        .post(
            &format!("{plans}/gold/state"),
            json!({"state": "closed", "move_to": "silver"}),
        )
        .expect(200);
    assert_eq!(commits(&plane), before + 1);
    let mut connection = Connection::to(&plane.weir.proxy());
    until("the other plan counts for all", || {
        let counted = keys.iter().map(|key| {
            let (status, head) = connection.get("/v1/pets", &format!("X-API-Key: {key}\r\n"));
            assert_eq!(status, 200, "{head}");
            head.contains("ratelimit-limit: 100000")
        });
        // All are called, whatever the first says.
        counted.filter(|it| *it).count() == keys.len()
    });
    is_over.store(true, Ordering::SeqCst);
    assert!(caller.join().expect("no call was refused") > keys.len());
}
