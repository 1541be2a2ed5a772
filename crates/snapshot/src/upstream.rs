//! Upstreams: targets with their balancer, and what of a call decides among them.

use crate::health::{Checks, TargetHealth};
use crate::traffic::UpstreamTraffic;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use weir_flow::balancer::{
    Balancer, BalancingAlgorithm, EWMA_DECAY_MS, EWMA_FAILED_US, Load, TargetSpec, ewma_update,
};
use weir_flow::hash_key;
use weir_flow::retry_budget::{BudgetRules, RetryBudget};
use weir_flow::slow_start::SlowStart;
use weir_model::{KeepalivePool, Scheme};
use weir_plugin::{Exchange, Template};

/// A group of targets that serve the same API.
pub struct Upstream {
    /// The upstream's name; `http://host:port` for a server that services name by `url`.
    pub name: String,
    /// The protocol spoken to the targets.
    pub scheme: Scheme,
    /// The servers; the balancer answers with positions in this list.
    pub targets: Vec<Target>,
    /// Chooses among the targets.
    pub balancer: Balancer,
    /// What is hashed to choose, the first that the call has. Empty unless the balancer wants a hash.
    pub hash_on: Vec<HashSource>,
    /// Bounds of the idle connections.
    pub keepalive: KeepalivePool,
    /// Names of targets are looked up as SRV records first.
    pub srv: bool,
    /// How the health of the targets is found out; `None`: all are healthy.
    pub checks: Option<Arc<Checks>>,
    /// The limit of retries, if there is one.
    pub retry_budget: Option<UpstreamBudget>,
    /// What few upstreams have: slow start, sticky sessions, hedged calls, a limit of calls in flight.
    pub traffic: Option<Box<UpstreamTraffic>>,
}

/// The retry budget of an upstream.
#[derive(Debug, Clone)]
pub struct UpstreamBudget {
    /// Its bounds.
    pub rules: BudgetRules,
    /// What is left of it; shared by all workers and by the snapshots in which the upstream stands.
    pub left: Arc<RetryBudget>,
}

/// A server of an upstream.
pub struct Target {
    /// An address (IPv6 without brackets) or a name.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Its share of the calls.
    pub weight: u32,
    /// Where to connect, when `host` is an address.
    pub address: Option<SocketAddr>,
    /// `Host` for this target: its name, with the port if it is not the scheme's.
    pub host_header: Vec<u8>,
    /// The target's load; shared by all workers and by the snapshots in which the target stands.
    pub state: Arc<TargetState>,
    /// The target's health, if it is checked.
    pub health: Option<Arc<TargetHealth>>,
}

/// How busy and how fast a target is.
#[derive(Debug, Default)]
pub struct TargetState {
    /// Calls that were sent to it and are not finished.
    pub inflight: AtomicU32,
    /// The bits of an `f64`: the moving average of its latency in microseconds, 0 if there is none yet.
    pub latency_us: AtomicU64,
    /// When the average was last renewed, in milliseconds of the caller's clock.
    pub latency_at_ms: AtomicU64,
    /// When its slow start began, in milliseconds of the caller's clock; 0: with the next call that it may get. Only of
    /// targets that start slowly.
    pub warm_since_ms: AtomicU64,
}

impl TargetState {
    /// Notes how long the target took to answer.
    pub fn note_latency(&self, latency: Duration, now_ms: u64) {
        self.note(latency.as_micros() as f64, now_ms);
    }

    /// Notes that the target did not answer.
    pub fn note_failure(&self, now_ms: u64) {
        self.note(EWMA_FAILED_US, now_ms);
    }

    fn note(&self, latency_us: f64, now_ms: u64) {
        let since_ms = now_ms.saturating_sub(self.latency_at_ms.swap(now_ms, Relaxed));
        let average = f64::from_bits(self.latency_us.load(Relaxed));
        let renewed = ewma_update(average, latency_us, since_ms, EWMA_DECAY_MS);
        self.latency_us.store(renewed.to_bits(), Relaxed);
    }

    /// What the balancer goes by at this time.
    pub fn load(&self, now_ms: u64) -> Load {
        let idle_ms = now_ms.saturating_sub(self.latency_at_ms.load(Relaxed));
        let latency_us = f64::from_bits(self.latency_us.load(Relaxed));
        Load {
            inflight: self.inflight.load(Relaxed),
            latency_us: ewma_update(latency_us, 0.0, idle_ms, EWMA_DECAY_MS),
            spared: 0,
        }
    }

    /// When the slow start began; now, if it has not begun.
    pub fn warming_since(&self, now_ms: u64) -> u64 {
        match self.warm_since_ms.load(Relaxed) {
            0 => {
                self.warm_since_ms.store(now_ms, Relaxed);
                now_ms
            }
            since => since,
        }
    }

    /// The target can get no calls: its slow start begins with the next one that it may get.
    pub fn cool_down(&self) {
        if self.warm_since_ms.load(Relaxed) != 0 {
            self.warm_since_ms.store(0, Relaxed);
        }
    }
}

/// What of a call is hashed to choose a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HashSource {
    /// The consumer's id.
    Consumer,
    /// The client's address.
    Ip,
    /// The path in its normal form.
    Path,
    /// The first value of this header.
    Header(Vec<u8>),
    /// The first value of this query argument.
    QueryArg(Vec<u8>),
    /// This capture of the route's path pattern.
    Capture(String),
    /// This cookie.
    Cookie {
        /// The cookie's name.
        name: Vec<u8>,
        /// The path for which a new cookie is set if the client has none; `None`: none is set.
        set_for_path: Option<String>,
        /// What stands behind the path of a new cookie.
        attributes: String,
    },
    /// A text with variables; a call has it when at least one variable has a value.
    Template(Template),
    /// The client's id in a session of MQTT.
    MqttClientId,
}

