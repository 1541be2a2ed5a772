//! A response's body that is gathered to be changed whole. A body that cannot be gathered never passes as it came: it is
//! refused, or cut to what can be.

use crate::compression::{Coding, unpacked};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_plugin::{BufferResponse, Headers, Response};

/// What happens to a body that is too large to be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OversizePolicy {
    /// The client gets 502 instead of the response, also if the body's content coding cannot be undone.
    #[default]
    Refuse,
    /// The body is cut to its bound and then changed. A body whose content coding cannot be undone passes as it is.
    Cut,
}

/// The received part of a body.
#[derive(Debug)]
pub(crate) struct BufferedBody {
    bytes: Vec<u8>,
    max_bytes: usize,
    excess: OversizePolicy,
    state: State,
    /// The coding that is to be undone, until it is, and what the response called it.
    coding: Option<(Coding, Vec<u8>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// All of it so far is held.
    Whole,
    /// More has come than is held; the rest is left out.
    Cut,
    /// It passes as it is.
    Passing,
    /// Nothing of it goes on.
    Refused,
}

impl BufferedBody {
    /// Prepares a response to have its body changed, which is held up to so many bytes. `None`: its coding is unknown and it
    /// passes as it is.
    pub(crate) fn begin(response: &mut Response, max_bytes: usize, excess: OversizePolicy) -> Option<Self> {
        let length = response.content_length;
        let is_small = length.is_some_and(|length| length <= max_bytes as u64);
        // That the gateway refuses a call is to be heard, whatever a filter makes of its words.
        let excess = match response.is_gateway && response.status >= 400 {
            true => OversizePolicy::Cut,
            false => excess,
        };
        let coding = coding_of(&response.headers);
        let refuses = excess == OversizePolicy::Refuse;
        if refuses && (coding.is_err() || length.is_some() && !is_small) {
            // The first byte of an upstream's body is one too many; of one that is at hand, nothing goes on.
            response.hold = Some(BufferResponse::Whole(0));
            return Some(Self {
                bytes: Vec::new(),
                max_bytes: 0,
                excess,
                state: State::Refused,
                coding: None,
            });
        }
        let coding = coding.ok()?;
        let is_sure = is_small && coding.is_none() && response.body_filters.is_empty();
        match excess {
            // The final length is known only when the body is complete, but the head must carry it.
            OversizePolicy::Refuse if !is_sure => buffer_whole(response, max_bytes),
            OversizePolicy::Cut if coding.is_some() => {
                response.hold.get_or_insert(BufferResponse::Prefix(max_bytes));
            }
            _ => {}
        }
        if coding.is_some() {
            response.headers.remove(b"Content-Encoding");
        }
        response.headers.remove(b"Content-Length");
        Some(Self {
            bytes: Vec::new(),
            max_bytes,
            excess,
            state: State::Whole,
            coding,
        })
    }

    /// What happens to this body if it cannot be changed.
    pub(crate) fn excess(&self) -> OversizePolicy {
        self.excess
    }

    /// How many bytes of it are held at most.
    pub(crate) fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Takes a piece in. What passes goes to `out`.
    pub(crate) fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
        match self.state {
            State::Whole if self.bytes.len() + data.len() <= self.max_bytes => {
                self.bytes.extend_from_slice(data)
            }
            State::Whole if self.excess == OversizePolicy::Refuse => {
                self.state = State::Refused;
                self.bytes = Vec::new();
            }
            // A part of a packed body cannot be unpacked.
            State::Whole if self.coding.is_some() => {
                self.state = State::Passing;
                out.append(&mut self.bytes);
                out.extend_from_slice(data);
            }
            State::Whole => {
                self.state = State::Cut;
                let room = self.max_bytes - self.bytes.len();
                self.bytes.extend_from_slice(&data[..room]);
            }
            State::Passing => out.extend_from_slice(data),
            State::Cut | State::Refused => {}
        }
    }

