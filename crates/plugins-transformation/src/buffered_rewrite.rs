//! A response's body that is made new as a whole: it is gathered, changed at its end, and refused if that fails. What it
//! is not: the change itself, and the gathering, which is `buffered_body`.

use crate::buffered_body::{BufferedBody, OversizePolicy, buffer_whole, refuse};
use weir_plugin::{BodyFilter, Headers, Response};

/// A change of one whole body.
pub(crate) trait Rewrite: 'static {
    /// Whether the body may have no new one.
    fn may_fail(&self) -> bool {
        true
    }

    /// The new body. Without one, the old one is given back, and the log has said why.
    fn rewrite(&mut self, body: Vec<u8>) -> Result<Vec<u8>, Vec<u8>>;
}

/// Takes away what stands for the body as it was.
pub(crate) fn remove_validators(headers: &mut Headers) {
    for name in [&b"ETag"[..], b"Last-Modified"] {
        headers.remove(name);
    }
}

/// Gathers a body, and changes it at its end.
pub(crate) struct BufferedRewrite<R> {
    rewrite: R,
    buffered: BufferedBody,
    made: Option<Vec<u8>>,
}

impl<R: Rewrite> BufferedRewrite<R> {
    /// Has the body of a response changed.
    pub(crate) fn attach(response: &mut Response, buffered: BufferedBody, rewrite: R) {
        if rewrite.may_fail() && buffered.excess() == OversizePolicy::Refuse {
            // Whether the body can be changed is known only when it is complete, but the head must say so.
            buffer_whole(response, buffered.max_bytes());
        }
        response.body_filters.push(Self {
            rewrite,
            buffered,
            made: None,
        });
    }

    /// The new body; `None` if there is none and `out` contains what passes.
    fn make(&mut self, out: &mut Vec<u8>) -> Option<Vec<u8>> {
        let body = self.buffered.whole(out)?;
        match (self.rewrite.rewrite(body), self.buffered.excess()) {
            (Ok(made), _) => Some(made),
            // A body that may pass cut may pass unchanged.
            (Err(body), OversizePolicy::Cut) => Some(body),
            (Err(_), OversizePolicy::Refuse) => {
                self.buffered.give_up();
                None
            }
        }
    }
}

impl<R: Rewrite> BodyFilter for BufferedRewrite<R> {
    fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
        self.buffered.piece(data, out);
    }

    fn head(&mut self, status: &mut u16, headers: &mut Headers) {
        let is_left = self.buffered.head(status, headers);
        if is_left && self.buffered.excess() == OversizePolicy::Refuse {
            self.made = self.make(&mut Vec::new());
            if self.made.is_none() {
                refuse(status, headers);
            }
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(mut made) = self.made.take().or_else(|| self.make(out)) {
            out.append(&mut made);
        }
    }
}
