//! Reading a severities file: each fault at its place.

use super::{CustomRule, Mode, RuleAction, RuleTarget, Ruleset, UNREADABLE_RULES};
use crate::finding::{Finding, Level};
use crate::lint::functions::Function;
use crate::lint::rule_names;
use crate::openapi::Format;
use serde_json::Value;
use serde_json_path::JsonPath;
use std::collections::BTreeMap;
use weir_model::DocPath;
use weir_model::json_path_cost::PathCost;

/// Aliases of aliases.
const MAX_DEPTH: usize = 8;
/// Places of one rule, with all that its aliases stand for.
const MAX_PLACES: usize = 1_000;

pub(super) struct Reader {
    ruleset: Ruleset,
    aliases: BTreeMap<String, Vec<String>>,
    findings: Vec<Finding>,
}

/// One text, or several.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(items) => items.iter().map(|it| it.as_str().map(str::to_owned)).collect(),
        one => one.as_str().map(|it| vec![it.to_owned()]),
    }
}

impl Reader {
    /// The rules of a file.
    pub fn read(value: &Value) -> Result<Ruleset, Vec<Finding>> {
        let mut reader = Self {
            ruleset: Ruleset::default(),
            aliases: BTreeMap::new(),
            findings: Vec::new(),
        };
        reader.document(value);
        match reader.findings.is_empty() {
            true => Ok(reader.ruleset),
            false => Err(reader.findings),
        }
    }

    fn fail(&mut self, path: DocPath, message: impl Into<String>) {
        self.findings
            .push(Finding::error(UNREADABLE_RULES, path, message));
    }

    fn document(&mut self, value: &Value) {
        let Value::Object(fields) = value else {
            return self.fail(DocPath::root(), "expected a map with 'extends' and 'rules'");
        };
        // Rules build on both.
        if let Some(aliases) = fields.get("aliases") {
            self.aliases(aliases);
        }
        if let Some(extended) = fields.get("extends") {
            self.extends(extended, &DocPath::root().field("extends"));
        }
        for (field, value) in fields {
            let place = DocPath::root().field(field.as_str());
            match field.as_str() {
                "aliases" | "extends" => {}
                "rules" => self.rules(value, &place),
                // They say nothing that counts here.
                "formats" | "documentationUrl" | "parserOptions" => {}
                _ => self.fail(
                    place,
                    format!("'{field}' is not read: expected 'extends', 'aliases' or 'rules'"),
                ),
            }
        }
        // A file of rules alone turns off what it does not name.
        if !fields.contains_key("extends") {
            self.ruleset.mode = Mode::Off;
        }
    }

    fn aliases(&mut self, value: &Value) {
        let place = DocPath::root().field("aliases");
        let Value::Object(aliases) = value else {
            return self.fail(place, "expected a map of JSONPaths");
        };
        for (name, value) in aliases {
            match texts(value) {
                Some(paths) => {
                    self.aliases.insert(name.clone(), paths);
                }
                None => self.fail(
                    place.field(name.as_str()),
                    "expected a JSONPath, or a list of them",
                ),
            }
        }
    }

    /// A place with its aliases replaced: `#Name` at its begin.
    fn unaliased(&self, path: &str, depth: usize) -> Result<Vec<String>, String> {
        let Some(named) = path.strip_prefix('#') else {
            return Ok(vec![path.to_owned()]);
        };
        let end = named.find(|it: char| !(it.is_alphanumeric() || it == '_' || it == '-'));
        let (name, rest) = named.split_at(end.unwrap_or(named.len()));
        let known = self.aliases.get(name).filter(|_| depth < MAX_DEPTH);
        let known = known.ok_or_else(|| format!("there is no alias '{name}', or it refers to itself"))?;
        let mut all = Vec::new();
        for path in known {
            all.extend(self.unaliased(&format!("{path}{rest}"), depth + 1)?);
            if all.len() > MAX_PLACES {
                return Err(format!("its aliases expand to more than {MAX_PLACES} places"));
            }
        }
        Ok(all)
    }

    fn given(&mut self, value: Option<&Value>, place: &DocPath) -> Vec<RuleTarget> {
        let mut given = Vec::new();
        let written = value.and_then(texts);
        if value.is_some() && written.is_none() {
            self.fail(place.clone(), "expected a JSONPath");
        }
        for path in written.into_iter().flatten() {
            let all = match self.unaliased(&path, 0) {
                Ok(all) => all,
                Err(message) => {
                    self.fail(place.clone(), message);
                    continue;
                }
            };
            for path in all {
                let names = path.strip_suffix('~');
                let text = names.unwrap_or(&path);
                match JsonPath::parse(text) {
                    Ok(path) => given.push(RuleTarget {
                        path,
                        cost: PathCost::of(text),
                        is_of_names: names.is_some(),
                    }),
                    Err(error) => {
                        self.fail(place.clone(), format!("not a JSONPath of RFC 9535: {error}"));
                    }
                }
            }
        }
        given
    }

    /// The versions of OpenAPI of a rule.
    fn formats(&mut self, value: Option<&Value>, place: &DocPath) -> Vec<Format> {
        let mut formats = Vec::new();
        for name in value.and_then(texts).unwrap_or_default() {
            match name.replace('.', "_").as_str() {
                "oas2" => formats.push(Format::V2),
                "oas3" => formats.extend([Format::V3_0, Format::V3_1, Format::V3_2]),
                "oas3_0" => formats.push(Format::V3_0),
                "oas3_1" => formats.push(Format::V3_1),
                "oas3_2" => formats.push(Format::V3_2),
                _ => self.fail(
                    place.clone(),
                    format!("expected 'oas2', 'oas3', 'oas3_0', 'oas3_1' or 'oas3_2', found '{name}'"),
                ),
            }
        }
        formats
    }

