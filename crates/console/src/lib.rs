//! The pages of the console and of the developer portal: assets that `make console` builds from `console/`, embedded,
//! and how they are served.
//!
//! All that the pages know they ask of `/api/v1` or `/portal/v1`; this crate knows nothing of them. The portal's own
//! paths are those of `weir-portal`.

mod archive;
mod serve;

pub use archive::{Archive, ArchiveError, File};
pub use serve::{Files, router};

/// What `make console` built.
static BUILT: &[u8] = include_bytes!("../assets/console.archive");

/// The assets that are embedded.
///
/// # Errors
/// The archive is damaged.
pub fn assets() -> Result<Archive, ArchiveError> {
    Archive::read(BUILT)
}
