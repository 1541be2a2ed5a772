//! Documents compiled once, for as many calls as are to be explained by them.

use super::{Api, Problem};
use crate::explain::{ExplainedCall, Explainer, Explanation};
use crate::follow::{DialectModels, ReducedModel, compile_reduced};
use schemars::JsonSchema;
use serde::Serialize;
use weir_dialect::{DialectSet, SkippedDocument};
use weir_model::{DialectName, Model, document};
use weir_plugin::Registry;
use weir_snapshot::{PersistentState, Snapshot};
use weir_store::Document;

/// A document that would not be served.
#[derive(Serialize, JsonSchema)]
pub struct UnservedDocument {
    document: String,
    reason: String,
}

/// A compiled configuration, for explanations.
pub struct CompiledConfig {
    dialects: DialectSet,
    registry: Registry,
    model: Model,
    snapshot: Snapshot,
    /// Documents that would not be served, and why.
    pub skipped: Vec<UnservedDocument>,
}

impl CompiledConfig {
    /// Compiles documents, the later ones in place of the earlier ones with the same key, together with the files.
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

    /// Compiles what models say.
    pub fn of_models(api: &Api, dialects: &DialectSet, models: &mut DialectModels) -> Result<Self, Problem> {
        let (model, skipped) = models.model(|_, _| Vec::new());
        let skipped = skipped.into_iter().map(UnservedDocument::of).collect();
        Self::of_model(api, dialects, &model, skipped)
    }

    /// Compiles a model.
    pub fn of_model(
        api: &Api,
        dialects: &DialectSet,
        model: &Model,
        mut skipped: Vec<UnservedDocument>,
    ) -> Result<Self, Problem> {
        let registry = (api.options.registry)();
        let ReducedModel {
            model,
            snapshot,
            skipped: more,
            ..
        } = compile_reduced(model, &registry, &PersistentState::default())
            .map_err(|found| Problem::invalid(&found))?;
        skipped.extend(more.into_iter().map(|it| UnservedDocument {
            document: it.name,
            reason: it.reason,
        }));
        Ok(Self {
            dialects: dialects.clone(),
            registry,
            model: model.into_owned(),
            snapshot,
            skipped,
        })
    }

    /// The routes that could take a call, by their names and with their dialects. The one that takes it is the first.
    pub fn takers(&self, call: &ExplainedCall) -> Vec<(DialectName, &str)> {
        let positions = self.explainer().takers(call);
        let routes = positions.into_iter().map(|at| &self.model.routes[at]);
        routes.map(|it| (it.dialect, it.name.as_str())).collect()
    }

    /// Explains a call.
    pub fn explain(&self, call: &ExplainedCall) -> Explanation {
        self.explainer().explain(call)
    }

    /// The explainer of calls.
    pub fn explainer(&self) -> Explainer<'_> {
        Explainer {
            model: &self.model,
            snapshot: &self.snapshot,
            dialects: &self.dialects,
            registry: &self.registry,
            place: &|_| None,
        }
    }
}

/// The files that are served in addition to the store.
pub fn files(api: &Api, dialects: &DialectSet, skipped: &mut Vec<UnservedDocument>) -> Option<Model> {
    let mut whole: Option<Model> = None;
    for file in api.options.files.get().1.iter() {
        let read = document::parse(&file.text).ok();
        let model = read.and_then(|it| dialects.get(file.dialect)?.translate(&it).ok());
        match (model, &mut whole) {
            (Some((model, _)), Some(whole)) => whole.merge(model),
            (Some((model, _)), None) => whole = Some(model),
            (None, _) => skipped.push(UnservedDocument {
                document: file.file.clone(),
                reason: "the file cannot be read on its own".to_owned(),
            }),
        }
    }
    whole
}

/// The model of a store's documents and the files together.
pub fn model_of(api: &Api, documents: &[Document]) -> Model {
    let dialects = &api.options.dialects;
    let mut models = DialectModels::new(dialects);
    if let Some(model) = files(api, dialects, &mut Vec::new()) {
        models.set_files(model);
    }
    for it in documents {
        models.apply(it.key.as_str(), Some(&it.value));
    }
    models.model(|_, _| Vec::new()).0.into_owned()
}

impl UnservedDocument {
    fn of(skipped: SkippedDocument) -> Self {
        Self {
            document: skipped.document,
            reason: skipped.reason,
        }
    }
}
