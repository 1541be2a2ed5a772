//! Entry points for fuzzing: whole connections of clients that say whatever bytes there are, over HTTP/1.1 or HTTP/2. They
//! reach a real worker over a pair of sockets, without listeners and threads, and what it forwards goes over the loopback:
//! to a second worker, which has to understand all that the first sends on, or to an upstream that follows a script.

use super::serve;
use crate::client::Addresses;
use crate::dns::NameServers;
use crate::health::HealthNotifier;
use crate::limits::Limits;
use crate::log_sinks::LogSinks;
use crate::multiplex::task_pool::TaskPool;
use crate::shared::{Shared, publish};
use crate::worker::{ConnectionGuard, Worker};
use crate::{ErrorRenderers, h3};
use std::cell::{Cell, RefCell};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::watch;
use weir_plugin::error_renderer::ErrorRenderer;
use weir_snapshot::Snapshot;
use weir_telemetry::metrics::{ProtocolError, Refusal, Registry, RegistryOptions};

/// Most bytes that a client says: so many fit between two sockets, whether they are read or not.
pub const MAX_BYTES: usize = 64 * 1024;
/// Rounds of the runtime in which nothing comes before it is usually taken that nothing will. A call that goes on over a new
/// connection takes some ten.
pub const USUAL_ROUNDS: u32 = 25;
/// Rounds that a scripted upstream waits between two pieces.
const SCRIPT_PAUSE: u32 = 6;
/// How long a connection may take to end once its client has said all, whatever it waits for.
const TIMEOUT: Duration = Duration::from_secs(10);
/// For how many times as many rounds a script is waited for: it may never have been asked for.
const SCRIPT_ROUNDS: u32 = 8;

/// Two workers, of which the first may forward to the second or to an upstream with a script, and a place for clients of
/// the first.
pub struct Hops {
    runtime: LocalRuntime,
    first: Rc<Worker>,
    of_second: Arc<Registry>,
    script: Rc<Script>,
}

/// The addresses that the first worker may forward to.
#[derive(Debug, Clone, Copy)]
pub struct Upstreams {
    /// The second worker.
    pub second: SocketAddr,
    /// The upstream that follows a script and then closes its connections.
    pub scripted: SocketAddr,
}

/// The answer of an upstream on each connection, once it was sent something.
#[derive(Default)]
struct Script {
    pieces: RefCell<Vec<Vec<u8>>>,
    is_due: Cell<bool>,
}

impl Hops {
    /// Workers that serve these snapshots.
    ///
    /// # Panics
    /// When there is no runtime or no free port to be had.
    pub fn new(
        renderer: &Arc<dyn ErrorRenderer>,
        first: impl FnOnce(Upstreams) -> Snapshot,
        second: Snapshot,
    ) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default())
            .expect("invariant: a runtime");
        let script = Rc::<Script>::default();
        let (first, of_second) = runtime.block_on(async {
            let (listener, scripted) = (listener().await, self::listener().await);
            let address = |of: &TcpListener| of.local_addr().expect("invariant: an address");
            let upstreams = Upstreams {
                second: address(&listener),
                scripted: address(&scripted),
            };
            let (first, _) = worker(renderer, first(upstreams));
            let (second, of_second) = worker(renderer, second);
            tokio::task::spawn_local(listen(listener, second));
            tokio::task::spawn_local(answer(scripted, Rc::clone(&script)));
            (first, of_second)
        });
        Self {
            runtime,
            first,
            of_second,
            script,
        }
    }

    /// Makes the upstream with a script answer with these pieces when it is sent something next. Otherwise as
    /// [`Hops::say`].
    ///
    /// # Panics
    /// As [`Hops::say`].
    pub fn say_to(&self, script: Vec<Vec<u8>>, pieces: &[&[u8]], rounds: u32) -> Vec<u8> {
        *self.script.pieces.borrow_mut() = script;
        self.script.is_due.set(true);
        self.say(pieces, rounds)
    }

    /// Lets a client say these pieces, one after the other, each once it has heard nothing for so many rounds of the runtime.
    /// Then the client closes its direction. Returns all that it receives.
    ///
    /// # Panics
    /// When the connection does not end then, or the second worker was sent what it does not understand.
    pub fn say(&self, pieces: &[&[u8]], rounds: u32) -> Vec<u8> {
        let heard = self.runtime.block_on(self.converse(pieces, rounds));
        let totals = self.of_second.totals();
        let misunderstood = totals.protocol_errors(ProtocolError::BadRequest);
        assert_eq!(
            (misunderstood, totals.refusals(Refusal::Protocol)),
            (0, 0),
            "what was sent on is not understood"
        );
        heard
    }

    async fn converse(&self, pieces: &[&[u8]], rounds: u32) -> Vec<u8> {
        let (near, far) = UnixStream::pair().expect("invariant: a pair of sockets");
        let (near, far) = (as_tcp(near), as_tcp(far));
        let addresses = Addresses {
            peer: ([192, 0, 2, 1], 40_000).into(),
            local: ([127, 0, 0, 1], 8000).into(),
        };
        let guard = ConnectionGuard::new(&self.first);
        let serving = tokio::task::spawn_local(serve(guard, Rc::default(), far, addresses, false));
        let mut heard = Vec::new();
        for piece in pieces {
            listen_for_a_while(&near, &mut heard, rounds).await;
            // Who is not listened to any more need not be understood.
            let _is_taken = near.try_write(piece);
        }
        listen_for_a_while(&near, &mut heard, rounds).await;
        for _ in 0..SCRIPT_ROUNDS {
            if self.script.is_due.get() {
                listen_for_a_while(&near, &mut heard, rounds).await;
            }
        }
        self.script.is_due.set(false);
        let near = near.into_std().expect("invariant: a socket");
        let _is_open = near.shutdown(Shutdown::Write);
        let near = TcpStream::from_std(near).expect("invariant: a socket");
        let ended = tokio::time::timeout(TIMEOUT, async {
            while near.readable().await.is_ok() && take(&near, &mut heard) != Some(0) {}
            serving.await
        });
        let ended = ended
            .await
            .expect("invariant: a connection ends when its client does");
        ended.expect("invariant: no panic");
        heard
    }
}

