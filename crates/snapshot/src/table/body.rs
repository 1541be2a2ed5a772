//! Whether the choice of a route depends on the request's body.

use super::trie::{Candidate, NONE, Visitor};
use super::{RouteTable, Search};
use weir_plugin::Exchange;

impl RouteTable {
    /// Whether any match has a condition over variables that are in the request's body.
    #[inline]
    pub fn needs_body(&self) -> bool {
        self.needs_body
    }

    /// Whether the route of this call (with its path in the dialect's normal form) is unknown until its body has been
    /// read: a condition that only the body decides comes before all matching ones. Calls to other routes need not
    /// wait.
    pub fn awaits_body(&self, exchange: &Exchange) -> bool {
        if !self.needs_body {
            return false;
        }
        let mut probe = Probe {
            search: self.begin(exchange),
            undecided: u32::MAX,
        };
        self.hosts.for_each(&exchange.request.host, |root| {
            self.trie.walk(root, &exchange.request.path, &mut probe);
        });
        probe.undecided < probe.search.rank
    }
}

/// A search for the best candidate that only the body decides, beside the best that holds without it.
struct Probe<'s> {
    search: Search<'s>,
    undecided: u32,
}

impl Probe<'_> {
    fn is_indeterminate(&self, candidate: &Candidate, position: usize) -> bool {
        let search = &self.search;
        candidate.conditions != NONE
            && search.may_take(candidate, position)
            && search.table.conditions[candidate.conditions as usize].await_body(search.exchange)
    }
}

impl Visitor for Probe<'_> {
    fn bound(&self) -> u32 {
        self.search.rank.min(self.undecided)
    }

    fn visit(&mut self, candidates: &[Candidate], position: usize) {
        let bound = self.bound();
        for candidate in candidates.iter().take_while(|candidate| candidate.rank < bound) {
            if self.is_indeterminate(candidate, position) {
                self.undecided = candidate.rank;
                return;
            }
            if self.search.matched_len(candidate, position).is_some() {
                self.search.rank = candidate.rank;
                return;
            }
        }
    }
}
