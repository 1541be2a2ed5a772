//! What becomes of services, upstreams, chains and consumers.

mod common;

use common::{call, model, registry, routes_of, snapshot};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_model::DialectName;
use weir_plugin::{ConsumerIdentity, Identity};
use weir_snapshot::{Action, Chain, PersistentState, Snapshot, compile};

/// A route to nowhere with this chain.
fn route_with(plugins: Value) -> Value {
    json!({"name": "r", "match": [{}], "to": {"respond": {"status": 503}}, "plugins": plugins})
}

fn phased(request: bool, response: bool) -> Value {
    json!({"use": {"name": "phased", "config": {"request": request, "response": response}}})
}

#[test]
fn services_lead_to_upstreams() {
    let snapshot = snapshot(json!({
        "upstreams": [{"name": "u", "scheme": "https", "targets": [
            {"host": "a.com", "port": 443}, {"host": "[::1]", "port": 444}, {"host": "10.0.0.1", "port": 80}
        ]}],
        "services": [
            {"name": "s1", "url": "http://b.com:81/base"},
            {"name": "s2", "upstream": "u", "path": "/p", "retries": 3, "timeouts": {"read_ms": 7}},
            {"name": "s3", "url": "http://b.com:81"},
        ],
        "routes": [
            {"name": "r1", "match": [{}], "to": {"service": "s1"}, "path": {"base": "/x", "strip_matched": true}},
            {"name": "r2", "match": [{}], "to": {"service": "s2"}},
            {"name": "r3", "match": [{}], "to": {"service": "s3"}, "timeouts": {"read_ms": 9}},
        ],
    }));
    let forwards = snapshot.routes.iter().map(|route| match &route.rules.action {
        Action::Forward(it) => (
            it.upstream,
            it.path.base.as_deref(),
            it.retries,
            it.timeouts.read_ms,
        ),
        other => panic!("{other:?}"),
    });
    assert_eq!(
        forwards.collect::<Vec<_>>(),
        [
            (1, Some("/base/x"), 1, 60_000),
            (0, Some("/p"), 3, 7),
            (1, None, 1, 9)
        ]
    );
    let names: Vec<_> = snapshot.upstreams.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["u", "http://b.com:81"], "one upstream for one server");
    let targets: Vec<_> = snapshot.upstreams[0]
        .targets
        .iter()
        .map(|it| {
            let header = String::from_utf8_lossy(&it.host_header).into_owned();
            (it.host.as_str(), header, it.address.map(|it| it.to_string()))
        })
        .collect();
    let (v6, v4) = ("[::1]:444".to_owned(), "10.0.0.1:80".to_owned());
    assert_eq!(
        targets,
        [
            ("a.com", "a.com".to_owned(), None),
            ("::1", v6.clone(), Some(v6)),
            ("10.0.0.1", v4.clone(), Some(v4)),
        ]
    );
    assert_eq!(
        (
            &*snapshot.routes[0].series_names.0,
            &*snapshot.routes[0].series_names.1
        ),
        ("s1", "r1")
    );
    assert!(Arc::ptr_eq(
        &snapshot.routes[0].rules.forwarded,
        &snapshot.routes[2].rules.forwarded
    ));
}

#[test]
fn routes_share_rules_if_these_are_equal() {
    let route = |name: &str, more: Value| {
        let mut route =
            json!({"name": name, "match": [{"path": format!("/{name}")}], "to": {"service": "s"}});
        let fields = more.as_object().expect("fields").clone();
        route.as_object_mut().expect("a route").extend(fields);
        route
    };
    let snapshot = snapshot(json!({
        "services": [{"name": "s", "url": "http://b.com:81"}, {"name": "t", "url": "http://c.com:81"}],
        "routes": [
            route("a", json!({})),
            route("b", json!({})),
            route("c", json!({"max_body_bytes": 5})),
            route("d", json!({"plugins": [phased(true, true)]})),
            route("e", json!({"to": {"service": "t"}})),
            route("f", json!({"priority": "low"})),
            route("g", json!({})),
        ],
    }));
    let rules = |place: usize| &snapshot.routes[place].rules;
    let shares: Vec<bool> = (0..7).map(|place| Arc::ptr_eq(rules(0), rules(place))).collect();
    assert_eq!(shares, [true, true, false, true, false, false, true]);
    assert_eq!(rules(2).max_body_bytes, Some(5));
    let address = std::ptr::from_ref(&*snapshot.routes[1]).addr();
    assert_eq!(address % 64, 0, "a route begins with a line of the cache");
}

