//! Ordered changes of a header list, for requests and responses.
//!
//! The engine owns the headers of a message's framing and of the connection: no step writes such a header. Otherwise
//! the peer could see a different end of the message than the gateway does.

use crate::expression::EvaluationError;
use crate::path_captures::RegexMatch;
use crate::text_template::{TemplateSyntax, TextTemplate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::{Exchange, Headers};

/// One step. Steps run in their order, each on the result of the steps before it; within a step, names are processed in
/// alphabetical order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderEdit {
    /// Removes all headers of these names.
    Remove(Vec<String>),
    /// Renames headers: old name to new. Headers that already had the new name are removed.
    Rename(BTreeMap<String, String>),
    /// Sets headers, instead of all of the same name. An empty value removes them.
    Set(BTreeMap<String, String>),
    /// Sets headers if there is already one of the same name.
    Replace(BTreeMap<String, String>),
    /// Adds headers if there is none of the same name. `Host`, which always exists, is set.
    Add(BTreeMap<String, String>),
    /// Adds headers to those of the same name. Empty values are left out. `Host`, which can exist only once, is set.
    Append(BTreeMap<String, String>),
}

/// Headers that the gateway writes itself, in lower case.
const OWN: [&str; 10] = [
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "upgrade",
    "te",
    "trailer",
    "proxy-connection",
    "expect",
    "http2-settings",
];

/// Those that say where a message ends.
const FRAMING: [&str; 2] = ["content-length", "transfer-encoding"];

/// Whether the gateway itself writes the header of this name. So that there is no second one that frames a message for servers
/// which take `_` for `-`, those with `_` are the gateway's own, too.
pub fn is_own(name: &str) -> bool {
    let frames = name.contains('_') && FRAMING.contains(&&*name.replace('_', "-").to_ascii_lowercase());
    frames || is_listed(name)
}

fn is_listed(name: &str) -> bool {
    OWN.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// Whose headers are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderTarget {
    /// Those of the request.
    Request,
    /// Those of the response.
    Response,
}

impl HeaderTarget {
    fn headers(self, exchange: &mut Exchange) -> &mut Headers {
        match self {
            Self::Request => &mut exchange.request.headers,
            Self::Response => &mut exchange.response.headers,
        }
    }
}

/// Steps made ready for many calls.
#[derive(Debug)]
pub struct HeaderEdits {
    steps: Vec<Step>,
    /// Some text has expressions. They see the message as it was before all steps.
    has_expressions: bool,
}

#[derive(Debug)]
struct Step {
    name: Vec<u8>,
    work: Work,
}

#[derive(Debug)]
enum Work {
    Remove,
    Rename(Vec<u8>),
    Set(TextTemplate),
    Replace(TextTemplate),
    Add(TextTemplate),
    Append(TextTemplate),
}

impl Work {
    fn text(&self) -> Option<&TextTemplate> {
        match self {
            Self::Remove | Self::Rename(_) => None,
            Self::Set(text) | Self::Replace(text) | Self::Add(text) | Self::Append(text) => Some(text),
        }
    }
}

impl HeaderEdits {
    /// Makes steps ready; `dialect` says what stands for something else in values.
    ///
    /// # Errors
    /// Names and values that cannot stand in a message, expressions that cannot be read, and headers that the gateway itself writes, with their place
    /// below `path`. Taking such a header out does nothing.
    pub fn compile(
        steps: &[HeaderEdit],
        dialect: impl Into<TemplateSyntax>,
        path: &DocPath,
    ) -> Result<Self, Vec<Diagnostic>> {
        let mut compiler = Compiler {
            dialect: dialect.into(),
            steps: Vec::new(),
            faults: Vec::new(),
        };
        for (index, step) in steps.iter().enumerate() {
            compiler.step(step, &path.index(index));
        }
        match compiler.faults.is_empty() {
            true => Ok(Self {
                has_expressions: (compiler.steps.iter())
                    .any(|step| matches!(step.work.text(), Some(TextTemplate::Expressions(_)))),
                steps: compiler.steps,
            }),
            false => Err(compiler.faults),
        }
    }

    /// Whether there is nothing to do.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether any value has a variable that is in the request's body.
    #[inline]
    pub fn need_body(&self) -> bool {
        self.steps
            .iter()
            .any(|step| step.work.text().is_some_and(TextTemplate::needs_body))
    }

    /// Changes the headers of one side. There must be no expressions, which could fail.
    pub fn apply(&self, exchange: &mut Exchange, side: HeaderTarget, found: &RegexMatch) {
        let done = self.try_apply(exchange, side, found);
        debug_assert!(done.is_ok());
    }

