//! The fate of each plugin name of Kong, of the free and of the paid edition. A row changes with the plugin: a test of
//! the house (`cargo test -p weir-tidy plugin_names`) compares the rows with what is built, and the tables of
//! `docs/compatibility.md` are made of them.

use weir_dialect::PluginName;

/// It belongs to the plugins of language models.
const OF_MODELS: &str = "plugins for language models are not built yet";
/// It runs code of the administrator.
const OF_CODE: &str = "plugins that run users' code are not built yet";
const COUNTS: &str = "`policy: cluster`: gateways synchronise their counts through the control plane ([limits over gateways](limits-over-gateways.md)); `policy: redis`: calls over the limit are not counted; keys have different names ([shared limits](redis.md)); a consumer's plugin counts for itself, also by `ip`, `header` and `path` ([rate-limit](plugins/rate-limit.md))";
const ADVANCED_COUNTS: &str = "calls over the limit are not counted, as with `disable_penalty`; `strategy: cluster`: gateways synchronise their counts through the control plane four times in a second, whatever `sync_rate` is ([limits over gateways](limits-over-gateways.md)); at most 8 limits; of Redis Sentinel, only the master is used; the calls of a worker share one connection, whatever `keepalive_pool_size` is; `connection_is_proxied` is refused";
const STATSD: &str = "`shdict_usage` is left out, services are reported by name, `workspace` is `default`; a `sample_rate` below 1 skips calls";
const LOGS: &str = "`custom_fields_by_lua` is refused; entries have no `upstream_uri` and no `workspace`, contain only the names of route and service, and of the response's headers those of the upstream, and have `latencies.receive` 0; secrets in headers and query are masked";
const TRACES: &str = "always on, because `kong.conf` is not read; no spans of the router, DNS and plugins; `logs_endpoint` is not used ([tracing](plugins/tracing.md#other-spellings))";
const SOCKETS: &str = "it works on routes of HTTP whose calls become WebSockets; a limit is for a message, and not for each frame of it";
const CERTIFICATES: &str = "revoked certificates are found by lists (CRL), not by OCSP; `cache_ttl` is not used; no explicit credentials (`mtls_auth_credentials`) ([mtls-auth](plugins/mtls-auth.md))";
const GRPC: &str = "definitions are compiled when the configuration is loaded; see [grpc-transcode](plugins/grpc-transcode.md#other-spellings) and [grpc-web](plugins/grpc-web.md#other-spellings)";

