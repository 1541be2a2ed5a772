//! Work on the body of a response while it passes.

use crate::headers::Headers;
use std::fmt;

/// Processes one response's body, in pieces as they arrive. A response that cannot have a body (to a HEAD, a 204, a
/// 304) only ends; if a body breaks off, the filter is dropped without an end.
pub trait BodyFilter {
    /// Takes the next piece. What is to go on is put behind what `out` holds.
    fn piece(&mut self, data: &[u8], out: &mut Vec<u8>);

    /// Nothing more comes for a while: what could go on should.
    fn pause(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// The upstream's trailers, once all pieces have passed; there may be none. What a filter takes out of them does
    /// not go on.
    fn trailers(&mut self, trailers: &mut Headers) {
        let _ = trailers;
    }

    /// The head of a response whose head was [held back](crate::Response::hold), which may still be changed. All pieces
    /// have passed, and the trailers are known by now; but for a body that is larger than [`BufferResponse::Prefix`](crate::BufferResponse)
    /// says, of which only the pieces so far have.
    fn head(&mut self, status: &mut u16, headers: &mut Headers) {
        let _ = (status, headers);
    }

    /// The body is complete.
    fn end(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// Whether the body keeps its length: the filter only looks on.
    fn keeps_length(&self) -> bool {
        false
    }
}

/// The filters of one response's body, each working on the output of the one before it. Without any, nothing is
/// allocated and nothing is done.
#[derive(Default)]
pub struct BodyFilters {
    filters: Vec<Box<dyn BodyFilter>>,
    /// So many at the end stay behind those that are added.
    codings: usize,
    /// What passes from one filter to the next.
    between: [Vec<u8>; 2],
}

/// What happens to a body.
enum Step<'d> {
    Piece(&'d [u8]),
    Pause,
    End,
    EndWithHead(&'d mut u16, &'d mut Headers),
}

impl BodyFilters {
    /// Adds a filter behind those that there are.
    pub fn push(&mut self, filter: impl BodyFilter + 'static) {
        let place = self.filters.len() - self.codings;
        self.filters.insert(place, Box::new(filter));
    }

    /// Adds a content coding: it works after all filters that are no codings, in any order of addition.
    pub fn push_coding(&mut self, filter: impl BodyFilter + 'static) {
        self.filters.push(Box::new(filter));
        self.codings += 1;
    }

    /// Whether the list is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// Whether a body keeps its length.
    pub fn keep_length(&self) -> bool {
        self.filters.iter().all(|filter| filter.keeps_length())
    }

    /// Drops all filters, and what they hold.
    pub fn clear(&mut self) {
        if !self.filters.is_empty() {
            *self = Self::default();
        }
    }

    /// Processes a piece and appends the result to `out`.
    pub fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
        self.step(Step::Piece(data), out);
    }

    /// Lets everything pass that can.
    pub fn pause(&mut self, out: &mut Vec<u8>) {
        self.step(Step::Pause, out);
    }

    /// Shows the filters the trailers.
    pub fn trailers(&mut self, trailers: &mut Headers) {
        for filter in &mut self.filters {
            filter.trailers(trailers);
        }
    }

    /// Lets the filters change a head that was held back, of a body that is not complete yet.
    pub fn head(&mut self, status: &mut u16, headers: &mut Headers) {
        for filter in &mut self.filters {
            filter.head(status, headers);
        }
    }

    /// Ends the body. The filters are gone then.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.step(Step::End, out);
        self.clear();
    }

    /// Ends the body of a response whose head was held back, and lets the filters change it. Each does so when it has got
    /// all that the one before it gives out, which may be at its end alone. The filters are gone then.
    pub fn end_with_head(&mut self, status: &mut u16, headers: &mut Headers, out: &mut Vec<u8>) {
        self.step(Step::EndWithHead(status, headers), out);
        self.clear();
    }

    fn step(&mut self, mut step: Step<'_>, out: &mut Vec<u8>) {
        let Self { filters, between, .. } = self;
        let [from, to] = between;
        from.clear();
        let Some(last) = filters.len().checked_sub(1) else {
            if let Step::Piece(data) = step {
                out.extend_from_slice(data);
            }
            return;
        };
        for (index, filter) in filters.iter_mut().enumerate() {
            to.clear();
            let into: &mut Vec<u8> = if index == last { out } else { to };
            match (index, &step) {
                (0, Step::Piece(data)) => filter.piece(data, into),
                _ if !from.is_empty() => filter.piece(from, into),
                _ => {}
            }
            match &mut step {
                Step::Piece(_) => {}
                Step::Pause => filter.pause(into),
                Step::End => filter.end(into),
                Step::EndWithHead(status, headers) => {
                    filter.head(status, headers);
                    filter.end(into);
                }
            }
            std::mem::swap(from, to);
        }
    }
}

impl fmt::Debug for BodyFilters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "BodyFilters({})", self.filters.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Doubles every byte, and marks pauses and the end.
    struct Double;

    impl BodyFilter for Double {
        fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
            for byte in data {
                out.extend([*byte, *byte]);
            }
        }

        fn pause(&mut self, out: &mut Vec<u8>) {
            out.push(b',');
        }

        fn end(&mut self, out: &mut Vec<u8>) {
            out.push(b'.');
        }
    }

    #[test]
    fn bodies_pass_through_all_filters() {
        for (count, passed) in [
            (0, "ab"),
            (1, "aa,bb."),
            (2, "aaaa,,,bbbb..."),
            (3, "aaaaaaaa,,,,,,,bbbbbbbb......."),
        ] {
            let mut filters = BodyFilters::default();
            for _ in 0..count {
                filters.push(Double);
            }
            let mut out = Vec::new();
            filters.piece(b"a", &mut out);
            filters.pause(&mut out);
            filters.piece(b"b", &mut out);
            filters.end(&mut out);
            assert_eq!(String::from_utf8_lossy(&out), passed);
            assert!(filters.is_empty());
        }
    }

    /// Gives its body out at the end, and says in the head how long it is.
    #[derive(Default)]
    struct Whole(Vec<u8>);

    impl BodyFilter for Whole {
        fn piece(&mut self, data: &[u8], _: &mut Vec<u8>) {
            self.0.extend_from_slice(data);
        }

        fn head(&mut self, status: &mut u16, headers: &mut Headers) {
            *status += 1;
            headers.append(b"X-Length", self.0.len().to_string().as_bytes());
        }

        fn end(&mut self, out: &mut Vec<u8>) {
            out.append(&mut self.0);
        }
    }

    #[test]
    fn a_head_is_changed_by_each_filter_when_it_has_the_whole_body() {
        let mut filters = BodyFilters::default();
        filters.push(Whole::default());
        filters.push(Double);
        filters.push(Whole::default());
        let (mut status, mut headers, mut out) = (200, Headers::default(), Vec::new());
        filters.piece(b"a", &mut out);
        filters.piece(b"b", &mut out);
        filters.end_with_head(&mut status, &mut headers, &mut out);
        let lengths: Vec<&[u8]> = headers.get_all(b"x-length").collect();
        assert_eq!(
            (status, lengths, out.as_slice()),
            (202, vec![&b"2"[..], b"5"], &b"aabb."[..])
        );
    }
}
