//! Sampling: which calls are exported. Decided once, when a call begins.

use super::propagation::Extracted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which calls are exported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sampling {
    /// The share of traces that are exported, 0 to 1. It is found by the trace's id, so that all gateways that see a
    /// trace decide alike.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub ratio: f64,
    /// How a caller's sampling decision counts.
    pub parent: Parent,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            ratio: 1.0,
            parent: Parent::Follow,
        }
    }
}

/// How the decision of a caller that is traced itself counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Parent {
    /// It holds.
    #[default]
    Follow,
    /// It holds if it is not to sample; otherwise the ratio decides.
    Limit,
    /// Nothing: the ratio decides.
    Ignore,
}

/// A sampler, ready for use.
#[derive(Debug)]
pub struct Sampler {
    /// Of 2^63 traces, as many are exported.
    share: u64,
    parent: Parent,
}

/// The lower 63 bits of an id decide.
const WHOLE: u64 = 1 << 63;

impl Sampling {
    /// Whether the ratio is one.
    pub fn is_good(&self) -> bool {
        (0.0..=1.0).contains(&self.ratio)
    }

    /// The sampler.
    pub fn sampler(&self) -> Sampler {
        Sampler {
            // Exact for 0 and for 1.
            share: (self.ratio * WHOLE as f64) as u64,
            parent: self.parent,
        }
    }
}

impl Sampler {
    /// Whether a call of this trace is exported.
    pub fn samples(&self, extracted: &Extracted, trace_id: u128) -> bool {
        match (self.parent, extracted.sampled) {
            (Parent::Follow, Some(sampled)) => sampled,
            (Parent::Limit, Some(false)) => false,
            _ => trace_id as u64 & (WHOLE - 1) < self.share,
        }
    }
}
