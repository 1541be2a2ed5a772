//! A conversation with an Admin API: its calls, and its answers in a form that is always the same.

use axum::body::{Body, to_bytes};
use axum::http::{Request, Response};
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::Arc;
use tower::ServiceExt as _;
use uuid::Uuid;
use weir_kong::admin::{Admin, AdminOptions};
use weir_store::Store;
use weir_store::memory::MemoryStore;

pub struct Conversation {
    pub admin: Arc<Admin>,
    pub store: Arc<dyn Store>,
    ids: Vec<String>,
}

impl Conversation {
    pub async fn open() -> Self {
        Self::with(AdminOptions::default()).await
    }

    pub async fn with(options: AdminOptions) -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let admin = Admin::open(Arc::clone(&store), options).await.expect("opened");
        Self {
            admin,
            store,
            ids: Vec::new(),
        }
    }

    /// Makes a call.
    pub async fn call(&self, line: &str, body: &str) -> Response<Body> {
        let mut words = line.split(' ');
        let mut request = Request::builder()
            .method(words.next().expect("a method"))
            .uri(words.next().expect("a path"));
        for header in words {
            let (name, value) = header.split_once('=').expect("NAME=VALUE");
            request = request.header(name, value);
        }
        let body = match body.strip_prefix("form ") {
            Some(form) => {
                request = request.header("Content-Type", "application/x-www-form-urlencoded");
                form
            }
            None if body.is_empty() || line.contains("Content-Type") => body,
            None => {
                request = request.header("Content-Type", "application/json");
                body
            }
        };
        let request = request.body(Body::from(body.to_owned())).expect("a request");
        self.admin.router().oneshot(request).await.expect("an answer")
    }

    /// Makes the calls of a text again; the text with the answers that they have now.
    pub async fn repeat(&mut self, text: &str) -> String {
        let mut out = String::new();
        for exchange in text.split("\n\n") {
            let exchange = exchange.trim_matches('\n');
            if exchange.is_empty() {
                continue;
            }
            if !out.is_empty() {
                out.push('\n');
            }
            let (call, _) = exchange.split_once("\n--").unwrap_or((exchange, ""));
            let (comments, call): (Vec<&str>, Vec<&str>) =
                call.lines().partition(|line| line.starts_with('#'));
            for comment in comments {
                let _ = writeln!(out, "{comment}");
            }
            let Some((line, body)) = call.split_first() else {
                continue;
            };
            let _ = writeln!(out, "{}", call.join("\n"));
            let response = self.call(&self.real(line), &self.real(&body.join("\n"))).await;
            let described = self.describe(response).await;
            let _ = writeln!(out, "--\n{described}");
        }
        out
    }

    fn real(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (index, id) in self.ids.iter().enumerate().rev() {
            text = text.replace(&format!("ID{}", index + 1), id);
        }
        text
    }

    async fn describe(&mut self, response: Response<Body>) -> String {
        let mut text = response.status().as_u16().to_string();
        for name in ["allow", "etag", "weir-dry-run"] {
            if let Some(value) = response.headers().get(name) {
                let _ = write!(text, " {name}={}", value.to_str().expect("a text"));
            }
        }
        let body = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        if !body.is_empty() {
            let mut body: Value = serde_json::from_slice(&body).expect("JSON");
            strike_times(&mut body);
            body.sort_all_objects();
            let _ = write!(text, "\n{body}");
        }
        self.name_ids(&text)
    }

    /// Gives made-up ids their names.
    fn name_ids(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let id = rest.get(..36).filter(|id| Uuid::try_parse(id).is_ok());
            match id {
                Some(id) if Uuid::try_parse(id).expect("an id").get_version_num() == 4 => {
                    let position = match self.ids.iter().position(|known| known == id) {
                        Some(position) => position,
                        None => {
                            self.ids.push(id.to_owned());
                            self.ids.len() - 1
                        }
                    };
                    let _ = write!(out, "ID{}", position + 1);
                    rest = &rest[36..];
                }
                _ => {
                    out.push(character);
                    rest = &rest[character.len_utf8()..];
                }
            }
        }
        out
    }
}

/// Takes out what differs with every run, and puts lists of entities into an order that does not depend on their ids.
fn strike_times(value: &mut Value) {
    match value {
        Value::Object(fields) => fields
            .iter_mut()
            .for_each(|(name, value)| strike_field(name, value)),
        Value::Array(items) => items.iter_mut().for_each(strike_times),
        _ => {}
    }
}

fn strike_field(name: &str, value: &mut Value) {
    match (name, &*value) {
        ("offset", _) => *value = "OFFSET".into(),
        ("next", Value::String(next)) => {
            let (before, after) = next.split_once("offset=").expect("an offset");
            let rest = after.find('&').map_or("", |at| &after[at..]);
            *value = format!("{before}offset=OFFSET{rest}").into();
        }
        ("created_at" | "updated_at", Value::Number(_)) => *value = "TIME".into(),
        ("key" | "secret" | "client_id" | "client_secret", Value::String(text)) if text.len() == 32 => {
            *value = "RANDOM".into();
        }
        ("config", Value::String(text)) => {
            let lines = text.lines().map(|line| match line.split_once("_at: ") {
                Some((field, _)) => format!("{field}_at: TIME"),
                None => line.to_owned(),
            });
            *value = lines.collect::<Vec<String>>().join("\n").into();
        }
        ("data", Value::Array(_)) => {
            strike_times(value);
            if let Value::Array(items) = value {
                items.sort_by_key(without_ids);
            }
        }
        _ => strike_times(value),
    }
}

fn without_ids(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    let text = value.to_string();
    let is_made_up = |part: &&str| Uuid::try_parse(part).is_ok_and(|id| id.get_version_num() == 4);
    text.split('"').filter(|part| !is_made_up(part)).collect()
}
