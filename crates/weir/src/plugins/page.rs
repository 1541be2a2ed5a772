//! The part of a plugin's page that is made of the types: its fields in each spelling.
//!
//! The pages are `docs/plugins/NAME.md`. What a plugin is for, its example and what it does unlike the originals is
//! written by hand; below the mark stand the tables of this module. A test compares them, and writes them again with
//! `UPDATE_GOLDEN=1 cargo test -p weir pages`.

use std::fmt::Write;
use weir_dialect::DialectSet;
use weir_dialect::plugin_fields::{ConfigPart, Field, of_json_schema};
use weir_plugin::Plugin;

/// The fields of the configuration, in Weir's own spelling.
pub fn fields(plugin: &dyn Plugin) -> Vec<Field> {
    of_json_schema(&plugin.config_schema().to_value())
}

/// The tables: Weir's fields, those of credentials, and the originals'.
pub fn tables(plugin: &dyn Plugin, dialects: &DialectSet) -> String {
    let mut text = String::new();
    table(&mut text, "## Fields", &fields(plugin));
    if let Some(kind) = plugin.credentials() {
        let fields = of_json_schema(&kind.schema.to_value());
        table(&mut text, "### A consumer's credential", &fields);
    }
    for dialect in dialects.iter() {
        let names = dialect.plugin_names().into_iter();
        for (name, _) in names.filter(|(_, catalogue_name)| *catalogue_name == plugin.name()) {
            for described in dialect.plugin_fields(name) {
                let title = match described.part {
                    ConfigPart::Plugin => format!("## {}: `{name}`", dialect.title()),
                    ConfigPart::Consumer => format!("### A consumer's `{name}`"),
                    ConfigPart::Metadata => format!("### Metadata of `{name}`"),
                };
                table(&mut text, &title, &described.fields);
            }
        }
    }
    text
}

fn table(out: &mut String, title: &str, fields: &[Field]) {
    if fields.is_empty() {
        let _ = write!(out, "{title}\n\nIt has no fields.\n\n");
        return;
    }
    let tells_meanings = fields.iter().any(|field| !field.meaning.is_empty());
    let (last, line) = match tells_meanings {
        true => (" meaning |", "---|"),
        false => ("", ""),
    };
    let _ = write!(
        out,
        "{title}\n\n| field | is | default |{last}\n|---|---|---|{line}\n"
    );
    for field in fields {
        let cells =
            [&field.path, &field.is, &field.default, &field.meaning].map(|cell| cell.replace('|', "\\|"));
        let [path, is, default, meaning] = cells;
        let meaning = match tells_meanings {
            true => format!(" {meaning} |"),
            false => String::new(),
        };
        let _ = writeln!(out, "| `{path}` | {is} | {default} |{meaning}");
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str =
        "<!-- generated from the types: `UPDATE_GOLDEN=1 cargo test -p weir pages` writes it again -->\n";

    /// The page with these tables in place of those that it has; `None`: it has no mark for them.
    fn renewed(page: &str, tables: &str) -> Option<String> {
        let (by_hand, _) = page.split_once(MARK)?;
        Some(format!("{by_hand}{MARK}\n{}\n", tables.trim_end()))
    }

    #[test]
    fn pages_have_the_fields_of_the_types() {
        let is_update = std::env::var_os("UPDATE_GOLDEN").is_some();
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plugins");
        let (dialects, mut stale) = (crate::dialects::stock(), Vec::new());
        for plugin in weir_plugins::registry().iter() {
            let path = format!("{folder}/{}.md", plugin.name());
            let page = std::fs::read_to_string(&path).unwrap_or_default();
            match renewed(&page, &tables(plugin, &dialects)) {
                Some(renewed) if renewed == page => {}
                Some(renewed) if is_update => std::fs::write(&path, renewed).expect("a page can be written"),
                Some(_) => stale.push(plugin.name()),
                None => panic!("{path} lacks the line above what is generated:\n{MARK}"),
            }
        }
        assert!(
            stale.is_empty(),
            "docs/plugins has drifted from the types: {stale:?}; `UPDATE_GOLDEN=1 cargo test -p weir pages` writes \
             the tables again"
        );
    }

    #[test]
    fn all_fields_of_the_catalogue_have_a_meaning() {
        let registry = weir_plugins::registry();
        let silent = registry.iter().flat_map(|plugin| {
            let silent = fields(plugin)
                .into_iter()
                .filter(|field| field.meaning.is_empty());
            silent.map(|field| format!("{}: {}", plugin.name(), field.path))
        });
        let silent: Vec<String> = silent.collect();
        assert!(silent.is_empty(), "without a description: {silent:#?}");
    }
}
