//! Which plugins APISIX has, and which of them Weir has.

use super::Mapping;
use super::cors::Cors;
use super::jwt_auth::JwtAuth;
use super::key_auth::KeyAuth;
use super::limit_count::LimitCount;
use super::proxy_rewrite::ProxyRewrite;
use super::request_id::RequestId;
use super::response_rewrite::ResponseRewrite;

/// The plugins that Weir has.
const BUILT: [&dyn Mapping; 7] = [
    &RequestId,
    &Cors,
    &JwtAuth,
    &KeyAuth,
    &ProxyRewrite,
    &LimitCount,
    &ResponseRewrite,
];

/// The plugins that APISIX 3.18 has besides. Using one is an error of its own, so that a call is never served
/// without something (an access check, a limit) that its owner counts on.
const OTHERS: [&str; 113] = [
    "acl",
    "ai",
    "ai-aliyun-content-moderation",
    "ai-aws-content-moderation",
    "ai-cache",
    "ai-lakera-guard",
    "ai-prompt-decorator",
    "ai-prompt-guard",
    "ai-prompt-template",
    "ai-proxy",
    "ai-proxy-multi",
    "ai-rag",
    "ai-rate-limiting",
    "ai-request-rewrite",
    "api-breaker",
    "attach-consumer-label",
    "authz-casbin",
    "authz-casdoor",
    "authz-keycloak",
    "aws-lambda",
    "azure-functions",
    "basic-auth",
    "batch-requests",
    "body-transformer",
    "brotli",
    "cas-auth",
    "chaitin-waf",
    "clickhouse-logger",
    "client-control",
    "consumer-restriction",
    "csrf",
    "data-mask",
    "datadog",
    "degraphql",
    "dingtalk-auth",
    "dubbo-proxy",
    "echo",
    "elasticsearch-logger",
    "error-log-logger",
    "error-page",
    "example-plugin",
    "exit-transformer",
    "ext-plugin-post-req",
    "ext-plugin-post-resp",
    "ext-plugin-pre-req",
    "fault-injection",
    "feishu-auth",
    "file-logger",
    "forward-auth",
    "gm",
    "google-cloud-logging",
    "graphql-limit-count",
    "graphql-proxy-cache",
    "grpc-transcode",
    "grpc-web",
    "gzip",
    "hmac-auth",
    "http-dubbo",
    "http-logger",
    "inspect",
    "ip-restriction",
    "jwe-decrypt",
    "kafka-logger",
    "kafka-proxy",
    "lago",
    "ldap-auth",
    "ldap-auth-advanced",
    "limit-conn",
    "limit-req",
    "log-rotate",
    "loggly",
    "loki-logger",
    "mcp-bridge",
    "mocking",
    "multi-auth",
    "node-status",
    "oas-validator",
    "ocsp-stapling",
    "opa",
    "openfunction",
    "openid-connect",
    "opentelemetry",
    "openwhisk",
    "prometheus",
    "proxy-buffering",
    "proxy-cache",
    "proxy-control",
    "proxy-mirror",
    "public-api",
    "real-ip",
    "redirect",
    "referer-restriction",
    "request-validation",
    "rocketmq-logger",
    "saml-auth",
    "server-info",
    "serverless-post-function",
    "serverless-pre-function",
    "skywalking",
    "skywalking-logger",
    "sls-logger",
    "splunk-hec-logging",
    "syslog",
    "tcp-logger",
    "tencent-cloud-cls",
    "traffic-label",
    "traffic-split",
    "ua-restriction",
    "udp-logger",
    "uri-blocker",
    "wolf-rbac",
    "workflow",
    "zipkin",
];

/// The mapping of an APISIX plugin, where Weir has it.
pub fn mapping(name: &str) -> Option<&'static dyn Mapping> {
    BUILT.into_iter().find(|mapping| mapping.name() == name)
}

/// Whether APISIX has a plugin of this name.
pub fn is_known(name: &str) -> bool {
    mapping(name).is_some() || OTHERS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_do_not_overlap() {
        for name in OTHERS {
            assert!(mapping(name).is_none(), "{name}");
        }
        assert!(is_known("limit-count") && is_known("mocking") && !is_known("no-such"));
    }
}
