//! A finished call, as the aggregator takes it: in numbers of names, or of groups of names. What of a call is only in the
//! request log is not in here.

use super::{GroupId, NameId};

/// A finished call, with the numbers of its groups of names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupedCall {
    /// The minute in which it ended, from the Unix epoch.
    pub minute: u32,
    /// Its route ([`Aggregator::route`](super::Aggregator::route)).
    pub route: GroupId,
    /// The caller ([`Aggregator::caller`](super::Aggregator::caller)).
    pub caller: GroupId,
    /// The target ([`Aggregator::target`](super::Aggregator::target)).
    pub target: GroupId,
    /// The kind of call ([`Aggregator::kind`](super::Aggregator::kind)).
    pub kind: GroupId,
    /// The status.
    pub status: u16,
    /// Whether the gateway refused it.
    pub is_refused: bool,
    /// Whether the client left before the end.
    pub is_aborted: bool,
    /// Upstream calls beyond the first.
    pub retries: u8,
    /// The whole time, in microseconds.
    pub total_us: u32,
    /// The upstream's part; zero: none was asked.
    pub upstream_us: u32,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// The number that distinguishes callers that are no consumers: made of the address.
    pub address: u64,
}

/// A finished call, with the numbers of its names: for those who do not know its groups of names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FinishedCall {
    /// The minute in which it ended, from the Unix epoch.
    pub minute: u32,
    /// The service, the route, the consumer.
    pub service: NameId,
    /// The route.
    pub route: NameId,
    /// The consumer.
    pub consumer: NameId,
    /// The upstream and the target that was asked last.
    pub upstream: NameId,
    /// The target.
    pub target: NameId,
    /// Why the gateway refused it; zero: it did not.
    pub refusal: NameId,
    /// The plugin that refused it.
    pub plugin: NameId,
    /// The method.
    pub method: NameId,
    /// The protocol.
    pub protocol: NameId,
    /// The environment of the route; zero: the gateway's own.
    pub environment: NameId,
    /// The API that the route belongs to; zero: none.
    pub api: NameId,
    /// The version of the API.
    pub version: NameId,
    /// The operation of the API.
    pub operation: NameId,
    /// The revision of the version.
    pub revision: NameId,
    /// The application that called; zero: none.
    pub application: NameId,
    /// The plan of its subscription.
    pub plan: NameId,
    /// The subscription.
    pub subscription: NameId,
    /// The status.
    pub status: u16,
    /// Whether the client left before the end.
    pub is_aborted: bool,
    /// Upstream calls beyond the first.
    pub retries: u8,
    /// The whole time, in microseconds.
    pub total_us: u32,
    /// The upstream's part; zero: none was asked.
    pub upstream_us: u32,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// The number that distinguishes callers that are no consumers: made of the address.
    pub caller: u64,
}

/// The further facts of a sampled call.
#[derive(Debug, Clone, Copy, Default)]
pub struct SampledCall<'c> {
    /// The minute in which it ended.
    pub minute: u32,
    /// How many calls it represents.
    pub weight: u32,
    /// The service.
    pub service: NameId,
    /// The path, if no route took the call.
    pub unmatched_path: Option<&'c str>,
    /// The client's network.
    pub network: &'c str,
    /// The family of the user agent.
    pub agent: &'c str,
}
