//! What the pieces of a call cost by themselves: reading a head, finding the route, each plugin, and a new
//! configuration. `make bench-micro` runs them. What a whole call costs, system calls included, is what `weir bench`
//! measures.

use std::fmt::Write;
use std::sync::Arc;

use arc_swap::ArcSwap;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use serde_json::{Value, json};
use weir_analytics::aggregate::{Aggregator, FinishedCall};
use weir_model::Model;
use weir_plugin::{Exchange, Outcome, SubrequestResponse, system_clock};
use weir_snapshot::{Chain, CompileCache, PersistentState, Snapshot, compile, recompile};
use weir_telemetry::calls::{CallRecord, CallRings};

#[path = "../src/token.rs"]
#[allow(dead_code, unused_imports, reason = "the program and its tests use all of it")]
mod token;

const KEY: &str = "bench-user-key";
const SECRET: &str = "a-secret-of-the-bench-with-more-than-32-bytes";
const HEAD: &str = "GET /hello HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nUser-Agent: bench/1\r\nAccept: */*\r\n\
                    Accept-Encoding: gzip, deflate\r\nAuthorization: Bearer x\r\nX-Trace: 0123456789abcdef\r\n\r\n";

fn main() {
    divan::main();
}

/// The dialect that a configuration is written in.
#[derive(Debug, Clone, Copy)]
enum Dialect {
    Kong,
    Apisix,
}

impl Dialect {
    fn translate(self, document: &Value) -> Model {
        let translated = match self {
            Self::Kong => weir_kong::translate(document, &weir_kong::Options::default()),
            Self::Apisix => weir_apisix::translate(document, &weir_apisix::Options::default()),
        };
        translated.unwrap_or_else(|found| panic!("{found:?}")).0
    }

    /// Unique routes without plugins.
    fn routes(self, count: u32) -> Model {
        self.translate(&match self {
            Self::Kong => {
                let route = |at| json!({"name": format!("route{at}"), "paths": [format!("/hello{at}")]});
                let routes: Vec<Value> = (1..=count).map(route).collect();
                let service = json!({"name": "hello", "url": "http://127.0.0.1:1980", "routes": routes});
                json!({"_format_version": "3.0", "services": [service]})
            }
            Self::Apisix => {
                let upstream = json!({"nodes": {"127.0.0.1:1980": 1}, "type": "roundrobin"});
                let route =
                    |at| json!({"id": format!("{at}"), "uri": format!("/hello{at}"), "upstream": upstream});
                json!({"routes": (1..=count).map(route).collect::<Vec<_>>()})
            }
        })
    }

    /// One route with plugins, and a consumer with a key and a token.
    fn one_route(self, plugins: &Value) -> Model {
        self.translate(&match self {
            Self::Kong => json!({
                "_format_version": "3.0",
                "services": [{"name": "hello", "url": "http://127.0.0.1:1980", "routes": [
                    {"name": "hello", "paths": ["/hello1"], "plugins": plugins}
                ]}],
                "consumers": [{
                    "username": "bench",
                    "keyauth_credentials": [{"key": KEY}],
                    "jwt_secrets": [{"key": KEY, "algorithm": "HS256", "secret": SECRET}]
                }]
            }),
            Self::Apisix => json!({
                "routes": [{"id": "hello", "uri": "/hello1", "plugins": plugins,
                    "upstream": {"nodes": {"127.0.0.1:1980": 1}, "type": "roundrobin"}}],
                "consumers": [{"username": "bench", "plugins": {
                    "key-auth": {"key": KEY}, "jwt-auth": {"key": KEY, "secret": SECRET}
                }}]
            }),
        })
    }
}

fn compiled(model: &Model) -> Snapshot {
    let compiled = compile(model, &weir_plugins::registry(), &PersistentState::default());
    compiled.unwrap_or_else(|found| panic!("{found:?}")).0
}

