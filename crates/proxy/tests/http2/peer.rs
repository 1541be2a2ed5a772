//! Peers that speak HTTP/2 on both sides of the gateway.

pub use super::support::list as fields;
use super::support::{TIMEOUT, client_config, joined};
use bytes::Bytes;
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use rustls::pki_types::ServerName;
use std::collections::VecDeque;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;
use tokio_rustls::TlsConnector;

/// Runs a test's part of the work, for so long as a test may take.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(async {
        tokio::time::timeout(TIMEOUT, work)
            .await
            .expect("it takes too long")
    })
}

/// What a message came to.
#[derive(Debug, Clone, Default)]
pub struct ReceivedMessage {
    /// Of requests.
    pub uri: String,
    /// Of responses.
    pub status: u16,
    pub fields: HeaderMap,
    pub body: Vec<u8>,
    pub trailers: HeaderMap,
}

impl ReceivedMessage {
    /// The values of a field, joined.
    pub fn get(&self, name: &str) -> Option<String> {
        joined(&self.fields, name)
    }

    pub fn trailer(&self, name: &str) -> Option<String> {
        joined(&self.trailers, name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A client's connection.
#[derive(Clone)]
pub struct Client {
    sender: SendRequest<Bytes>,
    address: SocketAddr,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Self {
        let (give, take) = tokio::sync::oneshot::channel();
        // On a thread of its own, so that a test may wait for what its peers do in between.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let tcp = TcpStream::connect(address).await.unwrap();
                tcp.set_nodelay(true).unwrap();
                if crate::OVER_TLS {
                    let name = ServerName::try_from("localhost").unwrap();
                    let connector = TlsConnector::from(client_config(&[b"h2", b"http/1.1"]));
                    let tls = connector.connect(name, tcp).await.unwrap();
                    assert_eq!(tls.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
                    drive(tls, give).await;
                } else {
                    drive(tcp, give).await;
                }
            });
        });
        let sender = take.await.unwrap();
        Self { sender, address }
    }

    pub fn request(&self, method: &str, target: &str, list: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}{target}", self.address))
            .body(())
            .unwrap();
        *request.headers_mut() = fields(list);
        request
    }

    /// Begins a call.
    pub async fn begin(
        &self,
        request: Request<()>,
        is_whole: bool,
    ) -> Result<(h2::client::ResponseFuture, SendStream<Bytes>), h2::Error> {
        let mut sender = self.sender.clone().ready().await?;
        sender.send_request(request, is_whole)
    }

    /// Makes a call without a body.
    pub async fn get(&self, target: &str, list: &[(&str, &str)]) -> ReceivedMessage {
        self.call(self.request("GET", target, list), b"", &[])
            .await
            .unwrap()
    }

    /// Makes a whole call.
    pub async fn call(
        &self,
        request: Request<()>,
        body: &[u8],
        trailers: &[(&str, &str)],
    ) -> Result<ReceivedMessage, h2::Error> {
        let is_whole = body.is_empty() && trailers.is_empty();
        let (response, mut stream) = self.begin(request, is_whole).await?;
        if !is_whole {
            let is_last = trailers.is_empty();
            let body = Bytes::copy_from_slice(body);
            tokio::spawn(async move {
                send_all(&mut stream, body, is_last).await;
                if !is_last {
                    // It is not known whether anybody wants them.
                    let _sent = stream.send_trailers(HeaderMap::new());
                }
            });
        }
        let (parts, body) = response.await?.into_parts();
        receive(parts, body).await
    }

    /// Makes a whole call that ends in these trailers.
    pub async fn call_with_trailers(
        &self,
        request: Request<()>,
        body: &[u8],
        trailers: HeaderMap,
    ) -> Result<ReceivedMessage, h2::Error> {
        let (response, mut stream) = self.begin(request, false).await?;
        send_all(&mut stream, Bytes::copy_from_slice(body), false).await;
        stream.send_trailers(trailers)?;
        let (parts, body) = response.await?.into_parts();
        receive(parts, body).await
    }
}

async fn drive(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    give: tokio::sync::oneshot::Sender<SendRequest<Bytes>>,
) {
    let (sender, connection) = h2::client::Builder::new().handshake(stream).await.unwrap();
    assert!(give.send(sender).is_ok(), "the test waits");
    let _how_it_ends = connection.await;
}

/// Reads the rest of a response.
pub async fn receive(
    parts: http::response::Parts,
    mut body: RecvStream,
) -> Result<ReceivedMessage, h2::Error> {
    let mut came = ReceivedMessage {
        status: parts.status.as_u16(),
        fields: parts.headers,
        ..ReceivedMessage::default()
    };
    read_body(&mut body, &mut came).await?;
    Ok(came)
}

async fn read_body(body: &mut RecvStream, came: &mut ReceivedMessage) -> Result<(), h2::Error> {
    while let Some(data) = body.data().await {
        let data = data?;
        came.body.extend_from_slice(&data);
        body.flow_control().release_capacity(data.len())?;
    }
    came.trailers = body.trailers().await?.unwrap_or_default();
    Ok(())
}

