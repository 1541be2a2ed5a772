//! The settings of APISIX's `config.yaml` that change what routes and plugins do.
//!
//! It is read once, when the process starts, as APISIX does. Of what it says about the server itself (addresses, workers,
//! logs, etcd), nothing is used: those are flags of Weir's own.

mod files;
mod read;
mod router;
#[cfg(test)]
mod tests;
mod units;
mod values;

pub use files::PluginFiles;
pub use read::read;
pub use router::Router;

use crate::admin::Key;
use ipnet::IpNet;
use serde_json::Value;
use std::sync::LazyLock;

/// The settings of a `config.yaml`.
#[derive(Clone, PartialEq)]
pub struct Settings {
    /// `apisix.router.http`, if it is given.
    pub router: Option<Router>,
    /// `apisix.delete_uri_tail_slash`: a `/` at the end of a path does not count.
    pub delete_uri_tail_slash: bool,
    /// `apisix.normalize_uri_like_servlet`: path parameters (`/a;x=1`) do not count for routes and plugins.
    pub strips_path_parameters: bool,
    /// `apisix.match_uri_encoded_slash`: an escaped slash is a part of its segment when routes are matched.
    pub keeps_escaped_slashes: bool,
    /// `apisix.show_upstream_status_in_response_header`: every answer says the upstream's status, not only of
    /// failures.
    pub shows_upstream_status: bool,
    /// `apisix.proxy_cache`.
    pub cache: CacheSettings,
    /// `apisix.data_encryption.keyring`, if it is given. These are secrets.
    pub keyring: Option<Keys>,
    /// `deployment.admin`.
    pub admin: AdminSettings,
    /// `apisix.data_encryption.enable_encrypt_fields`: answers of the Admin API hold secrets of plugins encrypted.
    pub encrypts_fields: bool,
    /// `apisix.trusted_addresses`: whose `X-Forwarded-*` are believed.
    pub trusted_addresses: Vec<IpNet>,
    /// `apisix.disable_upstream_healthcheck`: checks of upstreams are not made.
    pub has_no_health_checks: bool,
    /// `nginx_config.http.real_ip_header` and `real_ip_from`.
    pub real_ip: RealIpSettings,
    /// `plugin_attr.prometheus`.
    pub prometheus: PrometheusSettings,
    /// `plugin_attr.opentelemetry`: used if the plugin has no metadata, as in APISIX before 3.13.
    pub opentelemetry: Option<Value>,
    /// `plugin_attr.skywalking`: where segments of traces are sent, and the gateway's names in them.
    pub skywalking: Option<Value>,
    /// `plugin_attr.proxy-mirror.timeout`: milliseconds that a copy may take.
    pub mirror_timeout_ms: Option<u64>,
    /// `plugin_attr.redirect.https_port`, or the first port of `apisix.ssl.listen`.
    pub https_port: Option<u16>,
    /// `graphql.max_size`: the longest body in which plugins look for a query.
    pub graphql_max_bytes: usize,
    /// `plugin_attr.batch-requests.uri`: the path of batches of calls, where they are public.
    pub batches_uri: String,
    /// `apisix.id`: the gateway's name in `/apisix/status`, if it is given.
    pub id: Option<String>,
    /// `apisix.enable_server_tokens`: `Server` names the version, too.
    pub enable_server_tokens: bool,
    /// The files that plugins may name.
    pub files: PluginFiles,
}

/// Much of it is secret.
impl std::fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Settings").finish_non_exhaustive()
    }
}

/// Keys that secrets are encrypted with.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys(pub Vec<String>);

impl std::fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Keys({})", self.0.len())
    }
}

/// Whom the Admin API lets in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminSettings {
    /// `admin_key`: the keys that let callers in; none if the file names none. These are secrets.
    pub keys: Vec<Key>,
    /// `admin_key_required`: whether callers have to show a key.
    pub requires_key: bool,
    /// `enable_admin_cors`: pages in browsers may read the answers.
    pub allows_other_origins: bool,
}

/// How responses are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSettings {
    /// `cache_ttl`: seconds for which a response is fresh that is kept on a disk and does not say so itself.
    pub ttl_seconds: u64,
    /// `zones`: the places for responses.
    pub zones: Vec<CacheZone>,
}

