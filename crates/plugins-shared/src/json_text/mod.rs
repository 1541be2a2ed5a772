//! Reads JSON texts (RFC 8259) on the path of calls: a [`Cursor`] over tokens that makes no values, and a [`Reader`] that
//! hands values to serde's visitors. What is wrong with a text is for [`serde_json`] to say: here a text is only good or not.

mod cursor;
mod reader;

pub use cursor::Cursor;
pub use reader::{Reader, Unreadable};
