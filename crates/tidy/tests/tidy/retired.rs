//! Words that the project no longer uses: its former private vocabulary, and phrases that plain English does without.
//!
//! `retired_words.txt` says how often each is still there, and why. The numbers only go down.

use crate::assert_none;
use crate::repository::{documents, files, read, sources};
use crate::source::words;
use std::collections::BTreeMap;

/// Former names, as parts of identifiers and of file names: `log_lane`, `Lane`, `LANES`, `lane.rs`.
const NAMES: [(&str, &str); 24] = [
    ("allot", "allocate"),
    ("allotment", "slots"),
    ("carrier", "protocol"),
    ("door", "dialect"),
    ("doors", "dialects"),
    ("folds", "large commits"),
    ("lane", "queue, stream"),
    ("lanes", "queues, streams"),
    ("owe", "reserve"),
    ("patience", "timeout"),
    ("rooms", "layers"),
    ("shelf", "disk cache"),
    ("shelves", "disk caches"),
    ("spares", "pool"),
    ("stampings", "gateway headers"),
    ("stamps", "gateway headers, fingerprints"),
    ("standing", "status"),
    ("surroundings", "context"),
    ("undo", "compensate"),
    ("veil", "redact, encrypt"),
    ("veiled", "redacted, encrypted"),
    ("voice", "dialect, error renderer"),
    ("voices", "dialects, error renderers"),
    ("wording", "messages"),
];

/// Former names, as whole identifiers: their words are ordinary ones.
const IDENTIFIERS: [(&str, &str); 79] = [
    ("_of_no_interest", "_unused"),
    ("ask_for_body", "mark_body_requested"),
    ("asked", "what it holds: request, query, lookup"),
    ("asker", "request, authenticated"),
    ("at_length", "run_blocking"),
    ("because", "reason"),
    ("bring_in", "inline_files"),
    ("by_now", "reauthorize"),
    ("ByPlainHandler", "ViaBoxedHandler"),
    ("can_go_as_it_came", "path_is_unambiguous"),
    ("complaint", "message, stderr"),
    ("CountBy", "RateLimitKey"),
    ("demand_privacy", "require_tls_or_loopback"),
    ("Dialogue", "ProtocolDriver"),
    ("Fate", "UnresolvedEffect"),
    ("give_exchange", "release_exchange"),
    ("give_output", "release_output"),
    ("give_turns_to_weightless", "assign_default_weights"),
    ("HandedOver", "GatewayLogWriter"),
    ("hangs_on_body", "may_depend_on_body"),
    ("HasBusy", "ConnectOutcome"),
    ("hear_whole", "observe_all"),
    ("Heard", "Source"),
    ("hold_whole", "buffer_whole"),
    ("is_told", "is_reported, is_logged"),
    ("Kept", "Stale"),
    ("kept_file", "last_known_good_file"),
    ("KEPT_FILE_NAME", "LAST_KNOWN_GOOD_FILE"),
    ("KeptConsumers", "ConsumerCache"),
    ("lead_to_one_place", "have_same_target"),
    ("look_after", "run_maintenance, refresh"),
    ("LostPlugins", "UnservablePlugins"),
    ("MAX_TOLD", "MAX_ANNOTATIONS"),
    ("NoStaple", "StapleError"),
    ("OtherEnvironments", "UnservedEnvironments"),
    ("OtherRoutes", "ForeignRoutes"),
    ("OtherUpstream", "UpstreamOverride"),
    ("PlacedChain", "ChainWithPath"),
    ("PlaceStatus", "EnvironmentStatus"),
    ("PlainHandler", "BoxedHandler"),
    ("poll_gone", "poll_closed"),
    ("poll_settled", "poll_finished"),
    ("promise_to_go", "start_graceful_shutdown"),
    ("push_on_one_line", "push_comma_joined"),
    ("ReachKind", "AccessKind"),
    ("RouteReach", "ConsumerRouteAccess"),
    ("said", "what it holds: message, stdout, response"),
    ("say_changes", "send_changes"),
    ("says_yes", "is_granted"),
    ("seen", "what it holds: received, visible, known"),
    ("SharedMarks", "SharedRevocations"),
    ("shown", "what it holds: response, visible, presented"),
    ("ShownKey", "PresentedKey"),
    ("side_call", "background_request"),
    ("side_calls", "background_requests"),
    ("speak_for", "claim_name"),
    ("stand_in", "placeholder"),
    ("stands_for", "placeholder_for"),
    ("StoreAway", "StoreUnavailable"),
    ("take_exchange", "acquire_exchange"),
    ("take_here", "take_local"),
    ("take_output", "acquire_output"),
    ("taken_back", "canary_rollback"),
    ("TakenLevels", "ActiveLevelFilter"),
    ("TakenOut", "DrainState"),
    ("takes_anybody", "allows_anonymous"),
    ("telling", "context"),
    ("tells_version", "enable_server_tokens"),
    ("told", "what it holds: message, response, lines"),
    ("told_apart", "qualify_route"),
    ("told_in", "with_warning, with_findings"),
    ("told_prefixes", "replicated_prefixes"),
    ("UNFIT_SERVICE", "UNSUPPORTED_SERVICE_MESSAGE"),
    ("Unseen", "NotProcessed"),
    ("untold", "pending"),
    ("waits_here", "is_pending_in_portal"),
    ("WholeBody", "BufferedRewrite"),
    ("WholeValue", "BufferedValue"),
    ("whose", "owner, author, write_options"),
];

