//! The registration of the native dialect in the program's list. Its Admin API is Weir's own, opened by the management.

use crate::{IncrementalModel, NativeErrorRenderer, translate};
use serde_json::{Value, json};
use std::sync::Arc;
use weir_dialect::{AccessError, AdminAccess, Dialect, DialectName, EVERYWHERE, FileForm, RefusedReply};
use weir_model::overview::Overview;
use weir_model::{Diagnostic, Model};
use weir_plugin::error_renderer::ErrorRenderer;

/// What the keys of native documents in a store begin with.
pub const PREFIX: &str = "native/";

/// The native dialect.
#[derive(Debug, Clone, Copy, Default)]
pub struct NativeDialect;

impl Dialect for NativeDialect {
    fn name(&self) -> DialectName {
        DialectName::NATIVE
    }

    fn title(&self) -> &'static str {
        "Weir"
    }

    fn file_form(&self) -> FileForm {
        FileForm {
            name: "weir.yaml",
            marks: &[translate::MARK],
            may_be_several: true,
            // The originals take the last of repeated keys, and so do their dialects. Here it is a mistake: a list of
            // plugins would be gone, and with it the access check in it.
            refuses_repeated_keys: true,
            serves_the_rest: false,
            has_admin: false,
            opens_admin: false,
        }
    }

    fn translate(&self, document: &Value) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
        translate::translate(document)
    }

    fn locate(&self, document: &Value, found: Diagnostic) -> Result<Diagnostic, Diagnostic> {
        Ok(crate::locate(document, found))
    }

    fn prefix(&self) -> &'static str {
        PREFIX
    }

    fn incremental_model(&self) -> Box<dyn weir_dialect::IncrementalModel> {
        Box::new(IncrementalModel::new())
    }

    fn workspace(&self) -> &'static str {
        EVERYWHERE
    }

    /// Its routes refuse what a server may read otherwise.
    fn undecoded_slash(&self) -> Option<&'static str> {
        None
    }

    fn error_renderer(&self) -> Arc<dyn ErrorRenderer> {
        Arc::new(NativeErrorRenderer)
    }

    fn admin_access(&self) -> &dyn AdminAccess {
        self
    }

    fn overview(&self, key: &str, value: &Value) -> Overview {
        crate::overview::overview(key, value)
    }

    fn overview_of_file(&self, document: &Value) -> Overview {
        crate::overview::overview_of_file(document, &crate::incremental::KINDS)
    }
}

impl AdminAccess for NativeDialect {
    /// Weir's own API requires further rights itself, if needed.
    fn decides_itself(&self) -> bool {
        true
    }

    fn takes_sessions(&self) -> bool {
        true
    }

    /// What a login needs before there is a session.
    fn is_public(&self, method: &str, path: &str) -> bool {
        match path.strip_prefix("/api/v1/session") {
            Some("") => method == "POST",
            Some("/options") => method == "GET",
            Some(rest) => method == "GET" && rest.starts_with("/openid/"),
            None => false,
        }
    }

    /// As RFC 9457 has it.
    fn refuse(&self, refused: &AccessError) -> RefusedReply {
        let (status, title, detail) = match refused {
            AccessError::NoToken => (
                401,
                "Unauthorized",
                "a token or a session is needed: `Authorization: Bearer TOKEN`, or log in".to_owned(),
            ),
            AccessError::WrongToken => (401, "Unauthorized", "no user has this token".to_owned()),
            AccessError::Forbidden { who, .. } => (403, "Forbidden", format!("{who} may not do this")),
            other => (403, "Forbidden", other.hint().unwrap_or_default().to_owned()),
        };
        // The types of Weir's own API.
        let kind = if status == 401 {
            "urn:weir:problem:login-required"
        } else {
            "urn:weir:problem:forbidden"
        };
        let body = json!({ "type": kind, "title": title, "status": status, "detail": detail });
        let challenge = ("www-authenticate", "Bearer");
        RefusedReply {
            status,
            content_type: "application/problem+json",
            body: format!("{body}\n"),
            headers: (status == 401).then_some(challenge).into_iter().collect(),
        }
    }
}
