//! Calls to the members of an etcd: one after the other until one answers, logged in if a user is given.

use super::location::{Location, Tls};
use super::wire::{
    AuthenticateRequest, AuthenticateResponse, RangeRequest, RangeResponse, TxnRequest, TxnResponse,
    WatchCreateRequest, WatchRequest, WatchResponse,
};
use crate::store::StoreError;
use prost::Message;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::tokio_stream::{self, StreamExt};
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status, Streaming};

/// How long one member may take to answer.
const ATTEMPT: Duration = Duration::from_secs(3);
/// How long all of them may take together.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long they may take to find out what became of a change: longer than it takes them to agree on a new leader.
const CHANGE_DEADLINE: Duration = Duration::from_secs(12);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(100);
const CONNECT: Duration = Duration::from_secs(2);
/// etcd closes connections on which it is asked more often than every five seconds whether it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(3);

/// The members.
#[derive(Debug)]
pub struct Client {
    members: Vec<Channel>,
    /// The one that answered last.
    current: AtomicUsize,
    user: Option<(String, String)>,
    token: Mutex<Option<AsciiMetadataValue>>,
}

/// Why a call has no answer.
#[derive(Debug)]
pub enum ClientError {
    /// It asked for a revision that etcd no longer has, or not yet.
    Compacted,
    /// No member could say what became of it.
    Lost(StoreError),
    /// It was refused, and changed nothing.
    Refused(StoreError),
}

impl ClientError {
    /// As an error of the store, for a call without a certain revision.
    pub fn into_error(self) -> StoreError {
        match self {
            Self::Compacted => StoreError::Failed("etcd no longer has the revision that is read".into()),
            Self::Lost(error) | Self::Refused(error) => error,
        }
    }

    fn new(status: &Status) -> Self {
        let text = status.message().to_owned();
        match status.code() {
            Code::OutOfRange => Self::Compacted,
            Code::ResourceExhausted if text.contains("space exceeded") => {
                Self::Refused(StoreError::Full(text))
            }
            Code::DataLoss => Self::Refused(StoreError::Damaged(text)),
            Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::Unimplemented
            | Code::NotFound
            | Code::ResourceExhausted => Self::Refused(StoreError::Failed(text)),
            _ => Self::Lost(StoreError::Unreachable(text)),
        }
    }
}

/// Whether another login may help.
fn is_logged_out(status: &Status) -> bool {
    let messages = [
        "invalid auth token",
        "user name is empty",
        "revision of auth store is old",
    ];
    messages.iter().any(|text| status.message().contains(text))
}

impl Client {
    /// Makes no connection yet. Must be called on a runtime.
    pub fn new(location: &Location) -> Result<Self, StoreError> {
        let scheme = if location.tls.is_some() { "https" } else { "http" };
        let tls = location.tls.as_ref().map(tls_config).transpose()?;
        let member = |address: &String| {
            let failed = |error: tonic::transport::Error| StoreError::Failed(format!("{address}: {error}"));
            let endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
                .map_err(failed)?
                .connect_timeout(CONNECT)
                .tcp_nodelay(true)
                .http2_keep_alive_interval(KEEP_ALIVE)
                .keep_alive_timeout(KEEP_ALIVE_ANSWER)
                .keep_alive_while_idle(true);
            let endpoint = match &tls {
                Some(tls) => endpoint.tls_config(tls.clone()).map_err(failed)?,
                None => endpoint,
            };
            Ok(endpoint.connect_lazy())
        };
        let members: Result<Vec<Channel>, StoreError> = location.members.iter().map(member).collect();
        Ok(Self {
            members: members?,
            current: AtomicUsize::new(0),
            user: location.user.clone(),
            token: Mutex::new(None),
        })
    }