/// A place for responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheZone {
    /// Its name.
    pub name: String,
    /// The most memory that it takes, in bytes.
    pub memory_bytes: u64,
    /// Its place on a disk; `None`: it is in memory only.
    pub disk: Option<CacheDisk>,
}

/// A zone's place on a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheDisk {
    /// The folder; `None`: the file does not say, and the stock one in `/tmp` is not taken.
    pub path: Option<String>,
    /// The most that it holds, in bytes.
    pub bytes: u64,
}

/// Whose word on the client's address counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealIpSettings {
    /// The request header that names the client.
    pub header: String,
    /// The peers that are believed.
    pub from: Vec<IpNet>,
}

/// How calls are counted and reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrometheusSettings {
    /// `export_uri`: the path at which the metrics are served.
    pub export_uri: String,
    /// `metric_prefix`: what the names of all metrics begin with.
    pub metric_prefix: String,
    /// `default_buckets`: upper bounds of the buckets of latencies, in milliseconds, ascending.
    pub buckets: Vec<u32>,
    /// `metrics.METRIC.extra_labels`: name and variable of further labels, by metric.
    pub extra_labels: Vec<(String, String, String)>,
    /// `metrics.METRIC.expire`: seconds after its last call for which a series is shown, by metric; 0: always.
    pub expire: Vec<(String, u32)>,
}

impl PrometheusSettings {
    /// Seconds after its last call for which a series of a metric is shown; `None`: always.
    pub fn expire_seconds(&self, metric: &str) -> Option<u32> {
        let found = self.expire.iter().find(|(of, _)| of == metric);
        found.map(|(_, seconds)| *seconds).filter(|seconds| *seconds > 0)
    }

    /// The further labels of a metric: name and text with variables.
    pub fn extra_labels<'s>(&'s self, metric: &'s str) -> impl Iterator<Item = (&'s str, &'s str)> {
        let all = self.extra_labels.iter().filter(move |(of, _, _)| of == metric);
        all.map(|(_, name, value)| (name.as_str(), value.as_str()))
    }
}

impl Settings {
    /// APISIX's stock configuration, but for folders in `/tmp`, which anybody may have made.
    pub fn stock() -> &'static Self {
        static STOCK: LazyLock<Settings> = LazyLock::new(Settings::default);
        &STOCK
    }

    /// A zone for responses.
    pub fn zone(&self, name: &str) -> Option<&CacheZone> {
        self.cache.zones.iter().find(|zone| zone.name == name)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            router: None,
            delete_uri_tail_slash: false,
            strips_path_parameters: false,
            keeps_escaped_slashes: false,
            shows_upstream_status: false,
            cache: CacheSettings {
                ttl_seconds: 10,
                zones: vec![
                    CacheZone {
                        name: "disk_cache_one".to_owned(),
                        memory_bytes: 50 << 20,
                        disk: Some(CacheDisk {
                            path: None,
                            bytes: 1 << 30,
                        }),
                    },
                    CacheZone {
                        name: "memory_cache".to_owned(),
                        memory_bytes: 50 << 20,
                        disk: None,
                    },
                ],
            },
            keyring: None,
            admin: AdminSettings {
                keys: Vec::new(),
                requires_key: true,
                allows_other_origins: true,
            },
            encrypts_fields: true,
            trusted_addresses: Vec::new(),
            has_no_health_checks: false,
            batches_uri: "/apisix/batch-requests".to_owned(),
            real_ip: RealIpSettings {
                header: "X-Real-IP".to_owned(),
                from: vec![IpNet::from(std::net::IpAddr::from([127, 0, 0, 1]))],
            },
            prometheus: PrometheusSettings {
                export_uri: "/apisix/prometheus/metrics".to_owned(),
                metric_prefix: "apisix_".to_owned(),
                buckets: vec![
                    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000,
                ],
                extra_labels: Vec::new(),
                expire: Vec::new(),
            },
            opentelemetry: None,
            skywalking: None,
            mirror_timeout_ms: None,
            https_port: None,
            graphql_max_bytes: 1 << 20,
            id: None,
            enable_server_tokens: true,
            files: PluginFiles::default(),
        }
    }
}
