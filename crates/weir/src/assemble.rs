//! From what files say to what is served: secrets in the place of references, then the compile.

use crate::certificates;
use crate::dialects::FileKind;
use crate::guards;
use crate::load::{Findings, Source};
use weir_control::secrets::{Fate, Policy, SecretSyntax, Secrets, Unresolved};
use weir_model::{Model, Severity};
use weir_plugin::Registry;
use weir_snapshot::{PersistentState, Snapshot};

/// Makes what is served of what the files say together.
pub struct Assembler<'l> {
    pub sources: &'l [Source],
    pub registry: &'l Registry,
    pub carry: &'l PersistentState,
}

impl Assembler<'_> {
    /// What is printed keeps its references; what is compiled has values in their place.
    pub fn compile(
        &self,
        merged: Model,
        parts: Vec<(FileKind, Model)>,
        policy: Policy,
        findings: &mut Findings,
    ) -> Option<(Model, Snapshot)> {
        let written = (policy == Policy::Look).then(|| parts.clone());
        let (resolved, unresolved) = resolve(parts, policy);
        let mut is_refused = false;
        for (dialect, it) in &unresolved {
            let severity = gravity(*dialect, it.fate, policy);
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

/// Puts values in the place of references, by the forms that each dialect has for them.
fn resolve(parts: Vec<(FileKind, Model)>, policy: Policy) -> (Model, Vec<(FileKind, Unresolved)>) {
    let mut resolved = Model::default();
    let mut unresolved = Vec::new();
    for (dialect, mut model) in parts {
        let forms = match dialect {
            FileKind::Native => SecretSyntax::All,
            FileKind::Kong => SecretSyntax::Kong,
            FileKind::Apisix => SecretSyntax::Apisix,
        };
        let found = Secrets::default().resolve_by(forms, policy, &mut model);
        unresolved.extend(found.into_iter().map(|it| (dialect, it)));
        resolved.merge(model);
    }
    (resolved, unresolved)
}

/// How bad it is that something refers to nothing. APISIX goes on without a credential or a certificate.
fn gravity(dialect: FileKind, fate: Fate, policy: Policy) -> Severity {
    match (fate, policy, dialect) {
        (Fate::AsText, ..) | (Fate::Aside, Policy::Look, _) => Severity::Warning,
        (Fate::Aside, _, FileKind::Apisix) => Severity::Dropped,
        _ => Severity::Error,
    }
}
