//! The flags that carry Kong's name: how its files are matched, and where its Admin API is. They make its dialect.

use super::AdminFlag;
use crate::args::listen::AdminListen;
use crate::args::management::ManagementArgs;
use clap::{Args, ValueEnum};
use weir_kong::{KongDialect, Options, RouterFlavor};

/// Which rules Kong's router follows.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct KongRouterArgs {
    /// How routes of a kong.yml are matched and ordered (Kong's `router_flavor`).
    #[arg(
        long,
        value_name = "FLAVOR",
        env = "WEIR_KONG_ROUTER",
        value_enum,
        default_value_t = KongRouter::TraditionalCompatible
    )]
    kong_router: KongRouter,
}

/// Kong's router flavors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum KongRouter {
    /// Kong's default since 3.0.
    #[default]
    TraditionalCompatible,
    /// The flavor of Kong 2.
    Traditional,
}

/// Kong's Admin API.
#[derive(Clone, Args)]
pub struct KongAdminArgs {
    /// Address of Kong's Admin API; with `,tls` over TLS. Repeat the flag for several; in the variable, separate them
    /// with spaces [default: 127.0.0.1:8001 with a store if no Admin API is named; also with a kong.yml, if the port is
    /// free].
    #[arg(long, value_name = "ADDR[,tls]", env = "WEIR_KONG_ADMIN", value_delimiter = ' ', value_parser = AdminListen::read)]
    kong_admin: Vec<AdminListen>,
    /// Enable `/config` of Kong's Admin API also with --data or --store: it reads and replaces a whole workspace. Kong
    /// itself has it only without a database.
    #[arg(long, env = "WEIR_KONG_ADMIN_CONFIG")]
    kong_admin_config: bool,
}

impl KongRouterArgs {
    /// The dialect; with `management` for a process that may have Admin APIs.
    pub fn dialect(self, management: Option<&ManagementArgs>) -> KongDialect {
        KongDialect {
            options: Options {
                router: match self.kong_router {
                    KongRouter::TraditionalCompatible => RouterFlavor::TraditionalCompatible,
                    KongRouter::Traditional => RouterFlavor::Traditional,
                },
            },
            has_config: management
                .is_some_and(|it| it.originals.kong.kong_admin_config || !it.names_a_store()),
        }
    }
}

impl KongAdminArgs {
    /// The Admin API.
    pub fn admin(&self) -> AdminFlag {
        AdminFlag {
            dialect: weir_kong::NAME,
            flag: "--kong-admin",
            listeners: self.kong_admin.clone(),
            usual: AdminListen::local(8001),
        }
    }
}
