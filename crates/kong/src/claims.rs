//! Which calls and sessions each route takes, over all workspaces: so it is known whether a route of one workspace
//! takes calls of another.
//!
//! Routes are found by what their paths begin with and by their hosts, so a question costs no look at every pair.
//! **What it is not**: it does not say who may store a route.

use crate::RouterFlavor;
use crate::document::Route;
use crate::document::entity_store::read_route;
use crate::schema::ItemLocation;
use crate::translate::precedence::Rank;
use crate::translate::{route, stream};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use uuid::Uuid;
use weir_model::{DocPath, HostPattern, RouteMatch, StreamRoute};

/// So many routes with a host are asked one by one rather than searched by path.
const FEW: usize = 256;

/// The calls that a route takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The workspace.
    pub workspace: Arc<str>,
    /// The route.
    pub id: Uuid,
    /// Its name for people.
    pub name: String,
    takes: RouteClaim,
}

#[derive(Debug, Clone, PartialEq)]
enum RouteClaim {
    Calls {
        matches: Vec<(RouteMatch, Rank)>,
        /// Whether it serves calls that come without TLS.
        cleartext: bool,
    },
    Sessions(Box<StreamRoute>),
}

impl Claim {
    /// The claim of a route, which is given as it is stored; `None`: it is no route, or takes nothing.
    pub fn of(workspace: &Arc<str>, id: Uuid, value: &[u8], router: RouterFlavor) -> Option<Self> {
        Self::of_route(workspace, &read_route(id, value)?, router)
    }

    /// The claim of a route; `None`: it takes nothing.
    pub fn of_route(workspace: &Arc<str>, value: &Route, router: RouterFlavor) -> Option<Self> {
        let takes = if stream::is_stream(value) {
            let place = ItemLocation {
                list: Arc::new(DocPath::root()),
                index: 0,
            };
            RouteClaim::Sessions(Box::new(stream::conditions(value, &place, &mut Vec::new())))
        } else {
            let (matches, ranks) = route::matches(value, router, 0);
            RouteClaim::Calls {
                matches: matches.into_iter().zip(ranks).collect(),
                cleartext: route::takes_cleartext(value),
            }
        };
        Some(Self {
            workspace: Arc::clone(workspace),
            id: value.id,
            name: value.name.clone().unwrap_or_else(|| value.id.to_string()),
            takes,
        })
    }

    /// Whether this route may get calls that the other would get without it.
    pub fn takes_from(&self, other: &Self) -> bool {
        match (&self.takes, &other.takes) {
            (
                RouteClaim::Calls { matches, .. },
                RouteClaim::Calls {
                    matches: others,
                    cleartext,
                },
            ) => matches.iter().any(|(one, rank)| {
                let takes = |(other, below): &(RouteMatch, Rank)| {
                    may_win(rank, below) && one.may_overlap(other, !cleartext)
                };
                others.iter().any(takes)
            }),
            (RouteClaim::Sessions(one), RouteClaim::Sessions(other)) => one.may_overlap(other),
            _ => false,
        }
    }

    /// Whether this route may get calls for which one of the matches holds, if it is looked at first.
    pub fn takes_any_of(&self, others: &[RouteMatch]) -> bool {
        let RouteClaim::Calls { matches, .. } = &self.takes else {
            return false;
        };
        let takes = |other: &RouteMatch| matches.iter().any(|(one, _)| one.may_overlap(other, false));
        others.iter().any(takes)
    }

    /// Whether this route may get sessions that the other takes, if it is looked at first.
    pub fn takes_sessions_of(&self, other: &StreamRoute) -> bool {
        matches!(&self.takes, RouteClaim::Sessions(one) if one.may_overlap(other))
    }

    /// Whether it takes calls or sessions for a server name.
    pub fn has_server_name(&self, name: &HostPattern) -> bool {
        match &self.takes {
            RouteClaim::Calls { matches, .. } => matches.iter().any(|(it, _)| it.is_for_server_name(name)),
            RouteClaim::Sessions(route) => route.is_for_server_name(name),
        }
    }

    /// Whether it takes what the other takes, and wins if the other wins.
    pub fn is_same(&self, other: &Self) -> bool {
        self.takes == other.takes
    }
}

/// Whether a match wins over another that holds too. Of equals the ids and ages decide, which callers choose.
fn may_win(one: &Rank, other: &Rank) -> bool {
    match (one, other) {
        (Rank::Compatible(one, _), Rank::Compatible(other, _)) => one >= other,
        (one, other) => one >= other,
    }
}

/// The claims of all routes.
#[derive(Debug, Default)]
pub struct Claims {
    workspaces: BTreeMap<Arc<str>, Index>,
}

/// The claims of a workspace's routes.
#[derive(Debug, Default)]
struct Index {
    claims: HashMap<Uuid, Arc<Claim>>,
    /// By what the paths begin with.
    begins: BTreeMap<String, BTreeSet<Uuid>>,
    /// By full hosts.
    hosts: HashMap<String, BTreeSet<Uuid>>,
    /// Those that take calls whatever their host, or with hosts of a pattern.
    any_host: BTreeSet<Uuid>,
    sessions: BTreeSet<Uuid>,
}

impl Claims {
    /// Notes what a route takes, in the place of what it took before.
    pub fn put(&mut self, claim: Claim) {
        let index = self.workspaces.entry(Arc::clone(&claim.workspace)).or_default();
        index.remove(claim.id);
        index.put(Arc::new(claim));
    }

