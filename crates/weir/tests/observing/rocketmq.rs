//! `rocketmq-logger` through the whole binary, to servers of the test's own: a name server and a broker that know as much
//! of the protocol as a producer needs. They were written from the description of the protocol, and are no RocketMQ:
//! what a real one does differently, they do not show.

use crate::TIMEOUT;
use crate::server::{Gateway, server};
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A request that a server has got.
struct BrokerRequest {
    header: Value,
    body: Vec<u8>,
}

impl BrokerRequest {
    fn code(&self) -> i64 {
        self.header["code"].as_i64().unwrap()
    }

    fn field(&self, name: &str) -> &str {
        self.header["extFields"][name].as_str().unwrap_or_default()
    }

    /// Whether it is signed as RocketMQ's access control wants it: over the values in the order of their names, and the
    /// body.
    fn is_signed(&self, key: &str) -> bool {
        let fields: BTreeMap<String, String> =
            serde_json::from_value(self.header["extFields"].clone()).unwrap();
        let values = fields.iter().filter(|(name, _)| *name != "Signature");
        let mut signed: Vec<u8> = values.flat_map(|(_, value)| value.bytes()).collect();
        signed.extend_from_slice(&self.body);
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key.as_bytes());
        self.field("Signature") == STANDARD.encode(hmac::sign(&key, &signed))
    }
}

/// Starts a server; `answer` gives the code and the body for each request.
fn start(
    answer: impl Fn(&BrokerRequest, SocketAddr) -> (i64, String) + Send + 'static,
) -> (SocketAddr, Receiver<BrokerRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, seen) = channel();
    std::thread::spawn(move || {
        // One connection after another, as the producer uses them.
        for stream in listener.incoming() {
            let _ended = serve(stream.unwrap(), address, &answer, &tell);
        }
    });
    (address, seen)
}

/// Serves one connection; `None`: it has ended.
fn serve(
    mut stream: TcpStream,
    address: SocketAddr,
    answer: &impl Fn(&BrokerRequest, SocketAddr) -> (i64, String),
    tell: &Sender<BrokerRequest>,
) -> Option<()> {
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length).ok()?;
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut frame).ok()?;
        // The first byte says that the header is JSON.
        assert_eq!(frame[0], 0);
        let header = u32::from_be_bytes(frame[..4].try_into().unwrap()) as usize;
        let (header, body) = frame[4..].split_at(header);
        let header: Value = serde_json::from_slice(header).unwrap();
        assert_eq!(header["flag"], 0, "a request that is to be answered");
        let number = header["opaque"].clone();
        let seen = BrokerRequest {
            header,
            body: body.to_vec(),
        };
        let (code, body) = answer(&seen, address);
        let header = json!({"code": code, "flag": 1, "language": "JAVA", "opaque": number, "remark": "r", "version": 401});
        let header = header.to_string();
        let mut out = ((4 + header.len() + body.len()) as u32).to_be_bytes().to_vec();
        out.extend((header.len() as u32).to_be_bytes());
        out.extend(header.bytes());
        out.extend(body.bytes());
        stream.write_all(&out).ok()?;
        tell.send(seen).ok()?;
    }
}

#[test]
fn brokers_get_entries_in_signed_messages() {
    let refusals = std::sync::atomic::AtomicUsize::new(0);
    // It has no room for the first message.
    let (broker, messages) = start(move |seen, _| {
        assert_eq!(seen.code(), 310);
        let is_first = refusals.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        (if is_first { 2 } else { 0 }, String::new())
    });
    let (nameserver, asked) = start(move |seen, _| {
        assert_eq!((seen.code(), seen.field("topic")), (105, "calls"));
        // As name servers write it: a name without quotes.
        let brokers = format!(r#"[{{"brokerAddrs":{{0:"{broker}"}},"brokerName":"b","cluster":"c"}}]"#);
        let queues = r#"[{"brokerName":"b","perm":6,"readQueueNums":2,"topicSysFlag":0,"writeQueueNums":2}]"#;
        (
            0,
            format!(r#"{{"brokerDatas":{brokers},"filterServerTable":{{}},"queueDatas":{queues}}}"#),
        )
    });
    let (upstream, _calls) = server();
    let route = json!({
        "id": "r", "uri": "/*",
        "plugins": {"rocketmq-logger": {
            "nameserver_list": [nameserver.to_string()], "topic": "calls", "key": "k1", "tag": "t1",
            "access_key": "a1", "secret_key": "s1", "batch_max_size": 1, "log_format": {"path": "$uri"},
        }},
        "upstream": {"type": "roundrobin", "nodes": {upstream.to_string(): 1}},
    });
    let weir = Gateway::start("apisix.yaml", &json!({"routes": [route]}));
    weir.get("/a", &[]);
    for _ in 0..2 {
        let route = asked.recv_timeout(TIMEOUT).unwrap();
        assert!(route.is_signed("s1"));
    }
    let mut queues = Vec::new();
    let mut names = Vec::new();
    for path in ["/a", "/a", "/b"] {
        if path == "/b" {
            weir.get(path, &[]);
        }
        let message = messages.recv_timeout(TIMEOUT).unwrap();
        let body: Value = serde_json::from_slice(&message.body).unwrap();
        assert_eq!(body, json!({"path": path, "route_id": "r", "service_id": ""}));
        assert!(message.is_signed("s1"));
        let fields = ["a", "b", "c", "d", "f", "h", "k", "m", "n", "AccessKey"];
        let expected = [
            "apisixLogProducer",
            "calls",
            "TBW102",
            "4",
            "0",
            "0",
            "false",
            "false",
            "b",
            "a1",
        ];
        assert_eq!(fields.map(|name| message.field(name)), expected);
        let properties = message.field("i").split('\u{2}').filter(|it| !it.is_empty());
        let properties: BTreeMap<&str, &str> = properties.map(|it| it.split_once('\u{1}').unwrap()).collect();
        assert_eq!(
            (properties["KEYS"], properties["TAGS"], properties["WAIT"]),
            ("k1", "t1", "true")
        );
        names.push(properties["UNIQ_KEY"].to_owned());
        queues.push(message.field("e").to_owned());
    }
    // A message that is sent again keeps its name, and queues take turns.
    assert_eq!((names[0] == names[1], names[1] == names[2]), (true, false));
    assert_eq!(queues, ["1", "0", "1"]);
    let sent = r#"weir_log_entries_total{target="rocketmq",result="sent"}"#;
    let is_counted = |line: &str| line.starts_with(sent);
    assert!(weir.scrape("/metrics").lines().any(is_counted));
    // What is known of the topic serves the second message, too.
    assert_eq!(asked.try_iter().count(), 0);
}
