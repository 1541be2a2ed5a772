//! Messages of RocketMQ's remoting protocol, as far as a producer needs them. It does no I/O.
//!
//! A message is its length (four bytes, of what follows), the way in which its header is written (one byte) and the
//! header's length (three bytes), the header, and a body. Requests have headers in JSON; answers may have them in
//! RocketMQ's own form as well.

use super::Credentials;
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

/// Asks a name server for the brokers of a topic.
pub const GET_ROUTE: i32 = 105;
/// Gives a broker a message; its header's fields have names of one letter.
pub const SEND_MESSAGE: i32 = 310;
/// The topic by which brokers make others that do not exist.
pub const DEFAULT_TOPIC: &str = "TBW102";

/// The version of the protocol that is spoken (that of RocketMQ 4.9.4).
const VERSION: i32 = 401;
/// In a header's flags: it is an answer.
const ANSWER: i64 = 1;
/// A queue's permission to be written to.
const MAY_WRITE: i64 = 2;
/// Queues of one broker that are used at most.
const MAX_QUEUES: u32 = 65_536;

/// A whole request.
pub fn request(
    code: i32,
    number: i32,
    mut fields: BTreeMap<&'static str, String>,
    body: &[u8],
    user: Option<&Credentials>,
) -> Vec<u8> {
    if let Some(user) = user {
        fields.insert("AccessKey", user.access_key.clone());
        // The values in the order of their names, and the body.
        let mut signed: Vec<u8> = fields.values().flat_map(|value| value.bytes()).collect();
        signed.extend_from_slice(body);
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, user.secret_key.as_bytes());
        fields.insert("Signature", STANDARD.encode(hmac::sign(&key, &signed)));
    }
    let header = json!({
        "code": code,
        "language": "OTHER",
        "version": VERSION,
        "opaque": number,
        "flag": 0,
        "serializeTypeCurrentRPC": "JSON",
        "extFields": fields,
    })
    .to_string();
    let mut out = Vec::with_capacity(8 + header.len() + body.len());
    // Headers are small, and messages are bounded by their queue: neither overflows.
    out.extend(((4 + header.len() + body.len()) as u32).to_be_bytes());
    out.extend((header.len() as u32 & 0x00ff_ffff).to_be_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(body);
    out
}

/// An answer to a request, or something else that a server sends.
#[derive(Debug, PartialEq, Eq)]
pub struct BrokerResponse<'a> {
    /// The result of the request; 0 means success.
    pub code: i64,
    /// The number of the request.
    pub number: i64,
    /// Whether it is an answer at all.
    pub is_answer: bool,
    /// Why it was refused.
    pub remark: String,
    /// The body of the response.
    pub body: &'a [u8],
}

#[derive(Deserialize)]
struct Header {
    code: i64,
    #[serde(default)]
    opaque: i64,
    #[serde(default)]
    flag: i64,
    #[serde(default)]
    remark: Option<String>,
}

/// Reads what a server has sent, without its length. `None`: it cannot be read.
pub fn answer(bytes: &[u8]) -> Option<BrokerResponse<'_>> {
    let (first, rest) = bytes.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes([0, first[1], first[2], first[3]]) as usize;
    let (header, body) = rest.split_at_checked(length)?;
    let header = match first[0] {
        0 => serde_json::from_slice(header).ok()?,
        1 => own_header(header)?,
        _ => return None,
    };
    Some(BrokerResponse {
        code: header.code,
        number: header.opaque,
        is_answer: header.flag & ANSWER != 0,
        remark: header.remark.unwrap_or_default(),
        body,
    })
}

/// Reads a header in RocketMQ's own form: code (2 bytes), language (1), version (2), number (4), flags (4), and the
/// remark with its length (4). Further fields follow, which no producer needs.
fn own_header(bytes: &[u8]) -> Option<Header> {
    let (code, rest) = bytes.split_first_chunk::<2>()?;
    let (number, rest) = rest.get(3..)?.split_first_chunk::<4>()?;
    let (flag, rest) = rest.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let remark = rest.get(..usize::try_from(i32::from_be_bytes(*length)).ok()?)?;
    Some(Header {
        code: i16::from_be_bytes(*code).into(),
        opaque: i32::from_be_bytes(*number).into(),
        flag: i32::from_be_bytes(*flag).into(),
        remark: Some(String::from_utf8_lossy(remark).into_owned()),
    })
}

