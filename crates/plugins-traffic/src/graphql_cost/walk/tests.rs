//! What queries cost, beside the numbers of the originals' documentation.

use super::super::Weight;
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
    let given = Unwritten::Counts(variables.as_object());
    Walk::new(strategy, &weights, Some(&types), &tree, given).cost(name)
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
fn numbers_that_a_query_does_not_write_may_be_left_out() {
    let weights = WeightTree::new(&[weight("Root.allPeople", 1.0, 1.0, &["first"])]);
    let types = types();
    for (query, given, counted, left_out) in [
        ("{ allPeople(first: 7) { people } }", json!({}), 9.0, 9.0),
        ("{ allPeople { people } }", json!({}), 6.0, 3.0),
        (
            "query($n: Int) { allPeople(first: $n) { people } }",
            json!({"n": 7}),
            9.0,
            3.0,
        ),
        (
            "query($n: Int = 8) { allPeople(first: $n) { people } }",
            json!({}),
            10.0,
            3.0,
        ),
    ] {
        let tree = Tree::read(query).expect(query);
        for (unwritten, expected) in [
            (Unwritten::Counts(given.as_object()), counted),
            (Unwritten::CountsNot, left_out),
        ] {
            let mut walk = Walk::new(Strategy::Complexity, &weights, Some(&types), &tree, unwritten);
            assert_eq!(walk.cost(None), Ok(expected), "{query}");
        }
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
    let mut walk = Walk::new(
        Strategy::Complexity,
        &weights,
        Some(&types),
        &tree,
        Unwritten::Counts(None),
    );
    // With a node for each of the 200 fragments, each field would be 26 visits.
    assert_eq!(walk.cost(None), Ok(60_001.0));
}
