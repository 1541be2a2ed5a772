//! The house rules that a compiler does not check: who may depend on whom, how long things may be, which words
//! stand where, and that the documentation describes what is there.
//!
//! Every rule lists all that breaks it, with file and line. There are two files of exceptions, `retired_words.txt` and
//! `cycles.txt`, and they may only get shorter. Rules are changed by arguing in `docs/adr/`, not here.

mod budgets;
mod cycles;
mod docs;
mod examples;
mod layers;
mod plugins;
mod repository;
mod retired;
mod secrets;
mod source;
mod type_names;
mod words;

/// Fails with one line for each breach, and says what the rule is for.
#[track_caller]
fn assert_none(breaches: &[String], rule: &str) {
    assert!(
        breaches.is_empty(),
        "{rule}\n{} breaches:\n  {}",
        breaches.len(),
        breaches.join("\n  ")
    );
}