/// Phrases of comments, texts and pages.
const PHRASES: [(&str, &str); 6] = [
    ("anew", "again"),
    ("lets pass", "allows"),
    ("let pass", "allow"),
    ("nobody", "name what does not: 'no call waits'"),
    ("told of", "reported, listed, logged"),
    ("whoever", "callers that, if someone"),
];

const LIST: &str = "crates/tidy/tests/tidy/retired_words.txt";
/// How far a number may be behind before it has to be lowered.
const SLACK: usize = 20;

/// The words of an identifier: `MaxLaneWaits` and `max_lane_waits` have `max`, `lane` and `waits`.
fn parts(identifier: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut was_small = false;
    for character in identifier.chars() {
        let begins = character == '_' || (character.is_ascii_uppercase() && was_small);
        if begins || parts.is_empty() {
            parts.push(String::new());
        }
        if character != '_'
            && let Some(last) = parts.last_mut()
        {
            last.push(character.to_ascii_lowercase());
        }
        was_small = character.is_ascii_lowercase() || character.is_ascii_digit();
    }
    parts
}

/// How often each retired name is an identifier or a part of one in this code, which has no comments and no texts.
fn count_names(code: &str, counts: &mut BTreeMap<&'static str, Vec<usize>>) {
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut at = 0;
    for identifier in code.split(|character| !is_name(character)) {
        if identifier.len() > 3 {
            for part in parts(identifier) {
                if let Some((name, _)) = NAMES.iter().find(|(name, _)| *name == part) {
                    counts.entry(name).or_default().push(at);
                }
            }
        }
        if let Some((name, _)) = IDENTIFIERS.iter().find(|(name, _)| *name == identifier) {
            counts.entry(name).or_default().push(at);
        }
        at += identifier.len() + 1;
    }
}

/// The retired names in the path of a file.
fn names_of_path(path: &str) -> impl Iterator<Item = &'static str> {
    let segments = path.split('/').map(|it| it.split('.').next().unwrap_or(it));
    let words = segments.flat_map(parts);
    words.filter_map(|word| {
        let known = NAMES.iter().find(|(name, _)| *name == word);
        known.map(|(name, _)| *name)
    })
}

/// What of the list holds for a word: the number, and why there are any.
fn allowed() -> BTreeMap<String, (usize, String)> {
    let text = read(LIST);
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let mut fields = line.splitn(3, " | ");
            let mut field = || fields.next().unwrap_or_default().trim().to_owned();
            let (word, number, reason) = (field(), field(), field());
            let number = number
                .parse()
                .unwrap_or_else(|_| panic!("{LIST}: '{line}' is not 'WORD | NUMBER | REASON'"));
            assert!(!reason.is_empty(), "{LIST}: '{line}' has no reason");
            (word, (number, reason))
        })
        .collect()
}

