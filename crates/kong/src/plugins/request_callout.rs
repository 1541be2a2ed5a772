//! `request-callout` of the paid edition: other services are asked before a call goes on. Its fields of Lua are refused.

use super::enterprise_fields::flag;
use super::redis::{ADVANCED_REDIS, Settings};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, Fields, Kind, Record};
use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use weir_plugins::callout::{Callout, Config, OnError, Parts};

/// The definition of `request-callout`.
pub const DEFINITION: Definition = Definition {
    name: "request-callout",
    priority: 812,
    config: Record::of(FIELDS),
    checks: &[EntityCheck::Test(check_callouts)],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "callout",
    translate,
};

const FIELDS: &[Field] = &[
    Field::new("callouts", Kind::Array(&ONE)).required(),
    Field::new("cache", Kind::Record(&CACHE)).required(),
    Field::new("upstream", Kind::Record(&UPSTREAM)).required(),
];

const ONE: Field = Field::element(Kind::Record(&CALLOUT));

static CALLOUT: Record = Record::of(&[
    Field::new("name", Kind::String).required(),
    Field::new("depends_on", Kind::Array(&Field::element(Kind::String))).or(Default::Texts(&[])),
    Field::new("request", Kind::Record(&REQUEST)).required(),
    Field::new("cache", Kind::Record(&BYPASS)).required(),
    Field::new("response", Kind::Record(&RESPONSE)).required(),
]);

static REQUEST: Record = Record::of(&[
    Field::new("url", Kind::String).required(),
    Field::new("method", Kind::String).or(Default::Text("GET")),
    Field::new("http_opts", Kind::Record(&HTTP)).required(),
    Field::new("headers", Kind::Record(&NOT_FORWARDED)).required(),
    Field::new("query", Kind::Record(&NOT_FORWARDED)).required(),
    Field::new("body", Kind::Record(&BODY_NOT_FORWARDED)).required(),
    Field::new("error", Kind::Record(&ERROR)).required(),
    BY_LUA,
]);

const BY_LUA: Field = Field::new("by_lua", Kind::String);

static HTTP: Record = Record::of(&[
    flag("ssl_verify", false),
    Field::new("ssl_server_name", Kind::String),
    Field::new("timeouts", Kind::Record(&TIMEOUTS)),
    Field::new("proxy", Kind::Record(&PROXY)),
]);

const TIME: &[Check] = &[Check::Between(0, 2_147_483_646)];

static TIMEOUTS: Record = Record::of(&[
    Field::new("connect", Kind::Integer).check(TIME),
    Field::new("write", Kind::Integer).check(TIME),
    Field::new("read", Kind::Integer).check(TIME),
]);

static PROXY: Record = Record::of(&[
    Field::new("http_proxy", Kind::String),
    Field::new("https_proxy", Kind::String),
    Field::new("auth_username", Kind::String),
    Field::new("auth_password", Kind::String),
]);

const CUSTOM: Field = Field::new(
    "custom",
    Kind::Map {
        keys: &Field::element(Kind::String),
        values: &Field::element(Kind::Text),
    },
);

static NOT_FORWARDED: Record = Record::of(&[flag("forward", false), CUSTOM]);
static BODY_NOT_FORWARDED: Record = Record::of(&[flag("forward", false), flag("decode", false), CUSTOM]);
static FORWARDED: Record = Record::of(&[flag("forward", true), CUSTOM]);
static BODY_FORWARDED: Record = Record::of(&[flag("forward", true), flag("decode", true), CUSTOM]);

static ERROR: Record = Record::of(&[
    Field::new("on_error", Kind::String)
        .or(Default::Text("fail"))
        .check(&[Check::OneOf(&["continue", "fail", "retry"])]),
    Field::new("retries", Kind::Integer).or(Default::Integer(2)),
    Field::new(
        "http_statuses",
        Kind::Array(&Field::element(Kind::Integer).check(&[Check::Between(100, 999)])),
    ),
    Field::new("error_response_code", Kind::Integer).or(Default::Integer(400)),
    Field::new("error_response_msg", Kind::String).or(Default::Text("service callout error")),
]);

