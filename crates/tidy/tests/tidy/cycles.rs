//! Circles among the files of a crate: files that use each other, directly or through others. Two that do are tolerated;
//! more cannot be read, tested or moved one by one. That a module uses its own parts, the files of its folder, is no part of
//! a circle. Circles between crates cargo refuses itself.

use crate::assert_none;
use crate::repository::{read, sources};
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};

/// Files that may form a circle.
const TOLERATED: usize = 2;
/// The circles that are larger, one a line: a crate, one of its files, and how many form the circle at the most. The list only shrinks.
const LIST: &str = "crates/tidy/tests/tidy/cycles.txt";

/// The modules of one crate that are files: paths of modules, such as `["forward", "pump"]`.
struct Modules<'s> {
    files: BTreeMap<Vec<String>, &'s Source>,
    /// By module and name, what a `pub use` makes known there.
    exports: BTreeMap<(Vec<String>, String), Vec<String>>,
}

/// A path that is used: its segments, and whether a module makes it known as its own.
#[derive(Debug, PartialEq, Eq)]
struct Use {
    path: Vec<String>,
    is_export: bool,
}

impl<'s> Modules<'s> {
    fn of(sources: &'s [Source], folder: &str) -> Self {
        let files: BTreeMap<_, _> = sources
            .iter()
            .filter(|source| !source.shipped.is_empty())
            .filter_map(|source| Some((module_of(source.path.strip_prefix(folder)?)?, source)))
            .collect();
        let mut modules = Self {
            files,
            exports: BTreeMap::new(),
        };
        for (module, source) in &modules.files {
            for used in uses(&source.shipped).into_iter().filter(|used| used.is_export) {
                if let (Some(path), Some(name)) = (modules.absolute(module, &used.path), used.path.last()) {
                    modules.exports.insert((module.clone(), name.clone()), path);
                }
            }
        }
        modules
    }

    /// A path from the crate's root, if it leads into the crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let mut base = module.to_vec();
        match first.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => {
                base.pop()?;
                return match rest.first().is_some_and(|next| next == "super") {
                    true => self.absolute(&base, rest),
                    false => Some([base, rest.to_vec()].concat()),
                };
            }
            name => {
                base.push(name.to_owned());
                self.files.contains_key(&base).then_some(())?;
            }
        }
        Some([base, rest.to_vec()].concat())
    }

    /// The module that holds what a path from the root names, through what others make known.
    fn holder(&self, path: &[String], depth: usize) -> Vec<String> {
        let length = (0..=path.len())
            .rev()
            .find(|length| self.files.contains_key(&path[..*length]))
            .unwrap_or(0);
        let (module, rest) = path.split_at(length);
        let export = rest
            .first()
            .and_then(|name| self.exports.get(&(module.to_vec(), name.clone())));
        match export.filter(|_| depth < 8) {
            Some(target) => self.holder(&[target, &rest[1..]].concat(), depth + 1),
            None => module.to_vec(),
        }
    }

    /// Which modules each uses.
    fn edges(&self) -> BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> {
        let targets = |(module, source): (&'_ Vec<String>, &&Source)| {
            uses(&source.shipped)
                .into_iter()
                // What a module only makes known it does not use.
                .filter(|used| !used.is_export)
                .filter_map(|used| self.absolute(module, &used.path))
                .map(|path| self.holder(&path, 0))
                .filter(|target| target != module && self.files.contains_key(target))
                // A module is made of its own parts: that these use it is what counts.
                .filter(|target| !target.starts_with(module) || module.is_empty())
                .collect()
        };
        let each = self.files.iter();
        each.map(|(module, source)| (module, targets((module, source))))
            .collect()
    }

    /// The circles of more than [`TOLERATED`] files, each sorted.
    fn circles(&self) -> Vec<Vec<Vec<String>>> {
        let edges = self.edges();
        let mut left: BTreeSet<&Vec<String>> = self.files.keys().collect();
        let mut circles = Vec::new();
        let reach = |from: &Vec<String>| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(module) = open.pop() {
                for target in edges.get(&module).into_iter().flatten() {
                    if seen.insert(target.clone()) {
                        open.push(target.clone());
                    }
                }
            }
            seen
        };
        let reached: BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> =
            self.files.keys().map(|module| (module, reach(module))).collect();
        while let Some(module) = left.pop_first() {
            let circle: Vec<Vec<String>> = reached[module]
                .iter()
                .filter(|other| reached[*other].contains(module))
                .cloned()
                .collect();
            left.retain(|other| !circle.contains(other));
            if circle.len() > TOLERATED {
                circles.push(circle);
            }
        }
        circles
    }
}

/// The module of a file below `src/`; `None`: it is the root of a binary next to the library.
fn module_of(path: &str) -> Option<Vec<String>> {
    let path = path.strip_prefix("/src/")?.strip_suffix(".rs")?;
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    Some(parts)
}

