//! The hosts of a table: each leads to a root of the path index.

use std::collections::HashMap;
use weir_model::HostPattern;

type Roots = HashMap<Box<[u8]>, u32, foldhash::fast::RandomState>;

/// Which roots of the path index a host leads to.
#[derive(Default)]
pub(super) struct Hosts {
    count: u32,
    any: Option<u32>,
    exact: Roots,
    suffixes: Wildcards,
    prefixes: Wildcards,
}

/// Wildcard hosts by their literal part.
#[derive(Default)]
struct Wildcards {
    roots: Roots,
    /// The lengths that literal parts have, longest first.
    lengths: Vec<Length>,
}

struct Length {
    bytes: usize,
    /// All literal parts of this length have a dot beside the wildcard, so only such hosts are looked up.
    dotted: bool,
}

impl Wildcards {
    fn slot(&mut self, text: &str, is_dotted: bool) -> &mut u32 {
        let place = self
            .lengths
            .binary_search_by(|length| text.len().cmp(&length.bytes));
        match place {
            Ok(place) => self.lengths[place].dotted &= is_dotted,
            Err(place) => {
                let length = Length {
                    bytes: text.len(),
                    dotted: is_dotted,
                };
                self.lengths.insert(place, length);
            }
        }
        self.roots.entry(text.as_bytes().into()).or_insert(u32::MAX)
    }
}

impl Hosts {
    /// The root for this pattern (without its port); created if there is none.
    pub(super) fn root(&mut self, pattern: &HostPattern) -> u32 {
        let slot = match pattern {
            HostPattern::Any => self.any.get_or_insert(u32::MAX),
            HostPattern::Exact { host, .. } => match self.exact.get_mut(host.as_bytes()) {
                Some(root) => return *root,
                None => self.exact.entry(host.as_bytes().into()).or_insert(u32::MAX),
            },
            HostPattern::Suffix { suffix, .. } => self.suffixes.slot(suffix, suffix.starts_with('.')),
            HostPattern::Prefix { prefix, .. } => self.prefixes.slot(prefix, prefix.ends_with('.')),
        };
        if *slot == u32::MAX {
            *slot = self.count;
            self.count += 1;
        }
        *slot
    }

    /// The number of roots.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Calls `visit` with every root that `host` leads to, the more specific first.
    #[inline]
    pub(super) fn for_each(&self, host: &[u8], mut visit: impl FnMut(u32)) {
        if !self.exact.is_empty()
            && let Some(root) = self.exact.get(host)
        {
            visit(*root);
        }
        // A wildcard stands for at least one character.
        for length in &self.suffixes.lengths {
            let Some(start @ 1..) = host.len().checked_sub(length.bytes) else {
                continue;
            };
            if (!length.dotted || host[start] == b'.')
                && let Some(root) = self.suffixes.roots.get(&host[start..])
            {
                visit(*root);
            }
        }
        for length in &self.prefixes.lengths {
            if host.len() > length.bytes
                && (!length.dotted || host[length.bytes - 1] == b'.')
                && let Some(root) = self.prefixes.roots.get(&host[..length.bytes])
            {
                visit(*root);
            }
        }
        if let Some(root) = self.any {
            visit(root);
        }
    }

    /// All roots with their host patterns as texts.
    pub(super) fn texts(&self) -> impl Iterator<Item = (u32, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let exact = self.exact.iter().map(move |(host, root)| (*root, text(host)));
        let suffixes = self.suffixes.roots.iter();
        let suffixes = suffixes.map(move |(suffix, root)| (*root, format!("*{}", text(suffix))));
        let prefixes = self.prefixes.roots.iter();
        let prefixes = prefixes.map(move |(prefix, root)| (*root, format!("{}*", text(prefix))));
        let any = self.any.iter().map(|root| (*root, "*".to_owned()));
        exact.chain(suffixes).chain(prefixes).chain(any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_lead_to_the_roots_of_their_patterns() {
        let suffix = |text: &str| HostPattern::Suffix {
            suffix: text.to_owned(),
            port: None,
        };
        let prefix = |text: &str| HostPattern::Prefix {
            prefix: text.to_owned(),
            port: None,
        };
        let parse = |text: &str| HostPattern::parse(text).expect("valid");
        let mut hosts = Hosts::default();
        let patterns = [
            parse("a.com"),
            parse("*.com"),
            parse("*.a.com"),
            parse("www.*"),
            HostPattern::Any,
            // The text form has none of these, but dialects may.
            suffix("foo"),
            suffix(""),
            prefix(""),
        ];
        for (root, pattern) in patterns.iter().enumerate() {
            assert_eq!(hosts.root(pattern), root as u32);
            assert_eq!(hosts.root(pattern), root as u32);
        }
        assert_eq!(hosts.count(), patterns.len() as u32);
        for (host, roots) in [
            ("a.com", vec![0, 1, 6, 7, 4]),
            ("b.a.com", vec![2, 1, 6, 7, 4]),
            (".com", vec![6, 7, 4]),
            ("www.x", vec![6, 3, 7, 4]),
            ("www.", vec![6, 7, 4]),
            ("barfoo", vec![5, 6, 7, 4]),
            ("foo", vec![6, 7, 4]),
            ("", vec![4]),
        ] {
            let mut found = Vec::new();
            hosts.for_each(host.as_bytes(), |root| found.push(root));
            assert_eq!(found, roots, "{host}");
        }
    }
}