    fn member(&self) -> (usize, Grpc<Channel>) {
        let number = self.current.load(Ordering::Relaxed) % self.members.len();
        let grpc = Grpc::new(self.members[number].clone())
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX);
        (number, grpc)
    }

    /// Leaves a member that did not answer, if no other call has done so.
    fn leave(&self, number: usize) {
        let next = (number + 1) % self.members.len();
        let _ = self
            .current
            .compare_exchange(number, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Calls until a member answers.
    pub async fn call<Q, A>(&self, path: &'static str, question: Q) -> Result<A, ClientError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        self.call_within(DEADLINE, path, question).await
    }

    async fn call_within<Q, A>(
        &self,
        deadline: Duration,
        path: &'static str,
        question: Q,
    ) -> Result<A, ClientError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let (mut last, mut may_log_in) = (None, true);
        let attempts = async {
            loop {
                let (number, grpc) = self.member();
                let call = self.call_once(grpc, path, question.clone());
                let status = match tokio::time::timeout(ATTEMPT, call).await {
                    Ok(Ok(answer)) => return Ok(answer),
                    Ok(Err(status)) => status,
                    Err(_) => Status::unavailable("it does not answer"),
                };
                if is_logged_out(&status) && may_log_in {
                    may_log_in = false;
                    self.forget(&status);
                    continue;
                }
                match ClientError::new(&status) {
                    lost @ ClientError::Lost(_) => last = Some(lost),
                    fault => return Err(fault),
                }
                self.leave(number);
                tokio::time::sleep(PAUSE).await;
            }
        };
        match tokio::time::timeout(deadline, attempts).await {
            Ok(done) => done,
            Err(_) => Err(last
                .unwrap_or_else(|| ClientError::Lost(StoreError::Unreachable("no member answers".into())))),
        }
    }

    async fn call_once<Q, A>(
        &self,
        mut grpc: Grpc<Channel>,
        path: &'static str,
        question: Q,
    ) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut request = Request::new(question);
        self.log_in(&mut grpc, &mut request).await?;
        unary(&mut grpc, path, request).await
    }

    /// Puts the token into a call, and asks for one if there is none yet.
    async fn log_in<Q>(&self, grpc: &mut Grpc<Channel>, request: &mut Request<Q>) -> Result<(), Status> {
        let Some((name, password)) = self.user.clone() else {
            return Ok(());
        };
        let known = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let token = match known {
            Some(token) => token,
            None => {
                let login = Request::new(AuthenticateRequest { name, password });
                let answer: AuthenticateResponse =
                    unary(grpc, "/etcdserverpb.Auth/Authenticate", login).await?;
                let token = AsciiMetadataValue::try_from(answer.token)
                    .map_err(|_| Status::unauthenticated("etcd's token is not a header"))?;
                *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
                token
            }
        };
        request
            .metadata_mut()
            .insert(AsciiMetadataKey::from_static("token"), token);
        Ok(())
    }

    pub async fn range(&self, range: RangeRequest) -> Result<RangeResponse, ClientError> {
        self.call("/etcdserverpb.KV/Range", range).await
    }

    pub async fn txn(&self, txn: TxnRequest) -> Result<TxnResponse, ClientError> {
        self.call("/etcdserverpb.KV/Txn", txn).await
    }

    /// A transaction that changes something. It may be sent more than once.
    pub async fn change(&self, txn: TxnRequest) -> Result<TxnResponse, ClientError> {
        self.call_within(CHANGE_DEADLINE, "/etcdserverpb.KV/Txn", txn)
            .await
    }

    /// Opens a watch, which ends when its member is lost, or has lost its leader.
    pub async fn watch(&self, create: WatchCreateRequest) -> Result<Streaming<WatchResponse>, ClientError> {
        let (number, mut grpc) = self.member();
        let open = async {
            // A stream that ended would end the watch.
            let questions = tokio_stream::once(WatchRequest { create: Some(create) });
            let mut request = Request::new(questions.chain(tokio_stream::pending()));
            self.log_in(&mut grpc, &mut request).await?;
            request.metadata_mut().insert(
                AsciiMetadataKey::from_static("hasleader"),
                AsciiMetadataValue::from_static("true"),
            );
            ready(&mut grpc).await?;
            let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
            let codec = tonic_prost::ProstCodec::<WatchRequest, WatchResponse>::default();
            grpc.streaming(request, path, codec).await
        };
        let opened = tokio::time::timeout(ATTEMPT, open).await;
        let opened = opened.unwrap_or_else(|_| Err(Status::unavailable("it does not answer")));
        opened.map(tonic::Response::into_inner).map_err(|status| {
            self.forget(&status);
            self.leave(number);
            ClientError::new(&status)
        })
    }

    /// Why a watch ended. The next one is asked of another member.
    pub fn watch_lost(&self, status: &Status) -> ClientError {
        self.forget(status);
        self.leave(self.member().0);
        ClientError::new(status)
    }

    fn forget(&self, status: &Status) {
        if is_logged_out(status) {
            *self.token.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
}

async fn ready(grpc: &mut Grpc<Channel>) -> Result<(), Status> {
    let ready = grpc.ready().await;
    ready.map_err(|error| Status::unavailable(error.to_string()))
}

async fn unary<Q, A>(grpc: &mut Grpc<Channel>, path: &'static str, request: Request<Q>) -> Result<A, Status>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    ready(grpc).await?;
    let codec = tonic_prost::ProstCodec::<Q, A>::default();
    let answer = grpc.unary(request, PathAndQuery::from_static(path), codec).await;
    Ok(answer?.into_inner())
}

fn tls_config(tls: &Tls) -> Result<ClientTlsConfig, StoreError> {
    let read = |path: &std::path::Path| {
        std::fs::read(path).map_err(|error| StoreError::Failed(format!("{}: {error}", path.display())))
    };
    let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(&tls.authority)?));
    if let Some((certificate, key)) = &tls.identity {
        config = config.identity(Identity::from_pem(read(certificate)?, read(key)?));
    }
    if let Some(name) = &tls.name {
        config = config.domain_name(name);
    }
    Ok(config)
}
