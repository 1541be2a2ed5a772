//! Asks the responders of certificates (OCSP) what they say of them, ahead of any handshake. What an answer
//! is worth, and when the next question is due, is the staple's to say.

use crate::certificates::now;
use crate::status::Status;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use weir_control::http::{ClientRequest, Method};
use weir_control::outbox::WebhookAddressPolicy;
use weir_snapshot::{MAX_RESPONSE, Staple};
use weir_telemetry::ocsp::{OcspResult, OcspStats};

/// How often it is looked what is due.
const LOOK: Duration = Duration::from_secs(1);
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Questions that are under way at most.
const MAX_QUESTIONS: usize = 16;

/// Asks until the process ends. Certificates come from people who may be no operators, and name their responders: these are
/// only asked where `reach` permits it.
pub async fn keep_fresh(status: Arc<Status>, reach: WebhookAddressPolicy) {
    let reach = Arc::new(reach);
    let stats = Arc::new(OcspStats::default());
    status.metrics().observe_ocsp(Arc::clone(&stats));
    let room = Arc::new(Semaphore::new(MAX_QUESTIONS));
    loop {
        if let Some(gateway) = status.gateway() {
            for staple in gateway.published().snapshot.tls.staples() {
                if staple.is_due(now()) {
                    let call = question(staple, Arc::clone(&reach));
                    tokio::spawn(ask(
                        call,
                        Arc::clone(staple),
                        Arc::clone(&room),
                        Arc::clone(&stats),
                    ));
                }
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn question(staple: &Staple, reach: Arc<WebhookAddressPolicy>) -> ClientRequest {
    let call = ClientRequest {
        method: Method::POST,
        body: staple.request.clone(),
        timeout: TIMEOUT,
        max_body: MAX_RESPONSE,
        reach: Some(reach),
        ..ClientRequest::get(staple.url.clone())
    };
    call.header("content-type", "application/ocsp-request")
}

async fn ask(call: ClientRequest, staple: Arc<Staple>, room: Arc<Semaphore>, stats: Arc<OcspStats>) {
    let Ok(_room) = room.acquire().await else { return };
    let (result, why) = match call.make().await {
        Ok((code, body)) if code.is_success() => match staple.take(&body, now()) {
            Ok(()) => return stats.add(OcspResult::Taken),
            Err(why) => (OcspResult::Unusable, why.to_string()),
        },
        // Who uploads a certificate chooses whom the gateway asks: they learn nothing of what another server answers.
        Ok(_) => {
            staple.fail(now());
            (OcspResult::Failed, "its answer is no success".to_owned())
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
