//! When a certificate is to be ordered: at once if there is none, before its end if there is one, and some time
//! after an attempt that failed. **What it is not**: it has no clock.

use super::documents::{Attempt, IssuedCertificate, desired};
use std::hash::{DefaultHasher, Hash, Hasher};
use weir_model::Acme;

const DAY: i64 = 86_400;
/// From the first attempt that failed to the next one, in seconds. Each further one takes three times as long: an
/// authority may refuse all of a name's attempts once five have failed within an hour.
const FIRST_PAUSE: i64 = 120;
/// The longest pause.
const LONGEST_PAUSE: i64 = 12 * 3_600;

/// When the entry's certificate is to be got, in seconds since the Unix epoch; long ago: at once.
pub fn due(entry: &Acme, issued: Option<&IssuedCertificate>, attempt: Option<&Attempt>) -> i64 {
    let wanted = issued
        .filter(|issued| issued.fits(entry))
        .map_or(0, |issued| renewal(entry, issued));
    let allowed = attempt
        .filter(|attempt| attempt.desired == desired(entry))
        .map_or(0, |attempt| attempt.next);
    wanted.max(allowed)
}

/// When a certificate is to be renewed. Certificates that were signed together are renewed one after the other; all
/// who look at one come to the same time.
fn renewal(entry: &Acme, issued: &IssuedCertificate) -> i64 {
    let life = issued.until.saturating_sub(issued.from).max(1);
    let before = entry
        .renew_before_days
        .map_or(life / 3, |days| i64::from(days).saturating_mul(DAY))
        // Else a short life would be renewed without end.
        .min(life / 2);
    let spread = spread(&issued.certificate, before / 10);
    issued.until.saturating_sub(before).saturating_sub(spread)
}

/// The attempt that failed at `now`, after `before`.
pub fn failed(entry: &Acme, before: Option<&Attempt>, error: String, now: i64) -> Attempt {
    let desired = desired(entry);
    let failures = before
        .filter(|before| before.desired == desired)
        .map_or(0, |before| before.failures)
        .saturating_add(1);
    let pause = (1..failures).fold(FIRST_PAUSE, |pause, _| (pause * 3).min(LONGEST_PAUSE));
    let spread = spread(&format!("{} {now}", entry.name), pause / 4);
    Attempt {
        desired,
        failures,
        at: now,
        next: now + pause + spread,
        error,
    }
}

/// A number from 0 up to `limit` that depends on the text alone.
fn spread(text: &str, limit: i64) -> i64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let number = hasher.finish() % (limit.max(0) as u64 + 1);
    number as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::AcmeKey;

    fn entry(days: Option<u32>) -> Acme {
        Acme {
            renew_before_days: days,
            ..Acme::new("a".to_owned(), vec!["a.test".to_owned(), "B.test".to_owned()])
        }
    }

    fn issued(life: i64) -> IssuedCertificate {
        IssuedCertificate {
            directory: entry(None).directory,
            hosts: vec!["b.test".to_owned(), "a.test".to_owned()],
            kind: AcmeKey::default(),
            certificate: "x".to_owned(),
            key: String::new(),
            from: 1_000,
            until: 1_000 + life,
        }
    }

    #[test]
    fn certificates_are_renewed_before_their_end() {
        for (life, days, left) in [
            (90 * DAY, None, 30 * DAY),
            (6 * DAY, None, 2 * DAY),
            (90 * DAY, Some(14), 14 * DAY),
            (6 * DAY, Some(14), 3 * DAY),
            (9, None, 3),
            (0, None, 0),
        ] {
            let issued = issued(life);
            let due = due(&entry(days), Some(&issued), None);
            let found = issued.until - due;
            assert!(
                (left..=left + left / 10).contains(&found),
                "{life} {days:?}: {found}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_got_at_once() {
        let entry = entry(None);
        assert_eq!(due(&entry, None, None), 0);
        let others: [fn(&mut IssuedCertificate); 3] = [
            |it| it.hosts.truncate(1),
            |it| it.directory.push('x'),
            |it| it.kind = AcmeKey::Rsa2048,
        ];
        for other in others {
            let mut issued = issued(90 * DAY);
            other(&mut issued);
            assert_eq!(due(&entry, Some(&issued), None), 0);
        }
    }

    #[test]
    fn attempts_that_fail_become_rarer() {
        let entry = entry(None);
        let mut attempt: Option<Attempt> = None;
        let mut pauses = Vec::new();
        let mut now = 1_000_000;
        for _ in 0..9 {
            let next = failed(&entry, attempt.as_ref(), "no".to_owned(), now);
            pauses.push(next.next - now);
            assert_eq!(due(&entry, None, Some(&next)), next.next);
            now = next.next;
            attempt = Some(next);
        }
        for (number, least) in [(0, 120), (1, 360), (2, 1_080), (8, LONGEST_PAUSE)] {
            assert!(
                (least..=least + least / 4).contains(&pauses[number]),
                "{pauses:?}"
            );
        }
        let mut other = entry.clone();
        other.hosts.pop();
        assert_eq!(
            due(&other, None, attempt.as_ref()),
            0,
            "another wish is tried at once"
        );
        assert_eq!(failed(&other, attempt.as_ref(), String::new(), now).failures, 1);
    }
}
