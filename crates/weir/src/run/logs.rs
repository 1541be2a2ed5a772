//! The folder for the files of logging plugins.

use super::UsageError;
use crate::args::RunArgs;
use anyhow::Context;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use weir_plugins::logger::LogFolder;

/// The folder that the flags name, made if need be.
pub fn folder(args: &RunArgs) -> anyhow::Result<LogFolder> {
    let flags = &args.management;
    let of_data = || flags.data.as_ref().map(|data| data.join("logs"));
    let Some(folder) = args.log_dir.clone().or_else(of_data) else {
        return Ok(LogFolder::default());
    };
    let made = DirBuilder::new().recursive(true).mode(0o750).create(&folder);
    match made.with_context(|| format!("cannot create the folder {} (--log-dir)", folder.display())) {
        Ok(()) => {}
        // Calls are served from a disk that can only be read; no plugin may need the folder.
        Err(error) if args.log_dir.is_none() => {
            tracing::warn!(
                error = format!("{error:#}"),
                "plugins cannot write log files: the folder cannot be created"
            );
        }
        Err(error) => return Err(error),
    }
    let store = flags.store.as_deref().and_then(folder_of_store);
    for kept in [flags.data.clone(), store].into_iter().flatten() {
        if holds(&folder, &kept) {
            let reason = "--log-dir must not hold the store or --data: plugins may write there";
            return Err(UsageError::new(reason).into());
        }
    }
    // Configurations name the folder as the operator does.
    let folder = std::path::absolute(&folder).context("--log-dir")?;
    Ok(LogFolder::new(Some(folder)))
}

/// The folder of a store on this disk; `None`: it is elsewhere, or in memory.
pub fn folder_of_store(location: &str) -> Option<PathBuf> {
    let place = location.strip_prefix("sqlite:").unwrap_or(location);
    let folder = place.split('?').next().unwrap_or_default();
    let is_here = !place.contains("://") && place != "memory:";
    is_here.then(|| PathBuf::from(folder))
}

/// Whether one folder is the other or holds it.
fn holds(folder: &Path, other: &Path) -> bool {
    match (folder.canonicalize(), other.canonicalize()) {
        (Ok(folder), Ok(other)) => other.starts_with(folder),
        // What is not there yet is looked at as it is written.
        _ => match (std::path::absolute(folder), std::path::absolute(other)) {
            (Ok(folder), Ok(other)) => other.starts_with(folder),
            _ => true,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_does_not_hold_what_weir_keeps() {
        let root = tempfile::tempdir().expect("a folder");
        let path = |name: &str| root.path().join(name);
        std::fs::create_dir_all(path("data/logs")).expect("a folder");
        std::os::unix::fs::symlink(root.path(), path("link")).expect("a link");
        for (folder, other, expected) in [
            ("data", "data", true),
            (".", "data", true),
            ("link", "data", true),
            ("link/data", "data", true),
            (".", "not-yet", true),
            ("data/logs", "data", false),
            ("data/logs", "not-yet", false),
        ] {
            assert_eq!(holds(&path(folder), &path(other)), expected, "{folder} {other}");
        }
        assert_eq!(folder_of_store("sqlite:/a?durability=power"), Some("/a".into()));
        assert_eq!(folder_of_store("etcd://h:1"), None);
    }
}
