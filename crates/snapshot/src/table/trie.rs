//! The path index: a path-compressed trie in flat arrays, one root for each host of the table.
//!
//! Keys are the literal text of path patterns, with [`PARAMETER`] standing for one segment of any text. A walk
//! visits every key that the path begins with, so its cost follows the length of the path and the number of
//! branches on it, never the number of routes. What follows behind a key (nothing, anything, a segment's end, a
//! regular expression) is the candidate's own business.

use std::borrow::Cow;

/// Stands in keys for what a parameter takes: one or more bytes up to the next `/`. No path holds this byte.
pub(super) const PARAMETER: u8 = 0;
/// No node, no conditions, no pattern.
pub(super) const NONE: u32 = u32::MAX;

/// Something that may match once the walk has reached its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    /// Place in the table's order of precedence, the winner's the lowest. A match has one for each of its hosts.
    pub rank: u32,
    /// The route, as a position in the snapshot's list.
    pub route: u32,
    /// Position in the table's conditions, or [`NONE`].
    pub conditions: u32,
    /// Position in the table's patterns, or [`NONE`].
    pub pattern: u32,
    /// Bits of the methods (see `conditions::method_bit`).
    pub methods: u16,
    /// What may follow the key.
    pub tail: Tail,
    /// The pattern is a regular expression that has to be asked.
    pub is_regex: bool,
}

impl Candidate {
    /// Means that there is no candidate.
    const NONE: Self = Self {
        rank: NONE,
        route: NONE,
        conditions: NONE,
        pattern: NONE,
        methods: 0,
        tail: Tail::End,
        is_regex: false,
    };
}

/// What may follow a key in the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing.
    End,
    /// Anything.
    Open,
    /// Nothing, or further segments.
    Boundary,
}

impl Tail {
    /// Whether what follows `position` in `path` is allowed.
    #[inline]
    pub(super) fn allows(self, path: &[u8], position: usize) -> bool {
        match self {
            Self::End => position == path.len(),
            Self::Open => true,
            Self::Boundary => {
                position == path.len()
                    || path[position] == b'/'
                    || path[..position].last().is_some_and(|byte| *byte == b'/')
            }
        }
    }
}

/// A key with what to do when it is reached, for building.
pub(super) struct TrieEntry<'m> {
    /// The root.
    pub root: u32,
    /// Literal bytes and [`PARAMETER`].
    pub key: Cow<'m, [u8]>,
    /// What may match there.
    pub candidate: Candidate,
}

/// Works on the candidates of a walk.
pub(super) trait Visitor {
    /// Branches without a rank below this are passed over.
    fn bound(&self) -> u32;
    /// Looks at candidates of one key, lowest rank first; the key covers `position` bytes of the path. Those of one key
    /// may come in several parts.
    fn visit(&mut self, candidates: &[Candidate], position: usize);
}

/// A node fills a line of the cache: of a large index hardly any is in a near cache, and a walk looks at one line for
/// each node on its way.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Node {
    /// The first of this node's candidates; of no meaning if it has none.
    first: Candidate,
    /// Start of the label in `labels`: text behind the byte (or parameter) that leads here.
    label: u32,
    /// The first child that a byte leads to; the others follow it, in the order of their bytes.
    children: u32,
    /// The child that a parameter leads to, or `NONE`.
    parameter: u32,
    /// Start of this node's candidates.
    candidates: u32,
    candidate_count: u32,
    /// The lowest rank here and below.
    best: u32,
    label_len: u16,
    child_count: u16,
}

/// The index. Roots are its first nodes.
#[derive(Default)]
pub(super) struct Trie {
    nodes: Box<[Node]>,
    /// By node: the byte that leads to it from its parent.
    leading: Box<[u8]>,
    labels: Box<[u8]>,
    candidates: Box<[Candidate]>,
}

