//! The name service: which servers are asked, and what they say.

use super::{Endpoint, MIN_TTL, ResolvedAddress};
use hickory_resolver::config::{NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RData, RecordType, rdata::SRV};
use hickory_resolver::system_conf::{parse_resolv_conf, read_system_conf};
use hickory_resolver::{Hosts, TokioResolver};
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How long to wait for a server.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How often the system's configuration is looked at for changes.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The server that is asked if nothing is configured.
const THIS_MACHINE: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 53));
/// Most targets of SRV records that are looked up.
const MAX_SERVICES: usize = 32;

/// Which servers are asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NameServers {
    /// Those in the system's `/etc/resolv.conf`, which is read again when it changes, or once it can be read.
    #[default]
    System,
    /// Those in such a file.
    File(PathBuf),
    /// These.
    Fixed(Vec<SocketAddr>),
}

/// The name service as one worker sees it.
pub(super) struct System {
    servers: NameServers,
    loaded: RefCell<Option<Loaded>>,
}

/// When the list of servers and the table of hosts were last changed.
type Changes = [Option<SystemTime>; 2];

struct Loaded {
    resolver: Rc<TokioResolver>,
    hosts: Arc<Hosts>,
    #[cfg(test)]
    servers: Vec<IpAddr>,
    changes: Changes,
    looked_at: Instant,
}

impl System {
    pub(super) fn new(servers: NameServers) -> Self {
        Self {
            servers,
            loaded: RefCell::default(),
        }
    }

    /// The resolver, made again when the system's configuration has changed.
    fn with<R>(&self, work: impl FnOnce(&Loaded) -> R) -> Option<R> {
        let now = Instant::now();
        let mut loaded = self.loaded.borrow_mut();
        let is_due = loaded
            .as_ref()
            .is_none_or(|loaded| now.saturating_duration_since(loaded.looked_at) >= LOOK_EVERY);
        if is_due {
            let changes = self.changes();
            match &mut *loaded {
                Some(known) if known.changes == changes => known.looked_at = now,
                _ => *loaded = self.load(changes, now),
            }
        }
        loaded.as_ref().map(work)
    }

    /// The servers that are asked once it is time to look at the configuration again.
    #[cfg(test)]
    pub(super) fn servers_after_a_while(&self) -> Vec<String> {
        if let Some(loaded) = &mut *self.loaded.borrow_mut() {
            loaded.looked_at -= LOOK_EVERY;
        }
        self.with(|loaded| loaded.servers.iter().map(IpAddr::to_string).collect())
            .unwrap_or_default()
    }

    fn changes(&self) -> Changes {
        let changed_at = |path: &Path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
        let servers = match &self.servers {
            NameServers::System => changed_at(Path::new("/etc/resolv.conf")),
            NameServers::File(path) => changed_at(path),
            NameServers::Fixed(_) => None,
        };
        [servers, changed_at(Path::new("/etc/hosts"))]
    }

    /// The resolver's configuration; if it cannot be read, a server on this machine.
    fn read(&self) -> (ResolverConfig, ResolverOpts) {
        let read = match &self.servers {
            NameServers::System => read_system_conf().map_err(|error| error.to_string()),
            NameServers::File(path) => std::fs::read(path)
                .map_err(|error| error.to_string())
                .and_then(|text| parse_resolv_conf(text).map_err(|error| error.to_string())),
            NameServers::Fixed(servers) => Ok((config_of(servers), ResolverOpts::default())),
        };
        read.unwrap_or_else(|error| {
            tracing::warn!(
                error,
                "resolv.conf cannot be read; using a name server on this machine"
            );
            (config_of(&[THIS_MACHINE]), ResolverOpts::default())
        })
    }

