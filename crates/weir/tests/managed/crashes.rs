//! Killing Weir while it commits: what was answered is there, and of every commit all or nothing.

use crate::support::{Call, STOCK_KEY, Weir};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const ROUNDS: u64 = 6;

/// A configuration whose routes all say the same number.
fn configuration(number: u64) -> String {
    let route = |id: u64| {
        format!("{{\"id\": \"{id}\", \"uri\": \"/{id}\", \"desc\": \"{number}\", \"upstream_id\": \"u\"}}")
    };
    let routes: Vec<String> = (0..20).map(route).collect();
    format!(
        "{{\"upstreams\": [{{\"id\": \"u\", \"type\": \"roundrobin\", \"nodes\": {{\"127.0.0.1:1\": 1}}, \"desc\": \"{number}\"}}], \
         \"routes\": [{}]}}",
        routes.join(",")
    )
}

/// The numbers that the stored routes say.
fn numbers(address: &str) -> Vec<u64> {
    let list = Call::get(address, "/apisix/admin/routes")
        .header("X-API-KEY", STOCK_KEY)
        .make()
        .expect(200)
        .json();
    let items = list["list"].as_array().expect("a list").clone();
    let number = |it: &serde_json::Value| {
        it["value"]["desc"]
            .as_str()
            .expect("a text")
            .parse()
            .expect("a number")
    };
    items.iter().map(number).collect()
}

#[test]
fn a_kill_leaves_all_of_a_commit_or_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let answered = Arc::new(AtomicU64::new(0));
    let mut next = 1;
    for round in 0..ROUNDS {
        let weir = Weir::start(
            folder.path(),
            &["--data", "data", "--apisix-admin", "127.0.0.1:0"],
        );
        let address = weir.apisix();
        let found = numbers(&address);
        let least = answered.load(Ordering::Acquire);
        if round > 0 {
            assert_eq!(found.len(), 20, "round {round}");
            assert!(found.iter().all(|it| *it == found[0]), "half a commit: {found:?}");
            assert!(found[0] >= least, "{found:?}, but {least} was answered");
        }
        let (writer_answered, begin) = (Arc::clone(&answered), next);
        let writer = std::thread::spawn(move || {
            for number in begin.. {
                let call = Call::new("PUT", &address, "/apisix/admin/configs")
                    .header("X-API-KEY", STOCK_KEY)
                    .header("X-Digest", &number.to_string());
                match call.body(&configuration(number)).attempt() {
                    Some(answer) if answer.status < 300 => writer_answered.store(number, Ordering::Release),
                    Some(answer) => panic!("{answer:?}"),
                    None => return number,
                }
            }
            0
        });
        // Some writes into it, at another point in each round.
        let enough = least + 3 + round;
        while answered.load(Ordering::Acquire) < enough {
            assert!(!writer.is_finished(), "writes fail before the kill");
            std::thread::yield_now();
        }
        weir.kill();
        next = writer.join().expect("a number") + 1;
    }
}
