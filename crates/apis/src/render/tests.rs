//! Publications rendered: a golden file, tables of who may call, and speed.

use super::*;
use crate::entities::{
    Backend, CanaryKey, Component, Deprecation, Draft, Limit, OperationSettings, Period, PlanSecurity,
    Runtime, SubscriptionState, Target,
};
use crate::naming::slug;
use crate::openapi::from_value;
use std::collections::BTreeMap;
use std::time::Instant;

mod prefixes;

struct Case {
    environment: Environment,
    publication: Publication,
    revision: Revision,
    description: Description,
    plans: Vec<Plan>,
    subscriptions: Vec<Subscription>,
    credentials: Vec<Credential>,
    now: u64,
}

impl Case {
    fn input(&self) -> Input<'_> {
        Input {
            environment: &self.environment,
            publication: &self.publication,
            stable: Content {
                revision: &self.revision,
                description: &self.description,
            },
            candidate: None,
            plans: &self.plans,
            subscriptions: &self.subscriptions,
            credentials: &self.credentials,
            now: self.now,
        }
    }

    fn documents(&self) -> Vec<Document> {
        render(self.input()).expect("documents")
    }

    /// The configuration of a request termination.
    fn plugin(&self, name: &str) -> Value {
        let documents = self.documents();
        let found = documents
            .iter()
            .find(|it| it.kind == "plugins" && it.name == name);
        found.expect("a plugin").value["request-termination"].clone()
    }

    fn value(&self, name: &str) -> Value {
        let documents = self.documents();
        documents
            .iter()
            .find(|it| it.name == name)
            .map(|it| it.value.clone())
            .unwrap_or(Value::Null)
    }
}

fn orders_runtime() -> Runtime {
    Runtime {
        hosts: vec!["api.test".into()],
        base_path: "/v1/".into(),
        strip_base_path: true,
        backends: BTreeMap::from([
            (
                "orders".to_owned(),
                Backend {
                    url: Some("http://${HOST}:8080/".into()),
                    ..Backend::default()
                },
            ),
            (
                "writer".to_owned(),
                Backend {
                    targets: vec![
                        Target {
                            host: "10.0.0.1".into(),
                            port: 80,
                            weight: 90,
                        },
                        Target {
                            host: "10.0.0.2".into(),
                            port: 80,
                            weight: 10,
                        },
                    ],
                    ..Backend::default()
                },
            ),
        ]),
        variables: BTreeMap::new(),
    }
}

fn orders() -> Case {
    let description = from_value(json!({
        "openapi": "3.1.0", "info": {"title": "Orders", "version": "1.2.0"},
        "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Orders-Key"}}},
        "paths": {
            "/orders": {"get": {"operationId": "listOrders", "responses": {}}, "post": {"operationId": "createOrder", "responses": {}}},
            "/orders/{id}": {"get": {"operationId": "getOrder", "deprecated": true, "responses": {}}, "head": {"responses": {}}},
            "/internal": {"get": {"operationId": "secret", "responses": {}}},
        },
    }))
    .expect("a description");
    let draft = Draft {
        spec: "abc".into(),
        components: vec![
            Component {
                name: "main".into(),
                backend: "orders".into(),
                retries: Some(2),
                ..Component::default()
            },
            Component {
                name: "write".into(),
                backend: "writer".into(),
                plugins: vec![json!({"cors": {}})],
                ..Component::default()
            },
        ],
        operations: BTreeMap::from([
            (
                "createOrder".to_owned(),
                OperationSettings {
                    component: Some("write".into()),
                    ..OperationSettings::default()
                },
            ),
            (
                "secret".to_owned(),
                OperationSettings {
                    hidden: true,
                    ..OperationSettings::default()
                },
            ),
        ]),
        chain: vec![json!({"request-id": {}})],
        ..Draft::default()
    };
    let revision = Revision {
        created: 1_700_000_000,
        ..draft.revision("orders", "1.2.0", 7)
    };
    Case {
        environment: Environment {
            name: "test".into(),
            variables: BTreeMap::from([("HOST".to_owned(), "orders.internal".to_owned())]),
            ..Environment::default()
        },
        publication: Publication {
            api: "orders".into(),
            version: "1.2.0".into(),
            environment: "test".into(),
            revision: 7,
            runtime: orders_runtime(),
            ..Publication::default()
        },
        revision,
        description,
        plans: Vec::new(),
        subscriptions: Vec::new(),
        credentials: Vec::new(),
        now: 1_800_000_000,
    }
}

