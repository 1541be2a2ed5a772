//! Taking arguments out of a request's query, the rest as it was or encoded again. Reading them is the contract's.

use weir_plugin::Request;
use weir_plugin::uri::{decode_form, encode_form, query_pairs};

/// Takes out every argument of this name and leaves the rest as it was written; a query without arguments goes whole.
pub(crate) fn remove_argument(request: &mut Request, name: &[u8]) {
    let Some(query) = request.query.as_deref() else {
        return;
    };
    let mut kept = Vec::with_capacity(query.len());
    let mut found = false;
    for pair in query.split(|byte| *byte == b'&') {
        let key = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
        if decode_form(key) == name {
            found = true;
            continue;
        }
        if !kept.is_empty() {
            kept.push(b'&');
        }
        kept.extend_from_slice(pair);
    }
    if found {
        request.query = (!kept.is_empty()).then_some(kept);
    }
}

/// Takes out every argument of this name and encodes the rest again: each with a `=`, a space as `+`. The `?` stays.
pub(crate) fn remove_argument_and_encode(request: &mut Request, name: &[u8]) {
    let Some(query) = request.query.as_deref() else {
        return;
    };
    let mut kept = Vec::with_capacity(query.len());
    for (key, value) in query_pairs(query) {
        let key = decode_form(key);
        if key == name {
            continue;
        }
        if !kept.is_empty() {
            kept.push(b'&');
        }
        encode_form(&key, &mut kept);
        kept.push(b'=');
        encode_form(&decode_form(value.unwrap_or_default()), &mut kept);
    }
    request.query = Some(kept);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_taken_out() {
        for (query, kept, encoded) in [
            (None, None, None),
            (Some("k=1"), None, Some("")),
            (Some("a=1&k=1&b=%20c"), Some("a=1&b=%20c"), Some("a=1&b=+c")),
            (Some("a&%6B&b=&k=2"), Some("a&b="), Some("a=&b=")),
            (Some("kk=1&xk=%zz"), Some("kk=1&xk=%zz"), Some("kk=1&xk=%25zz")),
            (Some(""), Some(""), Some("")),
        ] {
            for (encodes, expected) in [(false, kept), (true, encoded)] {
                let mut request = Request::default();
                request.query = query.map(|query| query.as_bytes().to_vec());
                match encodes {
                    false => remove_argument(&mut request, b"k"),
                    true => remove_argument_and_encode(&mut request, b"k"),
                }
                assert_eq!(request.query.as_deref(), expected.map(str::as_bytes), "{query:?}");
            }
        }
    }
}
