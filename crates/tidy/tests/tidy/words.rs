//! Words that must not stand somewhere: calls that may panic, `unsafe`, and one layer's vocabulary in another.

use crate::assert_none;
use crate::repository::sources;
use crate::source::{Source, words};

/// Layers that serve every dialect and so know none, not even in a comment.
const DIALECT_FREE: [&str; 9] = [
    "crates/model/src/",
    "crates/http1/src/",
    "crates/http2/src/",
    "crates/flow/src/",
    "crates/plugin/src/",
    "crates/snapshot/src/",
    "crates/proxy/src/",
    "crates/dialect/src/",
    "crates/control/src/",
];
/// The names of the originals.
const DIALECTS: [&str; 2] = ["kong", "apisix"];
/// Where the program names originals: the list of dialects, and the flags that carry an original's name.
const LISTS_OF_ORIGINALS: [&str; 3] = [
    "crates/weir/src/dialects.rs",
    "crates/weir/src/args/dialects.rs",
    "crates/weir/src/args/dialects/",
];
/// Help texts: there an original may be named in words, but not in code.
const HELP_TEXTS: [&str; 2] = ["crates/weir/src/args.rs", "crates/weir/src/args/"];
/// Layers to which the time is an argument.
const TIMELESS: [&str; 9] = [
    "crates/apis/src/",
    "crates/http1/src/",
    "crates/analytics/src/",
    "crates/http2/src/",
    "crates/model/",
    "crates/flow/",
    "crates/snapshot/",
    "crates/kong/src/",
    "crates/apisix/src/",
];
const CLOCKS: [&str; 2] = ["Instant::now", "SystemTime::now"];
/// Layers that touch neither files nor sockets nor the environment.
const NO_IO: [&str; 11] = [
    "crates/apis/src/",
    "crates/http1/src/",
    "crates/http2/src/",
    "crates/model/",
    "crates/flow/",
    "crates/plugin/",
    "crates/snapshot/",
    // All families of plugins.
    "crates/plugins",
    "crates/kong/",
    "crates/apisix/",
    "crates/native/",
];
/// What panics whenever it is reached.
const PANICS: [&str; 4] = ["panic!", "unreachable!", "todo!", "unimplemented!"];
const IO: [&str; 8] = [
    "weir_telemetry::access_log",
    "std::fs",
    "std::net::Tcp",
    "std::net::Udp",
    "std::env",
    "std::thread",
    "async fn",
    "File::",
];

/// Where `word` stands in what is shipped of the sources that `of` holds for.
fn shipped(sources: &[Source], word: &str, of: impl Fn(&Source) -> bool) -> Vec<String> {
    let mut places = Vec::new();
    for source in sources.iter().filter(|source| of(source)) {
        for (at, _) in source.shipped.match_indices(word) {
            places.push(format!("{}: {word}", source.place(at)));
        }
    }
    places
}

fn is_below(source: &Source, folders: &[&str]) -> bool {
    folders.iter().any(|folder| source.path.starts_with(folder))
}

#[test]
fn nothing_is_unwrapped() {
    let sources = sources();
    let mut breaches = shipped(&sources, ".unwrap()", |_| true);
    for source in &sources {
        for (at, call) in source.shipped.match_indices(".expect(") {
            let argument = source.text[at + call.len()..].trim_start();
            // A method of that name whose argument is no text is another one.
            if argument.starts_with('"') && !argument.starts_with("\"invariant: ") {
                breaches.push(format!("{}: .expect without an invariant", source.place(at)));
            }
        }
    }
    // What fuzzing calls is there to panic.
    for source in sources
        .iter()
        .filter(|source| !source.path.ends_with("/fuzzing.rs"))
    {
        for call in PANICS {
            for at in words(&source.shipped, call) {
                let argument = source.text[at + call.len()..]
                    .trim_start_matches(|it: char| it == '(' || it.is_whitespace());
                if !argument.starts_with("\"invariant: ") {
                    breaches.push(format!("{}: {call} without an invariant", source.place(at)));
                }
            }
        }
    }
    assert_none(
        &breaches,
        "nothing may panic but on a stated invariant: `.expect(\"invariant: …\")`",
    );
}

#[test]
fn nothing_is_unsafe() {
    let mut breaches = Vec::new();
    for source in sources() {
        breaches.extend(words(&source.code, "unsafe").map(|at| source.place(at)));
    }
    assert_none(&breaches, "there is no `unsafe`");
}

