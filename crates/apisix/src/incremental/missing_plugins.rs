//! Plugins that a document uses and Weir lacks.

use crate::plugins::{Meta, is_known, mapping, names, serves_without};
use serde_json::{Map, Value};
use std::fmt;
use weir_dialect::Support;

/// The plugins that a document lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPlugins {
    names: Vec<String>,
    /// Whether calls must not be served without them.
    pub refuses: bool,
}

impl MissingPlugins {
    /// The plugins.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Of a document; `None`: Weir has all of its plugins that are on.
    pub fn of(document: &Map<String, Value>) -> Option<Self> {
        Self::of_plugins(document.get("plugins")?.as_object()?.iter())
    }

    /// Of plugins that stand together, with their configurations.
    pub fn of_plugins<'p>(plugins: impl Iterator<Item = (&'p String, &'p Value)>) -> Option<Self> {
        let mut refuses = false;
        let names: Vec<String> = plugins
            .filter(|(name, config)| is_known(name) && mapping(name).is_none() && !Meta::of(config).disable)
            .map(|(name, config)| {
                refuses |= !serves_without(name, config);
                name.clone()
            })
            .collect();
        (!names.is_empty()).then_some(Self { names, refuses })
    }
}

impl fmt::Display for MissingPlugins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, are) = match self.names.len() {
            1 => ("plugin", "is"),
            _ => ("plugins", "are"),
        };
        write!(
            f,
            "{what} \"{}\" {are} not available in this version of Weir",
            self.names.join("\", \"")
        )?;
        match self.refuses {
            true => f.write_str("; calls are refused")?,
            false => f.write_str("; calls are served without")?,
        }
        let refused = self.names.iter().filter_map(|name| names::row(name));
        for (name, reason) in refused.filter_map(|row| match row.support {
            Support::Refused(reason) => Some((row.name, reason)),
            _ => None,
        }) {
            write!(f, " ({name}: {reason})")?;
        }
        Ok(())
    }
}
