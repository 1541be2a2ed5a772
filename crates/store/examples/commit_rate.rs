//! How many commits of one document a second a store takes, one after the other:
//! `cargo run --release -p weir-store --example commit_rate -- LOCATION [DOCUMENTS [SECONDS]]`.
#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant, SystemTime};
use weir_store::{Change, Key, Revision, Store, Transaction};

fn put(number: usize, value: &[u8]) -> Change {
    let key = Key::new(&format!("bench/documents/{number:08}")).expect("a key");
    Change::put(key, value)
}

fn transaction(changes: Vec<Change>) -> Transaction {
    Transaction {
        author: "bench".into(),
        note: "commit rate".into(),
        time: SystemTime::now(),
        changes,
    }
}

/// Fills the store, then writes one document after the other.
async fn measure(store: &dyn Store, documents: usize, time: Duration) -> Revision {
    let value = vec![b'x'; 1_000];
    let (_, mut revision) = store.read("bench/").await.expect("read");
    let begun = Instant::now();
    let all = (0..documents).map(|number| put(number, &value)).collect();
    revision = store.commit(transaction(all), revision).await.expect("commit");
    println!(
        "{documents} documents at once: {:.3} s",
        begun.elapsed().as_secs_f64()
    );

    let (begun, mut taken) = (Instant::now(), Vec::new());
    while begun.elapsed() < time {
        let commit = Instant::now();
        let change = vec![put(taken.len() % documents, &value)];
        revision = store.commit(transaction(change), revision).await.expect("commit");
        taken.push(commit.elapsed());
    }
    let rate = taken.len() as f64 / begun.elapsed().as_secs_f64();
    taken.sort();
    let at = |part: f64| taken[((taken.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    println!(
        "{rate:.0} commits a second; median {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    let begun = Instant::now();
    let (all, _) = store.read("bench/").await.expect("read");
    println!(
        "reading {} documents: {:.3} s",
        all.len(),
        begun.elapsed().as_secs_f64()
    );
    revision
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let location = arguments.next().expect("a location");
    let documents = arguments
        .next()
        .map_or(20_000, |it| it.parse().expect("a number"));
    let seconds = arguments.next().map_or(5, |it| it.parse().expect("a number"));
    let store = weir_store::open(&location).await.expect("a store");
    let revision = measure(&*store, documents, Duration::from_secs(seconds)).await;
    println!("at revision {revision}");
}
