//! Clients of management's listeners that take too long, send too much, or are too many.

use axum::Router;
use axum::routing::{get, post};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use weir_control::listen::{Bounds, StreamingResponse, serve};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);
/// As long as a client is waited for that is to be given up.
const SHORT: Duration = Duration::from_millis(50);

const BOUNDS: Bounds = Bounds {
    head: LONG,
    body: LONG,
    idle: LONG,
    stall: LONG,
    max_body: 1 << 20,
    max_connections: 16,
    drain: LONG,
};

struct Running {
    address: SocketAddr,
    drain: watch::Sender<bool>,
    server: tokio::task::JoinHandle<()>,
}

async fn running(bounds: Bounds, router: Router) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let (drain, draining) = watch::channel(false);
    let server = tokio::spawn(serve(listener, router, bounds, draining));
    Running {
        address,
        drain,
        server,
    }
}

fn echo() -> Router {
    Router::new()
        .route("/", get(async || "here"))
        .route("/echo", post(async |body: String| body))
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what)
        .await
        .expect("in time")
}

/// Sends text and reads until the server closes the connection.
async fn answer(address: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("connected");
    stream.write_all(text.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    // A reset ends it too.
    let _reset = soon(stream.read_to_end(&mut answer)).await;
    String::from_utf8(answer).expect("text")
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[tokio::test]
async fn clients_that_take_too_long_are_given_up() {
    let short_head = Bounds {
        head: SHORT,
        ..BOUNDS
    };
    let short_body = Bounds {
        body: SHORT,
        ..BOUNDS
    };
    let short_idle = Bounds {
        idle: SHORT,
        ..BOUNDS
    };
    // What came together with the request before it counts as nothing yet.
    let short_wait = Bounds {
        head: SHORT,
        idle: SHORT,
        ..BOUNDS
    };
    let begun = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345";
    for (what, bounds, text, begins) in [
        ("nothing", short_idle, "", ""),
        ("nothing after an answer", short_idle, GET, "HTTP/1.1 200 "),
        ("half a head", short_head, "GET / HTTP/1.1\r\nHos", ""),
        (
            "half of the second head",
            short_wait,
            "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT",
            "HTTP/1.1 200 ",
        ),
        ("half a body", short_body, begun, "HTTP/1.1 400 "),
    ] {
        let running = running(bounds, echo()).await;
        let answer = tokio::time::timeout(LONG / 12, answer(running.address, text)).await;
        let answer = answer.unwrap_or_else(|_| panic!("{what}: not in time"));
        assert!(answer.starts_with(begins), "{what}: {answer}");
        assert_eq!(answer.is_empty(), begins.is_empty(), "{what}: {answer}");
    }
}

/// The defect: `X-Api-Version`, `Etag` and the like, as no original writes them.
#[tokio::test]
async fn names_of_headers_are_written_as_the_originals_do() {
    let headers = [
        ("x-api-version", "v3"),
        ("etag", "\"1\""),
        ("x-one-two", "1"),
        ("set-cookie", "a=1"),
        ("www-authenticate", "Basic"),
    ];
    let router = Router::new().route("/", get(async move || headers));
    let running = running(BOUNDS, router).await;
    let close = GET.replace("Host: a", "host: a\r\nx-one-two: 1\r\nconnection: close");
    for _ in 0..2 {
        let answer = answer(running.address, &close).await;
        for line in [
            "X-API-VERSION: v3",
            "ETag: \"1\"",
            "X-One-Two: 1",
            "Set-Cookie: a=1",
            "WWW-Authenticate: Basic",
            "Content-Length: 0",
        ] {
            assert!(answer.lines().any(|it| it == line), "{line}: {answer}");
        }
        let is_made_up = answer.lines().any(|it| it.ends_with(": x"));
        assert!(!is_made_up, "{answer}");
    }
}

/// A head that comes byte by byte is late as a whole, though every byte comes soon after the one before.
#[tokio::test]
async fn a_head_that_trickles_is_given_up() {
    let running = running(
        Bounds {
            head: SHORT,
            ..BOUNDS
        },
        echo(),
    )
    .await;
    let stream = TcpStream::connect(running.address).await.expect("connected");
    let (mut reader, mut writer) = stream.into_split();
    let trickle = tokio::spawn(async move {
        writer.write_all(b"GET / HTTP/1.1\r\n").await?;
        let mut pace = tokio::time::interval(Duration::from_millis(5));
        loop {
            pace.tick().await;
            writer.write_all(b"a:b\r\n").await?;
        }
        #[allow(unreachable_code, reason = "says what the task gives")]
        Ok::<(), std::io::Error>(())
    });
    let mut answer = Vec::new();
    let _reset = soon(reader.read_to_end(&mut answer)).await;
    assert!(answer.is_empty(), "{answer:?}");
    assert!(soon(trickle).await.expect("no panic").is_err());
}

#[tokio::test]
async fn listeners_give_up_answers_that_are_not_read() {
    let dropped = Arc::new(Notify::new());
    struct Tell(Arc<Notify>);
    impl Drop for Tell {
        fn drop(&mut self) {
            self.0.notify_one();
        }
    }
    let tell = Arc::clone(&dropped);
    let router = Router::new().route(
        "/",
        get(move || {
            let tell = Tell(Arc::clone(&tell));
            async move {
                let pieces = std::iter::repeat_with(move || {
                    let _held = &tell;
                    Ok::<_, std::io::Error>(vec![b'x'; 1 << 16])
                });
                axum::body::Body::from_stream(futures::stream(pieces))
            }
        }),
    );
    let running = running(
        Bounds {
            stall: SHORT,
            ..BOUNDS
        },
        router,
    )
    .await;
    let mut stream = TcpStream::connect(running.address).await.expect("connected");
    stream.write_all(GET.as_bytes()).await.expect("sent");
    soon(dropped.notified()).await;
}

mod futures {
    use futures_core::Stream;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    /// The items of an iterator, each at once.
    pub fn stream<I: Iterator + Unpin>(items: I) -> impl Stream<Item = I::Item> {
        struct Items<I>(I);
        impl<I: Iterator + Unpin> Stream for Items<I> {
            type Item = I::Item;
            fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<I::Item>> {
                Poll::Ready(self.0.next())
            }
        }
        Items(items)
    }
}

#[tokio::test]
async fn bodies_are_bounded() {
    let running = running(
        Bounds {
            max_body: 8,
            ..BOUNDS
        },
        echo(),
    )
    .await;
    let chunked = "POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (body, status) in [
        ("8\r\n12345678\r\n0\r\n\r\n", "200"),
        ("9\r\n123456789\r\n0\r\n\r\n", "400"),
    ] {
        let answer = answer(running.address, &format!("{chunked}{body}")).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{body}: {answer}"
        );
    }
}

