//! What the plugins' tests have in common: exchanges at a fixed time, instances from YAML, and a table of consumers.

use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use weir_model::{Diagnostic, DialectName, DocPath};
use weir_plugin::{
    AuthFailure, BuildContext, CallRecord, ConsumerIdentity, CredentialSource, Exchange, Filter, Headers,
    Identity, KafkaWork, Outcome, Plugin, RefusalKind,
};

/// 2026-11-20 15:31:00 UTC.
pub const NOW_MS: u64 = 1_795_188_660_000;

fn clock() -> u64 {
    NOW_MS
}

/// A GET of `/` at [`NOW_MS`] from 10.0.0.1.
pub fn exchange() -> Exchange {
    let mut exchange = Exchange::new(clock, 7);
    prepare(&mut exchange, "GET /", &[]);
    exchange
}

/// A text in the coding `gzip`.
pub fn gzip(text: &[u8]) -> Vec<u8> {
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut coder, text).expect("in memory");
    coder.finish().expect("in memory")
}

/// What the engine knows of a call that an upstream has answered.
pub fn record() -> CallRecord<'static> {
    CallRecord {
        started_ms: NOW_MS,
        started_us: NOW_MS * 1000,
        forwarded_us: None,
        failures: &[],
        status: 201,
        bytes_in: 77,
        bytes_out: 300,
        total_us: 12_345,
        upstream_us: Some(10_100),
        upstream_status: Some(201),
        failed_tries: &[],
        upstream: "10.0.0.9:80".parse().ok(),
        upstream_host: Some("shop.example"),
        hostname: "gw-1",
        session: None,
    }
}

/// Replaces the exchange's request: `METHOD TARGET` and headers.
pub fn prepare(exchange: &mut Exchange, line: &str, headers: &[(&str, &str)]) {
    exchange.clear();
    let (method, target) = line.split_once(' ').expect("METHOD TARGET");
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query.as_bytes().to_vec())),
        None => (target, None),
    };
    exchange.request.method = method.as_bytes().to_vec();
    exchange.request.raw_path = path.as_bytes().to_vec();
    exchange.request.path = path.as_bytes().to_vec();
    exchange.request.query = query;
    exchange.request.host = b"api.example".to_vec();
    exchange.request.client = "10.0.0.1".parse().expect("an address");
    exchange.request.peer = "10.0.0.1:4711".parse().expect("an address");
    exchange.request.local = "10.0.0.2:8000".parse().expect("an address");
    for (name, value) in headers {
        exchange.request.headers.append(name.as_bytes(), value.as_bytes());
    }
}

/// Reads a plugin's configuration as users write it.
pub fn yaml(text: &str) -> Value {
    weir_model::document::parse(text).expect("valid YAML")
}

/// The YAML example in the header of a plugin's source.
pub fn example(source: &str) -> Value {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let block: Vec<&str> = lines
        .skip_while(|line| line.trim() != "```yaml")
        .skip(1)
        .take_while(|line| line.trim() != "```")
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    assert!(!block.is_empty(), "the source's header has an example");
    yaml(&block.join("\n"))
}

/// Builds an instance among consumers without credentials.
pub fn build(plugin: &dyn Plugin, config: &Value) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
    build_with(plugin, config, &[])
}

/// Builds an instance among these credentials: the consumer, the credential's id, its configuration. Consumers are
/// `alice` (with everything), `bob` (with nothing but an id and a name) and `guest` (without credentials).
pub fn build_with(
    plugin: &dyn Plugin,
    config: &Value,
    credentials: &[(&str, Option<&str>, Value)],
) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
    build_in(DialectName::NATIVE, plugin, config, credentials)
}

