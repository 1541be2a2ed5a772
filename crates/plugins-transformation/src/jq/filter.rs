//! The work of `jq` on a call: which bodies it takes, and what becomes of those that a program fails on. It runs no
//! program itself.

use super::{Config, Output, Program, Work};
use crate::buffered_body::{BufferedBody, Excess, hold_whole, refuse as refuse_response};
use std::sync::Arc;
use weir_plugin::{BodyFilter, Exchange, Filter, Headers, Outcome, Phases, Refusal, RefusalKind};

const PLUGIN: &str = "jq";

/// An instance of `jq`.
pub struct JqFilter {
    request: Option<Arc<Prepared>>,
    response: Option<Arc<Prepared>>,
    max_body_bytes: usize,
}

/// A program with what it is for.
struct Prepared {
    program: Program,
    media_types: Vec<Vec<u8>>,
    statuses: Vec<u16>,
    output: Output,
}

impl Prepared {
    fn of(work: Work) -> Arc<Self> {
        Arc::new(Self {
            program: Program(work.program.into()),
            media_types: work.media_types.into_iter().map(String::into_bytes).collect(),
            statuses: work.statuses,
            output: work.output,
        })
    }

    /// Whether it works on bodies of the types in these headers.
    fn takes(&self, headers: &Headers) -> bool {
        let is_it = |given: &[u8]| {
            let end = memchr::memchr(b';', given).unwrap_or(given.len());
            let given = given[..end].trim_ascii();
            self.media_types
                .iter()
                .any(|known| known.eq_ignore_ascii_case(given))
        };
        headers.get_all(b"content-type").any(is_it)
    }

    fn run(&self, body: &[u8]) -> Option<Vec<u8>> {
        self.program.run(body, &self.output).ok()
    }
}

impl JqFilter {
    pub fn new(config: Config) -> Self {
        Self {
            request: config.request.map(Prepared::of),
            response: config.response.map(Prepared::of),
            max_body_bytes: config.max_body_bytes,
        }
    }
}

/// The body has been asked for.
struct Asked;

fn refuse(status: u16) -> Outcome {
    let refusal = Refusal::with_status(RefusalKind::Unacceptable { plugin: PLUGIN }, status);
    Outcome::Refuse(Box::new(refusal))
}

impl Filter for JqFilter {
    fn phases(&self) -> Phases {
        Phases {
            request: self.request.is_some(),
            response: self.response.is_some(),
            log: false,
        }
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let Some(work) = &self.request else {
            return Outcome::Continue;
        };
        let request = &exchange.request;
        if !request.has_body || !work.takes(&request.headers) {
            return Outcome::Continue;
        }
        let Some(body) = request.body.as_deref() else {
            let max_bytes = self.max_body_bytes;
            let is_too_long = request
                .content_length
                .is_some_and(|length| length > max_bytes as u64);
            if is_too_long || exchange.filter_state.take::<_, Asked>(self).is_some() {
                return refuse(413);
            }
            exchange.filter_state.put(self, Asked);
            return Outcome::NeedBody { max_bytes };
        };
        if body.is_empty() {
            return Outcome::Continue;
        }
        match work.run(body) {
            Some(made) => {
                crate::request_rewrite::set_body(&mut exchange.request, made);
                Outcome::Continue
            }
            None => refuse(400),
        }
    }

    fn on_response(&self, exchange: &mut Exchange) {
        let Some(work) = &self.response else { return };
        let response = &mut exchange.response;
        let takes_status = work.statuses.is_empty() || work.statuses.contains(&response.status);
        if !takes_status || !work.takes(&response.headers) {
            return;
        }
        let Some(gathered) = BufferedBody::begin(response, self.max_body_bytes, Excess::Refuse) else {
            return;
        };
        if gathered.excess() == Excess::Refuse {
            // Whether it can be changed is known when it is there, and the head has to tell.
            hold_whole(response, self.max_body_bytes);
        }
        for name in [&b"ETag"[..], b"Last-Modified"] {
            response.headers.remove(name);
        }
        response.body_filters.push(Gatherer {
            work: Arc::clone(work),
            gathered,
            made: None,
        });
    }
}

/// Gathers a response's body, and makes the new one at its end.
struct Gatherer {
    work: Arc<Prepared>,
    gathered: BufferedBody,
    made: Option<Vec<u8>>,
}

impl Gatherer {
    /// The new body; `None`: there is none, and `out` has what passes.
    fn make(&mut self, out: &mut Vec<u8>) -> Option<Vec<u8>> {
        let body = self.gathered.whole(out)?;
        if body.is_empty() {
            return Some(body);
        }
        match (self.work.run(&body), self.gathered.excess()) {
            (Some(made), _) => Some(made),
            // What the gateway itself says is no secret.
            (None, Excess::Cut) => Some(body),
            (None, Excess::Refuse) => {
                self.gathered.give_up();
                None
            }
        }
    }
}

impl BodyFilter for Gatherer {
    fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
        self.gathered.piece(data, out);
    }

    fn head(&mut self, status: &mut u16, headers: &mut Headers) {
        let is_left = self.gathered.head(status, headers);
        if is_left && self.gathered.excess() == Excess::Refuse {
            self.made = self.make(&mut Vec::new());
            if self.made.is_none() {
                refuse_response(status, headers);
            }
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(mut made) = self.made.take().or_else(|| self.make(out)) {
            out.append(&mut made);
        }
    }
}
