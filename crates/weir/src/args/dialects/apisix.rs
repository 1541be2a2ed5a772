//! The flags that carry APISIX's name; among them its own `config.yaml`, with the files next to it that plugins name.

use super::AdminFlag;
use crate::args::listen::AdminListen;
use crate::args::management::ManagementArgs;
use clap::{Args, ValueEnum};
use std::io::Read;
use std::path::{Path, PathBuf};
use weir_apisix::{ApisixDialect, Options, PluginFiles, Router, Settings};
use weir_dialect::KeyRole;

/// The most bytes of a file that a plugin names.
const MAX_FILE: u64 = 1 << 20;

/// Which rules APISIX's router follows.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct ApisixRouterArgs {
    /// How routes of an apisix.yaml are matched and ordered (APISIX's `apisix.router.http`) [default: as
    /// `--apisix-config` says, or radixtree_host_uri].
    #[arg(long, value_name = "ROUTER", env = "WEIR_APISIX_ROUTER", value_enum)]
    apisix_router: Option<ApisixRouter>,
    /// APISIX's config.yaml. Weir uses the settings that affect routes and plugins, such as `plugin_attr` and the zones
    /// of `proxy_cache`. It is read once, at the start.
    #[arg(
        long,
        value_name = "FILE",
        env = "WEIR_APISIX_CONFIG",
        value_parser = ApisixConfig::read
    )]
    apisix_config: Option<ApisixConfig>,
}

/// APISIX's routers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ApisixRouter {
    /// Hosts first, then paths: APISIX's default.
    #[value(name = "radixtree_host_uri")]
    HostUri,
    /// Paths only; hosts are conditions.
    #[value(name = "radixtree_uri")]
    Uri,
    /// Paths with parameters (`/user/:id`).
    #[value(name = "radixtree_uri_with_parameter")]
    UriWithParameter,
}

/// APISIX's Admin API.
#[derive(Clone, Args)]
pub struct ApisixAdminArgs {
    /// Address of APISIX's Admin API; several, and TLS, as with --kong-admin [default: 127.0.0.1:9180 with a store if
    /// no Admin API is named].
    #[arg(long, value_name = "ADDR[,tls]", env = "WEIR_APISIX_ADMIN", value_delimiter = ' ', value_parser = AdminListen::read)]
    apisix_admin: Vec<AdminListen>,
    /// A key for APISIX's Admin API that may read and write.
    #[arg(
        long,
        value_name = "KEY",
        env = "WEIR_APISIX_ADMIN_KEY",
        hide_env_values = true
    )]
    apisix_admin_key: Option<String>,
    /// A key for APISIX's Admin API that may only read.
    #[arg(
        long,
        value_name = "KEY",
        env = "WEIR_APISIX_VIEWER_KEY",
        hide_env_values = true
    )]
    apisix_viewer_key: Option<String>,
}

impl ApisixRouterArgs {
    /// The dialect; with `management` for a process that may have Admin APIs.
    pub fn dialect(self, management: Option<&ManagementArgs>) -> ApisixDialect {
        let settings = self
            .apisix_config
            .map_or_else(Settings::stock, ApisixConfig::settings);
        let router = self.apisix_router.map(|router| match router {
            ApisixRouter::HostUri => Router::RadixtreeHostUri,
            ApisixRouter::Uri => Router::RadixtreeUri,
            ApisixRouter::UriWithParameter => Router::RadixtreeUriWithParameter,
        });
        ApisixDialect {
            options: Options {
                router: router.or(settings.router).unwrap_or_default(),
                delete_uri_tail_slash: settings.delete_uri_tail_slash,
                settings,
            },
            keys: management.map_or_else(Vec::new, |it| it.originals.apisix.keys()),
            warnings: self
                .apisix_config
                .map_or(&[][..], ApisixConfig::warnings)
                .to_vec(),
        }
    }
}

impl ApisixAdminArgs {
    /// The Admin API.
    pub fn admin(&self) -> AdminFlag {
        AdminFlag {
            dialect: weir_apisix::NAME,
            flag: "--apisix-admin",
            listeners: self.apisix_admin.clone(),
            usual: AdminListen::local(9180),
        }
    }

