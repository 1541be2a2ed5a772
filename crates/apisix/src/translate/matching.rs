//! Which calls a route takes, and which of several routes wins: APISIX's three routers as matches with ordinals.
//!
//! All three sort candidates the same way once their hosts are decided: an exact path, then the longer prefix, then
//! the higher `priority`, then the longer pattern, then the first in the document. They differ in what comes before
//! (the default router looks at hosts first) and in how paths are read (one knows parameters).

use super::patterns::{PathRank, host_pattern, path_pattern};
use crate::settings::Router;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::net::IpAddr;
use weir_model::{HostPattern, PathPattern, Predicate, RouteMatch};

/// How specific a candidate is. Of two that match a call, the greater wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    host: HostRank,
    path: PathRank,
    priority: i64,
    /// Length of a pattern with parameters; others of equal rank are equally long.
    pattern: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum HostRank {
    /// The route names no host, or the router does not look at hosts first.
    None,
    /// A wildcard before so many characters.
    Wildcard(usize),
    Exact,
}

/// The common part of all matches of a route.
#[derive(Debug)]
pub struct Conditions {
    pub methods: Vec<String>,
    pub remote_addrs: Vec<IpNet>,
    pub when: Option<Predicate>,
    pub priority: i64,
}

/// The matches of a route under a router, each with its rank. Paths or hosts that can never match are left out.
pub fn candidates<'p>(
    router: Router,
    drops_tail_slash: bool,
    paths: impl Iterator<Item = &'p str>,
    hosts: Option<&[&str]>,
    conditions: &Conditions,
) -> Vec<(Rank, RouteMatch)> {
    let host_groups = host_groups(router, hosts);
    let mut found = Vec::new();
    // A pattern that begins with anything else matches no path.
    for path in paths.filter(|path| path.starts_with(['/', '*'])) {
        let (pattern, path_rank) = path_pattern(router, path);
        if drops_tail_slash && matches!(&pattern, PathPattern::Exact(path) if path.ends_with('/')) {
            continue;
        }
        for group in &host_groups {
            let rank = Rank {
                host: group.rank,
                path: path_rank,
                priority: conditions.priority,
                pattern: match path_rank {
                    PathRank::Prefix(_) => path.len(),
                    PathRank::Exact => 0,
                },
            };
            let mut all = Vec::new();
            all.extend(conditions.when.clone());
            all.extend(group.when.clone());
            let matches = RouteMatch {
                hosts: group.hosts.clone(),
                path: pattern.clone(),
                methods: conditions.methods.clone(),
                remote_addrs: conditions.remote_addrs.clone(),
                when: match all.len() {
                    0 | 1 => all.pop(),
                    _ => Some(Predicate::All(all)),
                },
                ..RouteMatch::default()
            };
            found.push((rank, matches));
        }
    }
    found
}

/// Turns ranks into ordinals, in place: equal ranks get equal ones, and then the first in the document wins.
pub fn assign_precedence(matches: &mut [(Rank, &mut RouteMatch)]) {
    let ordinals = ordinals(matches.iter().map(|(rank, _)| rank));
    for (rank, route_match) in matches {
        route_match.precedence = ordinals.get(rank).copied();
    }
}

/// The ordinal of each rank: 1 for the lowest. There are few ranks, however many matches have them.
pub fn ordinals<'r>(ranks: impl Iterator<Item = &'r Rank>) -> BTreeMap<Rank, u64> {
    let mut ordinals: BTreeMap<Rank, u64> = ranks.map(|rank| (*rank, 0)).collect();
    for (ordinal, place) in (1..).zip(ordinals.values_mut()) {
        *place = ordinal;
    }
    ordinals
}

/// Hosts that rank alike.
struct HostGroup {
    rank: HostRank,
    hosts: Vec<HostPattern>,
    /// For wildcards that no host pattern of the model says.
    when: Option<Predicate>,
}

fn host_groups(router: Router, hosts: Option<&[&str]>) -> Vec<HostGroup> {
    let Some(hosts) = hosts else {
        return vec![HostGroup {
            rank: HostRank::None,
            hosts: Vec::new(),
            when: None,
        }];
    };
    let by_host = router == Router::RadixtreeHostUri;
    let mut groups: Vec<HostGroup> = Vec::new();
    for host in hosts {
        let host = host.to_ascii_lowercase();
        let rank = match (by_host, host.strip_prefix('*')) {
            (false, _) => HostRank::None,
            (true, Some(rest)) => HostRank::Wildcard(rest.len()),
            (true, None) => HostRank::Exact,
        };
        let (pattern, when) = match host_pattern(&host, by_host) {
            Some(found) => found,
            None => continue,
        };
        let group = groups
            .iter_mut()
            .find(|group| group.rank == rank && group.when.is_none() && when.is_none());
        // The wildcard of `*.a.com` may stand for nothing.
        let bare = match &pattern {
            HostPattern::Suffix { suffix, port } if suffix.starts_with('.') => Some(HostPattern::Exact {
                host: suffix.clone(),
                port: *port,
            }),
            _ => None,
        };
        let patterns = bare.into_iter().chain([pattern]);
        match group {
            Some(group) => group.hosts.extend(patterns),
            None => groups.push(HostGroup {
                rank,
                hosts: patterns.collect(),
                when,
            }),
        }
    }
    groups
}

