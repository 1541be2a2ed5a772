//! An instance of `grpc-transcode` at work: which method a call is for, and its answer's way back.

use super::rules::{Body, Rules, Target};
use super::{Config, Errors, Refusals, request};
use crate::grpc_frames::{self, Unframer};
use crate::grpc_status::{self, GrpcStatus};
use crate::protobuf::{Compiled, JsonForm, write_field, write_message};
use crate::request_rewrite::set_body;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, MessageDescriptor};
use std::sync::Arc;
use weir_plugin::{
    BodyFilter, BufferResponse, Exchange, Filter, Headers, Outcome, Phases, Refusal, RefusalKind, Reply,
};

const PLUGIN: &str = "grpc-transcode";

/// Which method a call is for.
pub(super) enum Methods {
    /// That of the rule that it fits.
    ByRule(Rules),
    /// This one.
    One(Target),
    /// None: there are no definitions.
    None,
}

pub(super) struct TranscodeFilter {
    /// Without the texts of its definitions.
    pub config: Config,
    /// For answers under way.
    pub errors: Arc<Errors>,
    /// Kept for others with the same.
    pub _definitions: Option<Arc<Compiled>>,
    pub methods: Methods,
}

/// What happens to the answer.
struct Pending {
    output: MessageDescriptor,
    response_body: Option<FieldDescriptor>,
    is_stream: bool,
}

/// Why a call is not made.
enum TranscodeError {
    NeedsBody,
    TooLarge,
    /// No rule fits.
    Unknown(String),
    /// The call is not what the method takes.
    Unfit(String),
}

impl TranscodeFilter {
    /// Makes a call of gRPC.
    fn begin(&self, exchange: &mut Exchange) -> Result<Pending, TranscodeError> {
        let found = match &self.methods {
            Methods::None => {
                let message = "transcoding requests require a .proto file defining the service";
                return Err(TranscodeError::Unfit(message.to_owned()));
            }
            Methods::One(target) => {
                self.mark_body_requested(exchange, true)?;
                let made = request::by_fields(target, &exchange.request, &self.config.json);
                made.map(|message| (message, target))
            }
            Methods::ByRule(rules) => {
                let path = exchange.request.path.clone();
                let Some(found) = rules.find(&exchange.request.method, &path) else {
                    return Err(TranscodeError::Unknown(no_rule(
                        rules,
                        &exchange.request.method,
                        &path,
                    )));
                };
                if found.target.method.is_client_streaming() {
                    return Err(TranscodeError::Unfit(
                        "the method takes a stream of messages".to_owned(),
                    ));
                }
                self.mark_body_requested(exchange, found.target.body != Body::Unused)?;
                let made = request::by_rule(&found, &exchange.request, &self.config.json);
                made.map(|message| (message, found.target))
            }
        };
        let (message, target) = found.map_err(TranscodeError::Unfit)?;
        self.set_request(target, &message, exchange);
        Ok(Pending {
            output: target.method.output(),
            response_body: target.response_body.clone(),
            is_stream: target.method.is_server_streaming(),
        })
    }

    fn mark_body_requested(&self, exchange: &mut Exchange, is_wanted: bool) -> Result<(), TranscodeError> {
        if !is_wanted || !exchange.request.has_body || exchange.request.body.is_some() {
            return Ok(());
        }
        if !exchange.filter_state.mark_body_requested(self) {
            return Err(TranscodeError::TooLarge);
        }
        Err(TranscodeError::NeedsBody)
    }

