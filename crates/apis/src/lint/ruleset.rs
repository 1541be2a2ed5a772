//! Severities files (`.spectral.yaml`): which rules count, how much, and custom rules.
//!
//! Read are `extends: spectral:oas` (with `recommended`, `all` or `off`), `rules` with `off`, `error`, `warn`, `info`,
//! `hint`, `true` or `false`, and rules with `given` (a JSONPath of RFC 9535), `then`, `severity`, `message` and
//! `description`. Files and addresses that `extends` names are not followed: that is an error, not a rule that is
//! missing without a word.

use super::functions::Function;
use super::rule_names;
use crate::finding::{Finding, Level};
use crate::openapi::{Description, MAX_FINDINGS, locate};
use serde_json::Value;
use serde_json_path::{JsonPath, PathElement};
use std::collections::BTreeMap;
use weir_model::diagnostic::PathStep;
use weir_model::{DocPath, document};

/// The rule under which faults of a severities file are told.
pub const UNREADABLE_RULES: &str = "invalid-ruleset";

/// Which of the built-in rules count where nothing is said about one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Recommended,
    All,
    Off,
}

/// What a severities file says.
#[derive(Debug, Clone, Default)]
pub struct Ruleset {
    mode: Mode,
    /// Another level; `None`: off.
    levels: BTreeMap<String, Option<Level>>,
    /// Rules that are turned on at their own level.
    on: Vec<String>,
    custom: Vec<CustomRule>,
}

/// A custom rule.
#[derive(Debug, Clone)]
struct CustomRule {
    name: String,
    level: Level,
    message: Option<String>,
    given: Vec<JsonPath>,
    then: Vec<RuleAction>,
}

#[derive(Debug, Clone)]
struct RuleAction {
    field: Option<String>,
    function: Function,
}

impl Ruleset {
    /// Reads a severities file.
    ///
    /// # Errors
    /// All that is wrong with it, with lines and columns.
    pub fn parse(text: &str) -> Result<Self, Vec<Finding>> {
        let value = document::parse(text).map_err(|found| {
            let position = crate::Position {
                line: found.line.unwrap_or(1),
                column: 1,
            };
            vec![Finding::error(UNREADABLE_RULES, DocPath::root(), found.message).at(position)]
        })?;
        let mut reader = Reader {
            ruleset: Self::default(),
            findings: Vec::new(),
        };
        reader.document(&value);
        if reader.findings.is_empty() {
            return Ok(reader.ruleset);
        }
        locate(text, &mut reader.findings);
        Err(reader.findings)
    }

    /// The level of a rule; `None`: it does not count.
    pub fn level(&self, name: &str, own: Level, is_recommended: bool) -> Option<Level> {
        match self.levels.get(name) {
            Some(level) => *level,
            None => {
                let counts = match self.mode {
                    Mode::Recommended => is_recommended,
                    Mode::All => true,
                    Mode::Off => false,
                };
                (counts || self.on.iter().any(|it| it == name)).then_some(own)
            }
        }
    }

    /// Applies the custom rules.
    pub(super) fn run_custom(&self, description: &Description, findings: &mut Vec<Finding>) {
        for rule in &self.custom {
            for given in &rule.given {
                for node in given.query_located(&description.source).iter() {
                    let path = path_of(node.location().iter());
                    rule.check(node.node(), &path, findings);
                    if findings.len() >= MAX_FINDINGS {
                        return;
                    }
                }
            }
        }
    }
}

impl CustomRule {
    fn check(&self, value: &Value, path: &DocPath, findings: &mut Vec<Finding>) {
        for then in &self.then {
            let key = match path.0.last() {
                Some(PathStep::Field(name)) => Value::from(name.as_str()),
                Some(PathStep::Index(index)) => Value::from(*index),
                None => Value::Null,
            };
            match then.field.as_deref() {
                None => self.fault(then, Some(value), path.clone(), "", findings),
                // The names of the fields themselves.
                Some("@key") => match value {
                    Value::Object(map) => {
                        for name in map.keys() {
                            let key = Value::from(name.as_str());
                            self.fault(then, Some(&key), path.field(name.as_str()), name, findings);
                        }
                    }
                    _ => self.fault(then, Some(&key), path.clone(), "", findings),
                },
                Some(field) => {
                    let below = field.split('.').try_fold(value, |value, name| value.get(name));
                    let place = field.split('.').fold(path.clone(), |path, name| path.field(name));
                    self.fault(then, below, place, field, findings);
                }
            }
        }
    }

    fn fault(
        &self,
        then: &RuleAction,
        value: Option<&Value>,
        path: DocPath,
        field: &str,
        findings: &mut Vec<Finding>,
    ) {
        let Some(error) = then.function.fault(value) else {
            return;
        };
        let property = match (field, path.0.last()) {
            ("", Some(PathStep::Field(name))) => name.clone(),
            (field, _) => field.to_owned(),
        };
        let error = format!("\"{property}\" property {error}");
        let message = match &self.message {
            None => error,
            Some(template) => template
                .replace("{{error}}", &error)
                .replace("{{property}}", &property)
                .replace("{{path}}", &path.to_string())
                .replace("{{value}}", &value.map_or_else(String::new, Value::to_string))
                .replace("{{description}}", ""),
        };
        findings.push(Finding {
            rule: self.name.clone(),
            level: self.level,
            message,
            path,
            position: None,
        });
    }
}

fn path_of<'p>(elements: impl Iterator<Item = &'p PathElement<'p>>) -> DocPath {
    elements.fold(DocPath::root(), |path, element| match element {
        PathElement::Name(name) => path.field(*name),
        PathElement::Index(index) => path.index(*index),
    })
}

struct Reader {
    ruleset: Ruleset,
    findings: Vec<Finding>,
}

impl Reader {
    fn fail(&mut self, path: DocPath, message: impl Into<String>) {
        self.findings
            .push(Finding::error(UNREADABLE_RULES, path, message));
    }

    fn document(&mut self, value: &Value) {
        let Value::Object(fields) = value else {
            return self.fail(DocPath::root(), "expected a map with 'extends' and 'rules'");
        };
        for (field, value) in fields {
            let place = DocPath::root().field(field.as_str());
            match field.as_str() {
                "extends" => self.extends(value, &place),
                "rules" => self.rules(value, &place),
                // They say nothing that counts here.
                "formats" | "documentationUrl" | "parserOptions" => {}
                _ => self.fail(
                    place,
                    format!("'{field}' is not read: expected 'extends' or 'rules'"),
                ),
            }
        }
        // A file of rules alone turns off what it does not name.
        if !fields.contains_key("extends") {
            self.ruleset.mode = Mode::Off;
        }
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
        let is_known = rule_names().contains(&name) || name == crate::openapi::INVALID_REF;
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
        let mut given = Vec::new();
        for path in items(value.get("given")) {
            match path.as_str().map(JsonPath::parse) {
                Some(Ok(path)) => given.push(path),
                Some(Err(error)) => self.fail(
                    place.field("given"),
                    format!("not a JSONPath of RFC 9535: {error}"),
                ),
                None => self.fail(place.field("given"), "expected a JSONPath"),
            }
        }
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
        if let Some(level) = level {
            let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
            self.ruleset.custom.push(CustomRule {
                name: name.to_owned(),
                level,
                message: text("message").or_else(|| text("description")),
                given,
                then,
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
