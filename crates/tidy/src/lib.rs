//! Weir's house rules, as tests over the repository: `cargo test -p weir-tidy`.
//!
//! The rules stand in `tests/tidy/`, a file for each kind. **What it is not**: a crate for anybody to link; this
//! library is empty.
