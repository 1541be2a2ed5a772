//! The budget of work for one call. The content of a call decides how long schemas, expressions, paths, templates and
//! the like take, so all of them count their steps here, and a call that needs too many is refused.

use std::cell::Cell;

/// The steps that every call may use: about 5 ms on one core.
pub const WORK_STEPS: u64 = 100_000;

/// Why work ended early: its call has used up its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the work for this call goes beyond its budget")]
pub struct Exhausted;

/// The remaining budget of one call. A step is about the work of reading one value; long texts count one step for each
/// 64 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkBudget {
    done: Cell<u64>,
    most: Cell<u64>,
}

impl Default for WorkBudget {
    fn default() -> Self {
        Self {
            done: Cell::new(0),
            most: Cell::new(WORK_STEPS),
        }
    }
}

impl WorkBudget {
    /// A body of so many bytes is read for the call's variables, which happens once: a step more for each of them, so that what takes time in proportion to the
    /// body is never refused.
    pub fn allow_body(&self, bytes: usize) {
        self.most.set(self.most.get().max(WORK_STEPS + bytes as u64));
    }

    /// A plugin goes through a body of so many bytes: its steps are its own, however many plugins of the call do so.
    pub fn allow_pass(&self, bytes: usize) {
        self.most.set(self.most.get().saturating_add(bytes as u64));
    }

    /// Takes steps from the budget.
    ///
    /// # Errors
    /// If it is used up, now and from now on.
    #[inline]
    pub fn spend(&self, steps: usize) -> Result<(), Exhausted> {
        let done = self.done.get().saturating_add(steps as u64);
        self.done.set(done);
        if done > self.most.get() {
            Err(Exhausted)
        } else {
            Ok(())
        }
    }

    /// Takes the steps of looking through so many bytes.
    ///
    /// # Errors
    /// As [`WorkBudget::spend`].
    #[inline]
    pub fn spend_bytes(&self, bytes: usize) -> Result<(), Exhausted> {
        self.spend(1 + bytes / 64)
    }

    /// Whether more was used than there is.
    #[inline]
    pub fn is_exhausted(&self) -> bool {
        self.done.get() > self.most.get()
    }

    /// Steps that were used so far.
    pub fn done(&self) -> u64 {
        self.done.get()
    }

    /// Begins again, for another call or for a call's response.
    pub fn restart(&self) {
        self.done.set(0);
        self.most.set(WORK_STEPS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_plugin_has_steps_for_a_body_of_its_own() {
        let (work, bytes) = (WorkBudget::default(), 1_000_000);
        for _ in 0..3 {
            work.allow_pass(bytes);
            assert_eq!(work.spend(bytes), Ok(()));
        }
        // Reading the body for variables again and again gives nothing more.
        for _ in 0..3 {
            work.allow_body(bytes);
        }
        assert_eq!(work.spend(WORK_STEPS as usize + 1), Err(Exhausted));
    }

    #[test]
    fn work_budget_ends_once_and_for_all() {
        let work = WorkBudget::default();
        assert_eq!(work.spend(WORK_STEPS as usize), Ok(()));
        work.allow_body(128);
        assert_eq!(work.spend_bytes(127), Ok(()));
        assert_eq!(work.spend(126), Ok(()));
        assert!(!work.is_exhausted());
        assert_eq!(work.spend(usize::MAX), Err(Exhausted));
        assert_eq!(work.spend(0), Err(Exhausted));
        assert!(work.is_exhausted());
        work.restart();
        assert_eq!(work, WorkBudget::default());
    }
}
