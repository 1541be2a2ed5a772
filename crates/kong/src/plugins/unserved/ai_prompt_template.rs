//! `ai-prompt-template`: chats by templates of the administrator.

use super::shared::MAX_REQUEST_BODY_SIZE;
use super::{Definition, blocking};
use crate::schema::{Default, Field, Kind, Record};

/// The definition of `ai-prompt-template`.
pub const DEFINITION: Definition = blocking("ai-prompt-template", 773, CONFIG);

const CONFIG: Record = Record::of(&[
    Field::new("templates", Kind::Array(&ELEMENT)).required(),
    Field::new("allow_untemplated_requests", Kind::Boolean)
        .required()
        .or(Default::Boolean(true)),
    Field::new("log_original_request", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    MAX_REQUEST_BODY_SIZE,
]);

const ELEMENT: Field = Field::element(Kind::Record(&TEMPLATE)).required();

static TEMPLATE: Record = Record::of(&[
    Field::new("name", Kind::String).required(),
    Field::new("template", Kind::String).required(),
]);
