//! Names of types, functions and files that say nothing to a newcomer: participles, pronouns and the like. A type is named
//! after what it is, by the field's term, and a function after what it does; `retired.rs` is about words in any name and
//! text.

use crate::assert_none;
use crate::repository::sources;
use crate::source::Source;

/// Words that are no name of a type or of a file, and what to write in their place.
const WORDS: [(&[&str], &str); 8] = [
    (
        &["Asked", "Asking", "Awaited", "Sent", "Waited", "Waiting"],
        "a request, a queue, or what is done: BodyRequested, PendingJobs",
    ),
    (
        &[
            "Answered", "Given", "Brought", "Came", "Told", "Said", "Shown", "Wanted", "Sought",
        ],
        "XRequest, XQuery, XBody, XResponse",
    ),
    (
        &[
            "Known",
            "Kept",
            "Held",
            "Stored",
            "Written",
            "Remembered",
            "Issued",
        ],
        "CachedX, XRecord, XState",
    ),
    (
        &[
            "Found", "Made", "Taken", "Seen", "Counted", "Judged", "Checked", "Placed", "Listed", "Served",
            "Watched",
        ],
        "XResult, XResponse, WatchedX",
    ),
    (
        &[
            "Broken",
            "Fault",
            "LeftOut",
            "Missing",
            "Refused",
            "Unfit",
            "Undecided",
        ],
        "XError, SkippedX, RejectReason",
    ),
    (
        &[
            "After",
            "Between",
            "Elsewhere",
            "Here",
            "Place",
            "Places",
            "Side",
            "Span",
            "Way",
        ],
        "Location, Position, JsonPointer, TimeRange, Direction",
    ),
    (&["Part", "Piece"], "Segment, XNode, XEvent"),
    (
        &[
            "Asker", "Begun", "Desk", "Filled", "Looking", "Others", "Prepared", "Which",
        ],
        "the field's term",
    ),
];
/// The places in which such a word is the field's term: a file, the word, and why.
const TERMS: [(&str, &str, &str); 4] = [
    (
        "crates/plugin/src/multipart.rs",
        "Part",
        "a part of a multipart body (RFC 2046)",
    ),
    (
        "crates/plugins-observability/src/tracing/span.rs",
        "Span",
        "a span of a trace",
    ),
    (
        "crates/plugins-observability/src/tracing/tests/spans.rs",
        "Span",
        "a span of a trace",
    ),
    ("crates/weir/tests/observing/main.rs", "Span", "a span of a trace"),
];

/// Participles that are no name of a function, which is named after what it does: `to_response`, `redacted`, `fetch_status`.
const FUNCTIONS: [&str; 7] = ["asked", "complaint", "made", "said", "seen", "shown", "told"];

/// Words that are too general for a public type: it has the longer name of what it holds, such as `HealthState`.
const GENERAL: [&str; 5] = ["Call", "Entry", "Plan", "Report", "State"];
/// The places in which such a word is a type all the same: public ones by the field's term, private ones that only
/// their file sees. The list only shrinks.
const GENERAL_TYPES: [(&str, &str, &str); 13] = [
    ("crates/analytics/src/calls/files.rs", "State", PRIVATE),
    ("crates/analytics/src/heavy_hitters.rs", "Entry", PRIVATE),
    (
        "crates/apis/src/entities/plan.rs",
        "Plan",
        "the plan of an API product",
    ),
    ("crates/flow/src/expiring/shard.rs", "Entry", PRIVATE),
    ("crates/http1/src/chunked.rs", "State", PRIVATE),
    ("crates/plugin/src/headers/mod.rs", "Entry", PRIVATE),
    (
        "crates/plugins-observability/src/logger/rocketmq/producer.rs",
        "State",
        PRIVATE,
    ),
    (
        "crates/plugins-transformation/src/buffered_body.rs",
        "State",
        PRIVATE,
    ),
    ("crates/proxy/src/h2/pool.rs", "Entry", PRIVATE),
    ("crates/proxy/src/multiplex/stream.rs", "State", PRIVATE),
    ("crates/proxy/src/transport/tls.rs", "State", PRIVATE),
    ("crates/store/src/memory.rs", "Entry", PRIVATE),
    ("crates/telemetry/src/metrics/registry.rs", "State", PRIVATE),
];
const PRIVATE: &str = "private to its file";

/// Whether the rule about general names is for this source.
fn is_of_a_crate(source: &Source) -> bool {
    source.path.starts_with("crates/") && source.path.contains("/src/")
}

