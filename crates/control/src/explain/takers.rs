//! Which routes could take a call: the one that does, and those that would if it were not there.
//!
//! **What it is not**: why others do not take it is in [`super::explanation`].

use super::{ExplainedCall, Explainer};
use weir_plugin::{Exchange, system_clock};
use weir_snapshot::Verdict;

impl Explainer<'_> {
    /// The routes all of whose conditions hold for a call, by their positions in the model. Each goes before those behind
    /// it, so that the one that takes the call is the first.
    pub fn takers(&self, call: &ExplainedCall) -> Vec<usize> {
        let mut exchange = Exchange::new(system_clock, 1);
        call.fill(&mut exchange.request);
        let mut takers = Vec::new();
        for table in &self.snapshot.tables {
            if self.read_path(table.dialect, &mut exchange).is_err() {
                break;
            }
            let holding = table.explain(&mut exchange).into_iter();
            let holding = holding.filter(|it| !matches!(it.verdict, Verdict::Fails(_)));
            takers.extend(holding.map(|it| it.route as usize));
        }
        takers
    }
}