fn gold() -> Plan {
    Plan {
        name: "gold".into(),
        state: PlanState::Published,
        limits: vec![
            Limit {
                count: 10,
                per: Period::Minute,
            },
            Limit {
                count: 1000,
                per: Period::Week,
            },
        ],
        ..Plan::default()
    }
}

fn subscribed(id: &str, state: SubscriptionState) -> Subscription {
    Subscription {
        id: id.into(),
        application: format!("app-{id}"),
        publication: "orders/1.2.0/test".into(),
        plan: "gold".into(),
        state,
        ..Subscription::default()
    }
}

/// Whether the native dialect takes a document, but for what says whose it is.
fn check(document: &Document) {
    let mut value = document.value.clone();
    value.as_object_mut().expect("a map").remove("owned_by");
    let mut text = value.to_string();
    // A credential by hash is the plugin's business.
    text = text.replace("key_sha256", "key");
    let value: Value = serde_json::from_str(&text).expect("JSON");
    if let Err(found) = weir_native::incremental::resource(document.kind, &document.name, &value) {
        panic!("{} {}: {found:?}", document.kind, document.name);
    }
}

#[test]
fn a_publication_becomes_the_documents_of_the_golden_file() {
    let mut case = orders();
    case.plans = vec![gold()];
    case.subscriptions = vec![subscribed("s1", SubscriptionState::Accepted)];
    case.credentials = vec![Credential {
        id: "c1".into(),
        subscription: "s1".into(),
        hash: "ab".repeat(32),
        ..Credential::default()
    }];
    let documents = case.documents();
    documents.iter().for_each(check);
    let made: Vec<String> = documents
        .iter()
        .map(|it| {
            format!(
                "{}\n{}\n",
                it.key("test"),
                serde_json::to_string_pretty(&it.value).expect("JSON")
            )
        })
        .collect();
    let made = made.join("\n");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/render/golden.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &made).expect("written");
    }
    assert_eq!(
        made,
        include_str!("golden.txt"),
        "UPDATE_GOLDEN=1 writes the file"
    );
}

#[test]
fn who_may_call_stands_in_tables() {
    let mut case = orders();
    case.plans = vec![gold()];
    let ended = Subscription {
        ends: Some(10),
        ..subscribed("ended", SubscriptionState::Accepted)
    };
    let early = Subscription {
        starts: Some(u64::MAX),
        ..subscribed("early", SubscriptionState::Accepted)
    };
    let end = case.now + 1;
    let ending = |id: &str, state| Subscription {
        ends: Some(end),
        ..subscribed(id, state)
    };
    case.subscriptions = vec![
        subscribed("ok", SubscriptionState::Accepted),
        subscribed("paused", SubscriptionState::Paused),
        subscribed("stopped", SubscriptionState::Stopped),
        subscribed("pending", SubscriptionState::Pending),
        subscribed("closed", SubscriptionState::Closed),
        ended,
        early,
        ending("ending", SubscriptionState::Accepted),
        ending("ending-paused", SubscriptionState::Paused),
        ending("ending-over", SubscriptionState::Expired),
        ending("ending-closed", SubscriptionState::Closed),
    ];
    let name = "test.orders.1.2.0";
    assert_eq!(
        case.value(&format!("{name}.access"))["instances"],
        json!({
            "sub.ok": null,
            "sub.paused": format!("{name}.paused"),
            "sub.stopped": format!("{name}.stopped"),
            "sub.ended": format!("{name}.expired"),
            "sub.early": format!("{name}.early"),
            "sub.ending": null,
            "sub.ending-paused": format!("{name}.paused"),
            "sub.ending-over": format!("{name}.expired"),
        })
    );
    // Gateways carry ends that are still to come out by themselves, in the same words.
    let ends = format!("{name}.ends");
    let table = case.documents();
    let table = table
        .iter()
        .find(|it| it.kind == "consumer_tables" && it.name == ends);
    assert_eq!(
        table.expect("a table").value["instances"],
        json!({"sub.ending": ends, "sub.ending-paused": ends})
    );
    let mut refusal = case.plugin(&format!("{name}.expired"));
    refusal["from_label"] = "ends".into();
    assert_eq!(case.plugin(&ends), refusal);
    let labels = |id: &str| case.value(&format!("sub.{id}"))["labels"]["ends"].clone();
    assert_eq!(
        (labels("ending"), labels("ending-over"), labels("ok")),
        (json!(end.to_string()), Value::Null, Value::Null)
    );
    assert_eq!(
        case.value(&format!("{name}.limits"))["instances"]["sub.ok"],
        format!("{name}.plan.gold")
    );
    let consumers: Vec<String> = case
        .documents()
        .iter()
        .filter(|it| it.kind == "consumers")
        .map(|it| it.name.clone())
        .collect();
    assert_eq!(
        consumers,
        [
            "sub.early",
            "sub.ended",
            "sub.ending",
            "sub.ending-over",
            "sub.ending-paused",
            "sub.ok",
            "sub.paused",
            "sub.stopped"
        ]
    );
}

