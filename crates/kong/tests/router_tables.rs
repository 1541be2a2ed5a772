//! The decisions of Kong's own router tests, from `tests/recorded/kong-router`.

use serde_json::{Map, Value, json};
use std::path::PathBuf;
use weir_kong::{Options, RouterFlavor, translate};
use weir_plugin::uri::NormalForm;
use weir_plugin::{Exchange, Registry, system_clock};
use weir_snapshot::{PersistentState, SessionInfo, Snapshot, StreamTransport, compile};

/// Tables that come out otherwise, by a part of their names, and why.
const OTHERWISE: &[(&str, &str)] = &[
    (
        "#stream context / [snis] /  / [sni] is ignored for http request without shadowing",
        "a call, asked of a router for streams",
    ),
    (
        "prefers port-specific even for http",
        "the routes of the table are not those that its router was made of",
    ),
    (
        "[wildcard host] /  / does not take precedence over a plain host",
        "likewise",
    ),
    (
        "normalization stopgap",
        "the router is asked for paths that never reach it, and has some that the schema refuses",
    ),
    (
        "returns uri_captures normalized",
        "captures are parts of the path as it is forwarded, with its escapes",
    ),
];

/// The tables of a flavor: routes, a call, and what comes of it. In the file, tables of the same routes stand together.
fn tables(flavor: &str) -> Vec<Value> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/recorded/kong-router");
    let text = std::fs::read_to_string(folder.join(format!("{flavor}.json"))).expect("the tables");
    let groups: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    let tables = groups.iter().flat_map(|group| {
        let calls = group["calls"].as_array().expect("calls");
        calls.iter().map(|call| {
            let mut table = call.clone();
            table["routes"] = group["routes"].clone();
            table
        })
    });
    tables.collect()
}

/// The routes of a table as a document. The tables do without the defaults of the schema.
fn document(table: &Value) -> Value {
    let mut services = Vec::new();
    let mut routes = Vec::new();
    for (index, entry) in table["routes"].as_array().expect("a list").iter().enumerate() {
        let mut route = entry["route"].as_object().expect("a route").clone();
        route.insert("name".to_owned(), format!("{}", index + 1).into());
        if routes
            .iter()
            .any(|other: &Value| other["id"] == *route.get("id").unwrap_or(&Value::Null))
        {
            // Some tables repeat an id, which a document cannot; the order of ids is kept.
            route.insert(
                "id".to_owned(),
                format!("e8fb37f1-102d-461e-9c51-6608a6bb9{index:03}").into(),
            );
        }
        route.entry("strip_path").or_insert(false.into());
        let protocols = route
            .get("protocols")
            .and_then(|it| it[0].as_str())
            .unwrap_or("http")
            .to_owned();
        if protocols.starts_with("grpc") {
            route.insert("strip_path".to_owned(), false.into());
        }
        if let Some(service) = entry["service"].as_object() {
            let name = format!("s{index}");
            let path = service.get("path").cloned().unwrap_or_default();
            // The tables do not mind what their services speak; documents do.
            services.push(match protocols.as_str() {
                "tcp" | "tls" | "udp" => json!({"name": name, "host": "example.org", "protocol": "tcp"}),
                _ => json!({"name": name, "host": "example.org", "path": path}),
            });
            route.insert("service".to_owned(), name.into());
        }
        routes.push(Value::Object(route));
    }
    json!({"_format_version": "3.0", "services": services, "routes": routes})
}

fn exchange(request: &Map<String, Value>) -> Exchange {
    let text = |name: &str| request.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut exchange = Exchange::new(system_clock, 1);
    let call = &mut exchange.request;
    call.method = text("method").as_bytes().to_vec();
    let (path, query) = match text("uri").split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text("uri"), None),
    };
    call.raw_path = path.as_bytes().to_vec();
    let _ = NormalForm::Encoded.apply(path.as_bytes(), &mut call.path);
    call.query = query.map(|query| query.as_bytes().to_vec());
    let host = text("host").to_ascii_lowercase();
    let (name, port) = match host.rsplit_once(':') {
        _ if host.parse::<std::net::Ipv6Addr>().is_ok() => (format!("[{host}]"), None),
        Some((name, port)) if !host.ends_with(']') => (name.to_owned(), port.parse().ok()),
        _ => (host.clone(), None),
    };
    call.host = name.into_bytes();
    call.host_port = port;
    call.headers.append(b"host", text("host").as_bytes());
    for (name, value) in request
        .get("headers")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let values = match value {
            Value::Array(values) => values.clone(),
            value => vec![value.clone()],
        };
        for value in values.iter().filter_map(Value::as_str).filter(|_| name != "host") {
            call.headers.append(name.as_bytes(), value.as_bytes());
        }
    }
    call.is_tls = text("scheme") == "https";
    call.sni = request.get("sni").and_then(Value::as_str).map(Into::into);
    exchange
}

