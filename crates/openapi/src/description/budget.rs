//! How many copies of values may be made while a document is normalised. A short document can refer to a long part of it
//! a million times.

use serde_json::Value;
use std::cell::Cell;

/// Values that may be copied for one document.
pub const MAX_COPIED: usize = 10_000_000;

/// What is left to copy.
pub struct Budget {
    left: Cell<usize>,
    is_spent: Cell<bool>,
}

impl Budget {
    /// With this many values.
    pub fn new(values: usize) -> Self {
        Self {
            left: Cell::new(values),
            is_spent: Cell::new(false),
        }
    }

    /// A copy of a value; nothing, once there is no room for it.
    pub fn copy(&self, value: &Value) -> Value {
        match self.take(value, 1) {
            true => value.clone(),
            false => Value::Null,
        }
    }

    /// Whether so many copies of a value still have room.
    pub fn take(&self, value: &Value, times: usize) -> bool {
        let size = size(value, self.left.get()).saturating_mul(times);
        match self.left.get().checked_sub(size) {
            Some(left) => {
                self.left.set(left);
                true
            }
            None => {
                self.left.set(0);
                self.is_spent.set(true);
                false
            }
        }
    }

    /// Whether something had no room.
    pub fn is_spent(&self) -> bool {
        self.is_spent.get()
    }
}

/// How many values a value holds, counted to just beyond `limit`.
fn size(value: &Value, limit: usize) -> usize {
    let mut count = 1;
    let mut add = |below: &Value| {
        if count <= limit {
            count += size(below, limit - count.min(limit));
        }
    };
    match value {
        Value::Object(map) => map.values().for_each(&mut add),
        Value::Array(items) => items.iter().for_each(&mut add),
        // A long text weighs like several values.
        Value::String(text) => count += text.len() / 256,
        _ => {}
    }
    count
}
