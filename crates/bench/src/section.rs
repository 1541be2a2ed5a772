//! One experiment of the report: what is shown of it.

use crate::experiment::Experiment;
use crate::summary::Summary;

/// An experiment as the page shows it.
#[derive(Debug)]
pub struct Section<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its gateways.
    pub summaries: Vec<Summary>,
    /// Its charts: name of the picture, SVG.
    pub charts: Vec<(String, String)>,
}
