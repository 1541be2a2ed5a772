//! Loggers whose requests are signed or need a token, and segments for SkyWalking, through the whole binary: the servers
//! of the test check what they get.

use crate::TIMEOUT;
use crate::server::{Gateway, server, server_with};
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use aws_lc_rs::{digest, hmac};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use prost::Message;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// A gateway with one route that logs.
fn gateway(upstream: SocketAddr, plugin: &str, config: Value) -> Gateway {
    let route = json!({
        "id": "r", "uri": "/*", "plugins": {plugin: config},
        "upstream": {"type": "roundrobin", "nodes": {upstream.to_string(): 1}},
    });
    Gateway::start("apisix.yaml", &json!({"routes": [route]}))
}

#[test]
fn google_gets_entries_with_a_token_for_a_signed_assertion() {
    let (upstream, _calls) = server();
    let (tokens, asked) =
        server_with(r#"{"access_token": "t1", "token_type": "Bearer", "expires_in": 3600}"#);
    let (cloud, taken) = server();
    let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let der = STANDARD.encode(pair.as_der().unwrap().as_ref());
    let token_uri = format!("http://{tokens}/token");
    let weir = gateway(
        upstream,
        "google-cloud-logging",
        json!({
            "auth_config": {
                "client_email": "a@b.example", "project_id": "p", "token_uri": token_uri,
                "private_key": format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n"),
                "entries_uri": format!("http://{cloud}/v2/entries:write"),
            },
            "log_format_extra": {"zone": "$arg_zone"},
            "batch_max_size": 1,
        }),
    );
    for path in ["/a?zone=z", "/b"] {
        weir.get(path, &[("User-Agent", "test")]);
        let taken = taken.recv_timeout(TIMEOUT).unwrap();
        assert_eq!(taken.line, "POST /v2/entries:write HTTP/1.1");
        assert_eq!(taken.header("authorization"), "Bearer t1");
        assert_eq!(taken.header("content-type"), "application/json");
        let body: Value = serde_json::from_slice(&taken.body).unwrap();
        let entry = &body["entries"][0];
        assert_eq!(
            (&body["partialSuccess"], &entry["logName"]),
            (&json!(false), &json!("projects/p/logs/apisix.apache.org%2Flogs"))
        );
        assert_eq!(entry["httpRequest"]["requestMethod"], "GET");
        assert_eq!(entry["httpRequest"]["status"], 200);
        assert_eq!(entry["httpRequest"]["userAgent"], "test");
        assert_eq!(entry["jsonPayload"]["route_id"], "r");
        if path == "/a?zone=z" {
            assert_eq!(entry["jsonPayload"]["zone"], "z");
        }
    }
    // One token serves both.
    let asked: Vec<_> = asked.try_iter().collect();
    let [asked] = asked.as_slice() else {
        panic!("{} tokens were fetched", asked.len());
    };
    assert_eq!(
        (asked.line.as_str(), asked.header("content-type")),
        ("POST /token HTTP/1.1", "application/x-www-form-urlencoded")
    );
    let form = String::from_utf8(asked.body.clone()).unwrap();
    let (grant, assertion) = form.rsplit_once("&assertion=").unwrap();
    assert_eq!(
        grant,
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
    );
    let (signed, signature) = assertion.rsplit_once('.').unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    public.verify(signed.as_bytes(), &signature).unwrap();
    let claims = URL_SAFE_NO_PAD.decode(signed.split_once('.').unwrap().1).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(
        (&claims["iss"], &claims["aud"]),
        (&json!("a@b.example"), &json!(token_uri))
    );
}

#[derive(Clone, PartialEq, Message)]
struct Pair {
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
    contents: Vec<Pair>,
}

#[derive(Clone, PartialEq, Message)]
struct LogGroup {
    #[prost(message, repeated, tag = "1")]
    logs: Vec<Log>,
}

#[derive(Clone, PartialEq, Message)]
struct LogGroupList {
    #[prost(message, repeated, tag = "1")]
    groups: Vec<LogGroup>,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hmac_sha1(key: &str, text: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key.as_bytes());
    hex(hmac::sign(&key, text.as_bytes()).as_ref())
}

#[test]
fn tencents_service_gets_signed_groups_of_logs() {
    let (upstream, _calls) = server();
    let (cloud, taken) = server();
    let weir = gateway(
        upstream,
        "tencent-cloud-cls",
        json!({
            "cls_host": cloud.to_string(), "cls_topic": "t1", "scheme": "http",
            "secret_id": "id", "secret_key": "key", "global_tag": {"zone": "a"},
            "log_format": {"path": "$uri", "status": "$status"}, "batch_max_size": 1,
        }),
    );
    weir.get("/a?x=1", &[]);
    let taken = taken.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(taken.line, "POST /structuredlog?topic_id=t1 HTTP/1.1");
    assert_eq!(taken.header("content-type"), "application/x-protobuf");
    let shown: Vec<(&str, &str)> = taken
        .header("authorization")
        .split('&')
        .filter_map(|part| part.split_once('='))
        .collect();
    let shown = |name: &str| shown.iter().find(|(known, _)| *known == name).map(|it| it.1);
    assert_eq!(
        (shown("q-sign-algorithm"), shown("q-ak")),
        (Some("sha1"), Some("id"))
    );
    let time = shown("q-sign-time").unwrap();
    assert_eq!(shown("q-key-time"), Some(time));
    let request = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, b"post\n/structuredlog\n\n\n");
    let signed = format!("sha1\n{time}\n{}\n", hex(request.as_ref()));
    let wanted = hmac_sha1(&hmac_sha1("key", time), &signed);
    assert_eq!(shown("q-signature"), Some(wanted.as_str()));
    let list = LogGroupList::decode(taken.body.as_slice()).unwrap();
    let [group] = list.groups.as_slice() else {
        panic!("{list:?}")
    };
    let [log] = group.logs.as_slice() else {
        panic!("{group:?}")
    };
    assert!(log.time > 1_600_000_000_000, "milliseconds: {}", log.time);
    let found = |name: &str| {
        let pair = log.contents.iter().find(|pair| pair.key == name);
        pair.map(|pair| pair.value.as_str())
    };
    assert_eq!(
        (found("path"), found("status"), found("zone"), found("route_id")),
        (Some("/a"), Some("200"), Some("a"), Some("r"))
    );
}