    fn load(&self, changes: Changes, now: Instant) -> Option<Loaded> {
        let (config, options) = self.read();
        let servers: Vec<IpAddr> = config.name_servers().iter().map(|server| server.ip).collect();
        tracing::debug!(?servers, "name servers changed");
        let mut builder =
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default()).with_options(options);
        let options = builder.options_mut();
        options.timeout = TIMEOUT;
        options.attempts = 1;
        // The caller caches answers.
        options.cache_size = 0;
        let hosts = Arc::new(Hosts::from_system().unwrap_or_default());
        let mut resolver = builder
            .build()
            .inspect_err(|error| tracing::error!(%error, "names cannot be resolved"))
            .ok()?;
        resolver.set_hosts(Arc::clone(&hosts));
        Some(Loaded {
            resolver: Rc::new(resolver),
            hosts,
            #[cfg(test)]
            servers,
            changes,
            looked_at: now,
        })
    }

    fn resolver(&self) -> Option<Rc<TokioResolver>> {
        self.with(|loaded| Rc::clone(&loaded.resolver))
    }

    /// Whether the name is this machine's own, or stands in the system's table of hosts: no server knows better.
    pub(super) fn is_local(&self, name: &str) -> bool {
        let plain = name.trim_end_matches('.');
        if plain.eq_ignore_ascii_case("localhost") || plain.to_ascii_lowercase().ends_with(".localhost") {
            return true;
        }
        let Ok(name) = Name::from_str(name) else {
            return false;
        };
        let is_listed = |loaded: &Loaded| {
            [RecordType::A, RecordType::AAAA].into_iter().any(|kind| {
                let query = Query::query(name.clone(), kind);
                loaded.hosts.lookup_static_host(&query).is_some()
            })
        };
        self.with(is_listed).unwrap_or(false)
    }

    /// The addresses of a name, in a fixed order.
    pub(super) async fn addresses(&self, name: &str) -> Option<ResolvedAddress> {
        let lookup = self.resolver()?.lookup_ip(name).await.ok()?;
        let ttl = ttl_of(lookup.valid_until());
        let mut addresses: Vec<IpAddr> = lookup.iter().collect();
        // IPv4 alone, if there is any, as a target without a route to IPv6 would lose every other call.
        if addresses.iter().any(IpAddr::is_ipv4) {
            addresses.retain(IpAddr::is_ipv4);
        }
        let endpoint = |ip| Endpoint {
            ip,
            port: None,
            weight: 1,
            priority: 0,
        };
        ResolvedAddress::new(addresses.into_iter().map(endpoint).collect(), ttl)
    }

    /// The services of a name (RFC 2782), in a fixed order.
    pub(super) async fn services(&self, name: &str) -> Option<ResolvedAddress> {
        let lookup = self.resolver()?.srv_lookup(name).await.ok()?;
        let mut ttl = ttl_of(lookup.valid_until());
        let services: Vec<SRV> = lookup
            .answers()
            .iter()
            .filter_map(|record| match &record.data {
                // "." as a target: the service is decidedly not available here.
                RData::SRV(service) if !service.target.is_root() => Some(service.clone()),
                _ => None,
            })
            .take(MAX_SERVICES)
            .collect();
        let mut endpoints = Vec::new();
        for service in services {
            let Some(found) = self.addresses(&service.target.to_ascii()).await else {
                continue;
            };
            ttl = ttl.min(found.ttl);
            endpoints.extend(found.endpoints.into_iter().map(|endpoint| Endpoint {
                port: Some(service.port).filter(|port| *port != 0),
                // RFC 2782 gives those of weight 0 a very small chance.
                weight: u32::from(service.weight).max(1),
                priority: -i32::from(service.priority),
                ..endpoint
            }));
        }
        ResolvedAddress::new(endpoints, ttl)
    }
}

impl ResolvedAddress {
    /// `None`: there are no endpoints.
    fn new(mut endpoints: Vec<Endpoint>, ttl: Duration) -> Option<Self> {
        // Servers turn the order of their records with each answer; only others are a change.
        endpoints.sort_unstable();
        endpoints.dedup();
        (!endpoints.is_empty()).then_some(Self { endpoints, ttl })
    }
}

fn ttl_of(valid_until: Instant) -> Duration {
    valid_until.saturating_duration_since(Instant::now()).max(MIN_TTL)
}

fn config_of(servers: &[SocketAddr]) -> ResolverConfig {
    let servers = servers.iter().map(|server| {
        let mut config = NameServerConfig::udp_and_tcp(server.ip());
        for connection in &mut config.connections {
            connection.port = server.port();
        }
        config
    });
    ResolverConfig::from_parts(None, Vec::new(), servers.collect())
}