/// The type that a line of code defines.
fn defined(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let mut word = words.next()?;
    if word == "pub" || word.starts_with("pub(") {
        // `pub(in crate::api) struct Name`: the visibility ends with its bracket.
        let is_open = |word: &str| word.contains('(') && !word.contains(')');
        if is_open(word) {
            words.find(|word| word.ends_with(')'))?;
        }
        word = words.next()?;
    }
    if !matches!(word, "struct" | "enum" | "trait" | "type" | "union") {
        return None;
    }
    let rest = words.next()?;
    let end = rest.find(|character: char| !character.is_alphanumeric() && character != '_');
    Some(&rest[..end.unwrap_or(rest.len())])
}

/// The name that a type of this file would have: `LeftOut` of `left_out.rs`.
fn name_of_file(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let capital = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|character| character.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    stem.split('_').map(capital).collect()
}

/// What to write in place of a name that says nothing.
fn better(name: &str) -> Option<&'static str> {
    let group = WORDS.iter().find(|(names, _)| names.contains(&name));
    group.map(|(_, better)| *better)
}

#[test]
fn names_of_types_say_what_they_are() {
    let mut breaches = Vec::new();
    let mut used = Vec::new();
    for source in &sources() {
        let types = (1..).zip(source.code.lines());
        let types = types.filter_map(|(line, code)| Some((line, defined(code)?.to_owned())));
        // Line 0 is the file itself.
        for (line, name) in types.chain([(0, name_of_file(&source.path))]) {
            let Some(better) = better(&name) else { continue };
            match TERMS
                .iter()
                .find(|(path, term, _)| *path == source.path && *term == name)
            {
                Some(term) => used.push(term),
                None => breaches.push(format!("{}:{line}: '{name}'. Better: {better}", source.path)),
            }
        }
    }
    let unused = TERMS.iter().filter(|term| !used.contains(term));
    breaches.extend(unused.map(|(path, term, _)| format!("TERMS: {path} has no '{term}': remove it")));
    assert_none(
        &breaches,
        "a type and a file are named after what they hold, by the field's term: docs/glossary.md",
    );
}

#[test]
fn functions_say_what_they_do() {
    let mut breaches = Vec::new();
    for source in &sources() {
        let functions = source.functions().into_iter();
        for it in functions.filter(|it| FUNCTIONS.contains(&it.name.as_str())) {
            breaches.push(format!("{}:{}: '{}'", source.path, it.line, it.name));
        }
    }
    assert_none(
        &breaches,
        "a function is named after what it does: docs/glossary.md",
    );
}

#[test]
fn public_types_have_no_general_names() {
    let mut breaches = Vec::new();
    let mut used = Vec::new();
    for source in sources().iter().filter(|source| is_of_a_crate(source)) {
        for (line, code) in (1..).zip(source.code.lines()) {
            let Some(name) = defined(code).filter(|name| GENERAL.contains(name)) else {
                continue;
            };
            let is_public = code.trim_start().starts_with("pub");
            // A private alias, as for the cases of a test's table, is read next to its use.
            if !is_public && code.trim_start().starts_with("type ") {
                continue;
            }
            let known = GENERAL_TYPES
                .iter()
                .find(|(path, general, _)| *path == source.path && *general == name);
            match known {
                Some((.., reason)) if !is_public || *reason != PRIVATE => used.push(known),
                _ => breaches.push(format!(
                    "{}:{line}: '{name}'. Better: the longer name of what it holds",
                    source.path
                )),
            }
        }
    }
    let unused = GENERAL_TYPES.iter().filter(|it| !used.contains(&Some(it)));
    breaches
        .extend(unused.map(|(path, name, _)| format!("GENERAL_TYPES: {path} has no '{name}': remove it")));
    assert_none(&breaches, "a type is named after what it holds: docs/glossary.md");
}

#[test]
fn types_are_found_by_their_definitions() {
    for (line, expected) in [
        ("struct Asked;", Some("Asked")),
        ("    pub(in crate::api) enum Fault<'a> {", Some("Fault")),
        ("pub(super) type Place = (u8, u8);", Some("Place")),
        ("pub trait Known: Send {", Some("Known")),
        ("let known = Known::new();", None),
        ("use super::Known;", None),
        ("}", None),
    ] {
        assert_eq!(defined(line), expected, "{line}");
    }
    for (path, expected) in [
        ("crates/x/src/left_out.rs", "LeftOut"),
        ("crates/x/src/kept.rs", "Kept"),
        ("crates/x/src/head_cache.rs", "HeadCache"),
    ] {
        assert_eq!(name_of_file(path), expected);
    }
    assert!(better("Kept").is_some() && better("KeptAlive").is_none());
}
