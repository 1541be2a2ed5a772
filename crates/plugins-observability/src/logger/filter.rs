//! An instance of `logger`: keeps what it needs of a call, and makes its log record when it is over.

use super::WaitingName;
use super::fields::Fields;
use super::form::Wrapper;
use super::layout::{Layout, LogRecord};
use super::mask::Masks;
use crate::data_mask::{masked_body, masked_names};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use weir_plugin::{
    BodyFilter, CallRecord, Condition, Exchange, Filter, LogEntry, LogTarget, Outcome, Phases,
};

/// A larger body is not read for a log, however few of its bytes are configured.
const MAX_READ_BODY: usize = 1 << 20;

/// An instance.
pub struct LoggerFilter {
    pub target: Arc<LogTarget>,
    pub waiting_name: WaitingName,
    pub wrapper: Wrapper,
    /// The calls that are logged; `None`: all.
    pub when: Option<Condition>,
    /// The share of them.
    pub sample_ratio: Option<f64>,
    /// The entry's own fields; `None`: the layout's.
    pub fields: Option<Fields>,
    pub extra: Fields,
    pub layout: Layout,
    /// What the layout calls the gateway.
    pub own_name: String,
    pub masks: Masks,
    pub request_body: Option<Body>,
    pub response_body: Option<Body>,
    pub needs_body: bool,
}

/// A body that is logged.
pub struct Body {
    /// Its first bytes.
    pub bytes: usize,
    /// Where this holds.
    pub when: Option<Condition>,
}

impl Body {
    fn is_wanted(&self, exchange: &Exchange) -> bool {
        self.when.as_ref().is_none_or(|when| when.holds(exchange))
    }
}

/// The beginning of the request's body.
struct RequestBody(Vec<u8>);

/// The beginning of the response's body, as far as it has passed.
struct ResponseBody(Rc<RefCell<Vec<u8>>>);

/// Looks at a body as it passes.
struct BodyCapture {
    seen: Rc<RefCell<Vec<u8>>>,
    most: usize,
}

impl BodyFilter for BodyCapture {
    fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
        let mut seen = self.seen.borrow_mut();
        let room = self.most.saturating_sub(seen.len());
        seen.extend_from_slice(&data[..data.len().min(room)]);
        out.extend_from_slice(data);
    }

    fn keeps_length(&self) -> bool {
        true
    }
}

impl Filter for LoggerFilter {
    fn is_observer(&self) -> bool {
        true
    }

    fn phases(&self) -> Phases {
        Phases {
            request: self.request_body.is_some(),
            response: self.response_body.is_some(),
            log: true,
        }
    }

    fn needs_body(&self) -> bool {
        self.needs_body
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let Some(wanted) = &self.request_body else {
            return Outcome::Continue;
        };
        if !exchange.request.has_body || !wanted.is_wanted(exchange) {
            return Outcome::Continue;
        }
        match &exchange.request.body {
            Some(_) => {
                if let Some(mut body) = masked_body(exchange) {
                    body.truncate(wanted.bytes);
                    exchange.filter_state.put(self, RequestBody(body));
                }
            }
            // One that is too large is forwarded and not logged.
            None if !exchange.filter_state.mark_body_requested(self) => {}
            None => {
                return Outcome::NeedBody {
                    max_bytes: wanted.bytes.max(MAX_READ_BODY),
                };
            }
        }
        Outcome::Continue
    }

    fn on_response(&self, exchange: &mut Exchange) {
        let Some(wanted) = self.response_body.as_ref().filter(|it| it.is_wanted(exchange)) else {
            return;
        };
        let seen = Rc::new(RefCell::new(Vec::new()));
        exchange.filter_state.put(self, ResponseBody(Rc::clone(&seen)));
        exchange.response.body_filters.push(BodyCapture {
            seen,
            most: wanted.bytes,
        });
    }

    fn wants_log(&self, exchange: &mut Exchange) -> bool {
        let is_wanted = self.when.as_ref().is_none_or(|when| when.holds(exchange));
        let chance = |exchange: &mut Exchange| (exchange.random_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        is_wanted && self.sample_ratio.is_none_or(|ratio| chance(exchange) < ratio)
    }

    fn on_log(&self, exchange: &mut Exchange, record: &CallRecord<'_>, out: &mut Vec<LogEntry>) {
        let request_body = exchange.filter_state.take::<_, RequestBody>(self);
        let response_body = exchange.filter_state.take::<_, ResponseBody>(self);
        let response_body = response_body.map(|ResponseBody(seen)| seen.take());
        let left = masked_names(exchange).map(|masked| self.masks.without(&masked));
        let account = LogRecord {
            exchange,
            record,
            masks: left.as_ref().unwrap_or(&self.masks),
            own_name: &self.own_name,
            request_body: request_body.as_ref().map(|RequestBody(body)| body.as_slice()),
            response_body: response_body.as_deref(),
        };
        let entry = self.wrapper.entry(&account, |out| {
            out.push(b'{');
            match &self.fields {
                Some(fields) => fields.write(out, &account),
                None => self.layout.write(out, &account),
            }
            self.extra.write(out, &account);
            out.push(b'}');
        });
        if let Some(bytes) = entry {
            let target = Arc::clone(&self.target);
            let origin = self.waiting_name.origin(exchange);
            out.push(LogEntry {
                target,
                bytes,
                origin,
                receipt: None,
            });
        }
    }
}