/// Sends data as far as the peer takes it.
pub async fn send_all(stream: &mut SendStream<Bytes>, mut data: Bytes, is_last: bool) {
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        let room = match std::future::poll_fn(|context| stream.poll_capacity(context)).await {
            Some(Ok(room)) => room,
            _ => return,
        };
        let piece = data.split_to(room.min(data.len()));
        let is_end = is_last && data.is_empty();
        if stream.send_data(piece, is_end).is_err() || is_end {
            return;
        }
    }
    if is_last {
        let _sent = stream.send_data(Bytes::new(), true);
    }
}

/// What an upstream answers.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub status: u16,
    pub fields: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    pub trailers: Vec<(&'static str, &'static str)>,
    /// Ends the stream in this way instead, before the head or, if there is a body, after it.
    pub reset: Option<h2::Reason>,
    /// Whom the answer waits for.
    pub with: Option<Arc<Barrier>>,
}

impl Answer {
    pub fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            body: body.into(),
            ..Self::default()
        }
    }
}

/// An upstream that speaks HTTP/2, on a thread of its own.
pub struct Upstream {
    pub address: SocketAddr,
    pub seen: Arc<Mutex<Vec<ReceivedMessage>>>,
    pub connections: Arc<Mutex<usize>>,
}

impl Upstream {
    /// Answers every request with what `play` makes of it.
    pub fn serve(play: impl Fn(&ReceivedMessage) -> Answer + Send + Sync + 'static) -> Self {
        Self::serve_up_to(u32::MAX, play)
    }

    /// The same with so many streams at once on a connection.
    pub fn serve_up_to(
        streams: u32,
        play: impl Fn(&ReceivedMessage) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let upstream = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            connections: Arc::default(),
        };
        let (seen, connections) = (Arc::clone(&upstream.seen), Arc::clone(&upstream.connections));
        let play: Arc<dyn Fn(&ReceivedMessage) -> Answer + Send + Sync> = Arc::new(play);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                while let Ok((tcp, _)) = listener.accept().await {
                    *connections.lock().unwrap() += 1;
                    tokio::spawn(serve(tcp, streams, Arc::clone(&seen), Arc::clone(&play)));
                }
            });
        });
        upstream
    }

    pub fn last(&self) -> ReceivedMessage {
        self.seen.lock().unwrap().last().cloned().expect("a request came")
    }
}

type Play = Arc<dyn Fn(&ReceivedMessage) -> Answer + Send + Sync>;

async fn serve(tcp: TcpStream, streams: u32, seen: Arc<Mutex<Vec<ReceivedMessage>>>, play: Play) {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(streams);
    let Ok(mut connection) = builder.handshake::<_, Bytes>(tcp).await else {
        return;
    };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let (seen, play) = (Arc::clone(&seen), Arc::clone(&play));
        tokio::spawn(async move {
            let (parts, mut body) = request.into_parts();
            let mut came = ReceivedMessage {
                uri: parts.uri.to_string(),
                fields: parts.headers,
                ..ReceivedMessage::default()
            };
            if read_body(&mut body, &mut came).await.is_err() {
                return;
            }
            let answer = play(&came);
            seen.lock().unwrap().push(came);
            if let Some(with) = &answer.with {
                with.wait().await;
            }
            reply(answer, &mut respond).await;
        });
    }
}

async fn reply(answer: Answer, respond: &mut h2::server::SendResponse<Bytes>) {
    if let (Some(reason), true) = (answer.reset, answer.body.is_empty()) {
        return respond.send_reset(reason);
    }
    let mut response = Response::builder().status(answer.status).body(()).unwrap();
    for (name, value) in &answer.fields {
        response
            .headers_mut()
            .append(*name, HeaderValue::from_str(value).unwrap());
    }
    let is_whole = answer.body.is_empty() && answer.trailers.is_empty();
    let Ok(mut stream) = respond.send_response(response, is_whole) else {
        return;
    };
    if is_whole {
        return;
    }
    let is_last = answer.trailers.is_empty() && answer.reset.is_none();
    send_all(&mut stream, answer.body.into(), is_last).await;
    match answer.reset {
        Some(reason) => {
            // What waits to be written would go with the stream.
            for _ in 0..16 {
                tokio::task::yield_now().await;
            }
            stream.send_reset(reason);
        }
        None if !is_last => {
            let _sent = stream.send_trailers(fields(&answer.trailers));
        }
        None => {}
    }
}

/// Answers for several tries, in order; the last one stays.
pub fn in_order(answers: Vec<Answer>) -> impl Fn(&ReceivedMessage) -> Answer + Send + Sync {
    let answers = Mutex::new(VecDeque::from(answers));
    move |_| {
        let mut answers = answers.lock().unwrap();
        match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().unwrap(),
        }
    }
}
