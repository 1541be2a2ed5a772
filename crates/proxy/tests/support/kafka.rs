//! Sources of Kafka for filters, and a broker of the test's own that keeps what it is given and gives it back. It was
//! written from Kafka's protocol guide, and is no Kafka: what a real one does differently, it does not show.

use super::kafka_bytes::{Bytes, put_text};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use weir_plugin::{
    KafkaAnswer, KafkaCluster, KafkaEvents, KafkaForm, KafkaPartition, KafkaRead, KafkaSource, KafkaStart,
    KafkaWork, Outcome, Reply,
};

/// The partitions of every topic.
const PARTITIONS: usize = 2;

/// `port` of a broker, `start` (`earliest`), `keeps` (offsets), `max_records`, `wait_ms`.
pub fn source(config: &Value) -> Option<Arc<KafkaSource>> {
    let number = |name: &str, default: u64| config[name].as_u64().unwrap_or(default);
    let port = config["port"].as_u64()? as u16;
    Some(Arc::new(KafkaSource {
        cluster: KafkaCluster {
            brokers: vec![("127.0.0.1".to_owned(), port)],
            tls: None,
            sasl: None,
        },
        topics: vec!["calls".to_owned()],
        start: match config["start"] == "earliest" {
            true => KafkaStart::Earliest,
            false => KafkaStart::Latest,
        },
        keeps_offsets: config["keeps"] != false,
        max_bytes: 1000,
        max_records: number("max_records", 100) as usize,
        wait: Duration::from_millis(number("wait_ms", 0)),
        timeout: Duration::from_millis(number("timeout_ms", 5_000)),
    }))
}

/// Reads once, or a stream.
pub fn read(source: &Arc<KafkaSource>, events: bool) -> Outcome {
    let read = KafkaRead {
        source: Arc::clone(source),
        group: "readers".to_owned(),
    };
    Outcome::Kafka(match events {
        false => KafkaWork::Read(read),
        true => KafkaWork::Events(Box::new(KafkaEvents {
            read,
            reply: Reply::new(200, "text/event-stream", "begin;"),
            form: Arc::new(Lines),
            idle: (Duration::from_millis(50), b"idle;"),
        })),
    })
}

/// What was read, in a word for each record.
pub fn to_reply(answer: &KafkaAnswer) -> Reply {
    let mut out = Vec::new();
    match answer {
        Ok(partitions) => partitions.iter().for_each(|it| Lines.write(it, &mut out)),
        Err(failure) => out.extend_from_slice(format!("{failure:?}").as_bytes()),
    }
    Reply::new(200, "text/plain", out)
}

struct Lines;

impl KafkaForm for Lines {
    fn write(&self, partition: &KafkaPartition, out: &mut Vec<u8>) {
        for record in &partition.records {
            out.extend_from_slice(record.value.as_deref().unwrap_or_default());
            out.push(b';');
        }
    }
}

/// What a broker keeps.
#[derive(Default)]
struct BrokerState {
    /// The batches of each partition, each with the offset behind it.
    batches: [Vec<(i64, Vec<u8>)>; PARTITIONS],
    offsets: HashMap<(String, i32), i64>,
    /// Errors for the next requests of these kinds.
    errors: Vec<(i16, i16)>,
    commits: usize,
    /// Offsets below are deleted.
    deleted: i64,
    /// The last partition has no leader.
    is_last_offline: bool,
}

/// A broker that leads all partitions.
pub struct KafkaBroker {
    pub port: u16,
    kept: Arc<(Mutex<BrokerState>, Condvar)>,
}

impl KafkaBroker {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let kept = Arc::default();
        let shared = Arc::clone(&kept);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, kept) = (stream.unwrap(), Arc::clone(&shared));
                std::thread::spawn(move || serve(stream, port, &kept));
            }
        });
        Self { port, kept }
    }

    /// Answers the next request of this kind with this error.
    pub fn fail_next(&self, api: i16, code: i16) {
        self.kept.0.lock().unwrap().errors.push((api, code));
    }

    /// From now on the last partition has no leader.
    pub fn take_last_offline(&self) {
        self.kept.0.lock().unwrap().is_last_offline = true;
    }

    /// How often offsets were stored.
    pub fn commits(&self) -> usize {
        self.kept.0.lock().unwrap().commits
    }

    /// Forgets all records so far.
    pub fn delete_records(&self) {
        let mut kept = self.kept.0.lock().unwrap();
        kept.deleted = kept
            .batches
            .iter()
            .flatten()
            .map(|(end, _)| *end)
            .max()
            .unwrap_or(0);
        kept.batches = Default::default();
    }
}

fn put_i32(out: &mut Vec<u8>, number: i32) {
    out.extend(number.to_be_bytes());
}

/// Answers partitions, each as a topic of its own.
fn put_places<T>(
    out: &mut Vec<u8>,
    places: Vec<(String, i32, T)>,
    mut put: impl FnMut(&mut Vec<u8>, i32, &str, T),
) {
    put_i32(out, places.len() as i32);
    for (topic, partition, value) in places {
        put_text(out, &topic);
        put_i32(out, 1);
        put_i32(out, partition);
        put(out, partition, &topic, value);
    }
}

fn serve(mut stream: TcpStream, port: u16, shared: &(Mutex<BrokerState>, Condvar)) -> Option<()> {
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length).ok()?;
        let mut request = vec![0; i32::from_be_bytes(length) as usize];
        stream.read_exact(&mut request).ok()?;
        let mut bytes = Bytes(&request);
        let (api, version, correlation) = (bytes.i16(), bytes.i16(), bytes.i32());
        assert_eq!(bytes.text(), "weir");
        let mut out = correlation.to_be_bytes().to_vec();
        answer((api, version), &mut bytes, &mut out, (port, shared));
        stream.write_all(&(out.len() as i32).to_be_bytes()).ok()?;
        stream.write_all(&out).ok()?;
    }
}

