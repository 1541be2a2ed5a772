//! An entry point for fuzzing: what must hold of whatever brokers answer.

use super::sasl::Scram;
use super::wire::{read_metadata, read_produce};
use weir_plugin::{LogSasl, SaslMechanism};

/// Reads an answer as each of those that there are. No more is kept than came.
///
/// # Panics
/// If that does not hold.
pub fn kafka_answer(bytes: &[u8]) {
    if let Ok(told) = read_metadata(bytes) {
        let hosts: usize = told.brokers.iter().map(|(_, host, _)| host.len()).sum();
        // What is no text is replaced by characters of three bytes.
        assert!(hosts <= 3 * bytes.len(), "more than came");
        assert!(4 * (told.brokers.len() + told.partitions.len()) <= bytes.len());
    }
    let _code = read_produce(bytes);
    let user = LogSasl {
        mechanism: SaslMechanism::ScramSha256,
        user: "user".into(),
        password: "pencil".into(),
    };
    // Its rounds are what it asks for, and few of them are enough here.
    if !bytes
        .windows(7)
        .any(|part| part.starts_with(b"i=") && part[2..].iter().all(u8::is_ascii_digit))
        && let Ok((answer, expected)) = Scram::new(&user, b"random").last(bytes)
    {
        assert!(answer.starts_with(b"c=biws,r="));
        let _is_good = expected.check(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_byte_is_borne() {
        let seed = b"\0\0\0\x01\0\0\0\x07\0\x04host\0\0\x23\x84\xff\xff\0\0\0\x07\0\0\0\x01\0\0\0\x01t\0\
                     \0\0\0\x01\0\0\0\0\0\0\0\0\0\x07\0\0\0\x01\0\0\0\x07\0\0\0\0";
        for at in 0..seed.len() {
            kafka_answer(&seed[..at]);
            for byte in 0..=u8::MAX {
                let mut bytes = seed.to_vec();
                bytes[at] = byte;
                kafka_answer(&bytes);
            }
        }
    }
}
