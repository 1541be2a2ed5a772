//! `proxy-cache`: keeps responses and answers later calls with them.
//!
//! ```yaml
//! key: [$route_id, $host, $request_uri]
//! ttl_seconds: 60
//! cache_control: true
//! ```
//!
//! If several calls need the same response at once, one fetches it while the others wait. Responses that `Vary` are
//! kept for each variant; clients that already have the response get 304, and clients that request a part get that
//! part. Memory is limited for each zone; responses that were not requested for the longest time are dropped first.
//! With `disk`, responses are also kept there, and are found again when the process starts. With `redis`, they are kept
//! there instead, for all gateways.
//!
//! Security: everything that distinguishes responses must be in the key. Consumers have caches of their own, unless
//! `per_consumer` is off; so have callers that `forward-auth` or `jwe-decrypt` identifies. The response to a call with
//! `Authorization` and no known consumer is shared only if the response allows it (RFC 9111, 3.5) with `cache_control`;
//! without `cache_control`, it is kept for callers with the same value, unless `per_authorization` is off. Callers that
//! only the service recognises by something else share one cache, unless a header is in `headers` or the service sends
//! `Vary` or `Cache-Control: private`.

mod caches;
mod conditions;
mod config;
mod control;
mod disk_codec;
mod disk_load;
mod entry;
mod filter;
mod finish;
mod flight;
mod key;
mod pending;
mod record;
mod redis;
mod zone;

pub use caches::{CachedResponse, Caches, Purge, Purged};
pub use config::{CacheStatusTexts, Config, Disk, PurgeName, QueryKey};
use filter::CacheFilter;
use redis::RedisStore;
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::is_name;
use weir_plugin::{BuildContext, DiskCaches, Filter, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;
use zone::Zone;

/// Zones at most that are held without an instance that uses them.
const MAX_SPARE_ZONES: usize = 64;
const ZONE_BYTES: std::ops::RangeInclusive<u64> = 65_536..=17_179_869_184;
const DISK_BYTES: std::ops::RangeInclusive<u64> = 1_048_576..=17_592_186_044_416;

/// The plugin; it owns the zones.
#[derive(Default)]
pub struct ProxyCache {
    caches: Caches,
    disk_caches: Option<Arc<dyn DiskCaches>>,
}

impl ProxyCache {
    /// One that can keep responses on these disk_caches, and whose zones are managed by `caches`. One without disk_caches keeps
    /// all of them in memory only.
    pub fn on(disk_caches: Arc<dyn DiskCaches>, caches: Caches) -> Self {
        Self {
            disk_caches: Some(disk_caches),
            caches,
        }
    }

    /// Its stores.
    pub fn caches(&self) -> Caches {
        self.caches.clone()
    }

    fn zone(&self, name: &str, config: &Config) -> Arc<Zone> {
        let mut zones = self.caches.zones();
        if zones.len() > MAX_SPARE_ZONES {
            zones.retain(|_, zone| Arc::strong_count(zone) > 1);
        }
        // A place on a disk that is added to an instance is a store of its own.
        let name = match &config.disk {
            Some(disk) => format!("{name}\n{}", disk.path),
            None if config.redis.is_some() => format!("{name}\nredis"),
            None => name.to_owned(),
        };
        let disk = config.disk.as_ref().zip(self.disk_caches.as_ref());
        let new = || {
            let bytes = match config.redis {
                Some(_) => redis::MEMORY_BYTES,
                None => usize::try_from(config.zone_bytes).unwrap_or(usize::MAX),
            };
            let disk = disk.map(|(disk, disk_caches)| (disk.clone(), Arc::clone(disk_caches)));
            Arc::new(Zone::new(bytes, disk))
        };
        Arc::clone(zones.entry(name).or_insert_with(new))
    }
}

impl Plugin for ProxyCache {
    fn name(&self) -> &'static str {
        "proxy-cache"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut errors = ConfigErrors::default();
        errors.extend(faults(&config));
        let name = Caches::name(context.dialect, &config.zone);
        let redis = config.redis.clone().and_then(|redis| {
            let prefix = redis.prefix.clone();
            let server = redis.compile(&["redis"], &mut errors)?;
            Some(RedisStore::new(server, &prefix, &name))
        });
        errors.done()?;
        let zone = self.zone(&name, &config);
        if let Some(purged_as) = &config.purged_as {
            self.caches.note(context.dialect, purged_as, &zone);
        }
        Ok(Arc::new(CacheFilter::new(config, zone, redis)))
    }
}

/// What is wrong with a configuration.
fn faults(config: &Config) -> Vec<Diagnostic> {
    let root = DocPath::root;
    let names = [
        ("status_header", &config.status_header),
        ("key_header", &config.key_header),
    ];
    let mut faults: Vec<_> = names
        .iter()
        .filter(|(_, name)| name.as_ref().is_some_and(|name| !is_name(name.as_bytes())))
        .map(|(field, _)| Diagnostic::error(root().field(*field), "expected a header name"))
        .collect();
    let mut fault = |path: DocPath, message: &str| faults.push(Diagnostic::error(path, message));
    if config.headers.iter().any(|name| !is_name(name.as_bytes())) {
        fault(root().field("headers"), "expected header names");
    }
    if !ZONE_BYTES.contains(&config.zone_bytes) {
        fault(
            root().field("zone_bytes"),
            "expected from 65536 to 17179869184 bytes",
        );
    }
    if config.key.is_empty() {
        fault(root().field("key"), "expected at least one text");
    }
    if config.ttl_seconds == 0 {
        fault(root().field("ttl_seconds"), "expected at least a second");
    }
    if config.redis.is_some() && config.disk.is_some() {
        fault(root().field("disk"), "expected no disk together with a Redis");
    }
    // The zone is part of Redis keys, in which braces decide the cluster node of a key.
    let is_visible = |byte: u8| byte.is_ascii_graphic() && !b"{}".contains(&byte);
    if config.redis.is_some() && (config.zone.len() > 64 || !config.zone.bytes().all(is_visible)) {
        fault(
            root().field("zone"),
            "expected at most 64 visible characters without braces",
        );
    }
    if config.redis.is_some() && config.purged_as.is_some() {
        fault(
            root().field("purged_as"),
            "expected none with a Redis: use the method PURGE (`purge: true`)",
        );
    }
    if let Some(disk) = &config.disk {
        let place = root().field("disk");
        if disk.path.is_empty() || disk.path.contains('\0') {
            fault(place.field("path"), "expected a path");
        }
        if !DISK_BYTES.contains(&disk.size) {
            fault(
                place.field("size"),
                "expected from 1048576 to 17592186044416 bytes",
            );
        }
    }
    faults
}

#[cfg(test)]
mod tests;