fn answer(
    api: (i16, i16),
    bytes: &mut Bytes<'_>,
    out: &mut Vec<u8>,
    (port, shared): (u16, &(Mutex<BrokerState>, Condvar)),
) {
    let mut kept = shared.0.lock().unwrap();
    let place = kept.errors.iter().position(|(of, _)| *of == api.0);
    let code = place.map_or(0, |place| kept.errors.remove(place).1);
    match api {
        (3, 1) => metadata(bytes, port, kept.is_last_offline, out),
        (0, 3) => {
            bytes.take::<8>();
            let places = bytes.places(|bytes| {
                let count = bytes.i32();
                bytes.bytes(count)
            });
            put_places(out, places, |out, partition, _, batch| {
                let partition = &mut kept.batches[partition as usize];
                store(partition, batch);
                out.extend([0; 18]);
            });
            put_i32(out, 0);
            shared.1.notify_all();
        }
        (1, 4) => drop(fetch(bytes, out, kept, &shared.1, code)),
        (2, 1) => {
            bytes.i32();
            put_places(out, bytes.places(Bytes::i64), |out, partition, _, time| {
                let batches = &kept.batches[partition as usize];
                let end = batches.last().map_or(kept.deleted, |(end, _)| *end);
                out.extend(code.to_be_bytes());
                out.extend((-1_i64).to_be_bytes());
                out.extend(if time == -1 { end } else { kept.deleted }.to_be_bytes());
            });
        }
        (8, 2) => {
            let group = bytes.text();
            assert_eq!((bytes.i32(), bytes.text(), bytes.i64()), (-1, String::new(), -1));
            let places = bytes.places(|bytes| (bytes.i64(), bytes.i16()).0);
            kept.commits += 1;
            put_places(out, places, |out, partition, _, offset| {
                if code == 0 {
                    kept.offsets.insert((group.clone(), partition), offset);
                }
                out.extend(code.to_be_bytes());
            });
        }
        (9, 1) => {
            let group = bytes.text();
            put_places(out, bytes.places(|_| ()), |out, partition, _, ()| {
                let offset = kept.offsets.get(&(group.clone(), partition)).unwrap_or(&-1);
                out.extend(offset.to_be_bytes());
                out.extend([0xff, 0xff]);
                out.extend(code.to_be_bytes());
            });
        }
        (10, 0) => {
            bytes.text();
            out.extend(code.to_be_bytes());
            put_i32(out, 7);
            put_text(out, "127.0.0.1");
            put_i32(out, i32::from(port));
        }
        other => panic!("{other:?}"),
    }
}

fn metadata(bytes: &mut Bytes<'_>, port: u16, is_last_offline: bool, out: &mut Vec<u8>) {
    assert_eq!(bytes.i32(), 1);
    let topic = bytes.text();
    put_i32(out, 1);
    put_i32(out, 7);
    put_text(out, "127.0.0.1");
    put_i32(out, i32::from(port));
    out.extend([0xff, 0xff]);
    put_i32(out, 7);
    put_i32(out, 1);
    out.extend([0, 0]);
    put_text(out, &topic);
    out.push(0);
    put_i32(out, PARTITIONS as i32);
    for partition in 0..PARTITIONS as i32 {
        out.extend([0, 0]);
        let is_offline = is_last_offline && partition + 1 == PARTITIONS as i32;
        let leader = if is_offline { -1 } else { 7 };
        for number in [partition, leader, 1, 7, 1, 7] {
            put_i32(out, number);
        }
    }
}

/// Keeps a batch behind the others.
fn store(batches: &mut Vec<(i64, Vec<u8>)>, mut batch: Vec<u8>) {
    let base = batches.last().map_or(0, |(end, _)| *end);
    let last = i32::from_be_bytes(batch[23..27].try_into().unwrap());
    batch[..8].copy_from_slice(&base.to_be_bytes());
    batches.push((base + i64::from(last) + 1, batch));
}

/// Answers with all batches behind the offsets, once there are some.
fn fetch<'k>(
    bytes: &mut Bytes<'_>,
    out: &mut Vec<u8>,
    kept: std::sync::MutexGuard<'k, BrokerState>,
    more: &Condvar,
    code: i16,
) -> std::sync::MutexGuard<'k, BrokerState> {
    bytes.i32();
    let wait = Duration::from_millis(bytes.i32() as u64);
    assert_eq!((bytes.i32(), bytes.i32(), bytes.take()), (1, 1000, [0]));
    let places = bytes.places(|bytes| (bytes.i64(), bytes.i32()).0);
    let has_none = |kept: &mut BrokerState| {
        let behind = |(_, partition, from): &(String, i32, i64)| {
            kept.batches[*partition as usize]
                .iter()
                .any(|(end, _)| end > from)
                || *from < kept.deleted
        };
        code == 0 && !places.iter().any(behind)
    };
    let (kept, _) = more.wait_timeout_while(kept, wait, has_none).unwrap();
    put_i32(out, 0);
    put_places(out, places, |out, partition, _, from| {
        let code = if from < kept.deleted { 1 } else { code };
        let batches = &kept.batches[partition as usize];
        out.extend(code.to_be_bytes());
        let end = batches.last().map_or(0, |(end, _)| *end);
        out.extend(end.to_be_bytes());
        out.extend(end.to_be_bytes());
        // None were given up.
        put_i32(out, -1);
        let behind = batches.iter().filter(|(end, _)| *end > from && code == 0);
        let records: Vec<u8> = behind.flat_map(|(_, batch)| batch.clone()).collect();
        put_i32(out, records.len() as i32);
        out.extend(records);
    });
    kept
}
