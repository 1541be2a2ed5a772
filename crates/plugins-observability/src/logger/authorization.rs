//! Authentication of a logger's requests, if it differs for each of them: signatures that contain a time, and tokens
//! that are fetched.

use super::target::HttpTarget;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use aws_lc_rs::{digest, hmac};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use weir_plugin::{LogAuthorization, LogAuthorizer, LogHttp, LogSigner, LogSink};

/// How requests show who they are from.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Authorization {
    /// The account of a service of Google (RFC 7523): a signed assertion is exchanged for a token.
    ServiceAccount(ServiceAccount),
    /// Signatures of Tencent's Cloud Log Service.
    TencentCls(TencentCls),
}

/// Its fields are secrets.
impl std::fmt::Debug for Authorization {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authorization").finish_non_exhaustive()
    }
}

/// The account of a service.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceAccount {
    /// Its address.
    pub email: String,
    /// Its private key: RSA, as PEM.
    pub private_key: String,
    /// The token endpoint.
    pub token_url: String,
    /// What tokens are for.
    #[serde(default)]
    pub scopes: Vec<String>,
}

/// A key of Tencent's cloud.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TencentCls {
    /// The key's id.
    pub secret_id: String,
    /// The key.
    pub secret_key: String,
}

impl Authorization {
    /// What makes the headers of requests to a server that is met as `http` says.
    ///
    /// # Errors
    /// What was expected.
    pub fn signer(&self, http: &HttpTarget) -> Result<LogSigner, &'static str> {
        let id = json!([self, http.timeout_ms, http.verify_tls]).to_string();
        let id = digest::digest(&digest::SHA256, id.as_bytes());
        let id = URL_SAFE_NO_PAD.encode(id);
        Ok(match self {
            Self::TencentCls(key) => LogSigner::new(id, Arc::new(key.clone())),
            Self::ServiceAccount(account) => LogSigner::new(id, Arc::new(Tokens::of(account, http)?)),
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hmac_sha1(key: &str, text: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key.as_bytes());
    hex(hmac::sign(&key, text.as_bytes()).as_ref())
}

/// Seconds for which a signature holds.
const SIGNED_FOR_S: u64 = 60;

impl LogAuthorizer for TencentCls {
    fn authorize(&self, now_ms: u64) -> LogAuthorization {
        let now_s = now_ms / 1000;
        let time = format!("{now_s};{}", now_s + SIGNED_FOR_S);
        let request = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, b"post\n/structuredlog\n\n\n");
        let signed = format!("sha1\n{time}\n{}\n", hex(request.as_ref()));
        let signature = hmac_sha1(&hmac_sha1(&self.secret_key, &time), &signed);
        LogAuthorization::Header(format!(
            "q-sign-algorithm=sha1&q-ak={}&q-sign-time={time}&q-key-time={time}&q-header-list=&q-url-param-list=&q-signature={signature}",
            self.secret_id
        ))
    }

    fn take(&self, _: u16, _: &[u8], _: u64) {}
}

/// Seconds before its end when a token is fetched again.
const EARLY_S: u64 = 60;
/// Seconds for which a token is kept at most, whatever its server says.
const MAX_LIFE_S: u64 = 86_400;

/// Tokens of an account.
struct Tokens {
    account: ServiceAccount,
    key: RsaKeyPair,
    server: LogHttp,
    /// The header, and until when it holds, in Unix seconds.
    token: Mutex<Option<(String, u64)>>,
}

impl Tokens {
    fn of(account: &ServiceAccount, http: &HttpTarget) -> Result<Self, &'static str> {
        let server = HttpTarget {
            url: account.token_url.clone(),
            content_type: "application/x-www-form-urlencoded".into(),
            headers: BTreeMap::new(),
            authorization: None,
            ..http.clone()
        };
        let Ok(LogSink::Http(server)) = server.sink() else {
            return Err("expected a token_url of http:// or https://");
        };
        Ok(Self {
            key: key(&account.private_key).ok_or("expected an RSA key as PEM")?,
            account: account.clone(),
            server,
            token: Mutex::default(),
        })
    }

