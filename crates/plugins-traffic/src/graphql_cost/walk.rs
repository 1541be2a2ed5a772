//! What a query costs: a walk through its selections, beside the types of its schema and the weights of their fields.
//!
//! The cost of a field is the sum of the costs below it, times its factor, plus its own. Fragments cost nothing
//! themselves; what they select counts wherever they are spread.

use super::schema::Types;
use super::{Strategy, Weight};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use weir_plugin::graphql::{Argument, OperationTree, Selection, Tree};

/// Selections, and arguments of them, that are looked at for one query at most.
const MAX_VISITS: usize = 20_000;
/// Selections within each other at most, through fragments too.
const MAX_LEVELS: usize = 300;
/// As many nodes of weights that a selection is looked up in count as one selection more.
const NODES_OF_VISIT: usize = 8;
/// Costs beyond this are told as this.
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

/// Weights by where they apply: a type, and then fields from one to the next.
#[derive(Debug, Default, PartialEq)]
pub(super) struct WeightTree {
    /// The first node is the root, which has no weight.
    nodes: Vec<Node>,
}

#[derive(Debug, Default, PartialEq)]
struct Node {
    weight: Option<Weight>,
    /// Names from the root on.
    depth: usize,
    children: HashMap<String, usize>,
}

impl WeightTree {
    pub(super) fn new(weights: &[Weight]) -> Self {
        let mut tree = Self {
            nodes: vec![Node::default()],
        };
        for weight in weights {
            let mut at = 0;
            for name in weight.path.split('.') {
                let depth = tree.nodes[at].depth + 1;
                let next = tree.nodes[at].children.get(name).copied();
                at = next.unwrap_or_else(|| {
                    tree.nodes.push(Node {
                        depth,
                        ..Node::default()
                    });
                    let made = tree.nodes.len() - 1;
                    tree.nodes[at].children.insert(name.to_owned(), made);
                    made
                });
            }
            tree.nodes[at].weight = Some(weight.clone());
        }
        tree
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.len() < 2
    }

    /// The nodes that a field leads to: from those before it by its name, and from the root by its type.
    fn advance(&self, before: &[usize], name: &str, type_name: Option<&str>) -> Vec<usize> {
        let from_before = before
            .iter()
            .filter_map(|at| self.nodes[*at].children.get(name).copied());
        let mut nodes: Vec<usize> = from_before.collect();
        self.add_seed(&mut nodes, type_name);
        nodes
    }

    /// Adds the node of a type, unless it is there.
    fn add_seed(&self, nodes: &mut Vec<usize>, type_name: Option<&str>) {
        if let Some(seed) = self.seed(type_name)
            && !nodes.contains(&seed)
        {
            nodes.push(seed);
        }
    }

    fn seed(&self, type_name: Option<&str>) -> Option<usize> {
        self.nodes.first()?.children.get(type_name?).copied()
    }

    /// The weights that apply, the ones with longer paths last.
    fn weights(&self, at: &[usize]) -> Vec<&Weight> {
        let mut found: Vec<&Node> = at.iter().map(|at| &self.nodes[*at]).collect();
        found.sort_by_key(|node| node.depth);
        found
            .into_iter()
            .filter_map(|node| node.weight.as_ref())
            .collect()
    }
}

/// All that a walk knows.
pub(super) struct Walk<'w, 'd> {
    pub(super) strategy: Strategy,
    pub(super) weights: &'w WeightTree,
    /// `None`: no weight applies anywhere.
    pub(super) types: Option<&'w Types>,
    pub(super) tree: &'w Tree<'d>,
    /// What the call gives for variables.
    pub(super) variables: Option<&'w Map<String, Value>>,
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
        variables: Option<&'w Map<String, Value>>,
    ) -> Self {
        Self {
            strategy,
            weights,
            types,
            tree,
            variables,
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
        let standard = || defaults?.get(name).copied();
        // What is less than nothing would make the rest of the query free.
        given.or_else(standard).filter(|number| *number >= 0.0)
    }

    fn number(&self, value: &Argument<'d>) -> Option<f64> {
        match value {
            Argument::Number(number) => Some(*number),
            Argument::Variable(name) => match self.variables.and_then(|given| given.get(*name)) {
                Some(Value::Number(number)) => number.as_f64(),
                Some(Value::String(text)) => text.parse().ok(),
                Some(Value::Null) | None => match (*self.defaults.get(name)?)? {
                    Argument::Number(number) => Some(number),
                    Argument::Variable(_) => None,
                },
                Some(_) => None,
            },
        }
    }
}

