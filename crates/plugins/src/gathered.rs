//! A response's body that is gathered to be changed whole. One beyond its bound passes as it is; so does one whose
//! content coding cannot be undone, and the coding's name with it.

use crate::compression::{Coding, unpacked};
use weir_plugin::{Headers, Hold, Response};

/// What has come of a body.
#[derive(Debug)]
pub(crate) struct Gathered {
    bytes: Vec<u8>,
    max_bytes: usize,
    is_passing: bool,
    /// The coding that is to be undone, until it is, and what the response called it.
    coding: Option<(Coding, Vec<u8>)>,
}

impl Gathered {
    /// Prepares a response to have its body changed, which is held up to so many bytes. `None`: it is known to be too
    /// large, or its coding cannot be undone here; nothing is changed then.
    pub(crate) fn begin(response: &mut Response, max_bytes: usize) -> Option<Self> {
        let length = response.content_length;
        if length.is_some_and(|length| length > max_bytes as u64) {
            return None;
        }
        let coding = {
            let mut names = response.headers.get_all(b"content-encoding");
            match (names.next(), names.next()) {
                (None, _) => None,
                (Some(name), None) => Some((Coding::of(name)?, name.to_vec())),
                _ => return None,
            }
        };
        if coding.is_some() {
            response.headers.remove(b"Content-Encoding");
            // Whether it can be undone is known when the body is there, and the head has to tell.
            response.hold.get_or_insert(Hold::Begin(max_bytes));
        }
        response.headers.remove(b"Content-Length");
        Some(Self {
            bytes: Vec::new(),
            max_bytes,
            is_passing: false,
            coding,
        })
    }

    /// Takes a piece in. With the piece that is one too many, all goes to `out`, as does what comes behind it.
    pub(crate) fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
        if !self.is_passing && self.bytes.len() + data.len() <= self.max_bytes {
            self.bytes.extend_from_slice(data);
            return;
        }
        self.is_passing = true;
        out.append(&mut self.bytes);
        out.extend_from_slice(data);
    }

    /// Undoes the body's coding. Where that cannot be done, the head tells of it again.
    pub(crate) fn head(&mut self, headers: &mut Headers) {
        let Some((coding, mut names)) = self.coding.take() else {
            return;
        };
        let plain = (!self.is_passing).then(|| unpacked(coding, &self.bytes, self.max_bytes));
        if let Some(plain) = plain.flatten() {
            self.bytes = plain;
            return;
        }
        self.is_passing = true;
        // Codings are named in the order in which they were applied (RFC 9110, 8.4).
        if let Some(later) = headers.get(b"content-encoding") {
            names.extend_from_slice(b", ");
            names.extend_from_slice(later);
        }
        headers.set(b"Content-Encoding", &names);
    }

    /// The whole body, at its end; `None`: it has passed, or does with what is put into `out`.
    pub(crate) fn whole(&mut self, out: &mut Vec<u8>) -> Option<Vec<u8>> {
        if self.is_passing {
            out.append(&mut self.bytes);
            return None;
        }
        Some(std::mem::take(&mut self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::gzip;

    fn response(coding: &str) -> Response {
        let mut response = Response::default();
        if !coding.is_empty() {
            response.headers.append(b"Content-Encoding", coding.as_bytes());
        }
        response
    }

    /// What goes out of a body that comes in pieces; what is left at its end; how its coding is called then. `later`: a
    /// coding that is applied behind it.
    fn gathered(coding: &str, later: &str, pieces: &[&[u8]]) -> (Vec<u8>, Option<Vec<u8>>, String) {
        let mut response = response(coding);
        let mut gathered = Gathered::begin(&mut response, 40).expect("it can be gathered");
        assert_eq!(response.hold.is_some(), !coding.is_empty());
        if !later.is_empty() {
            response.headers.append(b"Content-Encoding", later.as_bytes());
        }
        let mut out = Vec::new();
        pieces.iter().for_each(|piece| gathered.piece(piece, &mut out));
        gathered.head(&mut response.headers);
        let whole = gathered.whole(&mut out);
        let names = response.headers.get(b"content-encoding").unwrap_or_default();
        (out, whole, String::from_utf8_lossy(names).into_owned())
    }

    #[test]
    fn bodies_are_whole_or_pass() {
        let (small, bomb) = (gzip(b"hello"), gzip(&[0; 1000]));
        assert!(bomb.len() <= 40);
        let large = [&small[..], &[0; 40]].concat();
        type Case<'c> = (&'c str, &'c str, Vec<&'c [u8]>, Option<&'c [u8]>, &'c str);
        let cases: [Case<'_>; 11] = [
            ("", "", vec![], Some(b""), ""),
            ("", "", vec![b"ab", b"cd"], Some(b"abcd"), ""),
            ("", "", vec![&[1; 41]], None, ""),
            ("", "br", vec![b"ab", &[1; 40], b"f"], None, "br"),
            ("gzip", "", vec![&small[..9], &small[9..]], Some(b"hello"), ""),
            ("GZIP", "br", vec![&small], Some(b"hello"), "br"),
            // More than is held; packed, or unpacked.
            ("gzip", "", vec![&large], None, "gzip"),
            ("gzip", "br", vec![&small, &[0; 40], b"x"], None, "gzip, br"),
            ("gzip", "", vec![&bomb], None, "gzip"),
            // What is no such stream, or not all of it.
            ("gzip", "", vec![b"hello"], None, "gzip"),
            ("gzip", "", vec![&small[..9]], None, "gzip"),
        ];
        for (coding, later, pieces, whole, named) in cases {
            let (out, left, names) = gathered(coding, later, &pieces);
            assert_eq!(left.as_deref(), whole, "{coding} {pieces:?}");
            assert_eq!(names, named, "{coding} {pieces:?}");
            let passed = if whole.is_none() {
                pieces.concat()
            } else {
                Vec::new()
            };
            assert_eq!(out, passed, "{coding} {pieces:?}");
        }
    }

    #[test]
    fn what_cannot_be_looked_into_is_let_alone() {
        for (codings, length) in [
            (&["zstd"][..], None),
            (&["gzip", "gzip"], None),
            (&["gzip, br"], None),
            (&["gzip"], Some(41)),
        ] {
            let mut response = response("");
            for coding in codings {
                response.headers.append(b"Content-Encoding", coding.as_bytes());
            }
            response.content_length = length;
            assert!(Gathered::begin(&mut response, 40).is_none());
            assert!(response.headers.contains(b"content-encoding") && response.hold.is_none());
        }
    }
}
