//! Compiling again what was compiled before: nothing is made again that has not changed, and all is as if it were.

mod common;

use common::{call, registry};
use serde_json::{Value, json};
use std::sync::Arc;
use weir_model::Model;
use weir_snapshot::{Action, CompileCache, PersistentState, Snapshot, compile, recompile};

/// A model that shares equal values with the previous one, as a dialect passes it.
fn shared_with(before: &Model, text: &Value) -> Model {
    fn keep<T: PartialEq>(fresh: &mut [Arc<T>], before: &[Arc<T>]) {
        for it in fresh {
            if let Some(known) = before.iter().find(|known| **known == *it) {
                *it = Arc::clone(known);
            }
        }
    }
    let mut model = common::model(text.clone());
    keep(&mut model.routes, &before.routes);
    keep(&mut model.services, &before.services);
    keep(&mut model.upstreams, &before.upstreams);
    model
}

/// All that a route is, in words.
fn describe_routes(snapshot: &Snapshot) -> Vec<String> {
    let routes = snapshot.routes.iter().map(|route| {
        let action = match &route.rules.action {
            Action::Forward(it) => {
                let upstream = &snapshot.upstreams[it.upstream as usize];
                let targets: Vec<_> = upstream.targets.iter().map(|it| &it.host).collect();
                format!("{} {targets:?} {:?} {}", upstream.name, it.path.base, it.retries)
            }
            other => format!("{other:?}"),
        };
        let steps = route.chain.steps.iter().map(|step| {
            let instance = step.instance(None);
            instance.map(|it| (it.id.clone(), it.phases.request, it.phases.response))
        });
        let steps: Vec<_> = steps.collect();
        format!(
            "{} {} {action} {steps:?}",
            route.series_names.1, route.series_names.0
        )
    });
    let mut lines: Vec<String> = routes.collect();
    for path in ["GET h/a", "GET h/b", "GET h/c", "GET h/a/x"] {
        let found = snapshot
            .tables
            .iter()
            .find_map(|table| table.find(&mut call(path)));
        lines.push(format!("{path} {found:?}"));
    }
    lines
}

fn route(name: &str, service: &str, plugins: Value) -> Value {
    json!({"name": name, "match": [{"path": format!("/{name}")}], "to": {"service": service}, "plugins": plugins})
}

fn phased(request: bool) -> Value {
    json!({"name": "phased", "config": {"request": request, "response": true}})
}

/// Models, each of which differs from the one before it.
fn changes() -> Vec<Value> {
    let one = |path: &str| json!({"name": "s", "url": format!("http://a.test{path}")});
    let other = |port: u16| json!({"name": "t", "url": format!("http://b.test:{port}")});
    let upstream = |host: &str| json!({"name": "u", "targets": [{"host": host, "port": 80}]});
    let third = json!({"name": "v", "upstream": "u"});
    let shared = |request| {
        let mut instance = phased(request);
        instance["id"] = "p".into();
        instance
    };
    let (inline, by_name) = (json!([{"use": phased(true)}]), json!([{"use": "p"}]));
    let needs = json!([{"use": {"name": "phased", "config": {"request": true, "wants_consumer": "c"}}}]);
    let none = json!([]);
    let a = route("a", "s", none.clone());
    let b = route("b", "t", inline.clone());
    let c = route("c", "v", by_name.clone());
    let consumer = |key: &str| json!({"name": "c", "id": "c", "username": "c", "credentials": [{"plugin": "phased", "config": {"key": key}}]});
    vec![
        json!({"services": [one("")], "routes": [a]}),
        json!({"services": [one(""), other(80)], "routes": [a, b]}),
        json!({"services": [other(80), one("")], "routes": [b, a]}),
        json!({"services": [one("/base"), other(80)], "routes": [a, b]}),
        json!({"services": [one("/base"), other(81)], "routes": [a, b]}),
        json!({"services": [one(""), other(81), third], "upstreams": [upstream("x")], "plugins": [shared(true)],
               "routes": [a, b, c]}),
        json!({"services": [one(""), other(81), third], "upstreams": [upstream("y")], "plugins": [shared(true)],
               "routes": [a, b, c]}),
        json!({"services": [one(""), other(81), third], "upstreams": [upstream("y")], "plugins": [shared(false)],
               "routes": [a, b, c]}),
        json!({"services": [third, one("")], "upstreams": [upstream("y")], "plugins": [shared(false)],
               "routes": [c, route("b", "s", inline), a]}),
        json!({"services": [one("")], "consumers": [without_name(consumer("k"))], "routes": [a, route("b", "s", needs.clone())]}),
        json!({"services": [one("")], "consumers": [without_name(consumer("l"))], "routes": [a, route("b", "s", needs)]}),
        json!({"services": [one("")], "routes": [a]}),
    ]
}

fn without_name(mut consumer: Value) -> Value {
    if let Some(fields) = consumer.as_object_mut() {
        fields.remove("name");
    }
    consumer
}

