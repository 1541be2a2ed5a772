//! One call: finds the route, runs the chain, and answers or forwards.

use crate::body_time_budget::BodyTimeBudget;
use crate::client::Client;
use crate::grpc;
use crate::outcome::{ConnectionFate, ShortCircuit};
use crate::request_body::RequestBody;
use crate::request_record::RequestRecord;
use crate::untrusted;
use crate::worker::{Worker, WorkerSnapshot};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use weir_http1::Framing;
use weir_http1::body::BodyCursor;
use weir_http1::request::RequestHead;
use weir_model::DialectName;
use weir_plugin::error_renderer::ErrorRenderer;
use weir_plugin::{Exchange, Headers, MAX_VARIABLE_BODY, Refusal, RefusalKind};
use weir_snapshot::{Action, Chain, DialectSettings, Route, RouteMatch, RouteTable, ServerTls};

/// A call in progress.
///
/// What the parts of a call read and write side by side is public: a method would borrow all of it. What only holds for
/// the whole call is private to this file.
pub struct RequestContext<'c> {
    pub worker: &'c Rc<Worker>,
    pub serving: &'c Rc<WorkerSnapshot>,
    pub client: &'c mut Client,
    pub exchange: &'c mut Exchange,
    pub head: RequestHead,
    pub body: RequestBody,
    pub report: RequestRecord,
    /// Whose rules hold: the route table's that took the call.
    dialect: DialectName,
    /// Whether the client asked with HEAD; filters may change the method that is forwarded.
    is_head: bool,
    started: Instant,
    /// The headers as the client sent them, if the rules of the dialect that is asked have changed them. The next
    /// dialect sees these.
    as_sent: Option<Box<Headers>>,
}

/// Serves a request whose head has been read.
pub async fn request(
    worker: &Rc<Worker>,
    client: &mut Client,
    exchange: &mut Exchange,
    head: RequestHead,
    started: Instant,
) -> ConnectionFate {
    let serving = worker.serving();
    let mut call = RequestContext::new(worker, &serving, client, exchange, head, started);
    let (after, series) = call.run().await;
    call.emit_log_records(series);
    // Calls that wait for what this one holds should not wait for its successor.
    call.exchange.filter_state.clear();
    call.exchange.response.body_filters.clear();
    call.record(series);
    after
}

/// Answers a request that cannot be read, and ends the connection.
pub async fn reject_malformed(
    worker: &Rc<Worker>,
    client: &mut Client,
    exchange: &mut Exchange,
    refusal: Refusal,
) -> ConnectionFate {
    let serving = worker.serving();
    let head = RequestHead {
        length: 0,
        framing: Framing::None,
        keep_alive: false,
        expects_continue: false,
        upgrade: None,
        connect_port: None,
        has_forwarded: false,
        has_forwarded_list: false,
        has_via: false,
        minor_version: 1,
    };
    let mut call = RequestContext::new(worker, &serving, client, exchange, head, Instant::now());
    let reply = call.render(&refusal);
    let sent = call.send_reply(reply, &Chain::default(), None).await;
    call.emit_log_records(None);
    call.record(None);
    if sent == ConnectionFate::Close {
        ConnectionFate::Linger
    } else {
        ConnectionFate::Close
    }
}

/// A client that already sends what is for the tunnel gets its answer nevertheless.
fn linger(after: ConnectionFate) -> ConnectionFate {
    match after {
        ConnectionFate::Close => ConnectionFate::Linger,
        after => after,
    }
}

impl<'c> RequestContext<'c> {
    fn new(
        worker: &'c Rc<Worker>,
        serving: &'c Rc<WorkerSnapshot>,
        client: &'c mut Client,
        exchange: &'c mut Exchange,
        head: RequestHead,
        started: Instant,
    ) -> Self {
        let limit = match worker.shared.limits.max_body_bytes {
            0 => u64::MAX,
            limit => limit,
        };
        // The stream itself knows where its body ends.
        let framing = match client.reader.stream() {
            Some(stream) if head.framing != Framing::None && !stream.is_read() => Framing::UntilClose,
            _ => head.framing,
        };
        let body = RequestBody {
            cursor: BodyCursor::new(framing),
            received: 0,
            limit,
            prefix: Vec::new(),
            pace: BodyTimeBudget::new(&worker.shared.limits),
        };
        exchange.request.head_length = head.length as u64;
        let report = RequestRecord {
            bytes_in: head.length as u64,
            ..RequestRecord::default()
        };
        let dialect = serving.published.snapshot.dialect;
        let is_head = exchange.request.method == b"HEAD";
        Self {
            worker,
            serving,
            client,
            exchange,
            head,
            body,
            report,
            dialect,
            is_head,
            started,
            as_sent: None,
        }
    }