fn as_tcp(stream: UnixStream) -> TcpStream {
    stream.set_nonblocking(true).expect("invariant: a socket");
    // For code that only reads and writes they are the same.
    TcpStream::from_std(OwnedFd::from(stream).into()).expect("invariant: a socket")
}

/// Reads what is there; returns its size, 0 at the end, `None` if there is nothing yet.
fn take(near: &TcpStream, heard: &mut Vec<u8>) -> Option<usize> {
    let mut space = [0; 16 * 1024];
    match near.try_read(&mut space) {
        Ok(count) => {
            heard.extend_from_slice(&space[..count]);
            Some(count)
        }
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => None,
        Err(_) => Some(0),
    }
}

/// Takes what comes until nothing has for so many rounds.
async fn listen_for_a_while(near: &TcpStream, heard: &mut Vec<u8>, rounds: u32) {
    let mut quiet = 0;
    while quiet < rounds {
        tokio::task::yield_now().await;
        quiet = match take(near, heard) {
            Some(count) if count > 0 => 0,
            _ => quiet + 1,
        };
    }
}

/// Takes connections in.
async fn listen(listener: TcpListener, worker: Rc<Worker>) {
    let tasks = Rc::<TaskPool>::default();
    while let Ok((stream, peer)) = listener.accept().await {
        let addresses = Addresses { peer, local: peer };
        let _is_fast = stream.set_nodelay(true);
        tokio::task::spawn_local(serve(
            ConnectionGuard::new(&worker),
            Rc::clone(&tasks),
            stream,
            addresses,
            false,
        ));
    }
}

async fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .expect("invariant: a free port")
}

/// Answers connections as the script has it.
async fn answer(listener: TcpListener, script: Rc<Script>) {
    while let Ok((stream, _)) = listener.accept().await {
        let script = Rc::clone(&script);
        tokio::task::spawn_local(async move {
            let pieces = script.pieces.borrow().clone();
            let (is_asked, mut heard) = (stream.readable().await.is_ok(), Vec::new());
            for piece in pieces {
                listen_for_a_while(&stream, &mut heard, SCRIPT_PAUSE).await;
                let _is_taken = stream.try_write(&piece);
            }
            listen_for_a_while(&stream, &mut heard, SCRIPT_PAUSE).await;
            let mut stream = stream;
            let _is_open = stream.shutdown().await;
            script.is_due.set(script.is_due.get() && !is_asked);
            while stream.readable().await.is_ok() && take(&stream, &mut heard) != Some(0) {}
        });
    }
}