/// A route that sends calls to a wrong place is in the way of no other, then and later.
#[test]
fn a_destination_that_is_refused_is_forgotten() {
    let sends = |service: &str, host: &str| json!([{"use": {"name": "phased", "config": {"request": true, "sends_to": {"service": service, "host": {"fixed": host}}}}}]);
    let services = json!([{"name": "s", "url": "http://a.test"}, {"name": "t", "url": "http://b.test"}]);
    let with = |routes: Vec<Value>| common::model(json!({"services": services, "routes": routes}));
    let (registry, persistent, mut cache) = (registry(), PersistentState::default(), CompileCache::default());
    let mut again = |model: &Model| recompile(model, 7, &registry, &persistent, &mut cache).map(|it| it.0);
    let (good, other) = (route("a", "s", sends("s", "x")), route("b", "s", sends("t", "y")));
    let first = again(&with(vec![good.clone()])).expect("good");
    assert_eq!(first.destinations.len(), 1);
    for wrong in [sends("s", "a:b"), sends("gone", "x")] {
        let refused = again(&with(vec![route("w", "s", wrong), good.clone()]));
        let found = refused.err().expect("wrong");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].path.to_string().starts_with("routes[0].plugins[0]"),
            "{found:?}"
        );
    }
    let last = again(&with(vec![good, other])).expect("good");
    let hosts: Vec<_> = last
        .destinations
        .iter()
        .map(|it| format!("{:?}", it.upstream_host))
        .collect();
    assert_eq!(hosts, ["Fixed(\"x\")", "Fixed(\"y\")"]);
}

#[test]
fn what_is_compiled_again_equals_what_is_compiled_as_a_whole() {
    let (registry, persistent, mut cache) = (registry(), PersistentState::default(), CompileCache::default());
    let mut before = Model::default();
    for (step, text) in changes().iter().enumerate() {
        let model = shared_with(&before, text);
        let again = recompile(&model, 7, &registry, &persistent, &mut cache);
        let again = again.unwrap_or_else(|found| panic!("{step}: {found:?}")).0;
        let whole = compile(&model, &registry, &PersistentState::default());
        let whole = whole.unwrap_or_else(|found| panic!("{step}: {found:?}")).0;
        assert_eq!(describe_routes(&again), describe_routes(&whole), "{step}");
        assert_eq!(again.hash, 7);
        before = model;
    }
}

#[test]
fn only_what_has_changed_is_compiled() {
    let (registry, persistent, mut cache) = (registry(), PersistentState::default(), CompileCache::default());
    let texts = changes();
    let mut compiled = |before: &Model, step: usize| {
        let model = shared_with(before, &texts[step]);
        let snapshot = recompile(&model, 7, &registry, &persistent, &mut cache);
        (model, snapshot.unwrap_or_else(|found| panic!("{found:?}")).0)
    };
    let (model, first) = compiled(&Model::default(), 0);
    let (model, second) = compiled(&model, 1);
    assert!(Arc::ptr_eq(&first.routes[0], &second.routes[0]));
    assert!(Arc::ptr_eq(&first.upstreams[0], &second.upstreams[0]));
    let (model, third) = compiled(&model, 2);
    assert!(
        Arc::ptr_eq(&third.routes[1], &second.routes[0]),
        "places of routes do not matter"
    );
    assert!(Arc::ptr_eq(&third.routes[0], &second.routes[1]));
    let (_, fourth) = compiled(&model, 3);
    assert!(
        !Arc::ptr_eq(&third.routes[1], &fourth.routes[0]),
        "its service is another one"
    );
    assert!(Arc::ptr_eq(&third.routes[0], &fourth.routes[1]));
}

/// What was wrong is found again as long as it is wrong, and what it was compiled with is not used for something else.
/// The defect: instances were used again although the settings had made their configuration wrong.
#[test]
fn plugins_are_built_again_if_the_settings_say_otherwise() {
    let consumer = |name: &str| json!({"id": name, "username": name, "credentials": [{"plugin": "phased", "config": {"key": "k"}}]});
    let text = |keys_may_repeat: bool, plugins: &Value| {
        json!({
            "dialect_settings": [{"keys_may_repeat": keys_may_repeat}],
            "services": [{"name": "s", "url": "http://a.test"}],
            "consumers": [consumer("a"), consumer("b")],
            "plugins": [{"id": "p", "name": "phased", "config": {"indexes": true}}],
            "routes": [route("a", "s", plugins.clone())],
        })
    };
    for plugins in [
        json!([{"use": "p"}]),
        json!([{"use": {"name": "phased", "config": {"indexes": true}}}]),
    ] {
        let (registry, persistent, mut cache) =
            (registry(), PersistentState::default(), CompileCache::default());
        let mut before = Model::default();
        for keys_may_repeat in [true, false, true] {
            let model = shared_with(&before, &text(keys_may_repeat, &plugins));
            let compiled = recompile(&model, 0, &registry, &persistent, &mut cache);
            assert_eq!(compiled.is_ok(), keys_may_repeat, "{plugins}");
            before = model;
        }
    }
}

#[test]
fn what_is_wrong_is_found_again() {
    let (registry, persistent, mut cache) = (registry(), PersistentState::default(), CompileCache::default());
    let wrong = json!([{"use": {"name": "phased", "config": {"what": 1}}}]);
    let service = json!({"name": "s", "url": "http://a.test"});
    let good = json!({"services": [service], "routes": [route("a", "s", json!([]))]});
    let bad = json!({"services": [service], "routes": [route("a", "s", json!([])), route("b", "s", wrong)]});
    let mut before = Model::default();
    for (text, is_good) in [
        (&good, true),
        (&bad, false),
        (&bad, false),
        (&good, true),
        (&bad, false),
    ] {
        let model = shared_with(&before, text);
        let compiled = recompile(&model, 7, &registry, &persistent, &mut cache);
        assert_eq!(compiled.is_ok(), is_good);
        before = model;
    }
}
