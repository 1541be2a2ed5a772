//! Hostile calls, one for each engine whose work depends on what a call holds: each ends within the budget, and says so.
//! Steps are counted, not time.
#![cfg(test)]

use serde_json::json;
use weir_model::{Comparison, Operator, Predicate};
use weir_plugin::{Condition, Exchange, Plugin, Template, WORK_STEPS};
use weir_plugins_shared::expression::{Interpolated, RequestScope};
use weir_plugins_testkit::{build, exchange, prepare};

/// A POST of this body.
fn post(content_type: &str, body: String) -> Exchange {
    let mut exchange = exchange();
    prepare(&mut exchange, "POST /", &[("Content-Type", content_type)]);
    exchange.request.has_body = true;
    exchange.request.content_length = Some(body.len() as u64);
    exchange.request.body = Some(body.into_bytes());
    exchange
}

fn runs(plugin: &impl Plugin, config: &serde_json::Value, exchange: &mut Exchange) {
    let filter = build(plugin, config).expect("valid");
    let _what_came_of_it = filter.on_request(exchange);
}

fn validates(schema: &serde_json::Value, exchange: &mut Exchange) {
    let config = json!({ "body_schema": schema });
    runs(&crate::request_validation::RequestValidation, &config, exchange);
}

fn transforms(template: &str, exchange: &mut Exchange) {
    let config = json!({"request": {"input": "json", "template": template}});
    runs(&crate::body_transform::BodyTransform, &config, exchange);
}

fn holds(condition: &Predicate, exchange: &Exchange) {
    let condition = Condition::compile(condition).expect("valid");
    assert!(!condition.holds(exchange), "it would end early");
}

fn test(variable: &str, operator: Operator, value: serde_json::Value) -> Predicate {
    Predicate::Compare(Comparison {
        variable: variable.to_owned(),
        operator,
        value,
    })
}

/// A list of so many small lists.
fn lists(count: usize) -> String {
    format!("[{}]", vec!["[[1]]"; count].join(","))
}

/// Alternatives that lead back to themselves: three for each level of the body.
fn recursive_schema(word: &str) -> serde_json::Value {
    let below =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/definitions/n"}}});
    json!({
        "definitions": {"n": {word: [below, below, below]}},
        "$ref": "#/definitions/n",
    })
}

const JSON: &str = "application/json";