impl Upstream {
    /// A server that only one call knows of. It is reached as the targets of `like` are.
    pub fn of_one_call(like: &Self, host: &str, port: u16) -> Self {
        let address = host.parse::<IpAddr>().ok();
        let shown = match address {
            Some(IpAddr::V6(_)) => format!("[{host}]"),
            _ => host.to_owned(),
        };
        let id = format!("{shown}:{port}");
        let host_header = match port == like.scheme.default_port() {
            true => shown,
            false => id.clone(),
        };
        let spec = TargetSpec {
            id: id.clone(),
            weight: 1,
            priority: 0,
        };
        Self {
            name: id,
            scheme: like.scheme,
            targets: vec![Target {
                host: host.to_owned(),
                port,
                weight: 1,
                address: address.map(|address| SocketAddr::new(address, port)),
                host_header: host_header.into_bytes(),
                state: Arc::default(),
                health: None,
            }],
            balancer: Balancer::new(&[spec], BalancingAlgorithm::RoundRobin, 0),
            hash_on: Vec::new(),
            keepalive: like.keepalive,
            srv: false,
            checks: None,
            retry_budget: None,
            traffic: None,
        }
    }

    /// The load of a target, for the balancer.
    #[inline]
    pub fn load(&self, target: usize, now_ms: u64) -> Load {
        let state = &self.targets[target].state;
        let mut load = state.load(now_ms);
        if let Some(slow_start) = self.slow_start() {
            load.spared = slow_start.spared(state.warming_since(now_ms), now_ms);
        }
        load
    }

    /// The slow start of targets, if it is configured.
    #[inline]
    pub fn slow_start(&self) -> Option<&SlowStart> {
        self.traffic.as_ref()?.slow_start.as_ref()
    }

    /// The hash by which this call chooses its target: that of the first source that the call has.
    #[inline]
    pub fn hash(&self, exchange: &Exchange) -> Option<u32> {
        self.hash_on.iter().find_map(|source| source.hash(exchange))
    }
}

impl HashSource {
    /// The hash of this part of a session below HTTP, which has nothing but its client's address, and with MQTT its
    /// client's id.
    pub fn hash_of_client(&self, client: IpAddr, mqtt_client_id: Option<&[u8]>) -> Option<u32> {
        match self {
            Self::Ip => Some(hash_address(client)),
            Self::MqttClientId => mqtt_client_id.map(hash_key),
            _ => None,
        }
    }

    /// The hash of this part of the call; `None` if the call does not have it.
    pub fn hash(&self, exchange: &Exchange) -> Option<u32> {
        let request = &exchange.request;
        match self {
            Self::Consumer => {
                let identity = exchange.identity.as_ref()?;
                Some(hash_key(identity.consumer.id.as_bytes()))
            }
            Self::Ip => Some(hash_address(request.client)),
            Self::Path => Some(hash_key(&request.path)),
            Self::Header(name) => request.headers.get(name).map(hash_key),
            Self::QueryArg(name) => request.query_arg(name).map(|value| hash_key(&value)),
            Self::Capture(name) => {
                let mut captures = exchange.captures.iter();
                let (_, value) = captures.find(|(capture, _)| capture.as_ref() == name)?;
                Some(hash_key(value))
            }
            Self::Cookie { name, .. } => request.cookie(name).map(hash_key),
            Self::Template(template) => {
                let mut text = Vec::new();
                let found = template.render(exchange, &mut text);
                (found > 0).then(|| hash_key(&text))
            }
            // Calls are no sessions of MQTT.
            Self::MqttClientId => None,
        }
    }
}

/// The hash of an address as text.
fn hash_address(address: IpAddr) -> u32 {
    // The longest text of an address has 45 bytes.
    let mut text = [0; 48];
    let mut rest = text.as_mut_slice();
    let is_written = write!(rest, "{address}").is_ok();
    let left = rest.len();
    let length = if is_written { text.len() - left } else { 0 };
    hash_key(&text[..length])
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_flow::balancer::{BalancingAlgorithm, TargetSpec};

    /// One target refuses all calls at once, the other answers in 20 ms. Each call that fails is tried elsewhere.
    #[test]
    fn ewma_leaves_a_target_that_never_answers() {
        let spec = |id: &str| TargetSpec {
            id: id.to_owned(),
            weight: 1,
            priority: 0,
        };
        let balancer = Balancer::new(&[spec("dead"), spec("alive")], BalancingAlgorithm::Ewma, 0);
        for seed in 0..20 {
            let states = [TargetState::default(), TargetState::default()];
            let mut state = balancer.new_state(seed);
            let mut failed = 0;
            // A minute of 50 calls a second.
            for call in 1..3_000 {
                let now_ms = 1_000_000 + call * 20;
                let load = |index: usize| states[index].load(now_ms);
                let picked = balancer.pick(&mut state, None, load, |_| true);
                if picked == Some(0) {
                    failed += 1;
                    states[0].note_failure(now_ms);
                } else {
                    states[1].note_latency(Duration::from_millis(20), now_ms);
                }
            }
            assert!((1..=4).contains(&failed), "seed {seed}: {failed}");
        }
    }
}
