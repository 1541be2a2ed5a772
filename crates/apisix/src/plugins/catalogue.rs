//! Which plugins APISIX has, and which of them Weir has.

use super::PluginAdapter;
use super::acl::Acl;
use super::api_breaker::ApiBreaker;
use super::attach_consumer_label::AttachConsumerLabel;
use super::basic_auth::BasicAuth;
use super::body_transformer::BodyTransformer;
use super::client_control::ClientControl;
use super::compression::{Brotli, Gzip};
use super::consumer_restriction::ConsumerRestriction;
use super::cors::Cors;
use super::csrf::Csrf;
use super::degraphql::Degraphql;
use super::echo::Echo;
use super::error_page::ErrorPage;
use super::fault_injection::FaultInjection;
use super::forward_auth::ForwardAuth;
use super::graphql_limit_count::GraphqlLimitCount;
use super::grpc_transcode::GrpcTranscode;
use super::grpc_web::GrpcWeb;
use super::hmac_auth::HmacAuth;
use super::ip_restriction::IpRestriction;
use super::jwe_decrypt::JweDecrypt;
use super::jwt_auth::JwtAuth;
use super::key_auth::KeyAuth;
use super::limit_conn::LimitConn;
use super::limit_count::LimitCount;
use super::limit_req::LimitReq;
use super::loggers::{
    ClickhouseLogger, Datadog, ElasticsearchLogger, FileLogger, HttpLogger, KafkaLogger, LokiLogger,
    SplunkHecLogging, Syslog, TcpLogger, UdpLogger,
};
use super::mocking::Mocking;
use super::multi_auth::MultiAuth;
use super::opentelemetry::Opentelemetry;
use super::prometheus::Prometheus;
use super::proxy_cache::{GraphqlProxyCache, ProxyCache};
use super::proxy_control::ProxyControl;
use super::proxy_mirror::ProxyMirror;
use super::proxy_rewrite::ProxyRewrite;
use super::public_api::PublicApi;
use super::real_ip::RealIp;
use super::redirect::Redirect;
use super::referer_restriction::RefererRestriction;
use super::request_id::RequestId;
use super::request_validation::RequestValidation;
use super::response_rewrite::ResponseRewrite;
use super::traffic_label::TrafficLabel;
use super::traffic_split::TrafficSplit;
use super::ua_restriction::UaRestriction;
use super::unserved::unserved;
use super::uri_blocker::UriBlocker;
use super::workflow::Workflow;
use super::zipkin::Zipkin;

/// The plugins that Weir has.
static BUILT: &[&dyn PluginAdapter] = &[
    &ApiBreaker,
    &RequestId,
    &Cors,
    &BodyTransformer,
    &Degraphql,
    &GraphqlLimitCount,
    &Gzip,
    &Brotli,
    &Echo,
    &ErrorPage,
    &FaultInjection,
    &Mocking,
    &GraphqlProxyCache,
    &ProxyCache,
    &GrpcTranscode,
    &GrpcWeb,
    &ProxyControl,
    &ProxyMirror,
    &Redirect,
    &TrafficLabel,
    &TrafficSplit,
    &JwtAuth,
    &KeyAuth,
    &ProxyRewrite,
    &LimitCount,
    &ResponseRewrite,
    &ForwardAuth,
    &RequestValidation,
    &PublicApi,
    &Workflow,
    &LimitReq,
    &LimitConn,
    &MultiAuth,
    &ClientControl,
    &RealIp,
    &Csrf,
    &JweDecrypt,
    &HmacAuth,
    &BasicAuth,
    &AttachConsumerLabel,
    &Acl,
    &ConsumerRestriction,
    &UriBlocker,
    &RefererRestriction,
    &UaRestriction,
    &IpRestriction,
    &LokiLogger,
    &Datadog,
    &ElasticsearchLogger,
    &HttpLogger,
    &SplunkHecLogging,
    &TcpLogger,
    &KafkaLogger,
    &Syslog,
    &UdpLogger,
    &FileLogger,
    &ClickhouseLogger,
    &Opentelemetry,
    &Zipkin,
    &Prometheus,
];

/// The mapping of an APISIX plugin, where Weir has it.
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

    #[test]
    fn plugins_are_known_by_their_names() {
        assert!(is_known("limit-count") && is_known("opa") && !is_known("no-such"));
    }
}
