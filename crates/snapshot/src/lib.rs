//! Weir's snapshot: the model compiled for speed.
//!
//! [`compile`] turns a [`Model`](weir_model::Model) and the catalogue of plugins into a [`Snapshot`]: one route
//! index for each voice, flat plugin chains with their filters built, balancers, and credentials where the
//! filters keep them. A snapshot never changes; a reload compiles another one and swaps it in whole. What must
//! outlive snapshots (the loads and the health of targets) is handed from one compile to the next in a [`Carry`];
//! [`compile_again`] takes what has not changed from the [`Pieces`] of the compile before.
//!
//! **What it is not**: it does no I/O, runs no request, and knows no front door: precedence and order come
//! settled in the model. It sits between `weir-model` and `weir-plugin` below and `weir-proxy` above.

mod carry;
mod chain;
mod compile;
mod health;
mod route;
mod settings;
mod stream;
mod table;
mod tls;
mod upstream;

pub use carry::Carry;
pub use chain::{Chain, Instance, RefusalBody, Step};
pub use compile::{Pieces, compile, compile_again, hash};
pub use health::{AddressHealth, Checks, TargetHealth};
pub use route::{Action, Forward, Forwarded, Route, Stamp};
pub use settings::{Charset, RealIp, VoiceSettings};
pub use stream::{StreamRoute, StreamSession, StreamTransport, Streams};
pub use table::{Explained, Found, Mismatch, RouteTable, Verdict};
pub use tls::{CHALLENGE_PROTOCOL, ClientTls, Elsewhere, End, Presented, ServerTls, Validity, validity};
pub use upstream::{HashSource, Target, TargetState, Upstream, UpstreamBudget};

use std::sync::Arc;
use weir_model::Voice;

/// All that a gateway serves, ready to be executed. Immutable; shared by all workers.
pub struct Snapshot {
    /// Whose words answer calls that match no route.
    pub voice: Voice,
    /// One table for each voice that has routes, in the order in which the voices first appear in the model.
    pub tables: Vec<RouteTable>,
    /// The routes, in the model's order.
    pub routes: Vec<Arc<Route>>,
    /// The routes of connections and datagrams below HTTP.
    pub streams: Streams,
    /// The model's upstreams in its order, then one for each server that services name by `url`; where most of it was
    /// compiled before, each where it stood then.
    pub upstreams: Vec<Arc<Upstream>>,
    /// The chain for calls that match no route.
    pub unmatched: Chain,
    /// Where filters may send calls in place of their routes' own services.
    pub destinations: Vec<Forward>,
    /// By voice: what holds for all its calls, matched or not.
    pub settings: [VoiceSettings; Voice::COUNT],
    /// What clients are shown over TLS.
    pub tls: ServerTls,
    /// How servers are met over TLS that belong to no service.
    pub elsewhere: Elsewhere,
    /// Hash of the model's text form, or of the documents that it was made of: equal for equal models, whichever
    /// process compiled them.
    pub hash: u64,
}

impl Snapshot {
    /// What holds for all calls of this voice.
    pub fn settings(&self, voice: Voice) -> &VoiceSettings {
        &self.settings[voice as usize]
    }
}
