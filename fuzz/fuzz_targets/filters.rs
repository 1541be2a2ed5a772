//! Any call and any answer through a plugin that takes them apart: tokens, signatures, cookies, forms, GraphQL, XML,
//! JSON, gRPC's messages, trace headers, cache rules; and any answers of the servers that a plugin asks: identity
//! providers, policy agents, directories.
#![no_main]

#[path = "../support/call.rs"]
mod call;
#[path = "../support/instances.rs"]
mod instances;

use arbitrary::Arbitrary;
use call::Call;
use instances::instances;
use std::any::Any;
use weir_plugin::{Conversation, Exchange, Filter, Headers, Outcome, Received, Step, SubrequestResponse};

/// Fields that plugins look at; a byte chooses one.
const FIELDS: [&str; 30] = [
    "Authorization",
    "Cookie",
    "Content-Type",
    "Accept",
    "Accept-Encoding",
    "Origin",
    "Referer",
    "User-Agent",
    "X-Api-Key",
    "X-Forwarded-For",
    "Date",
    "X-Date",
    "Digest",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "traceparent",
    "tracestate",
    "b3",
    "X-B3-TraceId",
    "uber-trace-id",
    "x-datadog-trace-id",
    "X-Amzn-Trace-Id",
    "Cache-Control",
    "Vary",
    "X-Used",
    "grpc-status",
    "grpc-message",
    "Access-Control-Request-Method",
    "Age",
];

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    which: u8,
    call: Call<'a>,
    fields: Vec<(u8, &'a [u8])>,
    status: u16,
    response_headers: Vec<(u8, &'a [u8])>,
    pieces: Vec<&'a [u8]>,
    trailers: Vec<(u8, &'a [u8])>,
    /// What other servers answer, one after the other.
    servers: Vec<Server<'a>>,
}

/// The answer of another server.
#[derive(Debug, Arbitrary)]
struct Server<'a> {
    status: u16,
    fields: Vec<(u8, &'a [u8])>,
    body: &'a [u8],
}

/// A filter is called so often at most.
const MAX_TURNS: usize = 8;

fn put(headers: &mut Headers, fields: &[(u8, &[u8])]) {
    for (which, value) in fields.iter().take(8) {
        let name = FIELDS[usize::from(*which) % FIELDS.len()];
        headers.append(name.as_bytes(), value);
    }
}

/// Whether the call goes on to an upstream.
fn ask(filter: &dyn Filter, exchange: &mut Exchange, body: Option<&[u8]>, servers: &[Server]) -> bool {
    let mut servers = servers.iter();
    for _ in 0..MAX_TURNS {
        match filter.on_request(exchange) {
            Outcome::Continue | Outcome::Delay(_) => return true,
            Outcome::NeedBody { max_bytes } => {
                let body = body.unwrap_or_default();
                exchange.request.body = (body.len() <= max_bytes).then(|| body.to_vec());
            }
            Outcome::Subrequest(_) => {
                exchange.subrequest_response = Some(servers.next().map(|server| {
                    let mut headers = Headers::default();
                    put(&mut headers, &server.fields);
                    let status = 100 + server.status % 500;
                    SubrequestResponse {
                        status,
                        headers,
                        body: server.body.to_vec(),
                    }
                }));
            }
            Outcome::Converse(conversation) => {
                let sent = servers.next().map_or(&[][..], |server| server.body);
                exchange.filter_state.put_answer(converse(*conversation, sent));
            }
            _ => return false,
        }
    }
    false
}

/// What comes of a conversation with a server that says this, in small pieces; `None`: it fails.
fn converse(mut conversation: Conversation, sent: &[u8]) -> Option<Box<dyn Any>> {
    let dialogue = &mut conversation.dialogue;
    let (mut from, mut to) = (0, 0);
    let mut step = dialogue.begin(true);
    loop {
        match step {
            Step::Write(_) | Step::StartTls => {}
            Step::Read if to < sent.len() => to = (to + 7).min(sent.len()),
            Step::Read | Step::Fail => return None,
            Step::Done | Step::Close(_) => return Some(conversation.dialogue.finish()),
        }
        let mut received = Received::new(&sent[from..to]);
        step = dialogue.next(&mut received);
        from += received.consumed();
    }
}

libfuzzer_sys::fuzz_target!(|input: Input| {
    let all = instances();
    let (_, filter) = &all[usize::from(input.which) % all.len()];
    let mut exchange = input.call.exchange();
    put(&mut exchange.request.headers, &input.fields);
    if !ask(filter.as_ref(), &mut exchange, input.call.body, &input.servers) {
        return;
    }
    exchange.response.status = 100 + input.status % 500;
    put(&mut exchange.response.headers, &input.response_headers);
    filter.on_response(&mut exchange);
    let mut filters = std::mem::take(&mut exchange.response.body_filters);
    let mut out = Vec::new();
    for piece in &input.pieces {
        filters.piece(piece, &mut out);
        filters.pause(&mut out);
    }
    let mut trailers = Headers::default();
    put(&mut trailers, &input.trailers);
    filters.trailers(&mut trailers);
    let (mut status, mut headers) = (exchange.response.status, Headers::default());
    filters.head(&mut status, &mut headers);
    filters.end(&mut out);
});
