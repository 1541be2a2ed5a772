//! The settings that are read of `config.yaml`, and the notes about the rest.

use super::*;
use crate::admin::Role;

fn of(text: &str) -> (Settings, Vec<String>) {
    let (settings, warnings) = read(text, &|name| (name == "PORT").then(|| "8443".to_owned()))
        .unwrap_or_else(|error| panic!("{}: {}", error.path, error.message));
    let texts = warnings.iter().map(|it| format!("{}: {}", it.path, it.message));
    (settings, texts.collect())
}

#[test]
fn nothing_is_as_in_stock() {
    for text in ["", "apisix:\n", "plugin_attr: {prometheus: {export_uri: }}\n"] {
        let (settings, warnings) = of(text);
        assert!(settings == Settings::default(), "{text}");
        assert!(warnings.is_empty(), "{warnings:?}");
    }
}

#[test]
fn what_changes_routes_and_plugins_is_read() {
    let (settings, warnings) = of("
apisix:
  router: {http: radixtree_uri, ssl: radixtree_sni}
  delete_uri_tail_slash: true
  normalize_uri_like_servlet: true
  match_uri_encoded_slash: true
  disable_upstream_healthcheck: true
  id: edge-1.example
  enable_server_tokens: false
  show_upstream_status_in_response_header: true
  trusted_addresses: [10.0.0.1, 10.1.0.0/16]
  data_encryption: {enable_encrypt_fields: false, keyring: edd1c9f0985e76a2}
  ssl: {enable: true, listen: [{port: 9443}]}
  proxy_cache:
    cache_ttl: 1m
    zones:
      - {name: one, memory_size: 50m, disk_size: 1G, disk_path: /var/cache/one, cache_levels: '1:2'}
      - {name: two, memory_size: 1m}
nginx_config:
  http:
    real_ip_header: X-Forwarded-For
    real_ip_from: [127.0.0.1, '::1', 'unix:']
plugin_attr:
  redirect: {https_port: '${{PORT}}'}
graphql: {max_size: 100}
"
    .replace("'${{PORT}}'", "${{PORT}}")
    .as_str());
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(settings.router, Some(Router::RadixtreeUri));
    assert!(settings.delete_uri_tail_slash && settings.shows_upstream_status);
    assert!(settings.strips_path_parameters && settings.keeps_escaped_slashes);
    assert_eq!(settings.trusted_addresses.len(), 2);
    assert!(settings.has_no_health_checks);
    assert_eq!(
        (settings.id.as_deref(), settings.enable_server_tokens),
        (Some("edge-1.example"), false)
    );
    assert!(!settings.encrypts_fields);
    assert_eq!(settings.keyring, Some(Keys(vec!["edd1c9f0985e76a2".into()])));
    assert_eq!(
        (settings.https_port, settings.graphql_max_bytes),
        (Some(8443), 100)
    );
    assert_eq!(settings.cache.ttl_seconds, 60);
    let disk = CacheDisk {
        path: Some("/var/cache/one".into()),
        bytes: 1 << 30,
    };
    assert_eq!(
        settings.zone("one").map(|zone| zone.disk.as_ref()),
        Some(Some(&disk))
    );
    assert_eq!(settings.zone("two").map(|zone| zone.memory_bytes), Some(1 << 20));
    assert_eq!(settings.zone("disk_cache_one"), None);
    assert_eq!(
        (settings.real_ip.header.as_str(), settings.real_ip.from.len()),
        ("X-Forwarded-For", 2)
    );
}

#[test]
fn redirects_have_a_port_while_tls_is_on() {
    for (enable, port) in [
        ("enable: true, ", Some(9443)),
        ("", Some(9443)),
        ("enable: false, ", None),
        ("enable: null, ", None),
    ] {
        let text = format!("apisix: {{ssl: {{{enable}listen: [{{port: 9443}}]}}}}\n");
        let (settings, warnings) = of(&text);
        assert_eq!(
            (settings.https_port, warnings.len()),
            (port, 0),
            "{text} {warnings:?}"
        );
    }
}

