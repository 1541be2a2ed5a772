//! `proxy-cache` with a disk.

use super::*;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_plugin::{DiskCache, DiskCacheKey, DiskCacheReader, DiskCaches};

/// A disk in memory, which outlives the zones that use it. Reads are done when the test says so.
#[derive(Default)]
struct MemoryDisk {
    kept: Mutex<HashMap<DiskCacheKey, Vec<u8>>>,
    waiting: Mutex<Vec<(DiskCacheKey, DiskCacheReader)>>,
    /// It does not know yet what it has.
    is_opening: AtomicBool,
}

impl MemoryDisk {
    fn work(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock().expect("not poisoned"));
        for (key, then) in waiting {
            let found = self.kept.lock().expect("not poisoned").get(&key).cloned();
            then(found);
        }
    }
}

struct Shared(Arc<MemoryDisk>);

impl DiskCache for Shared {
    fn may_have(&self, key: &DiskCacheKey) -> bool {
        let is_opening = self.0.is_opening.load(Ordering::Relaxed);
        is_opening || self.0.kept.lock().expect("not poisoned").contains_key(key)
    }

    fn read(&self, key: DiskCacheKey, then: DiskCacheReader) {
        self.0.waiting.lock().expect("not poisoned").push((key, then));
    }

    fn write(&self, key: DiskCacheKey, data: Vec<u8>) {
        self.0.kept.lock().expect("not poisoned").insert(key, data);
    }

    fn remove(&self, key: DiskCacheKey) {
        self.0.kept.lock().expect("not poisoned").remove(&key);
    }
}

impl DiskCaches for Shared {
    fn open(&self, folder: &str, max_bytes: u64) -> Arc<dyn DiskCache> {
        assert_eq!((folder, max_bytes), ("/cache", 1 << 20));
        Arc::new(Self(Arc::clone(&self.0)))
    }
}

fn start(disk: &Arc<MemoryDisk>) -> Cache {
    let plugin = ProxyCache::on(Arc::new(Shared(Arc::clone(disk))), Caches::default());
    let config = json!({"disk": {"path": "/cache", "size": 1 << 20}, "purge": true});
    build(&plugin, &config).expect("valid")
}

/// Like [`call`], with the disk's work done while the call waits.
fn call_with(cache: &Cache, disk: &MemoryDisk, line: &str, request: &[(&str, &str)], body: &str) -> String {
    let mut exchange = exchange();
    prepare(&mut exchange, line, request);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..4 {
        match cache.on_request(&mut exchange) {
            Outcome::Suspend(Suspend { event, .. }) => {
                let mut event = event.expect("an event");
                assert!(event.as_mut().poll(&mut context).is_pending());
                disk.work();
                assert!(event.as_mut().poll(&mut context).is_ready());
            }
            Outcome::Continue => {
                return answer(
                    cache,
                    &mut exchange,
                    200,
                    &[("Vary", "X-A"), ("ETag", "\"e\"")],
                    body,
                );
            }
            Outcome::Reply(reply) => {
                let Some(shared) = &reply.shared else {
                    return format!("{} by the plugin", reply.status);
                };
                return format!("{} hit {}", reply.status, String::from_utf8_lossy(shared.part()));
            }
            other => return word(&other),
        }
    }
    "waits for ever".into()
}

#[test]
fn responses_outlive_the_process() {
    let disk = Arc::default();
    let first = start(&disk);
    let one = &[("X-A", "1")][..];
    assert_eq!(call_with(&first, &disk, "GET /a", one, "old"), "200 miss old");
    drop(first);
    let second = start(&disk);
    assert_eq!(call_with(&second, &disk, "GET /a", one, "new"), "200 hit old");
    // Another variant is not there, and neither is another page.
    assert_eq!(call_with(&second, &disk, "GET /a", &[], "none"), "200 miss none");
    assert_eq!(call_with(&second, &disk, "GET /b", one, "b"), "200 miss b");
    let third = start(&disk);
    let purge = |path: &str| call_with(&third, &disk, &format!("PURGE {path}"), &[], "");
    assert_eq!(purge("/a"), "200 by the plugin");
    assert_eq!(call_with(&third, &disk, "GET /a", one, "again"), "200 miss again");
}

#[test]
fn purges_report_whether_something_was_there() {
    let disk = Arc::default();
    let first = start(&disk);
    for path in ["/a", "/b"] {
        let line = format!("GET {path}");
        assert_eq!(call_with(&first, &disk, &line, &[], "x"), "200 miss x");
    }
    drop(first);
    let second = start(&disk);
    disk.is_opening.store(true, Ordering::Relaxed);
    for (path, expected) in [
        ("/a", "200 by the plugin"),
        ("/a", "answered 404"),
        ("/none", "answered 404"),
        ("/b", "200 by the plugin"),
    ] {
        let line = format!("PURGE {path}");
        assert_eq!(call_with(&second, &disk, &line, &[], ""), expected, "{path}");
        disk.is_opening.store(path != "/none", Ordering::Relaxed);
    }
}

#[test]
fn disk_that_is_busy_costs_only_the_hit() {
    let disk = Arc::default();
    assert_eq!(
        call_with(&start(&disk), &disk, "GET /a", &[], "old"),
        "200 miss old"
    );
    let cache = start(&disk);
    let mut exchange = exchange();
    prepare(&mut exchange, "GET /a", &[]);
    let Outcome::Suspend(Suspend {
        event: Some(mut event),
        ..
    }) = cache.on_request(&mut exchange)
    else {
        panic!("it looks on the disk");
    };
    // The job is dropped: there was no room for it.
    disk.waiting.lock().expect("not poisoned").clear();
    let mut context = Context::from_waker(Waker::noop());
    assert!(event.as_mut().poll(&mut context).is_ready());
    for _ in 0..3 {
        match cache.on_request(&mut exchange) {
            Outcome::Suspend(_) => disk.waiting.lock().expect("not poisoned").clear(),
            outcome => {
                assert_eq!(word(&outcome), "continue");
                return;
            }
        }
    }
    panic!("it waits for ever");
}
