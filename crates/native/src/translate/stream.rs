//! Stream routes of a `weir.yaml`, as the model has them: those below HTTP, which match no paths.

use super::reader::{Reader, only};
use crate::shorthand::FIELDS;
use serde_json::Value;
use weir_model::{DocPath, StreamRoute};

impl Reader {
    /// A stream route: as in the model, but for the short forms of its plugins.
    pub(super) fn stream_route(&mut self, value: &Value, place: &DocPath) -> Option<StreamRoute> {
        let map = self.map(value, place)?;
        let map = self.known(map, place, &FIELDS.stream_route);
        let plugins = self.chain(&map, place);
        let own = only(&map, |key| key != "plugins");
        let route: StreamRoute = self.typed(&Value::Object(own), place)?;
        Some(StreamRoute { plugins, ..route })
    }
}
