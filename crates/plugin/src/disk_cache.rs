//! Disk caches: places on a disk where filters keep, by a key, what is too large for memory.
//!
//! A filter neither waits for a disk nor knows of files: the engine has a thread for each disk cache, with a bounded
//! queue before it. Work that does not fit into the queue is dropped; an entry of a disk cache may vanish at any time.

use std::sync::Arc;

/// Names what is kept.
pub type DiskCacheKey = [u8; 32];

/// Called with the stored bytes, or `None` if the entry is missing or corrupt.
pub type DiskCacheReader = Box<dyn FnOnce(Option<Vec<u8>>) + Send>;

/// A bounded place on a disk.
pub trait DiskCache: Send + Sync {
    /// Whether something may be there under this key. `false` is certain.
    fn may_have(&self, key: &DiskCacheKey) -> bool;

    /// Reads what is there under a key; `then` is called on a thread of the disk cache's own. Where the queue is full, it is
    /// dropped instead.
    fn read(&self, key: DiskCacheKey, then: DiskCacheReader);

    /// Stores `data` under a key and replaces the earlier value. The least recently used entries make room.
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
