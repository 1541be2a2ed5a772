//! Entries for the logs of clouds: Google's as JSON, Tencent's as Protocol Buffers.

use super::layout::LogRecord;
use super::time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use weir_plugin::{LogFraming, ProtobufWrapper};

/// Entries of Google's Cloud Logging.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GoogleForm {
    /// The log: `projects/PROJECT/logs/LOG`.
    pub log_name: String,
    /// What writes the log, by the service's own names.
    pub resource: Map<String, Value>,
    /// Labels of all entries.
    pub labels: BTreeMap<String, String>,
    /// Entries describe calls as the service's `httpRequest`; else they are `jsonPayload` as they are.
    pub describes_call: bool,
    /// The fields of an entry that go into its `jsonPayload`, beside an `httpRequest`.
    pub payload: Vec<String>,
}

impl Default for GoogleForm {
    fn default() -> Self {
        let resource = [("type".to_owned(), Value::from("global"))];
        Self {
            log_name: String::new(),
            resource: resource.into_iter().collect(),
            labels: BTreeMap::new(),
            describes_call: true,
            payload: vec!["route_id".into(), "service_id".into()],
        }
    }
}

impl GoogleForm {
    /// An entry; `written`: its fields.
    pub fn entry(&self, account: &LogRecord<'_>, written: &[u8], out: &mut Vec<u8>) {
        let (exchange, record) = (account.exchange, account.record);
        let written: Value = serde_json::from_slice(written).unwrap_or_default();
        let mut entry = match self.describes_call {
            false => json!({"jsonPayload": written}),
            true => {
                let request = &written["request"];
                let known = self.payload.iter();
                let payload: Map<String, Value> = known
                    .filter_map(|field| Some((field.clone(), written.get(field)?.clone())))
                    .filter(|(_, value)| !value.is_null())
                    .collect();
                json!({
                    "httpRequest": {
                        "requestMethod": request["method"],
                        "requestUrl": request["url"],
                        "requestSize": request["size"],
                        "status": written["response"]["status"],
                        "responseSize": written["response"]["size"],
                        "userAgent": request["headers"]["user-agent"],
                        "remoteIp": written["client_ip"],
                        "serverIp": written["upstream"],
                        "latency": format!("{:.3}s", record.total_us as f64 / 1e6),
                    },
                    "jsonPayload": payload,
                })
            }
        };
        entry["labels"] = json!(self.labels);
        entry["timestamp"] = time::rfc3339(record.started_ms + record.total_us / 1000, true).into();
        entry["resource"] = Value::Object(self.resource.clone());
        entry["logName"] = self.log_name.as_str().into();
        if !exchange.request_id().is_empty() {
            entry["insertId"] = exchange.request_id().into();
        }
        out.extend_from_slice(entry.to_string().as_bytes());
    }
}

/// What stands around entries of Tencent's: a list of groups with one group.
pub fn tencent_framing() -> LogFraming {
    LogFraming {
        nesting: vec![ProtobufWrapper {
            before: Vec::new(),
            key: FIELD_1,
        }],
        ..LogFraming::default()
    }
}

/// The key of a field 1 that has a length.
const FIELD_1: u8 = 0x0a;
/// The key of a field 2 that has a length.
const FIELD_2: u8 = 0x12;
/// The most bytes of a value.
const MAX_VALUE: usize = 1 << 20;

fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn push_bytes(out: &mut Vec<u8>, key: u8, bytes: &[u8]) {
    out.push(key);
    push_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// An entry of Tencent's (`Log`, as a field of its group); `written`: its fields, `tags`: those of all entries.
pub fn tencent_entry(account: &LogRecord<'_>, tags: &Map<String, Value>, written: &[u8], out: &mut Vec<u8>) {
    let fields: Map<String, Value> = serde_json::from_slice(written).unwrap_or_default();
    let own = fields.iter().filter(|(name, _)| !tags.contains_key(*name));
    let mut log = vec![0x08];
    push_number(
        &mut log,
        account.record.started_ms + account.record.total_us / 1000,
    );
    for (name, value) in own.chain(tags) {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let mut length = text.len().min(MAX_VALUE);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        let mut content = Vec::with_capacity(name.len() + length + 8);
        push_bytes(&mut content, FIELD_1, name.as_bytes());
        push_bytes(&mut content, FIELD_2, &text.as_bytes()[..length]);
        push_bytes(&mut log, FIELD_2, &content);
    }
    push_bytes(out, FIELD_1, &log);
}

#[cfg(test)]
mod tests {
    use super::super::mask::Masks;
    use super::*;
    use prost::Message;
    use weir_plugins_testkit::{exchange, record};

    #[derive(Clone, PartialEq, Message)]
    struct Content {
        #[prost(string, tag = "1")]
        key: String,
        #[prost(string, tag = "2")]
        value: String,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Log {
        #[prost(int64, tag = "1")]
        time: i64,
        #[prost(message, repeated, tag = "2")]
        contents: Vec<Content>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct LogGroup {
        #[prost(message, repeated, tag = "1")]
        logs: Vec<Log>,
    }

    fn with_record(work: impl FnOnce(&LogRecord<'_>)) {
        let (exchange, record) = (exchange(), record());
        work(&LogRecord {
            exchange: &exchange,
            record: &record,
            masks: &Masks::default(),
            own_name: "apisix",
            request_body: None,
            response_body: None,
        });
    }

    #[test]
    fn entries_are_logs_of_a_group() {
        with_record(|account| {
            let tags = json!({"zone": "a", "b": 2});
            let tags = tags.as_object().expect("tags");
            let mut out = Vec::new();
            for written in [r#"{"host":"h","n":1.5,"o":{"x":[1]},"zone":"b"}"#, "{}"] {
                tencent_entry(account, tags, written.as_bytes(), &mut out);
            }
            let group = LogGroup::decode(&out[..]).expect("a message");
            let contents = |log: &Log| -> Vec<(String, String)> {
                let pairs = log.contents.iter();
                pairs.map(|it| (it.key.clone(), it.value.clone())).collect()
            };
            let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            assert_eq!(group.logs.len(), 2);
            assert_eq!(group.logs[0].time as u64, account.record.started_ms + 12);
            let wanted = [
                pair("host", "h"),
                pair("n", "1.5"),
                pair("o", "{\"x\":[1]}"),
                pair("zone", "a"),
                pair("b", "2"),
            ];
            assert_eq!(contents(&group.logs[0]), wanted);
            assert_eq!(contents(&group.logs[1]), [pair("zone", "a"), pair("b", "2")]);
        });
    }

    #[test]
    fn entries_are_those_of_the_cloud() {
        let written = br#"{"request":{"method":"GET","url":"http://h/","size":7,"headers":{"user-agent":"x"}},
            "response":{"status":200,"size":9},"client_ip":"10.0.0.1","upstream":"10.0.0.9:80","route_id":"r","zone":"z"}"#;
        with_record(|account| {
            let mut form = GoogleForm {
                log_name: "projects/p/logs/l".into(),
                ..GoogleForm::default()
            };
            let entry = |form: &GoogleForm| -> Value {
                let mut out = Vec::new();
                form.entry(account, written, &mut out);
                serde_json::from_slice(&out).expect("JSON")
            };
            let fields = entry(&form);
            let request = json!({
                "requestMethod": "GET", "requestUrl": "http://h/", "requestSize": 7, "status": 200, "responseSize": 9,
                "userAgent": "x", "remoteIp": "10.0.0.1", "serverIp": "10.0.0.9:80", "latency": "0.012s",
            });
            assert_eq!(fields["httpRequest"], request);
            assert_eq!(fields["jsonPayload"], json!({"route_id": "r"}));
            assert_eq!(fields["resource"], json!({"type": "global"}));
            assert_eq!(fields["logName"], "projects/p/logs/l");
            assert_eq!(fields["timestamp"], "2026-11-20T15:31:00.012Z");
            form.payload.push("zone".into());
            assert_eq!(entry(&form)["jsonPayload"], json!({"route_id": "r", "zone": "z"}));
            form.describes_call = false;
            assert_eq!(entry(&form)["jsonPayload"]["client_ip"], "10.0.0.1");
        });
    }
}