#[test]
fn hashes_are_of_the_first_source_that_the_call_has() {
    let sources = json!([
        {"cookie": {"name": "c"}}, {"header": "x"}, {"query-arg": "q"}, {"capture": "id"}, "consumer",
        {"template": "$arg_t"}, "ip"
    ]);
    let upstream = |algorithm| json!({"name": "u", "algorithm": algorithm, "hash_on": sources, "targets": [{"host": "a", "port": 1}]});
    let snapshot = snapshot(json!({"upstreams": [upstream("consistent-hashing")]}));
    let hash = |text: &str| {
        snapshot.upstreams[0]
            .hash(&call(text))
            .expect("the address at least")
    };
    let same = [
        ("GET h/ | cookie: a=1; c=v | x: w", "GET h/ | x: v"),
        ("GET h/?q=v", "GET h/ | x: v"),
        ("GET h/?t=v", "GET h/?q=v"),
        ("GET h/?q=%76", "GET h/?q=v"),
    ];
    for (one, other) in same {
        assert_eq!(hash(one), hash(other), "{one} and {other}");
    }
    assert_ne!(hash("GET h/"), hash("GET h/ | client: 10.0.0.1"));
    let unhashed = common::snapshot(json!({"upstreams": [upstream("ewma")]}));
    assert_eq!(unhashed.upstreams[0].hash(&call("GET h/ | x: 1")), None);
}

#[test]
fn states_of_targets_outlive_snapshots() {
    let persistent = PersistentState::default();
    let compiled = |hosts: &[&str]| -> Snapshot {
        let targets: Vec<_> = hosts
            .iter()
            .map(|host| json!({"host": host, "port": 80}))
            .collect();
        let text = json!({"upstreams": [{"name": "u", "targets": targets}]});
        compile(&model(text), &registry(), &persistent)
            .map_err(|_| ())
            .expect("good")
            .0
    };
    let inflight = |snapshot: &Snapshot, target: usize| {
        snapshot.upstreams[0].targets[target]
            .state
            .inflight
            .load(Ordering::Relaxed)
    };
    let first = compiled(&["a", "b"]);
    first.upstreams[0].targets[0]
        .state
        .inflight
        .store(7, Ordering::Relaxed);
    let second = compiled(&["c", "a"]);
    assert_eq!((inflight(&second, 0), inflight(&second, 1)), (0, 7));
    drop((first, second));
    let third = compiled(&["a"]);
    assert_eq!(inflight(&third, 0), 0, "no call used it any more");
}

#[test]
fn chains_know_their_work() {
    let mut steps = [
        phased(true, true),
        phased(false, true),
        phased(true, false),
        phased(false, true),
    ];
    steps[0]["response_order"] = json!(5);
    steps[2]["response_only"] = json!(true);
    steps[3]["response_order"] = json!(-1);
    let cases = [
        (json!([]), 0, vec![], false),
        (json!([phased(false, false)]), 0, vec![], false),
        (json!([steps[1]]), 1, vec![0], false),
        (json!([steps[2]]), 0, vec![], false),
        (json!(steps), 3, vec![2, 1, 0], true),
    ];
    for (plugins, count, response_order, has_request_work) in cases {
        let snapshot = snapshot(json!({"routes": [route_with(plugins.clone())]}));
        let chain = &snapshot.routes[0].chain;
        assert_eq!(chain.steps.len(), count, "{plugins}");
        assert_eq!(chain.response_order.to_vec(), response_order, "{plugins}");
        assert_eq!(chain.has_request_work, has_request_work, "{plugins}");
    }
}

