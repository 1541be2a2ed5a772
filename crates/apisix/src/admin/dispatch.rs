//! Which call to the Admin API is for what: by method and path. What comes of it is others' work.

use super::call::{ApiCall, Target};
use super::kind::Kind;
use super::response::{ApiResponse, Outcome};
use super::{Admin, configs, read, schemas, validate, write};
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::http::{Method, StatusCode};

impl Admin {
    pub(super) async fn dispatch(&self, call: &ApiCall) -> ApiResponse {
        let segments: Vec<&str> = call.path.split('/').collect();
        let ["", "apisix", "admin", rest @ ..] = segments.as_slice() else {
            return not_found();
        };
        match (&call.method, rest) {
            (&Method::HEAD, []) => ApiResponse::empty(StatusCode::OK),
            (&Method::OPTIONS, _) => options(),
            (&Method::GET | &Method::HEAD, ["configs"]) => configs::read(&self.state(), call),
            (&Method::PUT, ["configs"]) => self.put_whole(call).await,
            (&Method::POST, ["configs", "validate"]) => validate::configs(call),
            (&Method::HEAD, _) | (_, []) => not_found(),
            // The original's standalone mode has no such paths.
            (&Method::PUT | &Method::PATCH | &Method::DELETE, _) if self.file.is_some() => not_found(),
            (&Method::POST, rest) if self.file.is_some() && !matches!(rest, ["schema", "validate", ..]) => {
                not_found()
            }
            (&Method::PUT, ["plugins", "reload"]) => ApiResponse::text(StatusCode::OK, "done"),
            (method, ["plugins", "reload"]) => ApiResponse::error(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("please use PUT method to reload the plugins, {method} method is not allowed."),
            ),
            (&Method::GET, ["plugins", "list"]) => schemas::plugin_names(call),
            (&Method::POST, ["schema", "validate", collection, ..]) => validate::schema(call, collection),
            (&Method::GET, ["schema", "plugins", rest @ ..] | ["plugins", rest @ ..]) => {
                schemas::plugin(call, rest.first().copied().unwrap_or_default()).versioned()
            }
            (&Method::GET, ["schema", rest @ ..]) => {
                schemas::resource(rest.first().copied().unwrap_or_default()).versioned()
            }
            (_, ["schema" | "plugins", ..]) => ApiResponse::error(StatusCode::NOT_FOUND, "not found"),
            (&Method::GET | &Method::PUT | &Method::POST | &Method::PATCH | &Method::DELETE, rest) => {
                self.resource(call, rest).await.unwrap_or_else(|refusal| refusal)
            }
            _ => not_found(),
        }
    }

    async fn resource(&self, call: &ApiCall, segments: &[&str]) -> Outcome {
        if segments.first() == Some(&Kind::StreamRoute.name()) && !self.options.stream {
            return Err(ApiResponse::bad(
                "stream mode is disabled, can not add stream routes",
            ));
        }
        let target = Target::of(segments)?;
        if call.method == Method::GET {
            return read::read(&self.state(), call, &target);
        }
        Ok(self
            .commit(call, |state| {
                write::plan(state, call, &target, &self.options.keyring).map_err(ApiResponse::versioned)
            })
            .await)
    }
}

fn not_found() -> ApiResponse {
    let page = "<html>\r\n<head><title>404 Not Found</title></head>\r\n<body>\r\n\
                <center><h1>404 Not Found</h1></center>\r\n</body>\r\n</html>\r\n";
    ApiResponse::text(StatusCode::NOT_FOUND, page).with(CONTENT_TYPE, "text/html; charset=utf-8")
}

/// The answer to the question that a page in a browser asks before it calls.
fn options() -> ApiResponse {
    ApiResponse::empty(StatusCode::OK)
        .with(
            HeaderName::from_static("access-control-allow-methods"),
            "POST, GET, PUT, OPTIONS, DELETE, PATCH",
        )
        .with(HeaderName::from_static("access-control-allow-headers"), "*")
        .with(CONTENT_TYPE, "text/plain")
}
