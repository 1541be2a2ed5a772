//! Ordered changes of a header list, for requests and responses.
//!
//! What a message is made of (its framing, and what belongs to the connection) is the engine's: no step writes such a
//! header, lest the peer see another end of the message than the gateway does.

use crate::captures::{CaptureTemplate, Found};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::{Exchange, Headers};

/// One step. Steps work in the order in which they stand, each on what the steps before it left; within a step, names
/// work in alphabetical order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderStep {
    /// Takes out all headers of these names.
    Remove(Vec<String>),
    /// Gives headers another name: old name to new. The new name's headers stay.
    Rename(BTreeMap<String, String>),
    /// Sets headers, in place of all of the same name. An empty value takes them out.
    Set(BTreeMap<String, String>),
    /// Sets headers where there is one of the same name already.
    Replace(BTreeMap<String, String>),
    /// Adds headers where there is none of the same name. `Host`, of which there is one always, is set.
    Add(BTreeMap<String, String>),
    /// Adds headers beside those of the same name. Empty values are left out. `Host`, of which there can be one only,
    /// is set.
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

/// Whether the gateway itself writes the header of this name.
pub(crate) fn is_own(name: &str) -> bool {
    OWN.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// Whose headers are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Request,
    Response,
}

impl Side {
    fn headers(self, exchange: &mut Exchange) -> &mut Headers {
        match self {
            Self::Request => &mut exchange.request.headers,
            Self::Response => &mut exchange.response.headers,
        }
    }
}

/// Steps made ready for many calls.
#[derive(Debug)]
pub(crate) struct HeaderSteps(Vec<Step>);

#[derive(Debug)]
struct Step {
    name: Vec<u8>,
    work: Work,
}

#[derive(Debug)]
enum Work {
    Remove,
    Rename(Vec<u8>),
    Set(Text),
    Replace(Text),
    Add(Text),
    Append(Text),
}

#[derive(Debug)]
enum Text {
    Plain(Vec<u8>),
    Template(CaptureTemplate),
}

