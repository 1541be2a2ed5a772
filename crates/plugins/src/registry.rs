//! The list of plugins, one line each. **What it is not**: what a plugin does stands in its module.

use crate::logger::LogFolder;
use crate::prometheus::MetricRegistry;
use crate::proxy_cache::{Caches, ProxyCache};
use std::sync::Arc;
use weir_plugin::{DiskCaches, Registry};

/// All plugins of the catalogue. State that outlives a reload begins here, so make one registry a gateway.
pub fn registry() -> Registry {
    registry_with(LogFolder::default())
}

/// The same, with the operator's folder for log files.
pub fn registry_with(files: LogFolder) -> Registry {
    catalogue(ProxyCache::default(), files, Arc::default())
}

/// The same for a gateway that serves calls: what plugins keep on disks is kept in these caches, and the responses that
/// they keep are managed by `caches`; log files are in `files`; what they count is in `metrics`.
pub fn registry_on(
    disks: Arc<dyn DiskCaches>,
    caches: Caches,
    files: LogFolder,
    metrics: Arc<MetricRegistry>,
) -> Registry {
    catalogue(ProxyCache::on(disks, caches), files, metrics)
}

/// The plugins that answer calls in place of an upstream by what they do with Kafka.
fn add_kafka(registry: &mut Registry) {
    registry.add(crate::kafka_consume::KafkaConsume);
    registry.add(crate::kafka_upstream::KafkaUpstream);
}

fn catalogue(proxy_cache: ProxyCache, files: LogFolder, metrics: Arc<MetricRegistry>) -> Registry {
    let mut registry = Registry::default();
    let caches = proxy_cache.caches();
    let rate_limit = crate::rate_limit::RateLimit::default();
    let concurrency_limit = crate::concurrency_limit::ConcurrencyLimit::default();
    let throttle = crate::throttle::Throttle::default();
    registry.add(crate::callout::CalloutPlugin::default());
    registry.add(crate::orchestration::Orchestration::default());
    registry.add(crate::circuit_breaker::CircuitBreaker::default());
    registry.add(crate::body_transform::BodyTransform);
    registry.add(crate::compression::Compression);
    registry.add(crate::cors::Cors);
    registry.add(crate::forward_auth::ForwardAuth);
    registry.add(crate::forward_proxy::ForwardProxy);
    registry.add(crate::ldap_auth::LdapAuth::default());
    registry.add(crate::opa::Opa::default());
    registry.add(crate::authz_keycloak::AuthzKeycloak::default());
    registry.add(crate::app_login::AppLogin::default());
    registry.add(crate::cas_login::CasLogin::default());
    registry.add(crate::casbin::Casbin);
    registry.add(crate::casdoor_login::CasdoorLogin::default());
    registry.add(crate::wolf_rbac::WolfRbac);
    registry.add(crate::mtls_auth::MtlsAuth::default());
    registry.add(crate::client_certificate_headers::ClientCertificateHeaders);
    registry.add(crate::client_certificate_request::ClientCertificateRequest);
    registry.add(crate::session::SessionPlugin::default());
    registry.add(crate::upstream_oauth::UpstreamOauth::default());
    registry.add(crate::vault_auth::VaultAuth::default());
    registry.add(crate::openid_connect::OpenIdConnect::default());
    registry.add(crate::saml::Saml::default());
    registry.add(crate::request_validation::RequestValidation);
    registry.add(crate::webhook_signature::WebhookSignature);
    registry.add(crate::request_size_limit::RequestSizeLimit);
    registry.add(crate::real_ip::RealIp);
    registry.add(crate::csrf::Csrf);
    registry.add(crate::jwe_decrypt::JweDecrypt);
    registry.add(crate::multi_auth::MultiAuth::default());
    registry.add(crate::oauth2_server::OAuth2Server::default());
    registry.add(crate::hmac_auth::HmacAuth);
    registry.add(crate::basic_auth::BasicAuth);
    registry.add(crate::degraphql::Degraphql);
    registry.add(crate::error_page::ErrorPage);
    registry.add(crate::graphql_limit::GraphqlLimit::default());
    registry.add(crate::grpc_transcode::GrpcTranscode::default());
    registry.add(crate::grpc_web::GrpcWeb::default());
    registry.add(crate::fault_injection::FaultInjection);
    registry.add(crate::batch_requests::BatchRequests);
    registry.add(crate::data_mask::DataMask);
    registry.add(crate::skywalking::Skywalking::default());
    registry.add(crate::remote_function::RemoteFunction);
    registry.add(crate::injection_protection::InjectionProtection);
    registry.add(crate::safeline_waf::SafelineWaf);
    registry.add(crate::json_threat_protection::JsonThreatProtection);
    registry.add(crate::websocket_validation::WebsocketValidation);
    registry.add(crate::xml_threat_protection::XmlThreatProtection);
    registry.add(crate::mirror::Mirror);
    registry.add(crate::jq::Jq);
    registry.add(crate::mocking::Mocking);
    registry.add(crate::openapi_mock::OpenapiMock);
    registry.add(crate::openapi_validation::OpenapiValidation::default());
    registry.add(proxy_cache);
    registry.add(crate::redirect::Redirect);
    registry.add(crate::request_buffering::RequestBuffering);
    registry.add(crate::tracing::Tracing::default());
    let endpoint = crate::prometheus::MetricsEndpoint::new(Arc::clone(&metrics), caches);
    registry.add(endpoint);
    registry.add(crate::prometheus::Prometheus::new(metrics));
    registry.add(crate::traffic_label::TrafficLabel);
    registry.add(crate::canary::Canary);
    registry.add(crate::route_by_header::RouteByHeader);
    registry.add(crate::upstream_address::UpstreamAddress);
    registry.add(crate::traffic_split::TrafficSplit);
    registry.add(crate::user_agent_restriction::UserAgentRestriction);
    registry.add(crate::uri_restriction::UriRestriction);
    registry.add(crate::upstream_timeout::UpstreamTimeout);
    registry.add(crate::referer_restriction::RefererRestriction);
    registry.add(crate::ip_restriction::IpRestriction);
    registry.add(crate::consumer_headers::ConsumerHeaders);
    registry.add(crate::acl::Acl);
    registry.add(crate::jwt::Jwt);
    registry.add(crate::jwt_signer::JwtSigner::default());
    registry.add(crate::key_auth::KeyAuth);
    registry.add(crate::gateway_log::GatewayLog::writing_to(files.clone()));
    registry.add(crate::logger::Logger::writing_to(files));
    add_kafka(&mut registry);
    registry.add(crate::statsd::Statsd);
    registry.add(crate::workflow::Workflow::new(
        &rate_limit,
        &concurrency_limit,
        &throttle,
    ));
    registry.add(rate_limit);
    registry.add(concurrency_limit);
    registry.add(throttle);
    registry.add(crate::response_rate_limit::ResponseRateLimit::default());
    registry.add(crate::request_id::RequestId::default());
    add_changes_of_calls(&mut registry);
    registry
}

