//! Circuit breakers: after failures of what they protect, calls are not made for a while, longer each time.
//!
//! Every `failures`-th failure opens the breaker: for 2 seconds after the first such round, 4 after the second, 8, 16,
//! … up to a bound. Enough successes close it and make everything forgotten. Time is counted in whole seconds: a
//! breaker that opens for 2 seconds lets calls pass again in the third one after the second in which it opened.

mod store;

pub use store::{BreakerStore, Breakers};

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerRules {
    /// Failures of a round; at least 1.
    pub failures: u32,
    /// Successes that close the breaker for good; at least 1.
    pub successes: u32,
    /// Seconds that it is open at most.
    pub max_open_s: u64,
}

/// What is remembered of what a breaker protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Breaker {
    /// Failures since everything was well.
    pub failures: u32,
    /// Successes since the last failure.
    pub successes: u32,
    /// When the last round of failures was full, in seconds since the Unix epoch.
    pub opened_at_s: Option<u64>,
    /// When the last failure was, in seconds since the Unix epoch.
    pub failed_at_s: u64,
}

impl Breaker {
    /// Whether a call may be made.
    #[must_use]
    pub fn allows(&self, rules: &BreakerRules, now_s: u64) -> bool {
        let Some(opened_at_s) = self.opened_at_s else {
            return true;
        };
        // A clock that was set back must not keep it open for longer than it may be.
        let is_past = now_s.saturating_add(rules.max_open_s) < opened_at_s;
        is_past || now_s > opened_at_s.saturating_add(self.open_s(rules))
    }

    /// For how many seconds the breaker opens after the failures so far.
    fn open_s(&self, rules: &BreakerRules) -> u64 {
        let rounds = (self.failures / rules.failures.max(1)).max(1);
        1u64.checked_shl(rounds).unwrap_or(u64::MAX).min(rules.max_open_s)
    }

    /// What is remembered after one more failure.
    #[must_use]
    pub fn after_failure(mut self, rules: &BreakerRules, now_s: u64) -> Self {
        self.failures = self.failures.saturating_add(1);
        self.successes = 0;
        self.failed_at_s = now_s;
        if self.failures.is_multiple_of(rules.failures.max(1)) {
            self.opened_at_s = Some(now_s);
        }
        self
    }

    /// What is remembered after one more success; `None`: nothing.
    #[must_use]
    pub fn after_success(mut self, rules: &BreakerRules) -> Option<Self> {
        self.successes = self.successes.saturating_add(1);
        (self.successes < rules.successes).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: BreakerRules = BreakerRules {
        failures: 3,
        successes: 2,
        max_open_s: 10,
    };

    fn failed(times: u32, now_s: u64) -> Breaker {
        (0..times).fold(Breaker::default(), |breaker, _| {
            breaker.after_failure(&RULES, now_s)
        })
    }

    #[test]
    fn it_opens_for_longer_each_round() {
        // `(failures, seconds for which it is open; 0: it is not)`
        for (failures, open_s) in [
            (0, 0),
            (2, 0),
            (3, 2),
            (4, 2),
            (6, 4),
            (9, 8),
            (12, 10),
            (300, 10),
            (3_000, 10),
        ] {
            let breaker = failed(failures, 100);
            for now_s in 100..120 {
                let allows = open_s == 0 || now_s > 100 + open_s;
                assert_eq!(
                    breaker.allows(&RULES, now_s),
                    allows,
                    "{failures} failures, {now_s}"
                );
            }
        }
        let long = BreakerRules {
            max_open_s: u64::MAX,
            ..RULES
        };
        let breaker = failed(3_000_000, 100);
        assert!(!breaker.allows(&long, u64::MAX), "no number overflows");
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_keep_it_open() {
        let breaker = failed(3, 1_000);
        assert!(
            !breaker.allows(&RULES, 999),
            "workers read the clock one after another"
        );
        assert!(breaker.allows(&RULES, 989));
    }

    #[test]
    fn successes_close_it() {
        let once = failed(4, 100).after_success(&RULES).expect("one is not enough");
        assert_eq!(once.failures, 4);
        assert_eq!(once.after_success(&RULES), None, "all is forgotten");
        let again = once.after_failure(&RULES, 101);
        assert_eq!(again.successes, 0, "a failure begins again");
        assert_eq!(again.opened_at_s, Some(100), "only a full round opens it again");
        assert_eq!(again.after_failure(&RULES, 102).opened_at_s, Some(102));
    }
}