static BYPASS: Record = Record::of(&[flag("bypass", false)]);

static RESPONSE: Record = Record::of(&[
    Field::new("headers", Kind::Record(&Record::of(&[flag("store", true)]))).required(),
    Field::new(
        "body",
        Kind::Record(&Record::of(&[flag("store", true), flag("decode", false)])),
    )
    .required(),
    BY_LUA,
]);

static CACHE: Record = Record::of(&[
    Field::new("strategy", Kind::String)
        .or(Default::Text("off"))
        .check(&[Check::OneOf(&["memory", "off", "redis"])]),
    Field::new("memory", Kind::Record(&MEMORY)).required(),
    Field::new("redis", Kind::Record(&ADVANCED_REDIS)).required(),
    Field::new("cache_ttl", Kind::Integer).or(Default::Integer(300)),
]);

static MEMORY: Record = Record::of(&[Field::new("dictionary_name", Kind::String)
    .required()
    .or(Default::Text("kong_db_cache"))]);

static UPSTREAM: Record = Record::of(&[
    Field::new("headers", Kind::Record(&FORWARDED)).required(),
    Field::new("query", Kind::Record(&FORWARDED)).required(),
    Field::new("body", Kind::Record(&BODY_FORWARDED)).required(),
    BY_LUA,
]);

fn check_callouts(plugin: &Fields) -> Result<(), String> {
    let callouts = plugin.get("config").and_then(|config| config.get("callouts"));
    match callouts.and_then(Value::as_array).map_or(0, Vec::len) {
        0 => Err("length must be at least 1".to_owned()),
        _ => Ok(()),
    }
}

#[derive(Deserialize)]
struct Options {
    callouts: Vec<CalloutOptions>,
    cache: CacheOptions,
    upstream: UpstreamOptions,
}

#[derive(Deserialize)]
struct CalloutOptions {
    name: String,
    depends_on: Option<Vec<String>>,
    request: RequestOptions,
    cache: BypassOptions,
    response: ResponseOptions,
}

#[derive(Deserialize)]
struct RequestOptions {
    url: String,
    method: String,
    http_opts: HttpOptions,
    headers: PartOptions,
    query: PartOptions,
    body: PartOptions,
    error: ErrorOptions,
    by_lua: Option<String>,
}

#[derive(Deserialize)]
struct HttpOptions {
    ssl_verify: bool,
    ssl_server_name: Option<String>,
    timeouts: Option<TimeOptions>,
    proxy: Option<ProxyOptions>,
}

#[derive(Deserialize)]
struct TimeOptions {
    connect: Option<u64>,
    write: Option<u64>,
    read: Option<u64>,
}

#[derive(Deserialize)]
struct ProxyOptions {
    http_proxy: Option<String>,
    https_proxy: Option<String>,
    auth_username: Option<String>,
    auth_password: Option<String>,
}

