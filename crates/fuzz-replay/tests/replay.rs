//! Runs every fuzz target on its seeds, and on inputs that a generator with a fixed seed makes of them. So the targets
//! compile, and hold for what they were written with, wherever the other tests run.
//!
//! `REPLAYS=10000 cargo test -p weir-fuzz-replay` makes more inputs for each target.

// The targets are written for an engine of their own, and some share files.
#![allow(
    clippy::all,
    clippy::unwrap_used,
    dead_code,
    missing_docs,
    unreachable_pub,
    unused_attributes,
    unused_must_use
)]

use std::fs;

#[path = "../../../fuzz/fuzz_targets/analytics_batch.rs"]
mod analytics_batch;
#[path = "../../../fuzz/fuzz_targets/body.rs"]
mod body;
#[path = "../../../fuzz/fuzz_targets/certificate.rs"]
mod certificate;
#[path = "../../../fuzz/fuzz_targets/chunked_body.rs"]
mod chunked_body;
#[path = "../../../fuzz/fuzz_targets/client_hello.rs"]
mod client_hello;
#[path = "../../../fuzz/fuzz_targets/condition.rs"]
mod condition;
#[path = "../../../fuzz/fuzz_targets/document.rs"]
mod document;
#[path = "../../../fuzz/fuzz_targets/dubbo_answer.rs"]
mod dubbo_answer;
#[path = "../../../fuzz/fuzz_targets/filters.rs"]
mod filters;
#[path = "../../../fuzz/fuzz_targets/grpc.rs"]
mod grpc;
#[path = "../../../fuzz/fuzz_targets/http1_connection.rs"]
mod http1_connection;
#[path = "../../../fuzz/fuzz_targets/http2_connection.rs"]
mod http2_connection;
#[path = "../../../fuzz/fuzz_targets/http2_fields.rs"]
mod http2_fields;
#[path = "../../../fuzz/fuzz_targets/http3_stream.rs"]
mod http3_stream;
#[path = "../../../fuzz/fuzz_targets/kafka_answer.rs"]
mod kafka_answer;
#[path = "../../../fuzz/fuzz_targets/matcher.rs"]
mod matcher;
#[path = "../../../fuzz/fuzz_targets/mqtt_connect.rs"]
mod mqtt_connect;
#[path = "../../../fuzz/fuzz_targets/ocsp_answer.rs"]
mod ocsp_answer;
#[path = "../../../fuzz/fuzz_targets/openapi.rs"]
mod openapi;
#[path = "../../../fuzz/fuzz_targets/proxy_header.rs"]
mod proxy_header;
#[path = "../../../fuzz/fuzz_targets/redis_reply.rs"]
mod redis_reply;
#[path = "../../../fuzz/fuzz_targets/request_head.rs"]
mod request_head;
#[path = "../../../fuzz/fuzz_targets/response_head.rs"]
mod response_head;
#[path = "../../../fuzz/fuzz_targets/saml.rs"]
mod saml;
#[path = "../../../fuzz/fuzz_targets/t1k_answer.rs"]
mod t1k_answer;
#[path = "../../../fuzz/fuzz_targets/template.rs"]
mod template;
#[path = "../../../fuzz/fuzz_targets/upstream_answer.rs"]
mod upstream_answer;
#[path = "../../../fuzz/fuzz_targets/uri.rs"]
mod uri;
#[path = "../../../fuzz/fuzz_targets/websocket_frames.rs"]
mod websocket_frames;

/// Inputs for each target, unless `REPLAYS` says otherwise.
const REPLAYS: usize = 200;
/// Of targets that open connections for each input, one input in so many is run.
const SLOW: usize = 10;
/// The longest input that is made.
const MAX_BYTES: usize = 4096;

const FUZZ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz");

