//! The catalogue of plugins: what each does, what each dialect calls it, when it works, and its page.
//!
//! A plugin's line, its short example and its page are read from the table in the guide, which is the one place for
//! these words. The phases are those of an instance that is built of the example.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_dialect::{Dialect, DialectName, DialectSet};
use weir_model::document;
use weir_plugin::{EmptyContext, Phases, Plugin};

/// The guide, whose table of plugins has a row for each (a test of the house sees to that).
const GUIDE: &str = include_str!("../../../docs/configuration.md");

/// The page for a plugin that has none of its own.
const NO_PAGE: &str = "configuration.md";

/// A plugin as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CataloguePlugin {
    /// Its name in `weir.yaml`.
    pub name: String,
    /// Its work, in a line.
    pub summary: String,
    /// Its names in other dialects, by dialect.
    pub names: BTreeMap<String, Vec<String>>,
    /// When it works: `request`, `response`, `log`, `stream`, and `own-log` for lines of the gateway's own log.
    pub phases: Vec<String>,
    /// The page that describes it.
    pub docs: String,
}

impl CataloguePlugin {
    /// Whether any dialect calls it so.
    pub fn has_name(&self, name: &str) -> bool {
        let is_name = |it: &String| it == name;
        self.name == name || self.names.values().flatten().any(is_name)
    }
}

/// A row of the guide's table.
struct Row {
    summary: &'static str,
    page: &'static str,
    example: &'static str,
}

/// All plugins.
pub fn catalogue(dialects: &DialectSet) -> Vec<CataloguePlugin> {
    let rows: BTreeMap<&str, Row> = GUIDE.lines().filter_map(row).collect();
    let registry = weir_plugins::registry();
    let listed = registry.iter().map(|plugin| {
        let row = rows.get(plugin.name());
        let page = row.map_or(NO_PAGE, |row| row.page);
        let owned = |names: Vec<&'static str>| names.into_iter().map(str::to_owned).collect();
        CataloguePlugin {
            name: plugin.name().to_owned(),
            summary: row.map_or("", |row| row.summary).to_owned(),
            names: names(dialects, plugin.name()),
            phases: owned(row.map_or_else(Vec::new, |row| phases(plugin, row.example))),
            docs: format!("docs/{page}"),
        }
    });
    listed.collect()
}

/// Reads a row: `` | [`NAME`](PAGE) | what it does | `EXAMPLE` | ``; without a page the name is no link.
fn row(line: &'static str) -> Option<(&'static str, Row)> {
    let (name, rest) = line.strip_prefix("| ")?.split_once(" | ")?;
    let (summary, example) = rest.split_once(" | ")?;
    let (name, page) = match name.strip_prefix('[') {
        Some(link) => link.strip_suffix(')')?.split_once("](")?,
        None => (name, NO_PAGE),
    };
    let name = name.strip_prefix('`')?.strip_suffix('`')?;
    let example = example.strip_suffix(" |")?.strip_prefix('`')?.strip_suffix('`')?;
    Some((
        name,
        Row {
            summary,
            page,
            example,
        },
    ))
}

/// The names of a plugin of the catalogue in the dialects.
fn names(dialects: &DialectSet, plugin: &str) -> BTreeMap<String, Vec<String>> {
    let of_dialect = |dialect: &Arc<dyn Dialect>| {
        let names = dialect.plugin_names().into_iter();
        let names = names.filter(|(_, catalogue_name)| *catalogue_name == plugin);
        let names: Vec<String> = names.map(|(name, _)| name.to_owned()).collect();
        (!names.is_empty()).then(|| (dialect.name().to_string(), names))
    };
    dialects.iter().filter_map(of_dialect).collect()
}

/// The phases in which an instance with this configuration works.
fn phases(plugin: &dyn Plugin, example: &str) -> Vec<&'static str> {
    let empty = EmptyContext::default();
    let context = empty.of(plugin.name(), DialectName::NATIVE);
    let built = document::parse(example)
        .ok()
        .and_then(|config| plugin.build(&config, &context).ok());
    let takes_own_log = built
        .as_ref()
        .is_some_and(|filter| filter.gateway_log().is_some());
    let phases = built.map_or_else(Phases::default, |filter| filter.phases());
    let named = [
        (phases.request, "request"),
        (phases.response, "response"),
        (phases.log, "log"),
        (plugin.works_on_streams(), "stream"),
        (takes_own_log, "own-log"),
    ];
    named
        .into_iter()
        .filter_map(|(works, name)| works.then_some(name))
        .collect()
}