/// A call as it stands before its route is looked for.
fn call(path: &str) -> Exchange {
    let mut exchange = Exchange::new(system_clock, 1);
    let request = &mut exchange.request;
    request.method = "GET".into();
    request.host = "127.0.0.1".into();
    request.path = path.into();
    request.raw_path = path.into();
    request.headers.append(b"apikey", KEY.as_bytes());
    let bearer = format!("Bearer {}", token::hs256(KEY, SECRET));
    request.headers.append(b"authorization", bearer.as_bytes());
    exchange
}

#[divan::bench]
fn read_head(bencher: Bencher<'_, '_>) {
    let mut exchange = Exchange::new(system_clock, 1);
    bencher.bench_local(|| {
        exchange.clear();
        weir_http1::request::parse(black_box(HEAD.as_bytes()), &mut exchange).is_ok()
    });
}

#[divan::bench(args = [1, 1_000, 100_000])]
fn find_route_kong(bencher: Bencher<'_, '_>, routes: u32) {
    find_route(bencher, Dialect::Kong, routes);
}

#[divan::bench(args = [1, 1_000, 100_000])]
fn find_route_apisix(bencher: Bencher<'_, '_>, routes: u32) {
    find_route(bencher, Dialect::Apisix, routes);
}

fn find_route(bencher: Bencher<'_, '_>, dialect: Dialect, routes: u32) {
    let snapshot = compiled(&dialect.routes(routes));
    let table = &snapshot.tables[0];
    let mut exchange = call("/hello1");
    let mut path = String::new();
    let mut next = 0;
    bencher.bench_local(|| {
        // A step that shares no factor with the numbers of routes: neighbours are not asked for one after the other.
        next = (next + 7_919) % routes;
        path.clear();
        let _ = write!(path, "/hello{}", next + 1);
        exchange.request.path.clear();
        exchange.request.path.extend_from_slice(path.as_bytes());
        table.find(&mut exchange).map(|found| found.route)
    });
}

#[divan::bench(args = [1, 1_000, 20_000], sample_count = 10)]
fn compile_kong(bencher: Bencher<'_, '_>, routes: u32) {
    compile_routes(bencher, Dialect::Kong, routes);
}

#[divan::bench(args = [1, 1_000, 20_000], sample_count = 10)]
fn compile_apisix(bencher: Bencher<'_, '_>, routes: u32) {
    compile_routes(bencher, Dialect::Apisix, routes);
}

fn compile_routes(bencher: Bencher<'_, '_>, dialect: Dialect, routes: u32) {
    let model = dialect.routes(routes);
    let registry = weir_plugins::registry();
    let persistent = PersistentState::default();
    bencher.bench_local(|| {
        compile(black_box(&model), &registry, &persistent)
            .map(|it| it.0.hash)
            .ok()
    });
}

#[divan::bench(args = [1_000, 20_000], sample_count = 20)]
fn change_kong(bencher: Bencher<'_, '_>, routes: u32) {
    let service = "5f3e1c80-0000-4000-8000-000000000001";
    let id = |at: u32| format!("default/routes/{at:08x}-1234-4000-8000-000000000000");
    let route = |at: u32, path: &str| {
        json!({"name": format!("route{at}"), "paths": [format!("/{path}{at}")], "service": {"id": service}})
            .to_string()
    };
    let mut stored = weir_kong::incremental::IncrementalModel::new(weir_kong::Options::default());
    let host = json!({"name": "hello", "protocol": "http", "host": "127.0.0.1", "port": 1980}).to_string();
    stored.apply(&format!("default/services/{service}"), Some(host.as_bytes()));
    for at in 1..=routes {
        // Ids that are far from each other, as random ones are.
        stored.apply(
            &id(at.wrapping_mul(2_654_435_761)),
            Some(route(at, "hello").as_bytes()),
        );
    }
    let changed = |stored: &mut weir_kong::incremental::IncrementalModel, number: u32| {
        let at = number % routes + 1;
        let path = format!("changed-{number}-");
        stored.apply(
            &id(at.wrapping_mul(2_654_435_761)),
            Some(route(at, &path).as_bytes()),
        );
        stored.model().0
    };
    change(bencher, stored, changed);
}