    fn assertion(&self, now_s: u64) -> Option<String> {
        let claims = json!({
            "iss": self.account.email,
            "aud": self.account.token_url,
            "scope": self.account.scopes.join(" "),
            "iat": now_s,
            "exp": now_s + 3600,
        });
        let header = json!({"alg": "RS256", "typ": "JWT"});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let mut signature = vec![0; self.key.public_modulus_len()];
        let made = self.key.sign(
            &RSA_PKCS1_SHA256,
            &SystemRandom::new(),
            signed.as_bytes(),
            &mut signature,
        );
        made.ok()?;
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// An RSA key as PEM, in PKCS #8 or PKCS #1.
fn key(pem: &str) -> Option<RsaKeyPair> {
    // Keys in documents have `\n` for line ends now and then.
    let pem = pem.replace("\\n", "\n");
    let (_, rest) = pem.split_once("-----BEGIN ")?;
    let (kind, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once("-----END ")?;
    let text: String = body.split_whitespace().collect();
    let bytes = STANDARD.decode(text).ok()?;
    match kind {
        "PRIVATE KEY" => RsaKeyPair::from_pkcs8(&bytes).ok(),
        "RSA PRIVATE KEY" => RsaKeyPair::from_der(&bytes).ok(),
        _ => None,
    }
}

impl LogAuthorizer for Tokens {
    fn authorize(&self, now_ms: u64) -> LogAuthorization {
        let now_s = now_ms / 1000;
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((header, until)) = &*token
            && now_s + EARLY_S < *until
        {
            return LogAuthorization::Header(header.clone());
        }
        match self.assertion(now_s) {
            None => LogAuthorization::Fail("the key cannot sign"),
            Some(assertion) => {
                let body = format!(
                    "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion={assertion}"
                );
                LogAuthorization::Ask(Box::new(self.server.clone()), body.into_bytes())
            }
        }
    }

    fn take(&self, status: u16, body: &[u8], now_ms: u64) {
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        let token = answer["access_token"].as_str().filter(|_| status == 200);
        let lives_s = answer["expires_in"].as_u64().unwrap_or(0).min(MAX_LIFE_S);
        let kind = answer["token_type"].as_str().unwrap_or("Bearer");
        let header = token.map(|token| format!("{kind} {token}"));
        let is_good = |header: &String| weir_plugin::headers::is_value(header.as_bytes());
        let found = header
            .filter(is_good)
            .map(|header| (header, now_ms / 1000 + lives_s));
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::encoding::AsDer;
    use aws_lc_rs::rsa::KeySize;
    use aws_lc_rs::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

    fn header(authorization: LogAuthorization) -> String {
        match authorization {
            LogAuthorization::Header(header) => header,
            LogAuthorization::Ask(..) => "ask".to_owned(),
            LogAuthorization::Fail(reason) => reason.to_owned(),
        }
    }

    #[test]
    fn signatures_are_those_of_the_service() {
        let key = TencentCls {
            secret_id: "id".into(),
            secret_key: "key".into(),
        };
        // Computed with another implementation of HMAC, by the service's description.
        let wanted = "q-sign-algorithm=sha1&q-ak=id&q-sign-time=1600000000;1600000060&q-key-time=1600000000;1600000060\
                      &q-header-list=&q-url-param-list=&q-signature=2ef0902b327ab2c45d5775e76222d5b9975775e5";
        assert_eq!(header(key.authorize(1_600_000_000_123)), wanted);
    }

    #[test]
    fn tokens_are_fetched_kept_and_renewed() {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).expect("a key");
        let der = pair.as_der().expect("PKCS #8");
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----\\n",
            STANDARD.encode(der.as_ref())
        );
        let account = ServiceAccount {
            email: "a@b.example".into(),
            private_key: pem,
            token_url: "http://127.0.0.1:1/token".into(),
            scopes: vec!["x".into(), "y".into()],
        };
        let tokens = Tokens::of(&account, &HttpTarget::default()).expect("good");
        let LogAuthorization::Ask(server, body) = tokens.authorize(1_000_000) else {
            panic!("a token is fetched");
        };
        assert!(server.head.starts_with(b"POST /token HTTP/1.1\r\n"));
        let body = String::from_utf8(body).expect("a form");
        let (grant, assertion) = body.rsplit_once("&assertion=").expect("an assertion");
        assert_eq!(
            grant,
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
        );
        let (signed, signature) = assertion.rsplit_once('.').expect("a signature");
        let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64");
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
        assert!(public.verify(signed.as_bytes(), &signature).is_ok());
        let claims = signed.split_once('.').expect("two parts").1;
        let claims: Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).expect("base64")).expect("JSON");
        let wanted = json!({
            "iss": "a@b.example", "aud": "http://127.0.0.1:1/token", "scope": "x y", "iat": 1000, "exp": 4600,
        });
        assert_eq!(claims, wanted);
        // Invalid tokens are not used.
        for (status, answer) in [
            (500, "{\"access_token\": \"t\"}"),
            (200, "x"),
            (200, "{\"access_token\": \"a\\nb\"}"),
        ] {
            tokens.take(status, answer.as_bytes(), 1_000_000);
            assert_eq!(header(tokens.authorize(1_000_000)), "ask", "{status} {answer}");
        }
        let answer = br#"{"access_token": "t", "token_type": "Bearer", "expires_in": 100}"#;
        tokens.take(200, answer, 1_000_000);
        assert_eq!(header(tokens.authorize(1_039_000)), "Bearer t");
        assert_eq!(header(tokens.authorize(1_040_000)), "ask");
        let endless = br#"{"access_token": "t", "expires_in": 18446744073709551615}"#;
        tokens.take(200, endless, 1_000_000);
        assert_eq!(header(tokens.authorize(80_000_000)), "Bearer t");
        assert_eq!(header(tokens.authorize(90_000_000)), "ask");
    }

    #[test]
    fn keys_are_checked() {
        let account = ServiceAccount {
            email: "a".into(),
            private_key: "no key".into(),
            token_url: "http://127.0.0.1:1/".into(),
            scopes: Vec::new(),
        };
        let fault = |account: ServiceAccount| {
            let made = Authorization::ServiceAccount(account).signer(&HttpTarget::default());
            made.err().unwrap_or_default()
        };
        assert_eq!(fault(account), "expected an RSA key as PEM");
    }
}
