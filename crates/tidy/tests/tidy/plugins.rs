//! The places of a plugin. Five are written by hand (`docs/how-to/add-a-plugin.md`); every list and table is made of
//! them, and compared here. `UPDATE_GOLDEN=1 cargo test -p weir-tidy plugin_lists` writes them.

use crate::assert_none;
use crate::repository::{files, read, root};
use std::collections::{BTreeMap, BTreeSet};
use weir_dialect::{PluginName, Support};

const FAMILIES: [&str; 6] = [
    "authentication",
    "traffic",
    "transformation",
    "validation",
    "caching",
    "observability",
];
const KONG: &str = "crates/kong/src/plugins/";
const APISIX: &str = "crates/apisix/src/plugins/";
const REGISTRY: &str = "crates/plugins/src/registry.rs";

/// A list that is made of files: its place, and its lines.
struct List {
    path: String,
    /// The text of the line before its first.
    begin: &'static str,
    /// How the line after its last begins.
    end: &'static str,
    lines: Vec<String>,
}

impl List {
    /// The file as it should be; `None`: the list has no beginning or no end.
    fn renewed(&self, text: &str) -> Option<String> {
        let begin = format!("{}\n", self.begin);
        let at = text.find(&begin)? + begin.len();
        let (before, rest) = text.split_at(at);
        let mut length = 0;
        for line in rest.split_inclusive('\n') {
            if line.starts_with(self.end) && (!self.end.is_empty() || line == "\n") {
                let lines: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
                return Some(format!("{before}{lines}{}", &rest[length..]));
            }
            length += line.len();
        }
        None
    }
}

/// The modules of a folder, without those that only tests have.
fn modules(folder: &str) -> BTreeSet<String> {
    let paths = files(folder, ".rs");
    let names = paths.iter().filter_map(|path| {
        let rest = path.strip_prefix(folder)?;
        let name = rest.split('/').next()?.trim_end_matches(".rs");
        let own = [format!("{folder}{name}.rs"), format!("{folder}{name}/mod.rs")];
        own.contains(path).then(|| name.to_owned())
    });
    names
        .filter(|name| !matches!(name.as_str(), "lib" | "mod" | "tests"))
        .collect()
}

/// The declarations of a folder's modules. A module that is declared keeps its visibility; a new one gets `new`.
fn declarations(path: &str, folder: &str, new: &str) -> Vec<String> {
    let text = read(path);
    let declared: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| Some((line.strip_suffix(';')?.rsplit_once("mod ")?.1, line)))
        .collect();
    let line = |name: &String| match declared.get(name.as_str()) {
        Some(line) => (*line).to_owned(),
        None => format!("{new} {name};"),
    };
    modules(folder).iter().map(line).collect()
}

const MODULES: &str =
    "// The modules of this folder; `UPDATE_GOLDEN=1 cargo test -p weir-tidy plugin_lists` adds new ones.";
const END: &str = "// End of the modules.";

fn lists_of_sources() -> Vec<List> {
    let mut lists: Vec<List> = FAMILIES
        .iter()
        .map(|family| {
            let folder = format!("crates/plugins-{family}/src/");
            let path = format!("{folder}lib.rs");
            let lines = declarations(&path, &folder, "pub mod");
            (path, lines)
        })
        .chain([KONG, APISIX].map(|folder| {
            let path = format!("{folder}mod.rs");
            let lines = declarations(&path, folder, "mod");
            (path, lines)
        }))
        .map(|(path, lines)| List {
            path,
            begin: MODULES,
            end: END,
            lines,
        })
        .collect();
    let definitions = modules(KONG)
        .into_iter()
        .filter(|name| read_if_there(&format!("{KONG}{name}.rs")).contains("const DEFINITION: Definition"));
    lists.push(List {
        path: format!("{KONG}mod.rs"),
        begin: "pub static DEFINITIONS: &[Definition] = &[",
        end: "];",
        lines: definitions
            .map(|name| format!("    {name}::DEFINITION,"))
            .collect(),
    });
    lists.push(List {
        path: format!("{APISIX}catalogue.rs"),
        begin: "static BUILT: &[&dyn PluginAdapter] = &[",
        end: "];",
        lines: adapters(),
    });
    lists
}

