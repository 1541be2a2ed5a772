//! The API behind the gateways: one NGINX process that gives the same body on every path, over HTTP/1.1 on one port, over
//! HTTP/2 in cleartext on another, which speaks gRPC too, and over HTTP/1.1 and TLS on a third.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::certificate;
use crate::client;
use crate::experiment::{Experiment, WireProtocol, grpc_message};
use crate::gateway::{Gateway, Listeners, StopSignal};
use crate::process::{Process, StartOptions, Supervisor, find_program, free_addresses};
use crate::running::open_files;
use crate::template::{Values, render};

const START_LIMIT: Duration = Duration::from_secs(10);
/// The longest body that NGINX takes inside its configuration; longer ones are a file.
const MAX_INLINE_BODY: usize = 2048;

/// What the API answers over HTTP/2; over HTTP/1.1 it is always the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseKind {
    /// A body of this length.
    Body(usize),
    /// A message of gRPC, with its framing of this length.
    Message(usize),
}

impl ResponseKind {
    /// What an experiment needs.
    pub fn of(experiment: &Experiment) -> Self {
        match experiment.setup.speaks {
            WireProtocol::Grpc => Self::Message(experiment.body_bytes),
            _ => Self::Body(experiment.body_bytes),
        }
    }

    fn length(self) -> usize {
        match self {
            Self::Body(length) | Self::Message(length) => length,
        }
    }
}

/// The API, serving until dropped.
#[derive(Debug)]
pub struct Upstream {
    /// Its address for HTTP/1.1.
    pub address: SocketAddr,
    listeners: Listeners,
    /// Its processes.
    pub process: Process,
}

impl Upstream {
    /// Starts it on `core` in the new directory `directory`.
    ///
    /// # Errors
    /// NGINX is missing or does not come up.
    pub fn start(
        directory: &Path,
        answer: ResponseKind,
        core: usize,
        supervisor: &Supervisor,
    ) -> Result<Self> {
        let program = find_program("nginx").context("not found: nginx (apt-get install nginx)")?;
        fs::create_dir(directory).with_context(|| format!("creating {}", directory.display()))?;
        let dir = directory
            .to_str()
            .context("the temporary directory's name is not UTF-8")?;
        let [http1, http2, https] = free_addresses()?;
        let listeners = Listeners { http1, http2, https };
        let file = directory.join("api.conf");
        fs::write(&file, configuration(directory, listeners, answer)?)
            .context("writing the upstream's configuration")?;
        let arguments = ["-e", "stderr", "-p", dir, "-g", "daemon off;", "-c"].map(OsString::from);
        let process = supervisor.start(&StartOptions {
            program: &program,
            arguments: [&arguments[..], &[file.into_os_string()]].concat(),
            environment: Vec::new(),
            cores: vec![core],
            log: &directory.join("log"),
            stop: StopSignal::Term,
        })?;
        let mut upstream = Self {
            address: http1,
            listeners,
            process,
        };
        upstream.wait_until_ready(answer.length())?;
        upstream.process.note_members();
        Ok(upstream)
    }

    /// Its address for a gateway in an experiment.
    pub fn address_for(&self, gateway: &Gateway, experiment: &Experiment) -> SocketAddr {
        gateway.upstream_for(experiment, &self.listeners)
    }

    fn wait_until_ready(&mut self, body_bytes: usize) -> Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            if let Ok(response) = client::get(self.address, "/", &[]) {
                if response.status == 200 && response.body.len() == body_bytes {
                    return Ok(());
                }
                bail!("the upstream answers wrongly: {}", response.summary());
            }
            if self.process.ended()?.is_some() || Instant::now() >= deadline {
                bail!("the upstream does not start:\n{}", self.process.last_words());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Its configuration for these addresses. Its certificate, and what is too long for a configuration, is written into
/// `directory`.
///
/// # Errors
/// The body or the certificate cannot be written.
pub fn configuration(directory: &Path, listeners: Listeners, answer: ResponseKind) -> Result<String> {
    let dir = directory.to_str().context("a path that is not UTF-8")?;
    let shown = certificate::of_this_run(false)?;
    for (name, text) in [("certificate.pem", &shown.certificate), ("key.pem", &shown.key)] {
        fs::write(directory.join(name), text).context("writing the upstream's certificate")?;
    }
    let length = answer.length();
    let body = "x".repeat(length);
    if let ResponseKind::Message(length) = answer {
        let framing = grpc_message(0).len();
        fs::write(
            directory.join("message"),
            grpc_message(length.saturating_sub(framing)),
        )
        .context("writing the upstream's message")?;
    }
    let whole = match length {
        0 => "return 200 \"\";".to_owned(),
        1..=MAX_INLINE_BODY => format!("return 200 \"{body}\";"),
        _ => {
            fs::write(directory.join("body"), body).context("writing the upstream's body")?;
            format!("sendfile on; open_file_cache max=10; rewrite ^ /body break; root {dir};")
        }
    };
    let mut values = Values::default();
    values
        .text("dir", dir)
        .text("listen", listeners.http1)
        .text("listen_http2", listeners.http2)
        .text("listen_https", listeners.https)
        .text("answer", whole)
        .flag("body", matches!(answer, ResponseKind::Body(_)))
        .flag("message", matches!(answer, ResponseKind::Message(_)))
        .text("open_files", open_files());
    render(include_str!("../upstream/api.conf"), &values)
}
