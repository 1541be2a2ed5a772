//! What single resources are compiled to, before the snapshot puts them together. How they are compiled is for each kind.

use crate::route::{ForwardedHeaderPolicy, GatewayHeader, Route};
use crate::tls::ClientTls;
use std::collections::VecDeque;
use std::sync::Arc;
use weir_model::{self as model, Scheme, Service};

/// So many values are remembered to be shared with routes to come.
const REMEMBERED: usize = 8;

/// What is remembered of what becomes of forwarding headers.
pub(super) type Forwardings = RecentValues<model::ForwardedHeaders, Arc<ForwardedHeaderPolicy>>;
/// What is remembered of what becomes of added headers.
pub(super) type CompiledGatewayHeaders = RecentValues<Vec<model::GatewayHeader>, Arc<[GatewayHeader]>>;

/// A route, and how its service was reached when it was compiled.
pub(super) struct CompiledRoute {
    pub route: Arc<Route>,
    pub service: Option<Arc<CompiledService>>,
}

/// How one service is reached.
pub(super) struct CompiledService {
    pub service: Arc<Service>,
    /// Its name, shared by all that carry it.
    pub name: Arc<str>,
    /// What its targets speak.
    pub scheme: Scheme,
    /// Position in the snapshot's upstreams.
    pub upstream: u32,
    /// The path put before those of calls.
    pub path: Option<String>,
    /// The TLS settings for its targets, if they use TLS.
    pub tls: Option<Arc<ClientTls>>,
    /// Answers of these statuses are tried again.
    pub retry_statuses: Arc<[u16]>,
}

/// The last few values that were compiled.
pub(super) struct RecentValues<K, V>(VecDeque<(K, V)>);

impl<K, V> Default for RecentValues<K, V> {
    fn default() -> Self {
        Self(VecDeque::with_capacity(REMEMBERED))
    }
}

impl<K: PartialEq, V: Clone> RecentValues<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<V> {
        let known = self.0.iter().find(|(it, _)| it == key);
        known.map(|(_, value)| value.clone())
    }

    pub(super) fn remember(&mut self, key: K, value: V) -> V {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((key, value.clone()));
        value
    }
}

impl<T: PartialEq + Clone> RecentValues<T, Arc<T>> {
    /// The value, shared with an equal one if that is remembered.
    pub(super) fn share(&mut self, value: T) -> Arc<T> {
        match self.get(&value) {
            Some(known) => known,
            None => self.remember(value.clone(), Arc::new(value)),
        }
    }
}
