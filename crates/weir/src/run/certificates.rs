//! The work for the certificates that are served: those near or past their end are logged, when one is first served
//! and every day from then on; the responders of those that are stapled are asked.

use crate::certificates::{now, warning};
use crate::status::Status;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use weir_control::outbox::WebhookAddressPolicy;
use weir_control::staples;
use weir_telemetry::ocsp::OcspStats;

/// How often it is looked.
const LOOK: Duration = Duration::from_secs(10);
/// Seconds before the same warning is logged again.
const DAILY: i64 = 86_400;

/// A certificate that was logged: its first name and its end.
type LoggedCertificate = (String, i64);

/// Looks until the process ends.
pub async fn watch(status: Arc<Status>) {
    let mut warned: HashMap<LoggedCertificate, i64> = HashMap::new();
    loop {
        if let Some(gateway) = status.gateway() {
            for text in due_warnings(gateway.published().snapshot.tls.ends(), &mut warned, now()) {
                tracing::warn!("{text}");
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Has responders asked where `reach` permits it, until the process ends. To be called inside of a tokio runtime.
pub fn spawn_ocsp_refresh(status: &Arc<Status>, reach: WebhookAddressPolicy) {
    let stats = Arc::new(OcspStats::default());
    status.metrics().observe_ocsp(Arc::clone(&stats));
    let status = Arc::clone(status);
    let served = move || {
        let gateway = status.gateway();
        gateway.map_or_else(Vec::new, |it| it.published().snapshot.tls.staples().to_vec())
    };
    tokio::spawn(staples::refresh_staples(served, stats, reach));
}

/// The certificates to warn about now. Forgets those that are gone.
fn due_warnings(
    ends: &[weir_snapshot::Expiry],
    warned: &mut HashMap<LoggedCertificate, i64>,
    now: i64,
) -> Vec<String> {
    let before = std::mem::take(warned);
    let mut texts = Vec::new();
    for end in ends {
        let Some(text) = warning(end, now) else { continue };
        let key = (end.names.first().cloned().unwrap_or_default(), end.validity.until);
        let at = match before.get(&key) {
            Some(at) if now - at < DAILY => *at,
            _ => {
                texts.push(text);
                now
            }
        };
        warned.insert(key, at);
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_snapshot::{Expiry, Validity};

    #[test]
    fn the_same_is_logged_once_a_day() {
        let end = |until: i64| Expiry {
            certificate: 0,
            pair: 0,
            names: vec!["a.test".to_owned()],
            validity: Validity { from: 0, until },
        };
        let (over, fresh) = ([end(1_000)], [end(i64::MAX / 2)]);
        let mut warned = HashMap::new();
        for (ends, now, count) in [
            (&fresh, 2_000, 0),
            (&over, 2_000, 1),
            (&over, 2_000 + DAILY - 1, 0),
            (&over, 2_000 + DAILY, 1),
            (&fresh, 2_000 + DAILY, 0),
            (&over, 2_000 + DAILY, 1),
        ] {
            assert_eq!(due_warnings(ends, &mut warned, now).len(), count, "{now}");
        }
    }
}
