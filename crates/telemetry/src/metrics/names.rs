//! Every metric that Weir exposes, and every fixed label value, in one place.
//!
//! A published name is a promise to the owners of dashboards: add here freely, rename never.

/// How Prometheus is to read a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricType {
    /// Only ever grows (until the process restarts).
    Counter,
    /// Goes up and down.
    Gauge,
    /// Cumulative buckets with a sum and a count.
    Histogram,
}

impl MetricType {
    /// The word of the `# TYPE` line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

macro_rules! metrics {
    ($($variant:ident = $name:literal, $kind:ident, $help:literal;)*) => {
        /// A metric family.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Metric {
            $(#[doc = concat!("`", $name, "`: ", $help)] $variant,)*
        }

        impl Metric {
            /// All families, in the order of this file.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The family's name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The family's type.
            pub const fn kind(self) -> MetricType {
                match self { $(Self::$variant => MetricType::$kind,)* }
            }

            /// The text of the family's `# HELP` line.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)* }
            }
        }
    };
}

metrics! {
    BuildInfo = "weir_build_info", Gauge, "Always 1; the labels say which build is running.";
    ConfigGeneration = "weir_config_generation", Gauge, "Number of the configuration being served; 0 before the first.";
    ConfigInfo = "weir_config_info", Gauge, "Always 1; the label is the hash of the configuration being served.";
    ConfigReloads = "weir_config_reloads_total", Counter, "Attempts to take over a configuration, by result.";
    ConfigLastReloadSuccessful = "weir_config_last_reload_successful", Gauge, "1 if the last attempt to take over a configuration succeeded, else 0.";
    ConfigLastReloadTimestamp = "weir_config_last_reload_timestamp_seconds", Gauge, "Unix time of the last attempt to take over a configuration.";
    ConfigDocumentsSkipped = "weir_config_documents_skipped", Gauge, "Documents of the followed store that are broken and not served.";
    ConfigStoreConnected = "weir_config_store_connected", Gauge, "1 while the store or control plane is connected, 0 while it is unreachable.";
    Requests = "weir_requests_total", Counter, "Requests answered or given up, on any route or none.";
    ClientConnections = "weir_client_connections_total", Counter, "Client connections accepted.";
    ClientConnectionsRefused = "weir_client_connections_refused_total", Counter, "Client connections closed at once because a worker was at --max-connections.";
    Panics = "weir_panics_total", Counter, "Connections and calls that were ended by a panic.";
    Http3Connections = "weir_http3_connections_total", Counter, "Client connections over HTTP/3; they are also counted among all client connections.";
    ClientConnectionsActive = "weir_client_connections_active", Gauge, "Client connections open now.";
    BytesIn = "weir_received_bytes_total", Counter, "Bytes of requests received from clients.";
    BytesOut = "weir_sent_bytes_total", Counter, "Bytes of responses sent to clients.";
    UpstreamConnectionsOpened = "weir_upstream_connections_opened_total", Counter, "Connections opened to upstreams.";
    UpstreamConnectionsReused = "weir_upstream_connections_reused_total", Counter, "Upstream calls that took an idle connection instead of opening one.";
    UpstreamConnectionsActive = "weir_upstream_connections_active", Gauge, "Connections to upstreams open now, idle ones included.";
    UpstreamRetries = "weir_upstream_retries_total", Counter, "Upstream calls beyond the first of a request.";
    UpstreamHedges = "weir_upstream_hedges_total", Counter, "Copies of slow calls that were sent to another target.";
    UpstreamHedgesWon = "weir_upstream_hedges_won_total", Counter, "Copies of slow calls that were answered first.";
    UpstreamConcurrencyLimit = "weir_upstream_concurrency_limit", Gauge, "Calls that may be in flight to an upstream with adaptive concurrency.";
    UpstreamConcurrency = "weir_upstream_concurrency", Gauge, "Calls in flight to an upstream with adaptive concurrency.";
    UpstreamTargetHealthy = "weir_upstream_target_healthy", Gauge, "1 if an address of a checked target gets calls, else 0; the first 1,000 of them.";
    UpstreamTargets = "weir_upstream_targets", Gauge, "Addresses of all checked targets, by health.";
    StreamSessions = "weir_stream_sessions_total", Counter, "Sessions of streams below HTTP that have ended, by protocol and result.";
    StreamSessionsActive = "weir_stream_sessions_active", Gauge, "Sessions of streams below HTTP that are open now, by protocol.";
    StreamBytesIn = "weir_stream_received_bytes_total", Counter, "Bytes of streams received from clients and passed on, by protocol.";
    StreamBytesOut = "weir_stream_sent_bytes_total", Counter, "Bytes of streams sent to clients, by protocol.";
    StreamDatagramsDropped = "weir_stream_datagrams_dropped_total", Counter, "Datagrams of clients that were not passed on.";
    CertificateExpires = "weir_certificate_expires_seconds", Gauge, "Seconds until a certificate that clients get expires, by its first name; below 0 afterwards.";
    OcspResponses = "weir_ocsp_responses_total", Counter, "Requests to OCSP responders of certificates, by result: stapled, unusable answer, or no answer.";
    ProtocolErrors = "weir_protocol_errors_total", Counter, "Violations of the protocol by clients and upstreams, by kind.";
    Refusals = "weir_refusals_total", Counter, "Responses that the gateway generated itself, by reason.";
    RouteRequests = "weir_route_requests_total", Counter, "Requests by service, route and status; code other is the rest of its class.";
    RouteBytesIn = "weir_route_received_bytes_total", Counter, "Bytes of requests received from clients, by service and route.";
    RouteBytesOut = "weir_route_sent_bytes_total", Counter, "Bytes of responses sent to clients, by service and route.";
    RequestDuration = "weir_request_duration_seconds", Histogram, "Time from when a request's head is read to the last byte of its response.";
    UpstreamDuration = "weir_upstream_duration_seconds", Histogram, "Part of a request's time spent on its upstream; only requests that called one.";
    GatewayDuration = "weir_gateway_duration_seconds", Histogram, "Part of a request's time not spent on its upstream.";
    Series = "weir_metrics_series", Gauge, "Service and route pairs that have their own series.";
    SeriesLimit = "weir_metrics_series_limit", Gauge, "Maximum number of service and route pairs with their own series.";
    SeriesOverflow = "weir_metrics_series_overflow", Gauge, "Routes of the current configuration that are counted as route _other.";
    AccessLogLines = "weir_access_log_lines_total", Counter, "Access log lines, by whether they were written or dropped.";
    LogEntries = "weir_log_entries_total", Counter, "Entries that plugins logged to targets of a kind, by whether they were sent or dropped.";
    LogRetries = "weir_log_retries_total", Counter, "Messages with log entries that were sent again, by kind of target.";
    AnalyticsDropped = "weir_analytics_calls_dropped_total", Counter, "Calls that analytics did not count because its queue was full.";
    AnalyticsBatches = "weir_analytics_batches_total", Counter, "Batches of counts, by result: stored or delivered, failed and retried, or lost.";
    RedisUp = "weir_redis_up", Gauge, "1 if a Redis that holds counts was reachable at its last use, else 0.";
    RedisCalls = "weir_redis_calls_total", Counter, "Scripts for a Redis, by result: answered, failed, or skipped because it was unreachable.";
    RedisConnections = "weir_redis_connections_opened_total", Counter, "Connections made to a Redis.";
    CountersEvicted = "weir_limit_counters_evicted_total", Counter, "Counters of limits that still counted and were evicted to make room, by plugin.";
}

