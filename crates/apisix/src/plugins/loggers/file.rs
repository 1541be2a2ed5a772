//! `file-logger`: appends entries to a file.

use super::{base, common, with_entry};
use crate::plugins::{Mapping, Notes, Surroundings, read};
use crate::schema::{Shape, any, array, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::logger::Config;
use weir_plugins::logger::target::{FileTarget, Target};

/// The plugin.
pub struct FileLogger;

#[derive(Deserialize)]
struct Options {
    path: Option<String>,
    r#match: Option<Vec<Value>>,
}

impl Mapping for FileLogger {
    common!("file-logger", 399);

    fn shape(&self) -> &'static Shape {
        static SHAPE: LazyLock<Shape> = LazyLock::new(|| {
            let rules = array(array(any())).max_items(20);
            with_entry(object([("path", text()), ("match", rules)]))
        });
        &SHAPE
    }

    fn translate(
        &self,
        config: &Value,
        surroundings: &Surroundings<'_>,
        notes: &mut Notes,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let of_all = surroundings.metadata.get(self.name());
        let of_all = of_all.and_then(|metadata| metadata["path"].as_str());
        let Some(path) = options.path.or_else(|| of_all.map(str::to_owned)) else {
            notes.error("path", "property \"path\" is required");
            return Ok(Value::Null);
        };
        if options.r#match.is_some_and(|rules| !rules.is_empty()) {
            notes.not_available("match", "a choice of the calls that are logged");
        }
        serde_json::to_value(Config {
            target: Target::File(FileTarget { path, reopen: true }),
            ..base(self.name(), config, surroundings, notes)?
        })
    }
}
