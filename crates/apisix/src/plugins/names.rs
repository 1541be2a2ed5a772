//! The fate of each plugin name of APISIX, and of API7's paid editions. A row changes with the plugin: a test of the
//! house (`cargo test -p weir-tidy plugin_names`) compares the rows with what is built, and the tables of
//! `docs/compatibility.md` are made of them.

use weir_dialect::PluginName;

/// It belongs to the plugins of language models.
const OF_MODELS: &str = "plugins for language models are not built yet";
/// It runs code of the administrator.
const OF_CODE: &str = "plugins that run users' code are not built yet";
/// It is planned.
const NOT_BUILT: &str = "it is not built yet";
const CACHED: &str = "calls bypass the cache (`Bypass`) if they have a body that the key does not distinguish; a GET or HEAD with a body always does. The originals use one stored answer for all of them";
const CUT: &str =
    "nothing is sent after `max_resp_body_size`; the original passes some of the further pieces unchanged";
const LOGS: &str = "secrets in headers and query are masked; with several addresses, the first gets the entries; a time in Elasticsearch's index is refused; a request body above 1 MiB is not logged";
const TRACES: &str = "one span per call, with Zipkin's phases as events; an invalid `b3` is ignored, while the original answers 400";
const REDIS: &str = "Redis policies: the calls of a worker share one connection, `redis_role: slave` is refused, keys have different names ([shared limits](redis.md))";
const GRPC: &str = "definitions are compiled when the configuration is loaded; see [grpc-transcode](plugins/grpc-transcode.md#other-spellings) and [grpc-web](plugins/grpc-web.md#other-spellings)";
const REGEX: &str = "regular expressions with look-around or backreferences are refused";

