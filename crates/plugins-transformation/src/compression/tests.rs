//! `compression` as clients see it.

use super::*;
use serde_json::json;
use std::io::Read;
use weir_plugin::BodyFilters;
use weir_plugins_testkit::*;

fn respond(config: &Value, request: &[(&str, &str)], response: &[(&str, &str)]) -> Exchange {
    let filter = build(&Compression, config).expect("valid");
    let mut exchange = exchange();
    prepare(&mut exchange, "GET /", request);
    exchange.response.status = 200;
    exchange.response.content_length = Some(100);
    exchange.response.headers = header_fields(response);
    filter.on_response(&mut exchange);
    exchange
}

#[test]
fn responses_are_chosen() {
    let html = ("Content-Type", "text/html; charset=utf-8");
    for (config, accepted, response, expected) in [
        (json!({}), "gzip", vec![html], true),
        (json!({}), "deflate, GZIP;q=0.5", vec![html], true),
        (json!({}), "*", vec![html], true),
        (json!({}), "gzip;q=0, *", vec![html], false),
        (json!({}), "gzip;q=0.0", vec![html], false),
        (json!({}), "br", vec![html], false),
        (json!({}), "gzip", vec![("Content-Type", "text/plain")], false),
        (
            json!({"types": ["*"]}),
            "gzip",
            vec![("Content-Type", "image/x")],
            true,
        ),
        (json!({"types": ["*"]}), "gzip", vec![], false),
        (json!({"types": ["TEXT/HTML"]}), "gzip", vec![html], true),
        (json!({}), "gzip", vec![html, ("Content-Encoding", "br")], false),
        (json!({"min_length": 101}), "gzip", vec![html], false),
        (json!({"coding": "brotli"}), "gzip, br", vec![html], true),
    ] {
        let exchange = respond(&config, &[("Accept-Encoding", accepted)], &response);
        let is_coded = !exchange.response.body_filters.is_empty();
        assert_eq!(is_coded, expected, "{config} {accepted} {response:?}");
    }
}

#[test]
fn headers_announce_the_coding() {
    let sent = [
        ("Content-Type", "text/html"),
        ("ETag", "\"a\""),
        ("Accept-Ranges", "bytes"),
        ("Vary", "Origin"),
    ];
    let config = json!({"vary": true});
    let exchange = respond(&config, &[("Accept-Encoding", "gzip")], &sent);
    assert_eq!(
        lines(&exchange.response.headers),
        [
            "Content-Type: text/html",
            "Vary: Origin",
            "Vary: Accept-Encoding",
            "ETag: W/\"a\"",
            "Content-Encoding: gzip"
        ]
    );
    let plain = respond(&config, &[], &sent);
    assert_eq!(
        lines(&plain.response.headers).last().map(String::as_str),
        Some("Vary: Accept-Encoding")
    );
}

#[test]
fn entity_tags_are_weakened_or_taken_out() {
    for (tag, expected) in [
        ("\"a\"", Some("W/\"a\"")),
        ("\"\"", Some("W/\"\"")),
        ("W/\"a\"", Some("W/\"a\"")),
        ("123456789", None),
        ("\"12\"34\"", None),
        ("\"a", None),
        ("\"", None),
        ("W/a", None),
    ] {
        let sent = [("Content-Type", "text/html"), ("ETag", tag)];
        let exchange = respond(&json!({}), &[("Accept-Encoding", "gzip")], &sent);
        let etag = exchange.response.headers.get(b"etag");
        assert_eq!(etag, expected.map(str::as_bytes), "{tag}");
    }
}

fn unzip(data: &[u8], coding: &str) -> Vec<u8> {
    let mut plain = Vec::new();
    match coding {
        "gzip" => flate2::read::GzDecoder::new(data).read_to_end(&mut plain),
        _ => brotli::Decompressor::new(data, 4096).read_to_end(&mut plain),
    }
    .expect("a whole stream");
    plain
}

#[test]
fn bodies_come_out_as_they_were() {
    let random: Vec<u8> = (0..300_000_u32)
        .map(|it| (it.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    for coding in ["gzip", "brotli"] {
        for body in [&b""[..], b"a", &[b'x'; 100_000], &random] {
            // Twice, as coders are used again.
            for piece in [1 << 20, 1000] {
                let accepted = if coding == "gzip" { "gzip" } else { "br" };
                let html = [("Content-Type", "text/html")];
                let exchange = respond(
                    &json!({"coding": coding}),
                    &[("Accept-Encoding", accepted)],
                    &html,
                );
                let mut filters: BodyFilters = exchange.response.body_filters;
                let mut out = Vec::new();
                for part in body.chunks(piece) {
                    filters.piece(part, &mut out);
                    if piece == 1000 && part.len() < 1000 {
                        filters.pause(&mut out);
                    }
                }
                filters.end(&mut out);
                assert_eq!(unzip(&out, coding), body, "{coding} {}", body.len());
            }
        }
    }
}

#[test]
fn configurations_are_checked() {
    assert!(build(&Compression, &example(include_str!("mod.rs"))).is_ok());
    for (config, places) in [
        (json!({"level": 10}), vec!["level"]),
        (
            json!({"level": 0, "window_bits": 9}),
            vec!["level", "window_bits"],
        ),
        (json!({"coding": "brotli", "level": 11}), vec![]),
    ] {
        assert_eq!(refused_at(&Compression, &config), places, "{config}");
    }
}
