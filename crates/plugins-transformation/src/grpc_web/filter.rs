//! An instance of `grpc-web` at work: bodies both ways, and trailers as a last frame.

use super::body::{JsonBody, WebBody};
use super::text::{self, Encoder};
use super::{Config, CrossOrigin, NonGrpcPolicy, Path};
use crate::grpc_frames::{self, Unframer};
use crate::grpc_status;
use crate::protobuf::{Compiled, read_message};
use crate::request_rewrite::set_body;
use prost::Message as _;
use prost_reflect::{MessageDescriptor, MethodDescriptor};
use std::sync::Arc;
use weir_plugin::{Exchange, Filter, Outcome, Phases, Refusal, RefusalKind, Reply, Response};

/// What a `Content-Type` says of a call of gRPC-Web.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    /// The body is in Base64.
    is_text: bool,
    /// Messages are JSON.
    is_json: bool,
    /// One message alone, not framed.
    is_bare: bool,
}

impl Form {
    /// `application/grpc-web`, `-text`, `+proto`, `+json`, and `application/json`; `None`: anything else.
    fn of(content_type: &[u8]) -> Option<Self> {
        let media_type = content_type.split(|byte| *byte == b';').next()?;
        let media_type = media_type.trim_ascii().to_ascii_lowercase();
        if media_type == b"application/json" {
            return Some(Self {
                is_text: false,
                is_json: true,
                is_bare: true,
            });
        }
        let rest = media_type.strip_prefix(b"application/grpc-web")?;
        let (is_text, rest) = match rest.strip_prefix(b"-text") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let is_json = match rest {
            b"" | b"+proto" => false,
            b"+json" => true,
            _ => return None,
        };
        Some(Self {
            is_text,
            is_json,
            is_bare: false,
        })
    }
}

/// A call under way.
struct Pending {
    form: Form,
    /// What the client has called its messages.
    content_type: Vec<u8>,
    /// The type of the response's messages, if they become JSON.
    output: Option<MessageDescriptor>,
}

/// Why a call is refused.
enum RequestError {
    /// The method, the type or the body.
    Status(u16),
    /// What is wrong with it.
    Message(String),
    NeedsBody,
}

pub(super) struct WebFilter {
    config: Config,
    definitions: Option<Arc<Compiled>>,
}

impl WebFilter {
    pub(super) fn new(config: Config, definitions: Option<Arc<Compiled>>) -> Self {
        Self { config, definitions }
    }

    /// Converts a gRPC-Web call into a gRPC call. `Ok(None)` if it is not a gRPC-Web call.
    fn begin(&self, exchange: &mut Exchange) -> Result<Option<Pending>, RequestError> {
        let request = &exchange.request;
        let content_type = request.headers.get(b"content-type").unwrap_or_default().to_vec();
        let is_json_known = self.definitions.is_some();
        let form = Form::of(&content_type).filter(|form| !form.is_bare || is_json_known);
        let is_post = request.method == b"POST";
        let form = match (self.config.others, form) {
            (NonGrpcPolicy::Pass, Some(form)) if is_post => form,
            (NonGrpcPolicy::Pass, _) => return Ok(None),
            (NonGrpcPolicy::Refuse, _) if !is_post => return Err(RequestError::Status(405)),
            (NonGrpcPolicy::Refuse, None) => return Err(RequestError::Status(400)),
            (_, Some(form)) => form,
            (NonGrpcPolicy::Explain, None) => return Err(undefined()),
        };
        let method = match form.is_json {
            true => Some(self.method(&request.path)?),
            false => None,
        };
        if let Some(method) = &method {
            let asked = request.headers.get(b"content-encoding");
            if asked.is_some_and(|coding| !coding.eq_ignore_ascii_case(b"identity")) {
                return Err(RequestError::Status(415));
            }
            if method.is_client_streaming() && form.is_bare {
                return Err(RequestError::Message(
                    "the method takes a stream of messages".to_owned(),
                ));
            }
        }
        if form.is_text || form.is_json {
            self.change_body(form, method.as_ref(), exchange)?;
        }
        let output = method.map(|method| method.output());
        Ok(Some(Pending {
            form,
            content_type,
            output,
        }))
    }

