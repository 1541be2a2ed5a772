//! The gateway's own log at servers of the test, through the whole binary. What it has to say comes of configurations that
//! it refuses.

use crate::TIMEOUT;
use crate::server::{Gateway, server};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

/// What is said of a configuration that is refused, last.
const REFUSED: &str = "the changed configuration is invalid";

fn apisix(metadata: Value) -> Value {
    let mut metadata = metadata;
    metadata["id"] = "error-log-logger".into();
    metadata["inactive_timeout"] = 1.into();
    json!({"routes": [], "plugin_metadata": [metadata]})
}

/// The lines of a TCP client, until one that holds this.
fn lines_until(reader: &mut BufReader<TcpStream>, last: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    while !lines.last().is_some_and(|line| line.contains(last)) {
        let mut line = String::new();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "{lines:?}");
        lines.push(line);
    }
    lines
}

fn accept(listener: &TcpListener) -> BufReader<TcpStream> {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    BufReader::new(stream)
}

#[test]
fn tcp_servers_get_lines_of_the_level() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let tcp = json!({"host": "127.0.0.1", "port": port});
    let weir = Gateway::start("apisix.yaml", &apisix(json!({"tcp": tcp, "level": "ERROR"})));
    weir.rewrite("apisix.yaml", "routes: [\n#END\n");
    let lines = lines_until(&mut accept(&listener), REFUSED);
    assert!(lines.iter().all(|line| line.contains("ERROR")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("apisix.yaml")), "{lines:?}");
}

#[test]
fn skywalking_and_clickhouse_get_lines_in_their_forms() {
    let (collector, taken) = server();
    let skywalking = json!({
        "endpoint_addr": format!("http://{collector}/v3/logs"), "service_name": "s", "service_instance_name": "i",
    });
    let weir = Gateway::start("apisix.yaml", &apisix(json!({"skywalking": skywalking})));
    weir.rewrite("apisix.yaml", "routes: [\n#END\n");
    let request = taken.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(
        (request.line.as_str(), request.header("content-type")),
        ("POST /v3/logs HTTP/1.1", "application/json")
    );
    let entries: Value = serde_json::from_slice(&request.body).unwrap();
    let entries = entries.as_array().unwrap();
    for entry in entries {
        assert_eq!(
            (&entry["service"], &entry["serviceInstance"], &entry["endpoint"]),
            (&json!("s"), &json!("i"), &json!(""))
        );
    }
    let texts: Vec<&str> = (entries.iter())
        .filter_map(|entry| entry["body"]["text"]["text"].as_str())
        .collect();
    assert!(texts.iter().any(|text| text.contains(REFUSED)), "{texts:?}");

    let (database, taken) = server();
    let clickhouse = json!({
        "endpoint_addr": format!("http://{database}"), "user": "u", "password": "p", "database": "d", "logtable": "t",
    });
    let weir = Gateway::start("apisix.yaml", &apisix(json!({"clickhouse": clickhouse})));
    weir.rewrite("apisix.yaml", "routes: [\n#END\n");
    let request = taken.recv_timeout(TIMEOUT).unwrap();
    let shown = ["x-clickhouse-user", "x-clickhouse-key", "x-clickhouse-database"];
    assert_eq!(shown.map(|name| request.header(name)), ["u", "p", "d"]);
    let body = String::from_utf8(request.body).unwrap();
    let rows = body.strip_prefix("INSERT INTO t FORMAT JSONEachRow ").unwrap();
    let rows: Vec<Value> = serde_json::Deserializer::from_str(rows)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap();
    let is_logged = |row: &Value| row["data"].as_str().is_some_and(|line| line.contains(REFUSED));
    assert!(rows.iter().any(is_logged), "{rows:?}");
}

/// A target that is away has something said of it, and that is not sent to any target: else it would never end.
#[test]
fn what_is_said_of_sending_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // A port that nothing listens on.
    let away = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let batch = json!({"delay_ms": 0, "retries": 0});
    let plugin = |id: &str, target: Value| {
        let config = json!({"level": "info", "target": target, "batch": batch});
        json!({"id": id, "name": "gateway-log", "config": config})
    };
    let weir = Gateway::start(
        "weir.yaml",
        &json!({"weir": 1, "plugins": [
            plugin("here", json!({"tcp": {"host": "127.0.0.1", "port": port}})),
            plugin("away", json!({"http": {"url": format!("http://{away}/")}})),
        ]}),
    );
    weir.rewrite("weir.yaml", "weir: [\n");
    let mut reader = accept(&listener);
    lines_until(&mut reader, REFUSED);
    let lost = "weir_log_entries_total{target=\"http\",result=\"dropped\"}";
    let began = Instant::now();
    let is_lost = |line: &str| line.strip_prefix(lost).is_some_and(|count| count.trim() != "0");
    while !weir.scrape("/metrics").lines().any(is_lost) {
        assert!(began.elapsed() < TIMEOUT, "the loss is counted");
    }
    weir.rewrite("weir.yaml", "weir: {\n");
    let lines = lines_until(&mut reader, REFUSED);
    assert!(
        !lines.iter().any(|line| line.contains("are dropped")),
        "{lines:?}"
    );
}
