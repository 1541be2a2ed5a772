//! The meaning of the flags of `weir run` together.

use crate::args::{AdminFlag, AdminListen, ManagementArgs, RoleArg, RunArgs};
use std::path::PathBuf;
use weir_control::listen::TlsFiles;
use weir_dialect::DialectName;

/// The location of a store that is gone with the process.
const MEMORY: &str = "memory:";

/// Flags that do not fit together.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(String);

impl UsageError {
    /// With the reason.
    pub fn new(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

/// The work of a process.
#[derive(Debug)]
pub enum RunMode {
    /// Serve files and nothing else.
    Files,
    /// Follow a store or a control plane, perhaps with files in addition.
    Managed(Box<Management>),
}

/// How to follow, and what to offer.
#[derive(Debug, Clone)]
pub struct Management {
    pub role: RoleArg,
    pub origin: Origin,
    pub data: Option<PathBuf>,
    pub store_key: Option<PathBuf>,
    /// The Admin APIs, Weir's own as the last. Those that are not wanted have no listeners.
    pub admins: Vec<AdminFlag>,
    /// Listeners of the developer portal.
    pub portal: Vec<AdminListen>,
    /// The certificate of Admin APIs over TLS; `None`: one made for this process.
    pub admin_tls: Option<TlsFiles>,
}

/// The source of the configuration.
#[derive(Clone)]
pub enum Origin {
    /// A store, by its location.
    Store(String),
    /// A control plane.
    Control { url: String, token: Option<String> },
}

impl Origin {
    /// The source in words, without a password.
    pub fn named(&self) -> String {
        let (what, place) = match self {
            Self::Store(location) => ("store", location),
            Self::Control { url, .. } => ("control plane", url),
        };
        let place = place.split_once('?').map_or(place.as_str(), |(place, _)| place);
        format!("the {what} {}", weir_model::overview::without_user(place))
    }
}

/// Locations may hold passwords.
impl std::fmt::Debug for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Store(_) => "Store",
            Self::Control { .. } => "Control",
        })
    }
}

impl Management {
    /// The listeners of a dialect's Admin API.
    pub fn admin(&self, dialect: DialectName) -> &[AdminListen] {
        let found = self.admins.iter().find(|it| it.dialect == dialect);
        found.map_or(&[], |it| &it.listeners)
    }

    /// Whether what is written is gone with the process.
    pub fn is_forgotten(&self) -> bool {
        matches!(&self.origin, Origin::Store(location) if location == MEMORY)
    }
}

impl RunMode {
    /// The plan, or what does not fit together.
    pub fn of(args: &RunArgs) -> Result<Self, UsageError> {
        let refused = |reason: &str| Err(UsageError::new(reason));
        let flags = &args.management;
        let admins = flags.admins();
        let has_admin = admins.iter().any(|it| !it.listeners.is_empty());
        let mut listeners = admins.iter().flat_map(|it| &it.listeners).chain(&flags.portal);
        let has_admin_tls = listeners.any(|listen| listen.is_tls);
        let has_store = flags.names_a_store();
        let names: Vec<&str> = admins.iter().map(|it| it.flag).collect();
        if flags.admin_certificate.is_some() && !has_admin_tls {
            return refused(&format!(
                "--admin-certificate needs a TLS listener: append \",tls\" to an address, such as {} 127.0.0.1:8444,tls",
                names.first().copied().unwrap_or_default()
            ));
        }
        match flags.role {
            RoleArg::Gateway if has_admin => {
                return refused(&format!(
                    "a gateway (--role gateway) has no Admin APIs: remove {}",
                    in_words(&names)
                ));
            }
            RoleArg::Gateway if !flags.portal.is_empty() => {
                return refused("a gateway (--role gateway) has no developer portal: remove --portal");
            }
            RoleArg::Control if !args.config.is_empty() => {
                return refused("a control plane (--role control) serves no calls: leave out -c");
            }
            RoleArg::All | RoleArg::Control if flags.control.is_some() => {
                return refused("--control is for a gateway: add --role gateway");
            }
            RoleArg::Gateway if flags.control.is_none() && flags.store.is_none() => {
                return refused("a gateway (--role gateway) follows something: give --store or --control");
            }
            RoleArg::Control if !has_store => {
                return refused("a control plane (--role control) needs a store: give --data or --store");
            }
            _ => {}
        }
        if !has_store && !has_admin && flags.portal.is_empty() && flags.control.is_none() {
            if args.config.is_empty() {
                return refused(
                    "there is nothing to serve: set configuration files (-c FILE) or a data folder (--data DIR)",
                );
            }
            return Ok(Self::Files);
        }
        Ok(Self::Managed(management(flags, has_admin).into()))
    }

    /// Whether no calls are served.
    pub fn is_control_plane(&self) -> bool {
        matches!(self, Self::Managed(it) if it.role == RoleArg::Control)
    }

    /// Whether there is a store that this process may write to.
    pub fn has_store(&self) -> bool {
        matches!(self, Self::Managed(it) if matches!(it.origin, Origin::Store(_)))
    }

