//! How it stands with a secret, for those who ask: when it was read, and why it cannot be had. The value itself is not
//! part of it.

use crate::webhook_addresses::WebhookAddressPolicy;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::SystemTime;
use weir_dialect::SecretTarget;

/// Whether a secret is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SecretState {
    /// The request failed, and no earlier value is known. Documents that refer to it are not served.
    Missing,
    /// The last request failed; the previous value is still used.
    #[serde(rename = "kept")]
    Stale,
    /// Not requested yet.
    Waiting,
    /// It is known.
    Resolved,
}

/// The state of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Whether it is known.
    pub state: SecretState,
    /// Why it could not be had the last time.
    pub reason: Option<String>,
    /// When it was last had; `None`: never, or it stands in the environment, which is read with every compile.
    pub read: Option<SystemTime>,
    /// When it was last another value than before.
    pub changed: Option<SystemTime>,
    /// When it was last asked for in vain.
    pub failed: Option<SystemTime>,
}

impl Reading {
    /// A secret that stands for itself: it is there, or it is not.
    pub fn of(found: Result<(), String>) -> Self {
        let reason = found.err();
        Self {
            state: match reason {
                None => SecretState::Resolved,
                Some(_) => SecretState::Missing,
            },
            reason,
            read: None,
            changed: None,
            failed: None,
        }
    }
}

/// Knows the state of secrets.
#[async_trait]
pub trait SecretReadings: Send + Sync {
    /// The state of one, if it was requested.
    fn reading(&self, target: &SecretTarget) -> Reading;

    /// Asks for one now, and says what came of it. What is served takes it over a moment later; for what nothing served
    /// refers to, only the addresses of `reach` are called.
    async fn read_now(&self, target: &SecretTarget, reach: &Arc<WebhookAddressPolicy>) -> Reading;
}