    fn set_request(&self, target: &Target, message: &DynamicMessage, exchange: &mut Exchange) {
        let message = message.encode_to_vec();
        let mut body = Vec::with_capacity(message.len() + 5);
        grpc_frames::write(0, &message, &mut body);
        let request = &mut exchange.request;
        request.method = b"POST".to_vec();
        set_body(request, body);
        let headers = &mut request.headers;
        for name in [
            &b"accept-encoding"[..],
            b"content-encoding",
            b"grpc-accept-encoding",
            b"grpc-encoding",
        ] {
            headers.remove(name);
        }
        headers.set(b"Content-Type", b"application/grpc");
        headers.set(b"TE", b"trailers");
        if self.config.deadline_ms > 0 {
            let deadline = format!("{}m", self.config.deadline_ms);
            headers.set(b"grpc-timeout", deadline.as_bytes());
        }
        exchange.upstream_path = Some(target.path.clone());
        exchange.upstream_query = Some(Vec::new());
    }

    fn refuse(&self, fault: TranscodeError) -> Outcome {
        let (status, message) = match fault {
            TranscodeError::NeedsBody => {
                return Outcome::NeedBody {
                    max_bytes: self.config.max_request_bytes,
                };
            }
            TranscodeError::TooLarge => return Outcome::refuse(RefusalKind::BodyTooLarge),
            TranscodeError::Unknown(message) => (404, message),
            TranscodeError::Unfit(message) => (400, message),
        };
        match self.config.refusals {
            Refusals::Problem => Outcome::Refuse(Box::new(Refusal {
                message: Some(message),
                ..Refusal::with_status(RefusalKind::Unacceptable { plugin: PLUGIN }, status)
            })),
            Refusals::Text => Outcome::Reply(Box::new(Reply::new(400, "", message.into_bytes()))),
            Refusals::Status => Outcome::Refuse(Box::new(Refusal::with_status(
                RefusalKind::Answered { plugin: PLUGIN },
                400,
            ))),
        }
    }
}

fn no_rule(rules: &Rules, method: &[u8], path: &[u8]) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match rules.know(method) {
        false => {
            let method = text(method).to_lowercase();
            format!("failed to transcode .proto file Unknown method \"{method}\"")
        }
        true => format!("failed to transcode .proto file Unknown path \"{}\"", text(path)),
    }
}

impl Filter for TranscodeFilter {
    fn phases(&self) -> Phases {
        Phases::BOTH
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if self.config.any_origin {
            exchange
                .response_headers
                .set(b"Access-Control-Allow-Origin", b"*");
            if exchange.request.method == b"OPTIONS" {
                let reply = Reply::new(200, "application/json", "OK")
                    .with_header("Access-Control-Allow-Methods", "GET,POST,PATCH,DELETE")
                    .with_header("Access-Control-Allow-Headers", "content-type");
                return Outcome::Reply(Box::new(reply));
            }
        }
        match self.begin(exchange) {
            Ok(pending) => {
                exchange.filter_state.put(self, pending);
                Outcome::Continue
            }
            Err(fault) => self.refuse(fault),
        }
    }

    fn on_response(&self, exchange: &mut Exchange) {
        let pending = exchange.filter_state.take::<_, Pending>(self);
        let response = &mut exchange.response;
        let Some(pending) = pending.filter(|_| !response.is_gateway) else {
            return;
        };
        let content_type = response.headers.get(b"content-type").unwrap_or_default();
        if response.status != 200 || !content_type.starts_with(b"application/grpc") {
            // What answers there is no gRPC; whatever it says is not ours to change.
            return;
        }
        let is_lines = pending.is_stream && !self.config.joined;
        let content_type: &[u8] = match is_lines {
            true => b"application/x-ndjson",
            false => b"application/json",
        };
        response.headers.set(b"Content-Type", content_type);
        for name in [
            &b"content-length"[..],
            b"trailer",
            b"grpc-encoding",
            b"grpc-accept-encoding",
        ] {
            response.headers.remove(name);
        }
        let ended = GrpcStatus::read(&response.headers);
        let mut body = JsonBody {
            form: self.config.json,
            errors: Arc::clone(&self.errors),
            pool: pending.output.parent_pool().clone(),
            unframer: Unframer::new(self.config.max_message_bytes),
            ended,
            is_lines,
            is_broken: false,
            has_message: false,
            made: Vec::new(),
            pending,
        };
        if body.ended.as_ref().is_some_and(|ended| ended.code != 0) {
            // An answer of trailers only: how the call has ended is known.
            body.head(&mut response.status, &mut response.headers);
        } else if !body.pending.is_stream {
            response.hold = Some(BufferResponse::Whole(
                self.config.max_message_bytes.saturating_add(64),
            ));
        }
        response.body_filters.push(body);
    }
}

