//! Runs work that takes seconds, such as reading and linting a large document, without blocking other calls: the
//! runtime moves them to other threads.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Does such work where it is asked for. Other threads take over the calls that this one would answer meanwhile.
pub fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|it| it.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        // A runtime of one thread has no other that could.
        _ => work(),
    }
}
