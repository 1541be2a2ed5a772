//! Which plugins APISIX has, and which of them Weir has.

use super::PluginAdapter;
use super::unserved::unserved;

/// The plugins that Weir has.
pub(super) static BUILT: &[&dyn PluginAdapter] = &[
    &super::acl::Acl,
    &super::api_breaker::ApiBreaker,
    &super::attach_consumer_label::AttachConsumerLabel,
    &super::authz_casbin::AuthzCasbin,
    &super::authz_casdoor::AuthzCasdoor,
    &super::authz_keycloak::AuthzKeycloak,
    &super::basic_auth::BasicAuth,
    &super::batch_requests::BatchRequests,
    &super::body_transformer::BodyTransformer,
    &super::cas_auth::CasAuth,
    &super::chaitin_waf::ChaitinWaf,
    &super::client_control::ClientControl,
    &super::compression::Brotli,
    &super::compression::Gzip,
    &super::consumer_restriction::ConsumerRestriction,
    &super::cors::Cors,
    &super::csrf::Csrf,
    &super::data_mask::DataMask,
    &super::degraphql::Degraphql,
    &super::dingtalk_auth::DingtalkAuth,
    &super::echo::Echo,
    &super::error_log_logger::ErrorLogLogger,
    &super::error_page::ErrorPage,
    &super::fault_injection::FaultInjection,
    &super::feishu_auth::FeishuAuth,
    &super::forward_auth::ForwardAuth,
    &super::functions::AwsLambda,
    &super::functions::AzureFunctions,
    &super::functions::Openfunction,
    &super::functions::Openwhisk,
    &super::graphql_limit_count::GraphqlLimitCount,
    &super::grpc_transcode::GrpcTranscode,
    &super::grpc_web::GrpcWeb,
    &super::hmac_auth::HmacAuth,
    &super::http_dubbo::HttpDubbo,
    &super::ip_restriction::IpRestriction,
    &super::jwe_decrypt::JweDecrypt,
    &super::jwt_auth::JwtAuth,
    &super::key_auth::KeyAuth,
    &super::ldap_auth::LdapAuth,
    &super::ldap_auth_advanced::LdapAuthAdvanced,
    &super::limit_conn::LimitConn,
    &super::limit_count::LimitCount,
    &super::limit_req::LimitReq,
    &super::loggers::ClickhouseLogger,
    &super::loggers::Datadog,
    &super::loggers::ElasticsearchLogger,
    &super::loggers::FileLogger,
    &super::loggers::GoogleCloudLogging,
    &super::loggers::HttpLogger,
    &super::loggers::KafkaLogger,
    &super::loggers::Lago,
    &super::loggers::Loggly,
    &super::loggers::LokiLogger,
    &super::loggers::RocketmqLogger,
    &super::loggers::SkywalkingLogger,
    &super::loggers::SlsLogger,
    &super::loggers::SplunkHecLogging,
    &super::loggers::Syslog,
    &super::loggers::TcpLogger,
    &super::loggers::TencentCloudCls,
    &super::loggers::UdpLogger,
    &super::mocking::Mocking,
    &super::multi_auth::MultiAuth,
    &super::no_op::LogRotate,
    &super::no_op::NodeStatus,
    &super::no_op::OcspStapling,
    &super::no_op::ProxyBuffering,
    &super::no_op::ServerInfo,
    &super::oas_validator::OasValidator,
    &super::opa::Opa,
    &super::openid_connect::OpenidConnect,
    &super::opentelemetry::Opentelemetry,
    &super::prometheus::Prometheus,
    &super::proxy_cache::GraphqlProxyCache,
    &super::proxy_cache::ProxyCache,
    &super::proxy_control::ProxyControl,
    &super::proxy_mirror::ProxyMirror,
    &super::proxy_rewrite::ProxyRewrite,
    &super::public_api::PublicApi,
    &super::real_ip::RealIp,
    &super::redirect::Redirect,
    &super::referer_restriction::RefererRestriction,
    &super::request_id::RequestId,
    &super::request_validation::RequestValidation,
    &super::response_rewrite::ResponseRewrite,
    &super::saml_auth::SamlAuth,
    &super::skywalking::Skywalking,
    &super::traffic_label::TrafficLabel,
    &super::traffic_split::TrafficSplit,
    &super::ua_restriction::UaRestriction,
    &super::uri_blocker::UriBlocker,
    &super::wolf_rbac::WolfRbac,
    &super::workflow::Workflow,
    &super::zipkin::Zipkin,
];

/// The mapping of an APISIX plugin, if Weir has it.
pub fn mapping(name: &str) -> Option<&'static dyn PluginAdapter> {
    BUILT.iter().copied().find(|mapping| mapping.name() == name)
}

/// The plugins that Weir has: APISIX's name, and the name in Weir's catalogue.
pub fn spellings() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUILT.iter().map(|mapping| (mapping.name(), mapping.plugin()))
}

/// Whether APISIX has a plugin of this name.
pub fn is_known(name: &str) -> bool {
    mapping(name).is_some() || unserved(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::pattern::{CHECKED_ELSEWHERE, compiled};

    /// A pattern that Weir cannot compile would let all texts through.
    #[test]
    fn patterns_of_plugins_can_be_checked() {
        let mut shapes: Vec<serde_json::Value> = BUILT.iter().map(|it| it.shape().to_json_schema()).collect();
        shapes.extend(
            BUILT
                .iter()
                .filter_map(|it| Some(it.metadata_shape()?.to_json_schema())),
        );
        let credentials = BUILT.iter().filter_map(|it| it.credentials());
        shapes.extend(credentials.map(|it| it.shape().to_json_schema()));
        let mut looked_at = 0;
        while let Some(shape) = shapes.pop() {
            if let Some(pattern) = shape.get("pattern").and_then(serde_json::Value::as_str) {
                looked_at += 1;
                assert!(
                    compiled(pattern).is_some() || CHECKED_ELSEWHERE.contains(&pattern),
                    "{pattern}"
                );
            }
            match shape {
                serde_json::Value::Object(fields) => {
                    shapes.extend(fields.into_iter().map(|(_, shape)| shape))
                }
                serde_json::Value::Array(items) => shapes.extend(items),
                _ => {}
            }
        }
        assert!(looked_at > 20, "{looked_at}");
    }

    #[test]
    fn plugins_are_known_by_their_names() {
        assert!(is_known("limit-count") && is_known("opa") && !is_known("no-such"));
    }
}
