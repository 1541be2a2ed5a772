//! Two path patterns and the paths that fit both.
//!
//! **What it is not**: exact for regular expressions. Of them only the text is known with which every path begins.

use crate::overlap::decoded;
use crate::{PathPattern, TemplatePart};
use std::collections::VecDeque;

/// The most steps of both patterns, multiplied, that are walked through. Of longer ones only the begins are compared.
const MAX_STEPS: usize = 1 << 16;

/// The bytes that a step of a pattern takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bytes {
    One(u8),
    /// All but a slash.
    OfSegment,
    All,
}

/// A step of a pattern: one byte, or as many as there are.
#[derive(Clone, Copy)]
struct PathStep {
    bytes: Bytes,
    repeats: bool,
}

impl Bytes {
    /// A byte that both take.
    fn common(self, other: Self) -> Option<u8> {
        match (self, other) {
            (Self::One(one), Self::One(other)) => (one == other).then_some(one),
            (Self::One(byte), Self::OfSegment) | (Self::OfSegment, Self::One(byte)) => {
                (byte != b'/').then_some(byte)
            }
            (Self::One(byte), Self::All) | (Self::All, Self::One(byte)) => Some(byte),
            _ => Some(b'1'),
        }
    }
}

impl PathPattern {
    /// A short path that fits both patterns, if there is one, without escapes.
    ///
    /// A path of a regular expression is one that begins as those of the expression do: it may not fit.
    pub fn common_path(&self, other: &Self) -> Option<String> {
        let (ones, others) = (ways(self), ways(other));
        let pairs = ones
            .iter()
            .flat_map(|one| others.iter().map(move |other| (one, other)));
        let mut found = pairs.filter_map(|(one, other)| common(one, other));
        let path = found.next()?;
        Some(String::from_utf8_lossy(&path).into_owned())
    }
}

/// The steps of a pattern. One that takes a path and all below it has two ways.
fn ways(pattern: &PathPattern) -> Vec<Vec<PathStep>> {
    let open = |begin: &str| {
        let mut steps = literal(begin);
        steps.push(many(Bytes::All));
        steps
    };
    match pattern {
        PathPattern::Any => vec![open("/")],
        PathPattern::Exact(path) => vec![literal(path)],
        PathPattern::Prefix(prefix) => vec![open(prefix)],
        PathPattern::Segments(path) => {
            vec![literal(path), open(&format!("{}/", path.trim_end_matches('/')))]
        }
        PathPattern::Template(parts) => vec![parts.iter().flat_map(of_part).collect()],
        PathPattern::Regex(_) => vec![open(&pattern.begin())],
    }
}

fn one(bytes: Bytes) -> PathStep {
    PathStep {
        bytes,
        repeats: false,
    }
}

fn many(bytes: Bytes) -> PathStep {
    PathStep { bytes, repeats: true }
}

fn literal(text: &str) -> Vec<PathStep> {
    let mut steps = Vec::with_capacity(text.len());
    for part in text
        .split_inclusive("%2F")
        .flat_map(|it| it.split_inclusive("%2f"))
    {
        let plain = part.strip_suffix("%2F").or_else(|| part.strip_suffix("%2f"));
        let bytes = decoded(plain.unwrap_or(part));
        steps.extend(bytes.iter().map(|byte| one(Bytes::One(*byte))));
        // Some dialects take an escaped slash for a slash, and others for a part of its segment.
        if plain.is_some() {
            steps.push(one(Bytes::All));
        }
    }
    steps
}

fn of_part(part: &TemplatePart) -> Vec<PathStep> {
    match part {
        TemplatePart::Literal(text) => literal(text),
        TemplatePart::Parameter(_) => vec![one(Bytes::OfSegment), many(Bytes::OfSegment)],
        TemplatePart::Rest(_) => vec![one(Bytes::All), many(Bytes::All)],
    }
}

/// How a place was reached: from which one, and with which byte. Both are small, as there are many.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Origin {
    place: u32,
    byte: Option<u8>,
}

const UNSEEN: Origin = Origin {
    place: u32::MAX,
    byte: None,
};

