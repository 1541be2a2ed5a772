//! How nodes are connected: who gets which value of whom, in which order they run, and which of them wait for the service's
//! response. All of it is found out when the configuration is read. What it is not: the work of a node.

use super::ports::{
    ANSWER_INPUTS, InputPorts, OutputPorts, PortType, Ports, RAW, REQUEST_OUTPUTS, SERVICE_REQUEST_INPUTS,
    SERVICE_RESPONSE_OUTPUTS,
};
use super::{Config, Node};
use serde_json::Value;
use std::collections::BTreeMap;
use weir_model::{Diagnostic, DocPath};

/// Names that no node may have: they stand for the call.
const RESERVED: [&str; 5] = [
    "request",
    "service_request",
    "service_response",
    "response",
    "secrets",
];

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Request,
    ServiceResponse,
    Secrets,
    Node(usize),
}

/// A value that a node gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) from: Origin,
    /// Which of its outputs; `None`: all of them, or its only one.
    pub(super) field: Option<String>,
}

/// What a node gets.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// The value of the whole.
    pub(super) whole: Option<Source>,
    pub(super) named: BTreeMap<String, Source>,
    /// Where the document connects them, for what is wrong with it.
    places: Vec<DocPath>,
}

impl Inputs {
    pub(super) fn is_empty(&self) -> bool {
        self.whole.is_none() && self.named.is_empty()
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.whole.iter().chain(self.named.values())
    }

    pub(super) fn place(&self) -> Option<&DocPath> {
        self.places.first()
    }
}

/// What gets a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    ServiceRequest,
    Response,
    Node(usize),
}

/// A branch, and the result with which a node of it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Guard {
    pub(super) branch: usize,
    pub(super) runs_if: bool,
}

/// The nodes in their order.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// Of each node.
    pub(super) inputs: Vec<Inputs>,
    pub(super) service_request: Inputs,
    pub(super) response: Inputs,
    pub(super) guards: Vec<Option<Guard>>,
    /// The nodes that run before the service is called, in order.
    pub(super) before: Vec<usize>,
    /// Those that run when it has answered.
    pub(super) after: Vec<usize>,
    /// Of each node: whether what it gives is fixed, and so held by the configuration.
    pub(super) is_fixed: Vec<bool>,
    /// Of each node: whether what it gets may tell secrets.
    pub(super) of_secrets: Vec<bool>,
    /// Of each node: whether it runs only if the response has a body, as it reads that, or what is made of it.
    pub(super) of_body: Vec<bool>,
    /// The outputs of `request` that are used.
    pub(super) of_request: Vec<&'static str>,
    /// Those of `service_response`.
    pub(super) of_response: Vec<&'static str>,
}

/// A connection as it is written.
struct Link<'n> {
    from: &'n str,
    from_field: Option<&'n str>,
    to: &'n str,
    to_field: Option<&'n str>,
    place: DocPath,
}

