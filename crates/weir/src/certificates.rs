//! Certificates near or past their end: a certificate that has expired is still served, and no operator should find out
//! by his clients.

use crate::clock::unix_seconds;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use weir_model::{Diagnostic, DocPath};
use weir_snapshot::{Expiry, ServerTls};

const DAY: i64 = 86_400;
/// How long before its end a certificate is worth a word, in seconds. For one that never lasts long: when a quarter of
/// its life is left.
const SOON: i64 = 30 * DAY;
/// The most certificates that are listed singly.
const MAX_LISTED_CERTIFICATES: usize = 1_000;

/// The state of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateStatus {
    Good,
    /// It begins later.
    Early,
    /// Its end is near.
    Ending,
    /// It is over.
    Expired,
}

impl CertificateStatus {
    fn of(end: &Expiry, now: i64) -> Self {
        let life = end.validity.until.saturating_sub(end.validity.from);
        match end.validity.left(now) {
            left if left < 0 => Self::Expired,
            left if left < SOON.min(life / 4) => Self::Ending,
            _ if end.validity.from > now => Self::Early,
            _ => Self::Good,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Early => "early",
            Self::Ending => "ending",
            Self::Expired => "expired",
        }
    }
}

/// The warning about an end; `None`: nothing.
pub fn warning(end: &Expiry, now: i64) -> Option<String> {
    let name = end.names.first().map_or("", String::as_str);
    let days = |seconds: i64| match seconds / DAY {
        0 => "less than a day".to_owned(),
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    };
    let left = end.validity.left(now);
    match CertificateStatus::of(end, now) {
        CertificateStatus::Good => None,
        CertificateStatus::Early => Some(format!(
            "the certificate for '{name}' is good only in {}: clients refuse it until then",
            days(end.validity.from - now)
        )),
        CertificateStatus::Ending => Some(format!("the certificate for '{name}' ends in {}", days(left))),
        CertificateStatus::Expired => Some(format!(
            "the certificate for '{name}' ended {} ago: it is served, and clients refuse it",
            days(-left)
        )),
    }
}

/// The warnings about certificates, at their places in the model.
pub fn warnings(tls: &ServerTls) -> Vec<Diagnostic> {
    let now = now();
    let messages = tls.ends().iter().filter_map(|end| {
        let place = DocPath::root().field("certificates").index(end.certificate);
        let place = place.field("key_pairs").index(end.pair).field("certificate");
        Some(Diagnostic::warning(place, warning(end, now)?))
    });
    messages.collect()
}

/// For `/status`: those that end first.
pub fn to_json(tls: &ServerTls) -> Value {
    let now = now();
    let one = |end: &&Expiry| {
        json!({
            "names": end.names,
            "not_before": end.validity.from,
            "not_after": end.validity.until,
            "days_left": end.validity.left(now).div_euclid(DAY),
            "state": CertificateStatus::of(end, now).as_str(),
        })
    };
    first(tls).iter().map(one).collect()
}

/// For the metrics: seconds until the end, by the first name.
pub fn seconds_left(tls: &ServerTls) -> Vec<(String, i64)> {
    let now = now();
    let mut by_name: BTreeMap<&str, i64> = BTreeMap::new();
    for end in first(tls) {
        let name = end.names.first().map_or("", String::as_str);
        by_name.entry(name).or_insert_with(|| end.validity.left(now));
    }
    by_name
        .into_iter()
        .map(|(name, left)| (name.to_owned(), left))
        .collect()
}

fn first(tls: &ServerTls) -> Vec<&Expiry> {
    let mut ends: Vec<&Expiry> = tls.ends().iter().collect();
    ends.sort_by_key(|end| end.validity.until);
    ends.truncate(MAX_LISTED_CERTIFICATES);
    ends
}

/// Seconds since the Unix epoch.
pub fn now() -> i64 {
    i64::try_from(unix_seconds()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_snapshot::Validity;

    #[test]
    fn ends_are_reported_when_they_are_near() {
        let end = |from: i64, until: i64| Expiry {
            certificate: 0,
            pair: 0,
            names: vec!["a.test".to_owned()],
            validity: Validity { from, until },
        };
        let now = 1_000 * DAY;
        for (from, until, status, word) in [
            (-300, 65, CertificateStatus::Good, None),
            (-300, 29, CertificateStatus::Ending, Some("ends in 29 days")),
            (-60, 29, CertificateStatus::Good, None),
            (-60, 19, CertificateStatus::Ending, Some("ends in 19 days")),
            (-5, 1, CertificateStatus::Ending, Some("ends in 1 day")),
            (-5, 0, CertificateStatus::Ending, Some("less than a day")),
            (-5, -2, CertificateStatus::Expired, Some("ended 2 days ago")),
            (2, 100, CertificateStatus::Early, Some("good only in 2 days")),
        ] {
            let end = end(now + from * DAY, now + until * DAY);
            assert_eq!(CertificateStatus::of(&end, now), status, "{from} {until}");
            let message = warning(&end, now);
            match word {
                None => assert_eq!(message, None),
                Some(word) => assert!(
                    message.as_ref().is_some_and(|it| it.contains(word)),
                    "{message:?}"
                ),
            }
        }
    }
}
