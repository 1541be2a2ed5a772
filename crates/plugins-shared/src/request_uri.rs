//! The address of a call: path and query together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_plugin::Request;

/// A form of a request's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UriForm {
    /// As the client wrote it.
    AsWritten,
    /// With the path as it is matched: dot segments resolved and, as the dialect has it, decoded.
    #[default]
    Matched,
}

/// Most addresses are short enough to be put together without an allocation.
const USUAL: usize = 512;

/// Hands the request's address over.
#[inline]
pub fn with_uri<T>(form: UriForm, request: &Request, take: impl FnOnce(&[u8]) -> T) -> T {
    let path: &[u8] = match form {
        UriForm::AsWritten => &request.raw_path,
        UriForm::Matched => &request.path,
    };
    let query = match (&request.query, form) {
        (None, _) => return take(path),
        (Some(query), UriForm::Matched) if query.is_empty() => return take(path),
        (Some(query), _) => query,
    };
    let length = path.len() + 1 + query.len();
    if length > USUAL {
        return take(&[path, b"?", query].concat());
    }
    let mut room = [0; USUAL];
    room[..path.len()].copy_from_slice(path);
    room[path.len()] = b'?';
    room[path.len() + 1..length].copy_from_slice(query);
    take(&room[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_and_query_are_put_together() {
        let long = "x".repeat(600);
        for (query, as_written, matched) in [
            (None, "/%61".to_owned(), "/a".to_owned()),
            (Some(""), "/%61?".to_owned(), "/a".to_owned()),
            (Some("b=1"), "/%61?b=1".to_owned(), "/a?b=1".to_owned()),
            (Some(long.as_str()), format!("/%61?{long}"), format!("/a?{long}")),
        ] {
            let mut request = Request::default();
            request.raw_path = b"/%61".to_vec();
            request.path = b"/a".to_vec();
            request.query = query.map(|query| query.as_bytes().to_vec());
            for (form, expected) in [(UriForm::AsWritten, as_written), (UriForm::Matched, matched)] {
                let got = with_uri(form, &request, |uri| String::from_utf8_lossy(uri).into_owned());
                assert_eq!(got, expected, "{query:?}");
            }
        }
    }
}