/// What is hostile, the call, and the work that it asks for.
type Case = (&'static str, Exchange, Box<dyn Fn(&mut Exchange)>);

/// Calls whose bodies are checked by a JSON Schema.
fn hostile_to_schemas() -> Vec<Case> {
    let deep = format!("{}1{}", "{\"a\":".repeat(20), "}".repeat(20));
    vec![
        (
            "JSON Schema, anyOf",
            post(JSON, deep.clone()),
            Box::new(|it| validates(&recursive_schema("anyOf"), it)),
        ),
        (
            "JSON Schema, oneOf",
            post(JSON, deep.clone()),
            Box::new(|it| validates(&recursive_schema("oneOf"), it)),
        ),
        (
            "JSON Schema, if and not",
            post(JSON, deep),
            Box::new(|it| {
                let again = json!({"required": ["a"], "properties": {"a": {"$ref": "#/definitions/n"}}});
                let n = json!({"if": again, "then": again, "else": {"not": again}});
                validates(&json!({"definitions": {"n": n}, "$ref": "#/definitions/n"}), it);
            }),
        ),
        (
            "JSON Schema, defaults",
            post(JSON, format!("[{}]", vec!["{}"; 2_000].join(","))),
            Box::new(|it| {
                let large = json!(vec![1; 1_000]);
                validates(&json!({"items": {"properties": {"a": {"default": large}}}}), it);
            }),
        ),
    ]
}

/// Calls that conditions look at, and that texts are made of.
fn hostile_to_texts() -> Vec<Case> {
    vec![
        (
            "expressions",
            exchange(),
            Box::new(|it| {
                let long = "('x'):rep(1000000)";
                let text = format!("$({})", vec![format!("#{long}"); 30].join(" + "));
                let text = Interpolated::parse(&text).expect("valid");
                assert!(text.render(&RequestScope(it), &mut Vec::new()).is_err());
            }),
        ),
        (
            "JSONPath",
            post(JSON, lists(20_000)),
            Box::new(|it| {
                let tests = (0..40).map(|_| test("post_arg...[*]", Operator::Has, json!("no")));
                holds(&Predicate::Any(tests.collect()), it);
            }),
        ),
        (
            "conditions over long texts",
            post(JSON, json!({"a": "x".repeat(1 << 20)}).to_string()),
            Box::new(|it| {
                let tests = (0..80).map(|_| test("post_arg.a", Operator::Matches, json!("y$")));
                holds(&Predicate::Any(tests.collect()), it);
            }),
        ),
        (
            "forms",
            post("application/x-www-form-urlencoded", "x=1&".repeat(1 << 18)),
            Box::new(|it| {
                let tests = (0..80).map(|_| test("post_arg_a", Operator::Equal, json!("1")));
                holds(&Predicate::Any(tests.collect()), it);
            }),
        ),
        (
            "templates",
            post(JSON, json!({"a": "x".repeat(1 << 20)}).to_string()),
            Box::new(|it| {
                Template::parse(&"${post_arg.a}".repeat(80)).render(it, &mut Vec::new());
            }),
        ),
    ]
}

/// Calls whose bodies are transformed.
fn hostile_to_transformations() -> Vec<Case> {
    vec![
        (
            "body transformation, loops",
            post(JSON, lists(1_000)),
            Box::new(|it| {
                let each = "{% for _, a in ipairs(context) do %}";
                transforms(&format!("{each}{each}{each}x{}", "{% end %}".repeat(3)), it);
            }),
        ),
        (
            "body transformation, copies",
            post(JSON, json!({"a": (0..10_000).collect::<Vec<_>>()}).to_string()),
            Box::new(|it| transforms("{% for i = 1, 1000 do %}{% local b = context %}{% end %}", it)),
        ),
        (
            "body transformation, output",
            post(JSON, json!({"a": "x".repeat(1 << 16)}).to_string()),
            Box::new(|it| transforms("{% for i = 1, 1000 do %}{* a *}{% end %}", it)),
        ),
    ]
}

#[test]
fn hostile_calls_end_within_the_budget() {
    let cases = [
        hostile_to_schemas(),
        hostile_to_texts(),
        hostile_to_transformations(),
    ];
    for (name, mut exchange, work) in cases.into_iter().flatten() {
        let body = exchange.request.body.as_ref().map_or(0, Vec::len);
        work(&mut exchange);
        let done = exchange.request.work.done();
        assert!(
            exchange.request.work.is_exhausted(),
            "{name} ends after {done} steps"
        );
        // What goes beyond is one value at most.
        assert!(
            done <= WORK_STEPS + 3 * body as u64 + 20_000,
            "{name} takes {done} steps"
        );
    }
}

#[test]
fn work_in_proportion_to_a_body_is_never_refused() {
    let spreads = "...none ".repeat(1 << 17);
    let fragments: String = (0..200)
        .map(|n| format!("fragment f{n} on T {{...f{}}}", n + 1))
        .collect();
    let fields: Vec<String> = (0..2_000).map(|n| format!("\"{n}\":1")).collect();
    let many_fields = format!("{{{}}}", fields.join(","));
    let cases: Vec<Case> = vec![
        (
            "JSON Schema, properties of a name",
            post(JSON, many_fields),
            Box::new(|it| {
                let known = (0..2_000).map(|n| (format!("k{n}"), json!({})));
                let known: serde_json::Map<_, _> = known.collect();
                validates(
                    &json!({"properties": known, "additionalProperties": {"type": "number"}}),
                    it,
                );
            }),
        ),
        (
            "JSON Schema",
            post(JSON, lists(100_000)),
            Box::new(|it| {
                let number = json!({"items": {"items": {"type": "integer"}}});
                validates(&json!({"type": "array", "items": number}), it);
            }),
        ),
        (
            "JSONPath",
            post(JSON, lists(100_000)),
            Box::new(|it| holds(&test("post_arg...[*]", Operator::Has, json!("no")), it)),
        ),
        (
            "XML",
            post("text/xml", format!("<a>{}</a>", "<b c='&#65;'/>".repeat(50_000))),
            Box::new(|it| {
                let config = json!({"request": {"input": "xml", "template": "{* #a.b *}"}});
                runs(&crate::body_transform::BodyTransform, &config, it);
            }),
        ),
        (
            "GraphQL",
            post(
                "application/graphql",
                format!("{{ ...f0 }} {fragments} fragment f200 on T {{ {spreads} a }}"),
            ),
            Box::new(|it| {
                let config = json!({"limit": 1_000, "window_seconds": 60, "max_body_bytes": 1 << 24});
                runs(&crate::graphql_limit::GraphqlLimit::default(), &config, it);
            }),
        ),
        (
            "body transformation",
            post(JSON, lists(20_000)),
            Box::new(|it| transforms("{% for _, a in ipairs(context) do %}{* #a *}{% end %}", it)),
        ),
    ];
    for (name, mut exchange, work) in cases {
        work(&mut exchange);
        let steps = &exchange.request.work;
        assert!(
            !steps.is_exhausted() && steps.done() > 100,
            "{name}: {} steps",
            steps.done()
        );
    }
}