/// The shortest text that goes through both, by a search in breadth over pairs of places.
fn common(ones: &[PathStep], others: &[PathStep]) -> Option<Vec<u8>> {
    let (width, height) = (ones.len() + 1, others.len() + 1);
    if width * height > MAX_STEPS {
        return Some(literal_begin(ones));
    }
    let place = |at: usize, other_at: usize| at * height + other_at;
    let end = place(ones.len(), others.len());
    let mut from = vec![UNSEEN; width * height];
    let mut next = VecDeque::from([0]);
    from[0] = Origin { place: 0, byte: None };
    while let Some(here) = next.pop_front() {
        if here == end {
            return Some(taken(&from, end));
        }
        let (at, other_at) = (here / height, here % height);
        let (one, other) = (ones.get(at), others.get(other_at));
        let behind = |step: &PathStep, at: usize| if step.repeats { at } else { at + 1 };
        let mut ways = Vec::with_capacity(3);
        if let (Some(one), Some(other)) = (one, other)
            && let Some(byte) = one.bytes.common(other.bytes)
        {
            ways.push((place(behind(one, at), behind(other, other_at)), Some(byte)));
        }
        // What repeats may take nothing more.
        if one.is_some_and(|it| it.repeats) {
            ways.push((place(at + 1, other_at), None));
        }
        if other.is_some_and(|it| it.repeats) {
            ways.push((place(at, other_at + 1), None));
        }
        for (there, byte) in ways {
            if from[there] == UNSEEN {
                let place = here as u32;
                from[there] = Origin { place, byte };
                next.push_back(there);
            }
        }
    }
    None
}

/// The bytes on the way to a place.
fn taken(from: &[Origin], end: usize) -> Vec<u8> {
    let (mut bytes, mut here) = (Vec::new(), end);
    while here != 0 {
        bytes.extend(from[here].byte);
        here = from[here].place as usize;
    }
    bytes.reverse();
    bytes
}

fn literal_begin(steps: &[PathStep]) -> Vec<u8> {
    let byte = |step: &PathStep| match step.bytes {
        Bytes::One(byte) => Some(byte),
        Bytes::OfSegment | Bytes::All => None,
    };
    steps.iter().map_while(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_fits_both_patterns_is_found() {
        for (one, other, expected) in [
            ("=/t/5", "/t/{id}", Some("/t/5")),
            ("/t/{id}", "/t/{name}", Some("/t/1")),
            ("/t/{id}", "/t/{id}/toys", None),
            ("/t/{id}/toys", "/t/{id}/{part}", Some("/t/1/toys")),
            ("/{tenant}/orders", "/shop/{what}", Some("/shop/orders")),
            ("/{tenant}/orders", "/{tenant}/pets", None),
            ("/files/{name}.json", "/files/{name}", Some("/files/1.json")),
            ("/files/{name}.json", "/files/{name}.xml", None),
            ("/files/{name}.json", "/files/a{rest}", Some("/files/a.json")),
            ("/a", "/a/b/c", Some("/a/b/c")),
            ("/a", "=/ab", None),
            ("/a*", "=/ab", Some("/ab")),
            ("/a", "/{x}/{rest*}", Some("/a/1")),
            ("/", "/{x}", Some("/1")),
            ("*", "=/a", Some("/a")),
            ("*", "*", Some("/")),
            ("~/pay/\\d+$", "/pay/{id}", Some("/pay/1")),
            ("~/pay/\\d+$", "=/paid", None),
            ("=/k%C3%BCche", "/{room}", Some("/küche")),
            ("=/caf%65", "=/cafe", Some("/cafe")),
            ("=/a%2Fb", "=/a/b", Some("/a/b")),
            ("=/a%2fb", "/{x}", Some("/a1b")),
        ] {
            let pattern = |text: &str| PathPattern::parse(text).expect("a pattern");
            let (first, second) = (pattern(one), pattern(other));
            for found in [first.common_path(&second), second.common_path(&first)] {
                assert_eq!(found.as_deref(), expected, "{one} {other}");
            }
        }
    }

    #[test]
    fn of_very_long_patterns_the_begins_count() {
        let long = format!("={}", "/x".repeat(1_000));
        let pattern = PathPattern::parse(&long).expect("a pattern");
        assert!(pattern.common_path(&pattern).is_some());
    }
}
