//! Severities files (`.spectral.yaml`): which rules count, how much, and custom rules. [`reader`] reads them.
//!
//! Read are `extends: spectral:oas` (with `recommended`, `all` or `off`), `rules` with `off`, `error`, `warn`, `info`,
//! `hint`, `true` or `false`, `aliases`, and rules with `given` (a JSONPath of RFC 9535, `~` behind it for names), `then`,
//! `severity`, `message`, `description`, `formats`, `recommended` and `resolved`. Of references, the one at the place itself is
//! followed. Files and addresses that `extends` names are not followed: that is an error, not a rule that is
//! missing without a word.

mod reader;

use super::functions::Function;
use super::shortened;
use crate::finding::{Finding, Level};
use crate::openapi::{Description, Format, MAX_FINDINGS, locate, resolve};
use reader::Reader;
use serde_json::Value;
use serde_json_path::{JsonPath, PathElement};
use std::collections::BTreeMap;
use weir_model::diagnostic::PathStep;
use weir_model::json_path_cost::{DocumentShape, PathCost};
use weir_model::{DocPath, document};

/// The rule under which faults of a severities file are reported.
pub const UNREADABLE_RULES: &str = "invalid-ruleset";

/// Steps that the JSONPaths of all custom rules together may take in a description.
const MAX_STEPS: u64 = 20_000_000;

/// Which of the built-in rules count if nothing is said about one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Recommended,
    All,
    Off,
}

/// The content of a severities file.
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
    description: String,
    given: Vec<RuleTarget>,
    then: Vec<RuleAction>,
    /// The versions of OpenAPI that it is for; empty: all.
    formats: Vec<Format>,
    /// Whether a reference stands for what it leads to.
    is_resolved: bool,
}

/// The values that a rule looks at.
#[derive(Debug, Clone)]
struct RuleTarget {
    path: JsonPath,
    cost: PathCost,
    /// The names of the values, in place of the values.
    is_of_names: bool,
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
        Reader::read(&value).map_err(|mut findings| {
            locate(text, &mut findings);
            findings
        })
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
        let is_for =
            |rule: &&CustomRule| rule.formats.is_empty() || rule.formats.contains(&description.format);
        if self.custom.is_empty() {
            return;
        }
        let document = &description.source;
        let shape = DocumentShape::of(document);
        let mut steps_left = MAX_STEPS;
        for rule in self.custom.iter().filter(is_for) {
            for given in &rule.given {
                match steps_left.checked_sub(given.cost.steps(&shape)) {
                    Some(left) => steps_left = left,
                    None => {
                        findings.push(rule.unchecked(&given.path));
                        continue;
                    }
                }
                for node in given.path.query_located(document).iter() {
                    let path = path_of(node.location().iter());
                    match (given.is_of_names, path.0.last()) {
                        (true, Some(PathStep::Field(name))) => {
                            let name = Value::from(name.as_str());
                            rule.check(document, &name, &path, findings);
                        }
                        (true, _) => {}
                        (false, _) => rule.check(document, node.node(), &path, findings),
                    }
                    if findings.len() >= MAX_FINDINGS {
                        return;
                    }
                }
            }
        }
    }
}

impl CustomRule {
    /// The finding for a place that is not looked for, as that could take too long.
    fn unchecked(&self, path: &JsonPath) -> Finding {
        let message = format!(
            "not checked at {path}: the places of all rules together may take {MAX_STEPS} steps in a description, and this \
             one would take more than are left; name it more closely, with fewer '..'"
        );
        Finding::error(&self.name, DocPath::root(), shortened(message))
    }

    /// The value that another refers to.
    fn end<'v>(&self, document: &'v Value, value: &'v Value) -> &'v Value {
        match self.is_resolved {
            true => resolve(document, value).map_or(value, |(end, _)| end),
            false => value,
        }
    }

    fn check(&self, document: &Value, value: &Value, path: &DocPath, findings: &mut Vec<Finding>) {
        let value = self.end(document, value);
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
                    let below = field
                        .split('.')
                        .try_fold(value, |value, name| Some(self.end(document, value.get(name)?)));
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
                .replace("{{description}}", &self.description),
        };
        findings.push(Finding {
            rule: self.name.clone(),
            level: self.level,
            message: shortened(message),
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
