//! `weir plugins --originals`: what becomes of every plugin name of Kong and APISIX, of the free and of the paid editions.
//!
//! The rows are the dialects' own. **What it is not**: the catalogue, which has Weir's names.

use crate::args::PluginsArgs;
use crate::command_output::CommandOutput;
use serde::Serialize;
use weir_dialect::PluginName;

/// A name as it is listed.
#[derive(Debug, Serialize)]
struct OriginalListing {
    name: &'static str,
    /// `Kong` or `APISIX`.
    of: &'static str,
    is_paid: bool,
    support: &'static str,
    /// Its differences, or why it is not served.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<&'static str>,
}

fn all() -> impl Iterator<Item = (&'static str, &'static PluginName)> {
    let kong = weir_kong::plugins::NAMES.iter().map(|row| ("Kong", row));
    kong.chain(weir_apisix::PLUGIN_NAMES.iter().map(|row| ("APISIX", row)))
}

/// Whether an original has a plugin of this name.
pub fn has(name: &str) -> bool {
    all().any(|(_, row)| row.name == name)
}

/// Prints all names, or those that were asked for.
pub fn print(args: &PluginsArgs) -> CommandOutput {
    if let Some(name) = args.names.iter().find(|name| !has(name)) {
        return CommandOutput::failed(
            1,
            format!("weir plugins: neither Kong nor APISIX has a plugin '{name}'\n"),
        );
    }
    let is_asked = |name: &str| args.names.is_empty() || args.names.iter().any(|asked| asked == name);
    let listed: Vec<OriginalListing> = all()
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