    fn keys(&self) -> Vec<(String, KeyRole)> {
        let admin = self.apisix_admin_key.iter().map(|key| (key, KeyRole::Admin));
        let viewer = self.apisix_viewer_key.iter().map(|key| (key, KeyRole::Viewer));
        admin
            .chain(viewer)
            .map(|(key, role)| (key.clone(), role))
            .collect()
    }
}

/// A `config.yaml` that was read. It is read once, and lives as long as the process.
#[derive(Debug, Clone, Copy)]
struct ApisixConfig(&'static ParsedSettings);

#[derive(Debug)]
struct ParsedSettings {
    settings: Settings,
    warnings: Vec<String>,
}

impl ApisixConfig {
    /// Reads the file of this name.
    ///
    /// # Errors
    /// If something is wrong with it: the fault and its place.
    fn read(file: &str) -> Result<Self, String> {
        let text = std::fs::read_to_string(Path::new(file)).map_err(|error| error.to_string())?;
        let environment = |name: &str| std::env::var(name).ok();
        let (mut settings, found) =
            weir_apisix::read_settings(&text, &environment).map_err(|wrong| wrong.render(file, &text))?;
        let folder = Path::new(file).parent().unwrap_or(Path::new("")).join(".");
        settings.files = PluginFiles::new(move |name| text_below(&folder, name));
        let warnings = found.iter().map(|it| it.render(file, &text)).collect();
        let read = ParsedSettings { settings, warnings };
        Ok(Self(Box::leak(Box::new(read))))
    }

    /// Its settings.
    fn settings(self) -> &'static Settings {
        &self.0.settings
    }

    /// Its settings that are not used, each in a line.
    fn warnings(self) -> &'static [String] {
        &self.0.warnings
    }
}

/// The text of a file in a folder or below it. Links that lead elsewhere are not followed.
fn text_below(folder: &Path, name: &str) -> Result<String, String> {
    let to_message = |error: std::io::Error| error.to_string();
    let whole = |path: &Path| -> Result<PathBuf, String> { path.canonicalize().map_err(to_message) };
    let (folder, file) = (whole(folder)?, whole(&folder.join(name))?);
    if !file.starts_with(&folder) {
        return Err("it is not below the folder of the file that --apisix-config names".to_owned());
    }
    if !file.metadata().map_err(to_message)?.is_file() {
        return Err("it is not a file".to_owned());
    }
    let mut text = String::new();
    let opened = std::fs::File::open(&file).map_err(to_message)?;
    let mut bounded = opened.take(MAX_FILE + 1);
    bounded.read_to_string(&mut text).map_err(to_message)?;
    match text.len() as u64 > MAX_FILE {
        true => Err(format!("it has more than {MAX_FILE} bytes")),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_read_files_beside_the_configuration_and_nothing_else() {
        let outside = tempfile::tempdir().expect("a folder");
        let folder = outside.path().join("conf");
        std::fs::create_dir_all(folder.join("more")).expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("written");
        write("config.yaml", "apisix: {}\n");
        write("a.conf", "a");
        write("more/b.conf", "b");
        write("large", &"x".repeat(MAX_FILE as usize + 1));
        std::fs::write(outside.path().join("secret"), "s").expect("written");
        std::os::unix::fs::symlink(outside.path().join("secret"), folder.join("link")).expect("a link");
        let config = folder.join("config.yaml");
        let config = ApisixConfig::read(config.to_str().expect("text")).expect("good");
        let absolute = |path: &str| folder.join(path).to_str().expect("text").to_owned();
        for (name, expected) in [
            ("a.conf".to_owned(), Some("a")),
            ("more/b.conf".to_owned(), Some("b")),
            ("more/../a.conf".to_owned(), Some("a")),
            (absolute("a.conf"), Some("a")),
            ("../secret".to_owned(), None),
            (absolute("../secret"), None),
            ("link".to_owned(), None),
            ("more".to_owned(), None),
            ("large".to_owned(), None),
            ("none".to_owned(), None),
        ] {
            let found = config.settings().files.text(&name);
            assert_eq!(found.as_deref().ok(), expected, "{name}");
        }
        assert!(Settings::stock().files.text("a.conf").is_err());
    }
}