impl Graph {
    /// Connects the nodes of a configuration. `of_response`: whether a node by itself waits for the response.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn new(config: &Config, of_response: &[bool]) -> Result<Self, Vec<Diagnostic>> {
        let nodes = &config.nodes;
        let mut faults = name_faults(nodes);
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut graph = Self {
            inputs: nodes.iter().map(|_| Inputs::default()).collect(),
            guards: guards(nodes, &mut faults),
            is_fixed: nodes.iter().map(|node| node.values.is_some()).collect(),
            ..Self::default()
        };
        for link in links(nodes, &mut faults) {
            if let Err(message) = graph.connect(config, &link) {
                faults.push(Diagnostic::error(link.place.clone(), message));
            }
        }
        if faults.is_empty() {
            graph.order(config, of_response, &mut faults);
        }
        graph.of_request = graph.used(Origin::Request, REQUEST_OUTPUTS);
        graph.of_response = graph.used(Origin::ServiceResponse, SERVICE_RESPONSE_OUTPUTS);
        match faults.is_empty() {
            true => Ok(graph),
            false => Err(faults),
        }
    }

    /// The outputs of this origin that are used.
    fn used(&self, origin: Origin, all: Ports) -> Vec<&'static str> {
        let inputs = self.inputs.iter().chain([&self.service_request, &self.response]);
        let sources = inputs
            .flat_map(Inputs::sources)
            .filter(|source| source.from == origin);
        let fields: Vec<Option<&str>> = sources.map(|source| source.field.as_deref()).collect();
        let is_used = |name: &&'static str| {
            fields.contains(&Some(*name)) || !RAW.contains(name) && fields.contains(&None)
        };
        all.iter().map(|(name, _)| *name).filter(is_used).collect()
    }

    fn connect(&mut self, config: &Config, link: &Link<'_>) -> Result<(), String> {
        let (origin, gives) = origin(config, link.from)?;
        let (target, accepts) = target(config, link.to)?;
        let (kind, fixed) = output(gives, link)?;
        let source = |field: Option<&str>| Source {
            from: origin,
            field: field.map(str::to_owned),
        };
        let wanted = match (accepts, link.to_field) {
            (InputPorts::Nothing, _) => return Err(format!("{:?} has no inputs", link.to)),
            (InputPorts::One(_), Some(_)) => {
                return Err(format!(
                    "expected a connection to {:?} as a whole: it has one input",
                    link.to
                ));
            }
            (InputPorts::One(wanted), None) => wanted,
            (InputPorts::Free, _) => PortType::Any,
            (InputPorts::Named(ports), Some(field)) => port(ports, field, link.to, "input")?,
            (InputPorts::Named(ports), None) => {
                let common = common(gives, link, ports)?;
                return match common {
                    Some(names) => {
                        let inputs = self.inputs_of(target);
                        names
                            .iter()
                            .try_for_each(|name| inputs.add(Some(*name), source(Some(*name)), link))
                    }
                    // It is known at a call which members the value has.
                    None => self.inputs_of(target).add(None, source(link.from_field), link),
                };
            }
        };
        let is_good = match fixed {
            Some(value) => wanted.takes(&value),
            None => kind.may_be(wanted),
        };
        if !is_good {
            return Err(format!(
                "expected {}: {} gives {}",
                wanted.name(),
                written(link.from, link.from_field),
                kind.name()
            ));
        }
        self.inputs_of(target)
            .add(link.to_field, source(link.from_field), link)
    }

    fn inputs_of(&mut self, target: Target) -> &mut Inputs {
        match target {
            Target::ServiceRequest => &mut self.service_request,
            Target::Response => &mut self.response,
            Target::Node(index) => &mut self.inputs[index],
        }
    }

    /// The nodes that a node comes after.
    fn before_node(&self, index: usize) -> impl Iterator<Item = usize> {
        let sources = self.inputs[index]
            .sources()
            .filter_map(|source| match source.from {
                Origin::Node(before) => Some(before),
                _ => None,
            });
        sources.chain(self.guards[index].map(|guard| guard.branch))
    }

    fn order(&mut self, config: &Config, of_response: &[bool], faults: &mut Vec<Diagnostic>) {
        let count = config.nodes.len();
        let list = DocPath::root().field("nodes");
        let mut waits = vec![false; count];
        let mut order: Vec<usize> = Vec::with_capacity(count);
        while order.len() < count {
            let is_next =
                |at: &usize| !order.contains(at) && self.before_node(*at).all(|it| order.contains(&it));
            let Some(next) = (0..count).find(is_next) else {
                let first = (0..count).find(|at| !order.contains(at)).unwrap_or(0);
                let message =
                    "expected no circles: this node comes after itself, by its inputs or its branch";
                faults.push(Diagnostic::error(list.index(first), message));
                return;
            };
            let after = self.inputs[next]
                .sources()
                .any(|it| it.from == Origin::ServiceResponse);
            waits[next] = of_response[next] || after || self.before_node(next).any(|before| waits[before]);
            order.push(next);
        }
        self.find_readers(&order);
        let is_late = |source: &Source| match source.from {
            Origin::ServiceResponse => true,
            Origin::Node(index) => waits[index],
            _ => false,
        };
        if self.service_request.sources().any(is_late) {
            let place = self.service_request.place().cloned().unwrap_or(list);
            let message = "expected a value that is there before the service is called, \
                           found one that comes after its response";
            faults.push(Diagnostic::error(place, message));
        }
        let is_after = |index: &usize| waits[*index];
        (self.after, self.before) = order.into_iter().partition(is_after);
    }
}