/// Label names.
pub(super) mod label {
    pub const SERVICE: &str = "service";
    pub const ROUTE: &str = "route";
    pub const NAME: &str = "name";
    pub const CLASS: &str = "class";
    pub const CODE: &str = "code";
    pub const KIND: &str = "kind";
    pub const PROTOCOL: &str = "protocol";
    pub const REASON: &str = "reason";
    pub const RESULT: &str = "result";
    pub const HASH: &str = "hash";
    pub const VERSION: &str = "version";
    pub const REVISION: &str = "revision";
    pub const UPSTREAM: &str = "upstream";
    pub const TARGET: &str = "target";
    pub const ADDRESS: &str = "address";
    pub const HEALTH: &str = "health";
    pub const SERVER: &str = "server";
    pub const PLUGIN: &str = "plugin";
    pub const LE: &str = "le";
}

/// The series of requests that no route took.
pub(super) const UNMATCHED: (&str, &str) = ("", "_unmatched");
/// The series of routes beyond the limit.
pub(super) const OTHER: (&str, &str) = ("_other", "_other");

macro_rules! label_values {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $label:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All values, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            pub(super) const COUNT: usize = Self::ALL.len();

            /// The label's value.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)* }
            }
        }
    };
}

label_values! {
    /// What a peer did wrong on the wire: `kind` of `weir_protocol_errors_total`.
    ProtocolError {
        /// A request that breaks HTTP, or that two parsers could read differently (400).
        BadRequest = "bad_request",
        /// Request line longer than allowed (414).
        TargetTooLong = "target_too_long",
        /// Header section larger than allowed (431).
        HeadTooLarge = "head_too_large",
        /// Body larger than allowed (413).
        BodyTooLarge = "body_too_large",
        /// A method, version or transfer coding that Weir does not speak (501, 505).
        Unsupported = "unsupported",
        /// A TLS handshake that came to nothing.
        TlsHandshake = "tls_handshake",
        /// A connection of a trusted balancer without a header of the PROXY protocol.
        ProxyProtocol = "proxy_protocol",
        /// A QUIC handshake that came to nothing.
        QuicHandshake = "quic_handshake",
        /// The client did not finish its request head in time.
        HeadTimeout = "head_timeout",
        /// The client did not send its body, or take the response, in time.
        BodyTimeout = "body_timeout",
        /// The client went away before its response was complete.
        ClientAborted = "client_aborted",
        /// An upstream's response that does not parse.
        UpstreamMalformed = "upstream_malformed",
        /// An upstream that closed before its response was complete.
        UpstreamTruncated = "upstream_truncated",
    }
}

