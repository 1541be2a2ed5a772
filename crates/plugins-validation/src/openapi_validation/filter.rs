//! An instance of `openapi-validation`: checks a call beside the document, and its response before the head goes out.

use super::fetch::{ApiLookup, Source as SpecSource};
use super::{Action, Config, Unknown};
use crate::openapi::{Api, Operation, OperationMatch};
use crate::parameters::{ParameterLocation, Query, Source};
use crate::refuse::refuse;
use std::sync::Arc;
use weir_plugin::{
    BodyFilter, BufferResponse, Exchange, Filter, Headers, Outcome, Phases, Refusal, RefusalKind, WorkBudget,
};

const PLUGIN: &str = "openapi-validation";

/// An instance.
pub(super) struct ValidationFilter {
    config: Config,
    /// Names of headers that are never unknown, in lower case.
    allowed_headers: Vec<Vec<u8>>,
    api: Option<Arc<Api>>,
    source: Option<SpecSource>,
}

/// The document and the operation of the call, for its response.
struct Matched(Arc<Api>, usize);

impl ValidationFilter {
    pub(super) fn new(config: Config, api: Option<Arc<Api>>, source: Option<SpecSource>) -> Self {
        let lower = |name: &String| name.to_ascii_lowercase().into_bytes();
        Self {
            allowed_headers: config.allowed_headers.iter().map(lower).collect(),
            config,
            api,
            source,
        }
    }

    /// What is wrong with the call, or what the engine has to do first.
    fn evaluate(&self, api: &Arc<Api>, exchange: &mut Exchange) -> Result<Result<(), String>, Outcome> {
        let config = &self.config;
        let request = &exchange.request;
        let path = match request.path_is_decoded {
            // The document's templates are matched with the parts as they are written.
            true => request.raw_path.clone(),
            false => request.path.clone(),
        };
        let (number, captures) = match api.find(&request.method, &path, &request.work) {
            Err(message) => return Ok(Err(message)),
            Ok(OperationMatch::NoPath) => return Ok(Err("no path of the description matches".to_owned())),
            Ok(OperationMatch::NoMethod) => {
                return Ok(Err("the description has no such method for this path".to_owned()));
            }
            Ok(OperationMatch::Operation(number, captures)) => (number, captures),
        };
        let operation = api.operation(number);
        let query = Query::read(request.query.as_deref());
        let source = Source {
            request,
            query: &query,
            path: &captures,
        };
        let checked = api.check_parameters(operation, &source, |parameter| match parameter.place {
            ParameterLocation::Path => config.check_path,
            ParameterLocation::Query => config.check_query,
            ParameterLocation::Header | ParameterLocation::Cookie => config.check_headers,
        });
        if let Err((parameter, message)) = checked {
            let place = parameter.place.as_str();
            return Ok(Err(format!(
                "{place} parameter '{}' validation failed with error: '{message}'",
                parameter.name
            )));
        }
        if let Err(message) = self.check_unknown(operation, &source) {
            return Ok(Err(message));
        }
        let body = operation.body.as_ref().filter(|_| config.check_body);
        let content_type = request.headers.get(b"content-type");
        let is_double = request.headers.get_all(b"content-type").nth(1).is_some();
        if let Some(body) = body {
            if is_double {
                return Ok(Err("several headers 'Content-Type'".to_owned()));
            }
            if body.needs_content(content_type) && request.body.is_none() && request.has_body {
                if !exchange.filter_state.mark_body_requested(self) {
                    return Ok(Err("the body is too large".to_owned()));
                }
                return Err(Outcome::NeedBody {
                    max_bytes: config.max_body_bytes,
                });
            }
            let is_there = request.has_body;
            let content = request
                .body
                .as_deref()
                .unwrap_or(if is_there { b" " } else { b"" });
            let checked = body.check(content_type, content, &api.schemas, &request.work);
            if let Err(fault) = checked {
                return Ok(Err(format!(
                    "request body validation failed with error: '{}'",
                    fault.message()
                )));
            }
        }
        if config.check_response {
            exchange.filter_state.put(self, Matched(Arc::clone(api), number));
            // A body with a content coding could not be checked.
            exchange.request.headers.remove(b"accept-encoding");
        }
        Ok(Ok(()))
    }

    fn check_unknown(&self, operation: &Operation, source: &Source<'_, '_>) -> Result<(), String> {
        let described = |place: ParameterLocation, name: &[u8]| {
            let mut all = operation.parameters.iter().filter(|it| it.place == place);
            all.any(|it| it.has_name(name))
        };
        if self.config.unknown_query == Unknown::Refuse {
            for name in source.query.names() {
                if !described(ParameterLocation::Query, name) {
                    let name = String::from_utf8_lossy(name);
                    return Err(format!("query parameter '{name}' is not described"));
                }
            }
        }
        if self.config.unknown_headers == Unknown::Refuse {
            for header in source.request.headers.iter() {
                let name = header.name.to_ascii_lowercase();
                if !self.allowed_headers.contains(&name) && !described(ParameterLocation::Header, &name) {
                    let name = String::from_utf8_lossy(&name).into_owned();
                    return Err(format!("header '{name}' is not described"));
                }
            }
        }
        Ok(())
    }

