//! What is made of stored documents piece by piece is what is made of them at once, and takes the time of the piece.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;
use weir_kong::incremental::IncrementalModel;
use weir_kong::{Options, RouterFlavor};
use weir_model::{Model, RouteTarget};

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn id(&mut self, family: u64) -> String {
        id(family, self.below(5))
    }

    /// A reference to a member of a family, which may be there or not.
    fn reference(&mut self, family: u64) -> String {
        match self.below(4) {
            0 => "null".to_owned(),
            _ => format!("{{\"id\":\"{}\"}}", self.id(family)),
        }
    }
}

fn id(family: u64, number: u64) -> String {
    format!("{family:08x}-0000-4000-8000-{number:012x}")
}

fn document(family: &str, numbers: &mut Numbers) -> String {
    let name = numbers.below(4);
    match family {
        "services" => {
            let host = ["a.test", "u0.test", "u1.test"][numbers.below(3) as usize];
            let enabled = numbers.below(5) > 0;
            let protocol = ["http", "https", "tcp"][numbers.below(3) as usize];
            format!("{{\"host\":\"{host}\",\"enabled\":{enabled},\"protocol\":\"{protocol}\"}}")
        }
        "routes" => {
            let service = numbers.reference(1);
            let created = numbers.below(9);
            format!("{{\"paths\":[\"/{name}\"],\"service\":{service},\"created_at\":{created}}}")
        }
        "upstreams" => format!("{{\"name\":\"u{name}.test\",\"host_header\":\"h{name}.test\"}}"),
        "targets" => {
            let upstream = numbers.id(3);
            format!("{{\"target\":\"10.0.0.{name}:80\",\"upstream\":{{\"id\":\"{upstream}\"}}}}")
        }
        "consumers" => format!("{{\"username\":\"c{name}\"}}"),
        "keyauth_credentials" => {
            let consumer = numbers.id(5);
            format!("{{\"key\":\"k{name}\",\"consumer\":{{\"id\":\"{consumer}\"}}}}")
        }
        "degraphql_routes" => {
            let service = numbers.id(1);
            format!("{{\"uri\":\"/{name}\",\"query\":\"{{a}}\",\"service\":{{\"id\":\"{service}\"}}}}")
        }
        "graphql_ratelimiting_cost_decorations" => {
            let service = numbers.reference(1);
            format!("{{\"type_path\":\"Query.f{name}\",\"service\":{service}}}")
        }
        _ => {
            let (route, service) = (numbers.reference(2), numbers.reference(1));
            let consumer = numbers.reference(5);
            let config = match numbers.below(6) {
                0 => format!("\"key-auth\",\"config\":{{\"anonymous\":\"c{name}\"}},\"consumer\":null"),
                1 => format!(
                    "\"rate-limiting\",\"config\":{{\"minute\":{}}},\"consumer\":{consumer}",
                    name + 1
                ),
                2 => "\"cors\",\"config\":{},\"consumer\":null".to_owned(),
                3 => "\"degraphql\",\"config\":{},\"consumer\":null".to_owned(),
                4 => "\"graphql-rate-limiting-advanced\",\"config\":{\"limit\":[5],\"window_size\":[60],\
                      \"sync_rate\":-1},\"consumer\":null"
                    .to_owned(),
                _ => "\"no-such-plugin\",\"consumer\":null".to_owned(),
            };
            format!("{{\"name\":{config},\"route\":{route},\"service\":{service}}}")
        }
    }
}

/// With places from 1 on: only the order of the numbers means anything.
fn in_order(mut model: Model) -> Model {
    let matches = || model.routes.iter().flat_map(|route| &route.matches);
    let numbers: BTreeSet<Option<u64>> = matches().map(|it| it.precedence).collect();
    assert_eq!(
        numbers.len(),
        matches().count(),
        "every match has a number of its own"
    );
    let places: BTreeMap<Option<u64>, u64> = numbers.into_iter().zip(1..).collect();
    for route in &mut model.routes {
        for route_match in &mut Arc::make_mut(route).matches {
            route_match.precedence = places.get(&route_match.precedence).copied();
        }
    }
    model
}

