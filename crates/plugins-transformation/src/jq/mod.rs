//! `jq`: changes JSON bodies of requests and responses with programs in the language of jq.
//!
//! ```yaml
//! request: {program: ".user |= {id, name}"}
//! response: {program: "del(.secret)", statuses: [200]}
//! ```
//!
//! The language is Weir's own reading of jq's (without input and output, dates, modules and `$ENV`). A program takes a
//! bounded number of steps and a bounded amount of memory, whatever it and the body are. Security: a body that a program
//! fails on never passes unchanged: the request is refused, and the response is replaced by an error.

mod access;
mod budget;
mod builtin;
mod call;
mod check;
mod env;
mod eval;
mod filter;
mod lex;
mod make;
mod parse;
mod paths;
mod programs;
mod texts;
mod tree;
mod value;

use budget::{Budget, Interrupt};
use eval::Machine;
use filter::{CompiledProgram, JqFilter};
use parse::{definitions, parse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::sync::{Arc, LazyLock};
use tree::{Definition, Node};
use value::Value;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{BuildContext, Filter, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;

/// The most bytes of a body that a configuration can allow.
const MOST_BYTES: usize = 16 << 20;
/// Steps that a program takes at most; each byte of the body allows for four more.
pub(crate) const STEPS: u64 = 300_000;
/// Bytes of values that a program makes at most, all together; each byte of the body allows for sixteen more.
const MEMORY: u64 = 32 << 20;
/// The most characters of a program's own message that are logged.
const MAX_REASON: usize = 100;

/// Configuration of `jq`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The change of requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Work>,
    /// The change of responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Work>,
    /// The most bytes of a body; a larger one is refused.
    pub max_body_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            request: None,
            response: None,
            max_body_bytes: 1 << 20,
        }
    }
}

/// A program and the bodies that it is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// The program.
    pub program: String,
    /// Media types of bodies that it works on, without parameters.
    #[serde(default = "json_type")]
    pub media_types: Vec<String>,
    /// Statuses of responses that it works on; empty: all.
    #[serde(default)]
    pub statuses: Vec<u16>,
    /// How its outputs are written.
    #[serde(default)]
    pub output: Output,
}

fn json_type() -> Vec<String> {
    vec!["application/json".to_owned()]
}

/// How outputs are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Output {
    /// Each in one line.
    pub compact: bool,
    /// Texts without quotes.
    pub raw: bool,
    /// Directly one after the other; texts without quotes.
    pub join: bool,
    /// Letters beyond ASCII are escaped.
    pub ascii: bool,
    /// Members in the order of their names.
    pub sort_keys: bool,
}

impl Default for Output {
    fn default() -> Self {
        Self {
            compact: true,
            raw: false,
            join: false,
            ascii: false,
            sort_keys: false,
        }
    }
}

/// The functions that are written in the language itself.
static PRELUDE: LazyLock<Vec<Arc<Definition>>> =
    LazyLock::new(|| definitions(include_str!("prelude.jq")).expect("invariant: the prelude can be read"));

/// A program that can be run, by all workers.
#[derive(Debug)]
pub(crate) struct Program(Node);

/// What is wrong with a program; `None`: nothing.
pub fn fault(program: &str) -> Option<String> {
    Program::read(program).err()
}

/// What a program is to work on.
pub(crate) enum Input {
    Whole(Arc<Json>),
    /// An object of these members.
    Members(Vec<(String, Arc<Json>)>),
}

/// Why there is no new body.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the body is not valid JSON")]
    NotJson,
    #[error("the program fails: {0}")]
    Failed(String),
    #[error("the program takes too many steps or too much memory")]
    TooMuch,
}