#[test]
fn nameless_instances_get_stable_ids() {
    let route = |name: &str, plugins: Value| json!({"name": name, "dialect": "kong", "match": [{}], "to": {"respond": {"status": 503, "before_plugins": true}}, "plugins": plugins});
    let mut named = phased(true, false);
    named["use"]["id"] = json!("mine");
    let snapshot = snapshot(json!({
        "routes": [route("a", json!([named, phased(true, false), phased(true, true)])), route("b", json!([phased(true, false)]))],
        "unmatched": [phased(true, false)],
    }));
    let ids = |chain: &Chain| -> Vec<String> {
        let instances = chain.steps.iter().filter_map(|step| step.instance(None));
        instances.map(|it| it.id.clone()).collect()
    };
    assert_eq!(
        ids(&snapshot.routes[0].chain),
        ["mine", "kong/a/phased/1", "kong/a/phased/2"]
    );
    assert_eq!(ids(&snapshot.routes[1].chain), ["kong/b/phased/0"]);
    assert_eq!(ids(&snapshot.unmatched), ["native/unmatched/phased/0"]);
}

#[test]
fn tables_replace_instances_for_consumers() {
    let instance = |id: &str| json!({"id": id, "name": "phased", "config": {"request": true}});
    let text = json!({
        "consumers": [{"id": "c0"}, {"id": "c1"}, {"id": "c2"}, {"id": "c1", "dialect": "kong"}],
        "plugins": [instance("everybody"), instance("gold"), instance("special")],
        "consumer_tables": [
            {"id": "first", "instances": {"c1": "special", "stranger": "special"}},
            {"id": "second", "instances": {"c1": "gold", "c2": null}},
        ],
        "routes": [
            route_with(json!([{"use": "everybody", "overrides": ["first", "second"]}])),
            {"name": "k", "dialect": "kong", "match": [{}], "to": {"respond": {"status": 503, "before_plugins": true}},
                "plugins": [{"overrides": ["second"]}]},
        ],
    });
    let (snapshot, warnings) = compile(&model(text), &registry(), &PersistentState::default())
        .map_err(|found| panic!("{found:?}"))
        .expect("good");
    assert_eq!(warnings.len(), 1);
    assert_eq!(
        warnings[0].path.to_string(),
        "consumer_tables[0].instances.stranger"
    );
    for (route, consumer, wanted) in [
        (0, None, Some("everybody")),
        (0, Some(0), Some("everybody")),
        (0, Some(1), Some("special")),
        (0, Some(2), None),
        (1, None, None),
        (1, Some(1), None),
        (1, Some(3), Some("gold")),
    ] {
        let identity = consumer.map(|index| Identity {
            consumer: Arc::new(ConsumerIdentity {
                index,
                ..ConsumerIdentity::default()
            }),
            credential_id: None,
        });
        let step = &snapshot.routes[route].chain.steps[0];
        let found = step.instance(identity.as_ref()).map(|it| it.id.as_str());
        assert_eq!(found, wanted, "{route} {consumer:?}");
    }
    let shared = [0, 1].map(|route: usize| snapshot.routes[route].rules.dialect);
    assert_eq!(shared, [DialectName::NATIVE, DialectName::new("kong")]);
}

#[test]
fn refusal_bodies_are_prepared() {
    for (refusal, content_type, body) in [
        (json!({"body": "no"}), "text/plain; charset=utf-8", "no"),
        (
            json!({"body": {"b": 1, "a": 2}}),
            "application/json",
            r#"{"b":1,"a":2}"#,
        ),
        (json!({"body": {}, "content_type": "text/x"}), "text/x", "{}"),
    ] {
        let mut step = phased(true, false);
        step["use"]["on_refusal"] = refusal;
        let snapshot = snapshot(json!({"routes": [route_with(json!([step]))]}));
        let instance = snapshot.routes[0].chain.steps[0].instance(None).expect("one");
        let refusal_body = instance.refusal_body.as_ref().expect("one");
        assert_eq!(refusal_body.content_type, content_type);
        assert_eq!(String::from_utf8_lossy(&refusal_body.body), body);
    }
}

#[test]
fn the_hash_is_of_the_text() {
    let hash = |text: Value| snapshot(text).hash;
    let large = |last: usize| {
        let paths: Vec<Value> = (0..2_000).map(|n| json!({"path": format!("/p{n}")})).collect();
        let mut text = routes_of(&paths);
        text["routes"][1_999]["match"][0]["path"] = json!(format!("/p{last}"));
        text
    };
    assert_eq!(hash(large(1)), hash(large(1)));
    assert_ne!(hash(large(1)), hash(large(2)));
    // A default is the same whether it is written or not.
    assert_eq!(hash(json!({})), hash(json!({"weir": 1})));
    assert_ne!(hash(json!({})), hash(json!({"dialect": "kong"})));
}
