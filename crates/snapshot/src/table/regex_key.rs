//! What a regular expression says about the paths that it can match, as a key of the path index.
//!
//! The key only narrows down which expressions are asked, so it has to hold for every path that matches, and may
//! hold for others. It follows the expression as long as that is plain: literal text, and pieces that fill a
//! segment (`[^/]+`, `\d+`, `(?<id>\w+)`), which is what paths of API descriptions become.

use super::trie::PARAMETER;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// Segments of any text in one key at most; what follows the last is not indexed.
const MAX_PARAMETERS: usize = 16;

/// The key of an expression that is anchored at the start, and whether the path ends with it.
pub(super) fn regex_key(expression: &Hir) -> (Vec<u8>, bool) {
    let mut atoms = Vec::new();
    flatten(expression, &mut atoms);
    let mut key = Vec::new();
    let mut parameters = 0;
    let mut position = 0;
    while let Some(atom) = atoms.get(position) {
        position += 1;
        match atom.kind() {
            HirKind::Empty => {}
            HirKind::Look(Look::End) => return (key, true),
            HirKind::Look(_) => {}
            HirKind::Literal(literal) => {
                for byte in &literal.0 {
                    if *byte == PARAMETER || key.len() == super::MAX_PATTERN {
                        return (key, false);
                    }
                    key.push(*byte);
                }
            }
            _ => {
                let run = Run::of(&atoms[position - 1..]);
                parameters += 1;
                if run.atoms == 0 || run.minimum == 0 || parameters > MAX_PARAMETERS {
                    return (key, false);
                }
                key.push(PARAMETER);
                if run.tail.is_empty() && !run.ends {
                    return (key, false);
                }
                key.extend_from_slice(run.tail);
                position += run.atoms - 1;
            }
        }
    }
    (key, false)
}

/// The expression's parts in order; groups are opened.
fn flatten<'h>(expression: &'h Hir, atoms: &mut Vec<&'h Hir>) {
    match expression.kind() {
        HirKind::Concat(parts) => parts.iter().for_each(|part| flatten(part, atoms)),
        HirKind::Capture(capture) => flatten(&capture.sub, atoms),
        _ => atoms.push(expression),
    }
}

/// Parts that together fill what is left of one segment.
struct Run<'h> {
    /// How many parts, counting the literal that `tail` is of.
    atoms: usize,
    /// The fewest bytes that they take within the segment.
    minimum: usize,
    /// From the `/` behind the segment to the end of the literal in which it stands.
    tail: &'h [u8],
    /// The path's end follows.
    ends: bool,
}

impl<'h> Run<'h> {
    fn of(atoms: &[&'h Hir]) -> Self {
        let mut run = Self {
            atoms: 0,
            minimum: 0,
            tail: &[],
            ends: false,
        };
        for atom in atoms {
            match atom.kind() {
                HirKind::Look(Look::End) => {
                    run.ends = true;
                    return run;
                }
                HirKind::Literal(literal) => {
                    run.atoms += 1;
                    let slash = literal.0.iter().position(|byte| *byte == b'/');
                    run.minimum += slash.unwrap_or(literal.0.len());
                    if let Some(slash) = slash {
                        let tail = &literal.0[slash..];
                        let clean = !tail.contains(&PARAMETER) && tail.len() <= super::MAX_PATTERN;
                        run.tail = if clean { tail } else { &[] };
                        return run;
                    }
                }
                _ if stays_in_segment(atom) => {
                    run.atoms += 1;
                    run.minimum += atom.properties().minimum_len().unwrap_or(0);
                }
                _ => return run,
            }
        }
        run
    }
}

/// Whether no match of this part holds a `/`.
fn stays_in_segment(part: &Hir) -> bool {
    match part.kind() {
        HirKind::Empty => true,
        // An end within a run is for the caller to see.
        HirKind::Look(look) => *look != Look::End,
        HirKind::Literal(literal) => !literal.0.contains(&b'/'),
        HirKind::Class(Class::Bytes(class)) => class
            .iter()
            .all(|range| !(range.start()..=range.end()).contains(&b'/')),
        HirKind::Class(Class::Unicode(class)) => class
            .iter()
            .all(|range| !(range.start()..=range.end()).contains(&'/')),
        HirKind::Repetition(repetition) => stays_in_segment(&repetition.sub),
        HirKind::Capture(capture) => stays_in_segment(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().all(stays_in_segment),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hold_for_all_that_matches() {
        for (expression, key, ends) in [
            ("/a/b", "/a/b", false),
            ("/a/b$", "/a/b", true),
            ("^/a", "/a", false),
            (r"/v1\.0/x", "/v1.0/x", false),
            (r"/v\d+/x", "/v\0/x", false),
            (r"/users/(?<id>[^#?/]+)$", "/users/\0", true),
            (r"/users/(?<id>[^/]+)/posts/(\d+)$", "/users/\0/posts/\0", true),
            (r"/users/(?<id>[^/]+)\.json/x", "/users/\0/x", false),
            (r"/users/[^/]+", "/users/\0", false),
            (r"/users/[^/]*/x", "/users/", false),
            (r"/users/\d?x/y", "/users/\0/y", false),
            ("/a(/b)?/c", "/a", false),
            ("/ab?c", "/a\0", false),
            ("/a|/b", "", false),
            ("/(a|b)/c", "/\0/c", false),
            ("/.*", "/", false),
            ("(?i)/a/b", "/\0/\0", false),
            (r"/a/\w+.*", "/a/\0", false),
            (r"/a\bb", "/ab", false),
            (r"/\d{2}-\w+/z", "/\0/z", false),
            ("", "", false),
            (r"/a\x00b", "/a", false),
        ] {
            let parsed = regex_syntax::ParserBuilder::new()
                .utf8(false)
                .unicode(false)
                .build()
                .parse(expression)
                .expect("valid");
            let (found, found_ends) = regex_key(&parsed);
            let found = String::from_utf8_lossy(&found).into_owned();
            assert_eq!((found.as_str(), found_ends), (key, ends), "{expression}");
        }
    }
}
