//! APISIX's own `config.yaml`, named by a flag, and the files next to it that plugins name.

use std::io::Read;
use std::path::{Path, PathBuf};
use weir_apisix::{PluginFiles, Settings};

/// The most bytes of a file that a plugin names.
const MAX_FILE: u64 = 1 << 20;

/// A `config.yaml` that was read. It is read once, and lives as long as the process.
#[derive(Debug, Clone, Copy)]
pub struct ApisixConfig(&'static ParsedSettings);

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
    pub fn read(file: &str) -> Result<Self, String> {
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
    pub fn settings(self) -> &'static Settings {
        &self.0.settings
    }

    /// Its settings that are not used, each in a line.
    pub fn warnings(self) -> &'static [String] {
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
