//! Disk caches: places on a disk where filters keep what is too much for memory, by a key.
//!
//! A filter neither waits for a disk nor knows of files: the engine has a thread for each disk cache, and a bounded queue
//! before it. What does not fit into the queue is not done; what is on a disk cache may be gone at any time.

use std::sync::Arc;

/// Names what is kept.
pub type DiskCacheKey = [u8; 32];

/// What becomes of something read: `None` where nothing is there, or nothing good.
pub type DiskCacheReader = Box<dyn FnOnce(Option<Vec<u8>>) + Send>;

/// A bounded place on a disk.
pub trait DiskCache: Send + Sync {
    /// Whether something may be there under this key. `false` is certain.
    fn may_have(&self, key: &DiskCacheKey) -> bool;

    /// Reads what is there under a key; `then` is called on a thread of the disk cache's own. Where the queue is full, it is
    /// dropped instead.
    fn read(&self, key: DiskCacheKey, then: DiskCacheReader);

    /// Keeps `data` under a key, in place of what is there. What was used longest ago makes room.
    fn write(&self, key: DiskCacheKey, data: Vec<u8>);

    /// Forgets what is there under a key.
    fn remove(&self, key: DiskCacheKey);
}

/// Opens disk caches.
pub trait DiskCaches: Send + Sync {
    /// The cache in this folder, of so many bytes at most. Instances that name the same folder share it; the first one's
    /// bound counts. Nothing on the disk is touched before it returns.
    fn open(&self, folder: &str, max_bytes: u64) -> Arc<dyn DiskCache>;
}
