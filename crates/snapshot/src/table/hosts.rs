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
    lengths: Vec<usize>,
}

impl Wildcards {
    fn slot(&mut self, text: &str) -> &mut u32 {
        if let Err(place) = self.lengths.binary_search_by(|length| text.len().cmp(length)) {
            self.lengths.insert(place, text.len());
        }
        self.roots.entry(text.as_bytes().into()).or_insert(u32::MAX)
    }
}

impl Hosts {
    /// The root for this pattern (its port aside); made if there is none.
    pub(super) fn root(&mut self, pattern: &HostPattern) -> u32 {
        let slot = match pattern {
            HostPattern::Any => self.any.get_or_insert(u32::MAX),
            HostPattern::Exact { host, .. } => match self.exact.get_mut(host.as_bytes()) {
                Some(root) => return *root,
                None => self.exact.entry(host.as_bytes().into()).or_insert(u32::MAX),
            },
            HostPattern::Suffix { suffix, .. } => self.suffixes.slot(suffix),
            HostPattern::Prefix { prefix, .. } => self.prefixes.slot(prefix),
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
        // A wildcard stands for at least one character, and beside it is a dot.
        for &length in &self.suffixes.lengths {
            if host.len() > length && host[host.len() - length] == b'.' {
                let suffix = &host[host.len() - length..];
                self.suffixes
                    .roots
                    .get(suffix)
                    .copied()
                    .into_iter()
                    .for_each(&mut visit);
            }
        }
        for &length in &self.prefixes.lengths {
            if host.len() > length && host[length - 1] == b'.' {
                let prefix = &host[..length];
                self.prefixes
                    .roots
                    .get(prefix)
                    .copied()
                    .into_iter()
                    .for_each(&mut visit);
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