/// All paths of several segments in some code, those of `use` with their braces resolved.
fn uses(code: &str) -> Vec<Use> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(path_at) = rest.find("::") {
        // A `use` may begin with braces or a path; all else is a path.
        let start = rest[..path_at]
            .rfind(|it: char| !(it.is_alphanumeric() || it == '_'))
            .map_or(0, |at| at + 1);
        let before = rest[..start].trim_end();
        let is_use = before.ends_with("use");
        if is_use {
            let end = rest[start..].find(';').map_or(rest.len(), |end| start + end);
            let statement = before.strip_suffix("use").unwrap_or_default().trim_end();
            let is_export = statement.ends_with("pub")
                || (statement.ends_with(')')
                    && statement
                        .rfind("pub(")
                        .is_some_and(|at| !statement[at..].contains('\n')));
            let mut paths = Vec::new();
            expand(&[], &rest[start..end], &mut paths);
            found.extend(paths.into_iter().map(|path| Use { path, is_export }));
            rest = &rest[end..];
            continue;
        }
        let is_path = |it: char| it.is_alphanumeric() || it == '_' || it == ':';
        let end = rest[start..]
            .find(|it| !is_path(it))
            .map_or(rest.len(), |end| start + end);
        let path: Vec<String> = rest[start..end].split("::").map(str::to_owned).collect();
        if path.iter().take(2).all(|part| !part.is_empty()) {
            found.push(Use {
                path,
                is_export: false,
            });
        }
        rest = &rest[end.max(path_at + 2)..];
    }
    found
}

/// Resolves the braces of a `use`.
fn expand(prefix: &[String], tree: &str, paths: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        let parts = path.split("::").map(|part| part.trim().to_owned());
        let parts = parts.filter(|part| {
            !matches!(part.as_str(), "" | "*" | "self") || prefix.is_empty() && part == "self"
        });
        paths.push(prefix.iter().cloned().chain(parts).collect());
        return;
    };
    let parts = tree[..open].split("::").map(|part| part.trim().to_owned());
    let prefix: Vec<String> = prefix
        .iter()
        .cloned()
        .chain(parts.filter(|part| !part.is_empty()))
        .collect();
    let inner = tree[open + 1..].trim_end().strip_suffix('}').unwrap_or_default();
    let (mut depth, mut start) = (0usize, 0);
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                expand(&prefix, &inner[start..at], paths);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !inner[start..].trim().is_empty() {
        expand(&prefix, &inner[start..], paths);
    }
}

/// A circle's files and which of them each uses, to untie it by.
fn tell(modules: &Modules<'_>, circle: &[Vec<String>]) -> String {
    let edges = modules.edges();
    let names = circle.iter().map(|module| {
        let used = edges[module].iter().filter(|target| circle.contains(target));
        let used: Vec<String> = used.map(|target| target.join("::")).collect();
        format!("\n    {} uses {}", module.join("::"), used.join(", "))
    });
    names.collect()
}

#[test]
fn files_of_a_crate_form_no_new_circles() {
    let sources = sources();
    let text = read(LIST);
    let mut listed: Vec<(&str, &str, usize)> = Vec::new();
    for line in text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
    {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [folder, file, size] = words[..] else {
            panic!("{LIST}: not a crate, a file and a size: {line}");
        };
        listed.push((folder, file, size.parse().expect("a size is a number")));
    }
    let mut breaches = Vec::new();
    let mut is_met = vec![false; listed.len()];
    let folders: BTreeSet<&str> = sources
        .iter()
        .filter_map(|source| source.path.strip_prefix("crates/")?.split('/').next())
        .collect();
    for folder in folders {
        let modules = Modules::of(&sources, &format!("crates/{folder}"));
        for circle in modules.circles() {
            let files: Vec<&str> = circle
                .iter()
                .map(|module| modules.files[module].path.as_str())
                .collect();
            let name = |file: &str| format!("crates/{folder}/src/{file}");
            let entry = listed.iter().position(|(crate_folder, file, _)| {
                *crate_folder == folder && files.contains(&name(file).as_str())
            });
            let size = entry.map_or(0, |at| listed[at].2);
            if let Some(at) = entry {
                is_met[at] = true;
            }
            if size < circle.len() {
                let message = tell(&modules, &circle);
                breaches.push(format!(
                    "{folder}: {} files, {size} are listed{message}",
                    circle.len()
                ));
            }
        }
    }
    for ((folder, file, _), is_met) in listed.iter().zip(is_met) {
        if !is_met {
            breaches.push(format!(
                "{LIST}: {folder} {file}: the circle is gone; so should be its line"
            ));
        }
    }
    assert_none(&breaches, "files of a crate do not use each other in circles");
}

#[test]
fn paths_are_found_with_their_braces() {
    let code = "use a::{self, b::{C, D}, e};\npub use f::G;\npub(crate) use h::I;\nfn k() { crate::l::m(); n::<o::P>(); }";
    let found: Vec<(String, bool)> = uses(code)
        .into_iter()
        .map(|used| (used.path.join("::"), used.is_export))
        .collect();
    let expected = [
        ("a", false),
        ("a::b::C", false),
        ("a::b::D", false),
        ("a::e", false),
        ("f::G", true),
        ("h::I", true),
        ("crate::l::m", false),
        ("o::P", false),
    ];
    let expected: Vec<(String, bool)> = expected.map(|(path, is)| (path.to_owned(), is)).into();
    assert_eq!(found, expected);
}

#[test]
fn circles_are_found_through_what_modules_make_known() {
    let source = |path: &str, text: &str| Source::new(format!("crates/x/src/{path}"), text.to_owned());
    let sources = [
        source("lib.rs", "pub use a::A;\nmod a; mod b; mod c; mod d;"),
        source("a.rs", "use crate::b::B;\npub struct A;"),
        source("b.rs", "pub struct B;\nfn b() { super::c::c(); }"),
        source("c.rs", "use crate::A;\npub fn c() {}"),
        source(
            "d.rs",
            "use crate::{A, b::B};\n#[cfg(test)]\nmod tests { use crate::d; }",
        ),
    ];
    let modules = Modules::of(&sources, "crates/x");
    let circles: Vec<Vec<String>> = modules
        .circles()
        .iter()
        .map(|circle| circle.iter().map(|module| module.join("::")).collect())
        .collect();
    assert_eq!(circles, [["a", "b", "c"]]);
}
