//! Computes the cost of a query by walking its selections along with the types of the schema and the weights of their
//! fields.
//!
//! The cost of a field is the sum of the costs below it, times its factor, plus its own. Fragments cost nothing
//! themselves; what they select counts at every place that uses them.

use super::Strategy;
use super::schema::Types;
use super::weight_tree::WeightTree;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use weir_plugin::graphql::{Argument, OperationTree, Selection, Tree};

/// Selections, and arguments of them, that are looked at for one query at most.
const MAX_VISITS: usize = 20_000;
/// Selections within each other at most, through fragments too.
const MAX_LEVELS: usize = 300;
/// As many nodes of weights that a selection is looked up in count as one selection more.
const NODES_OF_VISIT: usize = 8;
/// The highest cost that is reported.
pub(super) const MAX_COST: f64 = (1_u64 << 40) as f64;

/// Why a query has no cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoCost {
    /// A fragment is spread within itself.
    Cycle,
    /// It selects too much, or too deep.
    TooLarge,
    /// A field has an argument twice, or an operation has a variable twice: servers would differ about which one counts.
    Twice,
}

/// Whether numbers count that a query does not write out.
#[derive(Clone, Copy)]
pub(super) enum Unwritten<'w> {
    /// Those count that the call gives for variables, and the defaults of variables and arguments.
    Counts(Option<&'w Map<String, Value>>),
    /// None does.
    CountsNot,
}

/// All that a walk knows.
pub(super) struct Walk<'w, 'd> {
    pub(super) strategy: Strategy,
    pub(super) weights: &'w WeightTree,
    /// `None`: no weight applies anywhere.
    pub(super) types: Option<&'w Types>,
    pub(super) tree: &'w Tree<'d>,
    pub(super) unwritten: Unwritten<'w>,
    visits: usize,
    /// Fragments within which the walk is.
    open: Vec<&'d str>,
    /// The variables of the operation, with what they are if a call does not say.
    defaults: HashMap<&'d str, Option<Argument<'d>>>,
}

/// What applies to a selection.
#[derive(Clone, Copy)]
struct SelectionContext<'p> {
    /// The type to which the selected fields belong.
    type_name: Option<&'p str>,
    /// Nodes of weights that lead on from here.
    nodes: &'p [usize],
    /// As how many the place is resolved.
    times: f64,
    level: usize,
}

/// What a field adds and multiplies.
struct Amounts {
    add: f64,
    multiply: f64,
    /// Whether an argument said by how much.
    is_quantified: bool,
}

impl<'w, 'd> Walk<'w, 'd> {
    pub(super) fn new(
        strategy: Strategy,
        weights: &'w WeightTree,
        types: Option<&'w Types>,
        tree: &'w Tree<'d>,
        unwritten: Unwritten<'w>,
    ) -> Self {
        Self {
            strategy,
            weights,
            types,
            tree,
            unwritten,
            visits: 0,
            open: Vec::new(),
            defaults: HashMap::new(),
        }
    }

    /// The cost of the operation of this name; without one, or if there is no such operation, that of the one that costs
    /// most.
    pub(super) fn cost(&mut self, name: Option<&str>) -> Result<f64, NoCost> {
        let tree = self.tree;
        let named = name.and_then(|name| tree.operations.iter().find(|it| it.name == Some(name)));
        let operations = match named {
            Some(operation) => std::slice::from_ref(operation),
            None => tree.operations.as_slice(),
        };
        let mut most = 0.0_f64;
        for operation in operations {
            most = most.max(self.operation(operation)?);
        }
        Ok(most.min(MAX_COST))
    }

    fn operation(&mut self, operation: &'w OperationTree<'d>) -> Result<f64, NoCost> {
        self.defaults.clear();
        for variable in &operation.variables {
            if self.defaults.insert(variable.name, variable.default).is_some() {
                return Err(NoCost::Twice);
            }
        }
        let types = self.types;
        let type_name = types.map(|types| types.root(operation.kind));
        let nodes: Vec<usize> = self.weights.seed(type_name).into_iter().collect();
        let amounts = self.amounts(&nodes, &[], None);
        let place = SelectionContext {
            type_name,
            nodes: &nodes,
            times: 1.0,
            level: 0,
        };
        self.total(&amounts, &operation.selections, place)
    }

