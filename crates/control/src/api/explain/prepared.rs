//! Documents compiled once, for as many calls as are to be explained by them.

use super::{LeftOut, files};
use crate::api::{Api, Problem};
use crate::explain::{Call, Explainer, Explanation};
use crate::follow::{DialectModels, compile_reduced};
use weir_dialect::DialectSet;
use weir_model::Model;
use weir_plugin::Registry;
use weir_snapshot::{PersistentState, Snapshot};

/// What calls are explained by.
pub struct Prepared {
    dialects: DialectSet,
    registry: Registry,
    model: Model,
    snapshot: Snapshot,
    /// Documents that would not be served, and why.
    pub(super) left_out: Vec<LeftOut>,
}

impl Prepared {
    /// Compiles documents, the later ones in place of the earlier ones with the same key, with the files beside them.
    pub fn new<'d>(
        api: &Api,
        dialects: &DialectSet,
        documents: impl Iterator<Item = (&'d str, Option<&'d [u8]>)>,
    ) -> Result<Self, Problem> {
        let mut models = DialectModels::new(dialects);
        if let Some(model) = files(api, dialects, &mut Vec::new()) {
            models.set_files(model);
        }
        for (key, value) in documents {
            models.apply(key, value);
        }
        Self::of_models(api, dialects, &mut models)
    }

    pub(super) fn of_models(
        api: &Api,
        dialects: &DialectSet,
        models: &mut DialectModels,
    ) -> Result<Self, Problem> {
        let registry = (api.options.registry)();
        let (model, skipped) = models.model(|_, _| Vec::new());
        let mut left_out: Vec<LeftOut> = skipped.into_iter().map(LeftOut::of).collect();
        let (model, snapshot, more) = compile_reduced(&model, &registry, &PersistentState::default())
            .map_err(|found| Problem::invalid(&found))?;
        left_out.extend(more.into_iter().map(|it| LeftOut {
            document: it.name,
            because: it.reason,
        }));
        Ok(Self {
            dialects: dialects.clone(),
            registry,
            model,
            snapshot,
            left_out,
        })
    }

    /// What would happen to a call.
    pub fn explain(&self, call: &Call) -> Explanation {
        Explainer {
            model: &self.model,
            snapshot: &self.snapshot,
            dialects: &self.dialects,
            registry: &self.registry,
            place: &|_| None,
        }
        .explain(call)
    }
}
