//! The documentation describes what is there, and points to what is there.

use crate::assert_none;
use crate::repository::{documents, files, read, root, sources};
use crate::source::words;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use weir_telemetry::metrics::names::Metric;
use weir_telemetry::metrics::{ProtocolError, Refusal};

const OPERATIONS: &str = "docs/operations.md";
const CONFIGURATION: &str = "docs/configuration.md";
const COMPATIBILITY: &str = "docs/compatibility.md";
const SECURITY: &str = "docs/security.md";
const ARCHITECTURE: &str = "docs/architecture.md";

/// The parts of a text between backticks, of which each stands on one line.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// What of `wanted` a document does not have between backticks.
fn missing<'w>(path: &str, wanted: impl IntoIterator<Item = &'w str>) -> Vec<String> {
    let text = read(path);
    let named: BTreeSet<&str> = quoted(&text).collect();
    let wanted = wanted.into_iter().filter(|word| !named.contains(word));
    wanted
        .map(|word| format!("{path} does not tell of `{word}`"))
        .collect()
}

/// Words of the form `PREFIX…` in a text, of capital or small letters and underscores.
fn names_with(prefix: &str, text: &str) -> BTreeSet<String> {
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let starts = text.match_indices(prefix).map(|(at, _)| at);
    starts
        .filter(|at| !text[..*at].ends_with(is_name))
        .map(|at| {
            text[at..]
                .chars()
                .take_while(|it| is_name(*it))
                .collect::<String>()
        })
        .filter(|name| name.len() > prefix.len())
        .collect()
}

#[test]
fn every_plugin_is_documented() {
    let registry = weir_plugins::registry();
    let names: Vec<&str> = registry.iter().map(|plugin| plugin.name()).collect();
    let mut breaches = missing(CONFIGURATION, names.iter().copied());
    breaches.extend(missing(COMPATIBILITY, names.iter().copied()));
    let guide = read(CONFIGURATION);
    for name in names {
        // `weir plugins` prints the links of these pages too.
        let page = format!("plugins/{name}.md");
        if !guide.contains(&format!("]({page})")) || !root().join("docs").join(&page).exists() {
            breaches.push(format!("{CONFIGURATION} links no docs/{page}"));
        }
    }
    assert_none(
        &breaches,
        "a plugin has its place in the guide and in the table of the originals, and a page",
    );
}

#[test]
fn every_page_is_linked_from_another() {
    let documents = documents();
    let pages = documents
        .iter()
        .map(|(path, _)| path)
        .filter(|path| path.starts_with("docs/"));
    let is_linked = |page: &String| {
        documents.iter().any(|(path, text)| {
            let folder = Path::new(path).parent().unwrap_or(Path::new(""));
            let mut targets = text.split("](").skip(1).map(|rest| rest.split([')', '#']).next());
            path != page
                && targets.any(|target| target.is_some_and(|it| plain(&folder.join(it)) == Path::new(page)))
        })
    };
    let breaches: Vec<String> = pages.filter(|page| !is_linked(page)).cloned().collect();
    assert_none(&breaches, "a page that nothing links is found by no one");
}

#[test]
fn the_index_leads_to_every_page() {
    let index = read("docs/README.md");
    // Pages of plugins are listed in the table of plugins, and decisions on a page of their own.
    let is_listed_elsewhere =
        |path: &str| path.starts_with("plugins/") || (path.starts_with("adr/") && path != "adr/README.md");
    let documents = documents();
    let pages = documents
        .iter()
        .filter_map(|(path, _)| path.strip_prefix("docs/"))
        .filter(|path| *path != "README.md" && !is_listed_elsewhere(path));
    let is_linked =
        |path: &&str| index.contains(&format!("]({path})")) || index.contains(&format!("]({path}#"));
    let breaches: Vec<String> = pages.filter(|path| !is_linked(path)).map(str::to_owned).collect();
    assert_none(&breaches, "docs/README.md leads to every page");
}

/// A path without its `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[test]
fn every_metric_is_documented() {
    let metrics = Metric::ALL.iter().map(|metric| metric.name());
    let kinds = ProtocolError::ALL.iter().map(|kind| kind.label());
    let reasons = Refusal::ALL.iter().map(|reason| reason.label());
    let mut breaches = missing(OPERATIONS, metrics.chain(kinds).chain(reasons));
    let text = read(OPERATIONS);
    let known = |name: &String| {
        let is_family = |family: &str| {
            name.strip_prefix(family)
                .is_some_and(|end| matches!(end, "" | "_bucket" | "_sum" | "_count"))
        };
        Metric::ALL.iter().any(|metric| is_family(metric.name()))
    };
    let named = names_with("weir_", &text);
    breaches.extend(
        named
            .iter()
            .filter(|name| !known(name))
            .map(|name| format!("{OPERATIONS}: {name} is not a metric")),
    );
    assert_none(
        &breaches,
        "metrics are documented, and what is documented is a metric",
    );
}

#[test]
fn every_environment_variable_is_documented() {
    let (mut of_weir, mut of_anything) = (BTreeSet::new(), BTreeSet::new());
    for source in sources() {
        // As a text of its own; help texts and comments only mention them.
        let named: BTreeSet<String> = names_with("WEIR_", &source.text)
            .into_iter()
            .filter(|name| source.text.contains(&format!("\"{name}\"")))
            .collect();
        if source.path.starts_with("crates/weir/src/") {
            of_weir.extend(named.iter().cloned());
        }
        of_anything.extend(named);
    }
    let mut breaches = missing(OPERATIONS, of_weir.iter().map(String::as_str));
    for (path, text) in documents() {
        let described = names_with("WEIR_", &text);
        let unknown = described.iter().filter(|name| !of_anything.contains(*name));
        breaches.extend(unknown.map(|name| format!("{path}: nothing reads {name}")));
    }
    assert_none(
        &breaches,
        "environment variables are documented, and what is documented is read",
    );
}

