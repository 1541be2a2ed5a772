//! A control plane as a source: the stream that it offers gateways ([`crate::api`]).

use super::dialects::is_served;
use super::documents::Documents;
use super::skew::{self, Head};
use super::source::{Source, SourceEvent};
use crate::http::{ClientRequest, HttpError, detail_of};
use async_trait::async_trait;
use axum::body::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::de::{Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::sync::Arc;
use std::time::Duration;
use weir_dialect::DialectSet;
use weir_store::{Key, Revision};

/// How long to wait after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A stream that says nothing for so long is dead.
const SILENCE: Duration = Duration::from_secs(8);
/// The longest line, in bytes.
const MAX_LINE: usize = 256 << 20;

/// A control plane as a source.
pub struct ControlSource {
    /// Whose documents are served.
    dialects: DialectSet,
    /// Its URL, without a slash at its end.
    url: String,
    token: Option<String>,
    /// The revision of the documents up to now.
    revision: Option<Revision>,
    /// The documents of it that are served, to be compared with those of the control plane.
    documents: Documents,
    stream: Option<Incoming>,
    /// Whether the stream goes on where another one ended.
    is_resumed: bool,
    /// The begin of a line that is not whole yet.
    rest: Vec<u8>,
    /// How much of the rest is known to hold no end of a line.
    searched: usize,
    /// Documents of a whole that has begun.
    whole: Option<Vec<(Key, Arc<[u8]>)>>,
    pause: Option<Duration>,
}

/// A line of the stream. Fields that are not known here are passed over: a control plane that is newer says in its head
/// what must not be.
#[derive(Deserialize)]
struct Line {
    /// The control plane's first line about the stream; an older one sends none.
    weir: Option<Head>,
    #[serde(default)]
    begin: bool,
    revision: Option<u64>,
    served: Option<RemoteState>,
    #[serde(default)]
    documents: Vec<LineDocument>,
}

/// A document of a line: its key and, unless it is gone, its text. A newer control plane may add more fields.
struct LineDocument(String, Option<String>);

impl<'de> Deserialize<'de> for LineDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts;

        impl<'de> Visitor<'de> for Parts {
            type Value = LineDocument;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a list of a document's key and its text or null")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<LineDocument, A::Error> {
                let key = parts
                    .next_element()?
                    .ok_or_else(|| A::Error::invalid_length(0, &self))?;
                let text = parts
                    .next_element()?
                    .ok_or_else(|| A::Error::invalid_length(1, &self))?;
                while parts.next_element::<IgnoredAny>()?.is_some() {}
                Ok(LineDocument(key, text))
            }
        }

        deserializer.deserialize_seq(Parts)
    }
}

/// The state that the control plane would serve.
#[derive(Deserialize)]
struct RemoteState {
    revision: u64,
    hash: String,
}