/// Macros that make adapters.
const MACROS: [&str; 2] = ["idle", "function"];

/// APISIX's adapters: `&super::MODULE::TYPE,`.
fn adapters() -> Vec<String> {
    let mut lines = BTreeSet::new();
    for path in files(APISIX, ".rs") {
        let module = path[APISIX.len()..].split('/').next().unwrap_or_default();
        let module = module.trim_end_matches(".rs");
        let text = read(&path);
        for (_, rest) in text
            .match_indices("impl PluginAdapter for ")
            .map(|(at, it)| (at, &text[at + it.len()..]))
        {
            let name: String = rest.chars().take_while(|it| it.is_alphanumeric()).collect();
            if !name.is_empty() {
                lines.insert(format!("    &super::{module}::{name},"));
            }
        }
        // Adapters that a macro of their file makes: `idle!(TYPE, "name", …)`.
        for line in text.lines().filter_map(|line| line.strip_suffix(");")) {
            if let Some((_, rest)) = line.split_once("!(").filter(|(name, _)| MACROS.contains(name)) {
                let name = rest.split(',').next().unwrap_or_default();
                lines.insert(format!("    &super::{module}::{name},"));
            }
        }
    }
    lines.into_iter().collect()
}

fn read_if_there(path: &str) -> String {
    if root().join(path).exists() {
        read(path)
    } else {
        String::new()
    }
}

/// A plugin's row in the guide, from the line below its page's title: ``> does: `EXAMPLE` ``.
fn row_of_page(name: &str) -> Option<String> {
    let page = read_if_there(&format!("docs/plugins/{name}.md"));
    let line = page.lines().nth(2)?.strip_prefix("> ")?;
    let (does, example) = line.strip_suffix('`')?.split_once(": `")?;
    Some(format!(
        "| [`{name}`](plugins/{name}.md) | {does} | `{example}` |"
    ))
}

/// A plugin's row in the table of the originals.
fn row_of_names(name: &str) -> String {
    let kong = weir_kong::plugins::DEFINITIONS.iter();
    let kong = kong
        .filter(|it| it.catalogue_name == name)
        .map(|it| format!("`{}`", it.name));
    let apisix = weir_apisix::spellings().filter(|(_, catalogue)| *catalogue == name);
    let apisix = apisix.map(|(name, _)| format!("`{name}`"));
    let cell = |mut names: Vec<String>| {
        names.sort();
        match names.is_empty() {
            true => String::new(),
            false => format!("{} ", names.join(", ")),
        }
    };
    format!(
        "| `{name}` | {}| {}|",
        cell(kong.collect()),
        cell(apisix.collect())
    )
}

fn lists_of_documents() -> Vec<List> {
    let registry = weir_plugins::registry();
    let names = || registry.iter().map(|plugin| plugin.name());
    vec![
        List {
            path: "docs/configuration.md".to_owned(),
            begin: "| plugin | does | short example |\n|---|---|---|",
            end: "",
            lines: names().filter_map(row_of_page).collect(),
        },
        List {
            path: "docs/compatibility.md".to_owned(),
            begin: "| in Weir's catalogue | Kong | APISIX |\n|---|---|---|",
            end: "",
            lines: names().map(row_of_names).collect(),
        },
        List {
            path: "docs/compatibility.md".to_owned(),
            begin: "| plugin | difference |\n|---|---|",
            end: "",
            lines: rows_of_differences(),
        },
        List {
            path: "docs/compatibility.md".to_owned(),
            begin: "| name | of | here | why |\n|---|---|---|---|",
            end: "",
            lines: rows_of_the_rest(),
        },
    ]
}

/// The tables of the originals' names, each with the original's name.
fn originals() -> [(&'static str, &'static [PluginName]); 2] {
    [
        ("Kong", weir_kong::plugins::NAMES),
        ("APISIX", weir_apisix::PLUGIN_NAMES),
    ]
}

