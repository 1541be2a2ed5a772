//! A retry budget: further tries are at most a share of the calls, so that an upstream in trouble is not given more
//! than it has already.

use std::sync::atomic::{AtomicU32, Ordering};

/// One further try, in the hundredths in which calls pay for them.
const RETRY: u32 = 100;

/// The bounds of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetRules {
    /// Further tries for each hundred calls.
    pub percent: u8,
    /// Further tries that can be saved up.
    pub burst: u32,
}

impl BudgetRules {
    fn most(self) -> u32 {
        self.burst.saturating_mul(RETRY)
    }
}

/// What is left for further tries; shared by all workers. It begins full. No clock is needed: what is saved up is
/// bounded, so over `n` calls there are at most `burst + n × percent / 100` further tries.
#[derive(Debug, Default)]
pub struct RetryBudget {
    /// Hundredths of a try that were used and not paid for.
    debt: AtomicU32,
}

impl RetryBudget {
    /// A call pays its share. Where nothing is owed, which is usual, this is one load.
    #[inline]
    pub fn note_call(&self, rules: BudgetRules) {
        if self.debt.load(Ordering::Relaxed) > 0 {
            let pay = |debt: u32| Some(debt.saturating_sub(u32::from(rules.percent)));
            // The closure always gives a value.
            let _paid = self.debt.fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay);
        }
    }

    /// Takes one further try out of the budget, if it is in there.
    pub fn take(&self, rules: BudgetRules) -> bool {
        let owe = |debt: u32| {
            let debt = debt.checked_add(RETRY)?;
            (debt <= rules.most()).then_some(debt)
        };
        self.debt
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, owe)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_a_share_of_calls() {
        // `(percent, burst, calls that all fail, further tries that they get)`
        for (percent, burst, calls, tries) in [
            (20, 10, 10, 10),
            (20, 10, 100, 10 + 18),
            (20, 10, 1_000, 10 + 198),
            (0, 5, 1_000, 5),
            (100, 1, 1_000, 1_000),
            (20, 0, 1_000, 0),
            (10, 1, 100, 10),
        ] {
            let rules = BudgetRules { percent, burst };
            let budget = RetryBudget::default();
            let got = (0..calls)
                .filter(|_| {
                    budget.note_call(rules);
                    budget.take(rules)
                })
                .count();
            let most = burst as usize + calls * usize::from(percent) / 100;
            assert!(got <= most, "{percent} % and {burst}: {got}");
            assert!(got.abs_diff(tries) <= 3, "{percent} % and {burst}: {got}");
        }
    }

    #[test]
    fn quiet_times_are_saved_up_to_the_burst() {
        let rules = BudgetRules {
            percent: 50,
            burst: 3,
        };
        let budget = RetryBudget::default();
        for _ in 0..3 {
            assert!(budget.take(rules));
        }
        assert!(!budget.take(rules));
        (0..10_000).for_each(|_| budget.note_call(rules));
        assert_eq!((0..10).filter(|_| budget.take(rules)).count(), 3);
        let huge = BudgetRules {
            percent: 100,
            burst: u32::MAX,
        };
        assert!(
            budget.take(huge),
            "bounds that a number cannot hold are the number's"
        );
    }
}