/// The messages of an answer on their way to JSON.
struct JsonBody {
    form: JsonForm,
    errors: Arc<Errors>,
    /// All types of the definitions, for what errors hold.
    pool: DescriptorPool,
    unframer: Unframer,
    pending: Pending,
    /// How the call has ended, once that is known.
    ended: Option<GrpcStatus>,
    is_lines: bool,
    /// The messages cannot be read.
    is_broken: bool,
    has_message: bool,
    /// The one message of an answer that is not a stream.
    made: Vec<u8>,
}

impl JsonBody {
    fn write(&self, message: &DynamicMessage, out: &mut Vec<u8>) {
        let form = &self.form;
        match &self.pending.response_body {
            None => write_message(message, form, out),
            Some(field) => write_field(field, &message.get_field(field), form, out),
        }
    }

    /// How the call has ended, as far as is known.
    fn outcome(&self) -> GrpcStatus {
        let lacks_message = !self.pending.is_stream && !self.has_message;
        match &self.ended {
            Some(ended) if ended.code != 0 => ended.clone(),
            _ if self.is_broken || lacks_message => {
                GrpcStatus::new(grpc_status::INTERNAL, "the answer cannot be read")
            }
            Some(ended) => ended.clone(),
            None => GrpcStatus::new(grpc_status::UNKNOWN, "the service has sent no status"),
        }
    }
}

impl BodyFilter for JsonBody {
    fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
        if self.is_broken {
            return;
        }
        let mut messages = Vec::new();
        let output = self.pending.output.clone();
        let mut is_good = true;
        let read = self.unframer.piece(data, |message| {
            match DynamicMessage::decode(output.clone(), message) {
                Ok(message) => messages.push(message),
                Err(_) => is_good = false,
            }
        });
        for message in messages {
            if self.has_message && !self.pending.is_stream {
                // One message is all that there can be.
                break;
            }
            self.has_message = true;
            if !self.pending.is_stream {
                // It is the answer once it is known that nothing went wrong.
                let mut made = Vec::new();
                self.write(&message, &mut made);
                self.made = made;
                continue;
            }
            self.write(&message, out);
            if self.is_lines {
                out.push(b'\n');
            }
        }
        self.is_broken = read.is_err() || !is_good;
    }

    fn trailers(&mut self, trailers: &mut Headers) {
        if let Some(ended) = GrpcStatus::read(trailers) {
            self.ended = Some(ended);
        }
        self.is_broken |= self.unframer.end().is_err();
        trailers.clear();
    }

    fn head(&mut self, status: &mut u16, headers: &mut Headers) {
        let ended = self.outcome();
        if ended.code == 0 {
            return;
        }
        *status = self.errors.status(ended.code);
        if !headers.contains(b"grpc-status") {
            headers.set(b"grpc-status", ended.code.to_string().as_bytes());
        }
        headers.set(b"Content-Type", b"application/json");
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let ended = self.outcome();
        if ended.code == 0 {
            out.append(&mut self.made);
            return;
        }
        let error = self.errors.body(&ended, &self.pool, &self.form);
        if !self.pending.is_stream || !self.has_message {
            out.extend_from_slice(&error);
        } else if self.is_lines && !error.is_empty() {
            // After messages, only a line of its own can report the error.
            out.extend_from_slice(b"{\"error\":");
            out.extend_from_slice(&error);
            out.extend_from_slice(b"}\n");
        }
    }
}
