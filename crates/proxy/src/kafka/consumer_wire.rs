//! Messages of Kafka's protocol for a consumer. As in [`super::wire`], the versions are the oldest that Kafka 4
//! answers.

use super::connection::Address;
use super::records::{FetchBudget, read_records};
use super::wire::{Api, Reader, Writer, broken, length, refused};
use std::collections::BTreeMap;
use std::io;
use weir_plugin::KafkaPartition;

const FETCH: Api = Api(1, 4);
const LIST_OFFSETS: Api = Api(2, 1);
const OFFSET_COMMIT: Api = Api(8, 2);
const OFFSET_FETCH: Api = Api(9, 1);
const FIND_COORDINATOR: Api = Api(10, 0);

/// A topic and the number of a partition.
pub type TopicPartition = (String, i32);

/// What a broker says about a partition: Kafka's error, 0 for none, and a value.
pub type PartitionResults<T> = Vec<(TopicPartition, i16, T)>;

/// Writes places by their topics, each with what `more` writes. The order of topics stays: what comes last may get no room in
/// the answer.
fn write_places<T>(
    writer: &mut Writer,
    places: &[(&TopicPartition, T)],
    more: impl Fn(&mut Writer, &T),
) -> io::Result<()> {
    let mut topics: Vec<(&str, Vec<(i32, &T)>)> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for ((topic, partition), value) in places {
        let place = *known.entry(topic).or_insert(topics.len());
        if place == topics.len() {
            topics.push((topic, Vec::new()));
        }
        topics[place].1.push((*partition, value));
    }
    writer.i32(length(topics.len())?);
    for (topic, partitions) in topics {
        writer.text(topic);
        writer.i32(length(partitions.len())?);
        for (partition, value) in partitions {
            writer.i32(partition);
            more(writer, value);
        }
    }
    Ok(())
}

