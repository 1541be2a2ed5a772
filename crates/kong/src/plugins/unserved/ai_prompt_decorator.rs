//! `ai-prompt-decorator`: puts messages before and after those of a chat.

use super::shared::{LLM_FORMAT, MAX_REQUEST_BODY_SIZE};
use super::{Definition, blocking};
use crate::schema::{Check, Default, EntityCheck, Field, Kind, Record};

/// The definition of `ai-prompt-decorator`.
pub const DEFINITION: Definition = blocking("ai-prompt-decorator", 772, CONFIG).with_checks(&[
    EntityCheck::AtLeastOneOf(&["config.prompts.prepend", "config.prompts.append"]),
]);

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("prompts", Kind::Record(&PROMPTS)),
    MAX_REQUEST_BODY_SIZE,
    LLM_FORMAT,
];

static PROMPTS: Record = Record::of(&[
    Field::new("prepend", Kind::Array(&MESSAGE)),
    Field::new("append", Kind::Array(&MESSAGE)),
]);

const MESSAGE: Field = Field::element(Kind::Record(&PROMPT));

static PROMPT: Record = Record::of(&[
    Field::new("role", Kind::String)
        .required()
        .or(Default::Text("system"))
        .check(&[Check::OneOf(&["system", "assistant", "user"])]),
    Field::new("content", Kind::String).required(),
]);