    /// Whether something is followed.
    pub fn is_managed(&self) -> bool {
        matches!(self, Self::Managed(_))
    }
}

/// Some words as a list in a sentence.
pub fn in_words(all: &[&str]) -> String {
    match all {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => all.concat(),
    }
}

/// The Admin APIs of a process that serves files of these dialects and nothing else, at their usual addresses.
pub fn beside_files(flags: &ManagementArgs, dialects: &[DialectName]) -> Management {
    let mut management = management(flags, true);
    management.portal.clear();
    for admin in &mut management.admins {
        let is_wanted = dialects.contains(&admin.dialect);
        admin.listeners = is_wanted.then_some(admin.usual).into_iter().collect();
    }
    management
}

fn management(flags: &ManagementArgs, has_admin: bool) -> Management {
    // Who names one address wants no others.
    let is_usual = !has_admin && flags.role != RoleArg::Gateway;
    let mut admins = flags.admins();
    for admin in admins.iter_mut().filter(|_| is_usual) {
        admin.listeners = vec![admin.usual];
    }
    let files = flags.admin_certificate.clone().zip(flags.admin_key.clone());
    let origin = match (&flags.control, &flags.store, &flags.data) {
        (Some(url), ..) => Origin::Control {
            url: url.clone(),
            token: flags.token.clone(),
        },
        (None, Some(location), _) => Origin::Store(location.clone()),
        (None, None, Some(folder)) => Origin::Store(format!("sqlite:{}", folder.display())),
        (None, None, None) => Origin::Store(MEMORY.to_owned()),
    };
    Management {
        role: flags.role,
        origin,
        data: flags.data.clone(),
        store_key: flags.store_key.clone(),
        admins,
        portal: flags.portal.clone(),
        admin_tls: files.map(|(certificate, key)| TlsFiles {
            certificate,
            key,
            client_authorities: flags.admin_client_ca.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn plan(flags: &str) -> Result<String, String> {
        let line = ["weir", "run"].into_iter().chain(flags.split_whitespace());
        let Command::Run(args) = Cli::try_parse_from(line).expect("flags").command else {
            panic!("run");
        };
        RunMode::of(&args)
            .map_err(|error| error.to_string())
            .map(|plan| match plan {
                RunMode::Files => "files".to_owned(),
                RunMode::Managed(it) => {
                    let origin = match it.origin {
                        Origin::Store(location) => location,
                        Origin::Control { url, .. } => url,
                    };
                    let port = |admin: &AdminFlag| {
                        let ports = admin.listeners.iter().map(|it| it.address.port());
                        ports.sum::<u16>()
                    };
                    let ports: Vec<u16> = it.admins.iter().map(port).collect();
                    format!("{origin} {ports:?}")
                }
            })
    }

    #[test]
    fn flags_mean_something_together_or_are_refused() {
        for (flags, expected) in [
            ("-c a.yaml", Ok("files")),
            ("--data /d", Ok("sqlite:/d [8001, 9180, 8002]")),
            ("--data /d --kong-admin 127.0.0.1:1", Ok("sqlite:/d [1, 0, 0]")),
            (
                "--data /d --store etcd://h:1",
                Ok("etcd://h:1 [8001, 9180, 8002]"),
            ),
            ("-c a.yaml --console 127.0.0.1:1", Ok("memory: [0, 0, 1]")),
            (
                "--role gateway --store etcd://h:1 --data /d",
                Ok("etcd://h:1 [0, 0, 0]"),
            ),
            ("--role gateway --control http://h:1", Ok("http://h:1 [0, 0, 0]")),
            ("--role control --data /d", Ok("sqlite:/d [8001, 9180, 8002]")),
            ("", Err("there is nothing to serve")),
            ("--control http://h:1", Err("--control is for a gateway")),
            ("--role gateway --data /d", Err("follows something")),
            (
                "--role gateway --store etcd://h:1 --console 127.0.0.1:1",
                Err("no Admin APIs: remove --kong-admin, --apisix-admin and --console"),
            ),
            (
                "--kong-admin 127.0.0.1:1 --kong-admin 127.0.0.1:2,tls",
                Ok("memory: [3, 0, 0]"),
            ),
            (
                "--data /d --admin-certificate c --admin-key k",
                Err("--admin-certificate needs a TLS listener"),
            ),
            ("--role control", Err("needs a store")),
            ("--role control --data /d -c a.yaml", Err("serves no calls")),
            (
                "--data /d --portal 127.0.0.1:1",
                Ok("sqlite:/d [8001, 9180, 8002]"),
            ),
            (
                "--role gateway --store etcd://h:1 --portal 127.0.0.1:1",
                Err("no developer portal"),
            ),
        ] {
            match (plan(flags), expected) {
                (Ok(plan), Ok(expected)) => assert_eq!(plan, expected, "{flags}"),
                (Err(error), Err(part)) => assert!(error.contains(part), "{flags}: {error}"),
                (plan, _) => panic!("{flags}: {plan:?}"),
            }
        }
    }
}
