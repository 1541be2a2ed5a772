//! Weir's snapshot: the model compiled for speed.
//!
//! [`compile`] turns a [`Model`](weir_model::Model) and the catalogue of plugins into a [`Snapshot`]: one route index
//! for each dialect, flat plugin chains with their filters built, balancers, and the filters' indexes of credentials. A
//! snapshot never changes; a reload compiles another one and swaps it in as a whole. State that must outlive snapshots
//! (the loads and the health of targets) is passed from one compile to the next in a [`PersistentState`]; [`recompile`]
//! takes unchanged parts from the [`CompileCache`] of the compile before.
//!
//! **What it is not**: it does no I/O, runs no request, and knows no dialect: precedence and order are already resolved
//! in the model. It sits between `weir-model` and `weir-plugin` below and `weir-proxy` above.

mod chain;
mod compile;
mod health;
mod persistent_state;
mod route;
mod settings;
mod stream;
mod table;
mod tls;
mod traffic;
mod upstream;
mod weak_map;

pub use chain::{Chain, Instance, RefusalBody, Step};
pub use compile::{CompileCache, compile, hash, recompile};
pub use health::{AddressHealth, Checks, TargetHealth};
pub use persistent_state::PersistentState;
pub use route::{Action, Forward, ForwardedHeaderPolicy, GatewayHeader, Route, RouteRules};
pub use settings::{Charset, DialectSettings, RealIp};
pub use stream::{SessionInfo, StreamRoute, StreamRoutes, StreamTransport};
pub use table::{MatchExplanation, Mismatch, RouteMatch, RouteTable, Verdict};
pub use tls::{
    AdHocClientTls, CHALLENGE_PROTOCOL, ClientTls, Expiry, MAX_RESPONSE, ServerIdentity, ServerTls,
    ServerTlsState, Staple, StapleError, UnusableAnswer, UnusableKeyPair, Validity, certified_key,
    client_verifier, validity,
};
pub use traffic::{HedgeState, StickySessions, UpstreamHedge, UpstreamOverload, UpstreamTraffic};
pub use upstream::{HashSource, Target, TargetState, Upstream, UpstreamBudget};

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use weir_model::DialectName;
use weir_plugin::{ConsumerIdentity, GatewayLog};

/// All that a gateway serves, ready to be executed. Immutable; shared by all workers.
pub struct Snapshot {
    /// Whose words answer calls that match no route.
    pub dialect: DialectName,
    /// One table for each dialect that has routes, in the order in which the dialects first appear in the model.
    pub tables: Vec<RouteTable>,
    /// The routes, in the model's order.
    pub routes: Vec<Arc<Route>>,
    /// The routes of connections and datagrams below HTTP.
    pub streams: StreamRoutes,
    /// The model's upstreams in its order, then one for each server that services name by `url`. An incremental compile
    /// keeps the index of each.
    pub upstreams: Vec<Arc<Upstream>>,
    /// The chain for calls that match no route.
    pub unmatched: Chain,
    /// The consumers, by the numbers that identities have.
    pub consumers: Vec<Arc<ConsumerIdentity>>,
    /// Destinations that filters may choose instead of their routes' own services.
    pub destinations: Vec<Forward>,
    /// What holds for all calls of a dialect, matched or not; those of the others have nothing special.
    pub settings: Vec<(DialectName, DialectSettings)>,
    /// What clients are shown over TLS.
    pub tls: ServerTls,
    /// How servers are met over TLS that belong to no service.
    pub ad_hoc_tls: AdHocClientTls,
    /// What takes lines of the gateway's own log.
    pub gateway_logs: Vec<Arc<dyn GatewayLog>>,
    /// Hash of the model's text form, or of the documents that it was made of: equal for equal models, whichever
    /// process compiled them.
    pub hash: u64,
    /// The indices of upstreams by their names, once a call has needed one.
    names: OnceLock<HashMap<String, u32>>,
}

impl Snapshot {
    /// The place of the upstream of this name.
    pub fn upstream_named(&self, name: &str) -> Option<u32> {
        let names = self.names.get_or_init(|| {
            let named = self.upstreams.iter().zip(0..);
            named
                .map(|(upstream, place)| (upstream.name.clone(), place))
                .collect()
        });
        names.get(name).copied()
    }

    /// What holds for all calls of this dialect.
    pub fn settings(&self, dialect: DialectName) -> &DialectSettings {
        static PLAIN: DialectSettings = DialectSettings::PLAIN;
        let found = self.settings.iter().find(|(name, _)| *name == dialect);
        found.map_or(&PLAIN, |(_, settings)| settings)
    }
}