#[test]
fn operations_have_limits_of_their_own() {
    let mut case = orders();
    let limit = |count, per| vec![Limit { count, per }];
    let ids: Vec<String> = case
        .description
        .operations
        .iter()
        .map(|it| it.id.clone())
        .collect();
    let mut plan = gold();
    plan.operation_limits = BTreeMap::from([
        (ids[0].clone(), limit(5, Period::Month)),
        ("gone".to_owned(), limit(1, Period::Day)),
    ]);
    case.plans = vec![plan];
    case.subscriptions = vec![
        subscribed("ok", SubscriptionState::Accepted),
        subscribed("closed", SubscriptionState::Closed),
    ];
    let name = "test.orders.1.2.0";
    let own = slug(&ids[0]);
    assert_eq!(
        case.value(&format!("{name}.plan.gold.{own}"))["rate-limit"],
        json!({"limits": [{"count": 5, "per": "month"}], "by": "consumer", "across": "gateways", "quota": true})
    );
    assert_eq!(
        case.value(&format!("{name}.limits.{own}"))["instances"],
        json!({"sub.ok": format!("{name}.plan.gold.{own}")})
    );
    let tables = |case: &Case| -> Vec<(String, bool)> {
        let documents = case.documents();
        let services = documents.iter().filter(|it| it.kind == "services");
        let routes = services.flat_map(|it| it.value["routes"].as_array().expect("routes").clone());
        routes
            .map(|it| {
                let chain = it["plugins"].to_string();
                let id = it["labels"]["operation"].as_str().expect("an id").to_owned();
                // Both limits stand in its chain, the operation's before that of all.
                let both = [format!("\"{name}.limits.{own}\""), format!("\"{name}.limits\"")];
                let [own, of_all] = both.map(|it| chain.find(&it));
                assert!(own.is_none() || own < of_all, "{chain}");
                (id, own.is_some() && of_all.is_some())
            })
            .collect()
    };
    for (id, has_it) in tables(&case) {
        assert_eq!(has_it, id == ids[0], "{id}");
    }
    assert!(case.documents().iter().all(|it| !it.name.contains("gone")));
    // Without keys, addresses are counted.
    case.plans[0].security = PlanSecurity::Keyless;
    assert_eq!(
        case.value(&format!("{name}.plan.gold.{own}"))["rate-limit"]["by"],
        "ip"
    );
    assert_eq!(case.value(&format!("{name}.limits.{own}")), Value::Null);
}

#[test]
fn a_canary_of_backends_leaves_the_revision_as_it_is() {
    let mut case = orders();
    let backend = |url: &str| Backend {
        url: Some(url.to_owned()),
        ..Backend::default()
    };
    let canary = |name: &str| Canary {
        revision: 1,
        backends: BTreeMap::from([(name.to_owned(), backend("http://next:1/base"))]),
        share: 500,
        by: CanaryKey::Address,
        when: None,
        steps: Vec::new(),
        guards: Vec::new(),
        started: 0,
    };
    let component = case.revision.components[0].clone();
    case.publication.canary = Some(canary(&component.backend));
    let candidate = |case: &Case| {
        let stable = case.input().stable;
        let input = Input {
            candidate: Some(stable),
            ..case.input()
        };
        render(input)
    };
    let documents = candidate(&case).expect("documents");
    let service = |suffix: &str| {
        let name = format!("test.orders.1.2.0.{}{suffix}", component.name);
        let found = documents
            .iter()
            .find(|it| it.name == name && it.kind == "services");
        found.expect("a service").value.clone()
    };
    assert_eq!(service(".canary")["url"], "http://next:1/base");
    assert_ne!(service("")["url"], "http://next:1/base");
    let strip = format!("test.orders.1.2.0.strip.{}.canary", component.backend);
    assert!(
        documents.iter().any(|it| it.name == strip),
        "the base path becomes that of the other backend"
    );
    assert!(!service("").to_string().contains(&strip));
    case.publication.canary = Some(canary("none"));
    let wrong = candidate(&case).expect_err("refused");
    assert_eq!(wrong[0].place, "canary.backends.none");
}

