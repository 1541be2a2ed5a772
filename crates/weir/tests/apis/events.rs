//! `GET /api/v1/events` over HTTP: who receives which events, resuming after a break, and the end of the server.

use crate::support::{Call, until, upstream};
use crate::{Plane, petstore, runtime};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// An event as it came.
#[derive(Debug, Clone, PartialEq)]
struct Event {
    id: String,
    kind: String,
    data: Value,
}

/// A client that follows the events.
struct Follower(BufReader<TcpStream>);

impl Follower {
    /// Begins to follow, and waits until the stream has begun.
    fn start(plane: &Plane, token: Option<&str>, headers: &str) -> (Self, Event) {
        let address = plane.weir.console();
        let mut stream = TcpStream::connect(&address).expect("connected");
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .expect("set");
        let token = token.map(|it| format!("Authorization: Bearer {it}\r\n"));
        let token = token.unwrap_or_default();
        let head = format!(
            "GET /api/v1/events HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{token}{headers}\r\n"
        );
        stream.write_all(head.as_bytes()).expect("sent");
        let mut follower = Self(BufReader::new(stream));
        let status = follower.line();
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        let open = follower.next();
        assert_eq!(open.kind, "open");
        (follower, open)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(
            self.0.read_line(&mut line).expect("a line in time") > 0,
            "the stream has ended"
        );
        line.trim_end().to_owned()
    }

    /// The next event. An event is a chunk of its own or stands whole in one, so lines between events are not looked
    /// at.
    fn next(&mut self) -> Event {
        let (mut id, mut kind, mut data) = (String::new(), String::new(), Value::Null);
        loop {
            let line = self.line();
            if let Some(text) = line.strip_prefix("id: ") {
                text.clone_into(&mut id);
            } else if let Some(text) = line.strip_prefix("event: ") {
                text.clone_into(&mut kind);
            } else if let Some(text) = line.strip_prefix("data: ") {
                data = serde_json::from_str(text).expect("JSON");
            } else if line.is_empty() && !kind.is_empty() {
                return Event { id, kind, data };
            }
        }
    }

    /// The next event for which something holds, and those before it.
    fn until(&mut self, holds: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut seen = Vec::new();
        loop {
            seen.push(self.next());
            if seen.last().is_some_and(&holds) {
                return seen;
            }
        }
    }
}

fn is_publication(event: &Event, id: &str) -> bool {
    event.kind == "publication" && event.data["id"] == id
}

/// Creates and publishes one more API, with the token of one user.
fn publish(plane: &Plane, token: Option<&str>, api: &str) {
    let ask = |method: &str, path: &str, body: &Value| {
        let call = plane.call(method, path, body);
        match token {
            Some(token) => call.header("Authorization", &format!("Bearer {token}")).make(),
            None => call.make(),
        }
    };
    ask("PUT", &format!("/api/v1/apis/{api}"), &json!({}));
    ask(
        "POST",
        &format!("/api/v1/apis/{api}/versions?version=1"),
        &petstore(),
    )
    .expect(201);
    let mut there = runtime(upstream("x"));
    there["base_path"] = format!("/{api}").into();
    let path = format!("/api/v1/publications/{api}/1/test");
    ask("POST", &path, &json!({"runtime": there})).expect(200);
}

