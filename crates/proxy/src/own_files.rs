//! A table of file descriptors for each worker.
//!
//! Threads share one table of open files. The kernel then counts references to a file with atomic operations at every
//! system call, and takes a lock to open and close: 1 to 2 % of the CPU of a proxied call. A worker opens all its
//! sockets itself and lends none to another thread, so it can have a table of its own.
//!
//! What other threads must still reach stays reachable: the worker's runtime is built before its table is separated,
//! so that the descriptor by which it is woken is the same in both.
//!
//! The only module of this crate with `unsafe`: a descriptor of one table means nothing in another, which is why the
//! system calls have no safe wrappers.
#![allow(unsafe_code)]

use rustix::net::{AddressFamily, sockopt};
use rustix::thread::UnshareFlags;
use std::os::fd::{BorrowedFd, RawFd};

/// Gives the calling thread a table of its own: a copy without the network sockets of other threads, as a copy of a
/// socket would keep its connection open. Where the system does not allow it, the table stays shared and everything
/// works as well.
pub fn separate() {
    // SAFETY: the thread has only just built its runtime, whose descriptors are the same in the copy; it holds no
    // other descriptor that a second thread opens, closes or uses from here on.
    if let Err(error) = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FILES) } {
        tracing::debug!(%error, "workers share one table of open files");
        return;
    }
    for descriptor in open_descriptors() {
        // SAFETY: the descriptor is open in this thread's own table, as it was listed there just now.
        let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let domain = sockopt::socket_domain(borrowed);
        if matches!(domain, Ok(AddressFamily::INET | AddressFamily::INET6)) {
            // SAFETY: only the copy in this thread's table is closed, and nothing in this thread refers to it.
            unsafe { rustix::io::close(descriptor) };
        }
    }
}

fn open_descriptors() -> Vec<RawFd> {
    let entries = std::fs::read_dir("/proc/thread-self/fd")
        .into_iter()
        .flatten()
        .flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}
