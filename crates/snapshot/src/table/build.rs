//! Builds a table from the matches of its routes.

use super::RouteTable;
use super::conditions::Conditions;
use super::hosts::Hosts;
use super::pattern::{PatternCompiler, RoutePattern};
use super::trie::{Candidate, NONE, Trie, TrieEntry};
use crate::persistent_state::PersistentState;
use std::cmp::Reverse;
use std::sync::Arc;
use weir_model::{Diagnostic, DialectName, DocPath, HostPattern, Route, RouteMatch};

impl RouteTable {
    /// Indexes `routes`, each with its position in the model. What is wrong is added to `diagnostics`; the table
    /// is good only when nothing is.
    pub(crate) fn build(
        dialect: DialectName,
        routes: &[(usize, &Route)],
        persistent: &PersistentState,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut builder = Builder {
            persistent,
            diagnostics,
            hosts: Hosts::default(),
            compiler: PatternCompiler::default(),
            entries: Vec::with_capacity(routes.len()),
            conditions: Vec::new(),
            patterns: Vec::new(),
        };
        for (route_index, route) in routes {
            for (match_index, route_match) in route.matches.iter().enumerate() {
                builder.add(*route_index, match_index, route_match);
            }
        }
        builder.finish(dialect)
    }
}

/// An entry of the index that has no rank yet.
struct UnrankedEntry<'m> {
    precedence: u64,
    match_index: u32,
    entry: TrieEntry<'m>,
}

struct Builder<'b, 'm> {
    persistent: &'b PersistentState,
    diagnostics: &'b mut Vec<Diagnostic>,
    hosts: Hosts,
    compiler: PatternCompiler,
    entries: Vec<UnrankedEntry<'m>>,
    conditions: Vec<Conditions>,
    patterns: Vec<Arc<RoutePattern>>,
}

impl<'m> Builder<'_, 'm> {
    fn add(&mut self, route_index: usize, match_index: usize, route_match: &'m RouteMatch) {
        // Made only when there is something to report: paths allocate.
        let place = |within: DocPath| {
            let mut place = DocPath::root().field("routes").index(route_index);
            place = place.field("match").index(match_index);
            place.0.extend(within.0);
            place
        };
        let diagnostics = &mut *self.diagnostics;
        let (methods, conditions) = Conditions::compile(route_match, &mut |within, message| {
            diagnostics.push(Diagnostic::error(place(within), message));
        });
        let path = match self
            .compiler
            .compile(&route_match.path, self.persistent.patterns())
        {
            Ok(path) => path,
            Err(message) => {
                let place = place(DocPath::root().field("path"));
                self.diagnostics.push(Diagnostic::error(place, message));
                return;
            }
        };
        let is_regex = path.pattern.as_ref().is_some_and(|pattern| pattern.is_regex());
        let pattern = path.pattern.map_or(NONE, |pattern| {
            self.patterns.push(pattern);
            self.patterns.len() as u32 - 1
        });
        let hosts: &[HostPattern] = match route_match.hosts.as_slice() {
            [] => &[HostPattern::Any],
            hosts => hosts,
        };
        let mut by_port = Vec::new();
        for host in hosts {
            let candidate = Candidate {
                rank: 0,
                route: route_index as u32,
                conditions: self.with_port(&conditions, port_of(host), &mut by_port),
                pattern,
                methods,
                tail: path.tail,
                is_regex,
            };
            let default = || route_match.default_precedence(host);
            self.entries.push(UnrankedEntry {
                precedence: route_match.precedence.unwrap_or_else(default),
                match_index: match_index as u32,
                entry: TrieEntry {
                    root: self.hosts.root(host),
                    key: path.key.clone(),
                    candidate,
                },
            });
        }
    }

    /// The position of `conditions` with this port; `by_port` remembers those of one match.
    fn with_port(
        &mut self,
        conditions: &Conditions,
        port: Option<u16>,
        by_port: &mut Vec<(Option<u16>, u32)>,
    ) -> u32 {
        if port.is_none() && conditions.is_empty() {
            return NONE;
        }
        if let Some((_, known)) = by_port.iter().find(|(it, _)| *it == port) {
            return *known;
        }
        let index = self.conditions.len() as u32;
        self.conditions.push(conditions.at_port(port));
        by_port.push((port, index));
        index
    }

    fn finish(self, dialect: DialectName) -> RouteTable {
        let mut unranked = self.entries;
        // Of equal precedences, the first in the document goes first. Entries are large, so only numbers are moved.
        let precedences = unranked.iter().map(|it| Reverse(it.precedence));
        let mut order: Vec<(Reverse<u64>, u32)> = precedences.zip(0u32..).collect();
        order.sort_unstable();
        let in_order = order.iter().map(|(_, place)| *place as usize);
        let match_indexes = in_order.clone().map(|it| unranked[it].match_index).collect();
        for (rank, place) in (0u32..).zip(in_order) {
            unranked[place].entry.candidate.rank = rank;
        }
        let ranked: Vec<TrieEntry<'_>> = unranked.into_iter().map(|it| it.entry).collect();
        RouteTable {
            dialect,
            trie: Trie::build(&ranked, self.hosts.count()),
            hosts: self.hosts,
            needs_body: self.conditions.iter().any(Conditions::need_body),
            conditions: self.conditions.into(),
            patterns: self.patterns.into(),
            match_indexes,
        }
    }
}

fn port_of(host: &HostPattern) -> Option<u16> {
    match host {
        HostPattern::Any => None,
        HostPattern::Exact { port, .. }
        | HostPattern::Suffix { port, .. }
        | HostPattern::Prefix { port, .. } => *port,
    }
}
