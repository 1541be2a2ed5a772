//! Any bytes as what a client says over HTTP/1.1, as a whole and in two pieces: the answers are the same. Some calls are
//! sent on to a second gateway, which has to understand all that it is sent.
#![no_main]

#[path = "../support/hops.rs"]
mod hops;

use weir_proxy::connection_fuzzing::USUAL_ROUNDS;

libfuzzer_sys::fuzz_target!(|input: (u16, &[u8])| {
    let (cut, bytes) = input;
    // How often a client that speaks HTTP/2 is heard is another target's to look at.
    if bytes.starts_with(b"PRI") {
        return;
    }
    // A head that never ends is refused at once or not at all: only what ends one is reason to look at it again.
    let bytes = &[bytes, b"\r\n\r\n"].concat()[..];
    let (first, second) = bytes.split_at(usize::from(cut) % (bytes.len() + 1));
    let both = |rounds| {
        let at_once = hops::hear(|hops| hops.say(&[bytes], rounds));
        let in_two = hops::hear(|hops| hops.say(&[first, second], rounds));
        (lasting(&at_once), lasting(&in_two))
    };
    let (mut at_once, mut in_two) = both(USUAL_ROUNDS);
    // A first line of another protocol gets no answer, but its begin may already have got one.
    let is_heard = |heard: &str| !heard.is_empty();
    if at_once != in_two && is_heard(&at_once) && is_heard(&in_two) {
        // A client that closes too soon does not hear all.
        (at_once, in_two) = both(400 * USUAL_ROUNDS);
    }
    if is_heard(&at_once) && is_heard(&in_two) {
        assert_eq!(at_once, in_two, "the cut makes a difference");
    }
});

/// What does not depend on when it was said: the date is left out, and the invitation to send a body. Of what is wrong with
/// a request in several ways any may be told.
fn lasting(heard: &[u8]) -> String {
    let heard = heard.escape_ascii().to_string().replace("\\r\\n", "\n");
    let mut heard = heard.replace("HTTP/1.1 100 Continue\n\n", "");
    if let Some(last) = heard.rfind("HTTP/1.1 ")
        && heard[last + 9..].starts_with(['4', '5'])
        && heard[last..].contains("\nConnection: close\n")
    {
        heard.truncate(last);
        heard.push_str("refused");
    }
    let lines = heard
        .split_inclusive('\n')
        .filter(|line| !line.to_ascii_lowercase().starts_with("date:"));
    lines.collect()
}