    /// The settings of the dialect whose rules hold.
    #[inline]
    pub fn settings(&self) -> &'c DialectSettings {
        self.serving.published.snapshot.settings(self.dialect)
    }

    /// What puts refusals into the words of that dialect.
    #[inline]
    pub fn error_renderer(&self) -> &'c dyn ErrorRenderer {
        self.worker.shared.error_renderers.get(self.dialect)
    }

    /// Whether the client asked with HEAD.
    #[inline]
    pub fn is_head(&self) -> bool {
        self.is_head
    }

    /// When the call began.
    #[inline]
    pub fn started(&self) -> Instant {
        self.started
    }

    async fn run(&mut self) -> (ConnectionFate, Option<usize>) {
        let snapshot = &self.serving.published.snapshot;
        if snapshot.tls.requests_client_certificate && self.is_misdirected(&snapshot.tls) {
            // The client should use another connection for its next call.
            self.head.keep_alive &= self.client.stream().is_some();
            let status = self.error_renderer().misdirected_status();
            let refusal = Refusal::with_status(RefusalKind::BadRequest("the Host"), status);
            return (self.stop(refusal.into(), &Chain::default(), None).await, None);
        }
        let found = match self.find_route().await {
            Ok(found) => found,
            Err(stop) => return (self.stop(stop, &Chain::default(), None).await, None),
        };
        if snapshot.tls.requests_client_certificate && self.lacks_certificate(&snapshot.tls) {
            let refusal = RefusalKind::BadRequest("the client's certificate, which is missing").into();
            return (self.stop(refusal, &Chain::default(), None).await, None);
        }
        if self.head.connect_port.is_some() {
            return Box::pin(self.run_connect(found)).await;
        }
        let Some(found) = found else {
            let stop = match self.run_request_work(&snapshot.unmatched).await {
                Ok(()) => RefusalKind::NoRoute.into(),
                Err(stop) => stop,
            };
            return (self.stop(stop, &snapshot.unmatched, None).await, None);
        };
        let route: &Route = &snapshot.routes[found.route as usize];
        let after = match self.run_route(route, &found).await {
            Ok(after) => after,
            Err(stop) => self.stop(stop, &route.chain, Some(route)).await,
        };
        (after, Some(found.route as usize))
    }

    /// Whether the call is for a host whose clients must show a certificate, on a connection that was made for
    /// another (RFC 9110, 7.4), or before that was asked of it.
    #[cold]
    fn is_misdirected(&self, tls: &ServerTls) -> bool {
        let Some(agreed) = &self.client.tls else {
            return false;
        };
        let request = &self.exchange.request;
        let host = std::str::from_utf8(&request.host).ok();
        let Some(wanted) = tls.find(host).filter(|wanted| wanted.requests_client_certificate) else {
            return false;
        };
        let by_name = tls.find(request.sni.as_deref());
        let is_for_host = by_name.is_some_and(|by_name| Arc::ptr_eq(by_name, wanted));
        let has_shown = agreed
            .presented
            .as_ref()
            .is_some_and(|made| Arc::ptr_eq(made, wanted) || made.satisfies(wanted));
        !(is_for_host && has_shown)
    }

    /// Whether the client has shown no certificate, and the call's path is not exempt. The path is that of the route's
    /// dialect: what is exempt and what is served are the same.
    #[cold]
    fn lacks_certificate(&self, tls: &ServerTls) -> bool {
        let Some(agreed) = &self.client.tls else {
            return false;
        };
        let request = &self.exchange.request;
        let by_host = tls.find(std::str::from_utf8(&request.host).ok());
        // A connection that was made for a name with exempt paths does not serve the others' by naming another host.
        let mut wanted = agreed.presented.iter().chain(by_host);
        agreed.certificates.is_none()
            && wanted.any(|wanted| {
                let exempt = wanted.exempt_paths.as_ref();
                exempt.is_some_and(|exempt| !exempt.is_match(&request.path))
            })
    }

    /// Looks into the route table of each dialect; the first that has a route for the call takes it.
    async fn find_route(&mut self) -> Result<Option<RouteMatch>, ShortCircuit> {
        let snapshot = &self.serving.published.snapshot;
        for table in &snapshot.tables {
            if !self.enter_dialect(table.dialect) {
                continue;
            }
            let keeps_slashes = snapshot.settings(table.dialect).keeps_escaped_slashes;
            let request = &mut self.exchange.request;
            let normal_path = keeps_slashes.then(|| request.keep_escaped_slashes()).flatten();
            let found = if table.needs_body() {
                self.find_by_body(table).await
            } else {
                Ok(table.find(self.exchange))
            };
            if let Some(path) = normal_path {
                self.exchange.request.path = path;
            }
            let found = found?;
            self.check_work()?;
            if found.is_some() {
                return Ok(found);
            }
        }
        match self.enter_dialect(snapshot.dialect) {
            true => Ok(None),
            false => Err(RefusalKind::BadRequest("the path").into()),
        }
    }

    /// Takes the call for one of this dialect: its rules for paths, and for who the client is. Returns whether the path
    /// means anything by those rules.
    fn enter_dialect(&mut self, dialect: DialectName) -> bool {
        self.dialect = dialect;
        if let Some(headers) = self.as_sent.take() {
            self.exchange.request.headers = *headers;
        }
        let settings = self.settings();
        self.read_client_address(settings);
        let request = &mut self.exchange.request;
        request.max_graphql_bytes = settings.graphql_max_bytes.unwrap_or(MAX_VARIABLE_BODY);
        if let Some(trusted) = &settings.forwarded_from
            && (self.head.has_forwarded || self.head.has_forwarded_list)
        {
            self.as_sent = Some(Box::new(request.headers.clone()));
            untrusted::strip_headers(trusted, request);
        }
        let dialect = self.error_renderer();
        let request = &mut self.exchange.request;
        if request.raw_path == b"*" {
            request.path.clear();
            request.path_with_parameters.clear();
            request.lacks_tail_slash = false;
            request.path.push(b'*');
            return dialect.takes_asterisk();
        }
        let rules = settings.path_rules(dialect.normal_form());
        request.normalize_path(rules).is_ok()
    }

    /// Looks into a table some of whose conditions are over the request's body.
    async fn find_by_body(&mut self, table: &RouteTable) -> Result<Option<RouteMatch>, ShortCircuit> {
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
    fn read_client_address(&mut self, settings: &DialectSettings) {
        let request = &mut self.exchange.request;
        request.client = request.peer.ip();
        request.client_port = None;
        if let Some(real_ip) = &settings.real_ip
            && let Some(value) = request.headers.get_all(&real_ip.header).last()
            && real_ip.trusts(request.client)
            && let Some(last) = value.rsplit(|byte| *byte == b',').next()
            && let Some(address) = std::str::from_utf8(last)
                .ok()
                .and_then(|text| text.trim().parse().ok())
        {
            request.client = address;
        }
    }

    /// Serves a `CONNECT`. Only routes that allow it take it, whatever else they match.
    async fn run_connect(&mut self, found: Option<RouteMatch>) -> (ConnectionFate, Option<usize>) {
        let snapshot = &self.serving.published.snapshot;
        let found = found.map(|found| (&snapshot.routes[found.route as usize], found));
        let Some((route, found)) = found.filter(|(route, _)| route.rules.connect) else {
            let stop = RefusalKind::MethodNotAllowed.into();
            let after = self.stop(stop, &Chain::default(), None).await;
            return (linger(after), None);
        };
        let after = match self.run_route(route, &found).await {
            Ok(after) => after,
            Err(stop) => linger(self.stop(stop, &route.chain, Some(route)).await),
        };
        (after, Some(found.route as usize))
    }

    async fn run_route(&mut self, route: &Route, found: &RouteMatch) -> Result<ConnectionFate, ShortCircuit> {
        if self.settings().plain_header_names {
            self.exchange.request.headers.remove_odd_names();
        }
        if let Some(limit) = route.rules.max_body_bytes {
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
            self.exchange.route = Some(self.serving.route_infos.get(found.route, &route.facts));
            self.exchange.matched_len = found.matched_len;
        }
        if let Some(status) = route.rules.https_only_status
            && let Some(refusal) = self.refuse_cleartext(status, route.rules.dialect)
        {
            return Err(refusal.into());
        }
        if let Some(status) = route.rules.grpc_only_status
            && !grpc::is_call(self.exchange)
        {
            return Err(Refusal::with_status(RefusalKind::NoService, status).into());
        }
        if let Action::Reject(status) = route.rules.action {
            // A native route that answers 404 takes what no other route does: it is refused as if there were none.
            let kind = match route.facts.dialect == DialectName::NATIVE && status == 404 {
                true => RefusalKind::NoRoute,
                false => RefusalKind::NoService,
            };
            return Err(Refusal::with_status(kind, status).into());
        }
        if route.chain.has_request_work {
            self.exchange.set_unix_ms(self.worker.unix_ms(self.started));
            self.run_request_work(&route.chain).await?;
        }
        if !self.exchange.background_requests.is_empty() {
            self.send_background_requests();
        }
        let destinations = &self.serving.published.snapshot.destinations;
        if let Some(forward) = (self.exchange.destination).and_then(|id| destinations.get(id.0 as usize)) {
            return self.forward(route, forward, found).await;
        }
        match &route.rules.action {
            Action::Forward(forward) => self.forward(route, forward, found).await,
            Action::Unavailable(status) | Action::Reject(status) => {
                Err(Refusal::with_status(RefusalKind::NoService, *status).into())
            }
        }
    }

    /// Whether anything on the way may ask for the route's name. Most routes do without the shared count.
    fn needs_facts(&self, route: &Route) -> bool {
        let upstreams = &self.serving.published.snapshot.upstreams;
        let hashes = |upstream: u32| !upstreams[upstream as usize].hash_on.is_empty();
        !route.chain.steps.is_empty()
            || matches!(&route.rules.action, Action::Forward(it) if hashes(it.upstream))
    }

    /// Refuses a call that did not come over TLS. A trusted proxy says whether its client's did, and to which host.
    fn refuse_cleartext(&self, status: u16, dialect: DialectName) -> Option<Refusal> {
        let request = &self.exchange.request;
        let settings = self.serving.published.snapshot.settings(dialect);
        let is_proxy = settings.trusts_proxy(request.peer.ip());
        let trusted_header = |name: &[u8]| request.headers.get(name).filter(|_| is_proxy);
        let is_over_tls = match trusted_header(b"x-forwarded-proto") {
            Some(scheme) => scheme == b"https",
            None => request.is_tls,
        };
        if is_over_tls {
            return None;
        }
        let mut refusal = Refusal::with_status(RefusalKind::HttpsRequired, status);
        if (300..400).contains(&status) {
            let mut location = b"https://".to_vec();
            location.extend_from_slice(trusted_header(b"x-forwarded-host").unwrap_or(&request.host));
            location.extend_from_slice(&request.raw_path);
            if let Some(query) = &request.query {
                location.push(b'?');
                location.extend_from_slice(query);
            }
            refusal
                .headers
                .push(("Location".into(), String::from_utf8_lossy(&location).into_owned()));
        }
        Some(refusal)
    }

    /// Answers in place of what would come next.
    pub async fn stop(&mut self, stop: ShortCircuit, chain: &Chain, route: Option<&Route>) -> ConnectionFate {
        let reply = match stop {
            ShortCircuit::Gone => {
                self.report.aborted = true;
                return ConnectionFate::Close;
            }
            ShortCircuit::Refuse(refusal) => self.render(&refusal),
            ShortCircuit::Reply(reply) => *reply,
            ShortCircuit::Events(open) => return Box::pin(self.send_events(*open, chain, route)).await,
        };
        self.send_reply(reply, chain, route).await
    }
}
