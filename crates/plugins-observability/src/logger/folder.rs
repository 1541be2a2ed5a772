//! The files that entries may be written to: those in one folder, which the operator names.
//!
//! A configuration may come from a person without an account on this machine. So it names files, and the operator
//! decides where they are. This file deals with names only; the engine guards against links and files that others have
//! created.

use std::path::{Component, Path, PathBuf};
use weir_plugin::LogFile as Place;

/// The operator's folder for logs.
#[derive(Debug, Clone, Default)]
pub struct LogFolder(Option<PathBuf>);

const NO_FOLDER: &str = "no folder for log files is named: start Weir with --log-dir (WEIR_LOG_DIR)";
const OUTSIDE: &str =
    "it is not in the folder for log files (--log-dir): name a file in it, or a path relative to it";
const OF_WORKSPACE: &str = "files are written for the workspace default only";
const BAD_PATH: &str = "expected a path without '..', control characters, and names that begin with '.'";

impl LogFolder {
    /// This folder; `None`: no files are written.
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self(folder)
    }

    /// The file that a configuration names. A file that may not be written is `Forbidden`.
    ///
    /// # Errors
    /// Fails if the path could never be served.
    pub fn file(&self, path: &str, is_of_workspace: bool) -> Result<Place, &'static str> {
        if path.is_empty() {
            return Err("expected a path");
        }
        match path {
            "/dev/stdout" => return Ok(Place::StandardOutput),
            "/dev/stderr" => return Ok(Place::StandardError),
            _ => {}
        }
        if !is_good(path) {
            return Err(BAD_PATH);
        }
        let forbidden = |reason| Ok(Place::Forbidden(path.to_owned(), reason));
        if is_of_workspace {
            return forbidden(OF_WORKSPACE);
        }
        let Some(folder) = &self.0 else {
            return forbidden(NO_FOLDER);
        };
        let name = match Path::new(path).is_absolute() {
            true => Path::new(path).strip_prefix(folder).ok(),
            false => Some(Path::new(path)),
        };
        let name: Option<PathBuf> = name.map(|name| {
            name.components()
                .filter(|part| matches!(part, Component::Normal(_)))
                .collect()
        });
        if name
            .iter()
            .flatten()
            .any(|part| part.as_encoded_bytes().starts_with(b"."))
        {
            return Err(BAD_PATH);
        }
        match name.as_ref().and_then(|name| name.to_str()) {
            Some(name) if !name.is_empty() && !path.ends_with('/') => Ok(Place::In {
                folder: folder.clone(),
                name: name.to_owned(),
            }),
            _ => forbidden(OUTSIDE),
        }
    }
}

/// Whether a path could name a log file, independent of the folder.
pub fn is_good(path: &str) -> bool {
    let is_relative = !path.starts_with('/');
    let is_good_part = |part: &str| part != ".." && (part == "." || !(is_relative && part.starts_with('.')));
    path.split('/').all(is_good_part) && !path.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_in_the_folder_or_nowhere() {
        let folder = LogFolder::new(Some("/var/log/weir".into()));
        let name = |path: &str| match folder.file(path, false) {
            Ok(Place::In { folder, name }) => {
                assert_eq!(folder, Path::new("/var/log/weir"));
                Ok(name)
            }
            Ok(Place::Forbidden(named, reason)) => {
                assert_eq!(named, path);
                Ok(reason.to_owned())
            }
            Ok(other) => Ok(format!("{other:?}")),
            Err(reason) => Err(reason),
        };
        for (path, expected) in [
            ("calls.log", Ok("calls.log")),
            ("./logs//calls.log", Ok("logs/calls.log")),
            ("/var/log/weir/a/b.log", Ok("a/b.log")),
            ("/dev/stdout", Ok("StandardOutput")),
            ("/dev/stderr", Ok("StandardError")),
            ("/var/log/weirder/a.log", Ok(OUTSIDE)),
            ("/var/lib/weir/weir.db", Ok(OUTSIDE)),
            ("/var/log/weir", Ok(OUTSIDE)),
            ("/var/log/weir/", Ok(OUTSIDE)),
            ("logs/", Ok(OUTSIDE)),
            ("/dev/null", Ok(OUTSIDE)),
            ("../weir.db", Err(BAD_PATH)),
            ("/var/log/weir/../../lib/weir/weir.db", Err(BAD_PATH)),
            ("a/..", Err(BAD_PATH)),
            (".weir-log-files", Err(BAD_PATH)),
            ("a/.b", Err(BAD_PATH)),
            ("/var/log/weir/.weir-log-files", Err(BAD_PATH)),
            ("/home/.hidden/a.log", Ok(OUTSIDE)),
            ("a\0b", Err(BAD_PATH)),
            ("a\nb", Err(BAD_PATH)),
            ("", Err("expected a path")),
        ] {
            let found = name(path);
            assert_eq!(
                found.as_ref().map(String::as_str).map_err(|it| *it),
                expected,
                "{path}"
            );
        }
    }

    #[test]
    fn files_are_the_operators() {
        let forbidden = |folder: &LogFolder, is_of_workspace| match folder.file("a.log", is_of_workspace) {
            Ok(Place::Forbidden(_, reason)) => Some(reason),
            _ => None,
        };
        let named = LogFolder::new(Some("/logs".into()));
        assert_eq!(forbidden(&LogFolder::default(), false), Some(NO_FOLDER));
        assert_eq!(forbidden(&named, true), Some(OF_WORKSPACE));
        assert_eq!(forbidden(&named, false), None);
    }
}
