//! Route tables: which route takes a call.
//!
//! A table indexes every match of a dialect's routes by host and path. A search walks the path once for each host
//! pattern that the call's host has (mostly one, plus the one for every host), looks at the candidates on the way
//! in their order of precedence, and passes over every branch that cannot beat what it has found.

mod body;
mod build;
mod conditions;
mod explain;
mod hosts;
mod pattern;
mod regex_key;
mod trie;

pub use explain::{MatchExplanation, Mismatch, Verdict};
pub(crate) use pattern::PatternCache;
use pattern::RoutePattern;

use conditions::{Conditions, method_bit};
use hosts::Hosts;
use std::sync::Arc;
use trie::{Candidate, NONE, Trie, Visitor};
use weir_model::DialectName;
use weir_plugin::Exchange;

/// Bytes of a path pattern at most.
const MAX_PATTERN: usize = 4096;
/// Parameters of a template at most.
const MAX_PARAMETERS: usize = 32;

/// All routes of one dialect, indexed.
pub struct RouteTable {
    /// The dialect of its routes.
    pub dialect: DialectName,
    hosts: Hosts,
    trie: Trie,
    conditions: Box<[Conditions]>,
    needs_body: bool,
    patterns: Box<[Arc<RoutePattern>]>,
    /// By rank: the match's position in its route.
    match_indexes: Box<[u32]>,
}

/// The winning route of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteMatch {
    /// Position in the snapshot's list of routes.
    pub route: u32,
    /// How many bytes of the path the pattern covers: all but what follows a prefix, a subtree's root, the start
    /// of a template's rest, or the end of a regular expression's match.
    pub matched_len: usize,
}

impl RouteTable {
    /// The route that takes this call, whose path is in the dialect's normal form. Fills the exchange's captures
    /// with what the winner's path pattern has captured.
    #[inline]
    pub fn find(&self, exchange: &mut Exchange) -> Option<RouteMatch> {
        let (candidate, matched_len) = self.search(exchange)?;
        exchange.captures.clear();
        if candidate.pattern != NONE {
            let pattern = &self.patterns[candidate.pattern as usize];
            pattern.capture(&exchange.request.path, &mut exchange.captures);
        }
        Some(RouteMatch {
            route: candidate.route,
            matched_len,
        })
    }

    #[inline]
    fn search(&self, exchange: &Exchange) -> Option<(Candidate, usize)> {
        let request = &exchange.request;
        let mut search = self.begin(exchange);
        self.hosts.for_each(&request.host, |root| {
            self.trie.walk(root, &request.path, &mut search);
        });
        search.won
    }

    #[inline]
    fn begin<'s>(&'s self, exchange: &'s Exchange) -> Search<'s> {
        Search {
            table: self,
            exchange,
            method: method_bit(&exchange.request.method),
            rank: u32::MAX,
            won: None,
        }
    }
}

struct Search<'s> {
    table: &'s RouteTable,
    exchange: &'s Exchange,
    method: u16,
    /// Only lower ranks are of interest.
    rank: u32,
    won: Option<(Candidate, usize)>,
}

impl Search<'_> {
    /// Whether method and path, short of a regular expression, are the candidate's.
    #[inline]
    fn may_take(&self, candidate: &Candidate, position: usize) -> bool {
        candidate.methods & self.method != 0 && candidate.tail.allows(&self.exchange.request.path, position)
    }

    /// How many bytes of the path the candidate covers, if it holds.
    #[inline]
    fn matched_len(&self, candidate: &Candidate, position: usize) -> Option<usize> {
        if !self.may_take(candidate, position) {
            return None;
        }
        let (table, path) = (self.table, &self.exchange.request.path);
        if candidate.conditions != NONE
            && !table.conditions[candidate.conditions as usize].hold(self.exchange)
        {
            return None;
        }
        if candidate.is_regex {
            return table.patterns[candidate.pattern as usize].matched_len(path);
        }
        Some(position)
    }
}

impl Visitor for Search<'_> {
    #[inline]
    fn bound(&self) -> u32 {
        self.rank
    }

    #[inline]
    fn visit(&mut self, candidates: &[Candidate], position: usize) {
        for candidate in candidates {
            if candidate.rank >= self.rank {
                return;
            }
            if let Some(matched_len) = self.matched_len(candidate, position) {
                self.rank = candidate.rank;
                self.won = Some((*candidate, matched_len));
                return;
            }
        }
    }
}
