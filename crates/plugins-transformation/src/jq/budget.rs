//! What a program may take: steps, memory and a part of the stack. And why it stops. It runs nothing itself.

use super::value::{TooDeep, Value};
use std::cell::Cell;
use std::cmp::Ordering;

/// Bytes of the stack that a program may take.
const MAX_STACK: usize = 512 << 10;

/// Why a program, or a part of it, stops.
#[derive(Debug)]
pub enum Interrupt {
    /// It fails with this; a `try` catches it.
    Error(Value),
    /// `break` of the label with this number.
    Break(usize),
    /// As many outputs as wanted are there.
    Enough,
    /// The budget is used up, or something is nested too deep. Nothing catches it.
    Exhausted,
}

impl From<TooDeep> for Interrupt {
    fn from(_: TooDeep) -> Self {
        Self::Exhausted
    }
}

/// Fails with a message.
pub fn fail<T>(message: impl Into<String>) -> Result<T, Interrupt> {
    Err(Interrupt::Error(Value::text(message.into())))
}

/// The approximate address of the stack. Programs may recurse without limit, and a stack overflow would end the
/// process.
#[inline(never)]
fn stack() -> usize {
    let mark = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&mark)).addr()
}

/// What a program has left.
pub struct Budget {
    left: Cell<u64>,
    /// Bytes of values that it may still make.
    memory: Cell<u64>,
    /// Where the stack was when the program began.
    stack: usize,
}

impl Budget {
    /// A budget of so many steps and bytes.
    pub fn new(steps: u64, bytes: u64) -> Self {
        Self {
            left: Cell::new(steps),
            memory: Cell::new(bytes),
            stack: stack(),
        }
    }

    /// Takes memory from the budget, which is not given back.
    pub fn hold(&self, bytes: usize) -> Result<(), Interrupt> {
        match self.memory.get().checked_sub(bytes as u64) {
            Some(left) => {
                self.memory.set(left);
                Ok(())
            }
            None => {
                self.memory.set(0);
                Err(Interrupt::Exhausted)
            }
        }
    }

    /// How many steps are left.
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Takes steps from the budget.
    pub fn spend(&self, steps: usize) -> Result<(), Interrupt> {
        match self.left.get().checked_sub(steps as u64) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.left.set(0);
                Err(Interrupt::Exhausted)
            }
        }
    }

    /// Checks that the program has not recursed too deep.
    pub fn check_stack(&self) -> Result<(), Interrupt> {
        match self.stack.abs_diff(stack()) > MAX_STACK {
            true => Err(Interrupt::Exhausted),
            false => Ok(()),
        }
    }

    /// How two values are ordered.
    pub fn order(&self, left: &Value, right: &Value) -> Result<Ordering, Interrupt> {
        let mut steps = 0;
        let order = left.order(right, &mut steps);
        self.spend(steps)?;
        Ok(order)
    }
}

/// The number of a value.
pub fn number(value: &Value) -> Result<f64, Interrupt> {
    match value.as_f64() {
        Some(number) => Ok(number),
        None => fail(format!("{} is not a number", described(value))),
    }
}

/// A value in a message.
pub fn abridged(value: &Value) -> String {
    let text = match value.size() > 64 {
        true => "...".to_owned(),
        false => value.to_json(false).to_string(),
    };
    match text.char_indices().nth(20) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// A value and its kind in a message.
pub fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        other => format!("{} ({})", other.kind(), abridged(other)),
    }
}