#[divan::bench(args = [1_000, 20_000], sample_count = 20)]
fn change_apisix(bencher: Bencher<'_, '_>, routes: u32) {
    let route = |at: u32, path: &str| {
        let upstream = json!({"nodes": {"127.0.0.1:1980": 1}, "type": "roundrobin"});
        json!({"id": at.to_string(), "uri": format!("/{path}{at}"), "upstream": upstream}).to_string()
    };
    let mut stored = weir_apisix::IncrementalModel::new(weir_apisix::Options::default());
    for at in 1..=routes {
        stored.apply(&format!("routes/{at}"), Some(route(at, "hello").as_bytes()));
    }
    let changed = |stored: &mut weir_apisix::IncrementalModel, number: u32| {
        let at = number % routes + 1;
        let path = format!("changed-{number}-");
        stored.apply(&format!("routes/{at}"), Some(route(at, &path).as_bytes()));
        stored.model().0
    };
    change(bencher, stored, changed);
}

/// What a change of one route of many costs, from its document to the snapshot in its place, the old one freed.
fn change<S>(bencher: Bencher<'_, '_>, mut stored: S, changed: impl Fn(&mut S, u32) -> Model) {
    let registry = weir_plugins::registry();
    let (persistent, mut cache) = (PersistentState::default(), CompileCache::default());
    let place = ArcSwap::from_pointee(compiled(&Dialect::Kong.routes(1)));
    let mut number = 0;
    let mut next = move || {
        number += 1;
        let model = changed(&mut stored, number);
        let snapshot = recompile(&model, number.into(), &registry, &persistent, &mut cache);
        let snapshot = snapshot.unwrap_or_else(|found| panic!("{found:?}")).0;
        place.swap(Arc::new(snapshot)).hash
    };
    next();
    bencher.bench_local(next);
}

/// A new snapshot put where workers read it, and the old one given back.
#[divan::bench(args = [1, 20_000], sample_count = 10)]
fn swap(bencher: Bencher<'_, '_>, routes: u32) {
    let place = ArcSwap::from_pointee(compiled(&Dialect::Kong.routes(routes)));
    bencher
        .with_inputs(|| Arc::new(compiled(&Dialect::Kong.routes(1))))
        .bench_local_values(|snapshot| place.swap(snapshot));
}

/// The read of the place that each call begins with.
#[divan::bench]
fn read_snapshot(bencher: Bencher<'_, '_>) {
    let place = ArcSwap::from_pointee(compiled(&Dialect::Kong.routes(1)));
    bencher.bench_local(|| place.load().hash);
}

const KONG_CHAINS: [&str; 8] = [
    "none",
    "rate-limiting",
    "key-auth",
    "jwt",
    "cors",
    "correlation-id",
    "request-transformer",
    "rate-limiting + key-auth",
];

#[divan::bench(args = KONG_CHAINS)]
fn plugins_kong(bencher: Bencher<'_, '_>, name: &str) {
    let config = |name: &str| match name {
        "rate-limiting" => json!({"minute": 999_999_999, "limit_by": "ip", "policy": "local"}),
        "jwt" => json!({"claims_to_verify": ["exp"]}),
        "request-transformer" => json!({"add": {"headers": ["x-bench:yes"]}}),
        _ => json!({}),
    };
    let names = name.split(" + ").filter(|name| *name != "none");
    let plugins: Vec<Value> = names
        .map(|name| json!({"name": name, "config": config(name)}))
        .collect();
    run_chain(bencher, &Dialect::Kong.one_route(&json!(plugins)));
}

const APISIX_CHAINS: [&str; 8] = [
    "none",
    "limit-count",
    "key-auth",
    "jwt-auth",
    "cors",
    "request-id",
    "proxy-rewrite",
    "limit-count + key-auth",
];

#[divan::bench(args = APISIX_CHAINS)]
fn plugins_apisix(bencher: Bencher<'_, '_>, name: &str) {
    let config = |name: &str| match name {
        "limit-count" => json!({"count": 999_999_999, "time_window": 60, "key": "remote_addr"}),
        "proxy-rewrite" => json!({"headers": {"x-bench": "yes"}}),
        _ => json!({}),
    };
    let names = name.split(" + ").filter(|name| *name != "none");
    let plugins: serde_json::Map<String, Value> = names.map(|name| (name.to_owned(), config(name))).collect();
    run_chain(bencher, &Dialect::Apisix.one_route(&json!(plugins)));
}

