//! Reading the text of a `config.yaml`, and what in it is not used. What the settings mean stands elsewhere.

use super::values::{
    addresses, admin_keys, buckets, cache_zone, export_uri, extra_labels, first_port, graphql_bytes,
    header_name, keyring, metric_prefix, node_id,
};
use super::{Router, Settings, units};
use crate::plugins::{mapping, skywalking};
use crate::prepare::fill;
use serde_json::{Map, Value};
use weir_model::{Diagnostic, DocPath, document};

/// Maps in which Weir looks for what it uses; everything else in them is reported by its own name.
const LOOKED_INTO: [&[&str]; 16] = [
    &["apisix"],
    &["apisix", "data_encryption"],
    &["apisix", "proxy_cache"],
    &["apisix", "router"],
    &["apisix", "ssl"],
    &["deployment"],
    &["deployment", "admin"],
    &["graphql"],
    &["nginx_config"],
    &["nginx_config", "http"],
    &["plugin_attr"],
    &["plugin_attr", "batch-requests"],
    &["plugin_attr", "prometheus"],
    &["plugin_attr", "proxy-mirror"],
    &["plugin_attr", "redirect"],
    &["plugin_attr", "zipkin"],
];

/// Settings that Weir takes from another place.
const ELSEWHERE: [(&str, &str); 26] = [
    (
        "apisix.enable_admin",
        "--apisix-admin says where the Admin API is",
    ),
    (
        "apisix.enable_control",
        "the control API is where the Admin API is",
    ),
    ("apisix.control", "the control API is where the Admin API is"),
    ("apisix.dns_resolver", "--name-server"),
    ("apisix.node_listen", "--listen says where the proxy listens"),
    ("apisix.proxy_protocol", "--proxy-protocol"),
    (
        "apisix.ssl.ssl_trusted_certificate",
        "authorities are the system's",
    ),
    ("apisix.status", "--status"),
    (
        "apisix.stream_proxy",
        "--listen-stream says where streams are taken",
    ),
    (
        "deployment.admin.admin_api_mtls",
        "--admin-certificate, --admin-key and --admin-client-ca",
    ),
    (
        "deployment.admin.admin_listen",
        "--apisix-admin says where the Admin API is",
    ),
    (
        "deployment.admin.allow_admin",
        "without users and keys the Admin API serves callers of this machine only",
    ),
    (
        "deployment.admin.https_admin",
        "--apisix-admin with ,tls after the address",
    ),
    ("deployment.etcd", "--store"),
    ("deployment.role", "--role"),
    (
        "deployment.role_control_plane",
        "--store says where the configuration is",
    ),
    (
        "deployment.role_traditional",
        "--store or -c says where the configuration is",
    ),
    ("nginx_config.http.access_log", "--access-log"),
    ("nginx_config.http.client_header_timeout", "--header-timeout"),
    ("nginx_config.http.client_body_timeout", "--body-timeout"),
    ("nginx_config.http.client_max_body_size", "--max-body-bytes"),
    ("nginx_config.http.keepalive_timeout", "--idle-timeout"),
    ("nginx_config.http.send_timeout", "--write-timeout"),
    ("nginx_config.worker_processes", "--workers"),
    (
        "plugin_attr.prometheus.export_addr",
        "--status sets where metrics are served",
    ),
    ("plugins", "all plugins that are available can be used"),
];

