//! The name of this dialect, which its routes carry. It is here so that translating needs nothing else of the dialect.

use weir_dialect::DialectName;

/// The name of this dialect.
pub const NAME: DialectName = DialectName::new("kong");
