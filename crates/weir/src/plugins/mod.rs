//! `weir plugins`: the plugins of the catalogue, their names in the originals, and their pages.
//!
//! The list itself is [`weir_control::catalogue`]. Of plugins that are asked for by name
//! the fields are listed too, from the schema of their types; `page` makes the tables of their pages of the same.

mod originals;
mod page;

use crate::args::PluginsArgs;
use crate::command_output::CommandOutput;
use crate::dialects;
use serde::{Serialize, Serializer};
use weir_control::catalogue::{CataloguePlugin, catalogue};
use weir_dialect::plugin_fields::Field;
use weir_dialect::{DialectName, DialectSet};

/// A plugin as it is listed.
#[derive(Debug, Serialize)]
struct PluginListing {
    name: String,
    summary: String,
    /// Its names in the originals, which follow each other in the order of the dialects.
    #[serde(flatten)]
    names: OriginalNames,
    phases: Vec<String>,
    docs: String,
    /// Its fields, if the command names the plugin.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<Field>,
}

/// The names of a plugin in each original that has plugins: which one, how people call it, and the names.
#[derive(Debug)]
struct OriginalNames(Vec<(DialectName, &'static str, Vec<String>)>);

impl Serialize for OriginalNames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(dialect, _, names)| (dialect.as_str(), names)))
    }
}

/// Prints the catalogue, or the plugins that have one of these names.
pub fn plugins(args: &PluginsArgs) -> CommandOutput {
    let dialects = dialects::stock();
    if args.originals {
        return originals::print(args, &dialects);
    }
    let mut listed = listed(&dialects);
    // A name of an original that is not served is a good question too.
    let (known, unserved): (Vec<&String>, Vec<&String>) =
        (args.names.iter()).partition(|name| listed.iter().any(|it| it.has_name(name)));
    if !args.json && !unserved.is_empty() && unserved.iter().all(|name| originals::has(&dialects, name)) {
        let names = unserved.into_iter().cloned().collect();
        let of_originals = PluginsArgs {
            names,
            originals: true,
            ..args.clone()
        };
        let output = originals::print(&of_originals, &dialects);
        let names: Vec<String> = known.into_iter().cloned().collect();
        let served = match names.is_empty() {
            true => String::new(),
            false => {
                plugins(&PluginsArgs {
                    names,
                    ..args.clone()
                })
                .stdout
            }
        };
        return CommandOutput {
            stdout: served + &output.stdout,
            ..CommandOutput::default()
        };
    }
    if let Some(name) = args
        .names
        .iter()
        .find(|name| !listed.iter().any(|it| it.has_name(name)))
    {
        return CommandOutput::failed(
            1,
            format!("weir plugins: there is no plugin '{name}' in any spelling; `weir plugins` lists all\n"),
        );
    }
    if !args.names.is_empty() {
        listed.retain(|it| args.names.iter().any(|name| it.has_name(name)));
        let registry = weir_plugins::registry();
        for plugin in &mut listed {
            plugin.fields = registry.get(&plugin.name).map(page::fields).unwrap_or_default();
        }
    }
    let stdout = match (args.json, args.page) {
        (true, _) => format!("{:#}\n", serde_json::json!(listed)),
        (_, true) => pages(&listed, &dialects),
        _ => listed.iter().map(PluginListing::text).collect(),
    };
    CommandOutput {
        stdout,
        ..CommandOutput::default()
    }
}

/// The generated part of these plugins' pages.
fn pages(listed: &[PluginListing], dialects: &DialectSet) -> String {
    let registry = weir_plugins::registry();
    let plugins = listed.iter().filter_map(|it| registry.get(&it.name));
    plugins.map(|it| page::tables(it, dialects)).collect()
}

fn listed(dialects: &DialectSet) -> Vec<PluginListing> {
    let one = |mut plugin: CataloguePlugin| {
        let originals = dialects.iter().filter(|it| !it.plugin_names().is_empty());
        let names = originals.map(|it| {
            let names = plugin.names.remove(it.name().as_str());
            (it.name(), it.title(), names.unwrap_or_default())
        });
        PluginListing {
            names: OriginalNames(names.collect()),
            name: plugin.name,
            summary: plugin.summary,
            phases: plugin.phases,
            docs: plugin.docs,
            fields: Vec::new(),
        }
    };
    catalogue(dialects).into_iter().map(one).collect()
}

impl PluginListing {
    fn has_name(&self, name: &str) -> bool {
        let is_name = |it: &String| it == name;
        self.name == name || self.names.0.iter().any(|(_, _, names)| names.iter().any(is_name))
    }

    fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.summary);
        let names = self.names.0.iter().map(|(_, title, names)| (*title, names));
        for (label, values) in names.chain([("phases", &self.phases)]) {
            if !values.is_empty() {
                text.push_str(&format!("  {label}: {}\n", values.join(", ")));
            }
        }
        text.push_str(&format!("  {}\n", self.docs));
        for Field {
            path,
            is,
            default,
            meaning,
        } in &self.fields
        {
            let default = match default.as_str() {
                "" | "required" => default.clone(),
                default => format!("default {default}"),
            };
            let parts = [is.as_str(), &default, meaning];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            text.push_str(&format!("  {path}: {}\n", parts.join("; ")));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(names: &[&str], json: bool) -> CommandOutput {
        plugins(&PluginsArgs {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            json,
            page: false,
            originals: false,
        })
    }

    #[test]
    fn a_plugin_is_found_by_any_of_its_names() {
        let text = "\
rate-limit: limits the number of calls in a time window
  Kong: graphql-rate-limiting-advanced, rate-limiting, rate-limiting-advanced, service-protection
  APISIX: limit-count
  phases: request
  docs/plugins/rate-limit.md
";
        for name in ["rate-limit", "rate-limiting", "limit-count"] {
            let outcome = listing(&[name], false);
            assert!(outcome.stdout.starts_with(text), "{name}: {}", outcome.stdout);
            assert_eq!(outcome.code, 0);
            let field = "\n  status: number, 200 to 599; default `429`; Status of the response";
            assert!(outcome.stdout.contains(field), "{name}: {}", outcome.stdout);
        }
        assert_eq!(listing(&["rate-limit", "limits"], false).code, 1);
        let json: serde_json::Value =
            serde_json::from_str(&listing(&["ip-restriction"], true).stdout).expect("JSON");
        assert_eq!(json[0]["phases"], serde_json::json!(["request", "stream"]));
    }

    #[test]
    fn all_plugins_are_described_and_all_spellings_lead_to_one() {
        let listed = listed(&dialects::stock());
        for plugin in &listed {
            assert!(!plugin.summary.is_empty(), "{}: no row in the guide", plugin.name);
            assert!(!plugin.phases.is_empty(), "{}: its example builds", plugin.name);
        }
        let kong = weir_kong::plugins::DEFINITIONS
            .iter()
            .map(|it| (it.name, it.catalogue_name));
        // What is not a plugin here has no name in the catalogue (Kong's `acme`).
        for (spelling, name) in kong
            .chain(weir_apisix::spellings())
            .filter(|(_, name)| !name.is_empty())
        {
            assert!(listed.iter().any(|it| it.name == name), "{spelling}: {name}");
        }
    }
}
