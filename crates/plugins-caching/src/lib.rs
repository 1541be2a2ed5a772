//! The plugin that keeps responses, in memory or on disks, and answers later calls with them.
//!
//! **What it is not**: it reads no store, opens no socket and knows no dialect; the proxy writes its disks.

pub mod proxy_cache;
