//! Handing lines of the request log over to the control plane that a gateway follows, so that all calls are found in one
//! place. They are for people to look at: what the control plane does not take in time is dropped, the oldest first.
//!
//! **What it is not**: counts are delivered exactly once, in [`super::delivery`].

use super::delivery::{DeliveryResult, post};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use weir_analytics::calls::{CallLine, MAX_DELIVERED};

/// Lines that wait at most.
const MAX_WAITING: usize = 10_000;
/// How long lines are gathered before they are sent.
const GATHER: Duration = Duration::from_millis(500);
/// The first pause after a failure, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];

/// Lines on their way to a control plane.
pub struct CallDelivery {
    url: String,
    token: Option<String>,
    waiting: Mutex<VecDeque<Arc<CallLine>>>,
    came: Notify,
    /// One delivery at a time: the last one waits for that which is on its way.
    turn: tokio::sync::Mutex<()>,
}

impl CallDelivery {
    /// Delivers to a control plane. To be called inside of a tokio runtime.
    pub fn start(control: &str, token: Option<String>, gateway: &str) -> Arc<Self> {
        let delivery = Arc::new(Self {
            url: format!(
                "{}/api/v1/gateways/{gateway}/calls",
                control.trim_end_matches('/')
            ),
            token,
            waiting: Mutex::default(),
            came: Notify::new(),
            turn: tokio::sync::Mutex::default(),
        });
        tokio::spawn(Arc::clone(&delivery).run());
        delivery
    }

    /// Takes lines. Never waits.
    pub fn add(&self, lines: impl IntoIterator<Item = CallLine>) {
        {
            let mut waiting = self.waiting();
            waiting.extend(lines.into_iter().map(Arc::new));
            let beyond = waiting.len().saturating_sub(MAX_WAITING);
            waiting.drain(..beyond);
        }
        self.came.notify_one();
    }

    /// Delivers what waits, for as long as `timeout`.
    pub async fn finish(&self, timeout: Duration) {
        let _late = tokio::time::timeout(timeout, self.deliver()).await;
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Arc<CallLine>>> {
        // Every change leaves it whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(self: Arc<Self>) {
        let mut pause = PAUSES[0];
        loop {
            self.came.notified().await;
            tokio::time::sleep(GATHER).await;
            while let Err(error) = self.deliver().await {
                // Once for each time that it is away.
                match pause == PAUSES[0] {
                    true => tracing::warn!(
                        error,
                        "lines of the request log cannot be delivered to the control plane; retrying"
                    ),
                    false => tracing::debug!(
                        error,
                        "lines of the request log cannot be delivered to the control plane"
                    ),
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSES[1]);
            }
            pause = PAUSES[0];
        }
    }

    /// Delivers until nothing waits. What is not delivered waits again, as far as there is room.
    async fn deliver(&self) -> Result<(), String> {
        let _turn = self.turn.lock().await;
        loop {
            let lines: Vec<Arc<CallLine>> = {
                let mut waiting = self.waiting();
                let count = waiting.len().min(MAX_DELIVERED);
                waiting.drain(..count).collect()
            };
            if lines.is_empty() {
                return Ok(());
            }
            let body = serde_json::to_vec(&json!({ "calls": lines })).map_err(|error| error.to_string())?;
            match post(&self.url, self.token.as_deref(), ("application/json", body)).await {
                Ok(DeliveryResult::Over) => {}
                Ok(DeliveryResult::Refused(detail)) => {
                    tracing::warn!(
                        detail,
                        "the control plane refused lines of the request log; they are dropped"
                    );
                }
                Err(error) => {
                    let mut waiting = self.waiting();
                    let room = MAX_WAITING.saturating_sub(waiting.len());
                    lines
                        .into_iter()
                        .rev()
                        .take(room)
                        .for_each(|line| waiting.push_front(line));
                    return Err(error);
                }
            }
        }
    }
}