    /// Undoes the body's coding. If that fails, restores the head, or turns it into a refusal. Returns false if the
    /// response is refused.
    pub(crate) fn head(&mut self, status: &mut u16, headers: &mut Headers) -> bool {
        if let Some((coding, names)) = self.coding.take() {
            self.unpack(coding, names, headers);
        }
        if self.state == State::Refused {
            refuse(status, headers);
        }
        self.state != State::Refused
    }

    fn unpack(&mut self, coding: Coding, mut names: Vec<u8>, headers: &mut Headers) {
        let is_whole = self.state == State::Whole;
        let plain = is_whole.then(|| unpacked(coding, &self.bytes, self.max_bytes));
        if let Some(plain) = plain.flatten() {
            self.bytes = plain;
            return;
        }
        if self.excess == OversizePolicy::Refuse {
            self.give_up();
            return;
        }
        self.state = State::Passing;
        // Codings are named in the order in which they were applied (RFC 9110, 8.4).
        if let Some(later) = headers.get(b"content-encoding") {
            names.extend_from_slice(b", ");
            names.extend_from_slice(later);
        }
        headers.set(b"Content-Encoding", &names);
    }

    /// Nothing of the body goes on.
    pub(crate) fn give_up(&mut self) {
        self.state = State::Refused;
        self.bytes = Vec::new();
    }

    /// What is held of the body, at its end; `None`: it has passed, or does with what is put into `out`, or nothing of it
    /// goes on.
    pub(crate) fn whole(&mut self, out: &mut Vec<u8>) -> Option<Vec<u8>> {
        match self.state {
            State::Whole | State::Cut => Some(std::mem::take(&mut self.bytes)),
            State::Passing => {
                out.append(&mut self.bytes);
                None
            }
            State::Refused => None,
        }
    }
}

/// Has the head of a response wait for the whole body, of at most so many bytes.
pub(crate) fn buffer_whole(response: &mut Response, max_bytes: usize) {
    let most = match response.hold {
        Some(BufferResponse::Whole(most)) => most.min(max_bytes),
        _ => max_bytes,
    };
    response.hold = Some(BufferResponse::Whole(most));
}

/// Makes a head one of a response that the client does not get.
pub(crate) fn refuse(status: &mut u16, headers: &mut Headers) {
    *status = 502;
    for name in [
        &b"content-type"[..],
        b"content-encoding",
        b"etag",
        b"last-modified",
    ] {
        headers.remove(name);
    }
}