/// Where the queues of a topic are that can be written to.
#[derive(Debug, PartialEq, Eq)]
pub struct Route(pub Vec<BrokerQueues>);

/// The queues of one broker.
#[derive(Debug, PartialEq, Eq)]
pub struct BrokerQueues {
    /// The broker's name.
    pub name: String,
    /// Where it takes messages.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How many queues it has, numbered from 0.
    pub queues: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RouteData {
    #[serde(default)]
    broker_datas: Vec<BrokerData>,
    #[serde(default)]
    queue_datas: Vec<QueueData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BrokerData {
    broker_name: String,
    /// By the broker's id; 0 is the one that takes messages.
    #[serde(default)]
    broker_addrs: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueueData {
    broker_name: String,
    perm: i64,
    write_queue_nums: i64,
}

impl Route {
    /// Reads a name server's answer. `None`: it cannot be read.
    pub fn parse(body: &[u8]) -> Option<Self> {
        let data: RouteData = serde_json::from_slice(&with_quoted_names(body)).ok()?;
        let queues = data.queue_datas.iter().filter_map(|queue| {
            let is_it = |broker: &&BrokerData| broker.broker_name == queue.broker_name;
            let address = data.broker_datas.iter().find(is_it)?.broker_addrs.get("0")?;
            let (host, port) = split_address(address)?;
            let queues = u32::try_from(queue.write_queue_nums).ok()?.min(MAX_QUEUES);
            (queue.perm & MAY_WRITE != 0 && queues > 0).then(|| BrokerQueues {
                name: queue.broker_name.clone(),
                host: host.to_owned(),
                port,
                queues,
            })
        });
        Some(Self(queues.collect()))
    }

    /// The queue whose turn it is: its broker, and its number there.
    pub fn queue(&self, turn: usize) -> Option<(&BrokerQueues, u32)> {
        let all: u64 = self.0.iter().map(|broker| u64::from(broker.queues)).sum();
        let mut place = (turn as u64).checked_rem(all)?;
        for broker in &self.0 {
            match u32::try_from(place) {
                Ok(place) if place < broker.queues => return Some((broker, place)),
                _ => place -= u64::from(broker.queues),
            }
        }
        None
    }
}

/// The parts of `host:port`.
fn split_address(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then_some((host, port.parse().ok()?))
}

/// JSON from what name servers send: names that are numbers have no quotes there (`{0:"…"}`).
fn with_quoted_names(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 16);
    let (mut rest, mut in_text) = (body, false);
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        out.push(byte);
        match (byte, in_text) {
            (b'\\', true) => {
                if let Some((&escaped, after)) = rest.split_first() {
                    out.push(escaped);
                    rest = after;
                }
            }
            (b'"', _) => in_text = !in_text,
            (b'{' | b',', false) => {
                let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                if digits > 0 && rest.get(digits) == Some(&b':') {
                    out.push(b'"');
                    out.extend_from_slice(&rest[..digits]);
                    out.push(b'"');
                    rest = &rest[digits..];
                }
            }
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn parts(request: &[u8]) -> (Value, &[u8]) {
        let number = |at: usize| u32::from_be_bytes(request[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!(number(0), request.len() - 4);
        let (header, body) = request[8..].split_at(number(4));
        (serde_json::from_slice(header).unwrap(), body)
    }

    #[test]
    fn requests_are_signed_over_fields_and_body() {
        let user = Credentials {
            access_key: "RocketMQ".into(),
            secret_key: "12345678".into(),
        };
        let fields = || BTreeMap::from([("b", "t".to_owned()), ("a", "g".to_owned())]);
        let plain = request(SEND_MESSAGE, 7, fields(), b"body", None);
        let (header, body) = parts(&plain);
        assert_eq!(
            (header["code"].as_i64(), header["opaque"].as_i64()),
            (Some(310), Some(7))
        );
        assert_eq!(header["extFields"], json!({"a": "g", "b": "t"}));
        assert_eq!(body, b"body");
        let signed = request(SEND_MESSAGE, 7, fields(), b"body", Some(&user));
        // printf 'RocketMQgtbody' | openssl dgst -sha1 -hmac 12345678 -binary | base64
        let expected = json!({"a": "g", "b": "t", "AccessKey": "RocketMQ", "Signature": SIGNATURE});
        assert_eq!(parts(&signed).0["extFields"], expected);
    }

    const SIGNATURE: &str = "MI29/dnjbtI6nshkt9I3fhKhLR4=";

    fn answered(form: u8, header: &[u8], body: &[u8]) -> Vec<u8> {
        let length = (header.len() as u32).to_be_bytes();
        [&[form, length[1], length[2], length[3]], header, body].concat()
    }

    #[test]
    fn answers_are_read_in_both_forms() {
        let header =
            br#"{"code":17,"flag":1,"language":"JAVA","opaque":3,"remark":"no topic","version":401}"#;
        let own = b"\0\x11\0\x01\x91\0\0\0\x03\0\0\0\x01\0\0\0\x08no topic\0\0\0\0";
        for (form, header) in [(0, &header[..]), (1, own)] {
            let bytes = answered(form, header, b"rest");
            let expected = BrokerResponse {
                code: 17,
                number: 3,
                is_answer: true,
                remark: "no topic".into(),
                body: b"rest",
            };
            assert_eq!(answer(&bytes), Some(expected));
        }
        assert_eq!(answer(b"\0\0\0\x09{}"), None, "a header that is cut off");
        assert_eq!(answer(b"\x02\0\0\0"), None, "an unknown form");
    }

    #[test]
    fn routes_name_queues_that_can_be_written_to() {
        let body = br#"{"brokerDatas":[
            {"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},"brokerName":"a,1:b","cluster":"c"},
            {"brokerAddrs":{"0":"[::1]:10911"},"brokerName":"b"},
            {"brokerAddrs":{1:"10.0.0.3:10911"},"brokerName":"replica"}],
            "filterServerTable":{},
            "queueDatas":[
            {"brokerName":"a,1:b","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":2},
            {"brokerName":"b","perm":2,"readQueueNums":1,"writeQueueNums":1},
            {"brokerName":"b","perm":4,"readQueueNums":9,"writeQueueNums":9},
            {"brokerName":"replica","perm":6,"readQueueNums":9,"writeQueueNums":9}]}"#;
        let route = Route::parse(body).expect("a route");
        let queues: Vec<_> = (0..4)
            .map(|turn| {
                route
                    .queue(turn)
                    .map(|(broker, queue)| (broker.host.as_str(), queue))
            })
            .collect();
        let expected = [("10.0.0.1", 0), ("10.0.0.1", 1), ("::1", 0), ("10.0.0.1", 0)];
        assert_eq!(queues, expected.map(Some));
        assert_eq!(Route(Vec::new()).queue(3), None);
    }

    #[test]
    fn every_change_of_a_byte_is_borne() {
        let header = br#"{"code":0,"flag":1,"opaque":1}"#;
        let body = br#"{"brokerDatas":[{"brokerAddrs":{0:"h:1"},"brokerName":"a"}],
            "queueDatas":[{"brokerName":"a","perm":6,"writeQueueNums":4}]}"#;
        for (form, header) in [(0, &header[..]), (1, &[0; 22])] {
            let whole = answered(form, header, body);
            for at in 0..whole.len() {
                for byte in [0, 1, b'"', b'{', b'9', 0xff] {
                    let mut bytes = whole.clone();
                    bytes[at] = byte;
                    if let Some(answer) = answer(&bytes)
                        && let Some(route) = Route::parse(answer.body)
                    {
                        let _queue = route.queue(usize::MAX);
                    }
                }
                assert!(answer(&whole[..at]).is_none_or(|answer| answer.body.len() <= at));
            }
        }
    }
}
