//! Killing a process while it commits, again and again: what was reported as made is there, and each commit is
//! there whole or not at all.
//!
//! The process is this test itself, started again with [`PLACE`] set; it commits until it is killed and prints the
//! number of each commit that was made.

use crate::etcd::Cluster;
use crate::fixture::{put, text, transaction};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_store::{Change, Store};

/// The variable with the place of the process's store, and the number of documents that it commits at once.
const PLACE: &str = "WEIR_STORE_TEST_PLACE";

fn changes(documents: usize, number: u64) -> Vec<Change> {
    let value = number.to_string();
    let name = |document| match number % 3 {
        // Some come and go.
        0 => format!("crash/{document:04}"),
        _ => format!("crash/{document:04}/x"),
    };
    let mut changes: Vec<Change> = (0..documents).map(|it| put(&name(it), &value)).collect();
    if number.is_multiple_of(3) {
        let gone = (0..documents).map(|it| Change::Delete {
            key: crate::fixture::key(&format!("crash/{it:04}/x")),
        });
        changes.extend(gone);
    }
    changes
}

/// The process that is killed. On its own it does nothing.
#[tokio::test]
async fn writer() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let (documents, location) = place.split_once(' ').expect("documents and a location");
    let documents = documents.parse().expect("a number");
    let store = weir_store::open(location).await.expect("it opens");
    let (all, mut revision) = store.read("crash/").await.expect("it is read");
    let numbers = all.iter().map(|it| text(it).1.parse::<u64>().expect("a number"));
    let mut number = numbers.max().unwrap_or(0);
    loop {
        number += 1;
        let commit = transaction(changes(documents, number));
        revision = store.commit(commit, revision).await.expect("it is made");
        writeln!(std::io::stderr(), "made {number}").expect("somebody reads");
    }
}

/// Starts the process, waits until it has made some commits, and kills it a moment later.
fn write_and_kill(location: &str, documents: usize, round: u64) -> u64 {
    let mut process = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "crash::writer", "--nocapture"])
        .env(PLACE, format!("{documents} {location}"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = process.stderr.take().expect("its output");
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let mut made = 0;
    for _ in 0..1 + round % 4 {
        let line = lines.next().expect("it commits");
        made = line
            .strip_prefix("made ")
            .and_then(|it| it.parse().ok())
            .unwrap_or_else(|| panic!("{line}"));
    }
    // Somewhere in the next commits.
    let moment = Duration::from_micros(round * 997 % 20_000);
    let begun = Instant::now();
    while begun.elapsed() < moment {
        std::hint::spin_loop();
    }
    process.kill().expect("it is killed");
    process.wait().expect("it ends");
    let last = lines
        .filter_map(|line| line.strip_prefix("made ")?.parse().ok())
        .last();
    last.unwrap_or(made)
}

/// Every commit is there whole: documents and history.
async fn assert_whole(store: &Arc<dyn Store>, documents: usize, made: u64) {
    let (all, _) = store.read("crash/").await.expect("it is read");
    let numbers: Vec<u64> = all
        .iter()
        .map(|it| text(it).1.parse().expect("a number"))
        .collect();
    let last = numbers.iter().copied().max().expect("there is a commit");
    assert!(
        last == made || last == made + 1,
        "{last} is there, {made} was made"
    );
    assert_eq!(
        numbers.iter().filter(|it| **it == last).count(),
        documents,
        "commit {last}"
    );
    let history = store.history("crash/", None, 1).await.expect("the history");
    let expected = match last % 3 {
        0 if last >= 2 => documents * 2,
        _ => documents,
    };
    assert_eq!(history.len(), expected, "the record of commit {last}");
    let value = last.to_string();
    let is_of_it = |it: &&[u8]| **it == *value.as_bytes();
    assert!(
        history
            .iter()
            .filter_map(|it| it.after.as_deref())
            .all(|it| is_of_it(&it))
    );
}

#[tokio::test]
async fn sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = format!("sqlite:{}", folder.path().display());
    for round in 0..25 {
        let made = write_and_kill(&location, 50, round);
        let store = weir_store::open(&location).await.expect("it opens");
        assert_whole(&store, 50, made).await;
    }
}

#[tokio::test]
async fn etcd_small_commits() {
    etcd(50, 12).await;
}

/// These take many transactions of etcd each.
#[tokio::test]
async fn etcd_large_commits() {
    etcd(600, 20).await;
}

async fn etcd(documents: usize, rounds: u64) {
    let cluster = Cluster::start(1, &[]).await;
    let location = cluster.location();
    for round in 0..rounds {
        let made = write_and_kill(&location, documents, round);
        // Before and after what was pending is finished by the next process.
        let store = weir_store::open(&location).await.expect("it opens");
        assert_whole(&store, documents, made).await;
    }
}
