//! From what files say to what is served: secrets in the place of references, then the compile.

use crate::certificates;
use crate::guards;
use crate::load::{self, Findings, Source};
use std::collections::HashMap;
use std::sync::Arc;
use weir_control::follow::{ReducedModel, compile_reduced};
use weir_control::secrets::{Cache, Policy, Secrets, UnresolvedEffect, UnresolvedReference};
use weir_dialect::{DialectName, DialectSet};
use weir_model::{Diagnostic, DocPath, Model, RouteTarget, Severity};
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
                warnings.extend(guards::warnings(&merged, self.dialects));
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
        if let Some(served) = self.compile_the_rest(&found, &merged, &resolved, findings) {
            return Some(served);
        }
        for found in found {
            findings.add_compiled(self.dialects, self.sources, found, &merged);
        }
        None
    }

    /// Compiles without what is wrong, as from a store, if all of it stands in files of which the rest is served.
    fn compile_the_rest(
        &self,
        found: &[Diagnostic],
        merged: &Model,
        resolved: &Model,
        findings: &mut Findings,
    ) -> Option<(Model, Snapshot)> {
        let errors = || found.iter().filter(|it| it.severity == Severity::Error);
        let are_left_out = errors().all(|it| self.serves_the_rest(&it.path));
        let reduced = || compile_reduced(resolved, self.registry, self.persistent).ok();
        let reduced = are_left_out.then(reduced).flatten()?;
        // What the whole was warned of has a place in a file, and is reported once.
        let mut reported: HashMap<&str, usize> = HashMap::new();
        for found in found.iter().filter(|it| it.severity != Severity::Error) {
            *reported.entry(found.message.as_str()).or_default() += 1;
        }
        for found in found {
            let mut found = found.clone();
            if found.severity == Severity::Error {
                found.severity = Severity::Dropped;
            }
            findings.add_compiled(self.dialects, self.sources, found, merged);
        }
        // What was found once these were left out has no place in a file.
        for more in reduced.skipped.get(errors().count()..).unwrap_or_default() {
            findings.push(Severity::Dropped, || {
                format!("error (left out): {}: {}", more.name, more.reason)
            });
        }
        for more in &reduced.warnings {
            match reported.get_mut(more.reason.as_str()) {
                Some(left) if *left > 0 => *left -= 1,
                _ => findings.push(Severity::Warning, || {
                    format!("warning: {}: {}", more.name, more.reason)
                }),
            }
        }
        // Without what is left out, certificates have other places than in the files. The messages name them.
        for found in certificates::warnings(&reduced.snapshot.tls) {
            findings.push(Severity::Warning, || format!("warning: {}", found.message));
        }
        for found in guards::warnings(merged, self.dialects) {
            findings.add_compiled(self.dialects, self.sources, found, merged);
        }
        let model = as_reduced(merged, resolved, &reduced);
        Some((model, reduced.snapshot))
    }

    /// Whether what stands at this place of the merged model is from a file of which the rest is served.
    fn serves_the_rest(&self, path: &DocPath) -> bool {
        let source = load::source_of(self.sources, path);
        let dialect = source.and_then(|it| self.dialects.get(it.dialect));
        dialect.is_some_and(|it| it.file_form().serves_the_rest)
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

/// A model as it was written, with the routes of its reduced form: those that are there, refusing what they refuse.
///
/// A route that refuses has the conditions of its reduced form: some of its own may be what cannot be served.
fn as_reduced(written: &Model, resolved: &Model, reduced: &ReducedModel<'_>) -> Model {
    let mut model = written.clone();
    model.routes.clear();
    let refuses = RouteTarget::respond_before_plugins(503);
    for (left, at) in reduced.model.routes.iter().zip(&reduced.routes) {
        let (Some(written), Some(resolved)) = (written.routes.get(*at), resolved.routes.get(*at)) else {
            continue;
        };
        let mut route = Arc::clone(written);
        if left.target == refuses {
            let route = Arc::make_mut(&mut route);
            if route.target != refuses {
                route.refuse_all();
            }
            if !Arc::ptr_eq(left, resolved) {
                route.matches.clone_from(&left.matches);
            }
        }
        model.routes.push(route);
    }
    model
}

/// How bad it is that something refers to nothing. Some originals go on without a credential or a certificate.
fn gravity(
    dialects: &DialectSet,
    dialect: DialectName,
    effect: UnresolvedEffect,
    policy: Policy,
) -> Severity {
    let serves_the_rest = || {
        let dialect = dialects.get(dialect);
        dialect.is_some_and(|it| it.file_form().serves_the_rest)
    };
    match (effect, policy) {
        (UnresolvedEffect::AsText, _) | (UnresolvedEffect::Dropped, Policy::Look) => Severity::Warning,
        (UnresolvedEffect::Dropped | UnresolvedEffect::Skipped, _) if serves_the_rest() => Severity::Dropped,
        _ => Severity::Error,
    }
}
