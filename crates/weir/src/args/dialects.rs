//! The flags that carry the name of an original: one file for each, and here what the commands take of all of them.
//!
//! **What it is not**: the list of dialects ([`crate::dialects`]). A dialect without flags of its own is not here.

mod apisix;
mod kong;

use super::listen::AdminListen;
use clap::Args;
use weir_dialect::DialectName;

/// Which rules the foreign routers follow.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct RouterArgs {
    #[command(flatten)]
    pub kong: kong::KongRouterArgs,
    #[command(flatten)]
    pub apisix: apisix::ApisixRouterArgs,
}

/// Where the Admin APIs of originals are, and what they let in.
#[derive(Clone, Args)]
pub struct OriginalAdminArgs {
    #[command(flatten)]
    pub kong: kong::KongAdminArgs,
    #[command(flatten)]
    pub apisix: apisix::ApisixAdminArgs,
}

/// An Admin API as the flags describe it.
#[derive(Debug, Clone)]
pub struct AdminFlag {
    /// Its dialect.
    pub dialect: DialectName,
    /// The flag with its addresses.
    pub flag: &'static str,
    /// Its addresses.
    pub listeners: Vec<AdminListen>,
    /// Where its clients look for it.
    pub usual: AdminListen,
}

impl OriginalAdminArgs {
    /// The Admin APIs, each at the addresses that its flag names.
    pub fn admins(&self) -> Vec<AdminFlag> {
        vec![self.kong.admin(), self.apisix.admin()]
    }
}