fn worker(renderer: &Arc<dyn ErrorRenderer>, snapshot: Snapshot) -> (Rc<Worker>, Arc<Registry>) {
    let metrics = Arc::new(Registry::new(RegistryOptions::default()));
    let shared = Shared {
        published: arc_swap::ArcSwap::from_pointee(publish(&metrics, snapshot, 1)),
        generation: AtomicU64::new(1),
        limits: Limits::default(),
        error_renderers: ErrorRenderers {
            all: Vec::new(),
            fallback: Arc::clone(renderer),
        },
        drain: watch::Sender::new(false),
        drain_timeout: Duration::ZERO,
        name_servers: NameServers::System,
        fallback_tls: None,
        http3: None,
        fallback_stream_tls: None,
        proxy_protocol: None,
        health: HealthNotifier::new(Duration::ZERO),
        redis: Arc::default(),
        log_sinks: LogSinks::default(),
        kafka_turns: Default::default(),
        gateway_log_levels: Arc::default(),
        calls: None,
    };
    let of_worker = metrics.worker();
    let alternatives = h3::alt_svc::Alternatives::default();
    (
        Worker::new(Arc::new(shared), of_worker, None, alternatives, 1),
        metrics,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1_checks::http1_answer;
    use crate::http2_checks::http2_answers;
    use serde_json::{Value, json};
    use weir_plugin::uri::NormalForm;
    use weir_plugin::{Exchange, Reply};
    use weir_snapshot::{PersistentState, compile};

    /// Enough on any machine.
    const MANY_ROUNDS: u32 = 2000;

    struct Words;

    impl ErrorRenderer for Words {
        fn render(&self, refusal: &weir_plugin::Refusal, _: &Exchange) -> Reply {
            Reply::new(refusal.status, "text/plain", refusal.kind.as_str().to_owned())
        }

        fn normal_form(&self) -> NormalForm {
            NormalForm::Encoded
        }
    }

    fn snapshot(model: Value) -> Snapshot {
        let model = serde_json::from_value(model).unwrap();
        let compiled = compile(
            &model,
            &weir_plugin::Registry::default(),
            &PersistentState::default(),
        );
        compiled.unwrap().0
    }

    fn hops() -> Hops {
        let renderer: Arc<dyn ErrorRenderer> = Arc::new(Words);
        let first = |upstreams: Upstreams| {
            let address = upstreams.second;
            let to = |path: &str, service: &str| json!({"name": path, "match": [{"path": format!("{path}*")}], "to": {"service": service}});
            snapshot(json!({
                "services": [
                    {"name": "one", "url": format!("http://{address}")},
                    {"name": "two", "url": format!("h2c://{address}")},
                    {"name": "scripted", "url": format!("http://{}", upstreams.scripted), "retries": 0},
                ],
                "routes": [to("/1", "one"), to("/2", "two"), to("/s", "scripted")],
            }))
        };
        let second = json!({"routes": [{"name": "all", "match": [{}], "to": {"respond": {"status": 503}}}]});
        Hops::new(&renderer, first, snapshot(second))
    }

    #[test]
    fn clients_of_http1_are_understood_wherever_their_bytes_are_cut() {
        let (hops, input) = (
            hops(),
            b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nxGET / HTTP/1.0\r\n\r\n",
        );
        for cut in (0..input.len()).step_by(5) {
            let heard = hops.say(&[&input[..cut], &input[cut..]], MANY_ROUNDS);
            let heard = String::from_utf8(heard).unwrap();
            let heads: Vec<&str> = heard.split("HTTP/1.1 ").skip(1).map(|head| &head[..3]).collect();
            assert_eq!(heads, ["503", "503", "404"], "{cut}");
        }
    }

    #[test]
    fn clients_of_http2_are_understood_wherever_their_bytes_are_cut() {
        let hops = hops();
        let get = |stream: u8, path: u8| {
            [&[
                0, 0, 9, 1, 5, 0, 0, 0, stream, 0x82, 0x86, 0x41, 1, b'h', 4, 2, b'/', path,
            ][..]]
            .concat()
        };
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let input = [
            weir_http2::connection::PREFACE,
            &settings[..],
            &get(1, b'1'),
            &get(3, b'2'),
            &get(5, b'3'),
        ]
        .concat();
        for cut in (0..input.len()).step_by(5) {
            let heard = hops.say(&[&input[..cut], &input[cut..]], MANY_ROUNDS);
            http2_answers(&input, &heard);
            let count = |word: &[u8]| heard.windows(word.len()).filter(|part| *part == word).count();
            let counts = (count(b"no_route"), count(b"no_service"));
            assert_eq!(counts, (1, 2), "{cut}: {}", heard.escape_ascii());
        }
    }

    #[test]
    fn an_upstream_says_what_its_script_has() {
        let hops = hops();
        let get = |script: &[&[u8]]| {
            let script = script.iter().map(|piece| piece.to_vec()).collect();
            let heard = hops.say_to(script, &[b"GET /s HTTP/1.1\r\nHost: a\r\n\r\n"], MANY_ROUNDS);
            http1_answer(&heard, false);
            heard
        };
        for (script, wanted) in [
            (
                &[&b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"[..], b"abc"][..],
                "abc",
            ),
            (
                &[b"HTTP/1.1 200 OK\r\n\r\nuntil", b" the end"],
                "the end\r\n0\r\n\r\n",
            ),
            (&[b"HTTP/1.1 2"], "upstream_failed"),
            (&[], "upstream_failed"),
        ] {
            let heard = String::from_utf8(get(script)).unwrap();
            assert!(heard.ends_with(wanted), "{wanted:?}: {heard:?}");
        }
    }
}