/// A body of about 1 KB, with a schema that says something of each of its values, and with limits.
#[divan::bench(args = ["request-validator", "json-threat-protection"])]
fn bodies_of_1_kb(bencher: Bencher<'_, '_>, name: &str) {
    let items: Vec<Value> = (0..14)
        .map(|id| json!({"id": id, "name": "a thing of some length", "tags": ["red", "blue"], "price": 9.5}))
        .collect();
    let body = json!({ "items": items }).to_string().into_bytes();
    let schema = json!({
        "type": "object",
        "required": ["items"],
        "additionalProperties": false,
        "properties": {"items": {"type": "array", "maxItems": 100, "items": {
            "type": "object",
            "required": ["id", "name"],
            "properties": {
                "id": {"type": "integer", "minimum": 0},
                "name": {"type": "string", "minLength": 1, "maxLength": 100},
                "tags": {"type": "array", "items": {"type": "string"}},
                "price": {"type": "number", "exclusiveMinimum": 0},
            },
        }}},
    });
    let config = match name {
        "request-validator" => json!({"version": "draft4", "body_schema": schema.to_string()}),
        _ => {
            json!({"max_container_depth": 10, "max_array_element_count": 100, "max_string_value_length": 100})
        }
    };
    let model = Dialect::Kong.one_route(&json!([{"name": name, "config": config}]));
    let snapshot = compiled(&model);
    let route = &snapshot.routes[0];
    let ready = || {
        let mut exchange = call("/hello1");
        exchange.route = Some(route.facts.clone());
        exchange.request.method = "POST".into();
        exchange
            .request
            .headers
            .append(b"content-type", b"application/json");
        exchange.request.has_body = true;
        exchange.request.body = Some(body.clone());
        exchange
    };
    assert!(
        pass(&route.chain, &mut ready()),
        "a filter refuses the call of this measurement"
    );
    bencher
        .with_inputs(ready)
        .bench_local_refs(|exchange| pass(&route.chain, exchange));
}

const IDENTITY_CHAINS: [&str; 6] = [
    "none",
    "jwt",
    "bearer, keys of a provider",
    "session cookie",
    "opa, known decision",
    "introspection, known token",
];

const ISSUER: &str = "http://id.example";

/// Callers who are recognised by what is known already: compared with `none`, a session's cookie may take 2.0 µs,
/// decisions and introspections 0.6 µs, and a provider's key 0.2 µs more than `jwt` with the same key.
#[divan::bench(args = IDENTITY_CHAINS)]
fn identity(bencher: Bencher<'_, '_>, name: &str) {
    let key = SigningKey::new();
    let provider =
        json!({"issuer": ISSUER, "client_id": ["c"], "client_secret": ["s"], "session_secret": SECRET});
    let mut bearer = provider.clone();
    bearer["auth_methods"] = json!(["bearer"]);
    let mut introspection = provider;
    introspection["auth_methods"] = json!(["introspection"]);
    introspection["introspection_endpoint"] = json!(format!("{ISSUER}/introspect"));
    let plugins = match name {
        "jwt" => json!([{"name": "jwt"}]),
        "bearer, keys of a provider" => json!([{"name": "openid-connect", "config": bearer}]),
        "introspection, known token" => json!([{"name": "openid-connect", "config": introspection}]),
        "session cookie" => json!([
            {"name": "session", "config": {"secret": SECRET}},
            {"name": "key-auth", "config": {"anonymous": "bench"}},
        ]),
        "opa, known decision" => json!([
            {"name": "opa", "config": {"opa_host": "127.0.0.1", "opa_port": 1, "opa_path": "/v1/data/d"}},
        ]),
        _ => json!([]),
    };
    let document = json!({
        "_format_version": "3.0",
        "services": [{"name": "hello", "url": "http://127.0.0.1:1980", "routes": [
            {"name": "hello", "paths": ["/hello1"], "plugins": plugins}
        ]}],
        "consumers": [{
            "username": "bench",
            "keyauth_credentials": [{"key": KEY}],
            "jwt_secrets": [{"key": ISSUER, "algorithm": "ES256", "rsa_public_key": key.pem()}]
        }]
    });
    let mut model = Dialect::Kong.translate(&document);
    if name == "opa, known decision" {
        keep_decisions(&mut model);
    }
    let snapshot = compiled(&model);
    let route = &snapshot.routes[0];
    let token = key.token();
    let exchange = |cookie: Option<&str>| {
        let mut exchange = Exchange::new(system_clock, 1);
        let request = &mut exchange.request;
        request.method = "GET".into();
        request.host = "127.0.0.1".into();
        request.path = "/hello1".into();
        request.raw_path = "/hello1".into();
        request
            .headers
            .append(b"Authorization", format!("Bearer {token}").as_bytes());
        match cookie {
            Some(cookie) => request.headers.append(b"Cookie", cookie.as_bytes()),
            None => request.headers.append(b"apikey", KEY.as_bytes()),
        }
        exchange.route = Some(route.facts.clone());
        exchange
    };
    let cookie = first_call(&route.chain, &mut exchange(None), &key);
    let cookie = cookie.as_deref().filter(|_| name == "session cookie");
    assert!(
        pass(&route.chain, &mut exchange(cookie)),
        "{name}: the second call asks no server"
    );
    bencher
        .with_inputs(|| exchange(cookie))
        .bench_local_refs(|exchange| pass(&route.chain, exchange));
}

