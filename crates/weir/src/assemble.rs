//! From what files say to what is served: secrets in the place of references, then the compile.

use crate::certificates;
use crate::doors::Door;
use crate::guards;
use crate::load::{Findings, Source};
use weir_control::secrets::{Fate, Forms, Policy, Secrets, Unresolved};
use weir_model::{Model, Severity};
use weir_plugin::Registry;
use weir_snapshot::{Carry, Snapshot};

/// Makes what is served of what the files say together.
pub struct Assembler<'l> {
    pub sources: &'l [Source],
    pub registry: &'l Registry,
    pub carry: &'l Carry,
}

impl Assembler<'_> {
    /// What is printed keeps its references; what is compiled has values in their place.
    pub fn compile(
        &self,
        merged: Model,
        parts: Vec<(Door, Model)>,
        policy: Policy,
        findings: &mut Findings,
    ) -> Option<(Model, Snapshot)> {
        let written = (policy == Policy::Look).then(|| parts.clone());
        let (resolved, unresolved) = resolve(parts, policy);
        let mut is_refused = false;
        for (door, it) in &unresolved {
            let severity = gravity(*door, it.fate, policy);
            is_refused |= severity == Severity::Error;
            let word = match severity {
                Severity::Warning => "warning",
                Severity::Dropped => "error (left out)",
                Severity::Error => "error",
            };
            findings.push(severity, || {
                format!("{word}: {}: {}", it.broken.document, it.broken.reason)
            });
        }
        if is_refused {
            return None;
        }
        let found = match weir_snapshot::compile(&resolved, self.registry, self.carry) {
            Ok((snapshot, mut warnings)) => {
                warnings.extend(certificates::warnings(&snapshot.tls));
                warnings.extend(guards::warnings(&merged));
                for found in warnings {
                    findings.add_compiled(self.sources, found, &merged);
                }
                return Some((merged, snapshot));
            }
            Err(found) => found,
        };
        // A secret may have to look like one. Where it is not there, the rest is looked at without what needs it.
        if let Some(parts) = written.filter(|_| !unresolved.is_empty()) {
            let (rest, _) = resolve(parts, Policy::Serve);
            if let Ok((snapshot, _)) = weir_snapshot::compile(&rest, self.registry, self.carry) {
                return Some((rest, snapshot));
            }
        }
        for found in found {
            findings.add_compiled(self.sources, found, &merged);
        }
        None
    }
}

/// Puts values in the place of references, by the forms that each door has for them.
fn resolve(parts: Vec<(Door, Model)>, policy: Policy) -> (Model, Vec<(Door, Unresolved)>) {
    let mut resolved = Model::default();
    let mut unresolved = Vec::new();
    for (door, mut model) in parts {
        let forms = match door {
            Door::Native => Forms::All,
            Door::Kong => Forms::Kong,
            Door::Apisix => Forms::Apisix,
        };
        let found = Secrets::default().resolve_by(forms, policy, &mut model);
        unresolved.extend(found.into_iter().map(|it| (door, it)));
        resolved.merge(model);
    }
    (resolved, unresolved)
}

/// How bad it is that something refers to nothing. APISIX goes on without a credential or a certificate.
fn gravity(door: Door, fate: Fate, policy: Policy) -> Severity {
    match (fate, policy, door) {
        (Fate::Kept, ..) | (Fate::Aside, Policy::Look, _) => Severity::Warning,
        (Fate::Aside, _, Door::Apisix) => Severity::Dropped,
        _ => Severity::Error,
    }
}