/// [`build_with`] in a dialect of its own.
pub fn build_in(
    dialect: DialectName,
    plugin: &dyn Plugin,
    config: &Value,
    credentials: &[(&str, Option<&str>, Value)],
) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
    let consumers: HashMap<_, _> = consumers()
        .into_iter()
        .map(|consumer| ((dialect, consumer.id.clone()), Arc::new(consumer)))
        .collect();
    let credentials: Vec<_> = credentials
        .iter()
        .map(|(consumer, id, config)| CredentialSource {
            config,
            place: DocPath::root(),
            identity: Identity {
                consumer: Arc::clone(&consumers[&(dialect, (*consumer).to_owned())]),
                credential_id: id.map(Arc::from),
            },
            expires: None,
            dialect,
            workspace: None,
        })
        .collect();
    let context = BuildContext {
        instance_id: "instance",
        dialect,
        keys_may_repeat: false,
        consumers_may_be_missing: dialect != DialectName::NATIVE,
        workspace: None,
        credentials: &HashMap::from([(plugin.name().to_owned(), credentials)]),
        consumers: &consumers,
        indexes: &RefCell::default(),
        destinations: &RefCell::default(),
        credential_diagnostics: &RefCell::default(),
    };
    plugin.build(config, &context)
}

fn consumers() -> Vec<ConsumerIdentity> {
    let consumer = |index, id: &str| ConsumerIdentity {
        index,
        id: id.into(),
        username: Some(id.to_uppercase()),
        ..ConsumerIdentity::default()
    };
    vec![
        ConsumerIdentity {
            custom_id: Some("cid".into()),
            group: Some("staff".into()),
            labels: vec![("team".into(), "blue".into())],
            ..consumer(0, "alice")
        },
        consumer(1, "bob"),
        consumer(2, "guest"),
    ]
}

/// Who calls, as a filter behind authentication finds it.
pub fn identity(id: &str, credential: Option<&str>) -> Identity {
    let found = consumers().into_iter().find(|consumer| consumer.id == id);
    Identity {
        consumer: Arc::new(found.expect("a consumer of the table")),
        credential_id: credential.map(Arc::from),
    }
}

/// Headers of names and values.
pub fn header_fields(lines: &[(&str, &str)]) -> Headers {
    let mut headers = Headers::default();
    for (name, value) in lines {
        headers.append(name.as_bytes(), value.as_bytes());
    }
    headers
}

/// Headers as `name: value` lines.
pub fn lines(headers: &Headers) -> Vec<String> {
    let line = |header: weir_plugin::Header<'_>| {
        let (name, value) = (header.name, header.value);
        format!(
            "{}: {}",
            String::from_utf8_lossy(name),
            String::from_utf8_lossy(value)
        )
    };
    headers.iter().map(line).collect()
}

/// The outcome for a call with this body, which is read when the filter asks for it.
pub fn with_body(filter: &dyn Filter, exchange: &mut Exchange, body: Option<&str>) -> Outcome {
    exchange.request.has_body = body.is_some();
    let outcome = filter.on_request(exchange);
    if !matches!(outcome, Outcome::NeedBody { .. }) {
        return outcome;
    }
    exchange.request.body = body.map(|body| body.as_bytes().to_vec());
    filter.on_request(exchange)
}

/// An outcome in one word (or a few), for tables.
pub fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Continue => "continue".into(),
        Outcome::NeedBody { .. } | Outcome::NeedBodyStart { .. } => "body".into(),
        Outcome::Suspend(_) => "wait".into(),
        Outcome::Subrequest(_) => "ask".into(),
        Outcome::Converse(_) => "converse".into(),
        Outcome::Redis(_) => "redis".into(),
        Outcome::Publish(_) => "publish".into(),
        Outcome::Kafka(KafkaWork::Read(_)) => "read Kafka".into(),
        Outcome::Kafka(KafkaWork::Events(_)) => "events of Kafka".into(),
        Outcome::Reply(reply) => format!("reply {}", reply.status),
        Outcome::Delay(time) => format!("delay {}", time.as_millis()),
        Outcome::Refuse(refusal) => match &refusal.kind {
            RefusalKind::Unauthenticated { failure, .. } => match failure {
                AuthFailure::Token(fault) => format!("{fault:?}"),
                failure => format!("{failure:?}"),
            },
            kind => format!("{} {}", kind.as_str(), refusal.status),
        },
    }
}

/// That a configuration is refused, with the places of the faults.
pub fn refused_at(plugin: &dyn Plugin, config: &Value) -> Vec<String> {
    match build(plugin, config) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.iter().map(|fault| fault.path.to_string()).collect(),
    }
}

/// An empty configuration.
pub fn empty() -> Value {
    json!({})
}
