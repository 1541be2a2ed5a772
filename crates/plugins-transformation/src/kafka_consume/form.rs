//! How records stand in answers: as JSON by topics and partitions, and as server-sent events. It reads no records itself.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use weir_plugin::{KafkaForm, KafkaPartition, KafkaRecord};

/// The form of records.
pub struct RecordForm {
    /// Values are JSON.
    pub is_json: bool,
}

impl RecordForm {
    /// An answer: partitions by their topics.
    pub fn whole(&self, topics: &[String], partitions: &[KafkaPartition]) -> Vec<u8> {
        let of_topic = |topic: &String| {
            let own = partitions.iter().filter(|partition| partition.topic == *topic);
            let own: Map<String, Value> = own
                .map(|partition| (partition.partition.to_string(), self.partition(partition)))
                .collect();
            (topic.clone(), json!({"partitions": own}))
        };
        let all: Map<String, Value> = topics.iter().map(of_topic).collect();
        Value::Object(all).to_string().into_bytes()
    }

    fn partition(&self, partition: &KafkaPartition) -> Value {
        let records = partition.records.iter();
        let records: Vec<Value> = records.map(|record| self.record(record).into()).collect();
        json!({
            "errcode": 0,
            "high_watermark": partition.high_watermark,
            "last_stable_offset": partition.last_stable_offset,
            "records": records,
        })
    }

    fn record(&self, record: &KafkaRecord) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("offset".into(), record.offset.into());
        fields.insert("timestamp".into(), record.timestamp_ms.into());
        put(&mut fields, "key", record.key.as_deref());
        let value = record.value.as_deref();
        let parsed = value
            .filter(|_| self.is_json)
            .and_then(|value| serde_json::from_slice::<Value>(value).ok());
        match parsed {
            Some(parsed) => drop(fields.insert("value".into(), parsed)),
            None => {
                put(&mut fields, "value", value);
                if self.is_json && value.is_some() {
                    fields.insert("value_is_json".into(), false.into());
                }
            }
        }
        if !record.headers.is_empty() {
            let header = |(name, value): &(String, Option<Vec<u8>>)| {
                let mut fields = Map::new();
                fields.insert("name".into(), name.clone().into());
                put(&mut fields, "value", value.as_deref());
                Value::Object(fields)
            };
            let headers: Vec<Value> = record.headers.iter().map(header).collect();
            fields.insert("headers".into(), headers.into());
        }
        fields
    }
}

/// Puts bytes as text, or in Base64 if they are none, which another field says then.
fn put(fields: &mut Map<String, Value>, name: &str, bytes: Option<&[u8]>) {
    let value = match bytes.map(std::str::from_utf8) {
        None => Value::Null,
        Some(Ok(text)) => text.into(),
        Some(Err(_)) => {
            fields.insert(format!("{name}_base64"), true.into());
            STANDARD.encode(bytes.unwrap_or_default()).into()
        }
    };
    fields.insert(name.into(), value);
}

/// An event for each record. JSON has no line breaks that would end its line.
impl KafkaForm for RecordForm {
    fn write(&self, partition: &KafkaPartition, out: &mut Vec<u8>) {
        let (topic, number) = (&partition.topic, partition.partition);
        for record in &partition.records {
            let mut fields = self.record(record);
            fields.insert("topic".into(), topic.clone().into());
            fields.insert("partition".into(), number.into());
            let event = format!(
                "id: {topic}/{number}/{}\ndata: {}\n\n",
                record.offset,
                Value::Object(fields)
            );
            out.extend_from_slice(event.as_bytes());
        }
    }
}
