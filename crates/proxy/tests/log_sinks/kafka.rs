//! Entries for Kafka, given to a broker of the test's own that knows as much of the protocol as a producer needs.
//! It was written from Kafka's protocol guide, and is no Kafka: what a real one does differently, it does not show.

use super::*;
use crate::support::kafka_bytes::{Bytes, put_text};
use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};

/// What a broker has seen.
#[derive(Debug, PartialEq, Eq)]
enum BrokerRequest {
    /// A request for the partitions of a topic.
    Metadata(String),
    /// The message of `PLAIN`.
    Plain(Vec<u8>),
    /// Records for a partition: their values.
    Records(i32, Vec<String>),
}

/// A broker that leads both partitions of every topic; it answers produce requests with these errors, and then with none.
struct Broker {
    port: u16,
    seen: Receiver<BrokerRequest>,
}

impl Broker {
    fn start(errors: &[i16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, seen) = channel();
        let mut errors = errors.to_vec();
        errors.reverse();
        std::thread::spawn(move || {
            // One connection after another, as the producer uses them.
            for stream in listener.incoming() {
                if serve(stream.unwrap(), port, &mut errors, &tell).is_none() {
                    continue;
                }
            }
        });
        Self { port, seen }
    }

    fn next(&self) -> BrokerRequest {
        self.seen
            .recv_timeout(TIMEOUT)
            .expect("the broker has seen something")
    }
}

/// Serves one connection; `None`: it has ended.
fn serve(
    mut stream: TcpStream,
    port: u16,
    errors: &mut Vec<i16>,
    tell: &Sender<BrokerRequest>,
) -> Option<()> {
    loop {
        let mut length = [0; 4];
        std::io::Read::read_exact(&mut stream, &mut length).ok()?;
        let mut request = vec![0; i32::from_be_bytes(length) as usize];
        std::io::Read::read_exact(&mut stream, &mut request).ok()?;
        let mut read = Bytes(&request);
        let (api, version, correlation) = (read.i16(), read.i16(), read.i32());
        assert_eq!(read.text(), "weir");
        let mut out = correlation.to_be_bytes().to_vec();
        match (api, version) {
            (3, 1) => metadata(&mut read, port, &mut out, tell),
            (0, 3) => produce(&mut read, errors, &mut out, tell),
            (17, 1) => {
                assert_eq!(read.text(), "PLAIN");
                out.extend([0, 0, 0, 0, 0, 1]);
                put_text(&mut out, "PLAIN");
            }
            (36, 0) => {
                let count = read.i32();
                tell.send(BrokerRequest::Plain(read.bytes(count))).ok()?;
                // No error, no message of one, no answer.
                out.extend([0, 0, 0xff, 0xff, 0, 0, 0, 0]);
            }
            other => panic!("{other:?}"),
        }
        stream.write_all(&(out.len() as i32).to_be_bytes()).ok()?;
        stream.write_all(&out).ok()?;
    }
}

fn metadata(read: &mut Bytes<'_>, port: u16, out: &mut Vec<u8>, tell: &Sender<BrokerRequest>) {
    assert_eq!(read.i32(), 1);
    let topic = read.text();
    // One broker, number 7, without a rack, which controls the cluster.
    out.extend(1_i32.to_be_bytes());
    out.extend(7_i32.to_be_bytes());
    put_text(out, "127.0.0.1");
    out.extend(i32::from(port).to_be_bytes());
    out.extend([0xff, 0xff]);
    out.extend(7_i32.to_be_bytes());
    out.extend(1_i32.to_be_bytes());
    out.extend(0_i16.to_be_bytes());
    put_text(out, &topic);
    out.push(0);
    out.extend(2_i32.to_be_bytes());
    for partition in [1_i32, 0] {
        out.extend(0_i16.to_be_bytes());
        out.extend(partition.to_be_bytes());
        for number in [7_i32, 1, 7, 1, 7] {
            out.extend(number.to_be_bytes());
        }
    }
    let _ = tell.send(BrokerRequest::Metadata(topic));
}

fn produce(read: &mut Bytes<'_>, errors: &mut Vec<i16>, out: &mut Vec<u8>, tell: &Sender<BrokerRequest>) {
    assert_eq!(
        (read.i16(), read.i16()),
        (-1, 1),
        "no transaction, and the leader answers"
    );
    read.i32();
    assert_eq!(read.i32(), 1);
    let topic = read.text();
    assert_eq!(read.i32(), 1);
    let partition = read.i32();
    let size = read.i32();
    let batch = read.bytes(size);
    let error = errors.pop().unwrap_or(0);
    let mut records = Bytes(&batch[57..]);
    let count = records.i32();
    let values = (0..count).map(|place| {
        records.varint();
        assert_eq!(records.take(), [0]);
        assert_eq!((records.varint(), records.varint()), (0, i64::from(place)));
        let key = records.varint();
        records.bytes(i32::try_from(key).unwrap_or(0));
        let length = records.varint() as i32;
        let value = String::from_utf8(records.bytes(length)).unwrap();
        assert_eq!(records.varint(), 0);
        value
    });
    let values = values.collect();
    out.extend(1_i32.to_be_bytes());
    put_text(out, &topic);
    out.extend(1_i32.to_be_bytes());
    out.extend(partition.to_be_bytes());
    out.extend(error.to_be_bytes());
    out.extend([0xff; 16]);
    out.extend(0_i32.to_be_bytes());
    if error == 0 {
        let _ = tell.send(BrokerRequest::Records(partition, values));
    }
}