#[test]
fn every_field_of_the_access_log_is_documented() {
    let text = read("crates/telemetry/src/access_log/json.rs");
    let fields = text.match_indices("(out, \"").map(|(at, call)| {
        let field = &text[at + call.len()..];
        &field[..field.find('"').unwrap_or(field.len())]
    });
    let fields: BTreeSet<&str> = fields.chain(["time"]).collect();
    assert!(
        fields.contains("duration_us") && fields.contains("request_id"),
        "{fields:?}"
    );
    assert_none(
        &missing(OPERATIONS, fields),
        "fields of the access log are documented",
    );
}

#[test]
fn links_lead_somewhere() {
    let mut breaches = Vec::new();
    for (path, text) in documents() {
        let folder = root().join(&path);
        let folder = folder.parent().unwrap_or(Path::new("."));
        for (at, _) in text.match_indices("](") {
            let target = &text[at + 2..];
            let target = &target[..target.find(')').unwrap_or(0)];
            let file = target.split('#').next().unwrap_or_default();
            let is_elsewhere = target.contains("://") || target.contains(char::is_whitespace);
            if !is_elsewhere && !file.is_empty() && !folder.join(file).exists() {
                breaches.push(format!("{path}: {target}"));
            }
        }
    }
    assert_none(&breaches, "a link leads to a file that is there");
}

#[test]
fn paths_that_are_named_exist() {
    const FOLDERS: [&str; 7] = [
        "crates/",
        "docs/",
        "tests/",
        "scripts/",
        "examples/",
        "fuzz/",
        ".ci/",
    ];
    let mut breaches = Vec::new();
    let of_console = "console/tests/README.md";
    let documents = documents()
        .into_iter()
        .chain([(of_console.to_owned(), read(of_console))]);
    for (path, text) in documents.filter(|(path, _)| !path.starts_with("tests/")) {
        for word in quoted(&text) {
            let is_path = FOLDERS.iter().any(|folder| word.starts_with(folder));
            // Patterns and placeholders stand for many paths.
            let is_plain = !word.contains(['*', '<', '{', ' ', '…']) && !word.contains("NAME");
            if is_path && is_plain && !root().join(word).exists() {
                breaches.push(format!("{path}: {word}"));
            }
        }
    }
    assert_none(&breaches, "a path that the documentation names exists");
}

/// Of "`NAME` in `PATH`".
#[test]
fn definitions_are_where_they_are_said_to_be() {
    const KINDS: [&str; 8] = ["fn", "struct", "enum", "trait", "type", "const", "static", "mod"];
    let mut breaches = Vec::new();
    let mut count = 0;
    for (path, text) in documents() {
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (at, between) in line.match_indices("` in `") {
            let name = line[..at].rsplit('`').next().unwrap_or_default();
            let file = line[at + between.len()..].split('`').next().unwrap_or_default();
            let is_source =
                file.starts_with("crates/") && file.ends_with(".rs") && root().join(file).exists();
            if !is_source || name.contains(' ') {
                continue;
            }
            count += 1;
            let name = name
                .rsplit("::")
                .next()
                .unwrap_or_default()
                .trim_end_matches("()");
            let source = read(file);
            let is_there = KINDS.iter().any(|kind| {
                let definition = format!("{kind} {name}");
                words(&source, &definition).next().is_some()
            });
            if !is_there {
                breaches.push(format!("{path}: {file} defines no `{name}`"));
            }
        }
    }
    assert!(count > 3, "only {count} are found");
    assert_none(&breaches, "what a page says is in a file is defined there");
}

/// The names of the form `a_b_c` between backticks.
fn test_names(text: &str) -> Vec<&str> {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    quoted(text)
        .filter(|word| word.matches('_').count() >= 2 && word.bytes().all(is_letter))
        .collect()
}

/// The last cells of the rows below a heading, up to the next heading.
fn last_cells(text: &str, heading: &str) -> Vec<String> {
    let (_, section) = text.split_once(heading).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_suffix(" |"));
    rows.filter_map(|row| row.rsplit(" | ").next().map(str::to_owned))
        .collect()
}

#[test]
fn tests_that_are_named_exist() {
    let sources = sources();
    let is_test = |name: &str| {
        let declaration = format!("fn {name}(");
        sources.iter().any(|source| source.text.contains(&declaration))
    };
    let attacks = last_cells(&read(SECURITY), "## Tested attacks").join("\n");
    let mut breaches = Vec::new();
    for (path, text, least) in [(ARCHITECTURE, read(ARCHITECTURE), 1), (SECURITY, attacks, 50)] {
        let named = test_names(&text);
        assert!(named.len() >= least, "{path} names only {} tests", named.len());
        let gone = named.iter().filter(|name| !is_test(name));
        breaches.extend(gone.map(|name| format!("{path}: no test is named {name}")));
    }
    assert_none(&breaches, "an invariant is backed by what exists");
}

#[test]
fn every_layer_is_described() {
    let text = read(ARCHITECTURE);
    let manifests = files("crates", "/Cargo.toml");
    let folders = manifests.iter().map(|path| path.trim_end_matches("/Cargo.toml"));
    let silent = folders.filter(|folder| words(&text, folder).next().is_none());
    let breaches: Vec<String> = silent
        .map(|folder| format!("{ARCHITECTURE} does not tell of {folder}"))
        .collect();
    assert_none(&breaches, "a layer has its line in the architecture");
}
