//! Calls that filters send to another upstream, host or port than their service's.

use crate::health::is_enough_healthy;
use weir_plugin::TargetOverride;
use weir_snapshot::{Snapshot, Upstream};

/// The place of an upstream that is not in the snapshot.
pub(super) const NO_TARGET: u32 = u32::MAX;

/// The upstream at a place of the snapshot, or one of this call alone.
pub(super) enum UpstreamOverride {
    Indexed(u32),
    AdHoc(Box<Upstream>),
}

/// The target of `elsewhere` for calls whose service's upstream stands at `place`.
#[cold]
pub(super) fn find(snapshot: &Snapshot, place: u32, elsewhere: &TargetOverride) -> UpstreamOverride {
    let own = &snapshot.upstreams[place as usize];
    let named = elsewhere.upstream.as_deref();
    if let Some(named) = named.and_then(|name| snapshot.upstream_named(name)) {
        let is_healthy = || {
            let upstream: &Upstream = &snapshot.upstreams[named as usize];
            let mut targets = upstream.targets.iter();
            upstream.checks.as_ref().is_none_or(|checks| {
                is_enough_healthy(upstream, checks)
                    && targets.any(|target| target.health.as_ref().is_none_or(|it| it.is_usable()))
            })
        };
        return UpstreamOverride::Indexed(match elsewhere.only_if_healthy && !is_healthy() {
            true => place,
            false => named,
        });
    }
    let first = own.targets.first();
    let host = elsewhere
        .host
        .as_deref()
        .or(first.map(|target| target.host.as_str()));
    let port = elsewhere.port.or(first.map(|target| target.port));
    match host {
        Some(host) => {
            let port = port.unwrap_or(own.scheme.default_port());
            UpstreamOverride::AdHoc(Box::new(Upstream::of_one_call(own, host, port)))
        }
        None => UpstreamOverride::Indexed(place),
    }
}
