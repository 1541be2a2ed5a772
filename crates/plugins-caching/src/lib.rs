//! The plugin that keeps responses, in memory or on disks, and answers later calls with them.
//!
//! **What it is not**: it reads no store, opens no socket and knows no dialect; the proxy writes its disks.

// The modules of this folder; `UPDATE_GOLDEN=1 cargo test -p weir-tidy plugin_lists` adds new ones.
pub mod proxy_cache;
// End of the modules.