#[test]
fn kafka_gets_records_at_their_leader() {
    // It does not lead the partition at first, and the topic is asked for again.
    let broker = Broker::start(&[6]);
    let gateway = gateway(&[json!({"kafka": broker.port, "user": "u"})]);
    let mut client = Wire::connect(gateway.address);
    call(&mut client, "/a");
    for _ in 0..2 {
        assert_eq!(broker.next(), BrokerRequest::Plain(b"\0u\0secret".to_vec()));
        assert_eq!(broker.next(), BrokerRequest::Metadata("calls".to_owned()));
    }
    let BrokerRequest::Records(_, values) = broker.next() else {
        panic!("the record comes last");
    };
    assert_eq!(values, ["/a 200 true;"]);
    eventually("the count", || entries(&gateway, "kafka", "sent") == 1);
    // Records without a key go to one partition after another.
    let mut partitions = Vec::new();
    for path in ["/b", "/c"] {
        call(&mut client, path);
        match broker.next() {
            BrokerRequest::Records(partition, values) => {
                assert_eq!(values, [format!("{path} 200 true;")]);
                partitions.push(partition);
            }
            other => panic!("{other:?}"),
        }
    }
    partitions.sort_unstable();
    assert_eq!(partitions, [0, 1]);
}

/// What a broker would refuse again is not sent again, and the connection goes on.
#[test]
fn a_record_that_is_too_large_is_sent_once() {
    let broker = Broker::start(&[10]);
    let gateway = gateway(&[json!({"kafka": broker.port, "retries": 100})]);
    let mut client = Wire::connect(gateway.address);
    call(&mut client, "/large");
    eventually("the loss", || entries(&gateway, "kafka", "dropped") == 1);
    call(&mut client, "/b");
    assert_eq!(broker.next(), BrokerRequest::Metadata("calls".to_owned()));
    let BrokerRequest::Records(_, values) = broker.next() else {
        panic!("the record comes next, over the same connection");
    };
    assert_eq!(values, ["/b 200 true;"]);
}

#[test]
fn a_broker_that_never_answers_costs_calls_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let gateway = gateway(&[json!({"kafka": port, "timeout_ms": 50, "retries": 0})]);
    let mut client = Wire::connect(gateway.address);
    for _ in 0..20 {
        call(&mut client, "/a");
    }
    eventually("the loss", || entries(&gateway, "kafka", "dropped") > 0);
}

/// Calls that wait for their records are answered by what becomes of them.
#[test]
fn a_call_waits_until_its_record_is_taken() {
    let refusing = Broker::start(&[2]);
    let taking = Broker::start(&[]);
    for (broker, expected) in [(&refusing, "lost"), (&taking, "taken")] {
        let upstream = Upstream::bind();
        let mut model = simple_model(upstream.address);
        let target = json!({"kafka": broker.port, "retries": 0, "max_entries": 1});
        model["routes"][0]["plugins"] = json!([{"use": {"name": "puppet", "config": {"publish": target}}}]);
        let gateway = TestGateway::start(model);
        let mut client = Wire::connect(gateway.address);
        client.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
        let response = client.response().unwrap();
        assert_eq!(
            (response.status(), response.body.as_slice()),
            (200, expected.as_bytes())
        );
    }
    assert_eq!(taking.next(), BrokerRequest::Metadata("calls".to_owned()));
    let BrokerRequest::Records(_, values) = taking.next() else {
        panic!("the record comes last");
    };
    assert_eq!(values, ["/a"]);
}

/// What is full takes no further entry, and its call knows at once.
#[test]
fn a_call_whose_record_has_no_room_does_not_wait() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = Upstream::bind();
    let mut model = simple_model(upstream.address);
    let target = json!({"kafka": silent.local_addr().unwrap().port(), "max_pending": 0});
    model["routes"][0]["plugins"] = json!([{"use": {"name": "puppet", "config": {"publish": target}}}]);
    let gateway = TestGateway::start(model);
    let mut client = Wire::connect(gateway.address);
    client.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.response().unwrap().body, b"lost");
}