fn snapshot(table: &Value, router: RouterFlavor) -> Result<Snapshot, String> {
    let (model, found) =
        translate(&document(table), &Options { router }).map_err(|found| format!("{found:?}"))?;
    match compile(&model, &Registry::default(), &PersistentState::default()) {
        Ok((snapshot, _))
            if found
                .iter()
                .all(|found| found.severity < weir_model::Severity::Dropped) =>
        {
            Ok(snapshot)
        }
        Ok(_) => Err("routes were left out".to_owned()),
        Err(found) => Err(format!("{found:?}")),
    }
}

/// The route that takes a session of a table, by its name.
fn stream_winner(snapshot: &Snapshot, request: &Map<String, Value>) -> Option<String> {
    let text = |name: &str| request.get(name).and_then(Value::as_str);
    let end = |ip: &str, port: &str| {
        let ip = text(ip).unwrap_or("203.0.113.1").parse().expect("an address");
        let port = request.get(port).and_then(Value::as_u64).unwrap_or_default();
        std::net::SocketAddr::new(ip, port as u16)
    };
    let server_name = text("sni");
    let found = snapshot.streams.find(&SessionInfo {
        // Only handshakes have a server name.
        transport: match server_name {
            Some(_) => StreamTransport::Tls,
            None => StreamTransport::Tcp,
        },
        server_name,
        source: end("src_ip", "src_port"),
        destination: end("dst_ip", "dst_port"),
    });
    found.map(|(position, _)| snapshot.streams.routes[position].facts.name.clone())
}

fn check(table: &Value, router: RouterFlavor) -> Result<(), String> {
    let snapshot = snapshot(table, router)?;
    if !snapshot.streams.is_empty() {
        let winner = stream_winner(&snapshot, table["request"].as_object().expect("a request"));
        let expect = &table["expect"];
        let expected = match expect["matched"].as_bool() {
            Some(false) => None,
            _ => expect["route_index"].as_u64().map(|index| index.to_string()),
        };
        return match winner == expected {
            true => Ok(()),
            false => Err(format!("{winner:?} won, expected {expected:?}")),
        };
    }
    let mut exchange = exchange(table["request"].as_object().expect("a request"));
    let found = snapshot
        .tables
        .first()
        .and_then(|routes| routes.find(&mut exchange));
    let winner = found.map(|found| snapshot.routes[found.route as usize].facts.name.clone());
    let expect = &table["expect"];
    let expected = match (expect["matched"].as_bool(), expect["route_index"].as_u64()) {
        (Some(false), _) => None,
        (_, Some(index)) => Some(index.to_string()),
        _ => winner.clone(),
    };
    if winner != expected {
        return Err(format!("{winner:?} won, expected {expected:?}"));
    }
    for (field, value) in expect.as_object().into_iter().flatten() {
        let Some(name) = field.strip_prefix("matches.uri_captures.") else {
            continue;
        };
        let captures = exchange
            .captures
            .iter()
            .find(|(capture, _)| capture.as_ref() == name);
        let captured = captures.map(|(_, value)| String::from_utf8_lossy(value).into_owned());
        let is_counted = name != "0" && value.is_string();
        if is_counted && captured.as_deref() != value.as_str() {
            return Err(format!("{name} captured {captured:?}, expected {value}"));
        }
    }
    Ok(())
}

fn run(flavor: &str, router: RouterFlavor) {
    let tables = tables(flavor);
    let mut failures = Vec::new();
    let mut listed = 0;
    let is_there = |part: &&str| {
        tables
            .iter()
            .any(|it| it["test"].as_str().is_some_and(|name| name.contains(part)))
    };
    let mut unused: Vec<&str> = OTHERWISE.iter().map(|(part, _)| *part).filter(is_there).collect();
    for table in &tables {
        let name = table["test"].as_str().expect("a name");
        let reason = OTHERWISE.iter().find(|(part, _)| name.contains(part));
        match (check(table, router), reason) {
            (Ok(()), _) => {}
            (Err(_), Some((part, _))) => {
                unused.retain(|other| other != part);
                listed += 1;
            }
            (Err(failure), None) => failures.push(format!("{name}\n   {failure}")),
        }
    }
    eprintln!(
        "{} of {} tables of {flavor}",
        tables.len() - failures.len() - listed,
        tables.len()
    );
    assert!(unused.is_empty(), "{unused:?} can leave the list");
    assert!(
        failures.is_empty(),
        "{} tables:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn traditional_compatible() {
    run("traditional_compatible", RouterFlavor::TraditionalCompatible);
}

#[test]
fn traditional() {
    run("traditional", RouterFlavor::Traditional);
}
