//! Redirects back to applications, with the parameters that they get there.

use data_encoding::HEXLOWER;
use weir_plugin::uri::{decode_form, query_pairs};

/// The URI with these members in its query, or in its fragment. Members of the same name that the URI has are replaced. They
/// are written by name.
pub(super) fn with_members(uri: &str, members: &[(&str, String)], in_fragment: bool) -> String {
    let uri = uri.split('#').next().unwrap_or_default();
    let (base, query) = match uri.split_once('?') {
        Some((base, query)) => (base, Some(query)),
        None => (uri, None),
    };
    let own = match in_fragment {
        true => "",
        false => query.unwrap_or_default(),
    };
    let mut all: Vec<(Vec<u8>, Vec<u8>)> = query_pairs(own.as_bytes())
        .map(|(name, value)| {
            let value = decode_form(value.unwrap_or_default()).into_owned();
            (decode_form(name).into_owned(), value)
        })
        .filter(|(name, _)| !members.iter().any(|(known, _)| known.as_bytes() == *name))
        .collect();
    for (name, value) in members {
        all.push((name.as_bytes().to_vec(), value.clone().into_bytes()));
    }
    all.sort_by(|one, other| one.0.cmp(&other.0));
    let mut out = Vec::with_capacity(uri.len() + 128);
    out.extend_from_slice(if in_fragment {
        uri.as_bytes()
    } else {
        base.as_bytes()
    });
    out.push(if in_fragment { b'#' } else { b'?' });
    for (index, (name, value)) in all.iter().enumerate() {
        if index > 0 {
            out.push(b'&');
        }
        escape(name, &mut out);
        out.push(b'=');
        escape(value, &mut out);
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes a name or value, with escapes for all but letters, digits and `_`, in small letters, as the original does.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => out.push(*byte),
            _ => {
                out.push(b'%');
                out.extend_from_slice(HEXLOWER.encode(&[*byte]).as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_added_to_uris() {
        for (uri, members, in_fragment, expected) in [
            ("http://a/b", &[("code", "c")][..], false, "http://a/b?code=c"),
            (
                "http://a/b?foo=bar&code=123",
                &[("state", "s-t"), ("code", "c")],
                false,
                "http://a/b?code=c&foo=bar&state=s%2dt",
            ),
            ("http://a?x", &[("a", "&#=")], false, "http://a?a=%26%23%3d&x="),
            ("http://a/?x=1", &[("a", "1")], true, "http://a/?x=1#a=1"),
            ("my.app://cb#x", &[("a", "\r\n")], false, "my.app://cb?a=%0d%0a"),
        ] {
            let members: Vec<_> = members
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect();
            assert_eq!(with_members(uri, &members, in_fragment), expected);
        }
    }
}