/// Differences, each with the plugins that have it.
fn rows_of_differences() -> Vec<String> {
    let mut by_text: Vec<(&str, BTreeMap<&str, Vec<&str>>)> = Vec::new();
    for (original, names) in originals() {
        for row in names.iter() {
            let Support::Served(differences) = row.support else {
                continue;
            };
            for text in differences {
                let place = by_text.iter().position(|(known, _)| known == text);
                let place = place.unwrap_or_else(|| {
                    by_text.push((text, BTreeMap::new()));
                    by_text.len() - 1
                });
                by_text[place].1.entry(original).or_default().push(row.name);
            }
        }
    }
    let names = |(original, names): (&&str, &Vec<&str>)| {
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        format!("{original} {}", quoted.join(", "))
    };
    by_text
        .iter()
        .map(|(text, plugins)| {
            let plugins: Vec<String> = plugins.iter().rev().map(names).collect();
            format!("| {} | {text} |", plugins.join(", "))
        })
        .collect()
}

/// The names that are not served, and why.
fn rows_of_the_rest() -> Vec<String> {
    let mut rows = Vec::new();
    for (original, names) in originals() {
        for row in names
            .iter()
            .filter(|row| !matches!(row.support, Support::Served(_)))
        {
            let edition = if row.is_paid { ", paid" } else { "" };
            rows.push(format!(
                "| `{}` | {original}{edition} | {} | {} |",
                row.name,
                row.support.word(),
                row.support.remarks().join("; ")
            ));
        }
    }
    rows
}

/// What is built for a name: the word that its row must have.
fn built(original: &str, name: &str) -> &'static str {
    use weir_kong::plugins::{DEFINITIONS, unserved::DESCRIBED};
    if original == "Kong" {
        return match name {
            _ if DEFINITIONS.iter().any(|it| it.name == name) => "served",
            _ if DESCRIBED.iter().any(|it| it.name == name) => "checked",
            _ => "refused",
        };
    }
    match weir_apisix::spellings().find(|(known, _)| *known == name) {
        // A stream route has a field for it.
        None if name == weir_apisix::MQTT_PROXY => "served",
        Some((_, "")) => "accepted",
        Some(_) => "served",
        None if weir_apisix::is_known_plugin(name) => "checked",
        None => "refused",
    }
}

#[test]
fn plugin_names_are_found_as_they_are_built() {
    let mut breaches = Vec::new();
    for (original, rows) in originals() {
        let file = match original {
            "Kong" => format!("{KONG}names.rs"),
            _ => format!("{APISIX}names.rs"),
        };
        for row in rows {
            let (stated, is) = (row.support.word(), built(original, row.name));
            // APISIX's own that are refused for good have schemas too: they are checked before.
            let is_true =
                stated.starts_with(is) || (stated, is, original) == ("refused", "checked", "APISIX");
            if !is_true {
                breaches.push(format!("{file}: `{}` is {is}, its row says {stated}", row.name));
            }
        }
        let known = |name: &str| rows.iter().any(|row| row.name == name);
        let all: Vec<&str> = match original {
            "Kong" => weir_kong::plugins::all().map(|it| it.name).collect(),
            _ => weir_apisix::plugin_names().collect(),
        };
        breaches.extend(
            all.into_iter()
                .filter(|name| !known(name))
                .map(|name| format!("{file}: `{name}` has no row")),
        );
    }
    assert_none(
        &breaches,
        "a plugin's row says what becomes of its name; change the row with the plugin",
    );
}

#[test]
fn plugin_lists_are_up_to_date() {
    let is_update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut breaches = Vec::new();
    for list in lists_of_sources().into_iter().chain(lists_of_documents()) {
        let text = read(&list.path);
        match list.renewed(&text) {
            None => breaches.push(format!("{}: nothing begins with `{}`", list.path, list.begin)),
            Some(renewed) if renewed == text => {}
            Some(renewed) if is_update => {
                std::fs::write(root().join(&list.path), renewed).expect("the file can be written");
            }
            Some(renewed) => {
                let is_new = |line: &&str| !text.lines().any(|known| known == *line);
                let first = renewed.lines().find(is_new).unwrap_or("a line too many");
                breaches.push(format!("{}: {}", list.path, first.trim()));
            }
        }
    }
    assert_none(
        &breaches,
        "lists of plugins are made of their files; `UPDATE_GOLDEN=1 cargo test -p weir-tidy plugin_lists` writes them",
    );
}