impl HeaderSteps {
    /// Makes steps ready. `variables`: whether `$` stands for variables and groups.
    ///
    /// # Errors
    /// Names and values that cannot stand in a message, and headers that the gateway itself writes, with their place
    /// below `path`. Taking such a header out does nothing.
    pub(crate) fn compile(
        steps: &[HeaderStep],
        variables: bool,
        path: &DocPath,
    ) -> Result<Self, Vec<Diagnostic>> {
        let mut compiler = Compiler {
            variables,
            steps: Vec::new(),
            faults: Vec::new(),
        };
        for (index, step) in steps.iter().enumerate() {
            compiler.step(step, &path.index(index));
        }
        match compiler.faults.is_empty() {
            true => Ok(Self(compiler.steps)),
            false => Err(compiler.faults),
        }
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether any value has a variable that is in the request's body.
    pub(crate) fn need_body(&self) -> bool {
        self.0.iter().any(|step| match &step.work {
            Work::Remove | Work::Rename(_) => false,
            Work::Set(text) | Work::Replace(text) | Work::Add(text) | Work::Append(text) => {
                matches!(text, Text::Template(template) if template.needs_body())
            }
        })
    }

    /// Changes the headers of one side.
    pub(crate) fn apply(&self, exchange: &mut Exchange, side: Side, found: &Found) {
        let mut rendered = Vec::new();
        for step in &self.0 {
            let name = step.name.as_slice();
            match &step.work {
                Work::Remove => {
                    side.headers(exchange).remove(name);
                }
                Work::Rename(new) => rename(side.headers(exchange), name, new),
                Work::Set(text) => {
                    let value = text.value(exchange, found, &mut rendered);
                    let headers = side.headers(exchange);
                    headers.remove(name);
                    append(headers, name, value);
                }
                Work::Replace(text) => {
                    if side.headers(exchange).contains(name) {
                        let value = text.value(exchange, found, &mut rendered);
                        side.headers(exchange).set(name, value);
                    }
                }
                Work::Add(text) => {
                    if !side.headers(exchange).contains(name) {
                        let value = text.value(exchange, found, &mut rendered);
                        side.headers(exchange).append(name, value);
                    }
                }
                Work::Append(text) => {
                    let value = text.value(exchange, found, &mut rendered);
                    append(side.headers(exchange), name, value);
                }
            }
        }
    }
}

fn append(headers: &mut Headers, name: &[u8], value: &[u8]) {
    if !value.is_empty() {
        headers.append(name, value);
    }
}

fn rename(headers: &mut Headers, old: &[u8], new: &[u8]) {
    let values: Vec<Vec<u8>> = headers.get_all(old).map(<[u8]>::to_vec).collect();
    headers.remove(old);
    for value in values {
        headers.append(new, &value);
    }
}

impl Text {
    fn value<'t>(&'t self, exchange: &Exchange, found: &Found, rendered: &'t mut Vec<u8>) -> &'t [u8] {
        match self {
            Self::Plain(text) => text,
            Self::Template(template) => {
                rendered.clear();
                template.render(exchange, found, rendered);
                rendered
            }
        }
    }
}

struct Compiler {
    variables: bool,
    steps: Vec<Step>,
    faults: Vec<Diagnostic>,
}

impl Compiler {
    fn step(&mut self, step: &HeaderStep, path: &DocPath) {
        match step {
            HeaderStep::Remove(names) => {
                let path = path.field("remove");
                for (index, name) in names.iter().enumerate() {
                    if !is_own(name) {
                        self.push(name, &path.index(index), Work::Remove);
                    }
                }
            }
            HeaderStep::Rename(names) => {
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
            HeaderStep::Set(values) => self.values(values, &path.field("set"), Work::Set),
            HeaderStep::Replace(values) => self.values(values, &path.field("replace"), Work::Replace),
            HeaderStep::Add(values) => self.values(values, &path.field("add"), Work::Add),
            HeaderStep::Append(values) => self.values(values, &path.field("append"), Work::Append),
        }
    }

    fn values(&mut self, values: &BTreeMap<String, String>, path: &DocPath, work: fn(Text) -> Work) {
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
            let text = match self.variables && value.contains('$') {
                true => Text::Template(CaptureTemplate::parse(value)),
                false => Text::Plain(value.as_bytes().to_vec()),
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
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use weir_plugin::system_clock;

    fn compile(steps: Value, variables: bool) -> Result<HeaderSteps, Vec<Diagnostic>> {
        let steps: Vec<HeaderStep> = serde_json::from_value(steps).expect("valid");
        HeaderSteps::compile(&steps, variables, &DocPath::root().field("headers"))
    }

    #[test]
    fn steps_work_in_order() {
        for (steps, variables, expected) in [
            (json!([]), true, "A: 1, B: 2, A: 3"),
            (json!([{"remove": ["a", "x"]}]), true, "B: 2"),
            (
                json!([{"rename": {"a": "C", "x": "y"}}]),
                true,
                "B: 2, C: 1, C: 3",
            ),
            (
                json!([{"set": {"a": "4", "b": "", "C": "5"}}]),
                true,
                "C: 5, a: 4",
            ),
            (json!([{"replace": {"a": "4", "x": "5"}}]), true, "B: 2, a: 4"),
            (
                json!([{"add": {"a": "4", "x": "5"}}]),
                true,
                "A: 1, B: 2, A: 3, x: 5",
            ),
            (
                json!([{"append": {"b": "4", "x": ""}}]),
                true,
                "A: 1, B: 2, A: 3, b: 4",
            ),
            (
                json!([{"remove": ["A"]}, {"append": {"A": "9"}}, {"set": {"A": "8"}}]),
                true,
                "B: 2, A: 8",
            ),
            (
                json!([{"set": {"C": "$http_b-$request_method"}}]),
                true,
                "A: 1, B: 2, A: 3, C: 2-GET",
            ),
            (json!([{"set": {"C": "$http_none"}}]), true, "A: 1, B: 2, A: 3"),
            (
                json!([{"add": {"Host": "a"}}, {"append": {"host": "b"}}]),
                true,
                "A: 1, B: 2, A: 3, host: b",
            ),
            (
                json!([{"remove": ["Content-Length", "connection"]}, {"set": {"TE": ""}}]),
                true,
                "A: 1, B: 2, A: 3",
            ),
            (
                json!([{"set": {"C": "$http_b"}}]),
                false,
                "A: 1, B: 2, A: 3, C: $http_b",
            ),
        ] {
            let mut exchange = Exchange::new(system_clock, 1);
            exchange.request.method = b"GET".to_vec();
            for (name, value) in [("A", "1"), ("B", "2"), ("A", "3")] {
                exchange.request.headers.append(name.as_bytes(), value.as_bytes());
            }
            let compiled = compile(steps.clone(), variables).expect("valid");
            compiled.apply(&mut exchange, Side::Request, &Found::default());
            let headers = exchange.request.headers.iter().map(|header| {
                let (name, value) = (header.name, header.value);
                format!(
                    "{}: {}",
                    String::from_utf8_lossy(name),
                    String::from_utf8_lossy(value)
                )
            });
            assert_eq!(headers.collect::<Vec<_>>().join(", "), expected, "{steps}");
        }
    }

    #[test]
    fn headers_of_the_gateway_are_not_written() {
        for name in OWN {
            let name = name.to_uppercase();
            for step in ["set", "replace", "add", "append", "rename"] {
                let faults = compile(json!([{step: {name.as_str(): "x"}}]), true).expect_err("the gateway's");
                assert_eq!(faults[0].path.to_string(), format!("headers[0].{step}.{name}"));
                assert!(
                    faults[0]
                        .message
                        .starts_with("the gateway itself writes this header")
                );
            }
            let faults = compile(json!([{"rename": {"x": name}}]), true).expect_err("the gateway's");
            assert_eq!(faults[0].path.to_string(), "headers[0].rename.x");
        }
        assert!(compile(json!([{"rename": {"x": "Host"}}]), true).is_err());
    }

    #[test]
    fn what_cannot_stand_in_a_message_is_refused() {
        for (steps, place) in [
            (json!([{"remove": ["a", "b c"]}]), "headers[0].remove[1]"),
            (json!([{"rename": {"a": ""}}]), "headers[0].rename.a"),
            (json!([{"add": {}}, {"set": {"a": "x\r\ny"}}]), "headers[1].set.a"),
        ] {
            let faults = compile(steps, true).expect_err("invalid");
            assert_eq!(faults[0].path.to_string(), place);
        }
    }
}
