//! Why a call goes to the route to which it goes. For people, so it takes its time.

use super::conditions::method_bit;
use super::trie::{Candidate, NONE, Visitor};
use super::{RouteTable, trie::Trie};
use std::collections::HashSet;
use std::fmt;
use weir_plugin::Exchange;

/// The most candidates that are listed.
const MAX_EXPLAINED: usize = 24;

/// A match that took the call, or nearly did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchExplanation {
    /// Position in the snapshot's list of routes.
    pub route: u32,
    /// Position in the route's list of matches.
    pub match_index: usize,
    /// Under which of the match's hosts, without its port; `*`: every host.
    pub host: String,
    /// Its result.
    pub verdict: Verdict,
}

/// The result for a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It takes the call.
    Wins,
    /// All of it holds, but another one goes before it.
    LowerPrecedence,
    /// It does not hold, for these reasons.
    Fails(Vec<Mismatch>),
}

/// Why a candidate does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// The call's host is another one.
    Host,
    /// The call's port is not this one.
    Port(u16),
    /// The path is not the pattern's, though it looks like it.
    Path,
    /// The call's method is not one of the match's.
    Method,
    /// This header is absent or has another value.
    Header(String),
    /// The client's address is in none of the networks.
    RemoteAddress,
    /// The server name of the TLS handshake is another one.
    ServerName,
    /// The condition does not hold.
    Condition,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("the host is another one"),
            Self::Port(port) => write!(f, "the port is not {port}"),
            Self::Path => f.write_str("the path does not match the pattern"),
            Self::Method => f.write_str("the method is not among the route's"),
            Self::Header(name) => write!(f, "the header '{name}' is absent or has another value"),
            Self::RemoteAddress => f.write_str("the client's address is in none of the networks"),
            Self::ServerName => f.write_str("the TLS server name is another one"),
            Self::Condition => f.write_str("the condition does not hold"),
        }
    }
}

impl RouteTable {
    /// The winner first, then what holds but goes behind it, then what nearly holds with the reasons why it does
    /// not: those whose path the call's begins with, or would but for a slash at the end or upper case. At most
    /// 24.
    pub fn explain(&self, exchange: &mut Exchange) -> Vec<MatchExplanation> {
        let winner = self.search(exchange).map(|(candidate, _)| candidate.rank);
        let mut applicable = HashSet::new();
        self.hosts.for_each(&exchange.request.host, |root| {
            applicable.insert(root);
        });
        let mut judged = Vec::new();
        for (root, host) in self.hosts.texts() {
            for near in near_candidates(&self.trie, root, &exchange.request.path) {
                let mut mismatches = Vec::new();
                if !applicable.contains(&root) {
                    mismatches.push(Mismatch::Host);
                }
                self.evaluate(&near, exchange, &mut mismatches);
                judged.push((near.candidate, host.clone(), mismatches));
            }
        }
        judged.sort_by_key(|(candidate, _, mismatches)| (mismatches.len(), candidate.rank));
        judged.truncate(MAX_EXPLAINED);
        let explained = judged
            .into_iter()
            .map(|(candidate, host, mismatches)| MatchExplanation {
                route: candidate.route,
                match_index: self.match_indexes[candidate.rank as usize] as usize,
                host,
                verdict: if !mismatches.is_empty() {
                    Verdict::Fails(mismatches)
                } else if Some(candidate.rank) == winner {
                    Verdict::Wins
                } else {
                    Verdict::LowerPrecedence
                },
            });
        explained.collect()
    }

    fn evaluate(&self, near: &NearMiss, exchange: &Exchange, mismatches: &mut Vec<Mismatch>) {
        let candidate = &near.candidate;
        let path = &exchange.request.path;
        let path_holds = near.is_on_path
            && candidate.tail.allows(path, near.position)
            && (!candidate.is_regex
                || self.patterns[candidate.pattern as usize]
                    .matched_len(path)
                    .is_some());
        if !path_holds {
            mismatches.push(Mismatch::Path);
        }
        if candidate.methods & method_bit(&exchange.request.method) == 0 {
            mismatches.push(Mismatch::Method);
        }
        if candidate.conditions != NONE {
            self.conditions[candidate.conditions as usize].mismatches(exchange, mismatches);
        }
    }
}

/// A candidate whose key was reached.
struct NearMiss {
    candidate: Candidate,
    position: usize,
    /// Reached by the path itself, not by one like it.
    is_on_path: bool,
}

fn near_candidates(trie: &Trie, root: u32, path: &[u8]) -> Vec<NearMiss> {
    let mut collect = Collect {
        found: Vec::new(),
        seen: HashSet::new(),
        is_on_path: true,
    };
    trie.walk(root, path, &mut collect);
    collect.is_on_path = false;
    let alike = [
        [path, b"/"].concat(),
        path.strip_suffix(b"/").unwrap_or(path).to_vec(),
        path.to_ascii_lowercase(),
    ];
    for path in alike {
        trie.walk(root, &path, &mut collect);
    }
    collect.found
}

struct Collect {
    found: Vec<NearMiss>,
    seen: HashSet<u32>,
    is_on_path: bool,
}

impl Visitor for Collect {
    fn bound(&self) -> u32 {
        u32::MAX
    }

    fn visit(&mut self, candidates: &[Candidate], position: usize) {
        for candidate in candidates {
            if self.seen.insert(candidate.rank) {
                self.found.push(NearMiss {
                    candidate: *candidate,
                    position,
                    is_on_path: self.is_on_path,
                });
            }
        }
    }
}