/// Numbers that look random and are the same in every run (SplitMix64).
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// Another input: one of the seeds, or none, changed in a few places.
    fn input(&mut self, seeds: &[Vec<u8>], words: &[Vec<u8>]) -> Vec<u8> {
        let mut input = match self.below(seeds.len() + 1) {
            0 => (0..self.below(256)).map(|_| self.next() as u8).collect(),
            seed => seeds[seed - 1].clone(),
        };
        for _ in 0..=self.below(4) {
            let place = self.below(input.len() + 1);
            let end = (place + self.below(16)).min(input.len());
            match self.below(6) {
                0 if place < input.len() => input[place] ^= 1 << self.below(8),
                1 if place < input.len() => input[place] = self.next() as u8,
                2 => drop(input.drain(place..end)),
                3 => input
                    .splice(place..place, input[place..end].to_vec())
                    .for_each(drop),
                4 if !words.is_empty() => {
                    let word = words[self.below(words.len())].clone();
                    input.splice(place..place, word).for_each(drop);
                }
                _ => input.insert(place, self.next() as u8),
            }
        }
        input.truncate(MAX_BYTES);
        input
    }
}

/// Shows the input if the target panics.
struct InputOnPanic<'i>(&'i str, &'i [u8]);

impl Drop for InputOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "the target {} has failed with the input\n{}",
                self.0,
                self.1.escape_ascii()
            );
        }
    }
}

/// The contents of the files of a folder, in the order of their names.
fn read_all(folder: &str) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a seed")).collect()
}

/// The words of a dictionary of libFuzzer, without those that have escapes.
fn read_words(file: &str) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let words = text.lines().filter_map(|line| {
        let word = line.split_once('"')?.1.strip_suffix('"')?;
        (!word.contains('\\')).then(|| word.as_bytes().to_vec())
    });
    words.collect()
}

fn replay(name: &str, one_in: usize, run: fn(&[u8])) {
    let asked = std::env::var("REPLAYS").ok().and_then(|count| count.parse().ok());
    let count: usize = asked.unwrap_or(REPLAYS) / one_in;
    let seeds = read_all(&format!("{FUZZ}/seeds/{name}"));
    let words = read_words(&format!("{FUZZ}/dictionaries/{name}.dict"));
    let mut generator = Generator(name.len() as u64);
    let made = (0..count).map(|_| generator.input(&seeds, &words));
    for input in seeds.iter().cloned().chain(made) {
        let shown = InputOnPanic(name, &input);
        run(&input);
        drop(shown);
    }
}

macro_rules! tests {
    ($($name:ident $one_in:expr;)*) => {
        $(
            #[test]
            fn $name() {
                replay(stringify!($name), $one_in, $name::fuzz_one);
            }
        )*

        #[test]
        fn every_target_is_replayed() {
            let known = [$(stringify!($name)),*];
            for entry in fs::read_dir(format!("{FUZZ}/fuzz_targets")).expect("the targets").flatten() {
                let file = entry.file_name();
                let name = file.to_string_lossy();
                let name = name.trim_end_matches(".rs");
                assert!(known.contains(&name), "add {name} to this list");
                let manifest = fs::read_to_string(format!("{FUZZ}/Cargo.toml")).expect("a manifest");
                assert!(manifest.contains(&format!("name = \"{name}\"")), "add {name} to fuzz/Cargo.toml");
            }
        }
    };
}

tests! {
    ocsp_answer 1;
    analytics_batch 1;
    body 1;
    certificate 1;
    chunked_body 1;
    client_hello 1;
    condition 1;
    document 1;
    dubbo_answer 1;
    filters 1;
    grpc 1;
    http1_connection SLOW;
    http2_connection SLOW;
    http2_fields 1;
    http3_stream 1;
    kafka_answer 1;
    matcher 1;
    mqtt_connect 1;
    openapi 1;
    proxy_header 1;
    redis_reply 1;
    request_head 1;
    response_head 1;
    saml 1;
    t1k_answer 1;
    template 1;
    upstream_answer SLOW;
    uri 1;
    websocket_frames 1;
}
