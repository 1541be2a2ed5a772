//! Files that configurations of plugins name. Who starts the gateway says which there are; nothing here reads one.

use std::fmt;
use std::sync::Arc;

/// Returns the text of a file of this name, or why it cannot be had.
type Read = dyn Fn(&str) -> Result<String, String> + Send + Sync;

/// The files that configurations of plugins may name; by default none.
#[derive(Clone, Default)]
pub struct PluginFiles(Option<Arc<Read>>);

impl PluginFiles {
    /// Files that `read` knows.
    pub fn new(read: impl Fn(&str) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(read)))
    }

    /// The text of a file.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn text(&self, name: &str) -> Result<String, String> {
        match &self.0 {
            Some(read) => read(name),
            None => Err("files are read from the folder of the file that --apisix-config names".to_owned()),
        }
    }
}

/// Two are the same if they come from the same place.
impl PartialEq for PluginFiles {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl fmt::Debug for PluginFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PluginFiles({})", self.0.is_some())
    }
}