#[test]
fn only_good_credentials_are_served() {
    let mut case = orders();
    case.plans = vec![gold()];
    case.subscriptions = vec![subscribed("s", SubscriptionState::Accepted)];
    let credential = |id: &str| Credential {
        id: id.into(),
        subscription: "s".into(),
        hash: id.into(),
        ..Credential::default()
    };
    case.credentials = vec![
        credential("good"),
        Credential {
            expires: Some(case.now + 1),
            ..credential("overlapping")
        },
        Credential {
            expires: Some(case.now),
            ..credential("expired")
        },
        Credential {
            revoked: Some(1),
            ..credential("revoked")
        },
        Credential {
            subscription: "other".into(),
            ..credential("other")
        },
    ];
    let credentials = &case.value("sub.s")["credentials"];
    let ids: Vec<&str> = credentials
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["id"].as_str())
        .collect();
    assert_eq!(ids, ["good", "overlapping"]);
    assert_eq!(
        (&credentials[0]["expires"], &credentials[1]["expires"]),
        (&Value::Null, &json!(case.now + 1)),
        "gateways carry the end out by themselves"
    );
}

#[test]
fn plans_open_their_operations_only() {
    let mut case = orders();
    let bronze = Plan {
        name: "bronze".into(),
        operations: vec!["listOrders".into()],
        limits: Vec::new(),
        ..gold()
    };
    case.plans = vec![gold(), bronze];
    case.subscriptions = vec![
        subscribed("g", SubscriptionState::Accepted),
        Subscription {
            plan: "bronze".into(),
            ..subscribed("b", SubscriptionState::Accepted)
        },
    ];
    let service = case.value("test.orders.1.2.0.main");
    let table_of = |name: &str| {
        let routes = service["routes"].as_array().expect("routes").iter();
        let route = routes
            .into_iter()
            .find(|it| it["labels"]["operation"] == name)
            .expect("a route");
        let steps = route["plugins"].as_array().expect("steps");
        steps
            .iter()
            .find_map(|it| it["overrides"][0].as_str().filter(|it| it.contains("access")))
            .expect("a table")
            .to_owned()
    };
    assert_eq!(table_of("listOrders"), "test.orders.1.2.0.access");
    assert_eq!(table_of("getOrder"), "test.orders.1.2.0.access-without-bronze");
    let narrow = case.value("test.orders.1.2.0.access-without-bronze");
    assert_eq!(
        narrow["instances"],
        json!({"sub.g": null, "sub.b": "test.orders.1.2.0.not-in-plan"})
    );
    case.documents().iter().for_each(check);
}

