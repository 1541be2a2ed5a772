//! Signature Version 4 of AWS: a request's method, path, query, some headers and body, signed with a key made of a secret, a
//! day, a region and a service.

use aws_lc_rs::{digest, hmac};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_plugin::Headers;
use weir_plugin::uri::{query_pairs, unescape};

/// Who signs, and for what.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AwsSignature {
    /// The access key's id.
    pub access_key: String,
    /// The secret access key.
    pub secret_key: String,
    /// A session's token, for temporary keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_token: Option<String>,
    /// The region, such as `us-east-1`.
    pub region: String,
    /// The service, such as `lambda` or `execute-api`.
    pub service: String,
}

/// Keys are secrets.
impl std::fmt::Debug for AwsSignature {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("AwsSignature")
            .field("region", &self.region)
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

/// Signs requests.
pub(super) struct Signer {
    identity: AwsSignature,
    /// The secret with the prefix that the first step wants.
    secret: Vec<u8>,
}

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

impl Signer {
    pub(super) fn new(identity: AwsSignature) -> Self {
        Self {
            secret: format!("AWS4{}", identity.secret_key).into_bytes(),
            identity,
        }
    }

    /// Adds the headers of a signature. `target` is path and query as they are sent.
    pub(super) fn sign(
        &self,
        method: &[u8],
        host: &str,
        target: &[u8],
        headers: &mut Headers,
        body: &[u8],
        now_ms: u64,
    ) {
        let time = timestamp(now_ms / 1000);
        headers.set(b"X-Amz-Date", time.as_bytes());
        if let Some(token) = &self.identity.session_token {
            headers.set(b"X-Amz-Security-Token", token.as_bytes());
        }
        let mut signed: Vec<(String, String)> = headers
            .iter()
            .map(|header| (lower(header.name), trimmed(header.value)))
            .filter(|(name, _)| name == "content-type" || name.starts_with("x-amz-"))
            .collect();
        signed.push(("host".to_owned(), host.to_owned()));
        signed.sort();
        let names: Vec<&str> = signed.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(";");
        let lines: String = signed
            .iter()
            .map(|(name, value)| format!("{name}:{value}\n"))
            .collect();
        let (path, query) = match target.iter().position(|byte| *byte == b'?') {
            Some(at) => (&target[..at], &target[at + 1..]),
            None => (target, &b""[..]),
        };
        let request = format!(
            "{}\n{}\n{}\n{lines}\n{names}\n{}",
            String::from_utf8_lossy(method),
            canonical_path(path),
            canonical_query(query),
            hex(digest::digest(&digest::SHA256, body).as_ref()),
        );
        let AwsSignature {
            access_key,
            region,
            service,
            ..
        } = &self.identity;
        let day = &time[..8];
        let scope = format!("{day}/{region}/{service}/aws4_request");
        let hash = hex(digest::digest(&digest::SHA256, request.as_bytes()).as_ref());
        let text = format!("{ALGORITHM}\n{time}\n{scope}\n{hash}");
        let mut key = self.secret.clone();
        for step in [day, region, service, "aws4_request"] {
            key = mac(&key, step.as_bytes());
        }
        let signature = hex(&mac(&key, text.as_bytes()));
        let value = format!(
            "{ALGORITHM} Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        );
        headers.set(b"Authorization", value.as_bytes());
    }
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text)
        .as_ref()
        .to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn lower(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_ascii_lowercase()
}

/// A value without spaces around it, and with single ones in it.
fn trimmed(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value).into_owned();
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// Escapes all but unreserved characters.
fn encode(text: &[u8], keeps_slash: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(*byte))
            }
            b'/' if keeps_slash => out.push('/'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The path as it is sent, escaped once more, without empty and dotted segments.
fn canonical_path(path: &[u8]) -> String {
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in path.split(|byte| *byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    let mut joined = vec![b'/'];
    joined.extend(segments.join(&b'/'));
    if joined.len() > 1 && path.ends_with(b"/") {
        joined.push(b'/');
    }
    encode(&joined, true)
}

fn canonical_query(query: &[u8]) -> String {
    let mut pairs: Vec<(String, String)> = query_pairs(query)
        .map(|(name, value)| {
            let value = value.unwrap_or_default();
            (encode(&unescape(name), false), encode(&unescape(value), false))
        })
        .collect();
    pairs.sort();
    let pairs: Vec<String> = pairs
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("&")
}

/// `20150830T123600Z`.
fn timestamp(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Days to a date, in years that begin in March (Howard Hinnant's algorithm).
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hours, minutes, seconds) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}{month:02}{day:02}T{hours:02}{minutes:02}{seconds:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2015-08-30 12:36:00 UTC, as in the vectors that AWS has published.
    const TIME: u64 = 1_440_938_160_000;

    fn signer() -> Signer {
        Signer::new(AwsSignature {
            access_key: "AKIDEXAMPLE".into(),
            secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session_token: None,
            region: "us-east-1".into(),
            service: "service".into(),
        })
    }

    #[test]
    fn published_vectors_are_signed_alike() {
        for (name, method, target, given, body, names, signature) in [
            (
                "get-vanilla",
                "GET",
                "/",
                &[][..],
                "",
                "host;x-amz-date",
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                "get-vanilla-query-order-key-case",
                "GET",
                "/?Param2=value2&Param1=value1",
                &[],
                "",
                "host;x-amz-date",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
            (
                "post-vanilla",
                "POST",
                "/",
                &[],
                "",
                "host;x-amz-date",
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                "post-x-www-form-urlencoded",
                "POST",
                "/",
                &[("Content-Type", "application/x-www-form-urlencoded")],
                "Param1=value1",
                "content-type;host;x-amz-date",
                "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            ),
        ] {
            let mut headers = Headers::default();
            for (name, value) in given {
                headers.append(name.as_bytes(), value.as_bytes());
            }
            let host = "example.amazonaws.com";
            signer().sign(
                method.as_bytes(),
                host,
                target.as_bytes(),
                &mut headers,
                body.as_bytes(),
                TIME,
            );
            let expected = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
                 SignedHeaders={names}, Signature={signature}"
            );
            assert_eq!(headers.get(b"authorization"), Some(expected.as_bytes()), "{name}");
        }
    }

    #[test]
    fn paths_and_times_have_one_form() {
        for (path, expected) in [
            ("/", "/"),
            ("", "/"),
            ("//a/./b/../c", "/a/c"),
            ("/a%3Ab/", "/a%253Ab/"),
            ("/ä", "/%C3%A4"),
        ] {
            assert_eq!(canonical_path(path.as_bytes()), expected, "{path}");
        }
        assert_eq!(canonical_query(b"b=2&a=%20x&a&B=+"), "B=%2B&a=&a=%20x&b=2");
        for (seconds, expected) in [
            (0, "19700101T000000Z"),
            (951_782_400, "20000229T000000Z"),
            (4_102_444_799, "20991231T235959Z"),
        ] {
            assert_eq!(timestamp(seconds), expected);
        }
    }
}
