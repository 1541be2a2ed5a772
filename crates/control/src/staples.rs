//! Asks the responders of certificates (OCSP) what they say of them, ahead of any handshake. What an answer
//! is worth, and when the next question is due, is the staple's to say.

use crate::http::ClientRequest;
use crate::webhook_addresses::WebhookAddressPolicy;
use hyper::Method;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::Semaphore;
use weir_model::unix_time;
use weir_snapshot::{MAX_RESPONSE, Staple};
use weir_telemetry::ocsp::{OcspResult, OcspStats};

/// How often it is looked what is due.
const LOOK: Duration = Duration::from_secs(1);
/// The same while no certificate wants its responder asked: an idle gateway sleeps.
const IDLE_LOOK: Duration = Duration::from_secs(5);
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Questions that are under way at most.
const MAX_QUESTIONS: usize = 16;

/// Asks until the process ends. `served` gives the staples of what is served now. Certificates come from people who may be no
/// operators, and name their responders: these are only asked where `reach` permits it.
pub async fn refresh_staples(
    served: impl Fn() -> Vec<Arc<Staple>>,
    stats: Arc<OcspStats>,
    reach: WebhookAddressPolicy,
) {
    let reach = Arc::new(reach);
    let permits = Arc::new(Semaphore::new(MAX_QUESTIONS));
    loop {
        let staples = served();
        let pause = if staples.is_empty() { IDLE_LOOK } else { LOOK };
        for staple in staples {
            if staple.is_due(now()) {
                let call = question(&staple, Arc::clone(&reach));
                tokio::spawn(ask(call, staple, Arc::clone(&permits), Arc::clone(&stats)));
            }
        }
        tokio::time::sleep(pause).await;
    }
}

/// Seconds since the Unix epoch.
fn now() -> i64 {
    i64::try_from(unix_time::seconds(SystemTime::now())).unwrap_or(i64::MAX)
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

async fn ask(call: ClientRequest, staple: Arc<Staple>, permits: Arc<Semaphore>, stats: Arc<OcspStats>) {
    let Ok(_permit) = permits.acquire().await else {
        return;
    };
    let (result, reason) = match call.make().await {
        Ok((code, body)) if code.is_success() => match staple.take(&body, now()) {
            Ok(()) => return stats.add(OcspResult::Taken),
            Err(reason) => (OcspResult::Unusable, reason.to_string()),
        },
        // Who uploads a certificate chooses whom the gateway asks: they learn nothing of what another server answers.
        Ok(_) => {
            staple.fail(now());
            (OcspResult::Failed, "its answer is not a success".to_owned())
        }
        Err(error) => {
            staple.fail(now());
            (OcspResult::Failed, error.to_string())
        }
    };
    stats.add(result);
    tracing::warn!(
        responder = staple.url,
        reason,
        has_answer = staple.is_stapled(),
        "the OCSP responder of a certificate gave no answer that can be stapled; retrying"
    );
}