impl Graph {
    /// Finds out which nodes, in this order, get values of secrets and of the response's body, also through others.
    fn find_readers(&mut self, order: &[usize]) {
        self.of_secrets = vec![false; self.inputs.len()];
        self.of_body = vec![false; self.inputs.len()];
        for node in order {
            let is_secret = |source: &Source| match source.from {
                Origin::Secrets => true,
                Origin::Node(index) => self.of_secrets[index],
                _ => false,
            };
            let is_body = |source: &Source| {
                let is_it = source.field.as_ref().is_none_or(|field| field.ends_with("body"));
                source.from == Origin::ServiceResponse && is_it
            };
            let mut sources = self.inputs[*node].sources();
            let of_secrets = self.inputs[*node].sources().any(is_secret);
            let of_body = sources.any(is_body) || self.before_node(*node).any(|it| self.of_body[it]);
            self.of_secrets[*node] = of_secrets;
            self.of_body[*node] = of_body;
        }
    }

    /// Whether something gets this value of a node.
    pub(super) fn is_used(&self, node: usize, name: &str) -> bool {
        let inputs = self.inputs.iter().chain([&self.service_request, &self.response]);
        let mut sources = inputs.flat_map(Inputs::sources);
        sources.any(|it| it.from == Origin::Node(node) && it.field.as_deref() == Some(name))
    }
}

impl Inputs {
    fn add(&mut self, name: Option<&str>, source: Source, link: &Link<'_>) -> Result<(), String> {
        let is_taken = match name {
            Some(name) => self.whole.is_some() || self.named.contains_key(name),
            None => !self.is_empty(),
        };
        if is_taken {
            let to = written(link.to, name.or(link.to_field));
            return Err(format!(
                "expected one connection to an input: {to} is connected already"
            ));
        }
        self.places.push(link.place.clone());
        match name {
            Some(name) => drop(self.named.insert(name.to_owned(), source)),
            None => self.whole = Some(source),
        }
        Ok(())
    }
}

fn written(name: &str, field: Option<&str>) -> String {
    match field {
        Some(field) => format!("{name}.{field}"),
        None => name.to_owned(),
    }
}

/// What is wrong with the names of nodes.
fn name_faults(nodes: &[Node]) -> Vec<Diagnostic> {
    let list = DocPath::root().field("nodes");
    let is_letter = |byte: u8| byte == b'_' || byte == b'-' || byte.is_ascii_alphanumeric();
    let fault = |(index, node): (usize, &Node)| {
        let name = &node.name;
        let message = if name.len() > 255 || !name.bytes().all(is_letter) {
            "expected a name of at most 255 letters, digits, `_` and `-`".to_owned()
        } else if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            "expected a name that begins with a letter".to_owned()
        } else if RESERVED.contains(&name.as_str()) {
            format!("expected another name: {name:?} stands for a part of the call")
        } else if nodes[..index].iter().any(|before| before.name == *name) {
            format!("expected a name of its own, found a second {name:?}")
        } else {
            return None;
        };
        Some(Diagnostic::error(list.index(index).field("name"), message))
    };
    nodes.iter().enumerate().filter_map(fault).collect()
}