    /// The method that a path names in its last two parts.
    fn method(&self, path: &[u8]) -> Result<MethodDescriptor, RequestError> {
        let Some(definitions) = &self.definitions else {
            return Err(undefined());
        };
        let path = String::from_utf8_lossy(path);
        let mut slashes = path.rmatch_indices('/').map(|(at, _)| at);
        let start = slashes.nth(1).map_or(0, |at| at + 1);
        let method = definitions.method(&path[start..]);
        method.ok_or_else(|| RequestError::Message(format!("Unkown path \"{path}\"")))
    }

    /// Makes the body that of a call of gRPC.
    fn change_body(
        &self,
        form: Form,
        method: Option<&MethodDescriptor>,
        exchange: &mut Exchange,
    ) -> Result<(), RequestError> {
        if exchange.request.has_body && exchange.request.body.is_none() {
            return Err(match exchange.filter_state.mark_body_requested(self) {
                true => RequestError::NeedsBody,
                false => RequestError::Status(413),
            });
        }
        let mut body = exchange.request.body.take().unwrap_or_default();
        if form.is_text {
            body = text::decode(&body).ok_or(RequestError::Status(400))?;
        }
        if let Some(method) = method {
            body = self
                .frame_json(form, &method.input(), &body)
                .map_err(RequestError::Message)?;
        }
        set_body(&mut exchange.request, body);
        Ok(())
    }

    /// The messages of a body in JSON, as gRPC frames them.
    fn frame_json(&self, form: Form, input: &MessageDescriptor, body: &[u8]) -> Result<Vec<u8>, String> {
        let mut framed = Vec::new();
        let mut fault = None;
        let mut add = |json: &[u8]| {
            let read = serde_json::from_slice(json)
                .map_err(|error| format!("decode json err: {error}"))
                .and_then(|json| read_message(input, &json, &self.config.json));
            match read {
                Ok(message) => grpc_frames::write(0, &message.encode_to_vec(), &mut framed),
                Err(message) => fault = Some(message),
            }
        };
        if form.is_bare {
            add(body);
        } else {
            let mut unframer = Unframer::new(self.config.max_request_bytes);
            let read = unframer.piece(body, add).and_then(|()| unframer.end());
            if read.is_err() {
                fault = Some("the body is not a message".to_owned());
            }
        }
        match fault {
            None => Ok(framed),
            Some(message) => Err(message),
        }
    }

    fn set_path(&self, exchange: &mut Exchange) {
        let request = &exchange.request;
        match self.config.path {
            Path::Route => {}
            Path::Client => exchange.upstream_path = Some(request.raw_path.clone()),
            Path::Remainder => {
                let rest = request.path.get(exchange.matched_len..).unwrap_or_default();
                let rest = rest.strip_prefix(b"/").unwrap_or(rest);
                if !rest.is_empty() && exchange.matched_len > 0 {
                    exchange.upstream_path = Some([b"/", rest].concat());
                }
            }
        }
    }

    fn refuse(&self, fault: RequestError) -> Outcome {
        let kind = RefusalKind::Answered { plugin: "grpc-web" };
        match (fault, self.config.others) {
            (RequestError::NeedsBody, _) => Outcome::NeedBody {
                max_bytes: self.config.max_request_bytes,
            },
            (RequestError::Message(message), NonGrpcPolicy::Explain) => {
                Outcome::Reply(Box::new(Reply::new(400, "", message.into_bytes())))
            }
            (RequestError::Message(message), NonGrpcPolicy::Pass) => {
                let kind = RefusalKind::Unacceptable { plugin: "grpc-web" };
                Outcome::Refuse(Box::new(Refusal {
                    message: Some(message),
                    ..Refusal::new(kind)
                }))
            }
            (RequestError::Message(_), NonGrpcPolicy::Refuse) => {
                Outcome::Refuse(Box::new(Refusal::with_status(kind, 400)))
            }
            (RequestError::Status(413), NonGrpcPolicy::Pass | NonGrpcPolicy::Explain) => {
                Outcome::refuse(RefusalKind::BodyTooLarge)
            }
            // The original answers 400 if it cannot read the body.
            (RequestError::Status(413), NonGrpcPolicy::Refuse) => {
                Outcome::Refuse(Box::new(Refusal::with_status(kind, 400)))
            }
            (RequestError::Status(status), _) => {
                Outcome::Refuse(Box::new(Refusal::with_status(kind, status)))
            }
        }
    }

    fn answer_preflight(cross_origin: &CrossOrigin) -> Outcome {
        let preflight = &cross_origin.preflight;
        let reply = Reply::new(
            preflight.status,
            preflight.content_type.clone(),
            preflight.body.as_bytes(),
        );
        Outcome::Reply(Box::new(reply))
    }