#[derive(Deserialize)]
struct PartOptions {
    forward: bool,
    custom: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct ErrorOptions {
    on_error: String,
    retries: i64,
    http_statuses: Option<Vec<u16>>,
    error_response_code: i64,
    error_response_msg: String,
}

#[derive(Deserialize)]
struct BypassOptions {
    bypass: bool,
}

#[derive(Deserialize)]
struct ResponseOptions {
    body: BodyOptions,
    by_lua: Option<String>,
}

#[derive(Deserialize)]
struct BodyOptions {
    decode: bool,
}

#[derive(Deserialize)]
struct CacheOptions {
    strategy: String,
    redis: Settings,
    cache_ttl: u64,
}

#[derive(Deserialize)]
struct UpstreamOptions {
    headers: PartOptions,
    query: PartOptions,
    body: PartOptions,
    by_lua: Option<String>,
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    let refused = |field: &'static str, what: &str| UnsupportedOption {
        field,
        what: what.to_owned(),
    };
    let lua = "code of Lua in `by_lua` (plugins that run users' code are not built yet)";
    if options.upstream.by_lua.is_some() {
        return Err(refused("upstream", lua));
    }
    for callout in &options.callouts {
        if callout.request.by_lua.is_some() || callout.response.by_lua.is_some() {
            return Err(refused("callouts", lua));
        }
        if callout.request.http_opts.ssl_server_name.is_some() {
            return Err(refused(
                "callouts",
                "a server name of its own (`ssl_server_name`)",
            ));
        }
    }
    let UpstreamOptions {
        headers, query, body, ..
    } = options.upstream;
    Ok(untyped(Config {
        redis: (options.cache.strategy == "redis")
            .then(|| options.cache.redis.redis())
            .transpose()?,
        cache_seconds: match options.cache.strategy.as_str() {
            "off" => 0,
            _ => options.cache.cache_ttl,
        },
        callouts: options.callouts.into_iter().map(callout).collect(),
        upstream: parts(headers, query, body).into(),
        max_body_bytes: 1 << 20,
    }))
}

fn callout(of: CalloutOptions) -> Callout {
    let request = of.request;
    let times = request.http_opts.timeouts;
    let times = times.map(|it| [it.connect, it.write, it.read].into_iter().flatten().sum());
    let proxy = request.http_opts.proxy;
    let is_https = request.url.starts_with("https://");
    let authorization = proxy.as_ref().and_then(|proxy| {
        let user = proxy.auth_username.as_deref()?;
        let password = proxy.auth_password.as_deref().unwrap_or_default();
        Some(format!(
            "Basic {}",
            BASE64.encode(format!("{user}:{password}").as_bytes())
        ))
    });
    let error = request.error;
    Callout {
        after: of.depends_on.unwrap_or_default(),
        method: request.method,
        send: parts(request.headers, request.query, request.body),
        on_error: match error.on_error.as_str() {
            "continue" => OnError::Continue,
            "retry" => OnError::Retry,
            _ => OnError::Fail,
        },
        retries: error.retries.clamp(0, 10) as u32,
        error_statuses: error.http_statuses.filter(|statuses| !statuses.is_empty()),
        // The original takes any number, and fails when it is to answer with one that is no status.
        status: match error.error_response_code {
            status @ 200..=599 => status as u16,
            _ => 500,
        },
        message: error.error_response_msg,
        cache: !of.cache.bypass,
        decode: of.response.body.decode,
        timeout_ms: times.filter(|time: &u64| *time > 0).unwrap_or(60_000).min(60_000),
        verify_tls: request.http_opts.ssl_verify,
        proxy: proxy.and_then(|it| if is_https { it.https_proxy } else { it.http_proxy }),
        proxy_authorization: authorization,
        ..Callout::new(of.name, custom_messages(&request.url))
    }
}

fn parts(headers: PartOptions, query: PartOptions, body: PartOptions) -> Parts {
    let texts = |of: Option<BTreeMap<String, String>>| {
        let texts = of.unwrap_or_default().into_iter();
        texts.map(|(name, text)| (name, custom_messages(&text))).collect()
    };
    Parts {
        forward_headers: headers.forward,
        headers: texts(headers.custom),
        forward_query: query.forward,
        query: texts(query.custom),
        forward_body: body.forward,
        body: texts(body.custom),
    }
}

/// The names by which the original's expressions find answers.
const WHERE: [&str; 2] = ["kong.ctx.shared.callouts", "shared.callouts"];

/// A text with expressions, in which answers have the names that they have here.
fn custom_messages(text: &str) -> String {
    WHERE
        .iter()
        .fold(text.to_owned(), |text, name| text.replace(name, "callouts"))
}
