//! The plugins whose cost is measured, as data: the chain of each route, what it is compared with, and its bar. Plugins
//! that answer by themselves, ask another server for each call, or work on bodies are not among them (but for the cache
//! and compression): what they cost is not a matter of the plugin alone.

/// The route without plugins.
pub const PLAIN: &str = "plain";
/// The route without plugins whose answers are pages that are worth compressing.
pub const PLAIN_PAGE: &str = "plain-page";
/// The route that every call of the load may take, as all of them carry the key.
const KEY_AUTH: &str = "key-auth";

/// What a plugin may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CostLimit {
    /// So many microseconds more than the route without it.
    Added(f64),
    /// So much of what the route without it costs.
    Share(f64),
    /// What the library alone takes for the same body, with a tenth and a header-only plugin more.
    Library,
    /// It is a route without plugins once more: its figure is the noise.
    Noise,
}

/// A route with plugins.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Its name, which is its path too.
    pub name: &'static str,
    /// Its chain, as in a `weir.yaml`; words in angle brackets are filled in.
    pub plugins: &'static str,
    /// The route that it is compared with.
    pub beside: &'static str,
    /// What it may cost.
    pub bar: CostLimit,
    /// A part of its work is done later by another thread: a slice ends when that is done.
    pub deferred: bool,
    /// The gateway itself writes an access log: it is a process of its own.
    pub access_log: bool,
}

impl Case {
    const fn new(name: &'static str, bar: CostLimit, plugins: &'static str) -> Self {
        Self {
            name,
            plugins,
            beside: PLAIN,
            bar,
            deferred: false,
            access_log: false,
        }
    }

    const fn deferred(mut self) -> Self {
        self.deferred = true;
        self
    }

    const fn beside(mut self, route: &'static str) -> Self {
        self.beside = route;
        self
    }

    /// Whether its calls go to the service whose answers are pages.
    pub fn is_page(&self) -> bool {
        self.name == PLAIN_PAGE || self.beside == PLAIN_PAGE
    }
}

const HEADER_ONLY: CostLimit = CostLimit::Added(0.4);
const LIMITER: CostLimit = CostLimit::Added(0.6);
const LOG: CostLimit = CostLimit::Added(0.5);