    /// Tells browsers who may read the answer.
    fn set_cors_headers(cross_origin: &CrossOrigin, is_preflight: bool, response: &mut Response) {
        let headers = &mut response.headers;
        if is_preflight {
            headers.set(
                b"Access-Control-Allow-Methods",
                cross_origin.allow_methods.as_bytes(),
            );
            headers.set(
                b"Access-Control-Allow-Headers",
                cross_origin.allow_headers.as_bytes(),
            );
        }
        if !(cross_origin.keep_existing && headers.contains(b"access-control-allow-origin")) {
            headers.set(
                b"Access-Control-Allow-Origin",
                cross_origin.allow_origin.as_bytes(),
            );
        }
        if let Some(exposed) = &cross_origin.expose_headers {
            headers.set(b"Access-Control-Expose-Headers", exposed.as_bytes());
        }
    }

    /// Makes a refusal of the gateway's own one that clients of gRPC-Web understand: an answer of trailers only.
    fn end_call(content_type: &[u8], response: &mut Response) {
        let (status, headers) = (response.status, &mut response.headers);
        if status < 300 || headers.contains(b"grpc-status") {
            return;
        }
        headers.set(b"Content-Type", content_type);
        headers.remove(b"content-length");
        let code = grpc_status::of_http(status).to_string();
        headers.set(b"grpc-status", code.as_bytes());
        headers.set(b"grpc-message", message_of(status).as_bytes());
        response.status = 200;
        response.replaced_body = Some(Vec::new());
    }
}

/// The message for a status, if it is one of the gateway's own.
fn message_of(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "the call was refused",
    }
}

fn undefined() -> RequestError {
    RequestError::Message("transcoding requests require a .proto file defining the service".to_owned())
}

impl Filter for WebFilter {
    fn phases(&self) -> Phases {
        Phases::BOTH
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if let Some(cross_origin) = &self.config.cross_origin
            && exchange.request.method == b"OPTIONS"
        {
            return Self::answer_preflight(cross_origin);
        }
        match self.begin(exchange) {
            Ok(None) => Outcome::Continue,
            Ok(Some(pending)) => {
                let headers = &mut exchange.request.headers;
                headers.set(b"Content-Type", b"application/grpc");
                headers.set(b"TE", b"trailers");
                if pending.output.is_some() {
                    headers.remove(b"grpc-accept-encoding");
                    headers.remove(b"grpc-encoding");
                }
                headers.remove(b"accept-encoding");
                self.set_path(exchange);
                exchange.filter_state.put(self, pending);
                Outcome::Continue
            }
            Err(fault) => self.refuse(fault),
        }
    }

    fn on_response(&self, exchange: &mut Exchange) {
        if let Some(cross_origin) = &self.config.cross_origin {
            let is_preflight = exchange.request.method == b"OPTIONS";
            Self::set_cors_headers(cross_origin, is_preflight, &mut exchange.response);
        }
        let pending = exchange.filter_state.take::<_, Pending>(self);
        if exchange.response.is_gateway {
            let request = &exchange.request;
            let own = request.headers.get(b"content-type").unwrap_or_default();
            let content_type = pending.as_ref().map_or(own, |pending| &pending.content_type);
            let form = Form::of(content_type).filter(|form| !form.is_bare);
            if self.config.refusals_as_status && form.is_some() {
                Self::end_call(content_type, &mut exchange.response);
            }
            return;
        }
        let Some(pending) = pending else { return };
        let response = &mut exchange.response;
        let content_type = response.headers.get(b"content-type").unwrap_or_default();
        if !content_type.starts_with(b"application/grpc") {
            // What answers there is no gRPC; whatever it says is not ours to change.
            return;
        }
        response.headers.set(b"Content-Type", &pending.content_type);
        response.headers.remove(b"content-length");
        response.headers.remove(b"trailer");
        let has_status = response.headers.contains(b"grpc-status");
        response.body_filters.push(WebBody {
            encoder: pending.form.is_text.then(Encoder::default),
            json: pending.output.map(|output| JsonBody {
                output,
                form: self.config.json,
                unframer: Unframer::new(self.config.max_message_bytes),
                is_bare: pending.form.is_bare,
            }),
            // An answer of trailers only has them in its head, and no body.
            has_trailers: !has_status && !pending.form.is_bare,
            wanted: self.config.trailers,
            lines: Vec::new(),
            is_broken: false,
        });
    }
}
