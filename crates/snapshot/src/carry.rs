//! What outlives snapshots: the states of targets, so that a reload does not forget their loads, and compiled
//! regular expressions, so that it does not pay for them again.

use crate::table::RoutePattern;
use crate::upstream::TargetState;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Handed to every compile of a process. Holds nothing alive that no snapshot uses any more.
#[derive(Default)]
pub struct Carry {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// By upstream and target (`host:port`).
    targets: HashMap<(String, String), Weak<TargetState>>,
    /// By the text of the expression.
    regexes: HashMap<String, Weak<RoutePattern>>,
}

impl Carry {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        // A panic under the lock leaves whole entries only, so the maps stay good.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of a target that a living snapshot uses, or a new one.
    pub(crate) fn target(&self, upstream: &str, target: &str) -> Arc<TargetState> {
        let mut kept = self.kept();
        let slot = kept
            .targets
            .entry((upstream.to_owned(), target.to_owned()))
            .or_default();
        slot.upgrade().unwrap_or_else(|| {
            let state = Arc::new(TargetState::default());
            *slot = Arc::downgrade(&state);
            state
        })
    }

    /// The expression as a living snapshot compiled it, or as `build` does.
    pub(crate) fn regex<E>(
        &self,
        text: &str,
        build: impl FnOnce() -> Result<RoutePattern, E>,
    ) -> Result<Arc<RoutePattern>, E> {
        if let Some(known) = self.kept().regexes.get(text).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let built = Arc::new(build()?);
        self.kept()
            .regexes
            .insert(text.to_owned(), Arc::downgrade(&built));
        Ok(built)
    }

    /// Forgets what no snapshot uses any more.
    pub(crate) fn prune(&self) {
        let mut kept = self.kept();
        kept.targets.retain(|_, state| state.strong_count() > 0);
        kept.regexes.retain(|_, regex| regex.strong_count() > 0);
        if kept.targets.capacity() > 4 * kept.targets.len() {
            kept.targets.shrink_to_fit();
        }
        if kept.regexes.capacity() > 4 * kept.regexes.len() {
            kept.regexes.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_used_is_kept() {
        let carry = Carry::default();
        let pattern = || Ok::<_, ()>(RoutePattern::Template(Box::default()));
        let regex = carry.regex("a", pattern).expect("built");
        let target = carry.target("u", "t:1");
        for number in 0..100 {
            drop(carry.regex(&number.to_string(), pattern));
            drop(carry.target("u", &number.to_string()));
        }
        carry.prune();
        assert_eq!(carry.kept().targets.len(), 1);
        assert_eq!(carry.kept().regexes.len(), 1);
        assert!(Arc::ptr_eq(&carry.regex("a", pattern).expect("known"), &regex));
        assert!(Arc::ptr_eq(&carry.target("u", "t:1"), &target));
        assert!(!Arc::ptr_eq(&carry.target("v", "t:1"), &target));
    }
}