impl Trie {
    /// Builds the index of `roots` roots. Keys are at most 65,535 bytes long.
    pub(super) fn build(entries: &[TrieEntry<'_>], roots: u32) -> Self {
        // Entries are large, so only their places are moved.
        let mut entries: Vec<&TrieEntry<'_>> = entries.iter().collect();
        entries.sort_unstable_by(|a, b| {
            (a.root, &a.key, a.candidate.rank).cmp(&(b.root, &b.key, b.candidate.rank))
        });
        let mut builder = Builder {
            spans: Vec::with_capacity(entries.len() + entries.len() / 4),
            leading: Vec::with_capacity(entries.len() + entries.len() / 4),
            labels: Vec::new(),
            entries: &entries,
        };
        let mut start = 0;
        for root in 0..roots {
            let end = start + entries[start..].partition_point(|entry| entry.root == root);
            builder.enqueue(start, end, 0, 0);
            start = end;
        }
        let mut nodes = Vec::with_capacity(entries.len() + entries.len() / 4);
        while nodes.len() < builder.spans.len() {
            let node = builder.node(nodes.len());
            nodes.push(node);
        }
        // Children come behind their parents, so backwards every child is done before its parent.
        for index in (0..nodes.len()).rev() {
            let node = nodes[index];
            let children = node.children as usize..node.children as usize + usize::from(node.child_count);
            let parameter = (node.parameter != NONE).then_some(node.parameter as usize);
            let below = children.chain(parameter).map(|child| nodes[child].best);
            nodes[index].best = below.fold(node.best, u32::min);
        }
        let Builder { leading, labels, .. } = builder;
        Self {
            nodes: nodes.into(),
            leading: leading.into(),
            labels: labels.into(),
            candidates: entries.iter().map(|entry| entry.candidate).collect(),
        }
    }

    /// Visits every key under `root` that `path` begins with.
    #[inline]
    pub(super) fn walk(&self, root: u32, path: &[u8], visitor: &mut impl Visitor) {
        self.walk_from(root, path, 0, visitor);
    }

    // Recursion goes one deeper for each node with a parameter on the path: bounded by the length of keys.
    fn walk_from(&self, mut index: u32, path: &[u8], mut position: usize, visitor: &mut impl Visitor) {
        loop {
            let node = &self.nodes[index as usize];
            if node.best >= visitor.bound() {
                return;
            }
            if node.label_len != 0 {
                let label = &self.labels[node.label as usize..][..usize::from(node.label_len)];
                if !path[position..].starts_with(label) {
                    return;
                }
                position += label.len();
            }
            if node.candidate_count != 0 {
                visitor.visit(std::slice::from_ref(&node.first), position);
            }
            if node.candidate_count > 1 {
                let candidates = &self.candidates[node.candidates as usize..];
                visitor.visit(&candidates[1..node.candidate_count as usize], position);
            }
            let Some(&byte) = path.get(position) else {
                return;
            };
            let child = self.child(node, byte);
            if node.parameter == NONE {
                match child {
                    Some(child) => (index, position) = (child, position + 1),
                    None => return,
                }
                continue;
            }
            if let Some(child) = child {
                self.walk_from(child, path, position + 1, visitor);
            }
            if byte == b'/' {
                return;
            }
            index = node.parameter;
            position = segment_end(path, position);
        }
    }

    #[inline]
    fn child(&self, node: &Node, byte: u8) -> Option<u32> {
        let leading = &self.leading[node.children as usize..][..usize::from(node.child_count)];
        let offset = leading.iter().position(|it| *it == byte)?;
        Some(node.children + offset as u32)
    }
}

/// Where the segment that holds `position` ends.
#[inline]
pub(super) fn segment_end(path: &[u8], position: usize) -> usize {
    let rest = path[position..].iter();
    rest.take_while(|byte| **byte != b'/').count() + position
}

struct Builder<'e, 'm> {
    /// Sorted by root, key and rank.
    entries: &'e [&'e TrieEntry<'m>],
    /// By node: its entries, and how many bytes of their keys lead to it.
    spans: Vec<(u32, u32, u16)>,
    leading: Vec<u8>,
    labels: Vec<u8>,
}

impl Builder<'_, '_> {
    /// Gives the entries from `start` to `end` a node of their own, to be made when its turn comes.
    fn enqueue(&mut self, start: usize, end: usize, depth: usize, leading: u8) -> u32 {
        let index = self.spans.len() as u32;
        self.spans.push((start as u32, end as u32, depth as u16));
        self.leading.push(leading);
        index
    }

