//! Authentication at a broker: `PLAIN` (RFC 4616) and `SCRAM` (RFC 5802, 7677).

use super::wire::broken;
use aws_lc_rs::{constant_time, digest, hmac, pbkdf2};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::io;
use std::num::NonZeroU32;
use weir_plugin::{LogSasl, SaslMechanism};

/// Rounds at least and at most that a broker may ask for.
const ROUNDS: std::ops::RangeInclusive<u32> = 4_096..=1_000_000;

/// Kafka's name of a mechanism.
pub fn name(mechanism: SaslMechanism) -> &'static str {
    match mechanism {
        SaslMechanism::Plain => "PLAIN",
        SaslMechanism::ScramSha256 => "SCRAM-SHA-256",
        SaslMechanism::ScramSha512 => "SCRAM-SHA-512",
    }
}

/// The one message of `PLAIN`.
pub fn plain(user: &LogSasl) -> Vec<u8> {
    format!("\0{}\0{}", user.user, user.password).into_bytes()
}

/// A conversation of `SCRAM`.
pub struct Scram<'u> {
    user: &'u LogSasl,
    is_long: bool,
    nonce: String,
}

/// The last message that the broker must send.
pub struct Expected(Vec<u8>);

impl<'u> Scram<'u> {
    /// Begins with random bytes.
    pub fn new(user: &'u LogSasl, random: &[u8]) -> Self {
        Self {
            user,
            is_long: user.mechanism == SaslMechanism::ScramSha512,
            nonce: STANDARD.encode(random),
        }
    }

    fn bare(&self) -> String {
        let name = self.user.user.replace('=', "=3D").replace(',', "=2C");
        format!("n={name},r={}", self.nonce)
    }

    /// The first message.
    pub fn first(&self) -> Vec<u8> {
        format!("n,,{}", self.bare()).into_bytes()
    }

    /// The second message, an answer to the broker's first, and what the broker has to prove by its own.
    ///
    /// # Errors
    /// If the broker's message is invalid, or asks for too much or too little.
    pub fn last(&self, first: &[u8]) -> io::Result<(Vec<u8>, Expected)> {
        let wrong = || broken("a SCRAM message is invalid");
        let first = std::str::from_utf8(first).map_err(|_| wrong())?;
        let part = |key: &str| {
            first
                .split(',')
                .find_map(|part| part.strip_prefix(key))
                .ok_or_else(wrong)
        };
        let (nonce, salt, rounds) = (part("r=")?, part("s=")?, part("i=")?);
        let salt = STANDARD.decode(salt).map_err(|_| wrong())?;
        let rounds = rounds.parse().ok().filter(|rounds| ROUNDS.contains(rounds));
        let rounds = rounds.and_then(NonZeroU32::new).ok_or_else(wrong)?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(broken("a nonce of SCRAM is not the client's"));
        }
        let (derive, mac, hash) = match self.is_long {
            false => (pbkdf2::PBKDF2_HMAC_SHA256, hmac::HMAC_SHA256, &digest::SHA256),
            true => (pbkdf2::PBKDF2_HMAC_SHA512, hmac::HMAC_SHA512, &digest::SHA512),
        };
        let mut salted = vec![0; hash.output_len()];
        pbkdf2::derive(derive, rounds, &salt, self.user.password.as_bytes(), &mut salted);
        let sign = |key: &[u8], text: &[u8]| hmac::sign(&hmac::Key::new(mac, key), text).as_ref().to_vec();
        let client = sign(&salted, b"Client Key");
        let stored = digest::digest(hash, &client);
        let without_proof = format!("c=biws,r={nonce}");
        let all = format!("{},{first},{without_proof}", self.bare());
        let signature = sign(stored.as_ref(), all.as_bytes());
        let proof: Vec<u8> = client
            .iter()
            .zip(&signature)
            .map(|(key, sign)| key ^ sign)
            .collect();
        let server = sign(&salted, b"Server Key");
        let message = format!("{without_proof},p={}", STANDARD.encode(proof));
        Ok((message.into_bytes(), Expected(sign(&server, all.as_bytes()))))
    }
}

impl Expected {
    /// Checks the broker's last message.
    ///
    /// # Errors
    /// When the broker does not know the password either.
    pub fn check(&self, last: &[u8]) -> io::Result<()> {
        let signature = std::str::from_utf8(last)
            .ok()
            .and_then(|last| last.strip_prefix("v="));
        let signature = signature.and_then(|signature| STANDARD.decode(signature.trim_end()).ok());
        match signature
            .is_some_and(|signature| constant_time::verify_slices_are_equal(&signature, &self.0).is_ok())
        {
            true => Ok(()),
            false => Err(broken("a broker does not prove that it knows the password")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_standard_is_answered() {
        // RFC 7677, 3.
        let user = LogSasl {
            mechanism: SaslMechanism::ScramSha256,
            user: "user".into(),
            password: "pencil".into(),
        };
        let scram = Scram {
            user: &user,
            is_long: false,
            nonce: "rOprNGfwEbeRWgbNEkqO".into(),
        };
        assert_eq!(scram.first(), b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let first = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let (last, expected) = scram.last(first.as_bytes()).expect("a good message");
        let message = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                    p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        assert_eq!(String::from_utf8_lossy(&last), message);
        assert!(
            expected
                .check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
                .is_ok()
        );
        assert!(
            expected
                .check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5=")
                .is_err()
        );
        for bad in [
            "",
            "r=x,s=W22Z,i=4096",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=1",
            "e=unknown-user",
        ] {
            assert!(scram.last(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
