//! How long things may be, and what every source has at its top.

use crate::assert_none;
use crate::repository::{files, read, sources};
use crate::source::Source;

/// No file may be longer than this; 400 lines is a habit.
const FILE_LIMIT: usize = 800;
/// No function may be longer than this.
const FUNCTION_LIMIT: usize = 100;
/// A header of fewer bytes only names its file.
const SHORTEST_HEADER: usize = 40;
#[test]
fn files_keep_to_their_limit() {
    let mut breaches = Vec::new();
    let rust = sources().into_iter().map(|it| (it.path, it.text.lines().count()));
    let python = ["tests", "scripts"]
        .into_iter()
        .flat_map(|folder| files(folder, ".py"));
    let python = python.map(|path| (path.clone(), read(&path).lines().count()));
    for (path, lines) in rust.chain(python) {
        if lines > FILE_LIMIT {
            breaches.push(format!("{path}: {lines} lines, more than {FILE_LIMIT}"));
        }
    }
    assert_none(&breaches, "a file holds one idea");
}

#[test]
fn files_of_the_console_keep_to_their_limit() {
    let mut breaches = Vec::new();
    for folder in ["console/src", "console/tests"] {
        for path in [".ts", ".tsx", ".css"]
            .map(|suffix| files(folder, suffix))
            .concat()
        {
            let lines = read(&path).lines().count();
            if lines > FILE_LIMIT {
                breaches.push(format!("{path}: {lines} lines, more than {FILE_LIMIT}"));
            }
        }
    }
    assert_none(&breaches, "a file holds one idea; looks are cut by topic");
}

#[test]
fn functions_keep_to_their_limit() {
    let mut breaches = Vec::new();
    for source in sources() {
        for function in source.functions() {
            if function.length > FUNCTION_LIMIT {
                breaches.push(format!(
                    "{}:{}: {} has {} lines",
                    source.path, function.line, function.name, function.length
                ));
            }
        }
    }
    assert_none(&breaches, "a function is read in one go: at most 100 lines");
}

#[test]
fn every_source_says_what_it_is() {
    let sources = sources();
    let says_little = |source: &&Source| {
        let header = source.text.lines().map_while(|line| line.strip_prefix("//!"));
        let length = header.map(|line| line.trim().len()).sum::<usize>();
        // A test's name says what it is.
        length == 0 || (length < SHORTEST_HEADER && !source.shipped.is_empty())
    };
    let silent = sources.iter().filter(says_little);
    let breaches: Vec<String> = silent.map(|source| format!("{}:1", source.path)).collect();
    assert_none(
        &breaches,
        "a source opens with a `//!` comment: what it is and what it is not, in a sentence at least",
    );
}