#[tokio::test]
async fn connections_beyond_the_bound_wait() {
    let bounds = Bounds {
        max_connections: 1,
        ..BOUNDS
    };
    let running = running(bounds, echo()).await;
    let mut first = TcpStream::connect(running.address).await.expect("connected");
    first.write_all(GET.as_bytes()).await.expect("sent");
    let mut byte = [0];
    soon(first.read_exact(&mut byte)).await.expect("an answer");
    let address = running.address;
    let second = tokio::spawn(async move {
        answer(address, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await
    });
    let early = tokio::time::timeout(SHORT, async {
        while !second.is_finished() {
            tokio::task::yield_now().await
        }
    });
    assert!(early.await.is_err(), "it waits");
    drop(first);
    assert!(soon(second).await.expect("no panic").starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn calls_in_progress_end_and_idle_clients_are_let_go() {
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (arrived, waits) = (Arc::clone(&begun), Arc::clone(&go_on));
    let slow = move || async move {
        arrived.notify_one();
        waits.notified().await;
        "done"
    };
    let running = running(BOUNDS, echo().route("/slow", get(slow))).await;
    let address = running.address;
    let idle = tokio::spawn(answer(address, GET));
    let calling = tokio::spawn(answer(address, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"));
    soon(begun.notified()).await;
    running.drain.send_replace(true);
    assert!(soon(idle).await.expect("no panic").ends_with("here"));
    assert!(!running.server.is_finished());
    go_on.notify_one();
    assert!(soon(calling).await.expect("no panic").ends_with("done"));
    soon(running.server).await.expect("no panic");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn responses_without_an_end_do_not_delay_a_drain() {
    // The first part of the body, and then nothing, for ever.
    let part = || axum::body::Bytes::from_static(b"part");
    let endless = move || async move {
        let once = std::iter::once(Ok::<_, std::convert::Infallible>(part()));
        (
            axum::Extension(StreamingResponse),
            axum::body::Body::from_stream(then_nothing::stream(once)),
        )
    };
    let running = running(BOUNDS, echo().route("/endless", get(endless))).await;
    let mut stream = TcpStream::connect(running.address).await.expect("connected");
    stream
        .write_all(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .expect("sent");
    let mut answer = Vec::new();
    while !answer.ends_with(b"4\r\npart\r\n") {
        assert!(soon(stream.read_buf(&mut answer)).await.expect("a part") > 0);
    }
    running.drain.send_replace(true);
    soon(stream.read_to_end(&mut answer)).await.expect("the end");
    assert!(answer.ends_with(b"part\r\n0\r\n\r\n"), "an orderly end");
    soon(running.server).await.expect("no panic");
}

/// A stream of some items that never ends.
mod then_nothing {
    use futures_core::Stream;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    struct ThenNothing<I>(I);

    pub fn stream<I: Iterator + Unpin>(items: I) -> impl Stream<Item = I::Item> {
        ThenNothing(items)
    }

    impl<I: Iterator + Unpin> Stream for ThenNothing<I> {
        type Item = I::Item;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<I::Item>> {
            match self.0.next() {
                Some(item) => Poll::Ready(Some(item)),
                None => Poll::Pending,
            }
        }
    }
}