    /// A route has gone.
    pub fn remove(&mut self, workspace: &str, id: Uuid) {
        if let Some(index) = self.workspaces.get_mut(workspace) {
            index.remove(id);
            if index.claims.is_empty() {
                self.workspaces.remove(workspace);
            }
        }
    }

    /// The claim of a route.
    pub fn get(&self, workspace: &str, id: Uuid) -> Option<&Arc<Claim>> {
        self.workspaces.get(workspace)?.claims.get(&id)
    }

    /// The routes of all workspaces but one.
    pub fn of_others<'c>(&'c self, workspace: &'c str) -> impl Iterator<Item = &'c Arc<Claim>> {
        let others = self
            .workspaces
            .iter()
            .filter(move |(name, _)| &***name != workspace);
        others.flat_map(|(_, index)| index.claims.values())
    }

    /// Routes of other workspaces that may get calls that this one gets too.
    pub fn beside<'c>(&'c self, claim: &'c Claim) -> impl Iterator<Item = &'c Arc<Claim>> {
        let others = self
            .workspaces
            .iter()
            .filter(|(name, _)| **name != claim.workspace);
        others.flat_map(|(_, index)| index.beside(claim))
    }
}

impl Index {
    fn put(&mut self, claim: Arc<Claim>) {
        let id = claim.id;
        self.each_key(&claim, |ids| {
            ids.insert(id);
        });
        self.claims.insert(id, claim);
    }

    fn remove(&mut self, id: Uuid) {
        let Some(claim) = self.claims.remove(&id) else {
            return;
        };
        self.each_key(&claim, |ids| {
            ids.remove(&id);
        });
        if let RouteClaim::Calls { matches, .. } = &claim.takes {
            for (it, _) in matches {
                self.begins.retain_if_filled(&it.path.begin());
                for host in full_hosts(it).into_iter().flatten() {
                    self.hosts.retain_if_filled(host);
                }
            }
        }
    }

    /// All sets that a claim is in.
    fn each_key(&mut self, claim: &Claim, mut change: impl FnMut(&mut BTreeSet<Uuid>)) {
        let RouteClaim::Calls { matches, .. } = &claim.takes else {
            return change(&mut self.sessions);
        };
        for (it, _) in matches {
            change(self.begins.entry(it.path.begin().into_owned()).or_default());
            match full_hosts(it) {
                Some(hosts) => {
                    for host in hosts {
                        change(self.hosts.entry(host.to_owned()).or_default());
                    }
                }
                None => change(&mut self.any_host),
            }
        }
    }

    fn beside(&self, claim: &Claim) -> Vec<&Arc<Claim>> {
        let mut ids: Vec<Uuid> = match &claim.takes {
            RouteClaim::Sessions(_) => self.sessions.iter().copied().collect(),
            RouteClaim::Calls { matches, .. } => matches
                .iter()
                .flat_map(|(it, _)| self.by_hosts(it).unwrap_or_else(|| self.by_path(it)))
                .collect(),
        };
        ids.sort_unstable();
        ids.dedup();
        ids.iter().filter_map(|id| self.claims.get(id)).collect()
    }

    /// Those whose hosts go together with the match's; `None`: they are many.
    fn by_hosts(&self, it: &RouteMatch) -> Option<Vec<Uuid>> {
        let hosts = full_hosts(it)?;
        let sets: Vec<&BTreeSet<Uuid>> = hosts
            .into_iter()
            .filter_map(|host| self.hosts.get(host))
            .collect();
        let count: usize = sets.iter().map(|set| set.len()).sum();
        (count + self.any_host.len() <= FEW).then(|| {
            let named = sets.into_iter().flatten();
            named.chain(&self.any_host).copied().collect()
        })
    }

    /// Those whose paths go together with the match's.
    fn by_path(&self, it: &RouteMatch) -> Vec<Uuid> {
        let begin = it.path.begin();
        let shorter = (0..begin.len())
            .filter_map(|end| begin.get(..end))
            .filter_map(|shorter| self.begins.get(shorter));
        let longer = self
            .begins
            .range::<str, _>((Bound::Included(&*begin), Bound::Unbounded))
            .take_while(|(known, _)| known.starts_with(&*begin))
            .map(|(_, ids)| ids);
        shorter.chain(longer).flatten().copied().collect()
    }
}

/// The hosts of a match, if all of them are full names.
fn full_hosts(it: &RouteMatch) -> Option<Vec<&str>> {
    let full = |pattern: &'_ HostPattern| matches!(pattern, HostPattern::Exact { .. });
    if it.hosts.is_empty() || !it.hosts.iter().all(full) {
        return None;
    }
    let hosts = it.hosts.iter().filter_map(|pattern| match pattern {
        HostPattern::Exact { host, .. } => Some(host.as_str()),
        _ => None,
    });
    Some(hosts.collect())
}

/// Maps of sets that hold no empty ones.
trait RetainNonEmpty {
    fn retain_if_filled(&mut self, key: &str);
}

impl RetainNonEmpty for BTreeMap<String, BTreeSet<Uuid>> {
    fn retain_if_filled(&mut self, key: &str) {
        if self.get(key).is_some_and(BTreeSet::is_empty) {
            self.remove(key);
        }
    }
}

impl RetainNonEmpty for HashMap<String, BTreeSet<Uuid>> {
    fn retain_if_filled(&mut self, key: &str) {
        if self.get(key).is_some_and(BTreeSet::is_empty) {
            self.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
