//! The request log: single calls, sampled, each with the number of calls that it stands for.
//!
//! The latest calls are in a ring in memory, all of them in files of an hour each ([`files`]). Both are bounded. There
//! are no queries and bodies in it, and of headers only those that the operator names.

pub mod block;
pub mod files;
pub mod search;

pub use files::{CallLog, CallLogOptions};
pub use search::{CallCursor, CallOwner, CallSearchResponse, MAX_FOUND, Search};

use crate::uniques;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Lines that a gateway delivers to a control plane at once, at most.
pub const MAX_DELIVERED: usize = 500;
/// Bytes of the texts of a delivered line at most.
const MAX_TEXTS: usize = 4_096;

/// A call of the request log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CallLine {
    /// When it ended, in milliseconds since the Unix epoch.
    pub time: u64,
    /// How many calls it represents.
    pub weight: u32,
    /// The status of the answer.
    pub status: u16,
    /// The whole time, in microseconds.
    pub total_us: u32,
    /// The upstream's part; 0: none was asked.
    pub upstream_us: u32,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Upstream calls beyond the first.
    pub retries: u8,
    /// Its id, as in `X-Request-Id` and the access log; empty if no plugin makes one.
    pub request_id: Arc<str>,
    /// The gateway.
    pub gateway: Arc<str>,
    /// The environment.
    pub environment: Arc<str>,
    /// The service.
    pub service: Arc<str>,
    /// The route.
    pub route: Arc<str>,
    /// The consumer.
    pub consumer: Arc<str>,
    /// The upstream.
    pub upstream: Arc<str>,
    /// The target that was asked last.
    pub target: Arc<str>,
    /// Why the gateway refused it.
    pub refusal: Arc<str>,
    /// The plugin that refused it.
    pub plugin: Arc<str>,
    /// The method.
    pub method: Arc<str>,
    /// The protocol.
    pub protocol: Arc<str>,
    /// The requested host.
    pub host: Arc<str>,
    /// The path, without the query; long ones are cut.
    pub path: Arc<str>,
    /// The client's network, or a pseudonym for its address.
    pub network: Arc<str>,
    /// The family of the user agent.
    pub agent: Arc<str>,
    /// Request headers that are kept, a line each: `x-tenant: acme`.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub headers: Arc<str>,
}

impl CallLine {
    /// A fingerprint of the line: lines of a millisecond are in its order, wherever they are kept.
    pub(crate) fn hash(&self) -> u64 {
        let mut bytes = Vec::with_capacity(256);
        for number in [
            u64::from(self.weight),
            u64::from(self.status),
            u64::from(self.total_us),
            u64::from(self.upstream_us),
            self.bytes_in,
            self.bytes_out,
            u64::from(self.retries),
        ] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for text in self.texts().into_iter().chain([&self.headers]) {
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(0);
        }
        uniques::hash(&bytes)
    }
    /// Whether its texts are as short as those that gateways write.
    pub fn is_short(&self) -> bool {
        let texts = self.texts().into_iter().chain([&self.headers]);
        texts.map(|text| text.len()).sum::<usize>() <= MAX_TEXTS
    }

    /// Its texts but the headers, in an order that never changes.
    pub(crate) fn texts(&self) -> [&Arc<str>; 16] {
        [
            &self.request_id,
            &self.gateway,
            &self.environment,
            &self.service,
            &self.route,
            &self.consumer,
            &self.upstream,
            &self.target,
            &self.refusal,
            &self.plugin,
            &self.method,
            &self.protocol,
            &self.host,
            &self.path,
            &self.network,
            &self.agent,
        ]
    }

    pub(crate) fn texts_mut(&mut self) -> [&mut Arc<str>; 16] {
        [
            &mut self.request_id,
            &mut self.gateway,
            &mut self.environment,
            &mut self.service,
            &mut self.route,
            &mut self.consumer,
            &mut self.upstream,
            &mut self.target,
            &mut self.refusal,
            &mut self.plugin,
            &mut self.method,
            &mut self.protocol,
            &mut self.host,
            &mut self.path,
            &mut self.network,
            &mut self.agent,
        ]
    }
}