/// The sources of all plugins: path and text.
fn plugin_sources() -> Vec<(String, String)> {
    let paths = FAMILIES
        .iter()
        .flat_map(|family| files(&format!("crates/plugins-{family}/src"), ".rs"));
    paths
        .map(|path| {
            let text = read(&path);
            (path, text)
        })
        .filter(|(_, text)| text.contains("impl Plugin for "))
        .collect()
}

/// The type of the plugin in a source, and the name that it gives itself.
fn plugins_in(text: &str) -> Option<(&str, &str)> {
    let (_, rest) = text.split_once("impl Plugin for ")?;
    let (type_name, rest) = rest.split_once(' ')?;
    let (_, rest) = rest.split_once("fn name(&self) -> &'static str {")?;
    Some((type_name, rest.split('"').nth(1)?))
}

/// What of its places a plugin lacks.
fn missing_places(name: &str, sources: &[(String, String)]) -> Vec<String> {
    let mut missing = Vec::new();
    let source = sources
        .iter()
        .find(|(_, text)| plugins_in(text).is_some_and(|(_, own)| own == name));
    match source {
        None => missing.push(format!(
            "{name}: no module of crates/plugins-FAMILY/src says that it is this plugin"
        )),
        Some((path, text)) => {
            let folder = path.trim_end_matches(".rs").trim_end_matches("/mod");
            let folder = folder.rsplit_once('/').map_or(folder, |(parent, file)| {
                // A file in a plugin's folder has that folder's tests.
                if parent.ends_with("/src") {
                    folder
                } else {
                    &folder[..folder.len() - file.len() - 1]
                }
            });
            let has_tests = text.contains("#[cfg(test)]")
                || files(folder, ".rs").iter().any(|path| path.contains("/tests"));
            if !has_tests {
                missing.push(format!("{name}: {path} has no tests"));
            }
            if !text.starts_with(&format!("//! `{name}`")) {
                missing.push(format!("{path}: its header does not begin with `{name}`"));
            }
        }
    }
    if row_of_page(name).is_none() {
        missing.push(format!(
            "{name}: docs/plugins/{name}.md lacks the line below its title: \"> WHAT IT DOES: `SHORT EXAMPLE`\""
        ));
    }
    let is_spelled = weir_kong::plugins::DEFINITIONS
        .iter()
        .any(|it| it.catalogue_name == name)
        || weir_apisix::spellings().any(|(_, catalogue)| catalogue == name);
    if !is_spelled && !NATIVE_ONLY.contains(&name) {
        missing.push(format!(
            "{name}: neither {KONG} nor {APISIX} spells it; if no original has it, say so in NATIVE_ONLY"
        ));
    }
    missing
}

/// Plugins that neither original spells by itself.
const NATIVE_ONLY: [&str; 1] = ["batch-requests"];

#[test]
fn plugin_places_are_all_there() {
    let registry = weir_plugins::registry();
    let sources = plugin_sources();
    let mut breaches: Vec<String> = registry
        .iter()
        .flat_map(|plugin| missing_places(plugin.name(), &sources))
        .collect();
    for (path, text) in &sources {
        match plugins_in(text) {
            None => breaches.push(format!("{path}: its plugin's name is not found")),
            Some((type_name, name)) if registry.get(name).is_none() => {
                breaches.push(format!("{REGISTRY}: no line adds {name} ({type_name})"));
            }
            Some(_) => {}
        }
    }
    for name in NATIVE_ONLY {
        if registry.get(name).is_none() {
            breaches.push(format!("NATIVE_ONLY: there is no {name}"));
        }
    }
    assert_none(
        &breaches,
        "a plugin has all its places: docs/how-to/add-a-plugin.md",
    );
}

#[test]
fn plugin_places_that_are_missing_are_named() {
    let missing = missing_places("no-such-plugin", &[]);
    assert_eq!(missing.len(), 3, "{missing:#?}");
    assert!(missing[0].contains("no module") && missing[1].contains("docs/plugins/no-such-plugin.md"));
    let list = List {
        path: String::new(),
        begin: "a = [",
        end: "];",
        lines: vec!["  x,".to_owned(), "  y,".to_owned()],
    };
    assert_eq!(
        list.renewed("1\na = [\n  x,\n];\n2\n").as_deref(),
        Some("1\na = [\n  x,\n  y,\n];\n2\n")
    );
    assert_eq!(list.renewed("a = [\n  x,\n"), None);
}