/// A token is a secret.
impl std::fmt::Debug for ControlSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ControlSource")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl ControlSource {
    /// The control plane at a URL.
    pub fn new(url: &str, token: Option<String>, dialects: DialectSet) -> Self {
        Self {
            dialects,
            url: url.trim_end_matches('/').to_owned(),
            token,
            revision: None,
            documents: Documents::default(),
            stream: None,
            is_resumed: false,
            rest: Vec::new(),
            searched: 0,
            whole: None,
            pause: None,
        }
    }

    async fn connect(&mut self) -> Result<(), HttpError> {
        if let Some(pause) = self.pause {
            tokio::time::sleep(pause).await;
        }
        self.pause = Some(
            self.pause
                .map_or(FIRST_PAUSE, |pause| (pause * 2).min(LONGEST_PAUSE)),
        );
        let after = self.revision.map_or(String::new(), |it| format!("&after={it}"));
        // Names of environments are letters, digits and hyphens.
        let environments = self.dialects.environments().join(",");
        let call = ClientRequest::get(format!(
            "{}/api/v1/sync?hash=true&version={}&environment={environments}{after}",
            self.url,
            skew::VERSION
        ))
        .token(self.token.as_deref());
        let answer = call.open().await?;
        if !answer.status().is_success() {
            return Err(HttpError::Status {
                host: self.url.clone(),
                status: answer.status(),
                detail: detail_of(answer).await,
            });
        }
        (self.rest, self.searched, self.whole) = (Vec::new(), 0, None);
        self.is_resumed = self.revision.is_some();
        self.stream = Some(answer.into_body());
        Ok(())
    }

    /// The next line of the stream.
    async fn line(&mut self) -> Result<Vec<u8>, String> {
        loop {
            if let Some(end) = self.rest[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.rest.drain(..=self.searched + end).collect();
                self.searched = 0;
                return Ok(line);
            }
            self.searched = self.rest.len();
            let Some(stream) = &mut self.stream else {
                return Err("there is no stream".to_owned());
            };
            let frame = tokio::time::timeout(SILENCE, stream.frame()).await;
            let frame = frame.map_err(|_| "it no longer answers".to_owned())?;
            let frame = frame
                .ok_or("it has ended the stream")?
                .map_err(|error| error.to_string())?;
            let data: Bytes = frame.into_data().unwrap_or_default();
            self.take(&data)?;
        }
    }

    /// Takes more of a line.
    fn take(&mut self, data: &[u8]) -> Result<(), String> {
        if self.rest.len() + data.len() > MAX_LINE {
            // It would come again. A whole comes in short lines.
            self.revision = None;
            return Err("a line is too long: requesting all documents again".to_owned());
        }
        self.rest.extend_from_slice(data);
        Ok(())
    }

    /// The event in a line; `None`: nothing yet.
    fn read(&mut self, line: &[u8]) -> Result<Option<SourceEvent>, String> {
        let line: Line = serde_json::from_slice(line).map_err(|error| format!("not understood: {error}"))?;
        if let Some(head) = &line.weir {
            head.check("the stream of the control plane")?;
        }
        self.pause = None;
        if line.begin {
            self.whole = Some(Vec::new());
            self.is_resumed = false;
        }
        if let Some(served) = &line.served {
            self.compare(served)?;
        }
        let mut documents = Vec::with_capacity(line.documents.len());
        for LineDocument(key, value) in line.documents {
            let key = Key::new(&key).map_err(|error| error.to_string())?;
            documents.push((key, value.map(|it| Arc::from(it.into_bytes()))));
        }
        let Some(revision) = line.revision.map(Revision) else {
            if let Some(whole) = &mut self.whole {
                whole.extend(
                    documents
                        .into_iter()
                        .filter_map(|(key, value)| Some((key, value?))),
                );
            }
            return Ok(None);
        };
        self.revision = Some(revision);
        Ok(Some(match self.whole.take() {
            Some(documents) => {
                self.documents = Documents::default();
                for (key, value) in documents.iter().filter(|(key, _)| is_served(&self.dialects, key)) {
                    self.documents.apply(key, Some(Arc::clone(value)));
                }
                SourceEvent::Whole { documents, revision }
            }
            None => {
                for (key, value) in documents.iter().filter(|(key, _)| is_served(&self.dialects, key)) {
                    self.documents.apply(key, value.clone());
                }
                SourceEvent::Changed { revision, documents }
            }
        }))
    }

    /// Checks that the documents here are those of the control plane. After a stream was resumed they may not be: the
    /// store may be another one by now, or have been set back, and have come to the same revision.
    fn compare(&mut self, served: &RemoteState) -> Result<(), String> {
        let is_other = self.whole.is_none()
            && self.revision == Some(Revision(served.revision))
            && self.documents.hash() != served.hash;
        match (is_other, self.is_resumed) {
            (false, _) => Ok(()),
            (true, true) => {
                self.revision = None;
                Err("its documents differ now: requesting all documents again".to_owned())
            }
            (true, false) => {
                // What came whole would come so again.
                tracing::debug!(
                    revision = served.revision,
                    "the control plane serves other documents than this gateway received"
                );
                Ok(())
            }
        }
    }

    async fn next_event(&mut self) -> Result<SourceEvent, String> {
        if self.stream.is_none() {
            self.connect().await.map_err(|error| error.to_string())?;
            if let Some(revision) = self.revision {
                // It is there again.
                return Ok(SourceEvent::Changed {
                    revision,
                    documents: Vec::new(),
                });
            }
        }
        loop {
            let line = self.line().await?;
            if let Some(heard) = self.read(&line)? {
                return Ok(heard);
            }
        }
    }
}

