//! What finding a route costs, and compiling many: `cargo run --release -p weir-snapshot --example find_cost`.
//!
//! Each row compiles so many routes of one shape and looks for routes drawn at random among them.

#![allow(clippy::print_stdout, reason = "its output is its purpose")]

use std::hint::black_box;
use std::time::Instant;
use weir_model::{HostPattern, Model, PathPattern, Route, RouteMatch, RouteTarget, Service};
use weir_plugin::{Exchange, Registry, system_clock};
use weir_snapshot::{PersistentState, Snapshot, compile};

/// Calls that are prepared, and then looked for in turn.
const CALLS: usize = 4_096;
/// Searches that are timed.
const SEARCHES: usize = 400_000;

/// A kind of route: its host and path patterns, and a host and a path that it takes.
struct Shape {
    name: &'static str,
    pattern: fn(usize) -> (Option<String>, String),
    call: fn(usize) -> (String, String),
}

const SHAPES: [Shape; 6] = [
    Shape {
        name: "exact",
        pattern: |n| (None, format!("=/api/service-{n}/items")),
        call: |n| (String::new(), format!("/api/service-{n}/items")),
    },
    Shape {
        name: "segments",
        pattern: |n| (None, format!("/api/service-{n}")),
        call: |n| (String::new(), format!("/api/service-{n}/items/42")),
    },
    Shape {
        name: "prefix",
        pattern: |n| (None, format!("/r{n}/*")),
        call: |n| (String::new(), format!("/r{n}/items/42")),
    },
    Shape {
        name: "template",
        pattern: |n| (None, format!("/tenants/{{tenant}}/service-{n}/{{item}}")),
        call: |n| (String::new(), format!("/tenants/acme/service-{n}/42")),
    },
    Shape {
        name: "host",
        pattern: |n| (Some(format!("service-{n}.example.com")), "/api".to_owned()),
        call: |n| (format!("service-{n}.example.com"), "/api/items/42".to_owned()),
    },
    Shape {
        name: "wildcard host",
        pattern: |n| (Some(format!("*.tenant-{n}.example.com")), "/api".to_owned()),
        call: |n| (format!("www.tenant-{n}.example.com"), "/api/items/42".to_owned()),
    },
];

fn main() {
    println!(
        "{:14} {:>8} {:>10} {:>10} {:>12}",
        "shape", "routes", "compile ms", "ns a find", "MB of memory"
    );
    for shape in &SHAPES {
        for count in [1, 1_000, 20_000, 100_000] {
            measure(shape, count);
        }
    }
    let compiled = Instant::now();
    let regexes: Vec<String> = (0..1_000)
        .map(|n| format!(r"~/users/(?<id>[^/]+)/s{n}/\d+$"))
        .collect();
    let snapshot = snapshot(&model(regexes.into_iter().map(|path| (None, path)).collect()));
    let compile_ms = compiled.elapsed().as_secs_f64() * 1e3;
    let ns = find_ns(&snapshot, |n| {
        (String::new(), format!("/users/7/s{}/1", n % 1_000))
    });
    println!("{:14} {:>8} {compile_ms:>10.1} {ns:>10.0}", "regex", 1_000);
}

fn measure(shape: &Shape, count: usize) {
    let model = model((0..count).map(shape.pattern).collect());
    let before = resident_bytes();
    let compiled = Instant::now();
    let snapshot = snapshot(&model);
    let compile_ms = compiled.elapsed().as_secs_f64() * 1e3;
    let memory = resident_bytes().saturating_sub(before) as f64 / 1e6;
    // A fixed sequence of numbers that looks random: every run requests the same routes.
    let ns = find_ns(&snapshot, |n| (shape.call)(n.wrapping_mul(2_654_435_761) % count));
    println!(
        "{:14} {count:>8} {compile_ms:>10.1} {ns:>10.0} {memory:>12.1}",
        shape.name
    );
}

fn model(patterns: Vec<(Option<String>, String)>) -> Model {
    let route = |(n, (host, path)): (usize, (Option<String>, String))| Route {
        name: format!("route-{n}"),
        dialect: Default::default(),
        matches: vec![RouteMatch {
            hosts: host
                .iter()
                .map(|host| HostPattern::parse(host).expect("a host"))
                .collect(),
            path: PathPattern::parse(&path).expect("a path"),
            ..RouteMatch::default()
        }],
        target: RouteTarget::Service("backend".to_owned()),
        https_only_status: None,
        grpc_only_status: None,
        path: Default::default(),
        upstream_host: Default::default(),
        forwarded: Default::default(),
        response_headers: Vec::new(),
        request_headers: Vec::new(),
        timeouts: None,
        upgrade: true,
        connect: false,
        max_body_bytes: None,
        priority: weir_model::Priority::default(),
        bandwidth: None,
        plugins: Vec::new(),
        labels: Default::default(),
    };
    let service: Service =
        serde_json::from_value(serde_json::json!({"name": "backend", "url": "http://127.0.0.1:9000"}))
            .expect("a service");
    Model {
        services: vec![service.into()],
        routes: patterns
            .into_iter()
            .enumerate()
            .map(route)
            .map(Into::into)
            .collect(),
        ..Model::default()
    }
}

fn snapshot(model: &Model) -> Snapshot {
    match compile(model, &Registry::default(), &PersistentState::default()) {
        Ok((snapshot, _)) => snapshot,
        Err(found) => panic!("{found:?}"),
    }
}

fn find_ns(snapshot: &Snapshot, target: impl Fn(usize) -> (String, String)) -> f64 {
    let mut exchange = Exchange::new(system_clock, 1);
    exchange.request.method = b"GET".to_vec();
    let mut calls: Vec<(Vec<u8>, Vec<u8>)> = (0..CALLS)
        .map(|n| {
            let (host, path) = target(n);
            (host.into_bytes(), path.into_bytes())
        })
        .collect();
    let table = &snapshot.tables[0];
    let mut best = f64::MAX;
    for _ in 0..5 {
        let started = Instant::now();
        for n in 0..SEARCHES {
            let (host, path) = &mut calls[n % CALLS];
            std::mem::swap(&mut exchange.request.host, host);
            std::mem::swap(&mut exchange.request.path, path);
            assert!(black_box(table.find(&mut exchange)).is_some());
            let (host, path) = &mut calls[n % CALLS];
            std::mem::swap(&mut exchange.request.host, host);
            std::mem::swap(&mut exchange.request.path, path);
        }
        best = best.min(started.elapsed().as_nanos() as f64 / SEARCHES as f64);
    }
    best
}

/// The resident memory of this process; 0 if the system does not report it.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status.split(' ').nth(1).and_then(|it| it.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}
