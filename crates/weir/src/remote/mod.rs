//! The commands that talk to a running Weir: `user`, `developer`, `history`, `diff`, `rollback`, `import`, `api`,
//! `portal`.

mod api;
mod developers;
mod portal;
mod text;
mod users;

pub use api::api;
pub use developers::developer;
pub use portal::portal;
pub use users::user;

use crate::args::{DiffArgs, HistoryArgs, ImportArgs, RemoteArgs, RollbackArgs};
use crate::command_output::CommandOutput;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde_json::{Value, json};
use std::time::Duration;
use weir_control::http::{Bytes, ClientRequest, Method, Response, StatusCode};

/// Validating and committing a large configuration takes its time.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Prints what was changed.
pub fn history(args: &HistoryArgs) -> CommandOutput {
    let mut path = format!("/api/v1/history?limit={}", args.limit);
    if let Some(prefix) = &args.prefix {
        path.push_str(&format!("&prefix={}", encoded(prefix)));
    }
    run_and_print(
        &args.remote,
        ClientRequest::get(address(&args.remote, &path)),
        text::history,
    )
}

/// Prints the difference between two revisions.
pub fn diff(args: &DiffArgs) -> CommandOutput {
    let mut path = format!("/api/v1/diff?from={}", args.from);
    if let Some(to) = args.to {
        path.push_str(&format!("&to={to}"));
    }
    run_and_print(
        &args.remote,
        ClientRequest::get(address(&args.remote, &path)),
        |answer| text::changes(&answer["items"]),
    )
}

/// Makes the configuration what it was.
pub fn rollback(args: &RollbackArgs) -> CommandOutput {
    let body = json!({ "revision": args.revision });
    let mut call = ClientRequest::json(Method::POST, address(&args.remote, "/api/v1/rollback"), &body);
    if args.dry_run {
        call = call.header("weir-dry-run", "true");
    }
    run_and_print(&args.remote, call, |answer| text::changes(&answer["changes"]))
}

/// Makes a service of an OpenAPI document.
pub fn import(args: &ImportArgs) -> CommandOutput {
    let body = match std::fs::read(&args.file) {
        Ok(body) => body,
        Err(error) => {
            return CommandOutput::failed(2, format!("{}: cannot be read: {error}\n", args.file.display()));
        }
    };
    let mut query = Vec::new();
    query.extend(args.name.iter().map(|it| format!("name={}", encoded(it))));
    query.extend(args.upstream.iter().map(|it| format!("url={}", encoded(it))));
    let path = format!("/api/v1/import/openapi?{}", query.join("&"));
    let mut call = ClientRequest {
        method: Method::POST,
        body,
        ..ClientRequest::get(address(&args.remote, &path))
    };
    if args.dry_run {
        call = call.header("weir-dry-run", "true");
    }
    run_and_print(
        &args.remote,
        call.header("content-type", "text/plain"),
        text::import,
    )
}

fn address(remote: &RemoteArgs, path: &str) -> String {
    format!("{}{path}", remote.url.trim_end_matches('/'))
}

/// Makes a call and prints its outcome. What Weir warns of goes to standard error.
fn run_and_print(remote: &RemoteArgs, call: ClientRequest, tell: impl Fn(&Value) -> String) -> CommandOutput {
    let answer = match response(remote, call) {
        Ok(answer) => answer,
        Err(failed) => return failed,
    };
    let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    if !answer.status().is_success() {
        return CommandOutput::failed(1, text::problem(answer.status().as_u16(), &body));
    }
    let warning = answer.headers().get("warning").and_then(|it| it.to_str().ok());
    CommandOutput {
        stderr: warning.map(text::warning).unwrap_or_default(),
        ..CommandOutput::succeeded(tell(&body))
    }
}

/// Makes a call. Returns the body of a good answer.
fn make(remote: &RemoteArgs, call: ClientRequest) -> Result<Vec<u8>, CommandOutput> {
    let (status, body) = answer(remote, call)?;
    if status.is_success() {
        return Ok(body);
    }
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    Err(CommandOutput::failed(1, text::problem(status.as_u16(), &answer)))
}

/// Makes a call. Returns the status and the body of its answer.
fn answer(remote: &RemoteArgs, call: ClientRequest) -> Result<(StatusCode, Vec<u8>), CommandOutput> {
    let answer = response(remote, call)?;
    Ok((answer.status(), answer.into_body().to_vec()))
}

/// Makes a call. Returns its whole answer.
fn response(remote: &RemoteArgs, mut call: ClientRequest) -> Result<Response<Bytes>, CommandOutput> {
    call.timeout = TIMEOUT;
    let token = remote.read_token()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let made = match runtime {
        Ok(runtime) => runtime.block_on(call.token(token.as_deref()).make_with_headers()),
        Err(error) => return Err(CommandOutput::failed(2, format!("weir: {error}\n"))),
    };
    made.map_err(|error| CommandOutput::failed(2, format!("weir: {error}\n")))
}

/// All but unreserved characters (RFC 3986, 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A text as a part of a URL.
fn encoded(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}
