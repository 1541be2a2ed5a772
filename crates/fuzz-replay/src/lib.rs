//! The part of a fuzz engine that a fuzz target sees: one macro. With it, `tests/replay.rs` runs the targets of `fuzz/`
//! with the stable compiler, on their seeds and on inputs made of these.
//!
//! **What it is not**: it does not look for inputs that reach new code. That is what `make fuzz` is for, with a nightly
//! compiler and libFuzzer.

pub use arbitrary;

/// A fuzz target as a function `fuzz_one` over the bytes of an input, from which the target's own type is made.
#[macro_export]
macro_rules! fuzz_target {
    (|$input:ident: $type:ty| $body:expr) => {
        pub fn fuzz_one(bytes: &[u8]) {
            fn target($input: $type) {
                $body;
            }
            let bytes = $crate::arbitrary::Unstructured::new(bytes);
            if let Ok(input) = <$type as $crate::arbitrary::Arbitrary>::arbitrary_take_rest(bytes) {
                target(input);
            }
        }
    };
}