#[test]
fn skywalking_gets_segments_where_the_configuration_says() {
    let (upstream, calls) = server();
    let (oap, taken) = server();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    let attributes = format!(
        "plugin_attr:\n  skywalking: {{endpoint_addr: 'http://{oap}', service_name: edge, report_interval: 1}}\n"
    );
    std::fs::write(&config, attributes).unwrap();
    let route = json!({
        "id": "r", "uri": "/*", "plugins": {"skywalking": {}},
        "upstream": {"type": "roundrobin", "nodes": {upstream.to_string(): 1}},
    });
    let weir = Gateway::with(
        "apisix.yaml",
        &json!({"routes": [route]}),
        &["--apisix-config", config.to_str().unwrap()],
    );
    weir.get("/a?b=c", &[]);
    let call = calls.recv_timeout(TIMEOUT).unwrap();
    let parts: Vec<String> = (call.header("sw8").split('-').skip(1))
        .map(|part| String::from_utf8(STANDARD.decode(part).unwrap_or_default()).unwrap_or_default())
        .collect();
    let taken = taken.recv_timeout(TIMEOUT).unwrap();
    assert_eq!(taken.line, "POST /v3/segments HTTP/1.1");
    let segments: Value = serde_json::from_slice(&taken.body).unwrap();
    let segment = &segments[0];
    assert_eq!(segment["service"], "edge");
    assert_eq!(segment["serviceInstance"], "APISIX Instance Name");
    assert_eq!(
        (&segment["traceId"], &segment["traceSegmentId"]),
        (&json!(parts[0]), &json!(parts[1]))
    );
    let kinds: Vec<_> = (segment["spans"].as_array().unwrap().iter())
        .map(|span| (span["spanType"].as_str(), span["componentId"].as_u64()))
        .collect();
    assert_eq!(kinds, [(Some("Exit"), Some(6002)), (Some("Entry"), Some(6002))]);
}
