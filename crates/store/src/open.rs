//! Which store is meant by the text that a user gives.

use crate::etcd::EtcdStore;
use crate::memory::MemoryStore;
use crate::sqlite::{Durability, Options, SqliteStore};
use crate::store::{Store, StoreError};
use std::sync::Arc;

/// The store of a location:
///
/// | location | store |
/// |---|---|
/// | `memory:` | in memory; gone with the process |
/// | `sqlite:FOLDER`, or a path | a file in a folder ([`sqlite`](crate::sqlite)); with `?durability=power` behind it each commit waits for the disk |
/// | `etcd://…`, `etcds://…` | in etcd ([`EtcdStore::connect`]) |
///
/// # Errors
/// The location is none of these, or its store cannot be opened. No error tells a password.
pub async fn open(location: &str) -> Result<Arc<dyn Store>, StoreError> {
    if location == "memory:" {
        return Ok(Arc::new(MemoryStore::new()));
    }
    if location.starts_with("etcd://") || location.starts_with("etcds://") {
        return Ok(Arc::new(EtcdStore::connect(location)?));
    }
    let place = location.strip_prefix("sqlite:").unwrap_or(location);
    let (folder, durability) = match place.split_once("?durability=") {
        None => (place, Durability::default()),
        Some((folder, "power")) => (folder, Durability::Power),
        Some((folder, "process")) => (folder, Durability::Process),
        Some((_, other)) => {
            return Err(StoreError::Failed(format!(
                "durability={other}: power or process"
            )));
        }
    };
    if folder.is_empty() || folder.contains("://") {
        return Err(StoreError::Failed("no such kind of store".into()));
    }
    let options = Options {
        durability,
        ..Options::default()
    };
    Ok(Arc::new(SqliteStore::open_with(folder, options)?))
}
