//! Asks the responders of certificates (OCSP) what they say of them, ahead of any handshake. What an answer
//! is worth, and when the next question is due, is the staple's to say.

use crate::certificates::now;
use crate::status::Status;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use weir_control::http::{ClientRequest, Method};
use weir_snapshot::{MAX_RESPONSE, Staple};
use weir_telemetry::ocsp::{OcspResult, OcspStats};

/// How often it is looked what is due.
const LOOK: Duration = Duration::from_secs(1);
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Questions that are under way at most.
const MAX_QUESTIONS: usize = 16;

/// Asks until the process ends.
pub async fn keep_fresh(status: Arc<Status>) {
    let stats = Arc::new(OcspStats::default());
    status.metrics().observe_ocsp(Arc::clone(&stats));
    let room = Arc::new(Semaphore::new(MAX_QUESTIONS));
    loop {
        if let Some(gateway) = status.gateway() {
            for staple in gateway.published().snapshot.tls.staples() {
                if staple.is_due(now()) {
                    tokio::spawn(ask(Arc::clone(staple), Arc::clone(&room), Arc::clone(&stats)));
                }
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn ask(staple: Arc<Staple>, room: Arc<Semaphore>, stats: Arc<OcspStats>) {
    let Ok(_room) = room.acquire().await else { return };
    let call = ClientRequest {
        method: Method::POST,
        body: staple.request.clone(),
        timeout: TIMEOUT,
        max_body: MAX_RESPONSE,
        ..ClientRequest::get(staple.url.clone())
    };
    let call = call.header("content-type", "application/ocsp-request");
    let (result, why) = match call.make().await {
        Ok((code, body)) if code.is_success() => match staple.take(&body, now()) {
            Ok(()) => return stats.add(OcspResult::Taken),
            Err(why) => (OcspResult::Unusable, why.to_string()),
        },
        Ok((code, _)) => {
            staple.fail(now());
            (
                OcspResult::Failed,
                format!("it has answered with status {}", code.as_u16()),
            )
        }
        Err(error) => {
            staple.fail(now());
            (OcspResult::Failed, error.to_string())
        }
    };
    stats.add(result);
    tracing::warn!(
        responder = staple.url,
        why,
        has_answer = staple.is_stapled(),
        "the OCSP responder of a certificate has given no answer that can be stapled; it is asked again"
    );
}
