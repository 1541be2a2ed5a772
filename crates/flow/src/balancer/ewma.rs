//! The moving average of a target's latency.

/// After so many milliseconds an old average weighs 1/e of what it did: 10 seconds, as is usual for gateways.
pub const EWMA_DECAY_MS: u64 = 10_000;

/// What a failed try counts as, in microseconds, if it did not take longer: a target that refuses connections at once
/// must not look like a fast one, or like one that nothing is known of.
pub const EWMA_FAILED_US: f64 = 1_000_000.0;

/// The peak-sensitive moving average after one more sample: a sample above the average replaces it at once, one below
/// pulls it down the more, the longer ago the last sample was.
///
/// `previous_us` is 0 if there is none yet. Latencies are in microseconds; negative ones and NaN are ignored. A sample
/// of 0 gives the remainder of an average that nothing renewed for `since_last_ms`.
#[must_use]
pub fn ewma_update(previous_us: f64, sample_us: f64, since_last_ms: u64, decay_ms: u64) -> f64 {
    let previous_us = if previous_us > 0.0 { previous_us } else { 0.0 };
    if !(sample_us >= 0.0 && sample_us.is_finite()) {
        return previous_us;
    }
    if sample_us >= previous_us || decay_ms == 0 {
        return sample_us;
    }
    let kept = (-(since_last_ms as f64) / decay_ms as f64).exp();
    sample_us + (previous_us - sample_us) * kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_count_at_once_and_fade() {
        let e = std::f64::consts::E;
        let cases = [
            ("first sample", 0.0, 500.0, 0, 500.0),
            ("a peak replaces", 100.0, 900.0, 0, 900.0),
            ("a low one right away moves nothing", 900.0, 100.0, 0, 900.0),
            (
                "after the decay time 1/e is left",
                900.0,
                100.0,
                EWMA_DECAY_MS,
                100.0 + 800.0 / e,
            ),
            (
                "long after it is forgotten",
                900.0,
                100.0,
                1_000 * EWMA_DECAY_MS,
                100.0,
            ),
            ("silence alone", 900.0, 0.0, EWMA_DECAY_MS, 900.0 / e),
            ("no number", 900.0, f64::NAN, EWMA_DECAY_MS, 900.0),
            ("no time", 900.0, f64::INFINITY, EWMA_DECAY_MS, 900.0),
            ("negative", 900.0, -1.0, EWMA_DECAY_MS, 900.0),
            ("broken average", f64::NAN, 100.0, 0, 100.0),
        ];
        for (name, previous, sample, since, expected) in cases {
            let got = ewma_update(previous, sample, since, EWMA_DECAY_MS);
            assert!(
                (got - expected).abs() < 1e-6,
                "{name}: {got} instead of {expected}"
            );
        }
        assert_eq!(
            ewma_update(900.0, 100.0, 0, 0),
            100.0,
            "without decay there is no memory"
        );
    }
}
