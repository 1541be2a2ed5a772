//! History and compaction.

use crate::fixture::{Fixture, delete, next, put, transaction};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weir_store::{HistoryEntry, Revision, Transaction, WatchError};

/// Author, note, key, before, after.
type Line = (String, String, String, Option<String>, Option<String>);

fn line(recorded: &HistoryEntry) -> Line {
    let text = |value: &Option<std::sync::Arc<[u8]>>| {
        let value = value.as_ref();
        value.map(|value| String::from_utf8_lossy(value).into_owned())
    };
    (
        recorded.author.clone(),
        recorded.note.clone(),
        recorded.key.as_str().to_owned(),
        text(&recorded.before),
        text(&recorded.after),
    )
}

fn expected(key: &str, note: &str, before: Option<&str>, after: Option<&str>) -> Line {
    let text = |it: Option<&str>| it.map(str::to_owned);
    ("ada".into(), note.into(), key.into(), text(before), text(after))
}

async fn write(it: &Fixture, note: &str, seconds: u64, changes: Vec<weir_store::Change>) -> Revision {
    let (_, revision) = it.store.read("none").await.expect("it is read");
    let transaction = Transaction {
        note: note.into(),
        time: UNIX_EPOCH + Duration::from_secs(seconds),
        ..transaction(changes)
    };
    it.store.commit(transaction, revision).await.expect("it is made")
}

pub async fn every_change_is_recorded(it: Fixture) {
    let first = write(&it, "one", 1, vec![put("b", "1"), put("a", "1")]).await;
    let second = write(&it, "two", 2, vec![put("a", "2"), delete("b"), delete("none")]).await;
    let third = write(&it, "three", 3, vec![put("b", "3"), put("bb", "3")]).await;
    let history = it.another().history("", None, 100).await.expect("the history");
    let lines: Vec<Line> = history.iter().map(line).collect();
    let wanted = [
        expected("b", "three", None, Some("3")),
        expected("bb", "three", None, Some("3")),
        expected("a", "two", Some("1"), Some("2")),
        expected("b", "two", Some("1"), None),
        expected("a", "one", None, Some("1")),
        expected("b", "one", None, Some("1")),
    ];
    assert_eq!(lines, wanted);
    let revisions: Vec<Revision> = history.iter().map(|it| it.revision).collect();
    assert_eq!(revisions, [third, third, second, second, first, first]);
    assert_eq!(history[5].time, UNIX_EPOCH + Duration::from_secs(1));
    let cases = [
        ("b", None, 4),
        ("bb", None, 1),
        ("", Some(third), 4),
        ("b", Some(second), 1),
        ("c", None, 0),
    ];
    for (prefix, before, count) in cases {
        let history = it.store.history(prefix, before, 100).await.expect("the history");
        assert_eq!(history.len(), count, "{prefix} {before:?}");
    }
}

pub async fn the_history_comes_in_pages(it: Fixture) {
    for number in 0..30u64 {
        let changes = (0..3).map(|part| put(&format!("a/{part}"), &number.to_string()));
        write(&it, "some", number, changes.chain([put("b", "1")]).collect()).await;
    }
    let all = it.store.history("a/", None, 1_000).await.expect("the history");
    assert_eq!(all.len(), 90);
    let (mut pages, mut before) = (Vec::new(), None);
    loop {
        let page = it.store.history("a/", before, 7).await.expect("the history");
        // A commit comes whole.
        assert!(page.len() <= 9 && page.len().is_multiple_of(3), "{}", page.len());
        let Some(last) = page.last() else { break };
        before = Some(last.revision);
        pages.extend(page);
    }
    assert_eq!(pages, all);
}

pub async fn old_changes_are_forgotten(it: Fixture) {
    let first = write(&it, "one", 1, vec![put("a", "1")]).await;
    let second = write(&it, "two", 2, vec![put("a", "2"), put("b", "2")]).await;
    let third = write(&it, "three", 3, vec![put("b", "3")]).await;
    let mut early = it.watch("", first).await;
    assert_eq!(next(&mut early).await.revision, second);

    it.store.compact(UNIX_EPOCH).await.expect("nothing to forget");
    assert_eq!(
        it.store.history("", None, 10).await.expect("the history").len(),
        4
    );
    let before = UNIX_EPOCH + Duration::from_secs(3);
    it.store.compact(before).await.expect("it forgets");
    it.store.compact(before).await.expect("again");

    let history = it.store.history("", None, 10).await.expect("the history");
    assert_eq!(history.iter().map(|it| it.revision).collect::<Vec<_>>(), [third]);
    assert_eq!(it.texts("").await.len(), 2);
    for (after, is_known) in [
        (Revision(0), false),
        (first, false),
        (second, true),
        (third, true),
    ] {
        let watch = match it.store.watch("", after).await {
            Ok(mut watch) if !is_known => watch.next().await.map(|_| ()),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        assert_eq!(is_known, watch.is_ok(), "{after}: {watch:?}");
        assert!(
            is_known || matches!(watch, Err(WatchError::Compacted)),
            "{after}: {watch:?}"
        );
    }
    // Who has seen all goes on.
    assert_eq!(next(&mut early).await.revision, third);
    it.store.compact(SystemTime::now()).await.expect("it forgets all");
    assert!(
        it.store
            .history("", None, 10)
            .await
            .expect("the history")
            .is_empty()
    );
    let fourth = write(&it, "four", 4, vec![put("c", "4")]).await;
    assert!(fourth > third);
    assert_eq!(next(&mut early).await.revision, fourth);
    let again = it.another().history("", None, 10).await.expect("the history");
    assert_eq!(again.len(), 1);
}
