//! `csrf`: lets calls that change something pass only from pages that this API's own cookie was given to.
//!
//! ```yaml
//! key: a-long-secret
//! expires_seconds: 3600
//! ```
//!
//! Every response brings a signed token in a cookie. A page of the same site reads it and sends it back in a header of
//! the same name; pages of other sites can do neither. `GET`, `HEAD` and `OPTIONS` pass without.
//!
//! Security: it needs a key that cannot be guessed, and callers that are browsers. It does not say who calls.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Context, SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER;
use httpdate::HttpDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cell::Cell;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use weir_model::Diagnostic;
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Refusal, RefusalKind, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `csrf`. `Debug` does not show the key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What tokens are signed with.
    pub key: String,
    /// The lifetime of a token, in seconds. 0 or less: unlimited (and the browser drops the cookie at once).
    #[serde(default = "two_hours")]
    pub expires_seconds: i64,
    /// The name of cookie and header.
    #[serde(default = "standard_name")]
    pub name: String,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("expires_seconds", &self.expires_seconds)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn two_hours() -> i64 {
    7_200
}

fn standard_name() -> String {
    "csrf-token".into()
}

/// The plugin `csrf`.
pub struct Csrf;

impl Plugin for Csrf {
    fn name(&self) -> &'static str {
        "csrf"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_name("name", &config.name);
        if config.name.len() > NAME {
            faults.add("name", format!("expected at most {NAME} characters"));
        }
        faults.done()?;
        Ok(Arc::new(TokenFilter(config)))
    }
}

/// An instance of `csrf`.
struct TokenFilter(Config);

impl TokenFilter {
    fn check(&self, exchange: &mut Exchange) -> Result<(), &'static str> {
        let now = exchange.unix_ms() / 1_000;
        let name = self.0.name.as_bytes();
        let request = &exchange.request;
        let header = request.headers.get(name).filter(|value| !value.is_empty());
        let header = header.ok_or("no csrf token in headers")?;
        let cookie = request.cookie(name).ok_or("no csrf cookie")?;
        if header != cookie {
            return Err("csrf token mismatch");
        }
        self.verify(cookie, now)
            .ok_or("Failed to verify the csrf token signature")
    }

    fn verify(&self, token: &[u8], now: u64) -> Option<()> {
        let token: Value = serde_json::from_slice(&STANDARD.decode(token).ok()?).ok()?;
        let number = |field: &str| match token.get(field)? {
            Value::Number(number) => Some(number),
            _ => None,
        };
        let (random, made) = (number("random")?, number("expires")?);
        let age = now as f64 - made.as_f64()?;
        if self.0.expires_seconds > 0 && age > self.0.expires_seconds as f64 {
            return None;
        }
        let sign = self.sign(&random.to_string(), &made.to_string());
        let signature = token.get("sign")?.as_str()?;
        verify_slices_are_equal(&sign, signature.as_bytes()).ok()
    }

    /// The signature in hexadecimal digits.
    fn sign(&self, random: &str, made: &str) -> [u8; 64] {
        let mut text = Text::<SIGNED>::default();
        let parts = ["{expires:", made, ",random:", random, ",key:", &self.0.key, "}"];
        let digest = match parts.iter().map(|part| part.len()).sum::<usize>() <= SIGNED {
            // In one piece it takes half as long.
            true => {
                parts.iter().for_each(|part| text.push(part.as_bytes()));
                digest(&SHA256, text.bytes())
            }
            false => {
                let mut context = Context::new(&SHA256);
                parts.iter().for_each(|part| context.update(part.as_bytes()));
                context.finish()
            }
        };
        let mut digits = [0; 64];
        HEXLOWER.encode_mut(digest.as_ref(), &mut digits);
        digits
    }

    /// Writes a fresh token, with what a browser is to know about the cookie.
    fn write_cookie(&self, exchange: &mut Exchange, out: &mut Text<COOKIE>) {
        let now = exchange.unix_ms() / 1_000;
        // As many digits as every reader of JSON keeps; an odd number has no 0 at its end, which readers leave out.
        let random = (exchange.random_u64() % 90_000_000_000_000 + 10_000_000_000_000) | 1;
        let mut fraction = Text::<16>::default();
        fraction.push(b"0.");
        fraction.push(itoa::Buffer::new().format(random).as_bytes());
        let mut seconds = itoa::Buffer::new();
        let made = seconds.format(now);
        let mut token = Text::<192>::default();
        for part in [
            b"{\"random\":",
            fraction.bytes(),
            b",\"expires\":",
            made.as_bytes(),
            b",\"sign\":\"",
            &self.sign(fraction.as_str(), made),
            b"\"}",
        ] {
            token.push(part);
        }
        let mut encoded = [0; 256];
        let length = STANDARD
            .encode_slice(token.bytes(), &mut encoded)
            .unwrap_or_default();
        out.push(self.0.name.as_bytes());
        out.push(b"=");
        out.push(&encoded[..length]);
        out.push(b";path=/;SameSite=Lax;Expires=");
        let end = now.saturating_add_signed(self.0.expires_seconds).min(LATEST);
        out.push(&date(end));
    }
}

