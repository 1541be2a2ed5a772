//! Reading user names and passwords out of a header, without an allocation for those of a usual length.

use super::Config;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Padding may be left out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Bytes of user name and password together that are read at most.
const MOST: usize = 768;

/// A place for what is decoded.
pub(super) struct DecodeBuffer([u8; MOST]);

impl DecodeBuffer {
    pub(super) fn new() -> Self {
        Self([0; MOST])
    }
}

/// The user name and the password in a header's value.
pub(super) fn read<'r>(
    value: &[u8],
    config: &Config,
    room: &'r mut DecodeBuffer,
) -> Option<(&'r [u8], &'r [u8])> {
    let text = behind_scheme(value, config.any_case)?;
    let length = BASE64.decode_slice(text, &mut room.0).ok()?;
    let decoded = &mut room.0[..length];
    if !config.ignore_spaces {
        let colon = decoded.iter().position(|byte| *byte == b':')?;
        return (colon > 0).then(|| (&decoded[..colon], &decoded[colon + 1..]));
    }
    let length = without_spaces(decoded);
    let decoded = &decoded[..length];
    let mut parts = decoded.split(|byte| *byte == b':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(username), Some(password), None) => Some((username, password)),
        // A password that was cut at its first colon would be a different password.
        (Some(_), Some(_), Some(_)) => Some((b"", b"")),
        _ => None,
    }
}

/// The text after the word `Basic`, which may come anywhere in the value.
fn behind_scheme(value: &[u8], any_case: bool) -> Option<&[u8]> {
    let is_scheme = |word: &[u8]| match any_case {
        true => word.eq_ignore_ascii_case(b"basic"),
        false => word == b"Basic" || word == b"basic",
    };
    let at = value.windows(5).position(is_scheme)?;
    let rest = value[at + 5..].trim_ascii_start();
    (!rest.is_empty()).then_some(rest)
}

/// Moves what is not a white space together; says how much it is.
fn without_spaces(bytes: &mut [u8]) -> usize {
    let mut kept = 0;
    for at in 0..bytes.len() {
        if !bytes[at].is_ascii_whitespace() {
            bytes[kept] = bytes[at];
            kept += 1;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD as ENCODER;

    #[test]
    fn values_are_read() {
        let encoded = |text: &str| ENCODER.encode(text);
        let strict = Config {
            any_case: false,
            ..Config::default()
        };
        let spaceless = Config {
            ignore_spaces: true,
            ..Config::default()
        };
        let long = format!("u:{}", "p".repeat(MOST));
        let plain = Config::default();
        for (config, value, expected) in [
            (&plain, format!("Basic {}", encoded("a:b")), Some(("a", "b"))),
            (
                &plain,
                format!("BASIC   {}", encoded("a:b:c")),
                Some(("a", "b:c")),
            ),
            (&plain, format!("basic{}", encoded("a:")), Some(("a", ""))),
            (&plain, format!("Basic {}", encoded(":b")), None),
            (&plain, format!("Basic {}", encoded("ab")), None),
            (&plain, "Basic !!!".into(), None),
            (&plain, "Basic a b".into(), None),
            (&plain, "Basic".into(), None),
            (&plain, "Bearer abc".into(), None),
            (&plain, String::new(), None),
            (&plain, format!("Basic {}", encoded(&long)), None),
            (&strict, format!("BASIC {}", encoded("a:b")), None),
            (
                &strict,
                format!("basic {}", encoded("a:b").trim_end_matches('=')),
                Some(("a", "b")),
            ),
            (
                &spaceless,
                format!("Basic {}", encoded("a c: b ")),
                Some(("ac", "b")),
            ),
            (&spaceless, format!("Basic {}", encoded("a:b:c")), Some(("", ""))),
        ] {
            let mut room = DecodeBuffer::new();
            let got = read(value.as_bytes(), config, &mut room);
            let expected = expected.map(|(name, password)| (name.as_bytes(), password.as_bytes()));
            assert_eq!(got, expected, "{value}");
        }
    }
}
