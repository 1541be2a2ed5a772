//! Which store is meant by the text that a user gives.

use crate::etcd::EtcdStore;
use crate::memory::MemoryStore;
use crate::sqlite::{Durability, FILE_NAME, OPERATIONAL_FILE_NAME, Options, SqliteStore};
use crate::store::{Store, StoreError};
use std::sync::Arc;

/// Which of the two stores of a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoreKind {
    Configuration,
    Operational,
}

/// The store of a location:
///
/// | location | store |
/// |---|---|
/// | `memory:` | in memory; gone with the process |
/// | `sqlite:FOLDER`, or a path | a file in a folder ([`sqlite`](crate::sqlite)); `?durability=power`: commits wait for the disk |
/// | `etcd://…`, `etcds://…` | in etcd ([`EtcdStore::connect`]) |
///
/// # Errors
/// If the location is none of these, or its store cannot be opened. No error repeats a password.
pub async fn open(location: &str) -> Result<Arc<dyn Store>, StoreError> {
    open_part(location, StoreKind::Configuration)
}

/// The operational store of a location: for what is not configuration, such as sessions and deliveries. It keeps the
/// same contract, and shares neither revisions nor history with the store of [`open`]: another file in the same
/// folder, another prefix in the same etcd, or another store in memory.
///
/// # Errors
/// As [`open`].
pub async fn open_operational(location: &str) -> Result<Arc<dyn Store>, StoreError> {
    open_part(location, StoreKind::Operational)
}

fn open_part(location: &str, part: StoreKind) -> Result<Arc<dyn Store>, StoreError> {
    if location == "memory:" {
        return Ok(Arc::new(MemoryStore::new()));
    }
    if location.starts_with("etcd://") || location.starts_with("etcds://") {
        return Ok(Arc::new(match part {
            StoreKind::Configuration => EtcdStore::connect(location)?,
            StoreKind::Operational => EtcdStore::connect_operational(location)?,
        }));
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
        return Err(StoreError::Failed(
            "expected sqlite:FOLDER, etcd://HOST:PORT, etcds://HOST:PORT or memory: as its place".into(),
        ));
    }
    let options = Options {
        durability,
        file_name: match part {
            StoreKind::Configuration => FILE_NAME,
            StoreKind::Operational => OPERATIONAL_FILE_NAME,
        },
        ..Options::default()
    };
    Ok(Arc::new(SqliteStore::open_with(folder, options)?))
}