    fn node(&mut self, index: usize) -> Node {
        let (start, end, depth) = self.spans[index];
        let (start, end, depth) = (start as usize, end as usize, usize::from(depth));
        let entries = &self.entries[start..end];
        let label = common_label(entries, depth);
        let depth = depth + label.len();
        let label_start = self.labels.len() as u32;
        self.labels.extend_from_slice(label);
        let here = entries.partition_point(|entry| entry.key.len() == depth);
        let first = entries.first().filter(|_| here > 0).map(|it| it.candidate);
        let mut node = Node {
            first: first.unwrap_or(Candidate::NONE),
            label: label_start,
            children: 0,
            parameter: NONE,
            candidates: start as u32,
            candidate_count: here as u32,
            best: first.map_or(NONE, |it| it.rank),
            label_len: label.len() as u16,
            child_count: 0,
        };
        let mut from = here;
        while from < entries.len() {
            let byte = entries[from].key[depth];
            let to = from + entries[from..].partition_point(|entry| entry.key[depth] == byte);
            let child = self.enqueue(start + from, start + to, depth + 1, byte);
            if byte == PARAMETER {
                node.parameter = child;
            } else {
                node.children = if node.child_count == 0 {
                    child
                } else {
                    node.children
                };
                node.child_count += 1;
            }
            from = to;
        }
        node
    }
}

/// What all keys have in common behind `depth`, up to the first parameter.
fn common_label<'e>(entries: &[&'e TrieEntry<'_>], depth: usize) -> &'e [u8] {
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
        return &[];
    };
    let (first, last) = (&first.key[depth..], &last.key[depth..]);
    let same = first.iter().zip(last);
    let length = same.take_while(|(a, b)| a == b && **a != PARAMETER).count();
    &first[..length]
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Collect(Vec<(u32, usize)>);

    impl Visitor for Collect {
        fn bound(&self) -> u32 {
            u32::MAX
        }
        fn visit(&mut self, candidates: &[Candidate], position: usize) {
            self.0.extend(candidates.iter().map(|it| (it.rank, position)));
        }
    }

    fn trie(keys: &[&'static str]) -> Trie {
        let entries = keys.iter().enumerate().map(|(rank, key)| TrieEntry {
            root: 0,
            key: Cow::Borrowed(key.as_bytes()),
            candidate: Candidate {
                rank: rank as u32,
                route: rank as u32,
                conditions: NONE,
                pattern: NONE,
                methods: u16::MAX,
                tail: Tail::Open,
                is_regex: false,
            },
        });
        let entries: Vec<TrieEntry<'_>> = entries.collect();
        Trie::build(&entries, 1)
    }

    #[test]
    fn walks_visit_every_key_that_the_path_begins_with() {
        let keys = [
            "", "/a", "/ab", "/a/\0", "/a/\0/x", "/a/b", "/a/b/x", "/\0/b/x", "/a", "/\0",
        ];
        let trie = trie(&keys);
        for (path, wanted) in [
            ("", vec![(0, 0)]),
            ("/", vec![(0, 0)]),
            ("/a", vec![(0, 0), (1, 2), (8, 2), (9, 2)]),
            ("/abc", vec![(0, 0), (1, 2), (2, 3), (8, 2), (9, 4)]),
            (
                "/a/b/x",
                vec![
                    (0, 0),
                    (1, 2),
                    (3, 4),
                    (4, 6),
                    (5, 4),
                    (6, 6),
                    (7, 6),
                    (8, 2),
                    (9, 2),
                ],
            ),
            ("/a//x", vec![(0, 0), (1, 2), (8, 2), (9, 2)]),
            ("/z/b/x", vec![(0, 0), (7, 6), (9, 2)]),
            ("x", vec![(0, 0)]),
        ] {
            let mut visitor = Collect(Vec::new());
            trie.walk(0, path.as_bytes(), &mut visitor);
            visitor.0.sort_unstable();
            assert_eq!(visitor.0, wanted, "{path}");
        }
    }

    #[test]
    fn nodes_fill_a_line_of_the_cache() {
        assert_eq!((size_of::<Node>(), align_of::<Node>()), (64, 64));
    }

    #[test]
    fn tails_bind_what_follows() {
        for (tail, path, position, allowed) in [
            (Tail::End, "/a", 2, true),
            (Tail::End, "/ab", 2, false),
            (Tail::Open, "/ab", 2, true),
            (Tail::Boundary, "/a", 2, true),
            (Tail::Boundary, "/a/b", 2, true),
            (Tail::Boundary, "/ab", 2, false),
            (Tail::Boundary, "/ab", 1, true),
        ] {
            assert_eq!(tail.allows(path.as_bytes(), position), allowed, "{tail:?} {path}");
        }
    }
}
