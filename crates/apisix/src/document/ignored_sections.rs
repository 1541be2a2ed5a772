//! Resources that a document of this dialect is checked for and that are not served from it yet. Their shape is checked,
//! so that a mistake is found before they are.

use super::secret;
use crate::schema::Schema;

/// A list, and the shape of its items; `None`: that depends on the item.
pub type Section = (&'static str, fn(&str) -> Option<&'static Schema>);

/// The lists that are checked and not served.
pub const SECTIONS: [Section; 1] = [("secrets", secret::shape_of)];
