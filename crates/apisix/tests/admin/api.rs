//! An API to call, and calls with the answers that they must get.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::response::Response;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tower::ServiceExt;
use weir_apisix::{Admin, AdminOptions};
use weir_store::memory::MemoryStore;

/// The key of the API's stock configuration.
pub const KEY: &str = "edd1c9f034335f136f87ad84b625c8f1";

/// What time it always is.
pub fn clock() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: axum::http::HeaderMap,
    pub text: String,
}

impl Answer {
    /// The body as JSON; `null`: it has another form.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    async fn of(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.expect("a body");
        Self {
            status: parts.status.as_u16(),
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).expect("text"),
        }
    }
}

/// An API over a store of its own.
pub struct Api {
    pub admin: Arc<Admin>,
    pub store: Arc<MemoryStore>,
}

impl Api {
    /// An API that asks for no key.
    pub async fn open() -> Self {
        let mut options = AdminOptions::new(clock);
        options.keys.clear();
        Self::with(options, Arc::new(MemoryStore::new())).await
    }

    pub async fn with(options: AdminOptions, store: Arc<MemoryStore>) -> Self {
        let admin = Admin::open(store.clone(), options).await.expect("a store");
        Self { admin, store }
    }

    /// Calls with `METHOD PATH`, below `/apisix/admin/`, and a body; `headers` are `name: value`.
    pub async fn call(&self, call: &str, body: &str, headers: &[&str]) -> Answer {
        let (method, path) = call.split_once(' ').expect("a method and a path");
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/apisix/admin/{path}"),
        };
        let mut request = Request::builder().method(method).uri(&path);
        for header in headers {
            let (name, value) = header.split_once(": ").expect("a header");
            request = request.header(name, value);
        }
        let request = request.body(Body::from(body.to_owned())).expect("a request");
        Answer::of(self.admin.router().oneshot(request).await.expect("an answer")).await
    }

    /// Plays lines of `METHOD PATH [BODY] -> STATUS [PART OF THE BODY]`: each value of the part must be in the
    /// answer's. Lines that do not begin with a method go on with the line before.
    pub async fn play(&self, script: &str) {
        for line in lines(script) {
            let (call, wanted) = line.split_once(" -> ").expect("an answer");
            let mut words = call.splitn(3, ' ');
            let start = format!(
                "{} {}",
                words.next().expect("a method"),
                words.next().expect("a path")
            );
            let answer = self.call(&start, words.next().unwrap_or_default(), &[]).await;
            let (status, part) = wanted.split_once(' ').unwrap_or((wanted, ""));
            assert_eq!(
                answer.status.to_string(),
                status.trim(),
                "{line}\n{}",
                answer.text
            );
            match serde_json::from_str::<Value>(part) {
                _ if part.is_empty() => {}
                Ok(part) => {
                    let whole = answer.json();
                    assert!(holds(&whole, &part), "{line}\n{whole}");
                }
                Err(_) => assert_eq!(answer.text.trim_end(), part, "{line}"),
            }
        }
    }
}

fn lines(script: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let is_start = ["GET ", "PUT ", "POST ", "PATCH ", "DELETE ", "HEAD "]
            .iter()
            .any(|method| line.starts_with(method));
        match lines.last_mut() {
            Some(last) if !is_start => {
                last.push(' ');
                last.push_str(line);
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines
}

/// Whether every value of `part` is in `whole`; `null` stands for nothing.
pub fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| match whole.get(name) {
                Some(whole) => holds(whole, part),
                None => part.is_null(),
            })
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| holds(whole, part))
        }
        (whole, part) => whole == part,
    }
}
