//! The target of the puppet's log.

use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_plugin::{
    KafkaCluster, LogAuthorization, LogAuthorizer, LogBatching, LogFile, LogFraming, LogGrpc, LogHttp,
    LogKafka, LogSasl, LogSigner, LogSink, LogTarget, SaslMechanism,
};

/// `file` or `local` (a path), `http`, `grpc`, `tcp`, `kafka` (with a `user`) or `udp` (a port of this machine); `max_entries` of
/// a message, `delay_ms`, `max_pending`, `retries`. `token`: the port of a server for the tokens of `http`. Gives also the `size` that entries are padded to.
pub fn log_target(config: &Value) -> Option<(Arc<LogTarget>, usize)> {
    let number = |name: &str, default: u64| config[name].as_u64().unwrap_or(default);
    let port = |name: &str| config[name].as_u64().map(|port| port as u16);
    let host = || "127.0.0.1".to_owned();
    let timeout = Duration::from_millis(number("timeout_ms", 5_000));
    let path = |name: &str| config[name].as_str().map(str::to_owned);
    let sink = if let Some(path) = path("file") {
        let (folder, name) = path.rsplit_once('/').expect("a path in a folder");
        LogSink::File {
            file: LogFile::In {
                folder: folder.into(),
                name: name.to_owned(),
            },
            reopen: config["reopen"] == true,
        }
    } else if let Some(path) = path("local") {
        LogSink::Local { path }
    } else if let Some(port) = port("tcp") {
        LogSink::Tcp {
            host: host(),
            port,
            tls: None,
            timeout,
        }
    } else if let Some(port) = port("kafka") {
        LogSink::Kafka(LogKafka {
            cluster: KafkaCluster {
                brokers: vec![(host(), port)],
                tls: None,
                sasl: config["user"].as_str().map(|user| LogSasl {
                    mechanism: SaslMechanism::Plain,
                    user: user.to_owned(),
                    password: "secret".to_owned(),
                }),
            },
            topic: "calls".to_owned(),
            key: None,
            acks: 1,
            each_line: false,
            timeout,
        })
    } else if let Some(port) = port("grpc") {
        LogSink::Grpc(LogGrpc {
            host: host(),
            port,
            tls: None,
            method: "/logs.Sink/Take".to_owned(),
            metadata: vec![("x-key".to_owned(), "k".to_owned())],
            timeout,
        })
    } else if let Some(port) = port("udp") {
        LogSink::Udp {
            host: host(),
            port,
            line_bytes: None,
        }
    } else {
        LogSink::Http(LogHttp {
            host: host(),
            port: port("http")?,
            tls: None,
            head: b"POST /log HTTP/1.1\r\nHost: sink\r\n".to_vec(),
            timeout,
            signer: port("token").map(|port| LogSigner::new(port.to_string(), Arc::new(Token::at(port)))),
        })
    };
    let target = LogTarget {
        sink,
        joint: LogFraming {
            before: "[".into(),
            between: ",",
            after: "]",
            bare_single: true,
            nesting: Default::default(),
        },
        batching: LogBatching {
            max_entries: number("max_entries", 1) as usize,
            delay: Duration::from_millis(number("delay_ms", 0)),
            max_pending: number("max_pending", 1_000) as usize,
            max_pending_bytes: 1 << 20,
            retries: number("retries", 3) as u32,
            retry_for: Duration::from_secs(60),
            retry_delay: Duration::from_millis(10),
            max_retry_delay: Duration::from_millis(10),
        },
    };
    Some((Arc::new(target), number("size", 0) as usize))
}

/// Fetches a token from a server, whose answer is the token; the answer `no` counts as none.
struct Token {
    server: LogHttp,
    token: Mutex<Option<String>>,
}

impl Token {
    fn at(port: u16) -> Self {
        Self {
            server: LogHttp {
                host: "127.0.0.1".to_owned(),
                port,
                tls: None,
                head: b"POST /token HTTP/1.1\r\nHost: token\r\n".to_vec(),
                timeout: Duration::from_secs(5),
                signer: None,
            },
            token: Mutex::default(),
        }
    }
}

impl LogAuthorizer for Token {
    fn authorize(&self, _: u64) -> LogAuthorization {
        match &*self.token.lock().unwrap() {
            Some(token) => LogAuthorization::Header(format!("Bearer {token}")),
            None => LogAuthorization::Ask(Box::new(self.server.clone()), b"please".to_vec()),
        }
    }

    fn take(&self, _: u16, body: &[u8], _: u64) {
        let text = String::from_utf8_lossy(body).into_owned();
        *self.token.lock().unwrap() = (text != "no").then_some(text);
    }
}