/// The one coding of a body, and what the response calls it; an error for one that cannot be undone here.
fn coding_of(headers: &Headers) -> Result<Option<(Coding, Vec<u8>)>, ()> {
    let mut names = headers.get_all(b"content-encoding");
    match (names.next(), names.next()) {
        (None, _) => Ok(None),
        (Some(name), None) => match Coding::of(name) {
            Some(coding) => Ok(Some((coding, name.to_vec()))),
            None => Err(()),
        },
        _ => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plugins_testkit::gzip;

    fn response(coding: &str) -> Response {
        let mut response = Response {
            status: 200,
            ..Response::default()
        };
        if !coding.is_empty() {
            response.headers.append(b"Content-Encoding", coding.as_bytes());
        }
        response
    }

    /// What goes out of a body that comes in pieces; what is left at its end; the status, and how its coding is called
    /// then. `later`: a coding that is applied behind it.
    fn gathered(
        excess: OversizePolicy,
        coding: &str,
        later: &str,
        pieces: &[&[u8]],
    ) -> (Vec<u8>, Option<Vec<u8>>, u16, String) {
        let mut response = response(coding);
        let mut gathered = BufferedBody::begin(&mut response, 40, excess).expect("it can be gathered");
        let held = match excess {
            OversizePolicy::Refuse => Some(BufferResponse::Whole(40)),
            OversizePolicy::Cut => (!coding.is_empty()).then_some(BufferResponse::Prefix(40)),
        };
        assert_eq!(response.hold, held);
        if !later.is_empty() {
            response.headers.append(b"Content-Encoding", later.as_bytes());
        }
        let mut out = Vec::new();
        pieces.iter().for_each(|piece| gathered.piece(piece, &mut out));
        gathered.head(&mut response.status, &mut response.headers);
        let whole = gathered.whole(&mut out);
        let names = response.headers.get(b"content-encoding").unwrap_or_default();
        (
            out,
            whole,
            response.status,
            String::from_utf8_lossy(names).into_owned(),
        )
    }

    #[test]
    fn bodies_are_whole_or_refused_or_cut() {
        let (small, bomb) = (gzip(b"hello"), gzip(&[0; 1000]));
        assert!(bomb.len() <= 40);
        let large = [&small[..], &[0; 40]].concat();
        enum Expected<'e> {
            Whole(&'e [u8], &'e str),
            /// Refused, or else cut to this.
            Cut(&'e [u8]),
            /// Refused, or else passed under this name.
            Passes(&'e str),
        }
        use Expected::{Cut, Passes, Whole};
        type Case<'c> = (&'c str, &'c str, Vec<&'c [u8]>, Expected<'c>);
        let cut = [&b"ab"[..], &[1; 38]].concat();
        let cases: [Case<'_>; 11] = [
            ("", "", vec![], Whole(b"", "")),
            ("", "", vec![b"ab", b"cd"], Whole(b"abcd", "")),
            ("", "", vec![&[1; 41]], Cut(&[1; 40])),
            ("", "", vec![b"ab", &[1; 40], b"f"], Cut(&cut)),
            ("gzip", "", vec![&small[..9], &small[9..]], Whole(b"hello", "")),
            ("GZIP", "br", vec![&small], Whole(b"hello", "br")),
            // More than is held; packed, or unpacked.
            ("gzip", "", vec![&large], Passes("gzip")),
            ("gzip", "br", vec![&small, &[0; 40], b"x"], Passes("gzip, br")),
            ("gzip", "", vec![&bomb], Passes("gzip")),
            // What is no such stream, or not all of it.
            ("gzip", "", vec![b"hello"], Passes("gzip")),
            ("gzip", "", vec![&small[..9]], Passes("gzip")),
        ];
        for (coding, later, pieces, expected) in cases {
            for excess in [OversizePolicy::Refuse, OversizePolicy::Cut] {
                let found = gathered(excess, coding, later, &pieces);
                let wanted = match (&expected, excess) {
                    (Whole(body, name), _) => (vec![], Some(body.to_vec()), 200, (*name).to_owned()),
                    (_, OversizePolicy::Refuse) => (vec![], None, 502, String::new()),
                    (Cut(body), _) => (vec![], Some(body.to_vec()), 200, String::new()),
                    (Passes(name), _) => (pieces.concat(), None, 200, (*name).to_owned()),
                };
                assert_eq!(found, wanted, "{excess:?} {coding} {pieces:?}");
            }
        }
    }

    #[test]
    fn what_is_known_to_be_unfit_is_refused_at_its_first_byte() {
        for (codings, length, passes) in [
            (&["zstd"][..], None, true),
            (&["gzip", "gzip"], None, true),
            (&["gzip, br"], None, true),
            (&["gzip"], Some(41), false),
            (&[], Some(41), false),
        ] {
            for excess in [OversizePolicy::Refuse, OversizePolicy::Cut] {
                let mut response = response("");
                for coding in codings {
                    response.headers.append(b"Content-Encoding", coding.as_bytes());
                }
                response.content_length = length;
                let refuses = excess == OversizePolicy::Refuse;
                let gathered = BufferedBody::begin(&mut response, 40, excess);
                let refused = gathered.as_ref().is_some_and(|it| it.state == State::Refused);
                assert_eq!(refused, refuses, "{codings:?} {excess:?}");
                assert_eq!(gathered.is_none(), !refuses && passes, "{codings:?} {excess:?}");
                let first_byte = response.hold == Some(BufferResponse::Whole(0));
                assert_eq!(first_byte, refuses, "{codings:?} {excess:?}");
            }
        }
    }
}