#[async_trait]
impl Source for ControlSource {
    async fn next(&mut self) -> SourceEvent {
        match self.next_event().await {
            Ok(heard) => heard,
            Err(reason) => {
                self.stream = None;
                SourceEvent::Unreachable(reason)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_is_another_one_is_read_whole() {
        let whole = [
            r#"{"begin":true}"#,
            r#"{"documents":[["native/a","1"],["weir/purges/b","2"]]}"#,
            r#"{"revision":7}"#,
        ];
        let mut known = Documents::default();
        known.apply(&Key::new("native/a").expect("a key"), Some(Arc::from(&b"1"[..])));
        let (same, other) = (known.hash(), Documents::default().hash());
        for (is_resumed, revision, hash, expected) in [
            (true, 7, &same, Some(Revision(7))),
            (true, 7, &other, None),
            (true, 8, &other, Some(Revision(7))),
            (false, 7, &other, Some(Revision(7))),
        ] {
            let mut source = ControlSource::new("http://h/", None, crate::sample::native());
            for line in whole {
                source.read(line.as_bytes()).expect("understood");
            }
            source.is_resumed = is_resumed;
            let line = format!(r#"{{"served":{{"revision":{revision},"hash":"{hash}"}}}}"#);
            let read = source.read(line.as_bytes());
            assert_eq!(
                read.is_err(),
                expected.is_none(),
                "{is_resumed} {revision} {hash}"
            );
            assert_eq!(source.revision, expected, "{is_resumed} {revision} {hash}");
        }
    }

    /// A gateway's log is where its operator looks for the reason.
    #[tokio::test]
    async fn a_refusal_says_why() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let server = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let url = format!("http://{}", server.local_addr().expect("bound"));
        let answering = tokio::spawn(async move {
            let (mut call, _) = server.accept().await.expect("a call");
            let _read = call.read(&mut [0; 4096]).await.expect("readable");
            let body = r#"{"status":403,"detail":"gw may not do this: it asks for 'configuration:follow'"}"#;
            let head = format!("HTTP/1.1 403 Forbidden\r\ncontent-length: {}\r\n\r\n", body.len());
            call.write_all(format!("{head}{body}").as_bytes())
                .await
                .expect("written");
        });
        let mut source = ControlSource::new(&url, None, crate::sample::native());
        let SourceEvent::Unreachable(reason) = source.next().await else {
            panic!("expected a refusal");
        };
        answering.await.expect("answered");
        assert_eq!(
            reason,
            format!("{url}: 403 Forbidden: gw may not do this: it asks for 'configuration:follow'")
        );
    }

    #[test]
    fn a_commit_that_is_too_long_is_not_asked_for_again() {
        let mut source = ControlSource::new("http://h/", None, crate::sample::native());
        source.revision = Some(Revision(7));
        source.take(b"{").expect("short");
        assert_eq!(source.revision, Some(Revision(7)));
        source.rest = vec![0; MAX_LINE];
        assert!(source.take(b"}").is_err());
        assert_eq!(source.revision, None);
    }

    #[test]
    fn lines_make_wholes_and_changes() {
        let mut source = ControlSource::new("http://h/", None, crate::sample::native());
        let mut events = Vec::new();
        for line in [
            r#"{"begin":true}"#,
            r#"{"documents":[["native/a","1"],["native/b","2"]]}"#,
            r#"{"documents":[["native/c","3"]]}"#,
            r#"{"revision":7}"#,
            "{}",
            r#"{"revision":8,"documents":[["native/a",null]]}"#,
        ] {
            events.extend(source.read(line.as_bytes()).expect("understood"));
        }
        assert!(
            matches!(&events[0], SourceEvent::Whole { documents, revision: Revision(7) } if documents.len() == 3)
        );
        assert!(
            matches!(&events[1], SourceEvent::Changed { documents, revision: Revision(8) } if documents[0].1.is_none())
        );
        assert_eq!(events.len(), 2);
        for wrong in [
            "",
            "{",
            r#"{"documents":[["",null]]}"#,
            r#"{"documents":[["native/a"]]}"#,
        ] {
            assert!(source.read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    /// The stream as the first version wrote it, as this one does, and as a later one may.
    #[test]
    fn streams_of_older_and_newer_control_planes_are_understood() {
        for stream in [
            &[
                r#"{"begin":true}"#,
                r#"{"documents":[["native/a","1"]]}"#,
                r#"{"revision":7}"#,
            ][..],
            &[
                r#"{"weir":{"version":1,"program":"0.1.0","requires":[]}}"#,
                r#"{"begin":true}"#,
                r#"{"documents":[["native/a","1"]]}"#,
                "{}",
                r#"{"revision":7}"#,
            ],
            &[
                r#"{"weir":{"version":2,"program":"0.2.0","requires":[],"region":"x"}}"#,
                r#"{"begin":true,"total":1}"#,
                r#"{"notice":{"text":"hello"}}"#,
                r#"{"documents":[["native/a","1","sealed",{"by":"k"}]],"checksum":"0"}"#,
                r#"{"revision":7,"time":1700000000}"#,
            ],
        ] {
            let mut source = ControlSource::new("http://h", None, crate::sample::native());
            let lines = stream.iter().filter_map(|line| {
                let read = source.read(line.as_bytes());
                read.unwrap_or_else(|error| panic!("{line}: {error}"))
            });
            let events: Vec<SourceEvent> = lines.collect();
            assert!(
                matches!(&events[..], [SourceEvent::Whole { documents, revision: Revision(7) }] if documents.len() == 1),
                "{stream:?}"
            );
        }
        let mut source = ControlSource::new("http://h", None, crate::sample::native());
        source.pause = Some(FIRST_PAUSE);
        let line = br#"{"weir":{"version":2,"program":"0.2.0","requires":["deltas"]}}"#;
        let Err(reason) = source.read(line) else {
            panic!("it is not refused");
        };
        assert!(
            reason.contains("requires 'deltas'") && reason.contains("upgrade"),
            "{reason}"
        );
        assert!(source.pause.is_some(), "it is asked again less and less often");
    }
}
