//! Refusals of these plugins: the message for callers, and the one for the log.

use weir_plugin::{Outcome, Refusal, RefusalKind};

/// Refuses a call with this status and these words. The log says what is wrong.
pub fn refuse(plugin: &'static str, status: u16, message: impl Into<String>, fault: &str) -> Outcome {
    tracing::info!(plugin, "a call is refused: {fault}");
    let mut refusal = Refusal::with_status(RefusalKind::Unacceptable { plugin }, status);
    refusal.message = Some(message.into());
    Outcome::Refuse(Box::new(refusal))
}