#[test]
fn attributes_of_plugins_are_read() {
    let (settings, warnings) = of("
plugin_attr:
  prometheus:
    export_uri: /metrics/apisix
    metric_prefix: gw_
    default_buckets: [10, 100]
    export_addr: {ip: 127.0.0.1, port: 9091}
    metrics:
      http_status: {expire: 60, extra_labels: [{upstream: $upstream_addr}, {team: $http_x_team}]}
      http_latency: {expire: 0, exptime: 5}
  opentelemetry: {collector: {address: 'otel:4318'}}
  proxy-mirror: {timeout: {connect: 2s, read: 3s, send: 500ms}}
  batch-requests: {uri: /batches}
  zipkin: {set_ngx_var: true}
  skywalking: {endpoint_addr: 'http://s'}
");
    let counted = &settings.prometheus;
    assert_eq!(
        (counted.export_uri.as_str(), counted.metric_prefix.as_str()),
        ("/metrics/apisix", "gw_")
    );
    assert_eq!(counted.buckets, [10, 100]);
    let labels: Vec<_> = counted.extra_labels("http_status").collect();
    assert_eq!(
        labels,
        [("upstream", "${upstream_addr}"), ("team", "${http_x_team}")]
    );
    assert_eq!(counted.extra_labels("bandwidth").count(), 0);
    assert_eq!(
        ["http_status", "http_latency", "bandwidth"].map(|metric| counted.expire_seconds(metric)),
        [Some(60), None, None]
    );
    let collector = settings.opentelemetry.as_ref().map(|it| &it["collector"]);
    assert_eq!(
        collector.map(|it| (&it["address"], &it["request_timeout"])),
        Some((&"otel:4318".into(), &3.into()))
    );
    assert_eq!(settings.mirror_timeout_ms, Some(5_500));
    let skywalking = settings.skywalking.as_ref();
    assert_eq!(
        skywalking.map(|it| (&it["endpoint_addr"], &it["service_name"])),
        Some((&"http://s".into(), &"APISIX".into()))
    );
    assert_eq!(
        warnings,
        [
            "plugin_attr.prometheus.metrics.http_latency.exptime: is not read by Weir",
            "plugin_attr.prometheus.export_addr: is not read: --status sets where metrics are served",
        ]
    );
}

#[test]
fn the_rest_is_reported() {
    let (settings, warnings) = of("
apisix:
  node_listen: 9080
  ssl: {ssl_protocols: TLSv1.3}
  routr: {http: radixtree_uri}
deployment: {role: traditional}
plugins: [cors]
");
    assert!(settings == Settings::default());
    assert_eq!(
        warnings,
        [
            "apisix.node_listen: is not read: --listen says where the proxy listens",
            "apisix.ssl.ssl_protocols: is not read by Weir",
            "apisix.routr: is not read by Weir",
            "deployment.role: is not read: --role",
            "plugins: is not read: all plugins that are available can be used",
        ]
    );
}

#[test]
fn keys_of_the_admin_api_are_read() {
    let key = |key: &str, role| Key {
        key: key.to_owned(),
        role,
    };
    let (admin, viewer) = (key("a-secret", Role::Admin), key("12345", Role::Viewer));
    for (text, keys, requires_key, warnings) in [
        (
            "{admin_key_required: false, enable_admin_cors: false}",
            vec![],
            false,
            0,
        ),
        (
            "admin_key: [{name: admin, key: a-secret, role: admin}, {name: v, key: 12345, role: viewer}]",
            vec![admin, viewer],
            true,
            0,
        ),
        (
            "admin_key: [{name: admin, key: '', role: admin}]",
            vec![],
            true,
            1,
        ),
        (
            "{admin_key: '', allow_admin: [127.0.0.0/24], admin_listen: {port: 9180}}",
            vec![],
            true,
            2,
        ),
    ] {
        let text = format!("deployment:\n  admin:\n    {text}\n");
        let (settings, found_warnings) = read(&text, &|_| None).expect("good");
        assert_eq!(
            (
                &settings.admin.keys,
                settings.admin.requires_key,
                found_warnings.len()
            ),
            (&keys, requires_key, warnings),
            "{text} {found_warnings:?}"
        );
        let allows = !text.contains("enable_admin_cors: false");
        assert_eq!(settings.admin.allows_other_origins, allows, "{text}");
    }
    for wrong in [
        "admin_key: [{name: a, key: k, role: root}]",
        "admin_key: k",
        "admin_key_required: maybe",
    ] {
        let text = format!("deployment:\n  admin:\n    {wrong}\n");
        let found = read(&text, &|_| None).expect_err("wrong");
        assert!(
            found.path.to_string().starts_with("deployment.admin.admin_key"),
            "{wrong}"
        );
    }
}

#[test]
fn an_id_of_digits_is_a_name() {
    for (text, id) in [("123456", "123456"), ("'007'", "007")] {
        let (settings, warnings) = of(&format!("apisix: {{id: {text}}}"));
        assert_eq!((settings.id.as_deref(), warnings.len()), (Some(id), 0), "{text}");
    }
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    for (text, place) in [
        ("- a", ""),
        ("apisix: {router: {http: linear}}", "apisix.router.http"),
        ("apisix: {id: 'a b'}", "apisix.id"),
        ("apisix: {id: 1.5}", "apisix.id"),
        (
            "apisix: {proxy_cache: {zones: [{name: a, disk_size: much}]}}",
            "apisix.proxy_cache.zones[0].disk_size",
        ),
        (
            "apisix: {proxy_cache: {zones: [{}]}}",
            "apisix.proxy_cache.zones[0].name",
        ),
        (
            "apisix: {proxy_cache: {cache_ttl: soon}}",
            "apisix.proxy_cache.cache_ttl",
        ),
        (
            "apisix: {data_encryption: {keyring: [short]}}",
            "apisix.data_encryption.keyring",
        ),
        (
            "nginx_config: {http: {real_ip_from: [here]}}",
            "nginx_config.http.real_ip_from",
        ),
        (
            "plugin_attr: {redirect: {https_port: 70000}}",
            "plugin_attr.redirect.https_port",
        ),
        (
            "plugin_attr: {prometheus: {export_uri: 'no path'}}",
            "plugin_attr.prometheus.export_uri",
        ),
        (
            "plugin_attr: {batch-requests: {uri: batches}}",
            "plugin_attr.batch-requests.uri",
        ),
        (
            "plugin_attr: {prometheus: {metric_prefix: '1-'}}",
            "plugin_attr.prometheus.metric_prefix",
        ),
        (
            "plugin_attr: {prometheus: {default_buckets: [2, 1]}}",
            "plugin_attr.prometheus.default_buckets",
        ),
        (
            "plugin_attr: {skywalking: {report_interval: soon}}",
            "plugin_attr.skywalking",
        ),
        (
            "plugin_attr: {opentelemetry: {collector: 1}}",
            "plugin_attr.opentelemetry",
        ),
        (
            "plugin_attr: {prometheus: {metrics: {bandwidth: {expire: soon}}}}",
            "plugin_attr.prometheus.metrics.bandwidth.expire",
        ),
        (
            "plugin_attr: {prometheus: {metrics: {bandwidth: {extra_labels: [{a: b}]}}}}",
            "plugin_attr.prometheus.metrics.bandwidth.extra_labels",
        ),
    ] {
        let found = read(text, &|_| None).expect_err(text);
        assert_eq!(found.path.to_string(), place, "{text}: {}", found.message);
    }
    let found = read("apisix: {node_listen: ${{NO_PORT}}}", &|_| None).expect_err("no variable");
    assert!(found.message.contains("NO_PORT"), "{}", found.message);
    let settings = of("apisix: {data_encryption: {keyring: edd1c9f0985e76a2}}").0;
    let printed = format!("{settings:?} {:?}", settings.keyring);
    assert!(!printed.contains("edd1c9"), "keys are secrets: {printed}");
}
