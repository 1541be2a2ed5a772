//! Caches, on a folder of the test's own.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A folder that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weir-disk-cache-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        Self(path)
    }

    fn open(&self, max_bytes: u64) -> Arc<dyn DiskCache> {
        WorkerDiskCaches::default().open(&self.0.to_string_lossy(), max_bytes)
    }

    /// All files with content of some cache.
    fn files(&self) -> Vec<PathBuf> {
        let parts = fs::read_dir(&self.0).expect("the folder").flatten();
        let parts = parts.filter(|part| part.path().is_dir());
        parts
            .flat_map(|part| fs::read_dir(part.path()).expect("a part").flatten())
            .map(|file| file.path())
            .collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn key(number: u16) -> DiskCacheKey {
    let mut key = DiskCacheKey::default();
    key[0] = number as u8;
    key[30..].copy_from_slice(&number.to_le_bytes());
    key
}

/// Reads; jobs are done in order, so all before it have been done then. Tries again where another cache still holds the
/// folder.
fn read(cache: &Arc<dyn DiskCache>, number: u16) -> Option<Vec<u8>> {
    loop {
        let (sender, answer) = mpsc::channel();
        cache.read(
            key(number),
            Box::new(move |data| sender.send(data).expect("the test waits")),
        );
        if let Ok(data) = answer.recv() {
            return data;
        }
        std::thread::yield_now();
    }
}

#[test]
fn what_is_written_is_read_by_the_next_process_too() {
    let folder = Folder::new("kept");
    let cache = folder.open(1 << 20);
    assert_eq!(read(&cache, 1), None);
    cache.write(key(1), b"one".to_vec());
    cache.write(key(2), b"two".to_vec());
    cache.write(key(1), b"new".to_vec());
    assert_eq!(read(&cache, 1).as_deref(), Some(&b"new"[..]));
    cache.remove(key(2));
    assert!(!cache.may_have(&key(2)));
    assert_eq!(read(&cache, 2), None);
    assert_eq!(folder.files().len(), 1);
    // No other user may read it.
    for path in folder.files().iter().chain([&folder.0]) {
        let mode = fs::metadata(path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
    drop(cache);
    let cache = folder.open(1 << 20);
    assert_eq!(read(&cache, 1).as_deref(), Some(&b"new"[..]));
    assert!(cache.may_have(&key(1)));
}

#[test]
fn broken_files_are_found_out() {
    let folder = Folder::new("broken");
    let cache = folder.open(1 << 20);
    for number in 0..3 {
        cache.write(key(number), b"something".to_vec());
    }
    assert!(read(&cache, 2).is_some());
    drop(cache);
    let mut files = folder.files();
    files.sort();
    let whole = fs::read(&files[0]).expect("a file");
    fs::write(&files[0], &whole[..whole.len() - 1]).expect("written");
    let mut changed = fs::read(&files[1]).expect("a file");
    *changed.last_mut().expect("a byte") ^= 1;
    fs::write(&files[1], changed).expect("written");
    let unfinished = files[2].with_extension("new");
    fs::write(&unfinished, b"weir").expect("written");
    let cache = folder.open(1 << 20);
    assert_eq!(read(&cache, 0), None);
    assert_eq!(read(&cache, 1), None);
    assert_eq!(read(&cache, 2).as_deref(), Some(&b"something"[..]));
    while cache.may_have(&key(0x00ff)) || unfinished.exists() {
        std::thread::yield_now();
    }
    assert_eq!(folder.files(), [files[2].clone()]);
}

#[test]
fn what_was_used_longest_ago_makes_room() {
    let folder = Folder::new("room");
    // Eight blocks of 4096 bytes.
    let cache = folder.open(32_768);
    for number in 0..8 {
        cache.write(key(number), vec![0; 100]);
    }
    assert!(read(&cache, 0).is_some());
    cache.write(key(8), vec![0; 4_000]);
    cache.write(key(9), vec![0; 4_000]);
    assert!(read(&cache, 0).is_some());
    assert_eq!([1, 2].map(|number| read(&cache, number)), [None, None]);
    assert_eq!(folder.files().len(), 8);
    // One that is larger than all of it is not kept.
    cache.write(key(10), vec![0; 40_000]);
    assert_eq!(read(&cache, 10), None);
    drop(cache);
    // Nor is more than the bound kept when it is smaller for the next process.
    let cache = folder.open(8_192);
    assert_eq!(read(&cache, 10), None);
    while cache.may_have(&key(0x00ff)) {
        std::thread::yield_now();
    }
    assert!(read(&cache, 10).is_none() && folder.files().len() <= 2);
}

#[test]
fn a_folder_has_one_holder() {
    let folder = Folder::new("holder");
    let first = folder.open(1 << 20);
    first.write(key(1), b"one".to_vec());
    assert!(read(&first, 1).is_some());
    let second = folder.open(1 << 20);
    let (sender, answer) = mpsc::channel();
    second.read(
        key(1),
        Box::new(move |data| sender.send(data).expect("the test waits")),
    );
    // The job is dropped, not done.
    assert!(answer.recv().is_err());
    drop(first);
    assert_eq!(read(&second, 1).as_deref(), Some(&b"one"[..]));
}

/// Makes the cache's thread stand still until the returned value is dropped.
fn stop(cache: &Arc<dyn DiskCache>) -> mpsc::Sender<()> {
    loop {
        let (go_on, wait) = mpsc::channel::<()>();
        let (sender, stands) = mpsc::channel();
        cache.read(
            key(0x00ff),
            Box::new(move |_| {
                sender.send(()).expect("the test waits");
                let _ended = wait.recv();
            }),
        );
        // A job is dropped where too many wait already.
        if stands.recv().is_ok() {
            return go_on;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_removal_is_done_however_much_waits() {
    let folder = Folder::new("full");
    let cache = folder.open(1 << 24);
    for number in 0..4 {
        cache.write(key(number), b"old".to_vec());
    }
    assert!(read(&cache, 3).is_some());
    let go_on = stop(&cache);
    // More reads and writes than may wait.
    for number in 100..100 + QUEUE_JOBS as u16 {
        cache.write(key(number), b"other".to_vec());
    }
    cache.remove(key(1));
    // It cannot be written, so what is there goes.
    cache.write(key(2), b"new".to_vec());
    cache.remove(key(1));
    assert!([1, 2].iter().all(|number| !cache.may_have(&key(*number))));
    drop(go_on);
    drop(cache);
    let cache = folder.open(1 << 24);
    let found = [0, 1, 2, 3].map(|number| read(&cache, number).is_some());
    assert_eq!(found, [true, false, false, true]);
}

#[test]
fn removals_and_writes_of_one_key_keep_their_order() {
    let folder = Folder::new("order");
    let cache = folder.open(1 << 20);
    let go_on = stop(&cache);
    cache.write(key(1), b"one".to_vec());
    cache.remove(key(1));
    cache.remove(key(1));
    cache.write(key(2), b"one".to_vec());
    cache.remove(key(2));
    cache.write(key(2), b"two".to_vec());
    cache.write(key(3), b"one".to_vec());
    cache.remove(key(3));
    cache.write(key(3), b"two".to_vec());
    cache.remove(key(3));
    drop(go_on);
    assert_eq!(read(&cache, 1), None);
    assert_eq!(read(&cache, 2).as_deref(), Some(&b"two"[..]));
    assert_eq!(read(&cache, 3), None);
    assert_eq!(folder.files().len(), 1);
}

#[test]
fn where_too_many_removals_wait_all_goes() {
    let folder = Folder::new("void");
    let cache = folder.open(1 << 20);
    cache.write(key(1), b"one".to_vec());
    assert!(read(&cache, 1).is_some());
    drop(cache);
    // Nothing is known of the folder yet, so all of these may be there.
    let cache = folder.open(1 << 20);
    let go_on = stop(&cache);
    cache.write(key(2), b"early".to_vec());
    for number in 0..=index::MAX_REMOVALS as u32 {
        let mut key = [0xfe; 32];
        key[..4].copy_from_slice(&number.to_be_bytes());
        key[0] = 0xfe;
        cache.remove(key);
    }
    assert!(!cache.may_have(&key(1)) && !cache.may_have(&key(2)));
    cache.write(key(3), b"late".to_vec());
    drop(go_on);
    assert_eq!(read(&cache, 3).as_deref(), Some(&b"late"[..]));
    assert_eq!([1, 2].map(|number| read(&cache, number)), [None, None]);
    assert_eq!(folder.files().len(), 1);
}
