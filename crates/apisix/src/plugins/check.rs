//! Checking the plugins of a resource, as APISIX does before it takes the resource over.

use super::skippable::serves_without;
use super::{PluginLocation, is_known, mapping, meta::Meta, names, unserved};
use crate::settings::Settings;
use crate::translate::vars;
use serde_json::{Map, Value};
use std::collections::HashMap;
use weir_dialect::Support;
use weir_plugins::lua_syntax;

/// Checks plugins. Remembers the groups of `limit-count`, whose members must agree.
#[derive(Debug)]
pub struct Checker {
    settings: &'static Settings,
    groups: HashMap<String, Value>,
    checks_unserved: bool,
}

impl Checker {
    /// Checks by these settings.
    pub fn new(settings: &'static Settings) -> Self {
        Self {
            settings,
            groups: HashMap::new(),
            checks_unserved: false,
        }
    }

    /// Checks what is about to be stored: all plugins that Weir lacks too. Elsewhere only those that it does without: for the
    /// others, that one is lacking says enough.
    pub fn of_written(settings: &'static Settings) -> Self {
        Self {
            checks_unserved: true,
            ..Self::new(settings)
        }
    }

    /// Checks one plugin's configuration and fills in its defaults.
    ///
    /// # Errors
    /// In APISIX's words.
    pub fn check(&mut self, name: &str, config: &mut Value, side: PluginLocation) -> Result<(), String> {
        if matches!(config, Value::Array(items) if items.is_empty()) {
            *config = Value::Object(Map::new());
        }
        if !config.is_object() {
            // Unlike APISIX without the value, which may be a key in the wrong place.
            return Err(format!("invalid plugin conf for plugin [{name}]: expected a map"));
        }
        if !is_known(name) {
            let reason = match names::row(name).map(|row| row.support) {
                Some(Support::Refused(reason)) => format!(": {reason}"),
                _ => String::new(),
            };
            return Err(format!("unknown plugin [{name}]{reason}"));
        }
        let meta = Meta::of(config);
        match self.check_config(name, config, side) {
            Err(error) if !meta.disable => {
                return Err(format!(
                    "failed to check the configuration of plugin {name} err: {error}"
                ));
            }
            _ => {}
        }
        if let Some(Err(error)) = meta.filter.as_deref().map(vars::check) {
            return Err(format!("failed to validate the 'vars' expression: {error}"));
        }
        let function = meta.pre_function.as_deref().filter(|_| self.checks_unserved);
        match function.and_then(|function| lua_syntax::error_in(function, "meta pre_function")) {
            Some(error) => Err(format!(
                "failed to load _meta.pre_function in plugin {name}: {error}"
            )),
            None => Ok(()),
        }
    }

    fn check_config(&mut self, name: &str, config: &mut Value, side: PluginLocation) -> Result<(), String> {
        let Some(mapping) = mapping(name) else {
            let is_checked = self.checks_unserved || serves_without(name, config);
            let lacking = unserved(name).filter(|_| is_checked);
            return lacking.map_or(Ok(()), |plugin| plugin.check(config, side));
        };
        if let (PluginLocation::Consumer, Some(credentials)) = (side, mapping.credentials()) {
            credentials.shape().check(config)?;
            return config
                .as_object()
                .map_or(Ok(()), |config| credentials.check(config));
        }
        if let Err(error) = mapping.shape().check(config) {
            let may_be_completed = config
                .as_object()
                .is_some_and(|config| mapping.is_completed_by_metadata(config));
            return match may_be_completed && !self.checks_unserved {
                true => Ok(()),
                false => Err(mapping.explain(config, error)),
            };
        }
        match config.as_object() {
            Some(config) => {
                mapping.check(config)?;
                mapping.check_by(config, self.settings)?;
            }
            None => return Ok(()),
        }
        self.check_group(name, config)
    }

    fn check_group(&mut self, name: &str, config: &Value) -> Result<(), String> {
        let group = config.get("group").and_then(Value::as_str);
        let Some(group) = group.filter(|_| name == "limit-count") else {
            return Ok(());
        };
        let mut plain = config.clone();
        if let Value::Object(map) = &mut plain {
            map.remove("_meta");
        }
        match self.groups.get(group) {
            None => {
                self.groups.insert(group.to_owned(), plain);
                Ok(())
            }
            Some(known) if *known == plain => Ok(()),
            Some(_) => Err("group conf mismatched".to_owned()),
        }
    }

    /// Checks a plugin's metadata. Returns whether Weir uses it.
    ///
    /// # Errors
    /// In APISIX's words. As there, metadata of unknown plugins is passed over.
    pub fn check_metadata(&self, name: &str, metadata: &mut Value) -> Result<bool, String> {
        let Some(shape) = mapping(name).and_then(|mapping| mapping.metadata_shape()) else {
            return Ok(false);
        };
        shape
            .check(metadata)
            .map_err(|error| format!("failed to check the configuration of plugin {name} err: {error}"))?;
        Ok(true)
    }
}