/// The networks of `remote_addr` and `remote_addrs`, which have been checked.
pub fn networks<'a>(addresses: impl Iterator<Item = &'a str>) -> Vec<IpNet> {
    addresses
        .filter_map(|text| {
            let network = text.parse::<IpNet>();
            network.or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Reverse;

    fn ordered(router: Router, drops_tail_slash: bool, routes: &[(&str, Option<&str>, i64)]) -> Vec<String> {
        let mut all = Vec::new();
        for (path, host, priority) in routes {
            let conditions = Conditions {
                methods: Vec::new(),
                remote_addrs: Vec::new(),
                when: None,
                priority: *priority,
            };
            let hosts: Option<Vec<&str>> = host.map(|hosts| hosts.split(' ').collect());
            all.extend(candidates(
                router,
                drops_tail_slash,
                std::iter::once(*path),
                hosts.as_deref(),
                &conditions,
            ));
        }
        let (ranks, mut matches): (Vec<Rank>, Vec<RouteMatch>) = all.into_iter().unzip();
        let mut ranked: Vec<(Rank, &mut RouteMatch)> = ranks.into_iter().zip(matches.iter_mut()).collect();
        assign_precedence(&mut ranked);
        matches.sort_by_key(|it| Reverse(it.precedence));
        matches
            .iter()
            .map(|it| {
                let hosts: Vec<String> = it.hosts.iter().map(ToString::to_string).collect();
                let when = if it.when.is_some() { "?" } else { "" };
                format!(
                    "{} {} {}{when}",
                    it.precedence.unwrap_or(0),
                    hosts.join(","),
                    it.path
                )
            })
            .collect()
    }

    #[test]
    fn the_default_router_looks_at_hosts_first() {
        assert_eq!(
            ordered(
                Router::RadixtreeHostUri,
                false,
                &[
                    ("/x/y/z", None, 9),
                    ("/x/*", Some("a.com B.com:80"), 0),
                    ("/x/y/*", Some("*.com"), 5),
                    ("/x/y/z", Some("*.a.com *.com"), 0),
                    ("*", Some("*"), 0),
                    ("/x/y/z", None, 9),
                    ("/m", Some("*x.org"), 0),
                ],
            ),
            [
                "7 a.com /x/*",
                "6 .a.com,*.a.com =/x/y/z",
                "5 * =/m?",
                "4 .com,*.com =/x/y/z",
                "3 .com,*.com /x/y/*",
                "2 * *",
                "1  =/x/y/z",
                "1  =/x/y/z",
            ]
        );
    }

    #[test]
    fn the_other_routers_look_at_paths_only() {
        assert_eq!(
            ordered(
                Router::RadixtreeUri,
                false,
                &[
                    ("/h", Some("*.a.com"), 1),
                    ("/h", Some("b.a.com"), 0),
                    ("/h*", None, 9),
                    ("/u/:id", None, 0),
                    ("/g/*", None, 0),
                    ("/g/*/:x", None, 0),
                ],
            ),
            [
                "5 .a.com,*.a.com =/h",
                "4 b.a.com =/h",
                "4  =/u/:id",
                "3  ~/g/(?s:.*)/:x$",
                "2  /g/*",
                "1  /h*"
            ]
        );
        assert_eq!(
            ordered(
                Router::RadixtreeUriWithParameter,
                false,
                &[
                    ("/user/:id", None, 0),
                    ("/user/:id/posts/:post", None, 0),
                    ("/files/*path", None, 0),
                    ("/user/me", None, 0),
                    ("/plain/*", None, 0),
                    ("/a:b", None, 0),
                    ("/g/*/x", None, 0),
                ],
            ),
            [
                "7  =/user/me",
                "6  /files/{path*}",
                "5  /plain/*",
                "4  /user/{id}/posts/{post}",
                "3  /user/{id}",
                "2  ~/g/(?s:.*)/x$",
                "1  /a*",
            ]
        );
    }

    #[test]
    fn no_path_ends_with_a_slash_where_it_is_dropped() {
        assert_eq!(
            ordered(
                Router::RadixtreeUri,
                true,
                &[
                    ("/h", None, 0),
                    ("/t/", None, 0),
                    ("/api/*", None, 0),
                    ("/f*", None, 0)
                ],
            ),
            ["3  =/h", "2  /api/*", "1  /f*"]
        );
    }
}
