//! One call: finds the route, runs the chain, and answers or forwards.

use crate::connection::Client;
use crate::forward::Watch;
use crate::h1::Framing;
use crate::h1::body::BodyCursor;
use crate::h1::chunked::Piece;
use crate::h1::request::RequestHead;
use crate::worker::{Serving, Worker};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::AsyncWrite;
use weir_model::Voice;
use weir_plugin::{Exchange, MAX_VARIABLE_BODY, Outcome, Refusal, RefusalKind, Reply, Response};
use weir_snapshot::{Action, Chain, Charset, Found, Instance, Route, RouteTable, VoiceSettings};
use weir_telemetry::metrics::{Observation, ProtocolError, SeriesId};

/// The answer to `Expect: 100-continue`.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What becomes of the connection after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// The next request may come.
    KeepAlive,
    /// It ends.
    Close,
    /// It ends once the client has had a chance to read the answer.
    Linger,
    /// It ends with a reset, as a proper end would be taken for that of the answer.
    Reset,
}

/// A call in progress.
pub struct Call<'c> {
    pub worker: &'c Rc<Worker>,
    pub serving: &'c Rc<Serving>,
    /// Whose rules hold: the route table's that took the call.
    pub voice: Voice,
    pub client: &'c mut Client,
    pub exchange: &'c mut Exchange,
    pub head: RequestHead,
    pub body: RequestBody,
    /// Whether the client asked with HEAD; filters may change the method that is forwarded.
    pub is_head: bool,
    pub started: Instant,
    pub report: Report,
}

/// The request's body as far as it has been read.
#[derive(Debug)]
pub struct RequestBody {
    pub cursor: BodyCursor,
    /// Bytes of data read so far.
    pub received: u64,
    /// Most bytes allowed; `u64::MAX`: no bound.
    pub limit: u64,
    /// Data that was read for a filter that then could not have it whole; it is sent on first.
    pub prefix: Vec<u8>,
}

impl RequestBody {
    /// Stands in for a body that is away: nothing of it can be read, and its end is not known.
    pub fn away() -> Self {
        Self { cursor: BodyCursor::UntilClose, received: u64::MAX, limit: 0, prefix: Vec::new() }
    }
}

/// What metrics and the access log tell of a call.
#[derive(Default)]
pub struct Report {
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// From the first try to the response's head; `None` while no upstream was asked.
    pub upstream_time: Option<Duration>,
    /// What each failed try stands for, as a status.
    pub tries: Vec<u16>,
    /// The status of the upstream's answer.
    pub answered: Option<u16>,
    pub retries: u32,
    pub error: Option<&'static str>,
    /// Whether the client went before it had the whole answer.
    pub aborted: bool,
}

/// Why no more of a request body comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyError {
    /// The client closed.
    Gone,
    /// The client did not send in time.
    TimedOut,
    /// Its framing is broken.
    Invalid,
    /// It is larger than allowed.
    TooLarge,
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        Refusal::new(match error {
            BodyError::Gone | BodyError::TimedOut => RefusalKind::RequestTimeout,
            BodyError::Invalid => RefusalKind::BadRequest("the request body"),
            BodyError::TooLarge => RefusalKind::BodyTooLarge,
        })
    }
}

/// An answer in place of what would come next.
pub enum Stop {
    /// In the route's voice.
    Refuse(Box<Refusal>),
    /// As it is.
    Reply(Box<Reply>),
    /// Nobody is there to be answered.
    Gone,
}

impl From<RefusalKind> for Stop {
    fn from(kind: RefusalKind) -> Self {
        Self::Refuse(Box::new(Refusal::new(kind)))
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refuse(Box::new(refusal))
    }
}

/// Serves a request whose head has been read.
pub async fn request(
    worker: &Rc<Worker>,
    client: &mut Client,
    exchange: &mut Exchange,
    head: RequestHead,
    started: Instant,
) -> After {
    let serving = worker.serving();
    let mut call = Call::new(worker, &serving, client, exchange, head, started);
    let (after, series) = call.run().await;
    call.record(series);
    after
}

