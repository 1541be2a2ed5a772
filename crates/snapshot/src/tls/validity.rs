//! From when to when a certificate is good. **What it is not**: it does not judge; the caller brings the time.

use weir_model::x509;

/// From when to when a certificate is good, in seconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The first second.
    pub from: i64,
    /// The last second.
    pub until: i64,
}

impl Validity {
    /// Seconds that are left at `now` (in seconds since the Unix epoch); negative once it is over.
    pub fn left(&self, now: i64) -> i64 {
        self.until.saturating_sub(now)
    }
}

/// The validity of a certificate in DER; `None` if it is invalid.
pub fn validity(certificate: &[u8]) -> Option<Validity> {
    let read = x509::Certificate::of_der(certificate)?;
    Some(Validity {
        from: read.not_before,
        until: read.not_after,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn self_signed_der(years: [i32; 2]) -> Vec<u8> {
        let mut params = CertificateParams::new(["a.test".to_owned()]).expect("a name");
        params.not_before = date_time_ymd(years[0], 2, 28);
        params.not_after = date_time_ymd(years[1], 3, 1);
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("signed").der().to_vec()
    }

    #[test]
    fn both_ends_are_read_whatever_their_century() {
        for (years, from, until) in [
            ([1970, 1971], 5_011_200, 36_633_600),
            ([1999, 2000], 920_160_000, 951_868_800),
            ([2024, 2025], 1_709_078_400, 1_740_787_200),
            ([2049, 2050], 2_498_083_200, 2_529_705_600),
            ([2100, 2400], 4_107_456_000, 13_574_649_600),
        ] {
            let found = validity(&self_signed_der(years)).expect("a validity");
            assert_eq!((found.from, found.until), (from, until), "{years:?}");
        }
        let validity = Validity { from: 0, until: 10 };
        assert_eq!([validity.left(4), validity.left(12)], [6, -2]);
    }

    #[test]
    fn what_is_no_certificate_has_none() {
        let good = self_signed_der([2024, 2025]);
        for end in 0..good.len() {
            assert_eq!(validity(&good[..end]), None, "{end}");
        }
        for at in 0..good.len() {
            for flip in [0x01, 0x40, 0x80, 0xff] {
                let mut broken = good.clone();
                broken[at] ^= flip;
                // Whatever comes out: it comes.
                let _found = validity(&broken);
            }
        }
    }
}
