//! The work of `jq` on a call: which bodies it takes, and what becomes of those that a program fails on. It runs no
//! program itself.

use super::{Output, Program, Work};
use crate::buffered_body::{BufferedBody, OversizePolicy};
use crate::buffered_rewrite::{BufferedRewrite, Rewrite, remove_validators};
use std::sync::Arc;
use weir_plugin::{Exchange, Filter, Headers, Outcome, Phases, Refusal, RefusalKind};

const PLUGIN: &str = "jq";

/// An instance of `jq`.
pub struct JqFilter {
    pub(super) request: Option<Arc<CompiledProgram>>,
    pub(super) response: Option<Arc<CompiledProgram>>,
    pub(super) max_body_bytes: usize,
}

/// A program with what it is for.
pub(super) struct CompiledProgram {
    program: Program,
    media_types: Vec<Vec<u8>>,
    statuses: Vec<u16>,
    output: Output,
}

impl CompiledProgram {
    pub(super) fn of(program: Program, work: Work) -> Arc<Self> {
        Arc::new(Self {
            program,
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

    /// The new body. If there is none, the log contains the reason.
    fn run(&self, side: &'static str, body: &[u8]) -> Option<Vec<u8>> {
        let made = self.program.run(body, &self.output);
        made.inspect_err(|failure| tracing::info!(plugin = PLUGIN, "no new body of a {side}: {failure}"))
            .ok()
    }
}

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
            if is_too_long || !exchange.filter_state.mark_body_requested(self) {
                return refuse(413);
            }
            return Outcome::NeedBody { max_bytes };
        };
        if body.is_empty() {
            return Outcome::Continue;
        }
        match work.run("request", body) {
            Some(made) => {
                crate::request_rewrite::set_body(&mut exchange.request, made);
                Outcome::Continue
            }
            None => refuse(400),
        }
    }

    fn rewrites_responses(&self) -> bool {
        true
    }

    fn on_response(&self, exchange: &mut Exchange) {
        let Some(work) = &self.response else { return };
        let response = &mut exchange.response;
        let takes_status = work.statuses.is_empty() || work.statuses.contains(&response.status);
        // Without a body there is nothing to run the program on (RFC 9110, 6.4.1).
        let is_empty = exchange.request.method == b"HEAD"
            || matches!(response.status, 204 | 304)
            || response.content_length == Some(0);
        if is_empty || !takes_status || !work.takes(&response.headers) {
            return;
        }
        if let Some(buffered) = BufferedBody::begin(response, self.max_body_bytes, OversizePolicy::Refuse) {
            remove_validators(&mut response.headers);
            BufferedRewrite::attach(response, buffered, ResponseWork(Arc::clone(work)));
        }
    }
}

/// The work on one response's body.
struct ResponseWork(Arc<CompiledProgram>);

impl Rewrite for ResponseWork {
    fn rewrite(&mut self, body: Vec<u8>) -> Result<Vec<u8>, Vec<u8>> {
        if body.is_empty() {
            return Ok(body);
        }
        match self.0.run("response", &body) {
            Some(made) => Ok(made),
            None => Err(body),
        }
    }
}
