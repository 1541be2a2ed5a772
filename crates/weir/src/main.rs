//! The `weir` binary: flags in, parts wired together.
fn main() {}
