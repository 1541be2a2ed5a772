//! APISIX's own `config.yaml`, as a flag names it.

use std::path::Path;
use weir_apisix::Settings;

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
    /// What is wrong with it, and where.
    pub fn read(file: &str) -> Result<Self, String> {
        let text = std::fs::read_to_string(Path::new(file)).map_err(|error| error.to_string())?;
        let environment = |name: &str| std::env::var(name).ok();
        let (settings, found) =
            weir_apisix::read_settings(&text, &environment).map_err(|wrong| wrong.render(file, &text))?;
        let warnings = found.iter().map(|it| it.render(file, &text)).collect();
        let read = ParsedSettings { settings, warnings };
        Ok(Self(Box::leak(Box::new(read))))
    }

    /// What it says.
    pub fn settings(self) -> &'static Settings {
        &self.0.settings
    }

    /// What it says that is not used, each in a line.
    pub fn warnings(self) -> &'static [String] {
        &self.0.warnings
    }
}
