//! The archive of built assets: one line that names it, one line of JSON that lists its files, and then their contents,
//! each compressed with gzip. It is written by `console/scripts/pack.mjs`.

use flate2::read::GzDecoder;
use serde::Deserialize;
use std::io::{self, Read};

/// The first line of an archive.
const FORMAT: &str = "weir-console-assets 1";

/// Built assets.
#[derive(Debug)]
pub struct Archive {
    /// The hash of the sources that they were built from.
    pub sources: String,
    /// The files.
    pub files: Vec<File>,
}

/// A built file.
#[derive(Debug, PartialEq, Eq)]
pub struct File {
    /// Its path below `/ui/`.
    pub path: String,
    /// Its media type.
    pub media_type: String,
    /// The hash of its content, quoted as an `ETag` is.
    pub tag: String,
    /// Whether its name changes with its content.
    pub is_hashed: bool,
    /// Its size before compression, in bytes.
    pub size: usize,
    /// Its content, compressed with gzip.
    pub compressed: &'static [u8],
}

/// What is wrong with an archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It has another format.
    #[error("expected an archive that begins with '{FORMAT}'")]
    Format,
    /// Its list of files cannot be read.
    #[error("the list of files: {0}")]
    List(#[from] serde_json::Error),
    /// It is shorter than its list of files says.
    #[error("the content of {0} is missing")]
    Short(String),
}

#[derive(Deserialize)]
struct List {
    sources: String,
    files: Vec<ListedFile>,
}

#[derive(Deserialize)]
struct ListedFile {
    path: String,
    media_type: String,
    hash: String,
    is_hashed: bool,
    size: usize,
    compressed: usize,
}

impl Archive {
    /// Reads an archive.
    ///
    /// # Errors
    /// It is damaged.
    pub fn read(bytes: &'static [u8]) -> Result<Self, ArchiveError> {
        let (format, rest) = line(bytes).ok_or(ArchiveError::Format)?;
        if format != FORMAT.as_bytes() {
            return Err(ArchiveError::Format);
        }
        let (list, mut contents) = line(rest).ok_or(ArchiveError::Format)?;
        let list: List = serde_json::from_slice(list)?;
        let mut files = Vec::with_capacity(list.files.len());
        for listed in list.files {
            let Some((compressed, behind)) = contents.split_at_checked(listed.compressed) else {
                return Err(ArchiveError::Short(listed.path));
            };
            contents = behind;
            files.push(File {
                path: listed.path,
                media_type: listed.media_type,
                tag: format!("\"{}\"", listed.hash),
                is_hashed: listed.is_hashed,
                size: listed.size,
                compressed,
            });
        }
        Ok(Self {
            sources: list.sources,
            files,
        })
    }
}

impl File {
    /// Its content, for clients that do not accept gzip.
    ///
    /// # Errors
    /// It is damaged.
    pub fn content(&self) -> io::Result<Vec<u8>> {
        let mut content = Vec::with_capacity(self.size);
        GzDecoder::new(self.compressed).read_to_end(&mut content)?;
        Ok(content)
    }
}

/// The first line, and what follows it.
fn line(bytes: &'static [u8]) -> Option<(&'static [u8], &'static [u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_archives_are_refused() {
        for (bytes, part) in [
            ("", "begins with"),
            ("something else\n{}\n", "begins with"),
            ("weir-console-assets 1", "begins with"),
            ("weir-console-assets 1\n{}", "begins with"),
            ("weir-console-assets 1\n{}\n", "list of files"),
            (
                "weir-console-assets 1\n{\"sources\":\"s\",\"files\":[{\"path\":\"a.js\",\"media_type\":\"t\",\"hash\":\"h\",\"is_hashed\":true,\"size\":9,\"compressed\":3}]}\nab",
                "a.js is missing",
            ),
        ] {
            let error = Archive::read(bytes.as_bytes()).expect_err(bytes);
            assert!(error.to_string().contains(part), "{bytes}: {error}");
        }
    }
}