/// All of them, by name.
pub static NAMES: &[PluginName] = &[
    PluginName::refused("ace", "it works only with Konnect").paid(),
    PluginName::served("acl"),
    PluginName::differs(
        "acme",
        &[
            "only names in `domains`, obtained at once and stored in Weir's store; `allow_any_domain`, `account_key` and `preferred_chain` are refused ([ACME](acme.md#kongs-plugin))",
        ],
    ),
    PluginName::refused("ai-a2a-proxy", OF_MODELS).paid(),
    PluginName::refused("ai-aws-guardrails", OF_MODELS).paid(),
    PluginName::refused("ai-azure-content-safety", OF_MODELS).paid(),
    PluginName::refused("ai-custom-guardrail", OF_MODELS).paid(),
    PluginName::refused("ai-gcp-model-armor", OF_MODELS).paid(),
    PluginName::refused("ai-lakera-guard", OF_MODELS).paid(),
    PluginName::refused("ai-llm-as-judge", OF_MODELS).paid(),
    PluginName::refused("ai-mcp-oauth2", OF_MODELS).paid(),
    PluginName::refused("ai-mcp-proxy", OF_MODELS).paid(),
    PluginName::refused("ai-prompt-compressor", OF_MODELS).paid(),
    PluginName::checked("ai-prompt-decorator", OF_MODELS),
    PluginName::checked("ai-prompt-guard", OF_MODELS),
    PluginName::checked("ai-prompt-template", OF_MODELS),
    PluginName::checked("ai-proxy", OF_MODELS),
    PluginName::refused("ai-proxy-advanced", OF_MODELS).paid(),
    PluginName::refused("ai-rag-injector", OF_MODELS).paid(),
    PluginName::refused("ai-rate-limiting-advanced", OF_MODELS).paid(),
    PluginName::checked("ai-request-transformer", OF_MODELS),
    PluginName::checked("ai-response-transformer", OF_MODELS),
    PluginName::refused("ai-sanitizer", OF_MODELS).paid(),
    PluginName::refused("ai-semantic-cache", OF_MODELS).paid(),
    PluginName::refused("ai-semantic-prompt-guard", OF_MODELS).paid(),
    PluginName::refused("ai-semantic-response-guard", OF_MODELS).paid(),
    PluginName::refused("app-dynamics", "it needs the closed agent of AppDynamics").paid(),
    PluginName::refused(
        "application-registration",
        "it works only with the developer portal of Kong Enterprise",
    )
    .paid(),
    PluginName::differs("aws-lambda", &["keys and the region must be in the configuration: those of the environment and of roles (`aws_assume_role_arn`) are refused; large bodies are sent too, whatever `skip_large_bodies` says"]),
    PluginName::served("azure-functions"),
    PluginName::served("basic-auth"),
    PluginName::differs("bot-detection", &["the list of known programs is Weir's own"]),
    PluginName::differs(
        "canary",
        &["`hash: none` decides each call by chance; with `hash: header`, callers without the header are distinguished by their addresses; `percentage` or `start` must be given"],
    )
    .paid(),
    PluginName::differs(
        "confluent",
        &["as `kafka-upstream`; the keys of the cloud (`confluent_cloud_api_key`) are not used ([kafka-upstream](plugins/kafka-upstream.md))"],
    )
    .paid(),
    PluginName::differs(
        "confluent-consume",
        &["as `kafka-consume`; certificates are verified; the keys of the cloud (`confluent_cloud_api_key`) are not used ([kafka-consume](plugins/kafka-consume.md))"],
    )
    .paid(),
    PluginName::served("correlation-id"),
    PluginName::served("cors"),
    PluginName::differs("datadog", &[STATSD]),
    PluginName::differs(
        "datakit",
        &["nodes run one after the other, those of a branch that is not taken give null, and branches have no outputs; the nodes `jwt_decode`, `jwt_sign` and `jwt_verify`, `xpath`, proxies that nodes compute, and properties without an equal are refused; `debug` tells the node that has failed, without traces ([orchestration](plugins/orchestration.md#other-spellings))"],
    )
    .paid(),
    PluginName::differs(
        "degraphql",
        &["paths of its routes are compared with what the route of the gateway leaves of the path, also without `strip_path`; variables of the types `Int`, `Float` and `Boolean` are converted ([degraphql](plugins/degraphql.md))"],
    )
    .paid(),
    PluginName::refused("exit-transformer", OF_CODE).paid(),
    PluginName::differs(
        "file-log",
        &[
            "files are written only in the folder of `--log-dir`; paths with `..` or hidden names are refused at the write ([files](security.md#files))",
            LOGS,
        ],
    ),
    PluginName::differs(
        "forward-proxy",
        &["where only one of `http_proxy_host` and `https_proxy_host` is given, it serves both kinds of services; services over TLS are reached through `CONNECT`, and calls with HTTP/2 in the clear (gRPC) are refused with 502; services with several targets work ([forward-proxy](plugins/forward-proxy.md))"],
    )
    .paid(),
    PluginName::differs(
        "graphql-proxy-cache-advanced",
        &["while the Redis of `strategy: redis` is away, calls go to the service, also without `bypass_on_err`; its responses have at most a half mebibyte, and the Admin API does not reach what is in the Redis"],
    )
    .paid(),
    PluginName::differs(
        "graphql-rate-limiting-advanced",
        &[ADVANCED_COUNTS, "`pass_all_downstream_headers` is refused; at most 10,000 costs of a service, and 100 without one, which count for all; a query is refused (500) while its service has costs and does not provide its schema ([rate-limit](plugins/rate-limit.md#costs-of-graphql-queries))"],
    )
    .paid(),
    PluginName::differs("grpc-gateway", &[GRPC]),
    PluginName::differs("grpc-web", &[GRPC]),
    PluginName::differs(
        "header-cert-auth",
        &[CERTIFICATES, "with `secure_source`, only peers on the same host are believed: Weir does not read the original's `trusted_ips`"],
    )
    .paid(),
    PluginName::served("hmac-auth"),
    PluginName::differs("http-log", &[LOGS]),
    PluginName::differs(
        "injection-protection",
        &["the patterns are Weir's own; each text is also looked at with its escapes undone"],
    )
    .paid(),
    PluginName::served("ip-restriction"),
    PluginName::differs(
        "jq",
        &["programs are bounded in steps, memory and depth; `input`, `env`, modules and dates are refused, and a body that a program fails on is refused ([jq](plugins/jq.md))"],
    )
    .paid(),
    PluginName::served("json-threat-protection").paid(),
    PluginName::differs(
        "jwe-decrypt",
        &["key agreement (`ECDH-ES`) and wrapped keys (`A256KW`) are refused; a token must name its key (`kid`) ([jwe-decrypt](plugins/jwe-decrypt.md))"],
    )
    .paid(),
    PluginName::differs(
        "jwt",
        &[
            "RSA keys of 512 to 2047 bits are served with a warning (only RS256, RS384 and RS512); shorter ones are not",
            "Ed448 keys are refused: use Ed25519",
            "a token whose `iss` (or other `key_claim_name`) is a number gets 401 with `Invalid 'iss' in claims`; the original answers 500",
            "a token with `crit` is refused, and so is a call with a second token in the same header, argument or cookie (the originals use one of them)",
        ],
    ),
    PluginName::differs(
        "jwt-signer",
        &["the gateway makes keys if it has a store, and none for `HS…` algorithms; `/jwt-signer/jwks` shows no secrets and no keys that were fetched, and `rotate` fetches none; client certificates for servers of keys are refused, and their certificates are checked; a token without `exp` is refused while expiry is checked, `nbf` is checked with it; `enable_instrumentation` is not used; of the fields about audiences, issuers and subjects that later versions have, a value other than the default is refused by name ([jwt-signer](plugins/jwt-signer.md))"],
    )
    .paid(),
    PluginName::differs(
        "kafka-consume",
        &["`mode: websocket`, `enable_dlq`, `message_by_lua_functions`, `schema_registry`, `consumer_group.mode: kong_consumer`, client certificates (`security.certificate_id`) and delegation tokens (`tokenauth`) are refused; a group has no members, and its default name is another; records compressed by snappy, lz4 and zstd are not read ([kafka-consume](plugins/kafka-consume.md))"],
    )
    .paid(),
    PluginName::differs("kafka-log", &["client certificates (`security.certificate_id`) and delegation tokens (`tokenauth`) are refused; entries are always sent in batches", LOGS]).paid(),
    PluginName::differs(
        "kafka-upstream",
        &["client certificates (`security.certificate_id`) and delegation tokens (`tokenauth`) are refused; while brokers do not take a record, a call that waits for it gets 502, or 504 after twice the `timeout` ([kafka-upstream](plugins/kafka-upstream.md))"],
    )
    .paid(),
    PluginName::served("key-auth"),
    PluginName::differs(
        "key-auth-enc",
        &["its keys (`keyauth_enc_credentials`) are good for `key-auth` too, and those of `key-auth` for it; the store encrypts them, as all it holds, only with `--store-key` ([control plane](control-plane.md))"],
    )
    .paid(),
    PluginName::refused("konnect-application-auth", "it works only with Konnect").paid(),
    PluginName::differs(
        "ldap-auth",
        &["names are escaped, so that they cannot lead to another entry ([ldap-auth](plugins/ldap-auth.md))"],
    ),
    PluginName::differs(
        "ldap-auth-advanced",
        &["callers in none of `groups_required` get 403; `log_search_results` is not used ([ldap-auth](plugins/ldap-auth.md))"],
    )
    .paid(),
    PluginName::differs("loggly", &[LOGS]),
    PluginName::refused("metering-and-billing", "it works only with Konnect").paid(),
    PluginName::differs(
        "mocking",
        &["a document in a file (`api_specification_filename`) is refused: give it in `api_specification`"],
    )
    .paid(),
    PluginName::differs("mtls-auth", &[CERTIFICATES, "`send_ca_dn` is refused; clients are asked only by names that have a certificate"]).paid(),
    PluginName::differs(
        "oas-validation",
        &["`unevaluatedProperties` is not checked; a duplicate member of an object is refused"],
    )
    .paid(),
    PluginName::differs(
        "oauth2",
        &[
            "tokens that calls make are kept as hashes, so the Admin API gives no texts; without a store they are in memory and end with the process; a public client gets no token for itself, an empty scope counts as none if one is mandatory, a code that is used twice takes its token back; `accept_http_if_already_terminated` believes private networks ([oauth2-server](plugins/oauth2-server.md))",
        ],
    ),
    PluginName::differs(
        "oauth2-introspection",
        &["`introspect_request` and `custom_introspection_headers` are refused; `X-Credential-Username` is sent too ([openid-connect](plugins/openid-connect.md))"],
    )
    .paid(),
    PluginName::differs(
        "opa",
        &["the agent gets no `ws_id` of route and service; `tls` has no fields"],
    )
    .paid(),
    PluginName::differs(
        "openid-connect",
        &[
            "about 100 of its fields; of the others, a value other than the default is refused by name; `login_action: upstream` sends the browser to the page that it asked for; sessions are kept in sealed cookies, also with `session_storage: redis`; `ssl_verify` is true by default; tokens of `kong_oauth2` are not known; in a query and a body, passwords are `username` and `password`, and a client is `client_id` and `client_secret`; `client_id` is required but for `bearer` and `userinfo`, and a secret for sessions; 503 while the provider does not say whether a token is good ([openid-connect](plugins/openid-connect.md))",
        ],
    )
    .paid(),
    PluginName::differs("opentelemetry", &[TRACES]),
    PluginName::checked("post-function", OF_CODE),
    PluginName::checked("pre-function", OF_CODE),
    PluginName::differs(
        "prometheus",
        &[
            "served at `/metrics` and `/apisix/prometheus/metrics` of the status listener, Kong's also on its Admin API; metrics of Lua and NGINX are left out ([prometheus](plugins/prometheus.md#other-spellings))",
        ],
    ),
    PluginName::differs(
        "proxy-cache",
        &[
            "calls bypass the cache (`Bypass`) if they have a body that the key does not distinguish; a GET or HEAD with a body always does. The originals use one stored answer for all of them",
            "responses with `Vary` are stored for each variant; `HEAD` stores nothing; concurrent calls share one fetch",
            "with `cache_control`, if a call has `Authorization` and no known consumer, its response is stored only if RFC 9111 (3.5) allows it",
        ],
    ),
    PluginName::differs(
        "proxy-cache-advanced",
        &["while the Redis of `strategy: redis` is away, calls go to the service, also without `bypass_on_err`; its responses have at most a half mebibyte, and the Admin API does not reach what is in the Redis; what is said of `proxy-cache` holds, too"],
    )
    .paid(),
    PluginName::differs("rate-limiting", &[COUNTS]),
    PluginName::differs(
        "rate-limiting-advanced",
        &[ADVANCED_COUNTS, "`enforce_consumer_groups` is refused"],
    )
    .paid(),
    PluginName::served("redirect"),
    PluginName::differs(
        "request-callout",
        &["`by_lua` and `ssl_server_name` are refused; callouts are made one after the other; without `http_statuses`, answers of 400 and more are errors; expressions are allowed after the host of `url` only, and their values are escaped there ([callout](plugins/callout.md))"],
    )
    .paid(),
    PluginName::differs(
        "request-size-limiting",
        &["a body of unknown length above 1 MiB is counted while it is forwarded, and cut off at the limit"],
    ),
    PluginName::served("request-termination"),
    PluginName::differs(
        "request-transformer",
        &[
            "templates are expressions in Lua syntax, without function bodies; an invalid one is refused in bodies and queries, and fails the calls (500) in headers and the URI, as in Kong",
            "if fields of a body above 8 MiB are to be changed, the call is refused with 413; the original passes a body above 8 KiB unchanged",
        ],
    ),
    PluginName::differs("request-transformer-advanced", &["`dots_in_keys: false` is refused"]).paid(),
    PluginName::differs(
        "request-validator",
        &["a duplicate member of an object is refused"],
    )
    .paid(),
    PluginName::differs("response-ratelimiting", &[COUNTS]),
    PluginName::differs(
        "response-transformer",
        &[
            "also changes JSON in `gzip` and `br`; answers 502 for JSON in another coding, or above 64 MiB. The original passes what it cannot read",
        ],
    ),
    PluginName::differs("response-transformer-advanced", &["`dots_in_keys: false` and `transform.functions` are refused, and so are operations with different `if_status`"]).paid(),
    PluginName::served("route-by-header").paid(),
    PluginName::differs(
        "route-transformer-advanced",
        &["a call that leads to no name, address or port, or whose path leads up (`..`), is answered 500"],
    )
    .paid(),
    PluginName::differs(
        "saml",
        &[
            "`validate_assertion_signature: false`, `session_cookie_same_site: Strict`, `session_request_headers` and `session_response_headers` are refused, and options of other stores than cookies; sessions are kept in sealed cookies, also with `session_storage: redis`; a form that was posted before the login is not kept ([saml](plugins/saml.md))",
        ],
    )
    .paid(),
    PluginName::differs("service-protection", &[ADVANCED_COUNTS]).paid(),
    PluginName::differs(
        "session",
        &["sessions are kept in sealed cookies, also with `storage: kong`; an ended session is known to all gateways of a store; a `secret` must be given; `remember` uses the session's own cookie; only `id` of `request_headers` and `response_headers` ([session](plugins/session.md))"],
    ),
    PluginName::refused("solace-consume", "it needs the closed client of Solace").paid(),
    PluginName::refused("solace-log", "it needs the closed client of Solace").paid(),
    PluginName::refused("solace-upstream", "it needs the closed client of Solace").paid(),
    PluginName::served("standard-webhooks"),
    PluginName::differs("statsd", &[STATSD]),
    PluginName::differs("statsd-advanced", &[STATSD]).paid(),
    PluginName::differs("syslog", &[LOGS]),
    PluginName::differs("tcp-log", &[LOGS]),
    PluginName::served("tls-handshake-modifier").paid(),
    PluginName::served("tls-metadata-headers").paid(),
    PluginName::differs("udp-log", &[LOGS]),
    PluginName::differs(
        "upstream-oauth",
        &["tokens are kept in memory, also with `strategy: redis`; a call whose token the upstream refuses is repeated once, with another token ([upstream-oauth](plugins/upstream-oauth.md))"],
    )
    .paid(),
    PluginName::served("upstream-timeout").paid(),
    PluginName::differs(
        "vault-auth",
        &["through the Admin API, pairs of tokens are written only if `vault_token` is not a valid reference; without `ttl`, what the vault says is used for a minute; access tokens with `/`, `%`, `?`, `#` or blanks are refused ([vault-auth](plugins/vault-auth.md))"],
    )
    .paid(),
    PluginName::differs("websocket-size-limit", &[SOCKETS]).paid(),
    PluginName::differs("websocket-validator", &[SOCKETS]).paid(),
    PluginName::differs(
        "xml-threat-protection",
        &["documents must be in UTF-8; entities must be declared before they are used, and parameter entities are refused; bodies of types in neither list are refused"],
    )
    .paid(),
    PluginName::differs("zipkin", &[TRACES]),
];

/// The row of a name.
pub fn row(name: &str) -> Option<&'static PluginName> {
    let place = NAMES.binary_search_by(|row| row.name.cmp(name)).ok()?;
    NAMES.get(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_found() {
        assert!(NAMES.is_sorted_by(|a, b| a.name < b.name));
        assert!(NAMES.iter().all(|it| row(it.name) == Some(it)));
        assert_eq!(row("no-such"), None);
    }
}