/// That no argument stands twice, which GraphQL forbids.
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
mod tests {
    use super::*;
    use serde_json::json;

    fn weight(path: &str, add: f64, multiply: f64, by: &[&str]) -> Weight {
        Weight {
            path: path.to_owned(),
            add,
            multiply,
            multiply_arguments: by.iter().map(|it| (*it).to_owned()).collect(),
            ..Weight::default()
        }
    }

    /// A schema of people with vehicles with films.
    fn types() -> Types {
        let field = |name: &str, of: &str| json!({"name": name, "args": [], "type": {"name": of}});
        let paged = |name: &str, of: &str| {
            json!({"name": name, "args": [{"name": "first", "defaultValue": "4"}],
                "type": {"kind": "NON_NULL", "ofType": {"kind": "LIST", "ofType": {"name": of}}}})
        };
        let schema = json!({"data": {"__schema": {
            "queryType": {"name": "Root"},
            "mutationType": {"name": "Change"},
            "types": [
                {"name": "Root", "fields": [paged("allPeople", "People"), field("node", "Node")]},
                {"name": "Change", "fields": [field("person", "Person")]},
                {"name": "People", "fields": [field("people", "Person")]},
                {"name": "Node", "fields": [field("id", "ID")]},
                {"name": "Person", "fields": [
                    field("id", "ID"), field("name", "String"), paged("vehicleConnection", "Vehicles"),
                ]},
                {"name": "Vehicles", "fields": [field("vehicles", "Vehicle")]},
                {"name": "Vehicle", "fields": [field("name", "String"), paged("filmConnection", "Films")]},
                {"name": "Films", "fields": [field("films", "Film")]},
                {"name": "Film", "fields": [field("title", "String")]},
                {"name": "ID", "fields": null},
            ],
        }}});
        Types::read(schema.to_string().as_bytes()).expect("a schema")
    }

    fn cost_of(
        strategy: Strategy,
        weights: &[Weight],
        query: &str,
        variables: &Value,
        name: Option<&str>,
    ) -> Result<f64, NoCost> {
        let (weights, types) = (WeightTree::new(weights), types());
        let tree = Tree::read(query).expect(query);
        Walk::new(strategy, &weights, Some(&types), &tree, variables.as_object()).cost(name)
    }

    const PEOPLE: &str = "query { allPeople(first: 100) { people { name vehicleConnection(first: 10) { vehicles { name \
                          filmConnection(first: 5) { films { title } } } } } } }";

    #[test]
    fn costs_are_those_of_the_originals() {
        let connections = [
            "Root.allPeople",
            "Person.vehicleConnection",
            "Vehicle.filmConnection",
        ];
        let paged = connections
            .map(|path| weight(path, 1.0, 1.0, &["first"]))
            .to_vec();
        let (complexity, nodes) = (Strategy::Complexity, Strategy::NodeQuantifier);
        for (strategy, weights, query, variables, expected) in [
            (complexity, &vec![], PEOPLE, json!(null), 10.0),
            (complexity, &vec![], "{ a b { c } }", json!(null), 4.0),
            // ((2 * 5 + 1 + 1 + 1) * 10 + 1 + 1 + 1) * 100 + 1 + 1
            (complexity, &paged, PEOPLE, json!(null), 13_302.0),
            (nodes, &vec![], PEOPLE, json!(null), 0.0),
            // As many queries as it takes: 1, one for each of 100, one for each of 1,000.
            (nodes, &paged, PEOPLE, json!(null), 1_101.0),
            (complexity, &paged, "{ allPeople { people } }", json!(null), 6.0),
            (
                complexity,
                &paged,
                "query($n: Int) { allPeople(first: $n) { people } }",
                json!({"n": 7}),
                9.0,
            ),
            (
                complexity,
                &paged,
                "query($n: Int) { allPeople(first: $n) { people } }",
                json!({"n": "7"}),
                9.0,
            ),
            (
                complexity,
                &paged,
                "query($n: Int = 3) { allPeople(first: $n) { people } }",
                json!({}),
                5.0,
            ),
            (
                complexity,
                &paged,
                "{ allPeople(first: -9) { people } }",
                json!(null),
                3.0,
            ),
            (
                complexity,
                &paged,
                "{ allPeople(first: 1e300) { people } }",
                json!(null),
                MAX_COST,
            ),
        ] {
            assert_eq!(
                cost_of(strategy, weights, query, &variables, None),
                Ok(expected),
                "{strategy:?} {query} {variables}"
            );
        }
    }