/// Every plugin that is measured.
pub const CASES: &[Case] = &[
    Case::new("plain-again", CostLimit::Noise, ""),
    Case::new(
        "acl",
        HEADER_ONLY,
        "{key-auth: {}}, {acl: {allow: [{of: {label: team}, values: [blue]}]}}",
    )
    .beside(KEY_AUTH),
    Case::new("basic-auth", HEADER_ONLY, "{basic-auth: {}}"),
    Case::new(
        "circuit-breaker",
        HEADER_ONLY,
        "{circuit-breaker: {failures: 5, max_open_seconds: 60}}",
    ),
    Case::new(
        "concurrency-limit",
        LIMITER,
        "{concurrency-limit: {limits: [{count: 10000}]}}",
    ),
    Case::new(
        "consumer-headers",
        HEADER_ONLY,
        "{key-auth: {}}, {consumer-headers: {headers: [{name: X-Team, value: {consumer-label: team}}]}}",
    )
    .beside(KEY_AUTH),
    Case::new("cors", HEADER_ONLY, "{cors: {origins: ['https://app.example']}}"),
    Case::new(
        "csrf",
        HEADER_ONLY,
        "{csrf: {key: a-long-secret-that-no-one-guesses}}",
    ),
    Case::new(
        "error-page",
        HEADER_ONLY,
        "{error-page: {pages: {404: {content_type: text/html, body: Nothing here}}}}",
    ),
    Case::new(
        "fault-injection",
        HEADER_ONLY,
        "{fault-injection: {abort: {status: 503, when: [arg_fault, '==', '1']}}}",
    ),
    Case::new(
        "ip-restriction",
        CostLimit::Added(0.3),
        "{ip-restriction: {deny: [<networks>]}}",
    ),
    Case::new(KEY_AUTH, HEADER_ONLY, "{key-auth: {}}"),
    Case::new(
        "prometheus",
        HEADER_ONLY,
        "{prometheus: {families: [{name: bench_calls_total, help: Calls., value: calls, \
         labels: [{name: code, value: $status}]}, {name: bench_ms, help: Time., value: total_ms, \
         labels: [{name: route, value: $route_name}], buckets: [1, 10, 100]}]}}",
    ),
    Case::new(
        "rate-limit",
        LIMITER,
        "{rate-limit: {limits: [{count: 999999999, per: minute}]}}",
    ),
    Case::new(
        "rate-limit-settled",
        LIMITER,
        "{rate-limit: {limits: [{count: 999999999, per: minute}], store: {redis: {host: 127.0.0.1, \
         port: <redis_port>}, sync_interval_seconds: 0.1}}}",
    )
    .deferred(),
    Case::new(
        "real-ip",
        HEADER_ONLY,
        "{real-ip: {from: http_x_forwarded_for, trusted: [127.0.0.0/8], recursive: true}}",
    ),
    Case::new(
        "referer-restriction",
        HEADER_ONLY,
        "{referer-restriction: {allow: ['*.example']}}",
    ),
    Case::new("request-id", HEADER_ONLY, "{request-id: {}}"),
    Case::new(
        "request-rewrite",
        HEADER_ONLY,
        "{request-rewrite: {path: '/v2$uri', headers: [{set: {X-Version: v2}}, {remove: [Referer]}]}}",
    ),
    Case::new(
        "request-size-limit",
        HEADER_ONLY,
        "{request-size-limit: {max_bytes: 1048576}}",
    ),
    Case::new(
        "response-rewrite",
        HEADER_ONLY,
        "{response-rewrite: {headers: [{set: {X-Version: v2}}, {remove: [X-Powered-By]}]}}",
    ),
    Case::new(
        "throttle",
        LIMITER,
        "{throttle: {rate_per_second: 1000000, burst: 1000000}}",
    ),
    Case::new(
        "traffic-label",
        HEADER_ONLY,
        "{traffic-label: {rules: [{when: [arg_beta, '~=', '1'], actions: [{headers: [{set: {X-Group: a}}]}]}]}}",
    ),
    Case::new(
        "traffic-split",
        HEADER_ONLY,
        "{traffic-split: {rules: [{choices: [{service: api, weight: 5}, {weight: 95}]}]}}",
    ),
    Case::new(
        "uri-restriction",
        HEADER_ONLY,
        "{uri-restriction: {deny: ['^/admin', '[.]git(/|$)']}}",
    ),
    Case::new(
        "user-agent-restriction",
        HEADER_ONLY,
        "{user-agent-restriction: {known_bots: true}}",
    ),
    Case::new(
        "workflow",
        HEADER_ONLY,
        "{workflow: {rules: [{when: [uri, '~~', '^/old'], then: {refuse: {status: 410}}}]}}",
    ),
    Case::new(
        "logger-file",
        LOG,
        "{logger: {target: {file: {path: '<folder>/calls.log'}}, batch: {delay_ms: 100}}}",
    )
    .deferred(),
    Case {
        access_log: true,
        ..Case::new("access-log", LOG, "").deferred()
    },
    Case::new(
        "tracing-sampled",
        HEADER_ONLY,
        "{tracing: {sampling: {ratio: 0.01}, export: {otlp_http: {url: 'http://<collector>/v1/traces'}}, batch: {delay_ms: 100}}}",
    )
    .deferred(),
    Case::new(
        "proxy-cache",
        CostLimit::Share(0.6),
        "{proxy-cache: {ttl_seconds: 3600}}",
    ),
    Case::new(
        "compression",
        CostLimit::Library,
        "{compression: {types: [text/plain], level: <level>}}",
    )
    .beside(PLAIN_PAGE),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_stands_beside_a_route() {
        for case in CASES {
            let is_route = [PLAIN, PLAIN_PAGE, KEY_AUTH].contains(&case.beside);
            assert!(is_route, "{}", case.name);
            let namesakes = CASES.iter().filter(|other| other.name == case.name);
            assert_eq!(namesakes.count(), 1, "{}", case.name);
        }
    }
}