/// Plugins without state that change calls, or answer them themselves.
fn add_changes_of_calls(registry: &mut Registry) {
    registry.add(crate::dubbo::Dubbo);
    registry.add(crate::request_rewrite::RequestRewrite);
    registry.add(crate::request_termination::RequestTermination);
    registry.add(crate::request_validator::RequestValidator);
    registry.add(crate::response_rewrite::ResponseRewrite);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::*;
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::json;
    use std::fmt::Debug;

    #[test]
    fn plugins_are_named_and_described() {
        let registry = registry();
        for plugin in registry.iter() {
            let is_kebab = |character: char| {
                character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-'
            };
            assert!(plugin.name().chars().all(is_kebab), "{}", plugin.name());
        }
        for plugin in registry.iter() {
            let schemas = [
                Some(plugin.config_schema()),
                plugin.credentials().map(|kind| kind.schema),
            ];
            for schema in schemas.into_iter().flatten() {
                let name = plugin.name();
                assert_eq!(schema.get("additionalProperties"), Some(&false.into()), "{name}");
                // A plugin without options has no properties.
                let properties = schema.get("properties").and_then(|it| it.as_object());
                for (field, schema) in properties.into_iter().flatten() {
                    assert!(
                        schema.get("description").is_some(),
                        "{name}: {field} is not documented"
                    );
                }
            }
        }
    }

    #[test]
    fn filters_know_whether_they_need_the_body() {
        let registry = registry();
        for (plugin, config, needs_body) in [
            ("request-rewrite", json!({"path": "/a/$arg_x"}), false),
            ("request-rewrite", json!({"path": "/a/$post_arg_x"}), true),
            (
                "request-rewrite",
                json!({"path_patterns": [{"pattern": "^/", "replacement": "/?${graphql_name}"}]}),
                true,
            ),
            (
                "request-rewrite",
                json!({"headers": [{"set": {"X-A": "$post_arg.a.b"}}]}),
                true,
            ),
            (
                "request-rewrite",
                json!({"headers": [{"set": {"X-A": "$uri"}}, {"remove": ["X-B"]}]}),
                false,
            ),
            (
                "response-rewrite",
                json!({"when": ["post_arg.a", "==", "1"]}),
                true,
            ),
            ("response-rewrite", json!({"when": ["status", "==", 200]}), false),
            (
                "rate-limit",
                json!({"limits": [{"count": 1, "per": "second", "by": {"template": "$post_arg_x"}}]}),
                true,
            ),
            (
                "rate-limit",
                json!({"limits": [{"count": "$post_arg_x", "per": "second"}]}),
                true,
            ),
            (
                "rate-limit",
                json!({"limits": [{"count": 1, "per": "second"}]}),
                false,
            ),
            ("cors", json!({}), false),
        ] {
            let filter =
                weir_plugins_testkit::build(registry.get(plugin).expect("known"), &config).expect("valid");
            assert_eq!(filter.needs_body(), needs_body, "{plugin} {config}");
        }
    }

    /// dialects  hand typed configurations over as JSON.
    fn survives<T: Serialize + DeserializeOwned + PartialEq + Debug>(config: T) {
        let value = serde_json::to_value(&config).expect("JSON");
        assert_eq!(serde_json::from_value::<T>(value).expect("valid"), config);
    }

    #[test]
    fn gateways_of_one_process_count_apart() {
        let counted = |metrics: &Arc<MetricRegistry>| metrics.render_all().contains("calls_total");
        let (one, other) = (Arc::default(), Arc::default());
        let all = |metrics: &Arc<MetricRegistry>| {
            catalogue(ProxyCache::default(), LogFolder::default(), Arc::clone(metrics))
        };
        let (counting, _silent) = (all(&one), all(&other));
        let families = json!([{"name": "calls_total", "help": "Calls.", "value": "calls"}]);
        let config = json!({"exposition": "t", "families": families});
        let prometheus = counting.get("prometheus").expect("in the catalogue");
        let filter = weir_plugins_testkit::build(prometheus, &config).expect("a good configuration");
        let mut exchange = weir_plugins_testkit::exchange();
        filter.on_log(&mut exchange, &weir_plugins_testkit::record(), &mut Vec::new());
        assert!(counted(&one));
        assert!(!counted(&other));
    }

    #[test]
    fn configurations_survive_a_round_trip() {
        survives(body_transform::Config::default());
        survives(compression::Config::default());
        survives(error_page::Config::default());
        survives(graphql_limit::Config::default());
        survives(fault_injection::Config::default());
        survives(logger::Config::default());
        survives(kafka_consume::Config::default());
        survives(kafka_upstream::Config::default());
        survives(mirror::Config::default());
        survives(mocking::Config::default());
        survives(proxy_cache::Config {
            status_header: None,
            query: proxy_cache::QueryKey::All,
            ..proxy_cache::Config::default()
        });
        survives(redirect::Config::default());
        survives(safeline_waf::Config::default());
        survives(request_buffering::Config::default());
        survives(traffic_label::Config::default());
        survives(traffic_split::Config::default());
        survives(cors::Config {
            methods: Vec::new(),
            ..cors::Config::default()
        });
        survives(identity::Config {
            headers: Vec::new(),
            anonymous_header: None,
            ..identity::Config::default()
        });
        survives(jwt::Config {
            challenge: None,
            token_challenge: None,
            checked_claims: Vec::new(),
            ..jwt::Config::default()
        });
        survives(key_auth::Config {
            challenge: None,
            ..key_auth::Config::default()
        });
        survives(rate_limit::Config {
            headers: rate_limit::SummaryHeaders::NONE,
            limits: vec![rate_limit::Limit {
                count: rate_limit::LimitValue::Template("$http_x_limit".into()),
                per: rate_limit::Per::Seconds(rate_limit::LimitValue::Number(60)),
                by: Some(rate_limit::RateLimitKey::Header("X".into())),
                headers: rate_limit::LimitHeaders::default(),
            }],
            ..rate_limit::Config::default()
        });
        survives(request_id::Config {
            generator: request_id::Generator::Random {
                characters: "ab".into(),
                length: 3,
            },
            ..request_id::Config::default()
        });
        survives(request_rewrite::Config::default());
        survives(request_termination::Config::default());
        survives(response_rewrite::Config::default());
    }
}