/// Reads the text of a `config.yaml`, and says what of it is not used. `environment` gives variables.
///
/// # Errors
/// What is wrong: the text is no YAML, a variable is missing, or something that is used is not what is expected.
pub fn read(
    text: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(Settings, Vec<Diagnostic>), Diagnostic> {
    let text = fill(text, environment)?;
    let document = match document::parse(&text)? {
        Value::Object(map) => map,
        Value::Null => Map::new(),
        _ => return Err(Diagnostic::error(DocPath::root(), "expected a map of settings")),
    };
    let mut reader = Reader {
        document: Value::Object(document),
        warnings: Vec::new(),
    };
    let mut settings = Settings::default();
    reader.server(&mut settings)?;
    reader.cache(&mut settings)?;
    reader.plugins(&mut settings)?;
    reader.report_unused();
    for warning in &mut reader.warnings {
        warning.line = document::line_of(&text, &warning.path);
    }
    Ok((settings, reader.warnings))
}

struct Reader {
    /// The part of it that has not been taken yet.
    document: Value,
    warnings: Vec<Diagnostic>,
}

fn place(path: &[&str]) -> DocPath {
    path.iter()
        .fold(DocPath::root(), |place, step| place.field(*step))
}

impl Reader {
    /// Whether null is written there.
    fn is_null(&self, path: &[&str]) -> bool {
        let mut steps = path.iter();
        let value = steps.try_fold(&self.document, |value, step| value.get(*step));
        value.is_some_and(Value::is_null)
    }

    /// Takes a value out of the document; `None`: it is not there, or null.
    fn take(&mut self, path: &[&str]) -> Option<Value> {
        let (last, maps) = path.split_last()?;
        let mut map = &mut self.document;
        for step in maps {
            map = map.get_mut(step)?;
        }
        let found = map.as_object_mut()?.shift_remove(*last)?;
        (!found.is_null()).then_some(found)
    }

    /// Takes a value at a path out of the document and converts it with `convert`.
    fn take_as<T>(
        &mut self,
        path: &[&str],
        expected: &str,
        convert: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, Diagnostic> {
        let Some(value) = self.take(path) else {
            return Ok(None);
        };
        match convert(&value) {
            Some(value) => Ok(Some(value)),
            None => Err(Diagnostic::error(place(path), format!("expected {expected}"))),
        }
    }

    fn flag(&mut self, path: &[&str]) -> Result<bool, Diagnostic> {
        let flag = self.take_as(path, "true or false", Value::as_bool)?;
        Ok(flag.unwrap_or(false))
    }

    fn server(&mut self, settings: &mut Settings) -> Result<(), Diagnostic> {
        let routers = "one of radixtree_host_uri, radixtree_uri and radixtree_uri_with_parameter";
        settings.router = self.take_as(&["apisix", "router", "http"], routers, |name| {
            Some(match name.as_str()? {
                "radixtree_host_uri" => Router::RadixtreeHostUri,
                "radixtree_uri" => Router::RadixtreeUri,
                "radixtree_uri_with_parameter" => Router::RadixtreeUriWithParameter,
                _ => return None,
            })
        })?;
        // There is no other.
        self.take_as(&["apisix", "router", "ssl"], "radixtree_sni", |name| {
            (name == "radixtree_sni").then_some(())
        })?;
        self.admin(settings)?;
        let id = "an id of letters, digits, _, - and .";
        settings.id = self.take_as(&["apisix", "id"], id, node_id)?;
        let tokens = ["apisix", "enable_server_tokens"];
        settings.enable_server_tokens = self
            .take_as(&tokens, "true or false", Value::as_bool)?
            .unwrap_or(true);
        settings.delete_uri_tail_slash = self.flag(&["apisix", "delete_uri_tail_slash"])?;
        settings.strips_path_parameters = self.flag(&["apisix", "normalize_uri_like_servlet"])?;
        settings.keeps_escaped_slashes = self.flag(&["apisix", "match_uri_encoded_slash"])?;
        settings.shows_upstream_status = self.flag(&["apisix", "show_upstream_status_in_response_header"])?;
        let keys = "a key, or a list of keys, of 16 or 32 characters";
        settings.keyring = self.take_as(&["apisix", "data_encryption", "keyring"], keys, keyring)?;
        let encrypts = ["apisix", "data_encryption", "enable_encrypt_fields"];
        settings.encrypts_fields = self
            .take_as(&encrypts, "true or false", Value::as_bool)?
            .unwrap_or(true);
        // The original has a default here, and null takes it away.
        let enable = ["apisix", "ssl", "enable"];
        let is_tls_off =
            self.is_null(&enable) || self.take_as(&enable, "true or false", Value::as_bool)? == Some(false);
        let ports = "a list of addresses";
        let port = self.take_as(&["apisix", "ssl", "listen"], ports, first_port)?;
        settings.https_port = port.flatten().filter(|_| !is_tls_off);
        let networks = "a list of addresses and networks";
        if let Some(trusted) = self.take_as(&["apisix", "trusted_addresses"], networks, addresses)? {
            settings.trusted_addresses = trusted;
        }
        let no_checks = ["apisix", "disable_upstream_healthcheck"];
        settings.has_no_health_checks = self
            .take_as(&no_checks, "true or false", Value::as_bool)?
            .unwrap_or(false);
        let header = ["nginx_config", "http", "real_ip_header"];
        if let Some(name) = self.take_as(&header, "a header name", header_name)? {
            settings.real_ip.header = name;
        }
        let from = ["nginx_config", "http", "real_ip_from"];
        if let Some(from) = self.take_as(&from, networks, addresses)? {
            settings.real_ip.from = from;
        }
        Ok(())
    }

    fn admin(&mut self, settings: &mut Settings) -> Result<(), Diagnostic> {
        let path = ["deployment", "admin", "admin_key"];
        let expected = "a list of keys, each with name, key, and a role: admin or viewer";
        if let Some(keys) = self.take_as(&path, expected, admin_keys)? {
            for (index, _) in keys.iter().enumerate().filter(|(_, key)| key.key.is_empty()) {
                let message = "is empty: Weir makes up no keys, and passes this one over";
                let place = place(&path).index(index).field("key");
                self.warnings.push(Diagnostic::warning(place, message));
            }
            settings.admin.keys = keys.into_iter().filter(|key| !key.key.is_empty()).collect();
        }
        let path = ["deployment", "admin", "admin_key_required"];
        if let Some(is_required) = self.take_as(&path, "true or false", Value::as_bool)? {
            settings.admin.requires_key = is_required;
        }
        let path = ["deployment", "admin", "enable_admin_cors"];
        if let Some(is_enabled) = self.take_as(&path, "true or false", Value::as_bool)? {
            settings.admin.allows_other_origins = is_enabled;
        }
        Ok(())
    }

    fn cache(&mut self, settings: &mut Settings) -> Result<(), Diagnostic> {
        let ttl = ["apisix", "proxy_cache", "cache_ttl"];
        if let Some(ttl) = self.take_as(&ttl, "a time, such as 10s", units::milliseconds)? {
            settings.cache.ttl_seconds = (ttl / 1000).max(1);
        }
        let path = ["apisix", "proxy_cache", "zones"];
        let zones = self.take_as(&path, "a list of zones", |zones| zones.as_array().cloned())?;
        if let Some(zones) = zones {
            let place = place(&path);
            let zones = zones.iter().enumerate().map(|(index, zone)| {
                cache_zone(zone).map_err(|(field, expected)| {
                    let place = place.index(index).field(field);
                    Diagnostic::error(place, format!("expected {expected}"))
                })
            });
            settings.cache.zones = zones.collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    fn plugins(&mut self, settings: &mut Settings) -> Result<(), Diagnostic> {
        let port = ["plugin_attr", "redirect", "https_port"];
        if let Some(port) = self.take_as(&port, "a port", |port| u16::try_from(port.as_u64()?).ok())? {
            settings.https_port = Some(port);
        }
        let batches = ["plugin_attr", "batch-requests", "uri"];
        if let Some(path) = self.take_as(&batches, "a path", export_uri)? {
            settings.batches_uri = path;
        }
        let mirror = ["plugin_attr", "proxy-mirror", "timeout"];
        settings.mirror_timeout_ms = self.take_as(&mirror, "times, such as 60s", |times| {
            let times = times.as_object()?.values().map(units::milliseconds);
            times.sum::<Option<u64>>().map(|sum| sum.clamp(1, 3_600_000))
        })?;
        let size = ["graphql", "max_size"];
        let expected = "a number of bytes, from 1 to 67108864";
        if let Some(bytes) = self.take_as(&size, expected, graphql_bytes)? {
            settings.graphql_max_bytes = bytes;
        }
        // These variables are there anyway.
        self.flag(&["plugin_attr", "zipkin", "set_ngx_var"])?;
        let path = ["plugin_attr", "opentelemetry"];
        if let Some(mut value) = self.take(&path) {
            let shape = mapping("opentelemetry").and_then(|mapping| mapping.metadata_shape());
            if let Some(Err(error)) = shape.map(|shape| shape.check(&mut value)) {
                return Err(Diagnostic::error(place(&path), error));
            }
            settings.opentelemetry = Some(value);
        }
        let path = ["plugin_attr", "skywalking"];
        if let Some(mut value) = self.take(&path) {
            if let Err(error) = skywalking::attributes_shape().check(&mut value) {
                return Err(Diagnostic::error(place(&path), error));
            }
            settings.skywalking = Some(value);
        }
        self.prometheus(settings)
    }

    fn prometheus(&mut self, settings: &mut Settings) -> Result<(), Diagnostic> {
        let found = &mut settings.prometheus;
        let at = |field| ["plugin_attr", "prometheus", field];
        if let Some(path) = self.take_as(&at("export_uri"), "a path", export_uri)? {
            found.export_uri = path;
        }
        let prefix = "the beginning of a metric's name: letters, digits, _ and :";
        if let Some(prefix) = self.take_as(&at("metric_prefix"), prefix, metric_prefix)? {
            found.metric_prefix = prefix;
        }
        let bounds = "at most 64 whole numbers, each above the one before it";
        if let Some(buckets) = self.take_as(&at("default_buckets"), bounds, buckets)? {
            found.buckets = buckets;
        }
        // A scrape is always answered with what has been counted by then.
        self.take(&at("refresh_interval"));
        self.take(&at("enable_export_server"));
        let Some(Value::Object(metrics)) = self.take(&at("metrics")) else {
            return Ok(());
        };
        for (metric, mut options) in metrics {
            let place = place(&at("metrics")).field(metric.as_str());
            let labels = options
                .as_object_mut()
                .and_then(|it| it.shift_remove("extra_labels"));
            let labels = labels.unwrap_or_default();
            let Some(labels) = extra_labels(&labels) else {
                let message = "expected a list of labels, such as upstream_addr: $upstream_addr";
                return Err(Diagnostic::error(place.field("extra_labels"), message));
            };
            if !["http_status", "http_latency", "bandwidth"].contains(&metric.as_str()) {
                self.unused(place);
                continue;
            }
            if let Some(expire) = options.as_object_mut().and_then(|it| it.shift_remove("expire")) {
                let Some(seconds) = expire.as_u64().and_then(|seconds| u32::try_from(seconds).ok()) else {
                    let message = "expected a whole number of seconds";
                    return Err(Diagnostic::error(place.field("expire"), message));
                };
                found.expire.push((metric.clone(), seconds));
            }
            let labels = labels.into_iter();
            found
                .extra_labels
                .extend(labels.map(|(name, value)| (metric.clone(), name, value)));
            for left in options.as_object().into_iter().flat_map(Map::keys) {
                self.unused(place.field(left.as_str()));
            }
        }
        Ok(())
    }

    /// Reports all that has not been taken.
    fn report_unused(&mut self) {
        let document = std::mem::take(&mut self.document);
        self.report(&document, &mut Vec::new());
    }

    fn report<'d>(&mut self, value: &'d Value, path: &mut Vec<&'d str>) {
        for (name, value) in value.as_object().into_iter().flatten() {
            path.push(name);
            match value {
                Value::Object(_) if LOOKED_INTO.contains(&path.as_slice()) => self.report(value, path),
                Value::Null => {}
                _ => self.unused(place(path)),
            }
            path.pop();
        }
    }

    fn unused(&mut self, place: DocPath) {
        let name = place.to_string();
        let elsewhere = ELSEWHERE.iter().find(|(known, _)| *known == name);
        let message = match elsewhere {
            Some((_, elsewhere)) => format!("is not read: {elsewhere}"),
            None => "is not read by Weir".to_owned(),
        };
        self.warnings.push(Diagnostic::warning(place, message));
    }
}
