//! OpenAPI documents of any version: reading them, and one normal form for all that come after.
//!
//! **What it is not**: it knows no gateway, no HTTP and no plugin.

mod description;
pub mod finding;
mod slug;

pub use description::{
    Description, Format, INVALID_REF, MAX_BYTES, MAX_CHAIN, MAX_FINDINGS, MAX_OPERATIONS, Operation,
    REPEATED_KEY, RepeatedKey, UNREADABLE, from_value, locate, parse, positions, read, repeated_keys,
    resolve,
};
pub use finding::{Finding, Level, Position};
pub use slug::{MAX_LENGTH, UniqueNames, slug};
