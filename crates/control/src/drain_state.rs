//! Whether this gateway is taken out, as far as it knows when it starts: as its store says, or else as it heard last. A
//! gateway that starts while its control plane is away stays out. What takes it out is a document of the store; here is no more
//! than what is kept of it next to the last known good documents.

use crate::api::DRAINS;
use crate::follow::OpenStore;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file's name in the folder of data. It holds the name of the gateway that is drained.
pub const FILE_NAME: &str = "drained";
/// Its name in older releases. What such a file says holds until the next write.
const FORMER_FILE_NAME: &str = "taken-out";
/// How long the store is waited for. It is asked again with every report.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// The sources from which a gateway reads whether it is out before it reports.
#[derive(Debug, Clone, Default)]
pub struct DrainState {
    /// The store that is followed. It is not open if a control plane is followed.
    pub store: OpenStore,
    /// The file on disk; `None`: nothing is kept.
    pub file: Option<PathBuf>,
}

impl DrainState {
    /// Whether the gateway of a name begins as one that is out.
    pub async fn at_start(&self, name: &str) -> bool {
        let asked = tokio::time::timeout(STORE_TIMEOUT, in_store(&self.store, name)).await;
        match asked {
            Ok(Ok(is_drained)) => {
                self.keep(name, is_drained);
                is_drained
            }
            _ => self.is_kept(name),
        }
    }

    /// Keeps that the gateway of a name is taken out, or back. What cannot be kept is logged.
    pub fn keep(&self, name: &str, is_drained: bool) {
        if self.is_kept(name) == is_drained {
            return;
        }
        if let Err(error) = self.write(name, is_drained) {
            tracing::error!(%error, is_drained, "drain state cannot be stored; it may be lost at a restart");
        }
    }

    /// A file that another gateway has left says nothing of this one.
    fn is_kept(&self, name: &str) -> bool {
        let Some(path) = &self.file else {
            return false;
        };
        for path in [path, &path.with_file_name(FORMER_FILE_NAME)] {
            match std::fs::read(path) {
                Ok(kept) => return kept == name.as_bytes(),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::error!(%error, file = %path.display(), "stored drain state cannot be read");
                    return false;
                }
            }
        }
        false
    }

    fn write(&self, name: &str, is_drained: bool) -> io::Result<()> {
        let Some(path) = &self.file else {
            return Ok(());
        };
        if is_drained {
            let fresh = path.with_extension("new");
            let mut file = File::create(&fresh)?;
            file.write_all(name.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&fresh, path)?;
        } else {
            remove(path)?;
        }
        remove(&path.with_file_name(FORMER_FILE_NAME))?;
        match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
            _ => Ok(()),
        }
    }
}

/// Removes a file that may be there.
fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether a store says that the gateway of a name is taken out.
///
/// # Errors
/// The store is away, or cannot be read.
pub(crate) async fn in_store(store: &OpenStore, name: &str) -> Result<bool, String> {
    let store = store.get().ok_or("the store is unreachable")?;
    let key = format!("{DRAINS}{name}");
    let (known, _) = store.read(&key).await.map_err(|error| error.to_string())?;
    Ok(known.iter().any(|it| it.key.as_str() == key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::SystemTime;
    use weir_store::memory::MemoryStore;
    use weir_store::{Change, Key, Store, Transaction};

    async fn store_with(drained: &[&str]) -> OpenStore {
        let store = MemoryStore::new();
        let key = |name: &&str| Key::new(&format!("{DRAINS}{name}")).expect("a key");
        let changes = drained
            .iter()
            .map(|name| Change::put(key(name), b"{}".to_vec()))
            .collect();
        let transaction = Transaction {
            author: "test".to_owned(),
            note: String::new(),
            time: SystemTime::UNIX_EPOCH,
            changes,
        };
        store.append(transaction).await.expect("committed");
        OpenStore::new(Arc::new(store))
    }

    #[tokio::test]
    async fn the_store_decides_and_without_it_the_last_known_state() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = Some(folder.path().join(FILE_NAME));
        // What was kept of whom, what the store says, whether edge-1 begins as out, and whether it does without the store.
        for (kept, store, expected, later) in [
            (None, None, false, false),
            (Some(("edge-1", true)), None, true, true),
            (Some(("edge-1", false)), None, false, false),
            (Some(("edge-10", true)), None, false, false),
            (None, Some(vec!["edge-1"]), true, true),
            (Some(("edge-1", true)), Some(vec!["edge-10"]), false, false),
            (Some(("edge-1", true)), Some(vec!["edge-1"]), true, true),
        ] {
            let away = DrainState {
                file: file.clone(),
                ..DrainState::default()
            };
            for name in ["edge-10", "edge-1"] {
                away.keep(name, false);
            }
            if let Some((name, is_drained)) = kept {
                away.keep(name, is_drained);
            }
            let opened = match &store {
                Some(drained) => store_with(drained).await,
                None => OpenStore::default(),
            };
            let begun = DrainState {
                store: opened,
                file: file.clone(),
            };
            let case = format!("{kept:?} {store:?}");
            assert_eq!(begun.at_start("edge-1").await, expected, "{case}");
            assert_eq!(away.at_start("edge-1").await, later, "{case}, later");
        }
    }

    /// The defect: a drained gateway whose program was replaced while its control plane was away took calls.
    #[tokio::test]
    async fn files_of_older_releases_count_until_the_next_write() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(FILE_NAME);
        let former = folder.path().join(FORMER_FILE_NAME);
        // What the older file and the newer one say, and whether edge-1 begins as out.
        for (older, newer, expected) in [
            ("edge-1", None, true),
            ("edge-10", None, false),
            ("edge-1", Some("edge-10"), false),
            ("edge-10", Some("edge-1"), true),
        ] {
            std::fs::write(&former, older).expect("written");
            remove(&file).expect("removed");
            if let Some(newer) = newer {
                std::fs::write(&file, newer).expect("written");
            }
            let state = DrainState {
                file: Some(file.clone()),
                ..DrainState::default()
            };
            assert_eq!(state.at_start("edge-1").await, expected, "{older} {newer:?}");
            state.keep("edge-1", !expected);
            assert!(!former.exists(), "{older} {newer:?}");
            assert_eq!(state.at_start("edge-1").await, !expected, "{older} {newer:?}");
        }
    }
}
