//! Which routes could take a call: the one that does, and those that would if it were not there.

use super::{ExplainedCall, Explainer};
use weir_plugin::{Exchange, system_clock};
use weir_snapshot::Verdict;

impl Explainer<'_> {
    /// The routes all of whose conditions hold for a call, by their positions in the model. The one that takes it is the
    /// first.
    pub fn takers(&self, call: &ExplainedCall) -> Vec<usize> {
        let mut exchange = Exchange::new(system_clock, 1);
        call.fill(&mut exchange.request);
        let (mut winners, mut others) = (Vec::new(), Vec::new());
        for table in &self.snapshot.tables {
            let request = &mut exchange.request;
            let form = self.renderer(table.dialect).normal_form();
            if form.apply(&request.raw_path, &mut request.path).is_err() {
                break;
            }
            for explained in table.explain(&mut exchange) {
                match explained.verdict {
                    Verdict::Wins => winners.push(explained.route as usize),
                    Verdict::LowerPrecedence => others.push(explained.route as usize),
                    Verdict::Fails(_) => {}
                }
            }
        }
        winners.extend(others);
        winners
    }
}
