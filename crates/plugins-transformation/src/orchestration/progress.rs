//! How far a call has come, and the values that it holds. What it is not: the work of nodes.

use super::data::Datum;
use super::graph::{Graph, Origin, Source};
use super::memory::MemoryPermit;
use super::messages::MessageParts;
use super::ports::RAW;
use super::property::OwnValues;
use serde_json::{Map, Value};
use std::time::Instant;

/// What a node has given.
#[derive(Debug, Clone, Default)]
pub(super) enum Output {
    /// Nothing yet, or it was left out: all of it is null.
    #[default]
    Nothing,
    One(Datum),
    Named(Vec<(&'static str, Datum)>),
    /// The condition of a branch.
    Condition(bool),
}

impl Output {
    pub(super) fn value(&self, field: Option<&str>) -> Datum {
        match (self, field) {
            (Self::Nothing | Self::Condition(_), _) => Datum::null(),
            (Self::One(value), None) => value.clone(),
            (Self::One(value), Some(field)) => value.member(field),
            (Self::Named(values), Some(field)) => {
                let found = values.iter().find(|(name, _)| *name == field);
                found.map_or_else(Datum::null, |(_, value)| value.clone())
            }
            (Self::Named(values), None) => object(values.iter().map(|(name, value)| (*name, value))),
        }
    }

    fn values(&self) -> impl Iterator<Item = &Datum> {
        let (one, named) = match self {
            Self::Nothing | Self::Condition(_) => (None, None),
            Self::One(value) => (Some(value), None),
            Self::Named(values) => (None, Some(values)),
        };
        one.into_iter()
            .chain(named.into_iter().flatten().map(|(_, value)| value))
    }

    fn values_mut(&mut self) -> impl Iterator<Item = &mut Datum> {
        let (one, named) = match self {
            Self::Nothing | Self::Condition(_) => (None, None),
            Self::One(value) => (Some(value), None),
            Self::Named(values) => (None, Some(values)),
        };
        one.into_iter()
            .chain(named.into_iter().flatten().map(|(_, value)| value))
    }
}

/// All values of a node as one; other forms of the same are left out.
pub(super) fn object<'v>(values: impl Iterator<Item = (&'static str, &'v Datum)>) -> Datum {
    let plain = values.filter(|(name, _)| !RAW.contains(name));
    let map: Map<String, Value> = plain
        .map(|(name, value)| (name.to_owned(), value.to_json()))
        .collect();
    Datum::json(Value::Object(map))
}

/// When nodes run: before the service is called, or when it has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Request,
    Response,
}

/// What a node waits for.
#[derive(Debug)]
pub(super) enum Pending {
    Call,
    Lookup,
    Store(Datum),
}

/// How far a call has come.
#[derive(Debug)]
pub(super) struct Progress {
    /// The nodes that run are those of this stage.
    pub(super) nodes: Stage,
    /// The place of the next node among them.
    pub(super) next: usize,
    pub(super) outputs: Vec<Output>,
    pub(super) pending: Option<Pending>,
    pub(super) request: MessageParts,
    pub(super) response: MessageParts,
    pub(super) own: OwnValues,
    pub(super) steps: u64,
    /// When the first server of the stage was called.
    pub(super) began: Option<Instant>,
    /// The response is to be worked on.
    pub(super) awaits_response: bool,
    /// The response has no body, whatever its headers say.
    pub(super) is_bodyless: bool,
    /// What is counted of its values while something is waited for.
    pub(super) held: Option<MemoryPermit>,
}

impl Progress {
    /// A call of so many nodes whose programs have so many steps.
    pub(super) fn new(nodes: usize, steps: u64) -> Self {
        Self {
            nodes: Stage::Request,
            next: 0,
            outputs: vec![Output::Nothing; nodes],
            pending: None,
            request: MessageParts::new(),
            response: MessageParts::new(),
            own: OwnValues::new(),
            steps,
            began: None,
            awaits_response: false,
            is_bodyless: false,
            held: None,
        }
    }

    /// Makes what it holds small while something is waited for: values that no node will read are dropped, and large ones are
    /// kept as texts. Returns about how many bytes they take.
    pub(super) fn shrink(&mut self, graph: &Graph) -> usize {
        // The next node has its values already if it waits for something.
        let next = self.next + usize::from(self.pending.is_some());
        let is_early = self.nodes == Stage::Request;
        let left = if is_early { &graph.before } else { &graph.after };
        let late = if is_early { &graph.after[..] } else { &[] };
        let left = left.get(next..).unwrap_or_default().iter().chain(late);
        let mut inputs: Vec<_> = left.map(|index| &graph.inputs[*index]).collect();
        if is_early {
            inputs.push(&graph.service_request);
        }
        inputs.push(&graph.response);
        let sources: Vec<&Source> = inputs.iter().flat_map(|inputs| inputs.sources()).collect();
        let is_read = |from: Origin, name: &str| {
            let reads = |source: &&&Source| match &source.field {
                Some(field) => field == name,
                None => !RAW.contains(&name),
            };
            sources
                .iter()
                .filter(|source| source.from == from)
                .any(|it| reads(&it))
        };
        for (index, output) in self.outputs.iter_mut().enumerate() {
            let from = Origin::Node(index);
            match output {
                Output::One(_) if !sources.iter().any(|source| source.from == from) => {
                    *output = Output::Nothing
                }
                Output::Named(values) => values.retain(|(name, _)| is_read(from, name)),
                _ => {}
            }
        }
        self.request.retain(|name, _| is_read(Origin::Request, name));
        self.response
            .retain(|name, _| is_read(Origin::ServiceResponse, name));
        self.pack(&graph.is_fixed)
    }

    fn pack(&mut self, is_fixed: &[bool]) -> usize {
        let outputs = self.outputs.iter_mut().zip(is_fixed);
        let made = outputs.filter(|(_, is_fixed)| !**is_fixed);
        let outputs = made.flat_map(|(output, _)| output.values_mut());
        let parts = self.request.values_mut().chain(self.response.values_mut());
        for value in outputs.chain(parts).chain(self.own.values_mut()) {
            *value = std::mem::replace(value, Datum::null()).packed();
        }
        let pending = match &mut self.pending {
            Some(Pending::Store(value)) => {
                *value = std::mem::replace(value, Datum::null()).packed();
                Some(&*value)
            }
            _ => None,
        };
        let outputs = self.outputs.iter().zip(is_fixed);
        let made = outputs.filter(|(_, is_fixed)| !**is_fixed);
        let outputs = made.flat_map(|(output, _)| output.values());
        let parts = self.request.values().chain(self.response.values());
        let values = outputs.chain(parts).chain(self.own.values()).chain(pending);
        values.map(Datum::size).sum()
    }
}