/// Reads lists of partitions by topics.
fn read_places<T>(
    reader: &mut Reader<'_>,
    mut read: impl FnMut(&mut Reader<'_>) -> io::Result<(i16, T)>,
) -> io::Result<PartitionResults<T>> {
    let topics = reader.list(|reader| {
        let topic = reader.text()?;
        let partitions = reader.list(|reader| Ok((reader.i32()?, read(reader)?)))?;
        Ok((topic, partitions))
    })?;
    let mut brokers = Vec::new();
    for (topic, partitions) in topics {
        for (partition, (code, value)) in partitions {
            brokers.push(((topic.clone(), partition), code, value));
        }
    }
    Ok(brokers)
}

/// Asks for the broker that keeps the offsets of a group.
pub fn ask_coordinator(group: &str, correlation: i32) -> io::Result<Vec<u8>> {
    let mut writer = Writer::request(FIND_COORDINATOR, correlation);
    writer.text(group);
    writer.finish()
}

/// Kafka's error, and the broker.
pub fn read_coordinator(answer: &[u8]) -> io::Result<(i16, Address)> {
    let mut reader = Reader(answer);
    let code = reader.i16()?;
    reader.i32()?;
    let host = reader.text()?;
    let port = reader.i32()?;
    match code {
        0 => {
            let port = u16::try_from(port).map_err(|_| broken("a port is invalid"))?;
            Ok((0, (host, port)))
        }
        code => Ok((code, (String::new(), 0))),
    }
}

/// Asks for the offsets that are stored for a group.
pub fn ask_stored(group: &str, places: &[&TopicPartition], correlation: i32) -> io::Result<Vec<u8>> {
    let mut writer = Writer::request(OFFSET_FETCH, correlation);
    writer.text(group);
    let places: Vec<(&TopicPartition, ())> = places.iter().map(|place| (*place, ())).collect();
    write_places(&mut writer, &places, |_, ()| {})?;
    writer.finish()
}

/// Offsets that are stored; below 0: none is.
pub fn read_stored(answer: &[u8]) -> io::Result<PartitionResults<i64>> {
    read_places(&mut Reader(answer), |reader| {
        let offset = reader.i64()?;
        reader.text()?;
        Ok((reader.i16()?, offset))
    })
}

/// Stores offsets for a group, as a consumer that has joined none.
pub fn ask_commit(group: &str, offsets: &[(&TopicPartition, i64)], correlation: i32) -> io::Result<Vec<u8>> {
    let mut writer = Writer::request(OFFSET_COMMIT, correlation);
    writer.text(group);
    writer.i32(-1);
    writer.text("");
    // They are kept for as long as brokers usually keep them.
    writer.i64(-1);
    write_places(&mut writer, offsets, |writer, offset| {
        writer.i64(*offset);
        writer.i16(-1);
    })?;
    writer.finish()
}

/// Whether offsets are stored.
pub fn read_commit(answer: &[u8]) -> io::Result<PartitionResults<()>> {
    read_places(&mut Reader(answer), |reader| Ok((reader.i16()?, ())))
}

/// Asks for the offset of a time: -1 for the end of a partition, -2 for its beginning.
pub fn ask_offsets(time: i64, places: &[&TopicPartition], correlation: i32) -> io::Result<Vec<u8>> {
    let mut writer = Writer::request(LIST_OFFSETS, correlation);
    writer.i32(-1);
    let places: Vec<(&TopicPartition, ())> = places.iter().map(|place| (*place, ())).collect();
    write_places(&mut writer, &places, |writer, ()| writer.i64(time))?;
    writer.finish()
}

/// Offsets by partition.
pub fn read_offsets(answer: &[u8]) -> io::Result<PartitionResults<i64>> {
    read_places(&mut Reader(answer), |reader| {
        let code = reader.i16()?;
        reader.i64()?;
        Ok((code, reader.i64()?))
    })
}

/// Asks for records from these offsets on.
pub fn ask_fetch(
    offsets: &[(&TopicPartition, i64)],
    max_bytes: i32,
    wait_ms: i32,
    correlation: i32,
) -> io::Result<Vec<u8>> {
    let mut writer = Writer::request(FETCH, correlation);
    writer.i32(-1);
    writer.i32(wait_ms);
    // It is answered as soon as there is one byte.
    writer.i32(1);
    writer.i32(max_bytes);
    // Records of transactions that are open are read too.
    writer.0.push(0);
    write_places(&mut writer, offsets, |writer, offset| {
        writer.i64(*offset);
        writer.i32(max_bytes);
    })?;
    writer.finish()
}

/// The records of a partition, and what is to be read next.
pub struct Fetched {
    pub found: KafkaPartition,
    pub next: i64,
}

/// Records by partition, as many as there is room for; `offset` tells from where on a place is read. A partition that
/// was not asked for is passed over.
pub fn read_fetch(
    answer: &[u8],
    mut room: FetchBudget,
    offset: impl Fn(&TopicPartition) -> Option<i64>,
) -> io::Result<PartitionResults<Fetched>> {
    let mut reader = Reader(answer);
    reader.i32()?;
    let topics = reader.list(|reader| {
        let topic = reader.text()?;
        let partitions = reader.list(|reader| {
            let (partition, code) = (reader.i32()?, reader.i16()?);
            let (high, stable) = (reader.i64()?, reader.i64()?);
            reader.list(|reader| Ok((reader.i64()?, reader.i64()?)))?;
            Ok((partition, code, high, stable, reader.bytes()?))
        })?;
        Ok((topic, partitions))
    })?;
    let mut fetched = Vec::new();
    for (topic, partitions) in topics {
        for (partition, code, high_watermark, last_stable_offset, bytes) in partitions {
            let place = (topic.clone(), partition);
            let Some(from) = offset(&place) else { continue };
            let (records, next) = match code {
                0 => read_records(bytes, from, &mut room)?,
                _ => (Vec::new(), from),
            };
            let found = KafkaPartition {
                topic: topic.clone(),
                partition,
                high_watermark,
                last_stable_offset,
                records,
            };
            fetched.push((place, code, Fetched { found, next }));
        }
    }
    Ok(fetched)
}

/// The first error, if there is one.
pub fn all_good<T>(results: PartitionResults<T>, what: &str) -> io::Result<Vec<(TopicPartition, T)>> {
    let good = |(place, code, value)| match code {
        0 => Ok((place, value)),
        code => Err(refused(what, code)),
    };
    results.into_iter().map(good).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_asked_for_in_the_order_of_their_turn() {
        let place = |topic: &str, partition| (topic.to_owned(), partition);
        let places = [place("b", 1), place("a", 0), place("b", 0)];
        let request = ask_offsets(-1, &places.each_ref(), 7).expect("short");
        let [b, a] = ["b", "a"].map(|topic| {
            let text = [&[0, 1][..], topic.as_bytes(), &[0, 0, 0]].concat();
            request.windows(text.len()).position(|part| part == text)
        });
        assert!(b.is_some() && b < a, "{b:?} {a:?}");
    }
}