/// The branch of each node.
fn guards(nodes: &[Node], faults: &mut Vec<Diagnostic>) -> Vec<Option<Guard>> {
    let mut guards = vec![None; nodes.len()];
    for (branch, node) in nodes.iter().enumerate() {
        let Some(lists) = &node.branch else { continue };
        let place = DocPath::root().field("nodes").index(branch).field("branch");
        for (field, names, runs_if) in [("then", &lists.then, true), ("else", &lists.otherwise, false)] {
            for (position, name) in names.iter().enumerate() {
                let found = nodes.iter().position(|node| node.name == *name);
                let message = match found {
                    None => format!("expected names of nodes, found {name:?}"),
                    Some(index) if guards[index].is_some() => {
                        format!("expected a node of one list: {name:?} is in another one, too")
                    }
                    Some(index) => {
                        guards[index] = Some(Guard { branch, runs_if });
                        continue;
                    }
                };
                let place = place.clone().field(field).index(position);
                faults.push(Diagnostic::error(place, message));
            }
        }
    }
    guards
}

/// All connections, in the order of the document.
fn links<'n>(nodes: &'n [Node], faults: &mut Vec<Diagnostic>) -> Vec<Link<'n>> {
    let mut links = Vec::new();
    let mut add =
        |place: DocPath, from: Option<&'n str>, of: (&'n str, Option<&'n str>), to: Option<&'n str>| {
            let other = from.or(to).unwrap_or_default();
            let (name, field) = match other.split_once('.') {
                Some((name, field)) => (name, Some(field)),
                None => (other, None),
            };
            if field.is_some_and(|field| field.is_empty() || field.contains('.')) {
                faults.push(Diagnostic::error(
                    place,
                    "expected a node, or a node and one of its values as `node.value`",
                ));
                return;
            }
            let (from, from_field, to, to_field) = match from {
                Some(_) => (name, field, of.0, of.1),
                None => (of.0, of.1, name, field),
            };
            links.push(Link {
                from,
                from_field,
                to,
                to_field,
                place,
            });
        };
    for (index, node) in nodes.iter().enumerate() {
        let place = DocPath::root().field("nodes").index(index);
        let name = node.name.as_str();
        if let Some(from) = &node.input {
            add(place.field("input"), Some(from), (name, None), None);
        }
        for (port, from) in &node.inputs {
            add(
                place.field("inputs").field(port),
                Some(from),
                (name, Some(port)),
                None,
            );
        }
        if let Some(to) = &node.output {
            add(place.field("output"), None, (name, None), Some(to));
        }
        for (port, to) in &node.outputs {
            add(
                place.field("outputs").field(port),
                None,
                (name, Some(port)),
                Some(to),
            );
        }
    }
    links
}

fn origin<'c>(config: &'c Config, name: &str) -> Result<(Origin, OutputPorts<'c>), String> {
    match name {
        "request" => Ok((Origin::Request, OutputPorts::Named(REQUEST_OUTPUTS))),
        "service_response" => Ok((
            Origin::ServiceResponse,
            OutputPorts::Named(SERVICE_RESPONSE_OUTPUTS),
        )),
        "secrets" => Ok((Origin::Secrets, OutputPorts::Secrets(&config.secrets))),
        "service_request" | "response" => Err(format!("{name:?} has no outputs")),
        name => {
            let index = config.nodes.iter().position(|node| node.name == name);
            let index = index.ok_or_else(|| format!("expected the name of a node, found {name:?}"))?;
            Ok((Origin::Node(index), config.nodes[index].gives()))
        }
    }
}