    fn extends(&mut self, value: &Value, place: &DocPath) {
        let items = match value {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        for (index, item) in items.iter().enumerate() {
            let place = match value {
                Value::Array(_) => place.index(index),
                _ => place.clone(),
            };
            let (name, mode) = match item {
                Value::Array(pair) => (
                    pair.first(),
                    pair.get(1).and_then(Value::as_str).unwrap_or("recommended"),
                ),
                name => (Some(name), "recommended"),
            };
            match (name.and_then(Value::as_str), mode) {
                (Some("spectral:oas"), "recommended") => self.ruleset.mode = Mode::Recommended,
                (Some("spectral:oas"), "all") => self.ruleset.mode = Mode::All,
                (Some("spectral:oas"), "off") => self.ruleset.mode = Mode::Off,
                (Some("spectral:oas"), mode) => {
                    self.fail(
                        place,
                        format!("expected 'recommended', 'all' or 'off', found '{mode}'"),
                    );
                }
                _ => self.fail(place, "expected 'spectral:oas': other rule sets are not fetched"),
            }
        }
    }

    fn rules(&mut self, value: &Value, place: &DocPath) {
        let Value::Object(rules) = value else {
            return self.fail(place.clone(), "expected a map of rules");
        };
        for (name, value) in rules {
            let place = place.field(name.as_str());
            match value {
                Value::Object(_) => self.custom(name, value, &place),
                value => match level(value) {
                    Some(Setting::On) => self.ruleset.on.push(name.clone()),
                    Some(Setting::Level(level)) => self.set(name, level, &place),
                    None => self.fail(place, "expected 'off', 'error', 'warn', 'info', 'hint', true, false, or a rule with 'given' and 'then'"),
                },
            }
        }
    }

    fn set(&mut self, name: &str, level: Option<Level>, place: &DocPath) {
        let of_reading = [crate::openapi::INVALID_REF, crate::openapi::REPEATED_KEY];
        let is_known = rule_names().contains(&name) || of_reading.contains(&name);
        // To turn off what Weir does not check changes nothing. To rely on it would.
        if !is_known && level.is_some() {
            return self.fail(
                place.clone(),
                format!("no rule is named '{name}': set it to 'off', or write 'given' and 'then'"),
            );
        }
        self.ruleset.levels.insert(name.to_owned(), level);
    }

    fn custom(&mut self, name: &str, value: &Value, place: &DocPath) {
        let before = self.findings.len();
        let items = |value: Option<&Value>| match value {
            Some(Value::Array(items)) => items.clone(),
            Some(one) => vec![one.clone()],
            None => Vec::new(),
        };
        let given = self.given(value.get("given"), &place.field("given"));
        let formats = self.formats(value.get("formats"), &place.field("formats"));
        let mut then = Vec::new();
        for item in items(value.get("then")) {
            let function = item.get("function").and_then(Value::as_str).unwrap_or_default();
            let options = item.get("functionOptions").unwrap_or(&Value::Null);
            match Function::parse(function, options) {
                Ok(function) => then.push(RuleAction {
                    field: item.get("field").and_then(Value::as_str).map(str::to_owned),
                    function,
                }),
                Err(message) => self.fail(place.field("then"), message),
            }
        }
        let level = match value.get("severity").map(level) {
            None | Some(Some(Setting::On)) => Some(Level::Warn),
            Some(Some(Setting::Level(level))) => level,
            Some(None) => {
                self.fail(
                    place.field("severity"),
                    "expected 'off', 'error', 'warn', 'info' or 'hint'",
                );
                None
            }
        };
        if self.findings.len() > before {
            return;
        }
        if given.is_empty() || then.is_empty() {
            return self.fail(place.clone(), "expected 'given' and 'then'");
        }
        // A rule that replaces a built-in one.
        self.ruleset.levels.insert(name.to_owned(), None);
        let is = |field: &str, otherwise| value.get(field).and_then(Value::as_bool).unwrap_or(otherwise);
        let counts = is("recommended", true) || self.ruleset.mode == Mode::All;
        if let Some(level) = level.filter(|_| counts) {
            let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
            self.ruleset.custom.push(CustomRule {
                name: name.to_owned(),
                level,
                message: text("message").or_else(|| text("description")),
                description: text("description").unwrap_or_default(),
                given,
                then,
                formats,
                is_resolved: is("resolved", true),
            });
        }
    }
}

enum Setting {
    /// At the rule's own level.
    On,
    /// At this level, or off.
    Level(Option<Level>),
}

fn level(value: &Value) -> Option<Setting> {
    let level = match value {
        Value::Bool(true) => return Some(Setting::On),
        Value::Bool(false) => None,
        Value::Number(number) => match number.as_u64()? {
            0 => Some(Level::Error),
            1 => Some(Level::Warn),
            2 => Some(Level::Info),
            3 => Some(Level::Hint),
            _ => return None,
        },
        Value::String(word) => match word.as_str() {
            "off" => None,
            "error" => Some(Level::Error),
            "warn" => Some(Level::Warn),
            "info" => Some(Level::Info),
            "hint" => Some(Level::Hint),
            _ => return None,
        },
        _ => return None,
    };
    Some(Setting::Level(level))
}