    #[test]
    fn weights_apply_where_their_paths_lead() {
        let pinned = vec![
            weight("Person.name", 5.0, 1.0, &[]),
            weight("Root.allPeople.people.name", 50.0, 1.0, &[]),
        ];
        let (person, root) = (
            vec![weight("Person", 9.0, 1.0, &[])],
            vec![weight("Root", 0.0, 2.0, &[])],
        );
        for (weights, query, expected) in [
            (&pinned, "{ allPeople { people { name } } }", 53.0),
            (&pinned, "mutation { person { name } }", 7.0),
            // In a fragment, fields are those of its type.
            (&pinned, "{ node { ... on Person { name } } }", 7.0),
            (
                &pinned,
                "{ node { ...P ...P } } fragment P on Person { name }",
                12.0,
            ),
            // Its weight for names counts once, in whichever order the types of fragments come.
            (
                &pinned,
                "{ allPeople { people { ... on Vehicle { ... on Person { ... on Vehicle { ... on Person { name } } } } } } }",
                53.0,
            ),
            (&person, "{ allPeople { people { id } } }", 12.0),
            (&root, "{ node { id } }", 4.0),
        ] {
            let found = cost_of(Strategy::Complexity, weights, query, &Value::Null, None);
            assert_eq!(found, Ok(expected), "{query}");
        }
    }

    #[test]
    fn the_operation_that_is_meant_counts_or_the_dearest() {
        let query = "query A { a } query B { a b c }";
        for (name, expected) in [(Some("A"), 2.0), (Some("B"), 4.0), (Some("C"), 4.0), (None, 4.0)] {
            let found = cost_of(Strategy::Complexity, &[], query, &Value::Null, name);
            assert_eq!(found, Ok(expected), "{name:?}");
        }
    }

    #[test]
    fn walks_end() {
        let doubling: String = (0..40)
            .map(|it| format!("fragment F{it} on T {{ ...F{0} ...F{0} }} ", it + 1))
            .collect();
        let chain: String = (0..900)
            .map(|it| format!("fragment F{it} on T {{ a {{ ...F{} }} }} ", it + 1))
            .collect();
        // Each argument is a visit: 3,000 of them, seven times.
        let arguments: String = (0..3_000).map(|it| format!("a{it}: $v ")).collect();
        let variables: String = (0..9_800).map(|it| format!("$v{it}: Int ")).collect();
        for (query, expected) in [
            (
                format!(
                    "query($v: Int) {{ ...A ...A ...A ...A ...A ...A ...A }} fragment A on Root {{ allPeople({arguments}) {{ a }} }}"
                ),
                NoCost::TooLarge,
            ),
            (
                format!(
                    "query({variables}) {{ allPeople({}) {{ a }} }}",
                    "first: $v9799 ".repeat(9_800)
                ),
                NoCost::Twice,
            ),
            (
                "{ allPeople(first: 2, first: 20) { people } }".to_owned(),
                NoCost::Twice,
            ),
            (
                "query($n: Int = 1, $n: Int = 9) { allPeople(first: $n) { people } }".to_owned(),
                NoCost::Twice,
            ),
            (
                format!("{{ ...F0 }} {doubling} fragment F40 on T {{ a }}"),
                NoCost::TooLarge,
            ),
            (format!("{{ ...F0 }} {chain}"), NoCost::TooLarge),
            (
                "{ ...F } fragment F on T { a { ...F } }".to_owned(),
                NoCost::Cycle,
            ),
        ] {
            let found = cost_of(Strategy::Complexity, &[], &query, &Value::Null, None);
            assert_eq!(found, Err(expected));
        }
    }

    /// Nodes of weights from which no field leads on are work all the same.
    #[test]
    fn types_of_fragments_within_each_other_count_once() {
        let weights = [
            weight("Person.name", 5.0, 1.0, &[]),
            weight("Film.title", 5.0, 1.0, &[]),
        ];
        let (weights, types) = (WeightTree::new(&weights), types());
        let text = format!(
            "{{ {} a {} }}",
            "... on Person { ... on Film { ".repeat(100),
            "} } ".repeat(100)
        );
        let fields = text.replace(" a ", &" name".repeat(12_000));
        let tree = Tree::read(&fields).expect("a document");
        let mut walk = Walk::new(Strategy::Complexity, &weights, Some(&types), &tree, None);
        // With a node for each of the 200 fragments, each field would be 26 visits.
        assert_eq!(walk.cost(None), Ok(60_001.0));
    }
}