fn target(config: &Config, name: &str) -> Result<(Target, InputPorts), String> {
    match name {
        "service_request" => Ok((Target::ServiceRequest, InputPorts::Named(SERVICE_REQUEST_INPUTS))),
        "response" => Ok((Target::Response, InputPorts::Named(ANSWER_INPUTS))),
        "request" | "service_response" | "secrets" => Err(format!("{name:?} has no inputs")),
        name => {
            let index = config.nodes.iter().position(|node| node.name == name);
            let index = index.ok_or_else(|| format!("expected the name of a node, found {name:?}"))?;
            Ok((Target::Node(index), config.nodes[index].accepts()))
        }
    }
}

fn port(ports: Ports, name: &str, of: &str, what: &str) -> Result<PortType, String> {
    let found = ports.iter().find(|(known, _)| *known == name);
    found.map(|(_, kind)| *kind).ok_or_else(|| {
        let names: Vec<&str> = ports.iter().map(|(known, _)| *known).collect();
        format!("{of:?} has no {what} {name:?}, but {}", names.join(", "))
    })
}

/// The type of an output, and its value if that is known before.
fn output(gives: OutputPorts<'_>, link: &Link<'_>) -> Result<(PortType, Option<Value>), String> {
    let from = link.from;
    match (gives, link.from_field) {
        (OutputPorts::Nothing, _) => Err(format!("{from:?} has no outputs")),
        (OutputPorts::One(_), Some(_)) => Err(format!(
            "expected {from:?} as a whole: it is not known before what it gives"
        )),
        (OutputPorts::One(kind), None) => Ok((kind, None)),
        (OutputPorts::Named(ports), Some(field)) => Ok((port(ports, field, from, "output")?, None)),
        (OutputPorts::Named(_), None) => Ok((PortType::Object, None)),
        (OutputPorts::Fixed(values), Some(field)) => match values.get(field) {
            Some(value) => Ok((PortType::Any, Some(value.clone()))),
            None => Err(format!("{from:?} has no value {field:?}")),
        },
        (OutputPorts::Fixed(values), None) => {
            let whole = values.iter().map(|(name, value)| (name.clone(), value.clone()));
            Ok((PortType::Map, Some(Value::Object(whole.collect()))))
        }
        (OutputPorts::Secrets(secrets), Some(field)) => match secrets.contains_key(field) {
            true => Ok((PortType::Text, None)),
            false => Err(format!("expected the name of a secret, found {field:?}")),
        },
        (OutputPorts::Secrets(_), None) => Ok((PortType::Map, None)),
    }
}

/// The names that the outputs of one node and the inputs of another have in common; `None`: they are known at a call.
fn common(
    gives: OutputPorts<'_>,
    link: &Link<'_>,
    inputs: Ports,
) -> Result<Option<Vec<&'static str>>, String> {
    let to = link.to;
    let gives_one = |name: &'static str, wanted: PortType| match gives {
        OutputPorts::Named(ports) => ports
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, kind)| kind.may_be(wanted)),
        OutputPorts::Fixed(values) => values.get(name).map(|value| wanted.takes(value)),
        _ => None,
    };
    match (gives, link.from_field) {
        (OutputPorts::Named(_) | OutputPorts::Fixed(_), None) => {}
        (OutputPorts::One(PortType::Any), None) => return Ok(None),
        _ => {
            let (kind, _) = output(gives, link)?;
            return match kind {
                PortType::Any => Ok(None),
                kind => Err(format!(
                    "expected {}, or a connection to one of the inputs of {to:?}: {} gives {}",
                    PortType::Object.name(),
                    written(link.from, link.from_field),
                    kind.name()
                )),
            };
        }
    }
    let mut names = Vec::new();
    for (name, wanted) in inputs {
        match gives_one(name, *wanted) {
            None => {}
            Some(true) => names.push(*name),
            Some(false) => {
                return Err(format!("expected {} as {to}.{name}", wanted.name()));
            }
        }
    }
    match names.is_empty() {
        true => {
            let inputs: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
            Err(format!(
                "{:?} has none of the inputs of {to:?}, which are {}",
                link.from,
                inputs.join(", ")
            ))
        }
        false => Ok(Some(names)),
    }
}
