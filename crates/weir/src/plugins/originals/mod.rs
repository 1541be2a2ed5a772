//! `weir plugins --originals`: what becomes of every plugin name of the originals, of the free and of the paid editions.
//!
//! The rows are the dialects' own. **What it is not**: the catalogue, which has Weir's names.

use crate::args::PluginsArgs;
use crate::command_output::CommandOutput;
use serde::Serialize;
use weir_dialect::{DialectSet, PluginName};

/// A name as it is listed.
#[derive(Debug, Serialize)]
struct OriginalListing {
    name: &'static str,
    /// The original, as people call it.
    of: &'static str,
    is_paid: bool,
    support: &'static str,
    /// Its differences, or why it is not served.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<&'static str>,
}

fn all(dialects: &DialectSet) -> impl Iterator<Item = (&'static str, &'static PluginName)> {
    dialects.iter().flat_map(|dialect| {
        let (title, rows) = (dialect.title(), dialect.plugin_table());
        rows.iter().map(move |row| (title, row))
    })
}

/// Whether an original has a plugin of this name.
pub fn has(dialects: &DialectSet, name: &str) -> bool {
    all(dialects).any(|(_, row)| row.name == name)
}

/// Prints all names, or those that were asked for.
pub fn print(args: &PluginsArgs, dialects: &DialectSet) -> CommandOutput {
    if let Some(name) = args.names.iter().find(|name| !has(dialects, name)) {
        let originals = dialects.iter().filter(|it| !it.plugin_table().is_empty());
        let titles: Vec<&str> = originals.map(|it| it.title()).collect();
        return CommandOutput::failed(
            1,
            format!(
                "weir plugins: neither {} has a plugin '{name}'\n",
                titles.join(" nor ")
            ),
        );
    }
    let is_asked = |name: &str| args.names.is_empty() || args.names.iter().any(|asked| asked == name);
    let listed: Vec<OriginalListing> = all(dialects)
        .filter(|(_, row)| is_asked(row.name))
        .map(|(of, row)| OriginalListing {
            name: row.name,
            of,
            is_paid: row.is_paid,
            support: row.support.word(),
            remarks: row.support.remarks(),
        })
        .collect();
    let stdout = match args.json {
        true => format!("{:#}\n", serde_json::json!(listed)),
        false => listed.iter().map(OriginalListing::text).collect(),
    };
    CommandOutput {
        stdout,
        ..CommandOutput::default()
    }
}

impl OriginalListing {
    fn text(&self) -> String {
        let paid = if self.is_paid { ", paid" } else { "" };
        let mut text = format!("{} ({}{paid}): {}\n", self.name, self.of, self.support);
        for remark in &self.remarks {
            text.push_str(&format!("  {remark}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests;