    /// The cost of something that adds and multiplies so, with what is selected in it.
    fn total(
        &mut self,
        amounts: &Amounts,
        selections: &'w [Selection<'d>],
        place: SelectionContext<'_>,
    ) -> Result<f64, NoCost> {
        match self.strategy {
            Strategy::Complexity => {
                let below = self.sum(selections, place)?;
                Ok(bounded(below * amounts.multiply + amounts.add))
            }
            Strategy::NodeQuantifier => {
                let (own, times) = match amounts.is_quantified {
                    true => (place.times * amounts.add, place.times * amounts.multiply),
                    false => (0.0, place.times),
                };
                let times = bounded(times);
                Ok(bounded(
                    own + self.sum(selections, SelectionContext { times, ..place })?,
                ))
            }
        }
    }

    fn sum(&mut self, selections: &'w [Selection<'d>], place: SelectionContext<'_>) -> Result<f64, NoCost> {
        if place.level > MAX_LEVELS {
            return Err(NoCost::TooLarge);
        }
        let mut sum = 0.0;
        for selection in selections {
            self.visit(1 + place.nodes.len() / NODES_OF_VISIT)?;
            sum = bounded(sum + self.selection(selection, place)?);
        }
        Ok(sum)
    }

    fn visit(&mut self, count: usize) -> Result<(), NoCost> {
        self.visits += count;
        match self.visits > MAX_VISITS {
            true => Err(NoCost::TooLarge),
            false => Ok(()),
        }
    }

    fn selection(
        &mut self,
        selection: &'w Selection<'d>,
        place: SelectionContext<'_>,
    ) -> Result<f64, NoCost> {
        match selection {
            Selection::Field {
                name,
                arguments,
                selections,
            } => {
                self.visit(arguments.len())?;
                check_arguments(arguments)?;
                let types = self.types;
                let field = types.and_then(|types| types.field(place.type_name?, name));
                let type_name = field.map(|field| field.type_name.as_str());
                let nodes = self.weights.advance(place.nodes, name, type_name);
                let defaults = field.map(|field| &field.defaults);
                let amounts = self.amounts(&nodes, arguments, defaults);
                let below = SelectionContext {
                    type_name,
                    nodes: &nodes,
                    times: place.times,
                    level: place.level + 1,
                };
                self.total(&amounts, selections, below)
            }
            Selection::Inline { on, selections } => self.fragment(*on, selections, place),
            Selection::Spread(name) => {
                let tree = self.tree;
                let Some((name, fragment)) = tree.fragments.get_key_value(name) else {
                    return Ok(0.0);
                };
                if self.open.contains(name) {
                    return Err(NoCost::Cycle);
                }
                self.open.push(name);
                let sum = self.fragment(Some(fragment.on), &fragment.selections, place);
                self.open.pop();
                sum
            }
        }
    }

    /// The sum of what a fragment selects. Its fields are those of its own type, if the schema knows that.
    fn fragment(
        &mut self,
        on: Option<&str>,
        selections: &'w [Selection<'d>],
        place: SelectionContext<'_>,
    ) -> Result<f64, NoCost> {
        let types = self.types;
        let on = on.filter(|on| Some(*on) != place.type_name);
        let known = on.filter(|on| types.is_some_and(|types| types.has(on)));
        let level = place.level + 1;
        let Some(type_name) = known else {
            return self.sum(selections, SelectionContext { level, ..place });
        };
        let mut nodes = place.nodes.to_vec();
        self.weights.add_seed(&mut nodes, Some(type_name));
        let narrowed = SelectionContext {
            type_name: Some(type_name),
            nodes: &nodes,
            times: place.times,
            level,
        };
        self.sum(selections, narrowed)
    }

    fn amounts(
        &self,
        nodes: &[usize],
        arguments: &[(&'d str, Argument<'d>)],
        defaults: Option<&HashMap<String, f64>>,
    ) -> Amounts {
        let mut amounts = Amounts {
            add: 1.0,
            multiply: 1.0,
            is_quantified: false,
        };
        let (mut add_arguments, mut multiply_arguments) = (&[][..], &[][..]);
        for weight in self.weights.weights(nodes) {
            (amounts.add, amounts.multiply) = (weight.add, weight.multiply);
            if !weight.add_arguments.is_empty() {
                add_arguments = &weight.add_arguments;
            }
            if !weight.multiply_arguments.is_empty() {
                multiply_arguments = &weight.multiply_arguments;
            }
        }
        let value = |name: &String| self.argument(name, arguments, defaults);
        for number in add_arguments.iter().filter_map(value) {
            amounts.add += number;
        }
        for number in multiply_arguments.iter().filter_map(value) {
            amounts.multiply *= number;
            amounts.is_quantified = true;
        }
        (amounts.add, amounts.multiply) = (bounded(amounts.add), bounded(amounts.multiply));
        amounts
    }

    /// The number that an argument stands for.
    fn argument(
        &self,
        name: &str,
        arguments: &[(&'d str, Argument<'d>)],
        defaults: Option<&HashMap<String, f64>>,
    ) -> Option<f64> {
        let given = arguments.iter().find(|(it, _)| *it == name);
        let given = given.and_then(|(_, value)| self.number(value));
        let standard = || match self.unwritten {
            Unwritten::Counts(_) => defaults?.get(name).copied(),
            Unwritten::CountsNot => None,
        };
        // What is less than nothing would make the rest of the query free.
        given.or_else(standard).filter(|number| *number >= 0.0)
    }

    fn number(&self, value: &Argument<'d>) -> Option<f64> {
        match (value, self.unwritten) {
            (Argument::Number(number), _) => Some(*number),
            (Argument::Variable(_), Unwritten::CountsNot) => None,
            (Argument::Variable(name), Unwritten::Counts(variables)) => {
                match variables.and_then(|given| given.get(*name)) {
                    Some(Value::Number(number)) => number.as_f64(),
                    Some(Value::String(text)) => text.parse().ok(),
                    Some(Value::Null) | None => match (*self.defaults.get(name)?)? {
                        Argument::Number(number) => Some(number),
                        Argument::Variable(_) => None,
                    },
                    Some(_) => None,
                }
            }
        }
    }
}

/// That no argument appears twice, which GraphQL forbids.
fn check_arguments(arguments: &[(&str, Argument<'_>)]) -> Result<(), NoCost> {
    let mut names = HashSet::new();
    match arguments.len() < 2 || arguments.iter().all(|(name, _)| names.insert(*name)) {
        true => Ok(()),
        false => Err(NoCost::Twice),
    }
}

/// A number that can be counted with.
fn bounded(number: f64) -> f64 {
    match number.is_nan() {
        true => MAX_COST,
        false => number.clamp(0.0, MAX_COST),
    }
}

#[cfg(test)]
mod tests;
