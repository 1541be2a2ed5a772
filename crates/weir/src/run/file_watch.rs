//! Waits until files of the configuration may have changed, so that a gateway at rest need not look again and again.
//!
//! **What it is not**: a promise, as [`weir_store::folder_watch`] says. [`super::files`] looks now and then without a
//! report, too.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Notify;
use weir_store::folder_watch::{FolderEvent, FolderWatch};

/// Files that may change.
pub struct FileWatch {
    files: Vec<PathBuf>,
    reported: Arc<Notify>,
    /// `None`: the system reports nothing.
    folders: Option<FolderWatch>,
}

impl FileWatch {
    /// Watches files.
    pub fn new(files: &[PathBuf]) -> Self {
        let reported = Arc::new(Notify::new());
        let folders = start(files, Arc::clone(&reported))
            .inspect_err(|error| tracing::debug!(%error, "the system cannot report file changes"))
            .ok();
        Self {
            files: files.to_vec(),
            reported,
            folders,
        }
    }

    /// Whether the system reports nothing, so that files have to be looked at often.
    pub fn is_blind(&self) -> bool {
        self.folders.is_none()
    }

    /// Waits until one of the files may have changed.
    pub async fn changed(&self) {
        self.reported.notified().await;
        // A folder may be on its way to be replaced: the next look, without a report, sees what has become of it.
        if let Some(folders) = &self.folders
            && let Err(error) = watch_all(folders, &self.files)
        {
            tracing::debug!(%error, "a configuration folder cannot be watched");
        }
    }
}

fn start(files: &[PathBuf], reported: Arc<Notify>) -> io::Result<FolderWatch> {
    let names = files.iter().filter_map(|file| file.file_name());
    let names: BTreeSet<OsString> = names.map(OsString::from).collect();
    let folders = FolderWatch::start("weir-files", move |event: FolderEvent<'_>| {
        if matters(event, &names) {
            reported.notify_one();
        }
        true
    })?;
    watch_all(&folders, files)?;
    Ok(folders)
}

/// Whether a file of these names may have changed. A file that something else writes to again and again, such as a log,
/// does not matter. One that comes or goes may be a link on the way to a file.
fn matters(event: FolderEvent<'_>, names: &BTreeSet<OsString>) -> bool {
    !event.is_write || event.name.is_none_or(|name| names.contains(name))
}

/// Watches the folders that the files are in now. A link may lead to another one than before.
fn watch_all(folders: &FolderWatch, files: &[PathBuf]) -> io::Result<()> {
    for file in files {
        folders.watch(folder(file))?;
        // The folder that a link leads to.
        if let Ok(real) = file.canonicalize() {
            folders.watch(folder(&real))?;
        }
    }
    Ok(())
}

fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn changes_of_files_are_reported_through_links() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        // As Kubernetes mounts a ConfigMap: `w.yaml -> ..data/w.yaml`, `..data -> ..1`.
        for version in ["..1", "..2"] {
            std::fs::create_dir(path(version)).expect("made");
            std::fs::write(path(version).join("w.yaml"), version).expect("written");
        }
        symlink("..1", path("..data")).expect("linked");
        symlink("..data/w.yaml", path("w.yaml")).expect("linked");
        let watch = FileWatch::new(&[path("w.yaml")]);
        assert!(!watch.is_blind());
        let reported = async || {
            tokio::time::timeout(LONG, watch.changed())
                .await
                .expect("in time")
        };
        std::fs::write(path("..1").join("w.yaml"), "x").expect("written");
        reported().await;
        symlink("..2", path("..new")).expect("linked");
        std::fs::rename(path("..new"), path("..data")).expect("renamed");
        // Until the folder is watched that the link leads to now, it cannot report anything.
        for _ in 0.. {
            reported().await;
            if std::fs::read_to_string(path("w.yaml")).expect("read") == "..2" {
                break;
            }
        }
        std::fs::write(path("..2").join("w.yaml"), "x").expect("written");
        reported().await;
    }

    #[test]
    fn writes_to_other_files_do_not_matter() {
        let names = BTreeSet::from([OsString::from("w.yaml")]);
        for (name, is_write, expected) in [
            (Some("w.yaml"), true, true),
            (Some("log"), true, false),
            (Some("log"), false, true),
            (Some("..data"), false, true),
            (None, true, true),
        ] {
            let name = name.map(std::ffi::OsStr::new);
            assert_eq!(
                matters(FolderEvent { name, is_write }, &names),
                expected,
                "{name:?}"
            );
        }
    }
}
