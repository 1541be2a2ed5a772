//! Parses the header that carries a call's signature.

use super::Form;

/// The parts of a signature header that were present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Signature<'h> {
    /// The credential's key.
    pub(super) key: Option<&'h [u8]>,
    /// The algorithm's name.
    pub(super) algorithm: Option<&'h [u8]>,
    /// The names of the headers that are signed, with spaces between them; `None`: none is named.
    pub(super) headers: Option<&'h [u8]>,
    /// The signature in Base64.
    pub(super) signature: Option<&'h [u8]>,
}

/// Reads a header's value; `None`: it is of another scheme.
pub(super) fn read(value: &[u8], form: Form) -> Option<Signature<'_>> {
    match form {
        Form::Hmac => read_hmac(value),
        Form::Signature => {
            let rest = value.strip_prefix(b"Signature")?;
            Some(read_fields(rest.get(1..).unwrap_or_default()))
        }
    }
}

/// Four fields in a fixed order behind the word.
fn read_hmac(value: &[u8]) -> Option<Signature<'_>> {
    let is_scheme = |word: &[u8]| word == b"hmac" || word == b"Hmac";
    let at = value.windows(4).position(is_scheme)?;
    let mut rest = &value[at + 4..];
    let mut fields = [None; 4];
    let names: [&[u8]; 4] = [b"username", b"algorithm", b"headers", b"signature"];
    for (index, (name, field)) in names.into_iter().zip(&mut fields).enumerate() {
        let text = rest.trim_ascii_start().strip_prefix(name)?.strip_prefix(b"=\"")?;
        let end = text.iter().position(|byte| *byte == b'"')?;
        *field = Some(&text[..end]);
        rest = &text[end + 1..];
        if index < 3 {
            rest = rest.strip_prefix(b",")?;
        }
    }
    let [key, algorithm, headers, signature] = fields;
    if fields.iter().flatten().any(|field| field.is_empty()) {
        return None;
    }
    Some(Signature {
        key,
        algorithm,
        headers,
        signature,
    })
}

/// Reads fields in any order, separated by commas, and skips what is not a field.
fn read_fields(value: &[u8]) -> Signature<'_> {
    let mut read = Signature::default();
    for field in value.split(|byte| *byte == b',') {
        let Some(equals) = field.windows(2).position(|pair| pair == b"=\"") else {
            continue;
        };
        let text = &field[equals + 2..];
        let Some(end) = text.iter().position(|byte| *byte == b'"') else {
            continue;
        };
        let text = Some(&text[..end]);
        match field[..equals].trim_ascii() {
            b"keyId" => read.key = text,
            b"algorithm" => read.algorithm = text,
            b"headers" => read.headers = text,
            b"signature" => read.signature = text,
            _ => {}
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let all = |key, algorithm, headers, signature| {
            Some(
                [key, algorithm, headers, signature]
                    .map(|text: &str| (!text.is_empty()).then(|| text.to_owned())),
            )
        };
        for (form, value, expected) in [
            (
                Form::Hmac,
                r#"hmac username="al", algorithm="hmac-sha256", headers="date x-a", signature="ab+/=""#,
                all("al", "hmac-sha256", "date x-a", "ab+/="),
            ),
            (
                Form::Hmac,
                r#"Hmac username="al",algorithm="a",headers="h",signature="s""#,
                all("al", "a", "h", "s"),
            ),
            (
                Form::Hmac,
                r#"hmac username="al", headers="h", algorithm="a", signature="s""#,
                None,
            ),
            (
                Form::Hmac,
                r#"hmac username="", algorithm="a", headers="h", signature="s""#,
                None,
            ),
            (Form::Hmac, "HMAC", None),
            (Form::Hmac, "", None),
            (
                Form::Signature,
                r#"Signature keyId="k",algorithm="hmac-sha256", headers="@request-target date",signature="s=""#,
                all("k", "hmac-sha256", "@request-target date", "s="),
            ),
            (
                Form::Signature,
                r#"Signature signature="s",keyId="k""#,
                all("k", "", "", "s"),
            ),
            (Form::Signature, "Signature", all("", "", "", "")),
            (Form::Signature, r#"Signature keyId="k"#, all("", "", "", "")),
            (Form::Signature, "Basic abc", None),
        ] {
            let got = read(value.as_bytes(), form).map(|it| {
                [it.key, it.algorithm, it.headers, it.signature]
                    .map(|field| field.map(|text| String::from_utf8_lossy(text).into_owned()))
            });
            assert_eq!(got, expected, "{value}");
        }
    }
}