impl Program {
    /// Reads a program.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(program: &str) -> Result<Self, String> {
        let node = parse(program)?;
        check::check(&node, &PRELUDE)?;
        Ok(Self(node))
    }

    /// The body that the program makes of another.
    fn run(&self, body: &[u8], output: &Output) -> Result<Vec<u8>, Failure> {
        let json: Json = serde_json::from_slice(body).map_err(|_| Failure::NotJson)?;
        let input = Value::of_json(&json).map_err(|_| Failure::TooMuch)?;
        drop(json);
        let bytes = body.len() as u64;
        let budget = Budget::new(STEPS + 4 * bytes, MEMORY + 16 * bytes);
        let (outputs, _) = self.outputs(input, budget);
        Ok(write(&outputs?, output))
    }

    /// What the program makes of a value in at most so many steps: its output, null without one, and a list of several. And
    /// how many steps are left.
    pub(crate) fn transform(&self, input: &Input, most_steps: u64) -> (Result<Json, Failure>, u64) {
        let input = match input {
            Input::Whole(json) => Value::of_json(json),
            Input::Members(of) => Value::of_members(of.iter().map(|(name, json)| (name.as_str(), &**json))),
        };
        let Ok(input) = input else {
            return (Err(Failure::TooMuch), most_steps);
        };
        let bytes = 16 * input.size() as u64;
        let steps = most_steps.min(STEPS + 4 * bytes);
        let (outputs, left) = self.outputs(input, Budget::new(steps, MEMORY + 16 * bytes));
        let output = outputs.map(|outputs| match &*outputs {
            [] => Json::Null,
            [one] => one.to_json(false),
            several => several.iter().map(|value| value.to_json(false)).collect(),
        });
        (output, most_steps - steps + left)
    }

    /// The outputs for a value, and how many steps are left.
    fn outputs(&self, input: Value, budget: Budget) -> (Result<Vec<Value>, Failure>, u64) {
        let machine = Machine::new(&PRELUDE, budget);
        let outputs = machine.run(&self.0, input).and_then(|outputs| {
            // They are written out as a whole, however much of them is shared.
            let size = outputs.iter().map(Value::size).sum();
            machine.spend(size).map(|()| outputs)
        });
        let outputs = outputs.map_err(|interrupt| match interrupt {
            Interrupt::Error(error) => Failure::Failed(reason(&error)),
            Interrupt::Break(_) | Interrupt::Enough => Failure::Failed("break".to_owned()),
            Interrupt::Exhausted => Failure::TooMuch,
        });
        (outputs, machine.budget.left())
    }
}

/// The beginning of what a program fails with: it may be a part of the body, and large.
fn reason(error: &Value) -> String {
    let text = match error {
        Value::Text(text) => text.to_string(),
        other => budget::abridged(other),
    };
    match text.char_indices().nth(MAX_REASON) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

fn write(outputs: &[Value], output: &Output) -> Vec<u8> {
    let mut body = Vec::new();
    for (place, value) in outputs.iter().enumerate() {
        if place > 0 && !output.join {
            body.push(b'\n');
        }
        let text = match value {
            Value::Text(text) if output.raw || output.join => text.to_string(),
            other => {
                let json = other.to_json(output.sort_keys);
                match output.compact {
                    true => json.to_string(),
                    false => format!("{json:#}"),
                }
            }
        };
        match output.ascii {
            false => body.extend_from_slice(text.as_bytes()),
            true => {
                for unit in text.encode_utf16() {
                    match u8::try_from(unit).ok().filter(u8::is_ascii) {
                        Some(byte) => body.push(byte),
                        None => body.extend_from_slice(format!("\\u{unit:04x}").as_bytes()),
                    }
                }
            }
        }
    }
    body
}

/// The plugin `jq`.
pub struct Jq;

impl Plugin for Jq {
    fn name(&self) -> &'static str {
        "jq"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Json, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        if config.request.is_none() && config.response.is_none() {
            faults.add("request", "expected a program for requests or for responses");
        }
        let mut prepare = |field: &str, work: Option<Work>| {
            let work = work?;
            match Program::read(&work.program) {
                Ok(program) => Some(CompiledProgram::of(program, work)),
                Err(message) => {
                    let place = DocPath::root().field(field).field("program");
                    faults.extend(vec![Diagnostic::error(place, message)]);
                    None
                }
            }
        };
        let request = prepare("request", config.request);
        let response = prepare("response", config.response);
        if config.max_body_bytes > MOST_BYTES {
            faults.add("max_body_bytes", format!("expected at most {MOST_BYTES} bytes"));
        }
        faults.done()?;
        Ok(Arc::new(JqFilter {
            request,
            response,
            max_body_bytes: config.max_body_bytes,
        }))
    }
}

#[cfg(test)]
mod tests;
