//! From what files say to what is served: secrets in the place of references, then the compile.

use crate::certificates;
use crate::guards;
use crate::load::{Findings, Source};
use weir_control::secrets::{Cache, Policy, Secrets, UnresolvedEffect, UnresolvedReference};
use weir_dialect::{DialectName, DialectSet};
use weir_model::{Model, Severity};
use weir_plugin::Registry;
use weir_snapshot::{PersistentState, Snapshot};

/// Makes what is served of what the files say together.
pub struct Assembler<'l> {
    pub sources: &'l [Source],
    pub dialects: &'l DialectSet,
    pub registry: &'l Registry,
    pub persistent: &'l PersistentState,
}

impl Assembler<'_> {
    /// The printed model keeps its references; the compiled one has values in their place.
    pub fn compile(
        &self,
        merged: Model,
        parts: Vec<(DialectName, Model)>,
        policy: Policy,
        findings: &mut Findings,
    ) -> Option<(Model, Snapshot)> {
        let written = (policy == Policy::Look).then(|| parts.clone());
        let (resolved, unresolved) = self.resolve(parts, policy);
        let mut is_refused = false;
        for (dialect, it) in &unresolved {
            // Another machine may have values that this one lacks, but no places that the files do not name.
            let policy = if it.leads_nowhere { Policy::Serve } else { policy };
            let severity = gravity(self.dialects, *dialect, it.effect, policy);
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
        let found = match weir_snapshot::compile(&resolved, self.registry, self.persistent) {
            Ok((snapshot, mut warnings)) => {
                warnings.extend(certificates::warnings(&snapshot.tls));
                warnings.extend(guards::warnings(&merged));
                for found in warnings {
                    findings.add_compiled(self.dialects, self.sources, found, &merged);
                }
                return Some((merged, snapshot));
            }
            Err(found) => found,
        };
        // A secret may have to look like one. If it is missing, check the rest without the parts that need it.
        if let Some(parts) = written.filter(|_| !unresolved.is_empty()) {
            let (rest, _) = self.resolve(parts, Policy::Serve);
            if let Ok((snapshot, _)) = weir_snapshot::compile(&rest, self.registry, self.persistent) {
                return Some((rest, snapshot));
            }
        }
        for found in found {
            findings.add_compiled(self.dialects, self.sources, found, &merged);
        }
        None
    }

    /// Puts values in the place of references, by the forms that each dialect has for them. They may lead into the vaults
    /// that any of the files describes.
    fn resolve(
        &self,
        parts: Vec<(DialectName, Model)>,
        policy: Policy,
    ) -> (Model, Vec<(DialectName, UnresolvedReference)>) {
        let mut resolved = Model::default();
        let mut unresolved = Vec::new();
        let mut secrets = Secrets::new(self.dialects, Cache::default());
        for (key, vault) in self.sources.iter().flat_map(|it| it.vaults(self.dialects)) {
            secrets.apply(&key, Some(&vault));
        }
        for (dialect, mut model) in parts {
            let found = secrets.resolve_by(Some(dialect), policy, &mut model);
            unresolved.extend(found.into_iter().map(|it| (dialect, it)));
            resolved.merge(model);
        }
        (resolved, unresolved)
    }
}

/// How bad it is that something refers to nothing. Some originals go on without a credential or a certificate.
fn gravity(
    dialects: &DialectSet,
    dialect: DialectName,
    effect: UnresolvedEffect,
    policy: Policy,
) -> Severity {
    let leaves_out = || {
        let dialect = dialects.get(dialect);
        dialect.is_some_and(|it| it.file_form().leaves_out_unresolved)
    };
    match (effect, policy) {
        (UnresolvedEffect::AsText, _) | (UnresolvedEffect::Dropped, Policy::Look) => Severity::Warning,
        (UnresolvedEffect::Dropped, Policy::Serve) if leaves_out() => Severity::Dropped,
        _ => Severity::Error,
    }
}
