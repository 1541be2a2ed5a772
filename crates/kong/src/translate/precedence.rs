//! Which of several matches that hold wins, by the rules of Kong's routers. Each path of a route stands for
//! itself; matches are sorted by keys and numbered.

use super::path::is_regex;
use crate::RouterFlavor;
use crate::document::Route;
use std::cmp::Reverse;
use uuid::{Uuid, uuid};

/// The place of a match in the order: the greater wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Of the router `traditional_compatible`: a packed number, then the route's id.
    Compatible(u64, Uuid),
    /// Of the router `traditional`.
    Traditional {
        /// How many kinds of conditions there are.
        conditions: u32,
        /// Which kinds: hosts before headers, paths, methods, server names.
        category: u32,
        /// A full host with a port, which is looked up before the host alone.
        has_port: bool,
        /// Hosts with a wildcard and a port, no wildcard among the hosts, a regular expression.
        details: u32,
        /// How many headers are asked for.
        headers: usize,
        /// Regular expressions have a priority of their own.
        regex_priority: i64,
        /// The longer path.
        path_length: usize,
        /// The route that comes first in the document.
        position: Reverse<usize>,
    },
}

/// The rank of the match of `route`, the one at `position`, for `path`, one of its paths, and hosts of which all or
/// none are full names with a port.
pub fn rank(
    router: RouterFlavor,
    route: &Route,
    path: Option<&str>,
    has_port: bool,
    position: usize,
) -> Rank {
    match router {
        RouterFlavor::Traditional => traditional(route, path, has_port, position),
        RouterFlavor::TraditionalCompatible => {
            Rank::Compatible(packed_priority(route, path), group_id(route, path))
        }
    }
}

/// The number that the original packs a route's conditions into.
///
/// It means to have, from the highest bit: 3 bits number of conditions, 1 bit no wildcard among the hosts, 8 bits number
/// of headers, 1 bit regular expression, 32 bits its priority, 19 bits length of a plain path. But only the two single
/// bits are 64 bits wide there. All other parts are plain numbers, which its shifts cut to 32 bits with a sign: the
/// number of conditions comes out at bit 29, the number of headers at bit 20. Thus full hosts go before regular
/// expressions, these before the number of conditions; and four conditions or more, a negative number, before all.
fn packed_priority(route: &Route, path: Option<&str>) -> u64 {
    let is_regex = path.is_some_and(is_regex);
    let conditions = kinds(route, path).iter().filter(|given| **given).count() as i64;
    let has_plain_hosts_only = !route.hosts.is_empty() && !route.hosts.iter().any(|host| host.contains('*'));
    let regex_priority = route.regex_priority.filter(|_| is_regex).unwrap_or(0);
    let path_length = path.filter(|_| !is_regex).map_or(0, str::len) as u64;
    shifted(conditions, 61)
        | (u64::from(has_plain_hosts_only) << 60)
        | shifted(route.headers.len().min(255) as i64, 52)
        | (u64::from(is_regex) << 51)
        | shifted(regex_priority, 19)
        | (path_length & 0x7_ffff)
}

/// A plain number, shifted as LuaJIT's `bit.lshift` does it: in 32 bits, by the last five bits of the distance, with a
/// sign that fills the upper half.
fn shifted(number: i64, by: u32) -> u64 {
    let low = (number as u32).wrapping_shl(by);
    i64::from(low as i32) as u64
}

/// The original splits a route by the length of its paths and makes up an id for each part; equal priorities
/// are ordered by these ids.
fn group_id(route: &Route, path: Option<&str>) -> Uuid {
    const NAMESPACE: Uuid = uuid!("7f145bf9-0dce-4f91-98eb-debbce4b9f6b");
    let length = |path: &str| if is_regex(path) { 0 } else { path.len() };
    let Some(path) = path else {
        return route.id;
    };
    let mut lengths: Vec<usize> = Vec::new();
    for path in &route.paths {
        if !lengths.contains(&length(path)) {
            lengths.push(length(path));
        }
    }
    if lengths.len() < 2 {
        return route.id;
    }
    let group = lengths.iter().position(|it| *it == length(path)).unwrap_or(0) + 1;
    Uuid::new_v5(&NAMESPACE, format!("{}#{group}", route.id).as_bytes())
}

/// Hosts, headers, paths, methods and server names: which of them the match asks for.
fn kinds(route: &Route, path: Option<&str>) -> [bool; 5] {
    [
        !route.hosts.is_empty(),
        !route.headers.is_empty(),
        path.is_some(),
        !route.methods.is_empty(),
        !route.snis.is_empty(),
    ]
}

fn traditional(route: &Route, path: Option<&str>, has_port: bool, position: usize) -> Rank {
    let kinds = kinds(route, path);
    let category = kinds
        .iter()
        .fold(0, |category, given| (category << 1) | u32::from(*given));
    let has_wildcard = |host: &String| host.contains('*');
    let has_wildcard_and_port = |host: &String| has_wildcard(host) && host.contains(':');
    let is_regex = path.is_some_and(is_regex);
    let details = (u32::from(route.hosts.iter().any(has_wildcard_and_port)) << 2)
        | (u32::from(!route.hosts.is_empty() && !route.hosts.iter().any(has_wildcard)) << 1)
        | u32::from(is_regex);
    Rank::Traditional {
        conditions: category.count_ones(),
        category,
        has_port,
        details,
        headers: route.headers.len(),
        regex_priority: route.regex_priority.filter(|_| is_regex).unwrap_or(0),
        path_length: path.map_or(0, str::len),
        position: Reverse(position),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    /// The results of LuaJIT with the original's formula for the same routes.
    #[test]
    fn conditions_are_packed_as_by_the_original() {
        for (conditions, path, packed) in [
            (json!({}), "~/a", 0x0008_0000_2000_0000),
            (json!({"methods": ["GET"]}), "/abcd", 0x4000_0005),
            (json!({"hosts": ["a.test"]}), "/abcd", 0x1000_0000_4000_0005),
            (json!({"hosts": ["*.test"]}), "/abcd", 0x4000_0005),
            (
                json!({"hosts": ["a.test"], "methods": ["GET"]}),
                "/abcd",
                0x1000_0000_6000_0005,
            ),
            (
                json!({"hosts": ["a.test"], "methods": ["GET"], "headers": {"a": ["b"]}}),
                "/abcd",
                0xffff_ffff_8010_0005,
            ),
            (
                json!({"methods": ["GET"], "headers": {"a": ["b"], "c": ["d"]}}),
                "/abcd",
                0x6020_0005,
            ),
            (json!({"regex_priority": -1}), "~/a", 0xffff_ffff_fff8_0000),
            (
                json!({"methods": ["GET"], "regex_priority": 5000}),
                "~/a",
                0xffff_ffff_dc40_0000,
            ),
            (
                json!({"methods": ["GET"], "regex_priority": 8192}),
                "~/a",
                0x0008_0000_4000_0000,
            ),
        ] {
            let mut route = json!({
                "id": Uuid::nil(),
                "protocols": ["http"],
                "https_redirect_status_code": 426,
                "strip_path": true,
                "preserve_host": false,
                "paths": [path],
            });
            let all = route.as_object_mut().expect("an object");
            all.extend(conditions.as_object().expect("an object").clone());
            let route = Route::deserialize(&route).expect("a route");
            let found = packed_priority(&route, Some(path));
            assert_eq!(found, packed, "{conditions} {path}: {found:#018x}");
        }
    }
}
