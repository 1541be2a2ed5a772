//! How messages travel: in the query of a redirect (compressed, and signed beside the message), or in a form that a page posts.

use crate::error::{SamlError, ensure};
use crate::escape::escaped;
use crate::keys::SigningKey;
use crate::signature::{self, Trust};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::io::{Read as _, Write as _};

/// What stands in a query as it is.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A message that came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The message.
    pub xml: String,
    /// The state that the request was sent with.
    pub relay_state: Option<String>,
    /// Whether the binding's own signature covers all of it; it has been checked.
    pub is_signed: bool,
}

/// Reads the fields of a posted form: the message and the state.
///
/// # Errors
/// The message is not Base64 of a text, or too long.
pub fn from_form(
    message: &[u8],
    relay_state: Option<String>,
    max_bytes: usize,
) -> Result<Received, SamlError> {
    ensure(message.len() / 4 * 3 <= max_bytes, "the message is too long")?;
    let bytes = message_bytes(std::str::from_utf8(message).unwrap_or_default())?;
    let xml = String::from_utf8(bytes).map_err(|_| SamlError("the message is not UTF-8"))?;
    Ok(Received {
        xml,
        relay_state,
        is_signed: false,
    })
}

fn message_bytes(text: &str) -> Result<Vec<u8>, SamlError> {
    // A plus sign that was not encoded has become a blank; line ends are allowed.
    let text: String = text
        .chars()
        .filter(|it| !matches!(it, '\r' | '\n' | '\t'))
        .map(|it| if it == ' ' { '+' } else { it })
        .collect();
    STANDARD
        .decode(text)
        .ok()
        .filter(|bytes| !bytes.is_empty())
        .ok_or(SamlError("the message is not Base64"))
}

/// Reads a query: `SAMLRequest` or `SAMLResponse` (`name`), and its signature, if it has one. `None`: it has no such
/// parameter.
///
/// # Errors
/// It cannot be read, is too long, has a parameter twice, or its signature is not good.
pub fn from_query(
    query: &str,
    name: &str,
    trust: &Trust,
    max_bytes: usize,
) -> Result<Option<Received>, SamlError> {
    let raw = |wanted: &str| -> Result<Option<&str>, SamlError> {
        let mut values = query.split('&').filter_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (key == wanted).then_some(value)
        });
        let first = values.next();
        ensure(values.next().is_none(), "the query has a parameter twice")?;
        Ok(first)
    };
    let Some(message) = raw(name)? else {
        return Ok(None);
    };
    let (state, algorithm, signature) = (raw("RelayState")?, raw("SigAlg")?, raw("Signature")?);
    let is_signed = match (algorithm, signature) {
        (None, None) => false,
        (Some(algorithm), Some(signature)) => {
            // What is signed are the parameters as they were sent (SAML bindings, 3.4.4.1).
            let state = state
                .map(|state| format!("&RelayState={state}"))
                .unwrap_or_default();
            let bytes = format!("{name}={message}{state}&SigAlg={algorithm}");
            let signature = message_bytes(&decoded(signature)?)?;
            trust.check(&decoded(algorithm)?, bytes.as_bytes(), &signature)?;
            true
        }
        _ => return Err(SamlError("the query has half a signature")),
    };
    ensure(message.len() <= max_bytes, "the message is too long")?;
    let packed = message_bytes(&decoded(message)?)?;
    let mut xml = String::new();
    let mut unpacked = DeflateDecoder::new(packed.as_slice()).take(max_bytes as u64 + 1);
    let read = unpacked.read_to_string(&mut xml);
    read.map_err(|_| SamlError("the message cannot be unpacked"))?;
    ensure(xml.len() <= max_bytes, "the message is too long")?;
    Ok(Some(Received {
        xml,
        relay_state: state.map(decoded).transpose()?,
        is_signed,
    }))
}

fn decoded(raw: &str) -> Result<String, SamlError> {
    let text = raw.replace('+', " ");
    let text = percent_decode_str(&text).decode_utf8();
    text.map(|it| it.into_owned())
        .map_err(|_| SamlError("the query is not UTF-8"))
}

/// The address that brings a message to a place by a redirect, signed if there is a key.
pub fn redirect_url(
    destination: &str,
    name: &str,
    message: &str,
    relay_state: Option<&str>,
    key: Option<&SigningKey>,
) -> String {
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::default());
    let packed = packer
        .write_all(message.as_bytes())
        .and_then(|()| packer.finish());
    let packed = packed.expect("invariant: memory takes what is written to it");
    let encoded = |text: &str| utf8_percent_encode(text, QUERY).to_string();
    let mut query = format!("{name}={}", encoded(&STANDARD.encode(packed)));
    if let Some(state) = relay_state {
        query.push_str(&format!("&RelayState={}", encoded(state)));
    }
    if let Some(key) = key {
        query.push_str(&format!("&SigAlg={}", encoded(key.uri())));
        let signature = STANDARD.encode(key.sign(query.as_bytes()));
        query.push_str(&format!("&Signature={}", encoded(&signature)));
    }
    let mark = if destination.contains('?') { '&' } else { '?' };
    format!("{destination}{mark}{query}")
}

/// The script that posts the form. The page's policy names its hash, so that no other script runs.
const SCRIPT: &str = "document.forms[0].submit()";

/// A page that posts a message to an address, signed if there is a key. Returns the page and its
/// `Content-Security-Policy`.
///
/// # Errors
/// The message was not made by this crate.
pub fn form_page(
    destination: &str,
    name: &str,
    message: &str,
    relay_state: Option<&str>,
    key: Option<&SigningKey>,
) -> Result<(String, String), SamlError> {
    let message = match key {
        Some(key) => signature::sign(message, key)?,
        None => message.to_owned(),
    };
    let field = |name: &str, value: &str| {
        let value = escaped(value);
        format!("<input type=\"hidden\" name=\"{name}\" value=\"{value}\">")
    };
    let state = relay_state
        .map(|state| field("RelayState", state))
        .unwrap_or_default();
    let page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Log in</title></head><body>\
         <form method=\"post\" action=\"{}\">{}{state}<noscript><button>Continue</button></noscript></form>\
         <script>{SCRIPT}</script></body></html>\n",
        escaped(destination),
        field(name, &STANDARD.encode(message)),
    );
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, SCRIPT.as_bytes());
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'",
        STANDARD.encode(hash)
    );
    Ok((page, policy))
}