/// The last second of the year 9999, beyond which there are no dates in headers.
const LATEST: u64 = 253_402_300_799;

/// The most bytes of a cookie's name, and of the whole cookie.
const NAME: usize = 256;
const COOKIE: usize = 640;
/// Bytes of what is signed, usually.
const SIGNED: usize = 256;
/// Bytes of a date in a header.
const DATE: usize = 29;

thread_local! {
    /// The last date that was written, and its second: all calls of a second need the same.
    static WRITTEN: Cell<(u64, [u8; DATE])> = const { Cell::new((u64::MAX, [b' '; DATE])) };
}

/// A date as headers have it.
fn date(second: u64) -> [u8; DATE] {
    let (last, text) = WRITTEN.get();
    if last == second {
        return text;
    }
    let mut text = Text::<DATE>::default();
    let written = write!(
        text,
        "{}",
        HttpDate::from(UNIX_EPOCH + Duration::from_secs(second))
    );
    debug_assert!(written.is_ok() && text.1 == DATE);
    WRITTEN.set((second, text.0));
    text.0
}

/// A text of at most so many bytes; what is too much is left out.
struct Text<const N: usize>([u8; N], usize);

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self([0; N], 0)
    }
}

impl<const N: usize> Text<N> {
    fn push(&mut self, part: &[u8]) {
        if let Some(room) = self.0.get_mut(self.1..self.1 + part.len()) {
            room.copy_from_slice(part);
            self.1 += part.len();
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.0[..self.1]
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(self.bytes()).unwrap_or_default()
    }
}

impl<const N: usize> std::fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

impl Filter for TokenFilter {
    fn phases(&self) -> Phases {
        Phases::BOTH
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if matches!(exchange.request.method.as_slice(), b"GET" | b"HEAD" | b"OPTIONS") {
            return Outcome::Continue;
        }
        match self.check(exchange) {
            Ok(()) => Outcome::Continue,
            Err(message) => {
                let kind = RefusalKind::Forbidden { plugin: "csrf" };
                let mut refusal = Refusal::with_status(kind, 401);
                refusal.message = Some(message.to_owned());
                Outcome::Refuse(Box::new(refusal))
            }
        }
    }

    fn on_response(&self, exchange: &mut Exchange) {
        let mut cookie = Text::<COOKIE>::default();
        self.write_cookie(exchange, &mut cookie);
        exchange.response.headers.append(b"Set-Cookie", cookie.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    fn token(filter: &dyn Filter) -> String {
        let mut exchange = exchange();
        filter.on_response(&mut exchange);
        let line = lines(&exchange.response.headers).remove(0);
        let value = line.strip_prefix("Set-Cookie: t=").expect("a cookie");
        value.split(';').next().expect("a value").to_owned()
    }

    #[test]
    fn calls_need_the_token() {
        let filter = build(&Csrf, &json!({"key": "k", "name": "t"})).expect("valid");
        let other = build(&Csrf, &json!({"key": "other", "name": "t"})).expect("valid");
        let (own, others) = (token(&*filter), token(&*other));
        let old = STANDARD.encode(r#"{"random":0.1,"expires":1,"sign":""}"#);
        for (line, header, cookie, expected) in [
            ("GET /", None, None, "continue"),
            ("OPTIONS /", None, None, "continue"),
            ("POST /", Some(&own), Some(&own), "continue"),
            ("POST /", None, Some(&own), "no csrf token in headers"),
            ("POST /", Some(&own), None, "no csrf cookie"),
            ("PUT /", Some(&own), Some(&others), "csrf token mismatch"),
            (
                "PUT /",
                Some(&others),
                Some(&others),
                "Failed to verify the csrf token signature",
            ),
            (
                "PUT /",
                Some(&old),
                Some(&old),
                "Failed to verify the csrf token signature",
            ),
        ] {
            let mut exchange = exchange();
            prepare(&mut exchange, line, &[]);
            if let Some(header) = header {
                exchange.request.headers.append(b"T", header.as_bytes());
            }
            if let Some(cookie) = cookie {
                let cookie = format!("a=b; t={cookie}");
                exchange.request.headers.append(b"Cookie", cookie.as_bytes());
            }
            let got = match filter.on_request(&mut exchange) {
                Outcome::Refuse(refusal) => refusal.message.clone().unwrap_or_default(),
                outcome => word(&outcome),
            };
            assert_eq!(got, expected, "{line} {header:?} {cookie:?}");
        }
    }

    #[test]
    fn the_cookie_ends_when_the_token_does() {
        let filter = build(&Csrf, &example(include_str!("csrf.rs"))).expect("valid");
        let mut exchange = exchange();
        filter.on_response(&mut exchange);
        let line = lines(&exchange.response.headers).remove(0);
        let end = ";path=/;SameSite=Lax;Expires=Fri, 20 Nov 2026 16:31:00 GMT";
        assert!(
            line.starts_with("Set-Cookie: csrf-token=ey") && line.ends_with(end),
            "{line}"
        );
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        for (config, places) in [(json!({}), [""]), (json!({"key": "k", "name": "a b"}), ["name"])] {
            assert_eq!(refused_at(&Csrf, &config), places, "{config}");
        }
    }
}