    /// Changes the headers of one side.
    ///
    /// # Errors
    /// When an expression cannot be evaluated; nothing is changed then.
    pub fn try_apply(
        &self,
        exchange: &mut Exchange,
        side: HeaderTarget,
        found: &RegexMatch,
    ) -> Result<(), EvaluationError> {
        let mut ready = Vec::new();
        if self.has_expressions {
            for step in &self.steps {
                let mut memory = Vec::new();
                let text = step
                    .work
                    .text()
                    .map(|text| text.value(exchange, found, &mut memory));
                ready.push(text.transpose()?.unwrap_or_default().to_vec());
            }
        }
        let mut memory = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            let name = step.name.as_slice();
            let value = match (step.work.text(), ready.get(index)) {
                (None, _) => &[][..],
                // Its value may not be needed, but it costs nothing.
                (Some(TextTemplate::Plain(text)), _) => text,
                (Some(_), Some(text)) => text,
                (Some(text), None) => text.value(exchange, found, &mut memory)?,
            };
            let headers = side.headers(exchange);
            match &step.work {
                Work::Remove => {
                    headers.remove(name);
                }
                Work::Rename(new) => rename(headers, name, new),
                Work::Set(_) => {
                    headers.remove(name);
                    append(headers, name, value);
                }
                Work::Replace(_) if headers.contains(name) => headers.set(name, value),
                Work::Add(_) if !headers.contains(name) => headers.append(name, value),
                // A response has one of it.
                Work::Append(_)
                    if side == HeaderTarget::Response && name.eq_ignore_ascii_case(b"content-type") =>
                {
                    if !value.is_empty() {
                        headers.set(name, value);
                    }
                }
                Work::Append(_) => append(headers, name, value),
                Work::Replace(_) | Work::Add(_) => {}
            }
        }
        Ok(())
    }
}

fn append(headers: &mut Headers, name: &[u8], value: &[u8]) {
    if !value.is_empty() {
        headers.append(name, value);
    }
}

fn rename(headers: &mut Headers, old: &[u8], new: &[u8]) {
    let values: Vec<Vec<u8>> = headers.get_all(old).map(<[u8]>::to_vec).collect();
    if values.is_empty() {
        return;
    }
    headers.remove(old);
    headers.remove(new);
    for value in values {
        headers.append(new, &value);
    }
}

struct Compiler {
    dialect: TemplateSyntax,
    steps: Vec<Step>,
    faults: Vec<Diagnostic>,
}

impl Compiler {
    fn step(&mut self, step: &HeaderEdit, path: &DocPath) {
        match step {
            HeaderEdit::Remove(names) => {
                let path = path.field("remove");
                for (index, name) in names.iter().enumerate() {
                    if !is_listed(name) {
                        self.push(name, &path.index(index), Work::Remove);
                    }
                }
            }
            HeaderEdit::Rename(names) => {
                let path = path.field("rename");
                for (old, new) in names {
                    let path = path.field(old);
                    self.check_written(old, &path);
                    self.check_written(new, &path);
                    self.check_name(new, &path);
                    if new.eq_ignore_ascii_case("host") {
                        self.fault(&path, "expected another name: 'Host' can only be set".to_owned());
                    }
                    self.push(old, &path, Work::Rename(new.as_bytes().to_vec()));
                }
            }
            HeaderEdit::Set(values) => self.values(values, &path.field("set"), Work::Set),
            HeaderEdit::Replace(values) => self.values(values, &path.field("replace"), Work::Replace),
            HeaderEdit::Add(values) => self.values(values, &path.field("add"), Work::Add),
            HeaderEdit::Append(values) => self.values(values, &path.field("append"), Work::Append),
        }
    }

    fn values(&mut self, values: &BTreeMap<String, String>, path: &DocPath, work: fn(TextTemplate) -> Work) {
        for (name, value) in values {
            let path = path.field(name);
            if !is_value(value.as_bytes()) {
                self.fault(
                    &path,
                    "expected a header value, without control characters".to_owned(),
                );
            }
            // Nothing in its place: it is taken out, which the gateway decides itself.
            if value.is_empty() && is_own(name) {
                continue;
            }
            self.check_written(name, &path);
            let text = match TextTemplate::parse(value, self.dialect) {
                Ok(text) => text,
                Err(message) => {
                    self.fault(&path, message);
                    continue;
                }
            };
            let work = match name.eq_ignore_ascii_case("host") {
                true => Work::Set(text),
                false => work(text),
            };
            self.push(name, &path, work);
        }
    }

    fn push(&mut self, name: &str, path: &DocPath, work: Work) {
        self.check_name(name, path);
        self.steps.push(Step {
            name: name.as_bytes().to_vec(),
            work,
        });
    }

    fn check_name(&mut self, name: &str, path: &DocPath) {
        if !is_name(name.as_bytes()) {
            self.fault(path, format!("expected a header name, found {name:?}"));
        }
    }

    fn check_written(&mut self, name: &str, path: &DocPath) {
        if is_own(name) {
            self.fault(path, format!("the gateway itself writes this header: '{name}'"));
        }
    }

    fn fault(&mut self, path: &DocPath, message: String) {
        self.faults.push(Diagnostic::error(path.clone(), message));
    }
}

#[cfg(test)]
mod tests;