/// All places of the retired words.
fn found() -> BTreeMap<&'static str, Vec<String>> {
    let mut found: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    // Here, and where old names are read, they are named.
    let says_them = [
        "crates/tidy/tests/tidy/retired.rs",
        "crates/native/src/renamed.rs",
    ];
    for source in sources()
        .iter()
        .filter(|source| !says_them.contains(&source.path.as_str()))
    {
        let mut names = BTreeMap::new();
        count_names(&source.code, &mut names);
        for (name, places) in names {
            let places = places
                .into_iter()
                .map(|at| source.place(at.min(source.text.len() - 1)));
            found.entry(name).or_default().extend(places);
        }
        let text = source.text.to_lowercase();
        for (phrase, _) in PHRASES {
            let places = words(&text, phrase).map(|at| source.place(at.min(source.text.len() - 1)));
            found.entry(phrase).or_default().extend(places);
        }
    }
    let others = files("tests", ".py").into_iter().chain(files("scripts", ""));
    let sources = sources().into_iter().map(|it| it.path);
    for path in others
        .chain(sources)
        .chain(documents().into_iter().map(|it| it.0))
    {
        for name in names_of_path(&path) {
            found.entry(name).or_default().push(path.clone());
        }
    }
    for (path, text) in documents() {
        let text = text.to_lowercase();
        for (phrase, _) in PHRASES {
            let lines = words(&text, phrase).map(|at| text[..at].matches('\n').count() + 1);
            found
                .entry(phrase)
                .or_default()
                .extend(lines.map(|line| format!("{path}:{line}")));
        }
    }
    found
}

#[test]
fn retired_words_do_not_come_back() {
    let (found, allowed) = (found(), allowed());
    let mut breaches = Vec::new();
    for (word, better) in NAMES.iter().chain(&IDENTIFIERS).chain(&PHRASES) {
        let places = found.get(word).map_or(&[][..], Vec::as_slice);
        let number = allowed.get(*word).map_or(0, |(number, _)| *number);
        if places.len() > number {
            // The last ones are as good as any: which is the new one is not known.
            let some: Vec<&str> = places.iter().rev().take(5).map(String::as_str).collect();
            breaches.push(format!(
                "'{word}' is there {} times, {number} are allowed. Better: {better}. Some places: {}",
                places.len(),
                some.join(", ")
            ));
        } else if number > places.len() + SLACK || (places.is_empty() && number > 0) {
            breaches.push(format!(
                "{LIST}: lower '{word}' from {number} to {}",
                places.len()
            ));
        }
    }
    for word in allowed.keys() {
        if !NAMES
            .iter()
            .chain(&IDENTIFIERS)
            .chain(&PHRASES)
            .any(|(known, _)| known == word)
        {
            breaches.push(format!("{LIST}: '{word}' is not a retired word"));
        }
    }
    assert_none(&breaches, "names and texts are plain English: docs/glossary.md");
}

#[test]
fn retired_words_are_parts_of_identifiers() {
    for (identifier, expected) in [
        ("log_lane", &["log", "lane"][..]),
        ("MAX_SHELF_WAITS", &["max", "shelf", "waits"]),
        ("DiskShelf", &["disk", "shelf"]),
        ("planet", &["planet"]),
    ] {
        assert_eq!(parts(identifier), expected);
    }
    let mut counts = BTreeMap::new();
    count_names("let lane = Lane::new(planet, self.shelf);", &mut counts);
    let counts: Vec<_> = counts
        .iter()
        .map(|(name, places)| (*name, places.len()))
        .collect();
    assert_eq!(counts, [("lane", 2), ("shelf", 1)]);
    let mut counts = BTreeMap::new();
    count_names("Incoming::Unseen; self.side_calls; KeptAlive", &mut counts);
    assert!(counts.keys().eq(&["Unseen", "side_calls"]), "{counts:?}");
    for (path, expected) in [
        ("crates/proxy/src/h3/lane.rs", &["lane"][..]),
        ("tests/log_shelf/wording.py", &["shelf", "wording"]),
        ("crates/proxy/src/plane.rs", &[]),
    ] {
        assert!(names_of_path(path).eq(expected.iter().copied()), "{path}");
    }
}