/// Has `opa` keep its decisions, for which Kong has no option.
fn keep_decisions(model: &mut Model) {
    let inline = model
        .routes
        .iter_mut()
        .flat_map(|route| &mut Arc::make_mut(route).plugins);
    for step in inline {
        if let Some(weir_model::PluginRef::Inline(instance)) = &mut step.plugin {
            Arc::make_mut(instance).config["cache_seconds"] = json!(3_600);
        }
    }
    for instance in &mut model.plugins {
        if instance.name == "opa" {
            instance.config["cache_seconds"] = json!(3_600);
        }
    }
}

/// Plays the other servers for a first call. Gives the cookie that its answer sets.
fn first_call(chain: &Chain, exchange: &mut Exchange, key: &SigningKey) -> Option<String> {
    for step in chain.steps.iter().filter(|step| !step.response_only) {
        let Some(instance) = step.instance(exchange.identity.as_ref()).cloned() else {
            continue;
        };
        for _ in 0..10 {
            match instance.filter.on_request(exchange) {
                Outcome::Continue => break,
                Outcome::Subrequest(asked) => {
                    let head = String::from_utf8_lossy(&asked.message).into_owned();
                    let body = match head.split(' ').nth(1).unwrap_or_default() {
                        "/v1/data/d" => json!({"result": {"allow": true}}),
                        "/introspect" => json!({"active": true, "sub": "bench", "exp": token::EXPIRES}),
                        "/keys" => json!({"keys": [key.jwk()]}),
                        _ => json!({"issuer": ISSUER, "jwks_uri": format!("{ISSUER}/keys")}),
                    };
                    exchange.subrequest_response = Some(Some(SubrequestResponse {
                        status: 200,
                        body: body.to_string().into_bytes(),
                        ..SubrequestResponse::default()
                    }));
                }
                _ => panic!("a filter refuses the call of this measurement"),
            }
        }
    }
    exchange.merge_response_headers();
    for at in &chain.response_order {
        let instance = chain.steps[usize::from(*at)]
            .instance(exchange.identity.as_ref())
            .cloned();
        if let Some(instance) = instance.filter(|instance| instance.phases.response) {
            instance.filter.on_response(exchange);
        }
    }
    let set = exchange.response.headers.get(b"set-cookie")?;
    let set = String::from_utf8_lossy(set).into_owned();
    Some(set.split(';').next().unwrap_or_default().to_owned())
}

/// A key of ES256 that signs the tokens of a measurement.
struct SigningKey(EcdsaKeyPair);

/// What comes before the point of a public key of P-256 in its DER (RFC 5480).
const POINT_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

