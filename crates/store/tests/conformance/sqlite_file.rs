//! What only a file can suffer.

use crate::fixture::{commit, put, transaction};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Barrier;
use weir_store::sqlite::{Durability, Options, SqliteStore};
use weir_store::{CommitError, Store, StoreError};

#[test]
fn many_may_open_a_new_one_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, all_there) = (folder.path().join("data"), Barrier::new(8));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                all_there.wait();
                SqliteStore::open(&path).expect("it opens");
            });
        }
    });
    for name in ["", "store.db"] {
        let mode = std::fs::metadata(path.join(name))
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{name} is for its owner only");
    }
}

#[test]
fn files_of_others_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store.db");
    let text = "this is not a database, but long enough to be taken for the head of one. ".repeat(20);
    std::fs::write(&file, text).expect("it is written");
    let refused = SqliteStore::open(folder.path());
    assert!(matches!(refused, Err(StoreError::Damaged(_))), "{refused:?}");
    std::fs::remove_file(&file).expect("it goes");
    let other = rusqlite::Connection::open(&file).expect("it opens");
    other
        .execute_batch("CREATE TABLE things (name TEXT)")
        .expect("it is made");
    drop(other);
    let refused = SqliteStore::open(folder.path());
    assert!(matches!(refused, Err(StoreError::Damaged(_))), "{refused:?}");
    std::fs::remove_file(&file).expect("it goes");
    drop(SqliteStore::open(folder.path()).expect("it opens"));
    let later = rusqlite::Connection::open(&file).expect("it opens");
    later.pragma_update(None, "user_version", 99).expect("it is set");
    drop(later);
    let refused = SqliteStore::open(folder.path());
    assert!(matches!(refused, Err(StoreError::Damaged(_))), "{refused:?}");
}

#[tokio::test]
async fn a_folder_that_cannot_be_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("file"), "").expect("it is written");
    let opened = SqliteStore::open(folder.path().join("file/below"));
    assert!(matches!(opened, Err(StoreError::Unreachable(_))), "{opened:?}");
    for location in ["", "sqlite:", "redis://somewhere", "sqlite:x?durability=some"] {
        assert!(weir_store::open(location).await.is_err(), "{location}");
    }
}

/// Another program that holds the file is waited for, and no commit is lost or half-made.
#[tokio::test]
async fn both_durabilities_share_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = |durability| {
        let options = Options {
            durability,
            ..Options::default()
        };
        SqliteStore::open_with(folder.path(), options).expect("it opens")
    };
    let stores = [open(Durability::Process), open(Durability::Power)];
    let mut last = commit(&stores[0], vec![put("a", "0")]).await;
    for number in 1..20 {
        let (mine, other) = (&stores[number % 2], &stores[(number + 1) % 2]);
        let changes = || transaction(vec![put("a", &number.to_string())]);
        last = mine.commit(changes(), last).await.expect("it is made");
        let refused = other.commit(changes(), weir_store::Revision(last.0 - 1)).await;
        assert!(matches!(refused, Err(CommitError::Conflict { current }) if current == last));
    }
}

/// Another program that opens and closes the file takes the log of writes away if it finds no lock on the file, and what
/// is written after that is lost. The system drops a process's locks on a file with the first descriptor that it closes.
#[tokio::test]
async fn locks_outlive_another_opening_of_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = SqliteStore::open(folder.path()).expect("it opens");
    assert!(is_locked(folder.path()), "by the first connection");
    let second = SqliteStore::open(folder.path()).expect("it opens again");
    assert!(is_locked(folder.path()), "by both");
    drop(first);
    assert!(is_locked(folder.path()), "by the second");
    drop(second);
}

/// Whether this process has a lock on the store's file.
fn is_locked(folder: &Path) -> bool {
    let inode = std::fs::metadata(folder.join("store.db"))
        .expect("the file")
        .ino();
    let locks = std::fs::read_to_string("/proc/locks").expect("the system's locks");
    let process = std::process::id().to_string();
    locks.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.contains(&process.as_str()) && line.contains(&format!(":{inode} "))
    })
}