#[test]
fn pieces_make_the_same_whole() {
    const FAMILIES: [&str; 9] = [
        "services",
        "routes",
        "upstreams",
        "targets",
        "consumers",
        "keyauth_credentials",
        "plugins",
        "degraphql_routes",
        "graphql_ratelimiting_cost_decorations",
    ];
    for router in [RouterFlavor::TraditionalCompatible, RouterFlavor::Traditional] {
        let options = Options { router };
        let mut numbers = Numbers(7);
        let mut documents: BTreeMap<String, String> = BTreeMap::new();
        let mut stored = IncrementalModel::new(options);
        for step in 0..1500 {
            let family = numbers.below(FAMILIES.len() as u64);
            let name = FAMILIES[family as usize];
            let key = format!("default/{name}/{}", numbers.id(family + 1));
            if numbers.below(3) == 0 {
                documents.remove(&key);
                stored.apply(&key, None);
            } else {
                let value = document(name, &mut numbers);
                stored.apply(&key, Some(value.as_bytes()));
                documents.insert(key, value);
            }
            if numbers.below(3) > 0 {
                continue;
            }
            let mut fresh = IncrementalModel::new(options);
            for (key, value) in &documents {
                fresh.apply(key, Some(value.as_bytes()));
            }
            let (pieces, whole) = (stored.model(), fresh.model());
            assert_eq!(pieces.1, whole.1, "step {step}: {documents:#?}");
            let (pieces, whole) = (in_order(pieces.0), in_order(whole.0));
            assert_eq!(pieces, whole, "step {step}: {documents:#?}");
        }
    }
}

/// Another route with fewer plugins could take its calls.
#[test]
fn a_route_without_its_service_keeps_its_calls() {
    for service in [
        None,
        Some(r#"{"name":"s","host":"h"}"#),
        Some(r#"{"name":"s","host":"h","path":"/a b"}"#),
        Some(r#"{"name":"s","host":"h","protocol":"tcp","port":1}"#),
    ] {
        let mut stored = IncrementalModel::new(Options::default());
        if let Some(service) = service {
            stored.apply(
                &format!("default/services/{}", id(1, 0)),
                Some(service.as_bytes()),
            );
        }
        let route = format!(
            r#"{{"name":"r","paths":["/r"],"service":{{"id":"{}"}}}}"#,
            id(1, 0)
        );
        let route_key = format!("default/routes/{}", id(2, 0));
        stored.apply(&route_key, Some(route.as_bytes()));
        let (model, skipped) = stored.model();
        let targets: Vec<_> = model.routes.iter().map(|it| it.target.clone()).collect();
        let is_good = service.is_some_and(|it| it.ends_with(r#""h"}"#));
        let target = match is_good {
            true => RouteTarget::Service("s".to_owned()),
            false => RouteTarget::respond_after_plugins(503),
        };
        assert_eq!(targets, [target], "{service:?}");
        let is_skipped = skipped.iter().any(|it| it.document == route_key);
        assert_eq!(is_skipped, !is_good, "{service:?}: {skipped:?}");
    }
}

/// Generous, as tests are not optimised: making everything again takes ten times as long.
#[test]
fn a_change_costs_no_more_than_the_copy() {
    const ROUTES: u64 = 20_000;
    let mut stored = IncrementalModel::new(Options::default());
    let service = id(1, 0);
    stored.apply(
        &format!("default/services/{service}"),
        Some(b"{\"host\":\"x.test\",\"name\":\"s\"}"),
    );
    let route = |number: u64, path: &str| {
        let value =
            format!("{{\"name\":\"r{number}\",\"paths\":[\"{path}\"],\"service\":{{\"id\":\"{service}\"}}}}");
        (format!("default/routes/{}", id(2, number)), value)
    };
    for number in 0..ROUTES {
        let (key, value) = route(number, &format!("/r/{number}"));
        stored.apply(&key, Some(value.as_bytes()));
    }
    let plugin = format!("default/plugins/{}", id(7, 0));
    stored.apply(&plugin, Some(b"{\"name\":\"key-auth\",\"config\":{}}"));
    let begin = Instant::now();
    let (model, broken) = stored.model();
    let all = begin.elapsed();
    assert_eq!((model.routes.len(), broken.len()), (ROUTES as usize, 0));
    let (key, value) = route(77, "/other");
    let begin = Instant::now();
    stored.apply(&key, Some(value.as_bytes()));
    let (after, _) = stored.model();
    let one = begin.elapsed();
    assert_eq!(after.routes.len(), ROUTES as usize);
    let both = model.routes.iter().zip(&after.routes);
    let others = both.filter(|(before, after)| !Arc::ptr_eq(before, after));
    assert_eq!(others.count(), 1, "all others are the same values");
    assert!(Arc::ptr_eq(&model.services[0], &after.services[0]));
    eprintln!("all {all:?}, one {one:?}");
    assert!(one < all / 2, "all {all:?}, one {one:?}");
}
