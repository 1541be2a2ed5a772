//! The registry: what all instances of `prometheus` count, and the texts that are made of it.

use super::definition::Definition;
use super::family_set::{FamilySet, lock};
use super::render;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

/// How many sets are still reported after their last instance is gone: an instance that comes back finds its counts,
/// and a counter that vanishes looks like a restart.
const MAX_IDLE_SETS: usize = 32;

/// Work that is done elsewhere.
pub type Job = Box<dyn FnOnce() + Send>;
/// Who does work elsewhere.
type Runner = Box<dyn Fn(Job) + Send + Sync>;
/// What time it is, in Unix milliseconds.
type Clock = fn() -> u64;
/// Writes the part of an exposition before the families; its argument says whether to report targets.
type Preface = Box<dyn Fn(bool, &mut String) + Send + Sync>;

/// All series of a gateway. Gateways in one process have a registry each and share nothing.
#[derive(Default)]
pub struct MetricRegistry {
    sets: Mutex<Vec<Arc<FamilySet>>>,
    prefaces: Mutex<HashMap<String, Arc<Preface>>>,
    runner: Mutex<Option<Arc<Runner>>>,
    clock: Mutex<Option<Clock>>,
}

impl MetricRegistry {
    /// What instances with this definition count; the same one for equal definitions.
    pub fn set(&self, definition: &Definition) -> Arc<FamilySet> {
        let mut sets = lock(&self.sets);
        if let Some(known) = sets.iter().find(|set| set.definition == *definition) {
            return Arc::clone(known);
        }
        free_idle(&mut sets);
        let set = Arc::new(FamilySet::new(definition));
        sets.push(Arc::clone(&set));
        set
    }

    /// Sets the function that writes the part of this exposition before the families.
    pub fn set_preface(&self, exposition: &str, preface: impl Fn(bool, &mut String) + Send + Sync + 'static) {
        let preface: Preface = Box::new(preface);
        lock(&self.prefaces).insert(exposition.to_owned(), Arc::new(preface));
    }

    /// Has long work done by `runner`, and not by workers.
    pub fn set_runner(&self, runner: impl Fn(Job) + Send + Sync + 'static) {
        let runner: Runner = Box::new(runner);
        *lock(&self.runner) = Some(Arc::new(runner));
    }

    /// Has series expire by this clock. Without one they do not.
    pub fn set_clock(&self, clock: Clock) {
        *lock(&self.clock) = Some(clock);
    }

    /// Runs a job on the runner if there is one, otherwise at once.
    pub(super) fn run(&self, job: Job) {
        let runner = lock(&self.runner).clone();
        match runner {
            Some(runner) => runner(job),
            None => job(),
        }
    }

    /// The Prometheus text of an exposition.
    pub fn render(&self, exposition: &str) -> String {
        let mut text = String::new();
        let sets = self.sets_of(|name| name == exposition);
        let target_health = sets
            .iter()
            .any(|set| set.definition.config.target_health && set.instances.load(Relaxed) > 0);
        let preface = lock(&self.prefaces).get(exposition).cloned();
        if let Some(preface) = preface {
            preface(target_health, &mut text);
        }
        let clock = *lock(&self.clock);
        render::families(&sets, clock.map_or(0, |clock| clock()), &mut text);
        text
    }

    /// The text of all expositions in which anything is counted.
    pub fn render_all(&self) -> String {
        let sets = self.sets_of(|_| true);
        let names: BTreeSet<&str> = (sets.iter())
            .map(|set| set.definition.config.exposition.as_str())
            .collect();
        names.into_iter().map(|name| self.render(name)).collect()
    }

    /// How many sets there are.
    #[cfg(test)]
    pub(super) fn sets(&self) -> usize {
        lock(&self.sets).len()
    }

    fn sets_of(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Arc<FamilySet>> {
        let sets = lock(&self.sets);
        let wanted = sets
            .iter()
            .filter(|set| is_wanted(&set.definition.config.exposition));
        wanted.cloned().collect()
    }
}

/// Frees sets in which no instance counts: those without a count, and the oldest of more than [`MAX_IDLE_SETS`] others. A
/// configuration that is only checked makes a set too.
fn free_idle(sets: &mut Vec<Arc<FamilySet>>) {
    // A set is obtained from the list only, whose lock is held: one that only the list refers to cannot be obtained now.
    let is_idle = |set: &Arc<FamilySet>| Arc::strong_count(set) == 1;
    sets.retain(|set| !is_idle(set) || !set.is_empty());
    let idle = sets.iter().filter(|set| is_idle(set)).count();
    let mut surplus = idle.saturating_sub(MAX_IDLE_SETS);
    sets.retain(|set| {
        let goes = surplus > 0 && is_idle(set);
        surplus -= usize::from(goes);
        !goes
    });
}
