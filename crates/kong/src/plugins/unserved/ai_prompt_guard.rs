//! `ai-prompt-guard`: lets chats in by patterns.

use super::shared::{LLM_FORMAT, MAX_REQUEST_BODY_SIZE};
use super::{Definition, blocking};
use crate::schema::{Default, EntityCheck, Field, Kind, Record};

/// The definition of `ai-prompt-guard`.
pub const DEFINITION: Definition = blocking("ai-prompt-guard", 771, CONFIG).with_checks(&[
    EntityCheck::AtLeastOneOf(&["config.allow_patterns", "config.deny_patterns"]),
]);

const CONFIG: Record = Record::of(&[
    Field::new("allow_patterns", Kind::Array(&Field::element(Kind::String))),
    Field::new("deny_patterns", Kind::Array(&Field::element(Kind::String))),
    Field::new("allow_all_conversation_history", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    MAX_REQUEST_BODY_SIZE,
    Field::new("match_all_roles", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    LLM_FORMAT,
]);
