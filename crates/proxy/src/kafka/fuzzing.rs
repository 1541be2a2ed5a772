//! An entry point for fuzzing: what must hold of whatever brokers answer.

use super::batch::crc32c;
use super::consumer_wire::{read_commit, read_coordinator, read_fetch, read_offsets, read_stored};
use super::records::{FetchBudget, MAX_DECOMPRESSED_IN_ALL, read_records};
use super::sasl::Scram;
use super::wire::{read_metadata, read_produce};
use weir_plugin::{LogSasl, SaslMechanism};

/// Reads an answer as each of those that there are. No more is kept than came.
///
/// # Panics
/// If that does not hold.
pub fn kafka_answer(bytes: &[u8]) {
    if let Ok(metadata) = read_metadata(bytes) {
        let hosts: usize = metadata.brokers.iter().map(|(_, host, _)| host.len()).sum();
        // What is no text is replaced by characters of three bytes.
        assert!(hosts <= 3 * bytes.len(), "more than came");
        assert!(4 * (metadata.brokers.len() + metadata.partitions.len()) <= bytes.len());
    }
    let _code = read_produce(bytes);
    let _coordinator = read_coordinator(bytes);
    for results in [read_stored(bytes), read_offsets(bytes)].into_iter().flatten() {
        assert!(14 * results.len() <= bytes.len());
    }
    let _stored = read_commit(bytes);
    let room = FetchBudget {
        records: 5,
        bytes: 100,
        decompressed: MAX_DECOMPRESSED_IN_ALL,
    };
    let fetched = read_fetch(bytes, room, |_| Some(3)).unwrap_or_default();
    let records = fetched.iter().map(|(.., fetched)| fetched.found.records.len());
    assert!(records.sum::<usize>() <= room.records);
    fetched_records(bytes, room);
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

/// Reads bytes as a batch whose length and checksum are right, as nearly none of the others would be.
fn fetched_records(bytes: &[u8], mut room: FetchBudget) {
    let mut bytes = bytes.to_vec();
    if bytes.len() > 21 {
        let length = (bytes.len() - 12) as i32;
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        bytes[16] = 2;
        let sum = crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&sum.to_be_bytes());
    }
    if let Ok((records, next)) = read_records(&bytes, 3, &mut room) {
        assert!(next >= 3 && records.len() <= 5);
        assert!(records.iter().all(|record| (3..next).contains(&record.offset)));
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
