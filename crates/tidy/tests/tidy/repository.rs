//! The repository as files: its path, and its content.

use crate::source::Source;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold nothing of the project's own.
const LEFT_OUT: [&str; 5] = ["target", ".git", "corpus", "artifacts", "node_modules"];

/// The repository's root.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = manifest.ancestors().nth(2);
    root.expect("the crate lies in crates/ of the repository")
        .to_owned()
}

/// The text of a file, by its path from the root.
pub fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All files below a folder whose names end in `suffix`, by their paths from the root, sorted.
pub fn files(folder: &str, suffix: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect(&root().join(folder), &mut found);
    let root = root();
    let mut paths: Vec<String> = found
        .iter()
        .filter_map(|path| path.strip_prefix(&root).ok()?.to_str())
        .filter(|path| path.ends_with(suffix))
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    // A folder that is not there holds no files.
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_left_out = LEFT_OUT.iter().any(|name| path.ends_with(name));
        if path.is_dir() && !is_left_out {
            collect(&path, found);
        } else if path.is_file() {
            found.push(path);
        }
    }
}

/// All Rust sources of the project.
pub fn sources() -> Vec<Source> {
    let paths = files("crates", ".rs").into_iter().chain(files("fuzz", ".rs"));
    paths
        .map(|path| {
            let text = read(&path);
            Source::new(path, text)
        })
        .collect()
}

/// All documentation of the project.
pub fn documents() -> Vec<(String, String)> {
    let mut paths: Vec<String> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .map(str::to_owned)
        .to_vec();
    for folder in ["docs", "examples", "tests", "crates"] {
        paths.extend(files(folder, ".md"));
    }
    paths
        .into_iter()
        .map(|path| {
            let text = read(&path);
            (path, text)
        })
        .collect()
}