/// Answers a request that cannot be read, and ends the connection.
pub async fn unreadable(worker: &Rc<Worker>, client: &mut Client, exchange: &mut Exchange, refusal: Refusal) -> After {
    let serving = worker.serving();
    let head = RequestHead {
        length: 0,
        framing: Framing::None,
        keep_alive: false,
        expects_continue: false,
        upgrade: None,
        has_forwarded: false,
        minor_version: 1,
    };
    let mut call = Call::new(worker, &serving, client, exchange, head, Instant::now());
    let reply = call.render(&refusal);
    let sent = call.send_reply(reply, &Chain::default(), None).await;
    call.record(None);
    if sent == After::Close { After::Linger } else { After::Close }
}

impl<'c> Call<'c> {
    fn new(
        worker: &'c Rc<Worker>,
        serving: &'c Rc<Serving>,
        client: &'c mut Client,
        exchange: &'c mut Exchange,
        head: RequestHead,
        started: Instant,
    ) -> Self {
        let limit = match worker.shared.limits.max_body_bytes {
            0 => u64::MAX,
            limit => limit,
        };
        let body =
            RequestBody { cursor: BodyCursor::new(head.framing), received: 0, limit, prefix: Vec::new() };
        let report = Report { bytes_in: head.length as u64, ..Report::default() };
        let voice = serving.published.snapshot.voice;
        let is_head = exchange.request.method == b"HEAD";
        Self { worker, serving, voice, client, exchange, head, body, is_head, started, report }
    }

    async fn run(&mut self) -> (After, Option<usize>) {
        let snapshot = &self.serving.published.snapshot;
        let found = match self.find_route().await {
            Ok(found) => found,
            Err(stop) => return (self.stop(stop, &Chain::default(), None).await, None),
        };
        let Some(found) = found else {
            let stop = match self.run_request_work(&snapshot.unmatched).await {
                Ok(()) => RefusalKind::NoRoute.into(),
                Err(stop) => stop,
            };
            return (self.stop(stop, &snapshot.unmatched, None).await, None);
        };
        let route = &snapshot.routes[found.route as usize];
        let after = match self.run_route(route, &found).await {
            Ok(after) => after,
            Err(stop) => self.stop(stop, &route.chain, Some(route)).await,
        };
        (after, Some(found.route as usize))
    }