#[test]
fn deprecation_and_its_end_reach_every_answer() {
    let mut case = orders();
    case.publication.deprecation = Some(Deprecation {
        since: 1_750_000_000,
        sunset: Some(1_800_000_001),
        link: Some("https://docs.test/old".into()),
        successor: Some("https://api.test/v2".into()),
        enforce: true,
    });
    let route = |case: &Case| case.value("test.orders.1.2.0.main")["routes"][0].clone();
    let headers = route(&case)["response_headers"].clone();
    assert_eq!(
        headers,
        json!([
            {"name": "Deprecation", "value": {"text": "@1750000000"}},
            {"name": "Sunset", "value": {"text": "Fri, 15 Jan 2027 08:00:01 GMT"}},
            {"name": "Link", "value": {"text": "<https://docs.test/old>; rel=\"deprecation\", <https://docs.test/old>; rel=\"sunset\", <https://api.test/v2>; rel=\"successor-version\""}},
        ])
    );
    assert_ne!(route(&case)["plugins"][0]["use"], "test.orders.1.2.0.gone");
    let unmatched = case.value("test.orders.1.2.0.unmatched");
    assert_eq!(
        (&unmatched["response_headers"], &unmatched["match"]),
        (
            &headers,
            &json!([
                {"path": "/v1/*", "precedence": 0, "hosts": ["api.test"]},
                {"path": "=/v1", "precedence": 0, "hosts": ["api.test"]},
            ])
        )
    );
    case.now += 1;
    assert_eq!(route(&case)["plugins"][0]["use"], "test.orders.1.2.0.gone");
    let gone = case.value("test.orders.1.2.0.gone");
    assert_eq!(gone["request-termination"]["status"], 410);
    assert!(gone.to_string().contains("https://api.test/v2"));
    case.documents().iter().for_each(check);
    // Without a base path and hosts, calls for others would be taken.
    let mut everywhere = orders();
    everywhere.publication.deprecation = case.publication.deprecation.clone();
    (
        everywhere.publication.runtime.base_path,
        everywhere.publication.runtime.hosts,
    ) = (String::new(), Vec::new());
    assert_eq!(everywhere.value("test.orders.1.2.0.unmatched"), Value::Null);
    // An operation that its document deprecates says so by itself.
    let case = orders();
    assert_eq!(case.value("test.orders.1.2.0.unmatched"), Value::Null);
    assert_eq!(
        case.value("test.orders.1.2.0.main")["routes"][1]["response_headers"][0]["value"]["text"],
        "@1700000000"
    );
}

#[test]
fn a_canary_stands_beside_the_stable_routes() {
    let case = orders();
    let mut publication = case.publication.clone();
    publication.canary = Some(Canary {
        revision: 8,
        backends: BTreeMap::new(),
        share: 1000,
        by: CanaryKey::Cookie("sid".into()),
        when: None,
        steps: Vec::new(),
        guards: Vec::new(),
        started: 0,
    });
    let candidate = Revision {
        number: 8,
        ..case.revision.clone()
    };
    let input = Input {
        publication: &publication,
        candidate: Some(Content {
            revision: &candidate,
            description: &case.description,
        }),
        ..case.input()
    };
    let documents = render(input).expect("documents");
    documents.iter().for_each(check);
    let canary = documents
        .iter()
        .find(|it| it.name == "test.orders.1.2.0.main.canary")
        .expect("a service");
    let route = &canary.value["routes"][0];
    assert_eq!(route["match"][0]["when"], json!(["share_cookie_sid", "<", 1000]));
    assert_eq!(route["labels"]["revision"], "8");
}

#[test]
fn missing_parts_are_reported() {
    let mut case = orders();
    case.publication.runtime.backends = BTreeMap::from([
        (
            "orders".to_owned(),
            Backend {
                url: Some("http://${NO}".into()),
                ..Backend::default()
            },
        ),
        ("writer".to_owned(), Backend::default()),
        (
            "both".to_owned(),
            Backend {
                url: Some("http://a".into()),
                targets: vec![Target {
                    host: "a".into(),
                    port: 1,
                    weight: 1,
                }],
                ..Backend::default()
            },
        ),
        (
            "odd".to_owned(),
            Backend {
                url: Some("localhost:80".into()),
                ..Backend::default()
            },
        ),
    ]);
    let faults: Vec<String> = render(case.input())
        .expect_err("faults")
        .into_iter()
        .map(|it| format!("{}: {}", it.place, it.message))
        .collect();
    for part in [
        "runtime.backends.orders: no variable is named 'NO'",
        "runtime.backends.writer: expected 'url' (one server) or 'targets'",
        "runtime.backends.both: expected either",
        "runtime.backends.odd.url: expected http://host:port",
    ] {
        assert!(faults.iter().any(|it| it.starts_with(part)), "{part}: {faults:?}");
    }
    case.publication.runtime.backends.clear();
    let faults = render(case.input()).expect_err("faults");
    assert!(
        faults[0]
            .message
            .contains("needs an address of the backend 'orders'"),
        "{faults:?}"
    );
}

#[test]
fn what_is_disabled_is_not_served() {
    let mut case = orders();
    case.publication.state = PublicationState::Disabled;
    assert_eq!(case.documents(), []);
}

