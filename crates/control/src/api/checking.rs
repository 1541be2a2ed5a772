//! Whether what a write makes of a configuration could be served.

use weir_model::{Diagnostic, Model, Severity};
use weir_plugin::Registry;
use weir_snapshot::{Carry, Pieces};

/// Compiles what would be served. To be used on threads that may take their time, by one writer after the other.
pub struct Checker {
    registry: Registry,
    carry: Carry,
    /// What was compiled for an earlier write.
    pieces: Pieces,
}

impl Checker {
    /// With these plugins.
    pub fn new(registry: Registry) -> Self {
        Self {
            registry,
            carry: Carry::default(),
            pieces: Pieces::default(),
        }
    }

    /// What is wrong with a model that is not wrong with the one before it: only that is the fault of a write.
    pub fn new_faults(&mut self, before: &Model, after: &Model) -> Vec<Diagnostic> {
        let after = self.faults(after);
        if after.is_empty() {
            return after;
        }
        let before = self.faults(before);
        let is_new = |fault: &Diagnostic| !before.iter().any(|it| it.message == fault.message);
        after.into_iter().filter(is_new).collect()
    }

    fn faults(&mut self, model: &Model) -> Vec<Diagnostic> {
        // Nobody serves it, so it needs no hash.
        match weir_snapshot::compile_again(model, 0, &self.registry, &self.carry, &mut self.pieces) {
            Ok(_) => Vec::new(),
            Err(found) => {
                let errors = found.into_iter().filter(|it| it.severity == Severity::Error);
                errors.collect()
            }
        }
    }
}