    /// Looks into the route table of each voice; the first that has a route for the call takes it.
    async fn find_route(&mut self) -> Result<Option<Found>, Stop> {
        let snapshot = &self.serving.published.snapshot;
        for table in &snapshot.tables {
            self.voice = table.voice;
            self.read_client_address(snapshot.settings(table.voice));
            let request = &mut self.exchange.request;
            let form = self.worker.shared.voices.get(table.voice).normal_form();
            if request.raw_path == b"*" {
                request.path.clear();
                request.path.push(b'*');
            } else if form.apply(&request.raw_path, &mut request.path).is_err() {
                return Err(RefusalKind::BadRequest("the path").into());
            }
            let found = if table.needs_body() {
                self.find_by_body(table).await?
            } else {
                table.find(self.exchange)
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        self.voice = snapshot.voice;
        Ok(None)
    }

    /// Looks into a table some of whose conditions are over the request's body.
    async fn find_by_body(&mut self, table: &RouteTable) -> Result<Option<Found>, Stop> {
        if table.awaits_body(self.exchange) {
            // How large the body may be is for the route to say; here the variables' own bound holds.
            let limit = std::mem::replace(&mut self.body.limit, u64::MAX);
            let read = self.read_body_for_variables().await;
            self.body.limit = limit;
            read?;
        }
        let found = table.find(self.exchange);
        self.exchange.request.forget_parsed_body();
        Ok(found)
    }

    /// Believes a trusted peer's word on who the client is.
    fn read_client_address(&mut self, settings: &VoiceSettings) {
        let request = &mut self.exchange.request;
        request.client = request.peer.ip();
        if let Some(real_ip) = &settings.real_ip
            && let Some(value) = request.headers.get_all(&real_ip.header).last()
            && real_ip.trusts(request.client)
            && let Some(last) = value.rsplit(|byte| *byte == b',').next()
            && let Some(address) = std::str::from_utf8(last).ok().and_then(|text| text.trim().parse().ok())
        {
            request.client = address;
        }
    }

    async fn run_route(&mut self, route: &Route, found: &Found) -> Result<After, Stop> {
        if let Some(limit) = route.max_body_bytes {
            self.body.limit = limit;
        }
        let known = match self.head.framing {
            Framing::Length(length) => length,
            _ => self.body.received,
        };
        if known > self.body.limit {
            return Err(RefusalKind::BodyTooLarge.into());
        }
        if self.needs_facts(route) {
            self.exchange.route = Some(Arc::clone(&route.facts));
        }
        if let Some(status) = route.https_only_status
            && !self.exchange.request.is_tls
        {
            return Err(self.refuse_cleartext(status).into());
        }
        if let Action::Broken(status) = route.action {
            return Err(Refusal::with_status(RefusalKind::NoService, status).into());
        }
        if route.chain.has_request_work {
            self.run_request_work(&route.chain).await?;
        }
        match &route.action {
            Action::Forward(forward) => self.forward(route, forward, found).await,
            Action::Unavailable(status) | Action::Broken(status) => {
                Err(Refusal::with_status(RefusalKind::NoService, *status).into())
            }
        }
    }

    /// Whether anything on the way may ask for the route's name. Most routes do without the shared count.
    fn needs_facts(&self, route: &Route) -> bool {
        let upstreams = &self.serving.published.snapshot.upstreams;
        let hashes = |upstream: u32| !upstreams[upstream as usize].hash_on.is_empty();
        !route.chain.steps.is_empty() || matches!(&route.action, Action::Forward(it) if hashes(it.upstream))
    }

    fn refuse_cleartext(&self, status: u16) -> Refusal {
        let mut refusal = Refusal::with_status(RefusalKind::HttpsRequired, status);
        if (300..400).contains(&status) {
            let request = &self.exchange.request;
            let mut location = b"https://".to_vec();
            location.extend_from_slice(&request.host);
            location.extend_from_slice(&request.raw_path);
            if let Some(query) = &request.query {
                location.push(b'?');
                location.extend_from_slice(query);
            }
            refusal.headers.push(("Location".into(), String::from_utf8_lossy(&location).into_owned()));
        }
        refusal
    }

    async fn stop(&mut self, stop: Stop, chain: &Chain, route: Option<&Route>) -> After {
        let reply = match stop {
            Stop::Gone => {
                self.report.aborted = true;
                return After::Close;
            }
            Stop::Refuse(refusal) => self.render(&refusal),
            Stop::Reply(reply) => *reply,
        };
        self.send_reply(reply, chain, route).await
    }

    /// Runs the request work of a chain, in order, until one filter answers.
    async fn run_request_work(&mut self, chain: &Chain) -> Result<(), Stop> {
        if chain.needs_body {
            self.read_body_for_variables().await?;
            let done = self.run_steps(chain).await;
            self.exchange.request.forget_parsed_body();
            return done;
        }
        self.run_steps(chain).await
    }

    async fn run_steps(&mut self, chain: &Chain) -> Result<(), Stop> {
        for step in &chain.steps {
            if step.response_only {
                continue;
            }
            let Some(instance) = step.instance(self.exchange.identity.as_ref()) else { continue };
            if instance.phases.request && self.applies(instance) {
                self.run_instance(instance).await?;
            }
        }
        Ok(())
    }

    /// Whether `Expect: 100-continue` is answered here and not by the upstream.
    pub fn answers_expect(&self) -> bool {
        self.serving.published.snapshot.settings(self.voice).answer_expect
    }

    fn applies(&self, instance: &Instance) -> bool {
        instance.when.as_ref().is_none_or(|condition| condition.holds(self.exchange))
    }

    async fn run_instance(&mut self, instance: &Instance) -> Result<(), Stop> {
        let mut outcome = instance.filter.on_request(self.exchange);
        if let Outcome::NeedBody { max_bytes } = outcome {
            self.read_whole_body(max_bytes).await?;
            outcome = instance.filter.on_request(self.exchange);
        }
        let stop = match outcome {
            Outcome::Continue => return Ok(()),
            Outcome::Reply(reply) => return Err(Stop::Reply(reply)),
            Outcome::Refuse(refusal) => refusal,
            Outcome::NeedBody { .. } => Box::new(Refusal::new(RefusalKind::BodyTooLarge)),
        };
        match &instance.refusal_body {
            None => Err(Stop::Refuse(stop)),
            Some(fixed) => {
                let mut reply = self.render(&stop);
                reply.content_type = fixed.content_type.clone().into();
                reply.body.clone_from(&fixed.body);
                Err(Stop::Reply(Box::new(reply)))
            }
        }
    }

    /// Runs the response work of a chain on the exchange's response.
    pub fn run_response_work(&mut self, chain: &Chain) {
        for index in &chain.response_order {
            let step = &chain.steps[usize::from(*index)];
            let Some(instance) = step.instance(self.exchange.identity.as_ref()) else { continue };
            if instance.phases.response && self.applies(instance) {
                instance.filter.on_response(self.exchange);
            }
        }
        if let Some(charset) = &self.serving.published.snapshot.settings(self.voice).charset {
            add_charset(charset, &mut self.exchange.response);
        }
    }

    /// Reads the body so that variables can tell of it, if it is not too large for that.
    async fn read_body_for_variables(&mut self) -> Result<(), Stop> {
        match self.head.framing {
            Framing::Length(length) if length > MAX_VARIABLE_BODY as u64 => Ok(()),
            _ => self.read_whole_body(MAX_VARIABLE_BODY).await,
        }
    }

    /// Reads the body into the exchange, where it has at most `max_bytes`; else what was read is sent on later.
    async fn read_whole_body(&mut self, max_bytes: usize) -> Result<(), Stop> {
        if self.exchange.request.body.is_some() || (self.body.cursor.is_done() && self.body.prefix.is_empty()) {
            return Ok(());
        }
        if self.head.expects_continue {
            self.head.expects_continue = false;
            self.write_to_client(CONTINUE, &[], &mut Watch::Nothing).await.map_err(|_| Stop::Gone)?;
        }
        // What another reader found too much may be little enough for this one.
        let mut whole = std::mem::take(&mut self.body.prefix);
        while !self.body.cursor.is_done() && whole.len() <= max_bytes {
            match self.read_body_piece(|data| whole.extend_from_slice(data)).await {
                Ok(()) => {}
                Err(BodyError::Gone) => return Err(Stop::Gone),
                Err(error) => {
                    // What is left of the body is not worth waiting for.
                    self.head.keep_alive = false;
                    return Err(Refusal::from(error).into());
                }
            }
        }
        if self.body.cursor.is_done() && whole.len() <= max_bytes {
            self.exchange.request.body = Some(whole);
        } else {
            self.body.prefix = whole;
        }
        Ok(())
    }

    /// Hands the next piece of the body's data to `take`.
    pub async fn read_body_piece(&mut self, take: impl FnOnce(&[u8])) -> Result<(), BodyError> {
        loop {
            let piece = self.body.cursor.next(self.client.reader.inbox.bytes()).map_err(|_| BodyError::Invalid)?;
            match piece {
                Piece::End => return Ok(()),
                Piece::Skip(0) => self.fill_from_client().await?,
                Piece::Skip(count) => {
                    self.client.reader.inbox.consume(count);
                    if self.body.cursor.is_done() {
                        return Ok(());
                    }
                }
                Piece::Data(count) => {
                    self.body.received += count as u64;
                    self.report.bytes_in += count as u64;
                    if self.body.received > self.body.limit {
                        return Err(BodyError::TooLarge);
                    }
                    take(&self.client.reader.inbox.bytes()[..count]);
                    self.client.reader.inbox.consume(count);
                    return Ok(());
                }
            }
        }
    }

    async fn fill_from_client(&mut self) -> Result<(), BodyError> {
        let (client, worker) = (&mut *self.client, self.worker);
        client.timer.set(Instant::now(), worker.shared.limits.body_timeout);
        std::future::poll_fn(|context| {
            match client.reader.poll_fill(context, &worker.buffers, 0) {
                Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(Err(BodyError::Gone)),
                Poll::Ready(Ok(_)) => Poll::Ready(Ok(())),
                Poll::Pending => client.timer.poll_expired(context).map(|()| Err(BodyError::TimedOut)),
            }
        })
        .await
    }

    /// Writes `first` and then `second` to the client, within the write time-out between two writes.
    /// What `watch` watches goes on meanwhile.
    pub async fn write_to_client(&mut self, first: &[u8], second: &[u8], watch: &mut Watch<'_>) -> io::Result<()> {
        let (client, timeout) = (&mut *self.client, self.worker.shared.limits.write_timeout);
        let mut written = 0;
        let mut timer_set = false;
        std::future::poll_fn(|context| {
            while written < first.len() + second.len() {
                let write = Pin::new(&mut client.write);
                let attempted = match written.checked_sub(first.len()) {
                    Some(behind) => write.poll_write(context, &second[behind..]),
                    None if second.is_empty() => write.poll_write(context, &first[written..]),
                    None => {
                        let parts = [IoSlice::new(&first[written..]), IoSlice::new(second)];
                        write.poll_write_vectored(context, &parts)
                    }
                };
                match attempted {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(count)) => {
                        written += count;
                        timer_set = false;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {
                        if !timer_set {
                            client.timer.set(Instant::now(), timeout);
                            timer_set = true;
                        }
                        watch.poll_progress(context);
                        ready!(client.timer.poll_expired(context));
                        return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                    }
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Counts the finished call, and logs it where calls are logged.
    fn record(&mut self, route: Option<usize>) {
        let now = Instant::now();
        // The next request is awaited from here on.
        self.client.timer.set(now, self.worker.shared.limits.idle_timeout);
        let total = now.saturating_duration_since(self.started);
        let status = if self.report.aborted { 499 } else { self.exchange.response.status };
        let series = route.map_or(SeriesId::UNMATCHED, |route| self.serving.published.series[route]);
        let microseconds = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        self.worker.metrics.record(
            series,
            &Observation {
                status,
                total_us: microseconds(total),
                upstream_us: self.report.upstream_time.map_or(0, |time| microseconds(time).max(1)),
                bytes_in: self.report.bytes_in,
                bytes_out: self.report.bytes_out,
            },
        );
        if self.report.aborted {
            self.worker.metrics.protocol_error(ProtocolError::ClientAborted);
        }
        if self.worker.access_log.is_some() {
            self.log(route, status, total);
        }
    }

    fn log(&mut self, route: Option<usize>, status: u16, total: Duration) {
        let Some(log) = &self.worker.access_log else { return };
        let total_ms = u64::try_from(total.as_millis()).unwrap_or(u64::MAX);
        let time_ms = weir_plugin::system_clock().saturating_sub(total_ms);
        let (client, upstream) =
            (self.exchange.request.client.to_string(), self.exchange.upstream.map(|it| it.to_string()));
        let facts = route.map(|route| &self.serving.published.snapshot.routes[route].facts);
        let consumer = self.exchange.identity.as_ref().map(|it| &it.consumer);
        let request_id = Some(self.exchange.request_id().as_bytes()).filter(|id| !id.is_empty());
        log.borrow_mut().log(&weir_telemetry::access_log::AccessEntry {
            time_ms,
            client: &client,
            method: &self.exchange.request.method,
            host: &self.exchange.request.host,
            path: &self.exchange.request.raw_path,
            status,
            bytes_in: self.report.bytes_in,
            bytes_out: self.report.bytes_out,
            duration_us: u64::try_from(total.as_micros()).unwrap_or(u64::MAX),
            upstream: upstream.as_deref(),
            upstream_us: self.report.upstream_time.map(|it| it.as_micros() as u64),
            upstream_status: self.report.answered.or(self.report.tries.last().copied()),
            route: facts.map(|it| it.name.as_str()),
            service: facts.map(|it| it.service.as_str()),
            consumer: consumer.map(|it| it.username.as_deref().unwrap_or(&it.id)),
            request_id,
            retries: self.report.retries,
            error: self.report.error.or(self.report.aborted.then_some("client_aborted")),
        });
    }
}

/// Names the charset of a textual response that names none.
fn add_charset(charset: &Charset, response: &mut Response) {
    let Some(content_type) = response.headers.get(b"content-type") else { return };
    let Some(parameter) = charset.parameter_for(content_type) else { return };
    if matches!(response.status, 301 | 302) || response.headers.contains(b"content-encoding") {
        return;
    }
    let full = [content_type, parameter].concat();
    response.headers.set(b"Content-Type", &full);
}
