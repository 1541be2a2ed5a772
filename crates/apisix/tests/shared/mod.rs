//! Reading of small documents for tests.

use weir_apisix::{Options, translate};
use weir_model::{Diagnostic, Model, Severity, document};

const NODES: &str = "{type: roundrobin, nodes: {'127.0.0.1:1980': 1}}";

/// Translates a document in which `NODES` stands for an upstream.
pub fn read(text: &str, options: &Options) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let text = text.replace("NODES", NODES);
    translate(&document::parse(&text).expect("YAML"), options)
}

/// The model of a document that is good.
pub fn model(text: &str) -> Model {
    let (model, diagnostics) = read(text, &Options::default()).unwrap_or_else(|them| panic!("{them:?}"));
    assert!(
        diagnostics.iter().all(|it| it.severity == Severity::Warning),
        "{diagnostics:?}"
    );
    assert_eq!(model.validate(), Vec::new());
    model
}