#[test]
fn a_page_that_comes_back_reads_on_where_it_was() {
    let plane = Plane::start();
    let (mut first, _) = Follower::start(&plane, None, "");
    publish(&plane, None, "cats");
    let seen = first.until(|it| is_publication(it, "cats/1/test"));
    let data = &seen.last().expect("an event").data;
    assert_eq!(
        (
            &data["api"],
            &data["version"],
            &data["environment"],
            &data["revision"],
            &data["state"]
        ),
        (
            &json!("cats"),
            &json!("1"),
            &json!("test"),
            &json!(1),
            &json!("live")
        )
    );
    let commit = seen
        .iter()
        .find(|it| it.kind == "commit" && it.data.to_string().contains("apis/apis/cats"));
    let commit = commit.unwrap_or_else(|| panic!("{seen:?}"));
    assert_eq!(
        commit.data["documents"][0],
        json!({"document": "apis/apis/cats", "change": "created"})
    );
    drop(first);
    // While it is away, something happens.
    publish(&plane, None, "dogs");
    let id = &commit.id;
    let (mut second, open) = Follower::start(&plane, None, &format!("Last-Event-ID: {id}\r\n"));
    assert_eq!(&open.id, id, "it goes on from there");
    let again = second.until(|it| is_publication(it, "dogs/1/test"));
    assert!(again.iter().all(|it| it.kind != "missed"), "{again:?}");
    let before: Vec<&Event> = seen
        .iter()
        .skip_while(|it| it.id != *id)
        .filter(|it| it.id != *id)
        .collect();
    let repeated: Vec<&Event> = again.iter().take(before.len()).collect();
    assert_eq!(
        repeated, before,
        "what it had seen after that event comes again, in the same order"
    );
    let of_dogs = again.iter().filter(|it| it.data.to_string().contains("dogs"));
    assert!(
        of_dogs.count() >= 4,
        "an API, a version, a publish and its event: {again:?}"
    );
    // An event of another process: nothing is known of what has come since.
    for stranger in ["another-7", "nonsense", ""] {
        let (mut third, _) = Follower::start(&plane, None, &format!("Last-Event-ID: {stranger}\r\n"));
        assert_eq!(third.next().kind, "missed", "{stranger}");
    }
}

#[test]
fn people_receive_what_they_may_read() {
    let plane = Plane::start();
    let user = |name: &str, rights: Value, root: Option<&str>| {
        let call = plane.call(
            "POST",
            &format!("/api/v1/users/{name}"),
            &json!({"rights": rights}),
        );
        let call = match root {
            Some(root) => call.header("Authorization", &format!("Bearer {root}")),
            None => call,
        };
        call.make().expect(201).json()["token"]
            .as_str()
            .expect("a token")
            .to_owned()
    };
    let root = user("root", json!([{"role": "admin"}]), None);
    let ann = user("ann", json!([{"role": "api-owner", "api": "cats"}]), Some(&root));
    let eve = user("eve", json!([{"role": "gateway"}]), Some(&root));
    Call::get(&plane.weir.console(), "/api/v1/events")
        .make()
        .expect(401);
    let (mut of_ann, _) = Follower::start(&plane, Some(&ann), "");
    let (mut of_root, _) = Follower::start(&plane, Some(&root), "");
    publish(&plane, Some(&root), "dogs");
    publish(&plane, Some(&root), "cats");
    let seen = of_root.until(|it| is_publication(it, "cats/1/test"));
    assert!(
        seen.iter().any(|it| is_publication(it, "dogs/1/test")),
        "{seen:?}"
    );
    assert!(
        seen.iter()
            .any(|it| it.data.to_string().contains("env/test/native/")),
        "{seen:?}"
    );
    let seen = of_ann.until(|it| is_publication(it, "cats/1/test"));
    let text = format!("{seen:?}");
    assert!(
        text.contains("apis/apis/cats") && text.contains("apis/publications/cats/1/test"),
        "{text}"
    );
    assert!(!text.contains("dogs") && !text.contains("env/test"), "{text}");
    // Users who may read nothing receive nothing, not even with an id to resume from.
    let from = format!("Last-Event-ID: {}\r\n", seen[0].id);
    let (mut of_eve, _) = Follower::start(&plane, Some(&eve), &from);
    // Her access ends, and so does her stream.
    let gone = plane.call("DELETE", "/api/v1/users/eve", &Value::Null);
    gone.header("Authorization", &format!("Bearer {root}"))
        .make()
        .expect(204);
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut of_eve.0, &mut rest).expect("the end in time");
    assert!(!rest.contains("event: "), "{rest}");
}

#[test]
fn a_page_that_follows_does_not_delay_the_end_of_the_server() {
    let mut plane = Plane::with(&["--environment", "test", "--drain-timeout", "600"]);
    let (mut follower, _) = Follower::start(&plane, None, "");
    let begun = Instant::now();
    plane.weir.signal(Signal::TERM);
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut follower.0, &mut rest).expect("the end in time");
    until("it has ended", || {
        plane.weir.child.try_wait().expect("a child").is_some()
    });
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}