/// All of them, by name.
pub static NAMES: &[PluginName] = &[
    PluginName::served("acl"),
    PluginName::checked("ai", OF_MODELS),
    PluginName::checked("ai-aliyun-content-moderation", OF_MODELS),
    PluginName::checked("ai-aws-content-moderation", OF_MODELS),
    PluginName::checked("ai-cache", OF_MODELS),
    PluginName::checked("ai-lakera-guard", OF_MODELS),
    PluginName::checked("ai-prompt-decorator", OF_MODELS),
    PluginName::checked("ai-prompt-guard", OF_MODELS),
    PluginName::checked("ai-prompt-template", OF_MODELS),
    PluginName::checked("ai-proxy", OF_MODELS),
    PluginName::checked("ai-proxy-multi", OF_MODELS),
    PluginName::checked("ai-rag", OF_MODELS),
    PluginName::checked("ai-rate-limiting", OF_MODELS),
    PluginName::checked("ai-request-rewrite", OF_MODELS),
    PluginName::served("api-breaker"),
    PluginName::served("attach-consumer-label"),
    PluginName::differs(
        "authz-casbin",
        &[
            "files (`model_path`, `policy_path`) are below the folder of `--apisix-config`; roles have no domains ([casbin](plugins/casbin.md))",
        ],
    ),
    PluginName::differs(
        "authz-casdoor",
        &[
            "all gateways with the same `client_secret` know a session; browsers come back with their query ([casdoor-login](plugins/casdoor-login.md))",
        ],
    ),
    PluginName::differs(
        "authz-keycloak",
        &[
            "an answer without `\"result\": true` is not a permission; the client fetches another token rather than refresh one ([authz-keycloak](plugins/authz-keycloak.md))",
        ],
    ),
    PluginName::differs(
        "aws-lambda",
        &["of a call's headers, only `Content-Type` and `X-Amz-…` are signed besides `Host`"],
    ),
    PluginName::served("azure-functions"),
    PluginName::differs(
        "basic-auth",
        &["a password with a `:` is refused; the original compares only the part before the colon"],
    ),
    PluginName::idle(
        "batch-requests",
        "batches are answered where `public-api` makes them public, whether a route has the plugin or not; calls are made one after the other; a `max_body_size` above 32 MiB counts as 32 MiB; the refusal of a longer body without `Content-Length` names the limit and one byte as its size",
    ),
    PluginName::differs(
        "body-transformer",
        &[
            CUT,
            "templates support `if`, `for` and `local`; other statements and nested templates are refused",
        ],
    ),
    PluginName::served("brotli"),
    PluginName::differs(
        "cas-auth",
        &[
            "sessions are kept in sealed cookies: what the server ends is known to all gateways of a store ([cas-login](plugins/cas-login.md))",
        ],
    ),
    PluginName::differs(
        "chaitin-waf",
        &[
            "the three timeouts are one, their sum, of 60 s at most; `real_client_ip` counts; an attack is refused even if the detector names no event; nodes that are Unix sockets, which the original does not reach, are left out ([safeline-waf](plugins/safeline-waf.md))",
        ],
    ),
    PluginName::differs("clickhouse-logger", &[LOGS]),
    PluginName::served("client-control"),
    PluginName::differs(
        "consumer-restriction",
        &["`type: service_id` works for services with an upstream of their own (not by `upstream_id`)"],
    ),
    PluginName::differs("cors", &[REGEX]),
    PluginName::served("csrf"),
    PluginName::differs(
        "data-mask",
        &[
            "a body that cannot be read as the rules say is not logged, and of a form only the first `max_req_post_args` fields; expressions with look-around or backreferences are refused",
        ],
    ),
    PluginName::served("datadog"),
    PluginName::served("degraphql"),
    PluginName::served("dingtalk-auth"),
    PluginName::refused("dubbo-proxy", "it needs a module of Tengine"),
    PluginName::served("echo"),
    PluginName::differs("elasticsearch-logger", &[LOGS]),
    PluginName::differs(
        "error-log-logger",
        &[
            "it works as soon as it has metadata, whether it is in `plugins` of `config.yaml` or not; lines are those of Weir; a line that `WEIR_LOG` keeps out of standard error is not sent ([gateway-log](plugins/gateway-log.md))",
        ],
    ),
    PluginName::served("error-page"),
    PluginName::checked("example-plugin", NOT_BUILT),
    PluginName::checked("exit-transformer", OF_CODE),
    PluginName::checked("ext-plugin-post-req", OF_CODE),
    PluginName::checked("ext-plugin-post-resp", OF_CODE),
    PluginName::checked("ext-plugin-pre-req", OF_CODE),
    PluginName::served("fault-injection"),
    PluginName::served("feishu-auth"),
    PluginName::differs(
        "file-logger",
        &[
            "files are written only in the folder of `--log-dir`; paths with `..` or hidden names are refused at the write ([files](security.md#files))",
            LOGS,
        ],
    ),
    PluginName::served("forward-auth"),
    PluginName::refused("gm", "it needs a TLS library with the ciphers of GM/T"),
    PluginName::differs(
        "google-cloud-logging",
        &[
            LOGS,
            "a file with the account (`auth_file`) is below the folder of `--apisix-config`",
        ],
    ),
    PluginName::differs(
        "graphql-limit-count",
        &[
            "only a fixed window and a fixed count; a schema is asked for again after ten minutes, and for each path; a query that servers may read in two ways is refused ([graphql-limit](plugins/graphql-limit.md))",
        ],
    ),
    PluginName::differs("graphql-proxy-cache", &[CACHED]),
    PluginName::differs("grpc-transcode", &[GRPC]),
    PluginName::differs("grpc-web", &[GRPC]),
    PluginName::served("gzip"),
    PluginName::served("hmac-auth"),
    PluginName::differs(
        "http-dubbo",
        &[
            "a body that is no list and no map gets 400; a connection that takes too long gets 504; results have at most 8 MiB; another node is tried if a connection fails ([dubbo](plugins/dubbo.md))",
        ],
    ),
    PluginName::differs("http-logger", &[LOGS]),
    PluginName::refused("inspect", "it debugs the original's own Lua code"),
    PluginName::served("ip-restriction"),
    PluginName::served("jwe-decrypt"),
    PluginName::differs(
        "jwt-auth",
        &[
            "RSA keys of 512 to 2047 bits are served with a warning (only RS256, RS384 and RS512); shorter ones are not",
            "Ed448 keys are refused: use Ed25519",
            "a token with `crit` is refused, and so is a call with a second token in the same header, argument or cookie (the originals use one of them)",
        ],
    ),
    PluginName::differs(
        "kafka-logger",
        &[
            "the first `sasl_config` is used for all brokers; records with a `key` go to the partition that Kafka's own clients choose; `meta_format: origin` is refused; `producer_…` is accepted but not used: the gateway forms its own batches",
            LOGS,
        ],
    ),
    PluginName::checked("kafka-proxy", NOT_BUILT),
    PluginName::served("key-auth"),
    PluginName::differs(
        "lago",
        &[
            "with several addresses, the first gets the entries",
            "a variable without a value is empty; the original drops the event",
        ],
    ),
    PluginName::differs(
        "ldap-auth",
        &[
            "500 while the directory does not answer, not 401; blanks in names and passwords count ([ldap-auth](plugins/ldap-auth.md))",
        ],
    ),
    PluginName::differs(
        "ldap-auth-advanced",
        &["`keepalive_pool_name` is not used ([ldap-auth](plugins/ldap-auth.md))"],
    ),
    PluginName::differs("limit-conn", &[REDIS]),
    PluginName::differs(
        "limit-count",
        &[
            REDIS,
            "sliding windows are exact over all workers; a group that only one document uses can be reconfigured without a restart",
        ],
    ),
    PluginName::refused(
        "limit-count-advanced",
        "only API7 Enterprise has it, and its behaviour is not published",
    )
    .paid(),
    PluginName::differs("limit-req", &[REDIS]),
    PluginName::idle(
        "log-rotate",
        "rotation is the work of the system; log files can be moved away at any time",
    ),
    PluginName::differs(
        "loggly",
        &[
            LOGS,
            "`severity_map` is not used: all entries have the severity of `severity`",
        ],
    ),
    PluginName::differs("loki-logger", &[LOGS]),
    PluginName::checked("mcp-bridge", OF_MODELS),
    PluginName::served("mocking"),
    PluginName::differs(
        "mqtt-proxy",
        &["a CONNECT whose id stands behind more than 128 KiB is refused ([Streams](streams.md#mqtt))"],
    ),
    PluginName::served("multi-auth"),
    PluginName::idle(
        "node-status",
        "it is answered where `public-api` makes it public, whether a route has the plugin or not",
    ),
    PluginName::differs(
        "oas-validator",
        &[
            "`unevaluatedProperties` is not checked; a duplicate member of an object is refused; a document in `spec` that cannot be used makes calls end with 503 rather than 500; words of verbose errors differ",
        ],
    ),
    PluginName::idle(
        "ocsp-stapling",
        "`ocsp_stapling` of a certificate says all, whether routes or `plugins` of `config.yaml` have the plugin or not; responders are asked ahead, so that no handshake waits ([TLS](tls.md#ocsp-stapling))",
    ),
    PluginName::differs(
        "opa",
        &[
            "the data about route and service that the agent gets has `***` in place of secrets; with `with_route` and `with_service` of a global rule, it has their names and labels only; `with_consumer` sends a consumer without its plugins and times",
        ],
    ),
    PluginName::served("openfunction"),
    PluginName::differs(
        "openid-connect",
        &[
            "sessions are kept in sealed cookies, also with `storage: redis`; `dpop` and `force_reauthorize` are refused; signatures of identity tokens are always checked; `refresh_session_interval` is not used; 503 while the provider cannot be reached ([openid-connect](plugins/openid-connect.md))",
        ],
    ),
    PluginName::differs("opentelemetry", &[TRACES]),
    PluginName::served("openwhisk"),
    PluginName::refused(
        "portal-auth",
        "only API7 Enterprise has it, and its behaviour is not published",
    )
    .paid(),
    PluginName::differs(
        "prometheus",
        &[
            "served at `/metrics` and `/apisix/prometheus/metrics` of the status listener, Kong's also on its Admin API; metrics of Lua and NGINX are left out ([prometheus](plugins/prometheus.md#other-spellings))",
        ],
    ),
    PluginName::idle("proxy-buffering", "bodies are always passed on as they come"),
    PluginName::differs(
        "proxy-cache",
        &[
            CACHED,
            "responses with `Vary` are stored for each variant; `HEAD` stores nothing; concurrent calls share one fetch",
            "if a call has `Authorization` and no known consumer, its response is stored only for callers with the same value",
            "with `cache_control`, if a call has `Authorization` and no known consumer, its response is stored only if RFC 9111 (3.5) allows it",
            "`cache_strategy: disk` uses the disk that [`--apisix-config`](apisix-config.md) names for the zone; without it, memory, with a warning",
        ],
    ),
    PluginName::served("proxy-control"),
    PluginName::differs(
        "proxy-mirror",
        &[
            "only `http://`: with `https://`, `grpc://` and `grpcs://` calls are served without copies, and the plugin is reported as left out; copies have no `X-Forwarded-*`; bodies above 1 MiB are not copied",
        ],
    ),
    PluginName::differs("proxy-rewrite", &[REGEX]),
    PluginName::differs(
        "public-api",
        &[
            "the metrics, batches of `batch-requests`, the status of `node-status` and the purges of `graphql-proxy-cache` (without `uri`) can be made public; other interfaces of plugins are refused or answer 404. A purge finds only routes that have the plugin themselves",
        ],
    ),
    PluginName::served("real-ip"),
    PluginName::served("redirect"),
    PluginName::served("referer-restriction"),
    PluginName::served("request-id"),
    PluginName::differs("request-validation", &["`$ref` works only within the schema"]),
    PluginName::differs("response-rewrite", &[CUT]),
    PluginName::differs(
        "rocketmq-logger",
        &[
            LOGS,
            "`meta_format: origin` is refused; sending is tried with the broker of the next queue once, and all further retries are those of `max_retry_count`",
        ],
    ),
    PluginName::differs(
        "saml-auth",
        &[
            "answers that were not asked for, that answer another browser's request, or that are signed with SHA-1 are refused; encrypted assertions too; sessions are kept in sealed cookies: what the provider ends is known to all gateways of a store; users are no consumers, and `acl` does not see their attributes ([saml](plugins/saml.md))",
        ],
    ),
    PluginName::idle("server-info", "`/status` and the overview of the console show it"),
    PluginName::checked("serverless-post-function", OF_CODE),
    PluginName::checked("serverless-pre-function", OF_CODE),
    PluginName::differs(
        "skywalking",
        &[
            "a call that no upstream was asked for has no exit span; instances are not registered nor kept alive by requests of their own: their segments name them",
        ],
    ),
    PluginName::differs("skywalking-logger", &[LOGS, "entries have no `traceContext`"]),
    PluginName::differs("sls-logger", &[LOGS]),
    PluginName::refused(
        "soap",
        "only API7 Enterprise has it, and its behaviour is not published",
    )
    .paid(),
    PluginName::differs("splunk-hec-logging", &[LOGS]),
    PluginName::differs("syslog", &[LOGS]),
    PluginName::differs("tcp-logger", &[LOGS]),
    PluginName::differs(
        "tencent-cloud-cls",
        &[LOGS, "entries have no `source` (the gateway's address)"],
    ),
    PluginName::refused(
        "toolset",
        "only API7 Enterprise has it, and its behaviour is not published",
    )
    .paid(),
    PluginName::served("traffic-label"),
    PluginName::differs(
        "traffic-split",
        &["calls to an upstream that does not exist are answered 503"],
    ),
    PluginName::served("ua-restriction"),
    PluginName::differs("udp-logger", &[LOGS]),
    PluginName::served("uri-blocker"),
    PluginName::differs(
        "wolf-rbac",
        &[
            "without `ok` or a user in its answer, a server has allowed nothing (403); its statuses from 300 to 399 let no call pass",
        ],
    ),
    PluginName::served("workflow"),
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

    #[test]
    fn all_names_of_the_original_have_rows() {
        for name in crate::admin::plugin_names() {
            assert!(row(name).is_some_and(|it| !it.is_paid), "{name}");
        }
    }
}