/// A base path that a publish refuses may be stored already: unrelated writes are rendered all the same.
#[test]
fn a_stored_base_path_that_no_call_has_is_rendered() {
    let mut case = orders();
    case.publication.runtime.base_path = "/a//b".into();
    assert!(base_path_fault(&case.publication.runtime.base_path).is_some());
    assert!(!case.documents().is_empty());
}

#[test]
fn keyless_and_keyed_plans_stand_beside_each_other() {
    let mut case = orders();
    let free = Plan {
        name: "free".into(),
        security: PlanSecurity::Keyless,
        ..gold()
    };
    case.plans = vec![free.clone()];
    assert_eq!(
        case.value("test.orders.1.2.0.plan.free")["rate-limit"]["by"],
        "ip"
    );
    case.plans = vec![free, gold()];
    assert_eq!(
        case.value("test.orders.1.2.0.key")["key-auth"]["identity"]["anonymous"],
        "test.orders.1.2.0.anonymous"
    );
    let table = case.value("test.orders.1.2.0.access");
    assert_eq!(table["instances"], json!({"test.orders.1.2.0.anonymous": null}));
    case.documents().iter().for_each(check);
}

/// The defect: calls without a key reached all operations, whatever their plan contained.
#[test]
fn a_keyless_plan_opens_its_operations_only() {
    let free = Plan {
        name: "free".into(),
        security: PlanSecurity::Keyless,
        operations: vec!["listOrders".into()],
        ..gold()
    };
    let name = "test.orders.1.2.0";
    let refusal = format!("{name}.without-key");
    for plans in [vec![free.clone()], vec![free, gold()]] {
        let case = Case { plans, ..orders() };
        let service = case.value(&format!("{name}.main"));
        for route in service["routes"].as_array().expect("routes") {
            let steps = route["plugins"].as_array().expect("steps").iter();
            let refuses = |step: &Value| {
                let tables = step["overrides"].as_array().into_iter().flatten();
                let mut tables = tables.filter_map(Value::as_str).map(|it| case.value(it));
                step["use"] == *refusal
                    || tables.any(|it| it["instances"][format!("{name}.anonymous")] == *refusal)
            };
            let operation = &route["labels"]["operation"];
            assert_eq!(steps.clone().any(refuses), operation != "listOrders", "{route:#}");
        }
        assert_eq!(case.plugin(&refusal)["reason"], "not-in-plan");
        case.documents().iter().for_each(check);
    }
}

/// The defect: the API was open to everybody once its last plan was closed.
#[test]
fn what_has_had_plans_asks_for_one_when_none_is_left() {
    let mut case = orders();
    let key = "test.orders.1.2.0.key";
    assert_eq!(case.value(key), Value::Null, "it never had a plan");
    case.publication.needs_plan = true;
    for states in [&[][..], &[PlanState::Closed], &[PlanState::Staging]] {
        case.plans = states.iter().map(|it| Plan { state: *it, ..gold() }).collect();
        assert!(case.value(key)["key-auth"].is_object(), "{states:?}");
        let route = &case.value("test.orders.1.2.0.main")["routes"][0];
        assert_eq!(route["plugins"][0], json!({"use": key}), "{states:?}");
        assert_eq!(case.value("test.orders.1.2.0.access")["instances"], json!({}));
        case.documents().iter().for_each(check);
    }
    case.plans = vec![Plan {
        security: PlanSecurity::Keyless,
        ..gold()
    }];
    assert_eq!(case.value(key), Value::Null, "a keyless plan opens it");
}

#[test]
fn a_thousand_operations_are_rendered_at_once() {
    let paths: serde_json::Map<String, Value> = (0..1000)
        .map(|it| {
            (
                format!("/p{it}/{{id}}"),
                json!({"get": {"operationId": format!("op{it}"), "responses": {}}}),
            )
        })
        .collect();
    let text = json!({"openapi": "3.1.0", "info": {}, "paths": paths}).to_string();
    let begun = Instant::now();
    let mut case = orders();
    case.description = crate::openapi::read(&text).expect("a description");
    case.plans = vec![gold()];
    let documents = case.documents();
    let taken = begun.elapsed();
    let routes: usize = documents
        .iter()
        .filter_map(|it| it.value["routes"].as_array())
        .map(Vec::len)
        .sum();
    assert_eq!(routes, 1000);
    // A debug build on a busy machine; a release build takes a hundredth of it.
    assert!(taken.as_secs() < 5, "{taken:?}");
}
