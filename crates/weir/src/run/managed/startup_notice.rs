//! What is said while a store or a control plane is waited for at the start, so that no one looks for another reason.
//! What it is not: the attempts to reach it.

use std::time::{Duration, Instant};
use weir_control::follow::{Contact, StateHandle};

/// How long a place may take before anything is said. Most answer at once.
const FIRST_TIMEOUT: Duration = Duration::from_millis(500);
/// How long until it is said again; each time doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Says that a place is waited for, until what it holds is served.
pub async fn report_wait(place: String, followed: StateHandle) {
    let begun = Instant::now();
    if tokio::time::timeout(FIRST_TIMEOUT, followed.first_result())
        .await
        .is_ok()
    {
        return;
    }
    tracing::warn!(
        "waiting for {place}, which has not answered yet: its configuration is not served until then"
    );
    let mut pause = FIRST_PAUSE;
    while tokio::time::timeout(pause, followed.first_result())
        .await
        .is_err()
    {
        let seconds = begun.elapsed().as_secs();
        match &followed.state().contact {
            Contact::Unreachable { reason, .. } => {
                tracing::warn!("still waiting for {place}, for {seconds} s now: {reason}");
            }
            Contact::Starting => {
                tracing::warn!("still waiting for {place}, for {seconds} s now: no answer yet");
            }
            Contact::Following => tracing::warn!("{place} has answered; reading its configuration"),
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    tracing::info!("{place} has answered, after {} s", begun.elapsed().as_secs());
}