impl SigningKey {
    fn new() -> Self {
        let made = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING);
        Self(made.expect("a key"))
    }

    fn pem(&self) -> String {
        let der = [&POINT_PREFIX[..], self.0.public_key().as_ref()].concat();
        format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            STANDARD.encode(der)
        )
    }

    fn jwk(&self) -> Value {
        let point = self.0.public_key().as_ref();
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({
            "kty": "EC", "crv": "P-256", "kid": "k1", "use": "sig", "alg": "ES256",
            "x": part(&point[1..33]), "y": part(&point[33..]),
        })
    }

    fn token(&self) -> String {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let head = part(json!({"alg": "ES256", "typ": "JWT", "kid": "k1"}));
        let claims = part(json!({"iss": ISSUER, "sub": "bench", "exp": token::EXPIRES}));
        let signed = format!("{head}.{claims}");
        let signature = self
            .0
            .sign(&SystemRandom::new(), signed.as_bytes())
            .expect("signed");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

/// The request work and the response work of the route's chain, for a call that passes all of it.
fn run_chain(bencher: Bencher<'_, '_>, model: &Model) {
    let snapshot = compiled(model);
    let route = &snapshot.routes[0];
    let mut ready = call("/hello1");
    ready.route = Some(route.facts.clone());
    assert!(
        pass(&route.chain, &mut ready),
        "a filter refuses the call of this measurement"
    );
    bencher
        .with_inputs(|| {
            let mut exchange = call("/hello1");
            exchange.route = Some(route.facts.clone());
            exchange
        })
        .bench_local_refs(|exchange| pass(&route.chain, exchange));
}

/// `true` when no filter stops the call.
fn pass(chain: &Chain, exchange: &mut Exchange) -> bool {
    let steps = || chain.steps.iter().filter(|step| !step.response_only);
    for step in steps() {
        let instance = step.instance(exchange.identity.as_ref()).cloned();
        if let Some(instance) = instance.filter(|instance| instance.phases.request)
            && !matches!(instance.filter.on_request(exchange), Outcome::Continue)
        {
            return false;
        }
    }
    exchange.merge_response_headers();
    for at in &chain.response_order {
        let instance = chain.steps[usize::from(*at)]
            .instance(exchange.identity.as_ref())
            .cloned();
        if let Some(instance) = instance.filter(|instance| instance.phases.response) {
            instance.filter.on_response(exchange);
        }
    }
    true
}

/// Calls of one run of the two measurements below.
const CALLS: u64 = 1_000;

/// What analytics cost a call on its path: a thousand records into the ring of a worker.
#[divan::bench]
fn analytics_on_the_path(bencher: Bencher<'_, '_>) {
    let rings = CallRings::new(Arc::default(), Arc::default());
    let empty = || {
        rings.drain(|record| {
            black_box(*record);
        })
    };
    bencher
        .counter(ItemsCount::new(CALLS))
        .with_inputs(empty)
        .bench_local_values(|()| {
            for number in 0..CALLS {
                let record = CallRecord {
                    ended_us: number,
                    status: 200,
                    route: Some(7),
                    total_us: 900,
                    ..CallRecord::default()
                };
                black_box(rings.push(black_box(&record)));
            }
        });
}

/// What they cost off the path: a thousand calls of a hundred routes and consumers are counted.
#[divan::bench]
fn analytics_aggregation(bencher: Bencher<'_, '_>) {
    let mut aggregator = Aggregator::new("bench", "", 0);
    let names: Vec<u32> = (0..100).map(|it| aggregator.name(&format!("name{it}"))).collect();
    bencher.counter(ItemsCount::new(CALLS)).bench_local(|| {
        for number in 0..CALLS {
            let name = names[number as usize % names.len()];
            aggregator.add(&FinishedCall {
                minute: 1,
                service: names[0],
                route: name,
                consumer: name,
                upstream: names[1],
                target: names[2],
                status: 200,
                total_us: 500 + (number * 37 % 4_000) as u32,
                upstream_us: 400,
                ..FinishedCall::default()
            });
        }
    });
}
