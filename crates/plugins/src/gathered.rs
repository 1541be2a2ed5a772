//! A response's body that is gathered to be changed whole. One beyond its bound passes as it is.

/// What has come of a body.
#[derive(Debug)]
pub(crate) struct Gathered {
    bytes: Vec<u8>,
    max_bytes: usize,
    is_passing: bool,
}

impl Gathered {
    /// Nothing yet, of a body that is held up to so many bytes.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            bytes: Vec::new(),
            max_bytes,
            is_passing: false,
        }
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

    /// The whole body, at its end; `None`: it has passed.
    pub(crate) fn whole(&mut self) -> Option<Vec<u8>> {
        (!self.is_passing).then(|| std::mem::take(&mut self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_whole_or_pass() {
        for (pieces, whole) in [
            (vec![], Some("")),
            (vec!["ab", "cd"], Some("abcd")),
            (vec!["abcde"], None),
            (vec!["ab", "cde", "f"], None),
        ] {
            let (mut gathered, mut out) = (Gathered::new(4), Vec::new());
            pieces
                .iter()
                .for_each(|piece| gathered.piece(piece.as_bytes(), &mut out));
            assert_eq!(
                gathered.whole().as_deref(),
                whole.map(str::as_bytes),
                "{pieces:?}"
            );
            let passed = if whole.is_none() {
                pieces.concat()
            } else {
                String::new()
            };
            assert_eq!(out, passed.as_bytes());
        }
    }
}