label_values! {
    /// What is spoken on a session below HTTP: `protocol` of `weir_stream_sessions_total` and its like.
    StreamKind {
        /// Anything over TCP.
        Tcp = "tcp",
        /// TLS that the gateway ends.
        Tls = "tls",
        /// TLS that passes through.
        TlsPassthrough = "tls-passthrough",
        /// Datagrams.
        Udp = "udp",
    }
}

label_values! {
    /// How a session below HTTP has ended: `result` of `weir_stream_sessions_total`.
    StreamResult {
        /// Both sides have said all that they had to say, or one has gone after it was served.
        Done = "done",
        /// Nothing moved for the idle time-out.
        Idle = "idle",
        /// A connection broke while bytes were on their way.
        Broken = "broken",
        /// The client's handshake came to nothing.
        Handshake = "handshake",
        /// No route takes it, or its route leads nowhere.
        NoRoute = "no_route",
        /// A plugin refused it.
        Refused = "refused",
        /// No target could be used: none, none healthy, or none resolved.
        NoTarget = "no_target",
        /// No target could be reached.
        Connect = "upstream_connect",
        /// Targets took too long to be reached.
        Timeout = "upstream_timeout",
        /// There are too many sessions.
        Overload = "overload",
    }
}

label_values! {
    /// Why the gateway answered by itself: `reason` of `weir_refusals_total`.
    Refusal {
        /// The request broke the protocol or a limit of it (400, 408, 413, 414, 431, 501, 505).
        Protocol = "protocol",
        /// No route matched (404).
        NoRoute = "no_route",
        /// The route wants another protocol (426, or a redirect to HTTPS).
        WrongProtocol = "wrong_protocol",
        /// Credentials missing or wrong (401).
        Unauthenticated = "unauthenticated",
        /// Credentials good, access not granted (403).
        Forbidden = "forbidden",
        /// A rate or quota was used up (429, 503).
        RateLimited = "rate_limited",
        /// The work for the call went beyond its budget (400).
        WorkLimit = "work_limit",
        /// Answered by a plugin for another reason.
        Plugin = "plugin",
        /// No upstream target could be used: none, none healthy, or none resolved (503).
        NoTarget = "no_target",
        /// The upstream could not be reached (502).
        UpstreamConnect = "upstream_connect",
        /// The upstream broke off or answered nonsense (502).
        UpstreamInvalid = "upstream_invalid",
        /// The upstream took too long (504).
        UpstreamTimeout = "upstream_timeout",
        /// The gateway is overloaded or draining (503).
        Unavailable = "unavailable",
        /// The gateway's own fault (500).
        Internal = "internal",
        /// The caller has no subscription to the API (403).
        NoSubscription = "no_subscription",
        /// The provider has paused the subscription (403).
        SubscriptionPaused = "subscription_paused",
        /// The application has stopped the subscription (403).
        SubscriptionStopped = "subscription_stopped",
        /// The subscription has ended (403).
        SubscriptionEnded = "subscription_ended",
        /// The subscription has not begun (403).
        SubscriptionNotBegun = "subscription_not_begun",
        /// The plan of the subscription does not contain the operation (403).
        NotInPlan = "not_in_plan",
        /// The version of the API is retired (410).
        Retired = "retired",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_follow_the_conventions() {
        let mut seen = HashSet::new();
        for metric in Metric::ALL {
            let name = metric.name();
            assert!(seen.insert(name), "{name} twice");
            assert!(name.starts_with("weir_"), "{name}");
            assert!(
                name.bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
                "{name}"
            );
            assert_eq!(
                name.ends_with("_total"),
                metric.kind() == MetricType::Counter,
                "{name}"
            );
            assert!(metric.help().ends_with('.'), "{name}");
        }
    }

    #[test]
    fn label_values_are_distinct_and_indexed_by_declaration() {
        let kinds: HashSet<_> = ProtocolError::ALL.iter().map(|k| k.label()).collect();
        assert_eq!(kinds.len(), ProtocolError::COUNT);
        let reasons: HashSet<_> = Refusal::ALL.iter().map(|r| r.label()).collect();
        assert_eq!(reasons.len(), Refusal::COUNT);
        assert!(
            ProtocolError::ALL
                .iter()
                .enumerate()
                .all(|(i, k)| *k as usize == i)
        );
        assert!(Refusal::ALL.iter().enumerate().all(|(i, r)| *r as usize == i));
    }
}