#[test]
fn nothing_is_left_to_do() {
    let mut breaches = Vec::new();
    let marks = ["TO", "FIX", "XX"].map(|start| format!("{start}{}", if start == "XX" { "X" } else { "DO" }));
    for source in sources() {
        for mark in &marks {
            breaches.extend(words(&source.text, mark).map(|at| source.place(at)));
        }
        if source.path.ends_with("/utils.rs") || source.path.ends_with("/util.rs") {
            breaches.push(format!("{}: a name that says nothing", source.path));
        }
    }
    assert_none(
        &breaches,
        "what is to do stands in an issue; a file is named after what it holds",
    );
}

#[test]
fn libraries_do_not_print() {
    let sources = sources();
    let of_library = |source: &Source| !is_below(source, &["crates/weir/", "crates/bench/"]);
    let mut breaches = Vec::new();
    for call in ["println!", "eprintln!", "print!", "dbg!"] {
        breaches.extend(shipped(&sources, call, of_library));
    }
    assert_none(
        &breaches,
        "libraries say things through values, diagnostics and `tracing`",
    );
}

#[test]
fn common_layers_speak_no_dialect() {
    let mut breaches = Vec::new();
    for source in sources().iter().filter(|source| is_below(source, &DIALECT_FREE)) {
        let text = source.text.to_lowercase();
        for dialect in DIALECTS {
            breaches.extend(
                text.match_indices(dialect)
                    .map(|(at, _)| format!("{}: {dialect}", source.place(at))),
            );
        }
    }
    assert_none(
        &breaches,
        "algorithms, contract, snapshot and data plane know no original",
    );
}

/// What depends on an original is a method of its dialect. A further dialect is a line in the list.
#[test]
fn the_program_names_originals_in_its_lists_only() {
    let mut breaches = Vec::new();
    let sources = sources();
    let of_program = |source: &&Source| {
        // A file of tests has nothing that is shipped.
        let is_test = source.shipped.trim().is_empty();
        is_below(source, &["crates/weir/src/"]) && !is_below(source, &LISTS_OF_ORIGINALS) && !is_test
    };
    for source in sources.iter().filter(of_program) {
        let text = match is_below(source, &HELP_TEXTS) {
            true => source.shipped.to_lowercase(),
            false => before_tests(&source.text).to_lowercase(),
        };
        for original in DIALECTS {
            let found = text.match_indices(original);
            breaches.extend(found.map(|(at, _)| format!("{}: {original}", source.place(at))));
        }
    }
    assert_none(
        &breaches,
        "the program names originals in its list of dialects and in the flags that have their names",
    );
}

/// A file without the tests at its end.
fn before_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default()
}

#[test]
fn the_data_plane_names_no_plugin() {
    let registry = weir_plugins::registry();
    let mut breaches = Vec::new();
    for source in sources()
        .iter()
        .filter(|source| is_below(source, &["crates/proxy/src/"]))
    {
        // The crate through which the data plane writes its log has the name of a plugin, and TLS has sessions.
        let is_word = |name: &str| matches!(name, "tracing" | "session");
        for plugin in registry.iter().filter(|plugin| !is_word(plugin.name())) {
            let name = plugin.name();
            breaches.extend(words(&source.text, name).map(|at| format!("{}: {name}", source.place(at))));
        }
    }
    assert_none(&breaches, "the data plane runs filters and knows no plugin");
}

#[test]
fn time_is_an_argument() {
    let sources = sources();
    let mut breaches = Vec::new();
    // A dialect's Admin API is a server: it says when something was written, and how long an answer took.
    let is_admin = |source: &Source| source.path.contains("/src/admin/");
    for clock in CLOCKS {
        breaches.extend(shipped(&sources, clock, |source| {
            is_below(source, &TIMELESS) && !is_admin(source)
        }));
    }
    assert_none(
        &breaches,
        "model, algorithms, snapshot and dialects are told the time",
    );
}

#[test]
fn pure_layers_do_no_io() {
    let sources = sources();
    let mut breaches = Vec::new();
    // A dialect's Admin API waits for its store, and for nothing else.
    let is_admin = |source: &Source| source.path.contains("/src/admin/");
    for call in IO {
        breaches.extend(shipped(&sources, call, |source| {
            is_below(source, &NO_IO) && !(is_admin(source) && call == "async fn")
        }));
    }
    assert_none(&breaches, "only data plane, telemetry and binary do I/O");
}