    fn refusal_message(&self, message: &str, fault: &str) -> String {
        match (self.config.verbose, self.config.verbose_replaces) {
            (false, _) => message.to_owned(),
            (true, true) => fault.to_owned(),
            (true, false) => format!("{message}{fault}"),
        }
    }
}

impl Filter for ValidationFilter {
    fn phases(&self) -> Phases {
        match self.config.check_response {
            true => Phases::BOTH,
            false => Phases::REQUEST,
        }
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let api = match (&self.api, &self.source) {
            (Some(api), _) => Arc::clone(api),
            (None, Some(source)) => match source.find(exchange) {
                ApiLookup::Api(api) => api,
                ApiLookup::Wait(outcome) => return outcome,
                ApiLookup::Nothing(reason) => {
                    tracing::error!(
                        plugin = PLUGIN,
                        "a call is refused: the OpenAPI document is not available: {reason}"
                    );
                    let kind = RefusalKind::Unacceptable { plugin: PLUGIN };
                    let mut refusal = Refusal::with_status(kind, 500);
                    refusal.message = Some(self.config.no_document_message.clone());
                    return Outcome::Refuse(Box::new(refusal));
                }
            },
            (None, None) => return Outcome::Continue,
        };
        match self.evaluate(&api, exchange) {
            Err(outcome) => outcome,
            Ok(Ok(())) => Outcome::Continue,
            Ok(Err(fault)) => match self.config.action {
                Action::Log => {
                    tracing::warn!(plugin = PLUGIN, "a call that does not match passes: {fault}");
                    Outcome::Continue
                }
                Action::Refuse => {
                    let message = self.refusal_message(&self.config.message, &fault);
                    refuse(PLUGIN, self.config.status, message, &fault)
                }
            },
        }
    }

    fn on_response(&self, exchange: &mut Exchange) {
        let Some(Matched(api, operation)) = exchange.filter_state.take(self) else {
            return;
        };
        let response = &mut exchange.response;
        if response.is_gateway {
            return;
        }
        let content_type = response.headers.get(b"content-type").map(<[u8]>::to_vec);
        let is_described = api.operation(operation).response(response.status).is_some();
        if !is_described {
            return;
        }
        response.hold = Some(BufferResponse::Whole(self.config.max_body_bytes));
        response.body_filters.push(Check {
            api,
            operation,
            content_type,
            is_coded: response.headers.contains(b"content-encoding"),
            bytes: Vec::new(),
            refused: None,
            action: self.config.response_action,
            status: self.config.response_status,
            message: self.config.response_message.clone(),
            describes: (self.config.verbose, self.config.verbose_replaces),
        });
    }
}

/// Checks the body of a response.
struct Check {
    api: Arc<Api>,
    operation: usize,
    content_type: Option<Vec<u8>>,
    /// Its content coding is not undone: it cannot be checked.
    is_coded: bool,
    bytes: Vec<u8>,
    /// What the client gets instead.
    refused: Option<Vec<u8>>,
    action: Action,
    status: u16,
    message: String,
    /// Whether the response describes the fault, and whether it replaces the message.
    describes: (bool, bool),
}

impl Check {
    fn fault(&self, status: u16) -> Option<String> {
        let described = self.api.operation(self.operation).response(status)?;
        if self.is_coded {
            return Some("the body has a content coding".to_owned());
        }
        let work = WorkBudget::default();
        let checked = described.check(
            self.content_type.as_deref(),
            &self.bytes,
            &self.api.schemas,
            &work,
        );
        checked.err().map(|fault| fault.message())
    }
}

impl BodyFilter for Check {
    fn piece(&mut self, data: &[u8], _: &mut Vec<u8>) {
        self.bytes.extend_from_slice(data);
    }

    fn head(&mut self, status: &mut u16, headers: &mut Headers) {
        let Some(fault) = self.fault(*status) else {
            return;
        };
        tracing::warn!(plugin = PLUGIN, "a response does not match: {fault}");
        if self.action == Action::Log {
            return;
        }
        let message = match self.describes {
            (false, _) => self.message.clone(),
            (true, true) => format!("response body validation failed with error: '{fault}'"),
            (true, false) => format!("{}{fault}", self.message),
        };
        self.refused = Some(serde_json::json!({ "message": message }).to_string().into_bytes());
        *status = self.status;
        for name in ["content-encoding", "etag", "last-modified", "content-length"] {
            headers.remove(name.as_bytes());
        }
        headers.set(b"Content-Type", b"application/json; charset=utf-8");
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.refused.as_ref().unwrap_or(&self.bytes));
    }
}
