//! A control plane and gateways that follow it, each a process of its own, and single calls of their APIs. It measures
//! nothing.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::bench::Bench;
use crate::client::{self, Response, request};
use crate::gateway::StopSignal;
use crate::process::{Process, StartOptions, free_addresses};

/// How long starting, and serving what was written, may take.
const TIMEOUT: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(1);
/// Niceness of the load and the upstream; only root may have it.
const FIRST: i32 = -10;

/// A gateway that follows the control plane.
pub struct Gateway {
    pub process: Process,
    pub proxy: SocketAddr,
}

/// The control plane and its gateways.
pub struct ControlPlane {
    pub process: Process,
    pub gateways: Vec<Gateway>,
    /// Kong's Admin API.
    pub admin: SocketAddr,
    /// The native API.
    pub console: SocketAddr,
}

impl ControlPlane {
    /// Starts a control plane on the upstream's core, and `gateways` that follow it on the gateway's core, with these
    /// further flags; all are ready.
    ///
    /// # Errors
    /// A process does not start, or is not ready in time.
    pub fn start(
        bench: &Bench,
        program: &Path,
        directory: &Path,
        gateways: u32,
        flags: &[&str],
    ) -> Result<Self> {
        fs::create_dir(directory).with_context(|| format!("creating {}", directory.display()))?;
        let start = |name: &str, core: usize, flags: &[&str]| {
            bench.supervisor.start(&StartOptions {
                program,
                arguments: ["run"].iter().chain(flags).map(OsString::from).collect(),
                environment: Vec::new(),
                cores: vec![core],
                log: &directory.join(format!("{name}.log")),
                stop: StopSignal::Term,
            })
        };
        let data = |name: &str| directory.join(name).to_string_lossy().into_owned();
        let [status, admin, console] = free_addresses()?;
        let control = [
            "--role",
            "control",
            "--data",
            &data("control"),
            "--status",
            &status.to_string(),
            "--kong-admin-config",
            "--kong-admin",
            &admin.to_string(),
            "--console",
            &console.to_string(),
        ];
        let process = start("control", bench.pinning.upstream, &control)?;
        wait_until_ready("the control plane", status)?;
        let started = (0..gateways).map(|at| {
            let name = format!("gateway-{at}");
            let [status, proxy] = free_addresses()?;
            let (data, status_text) = (data(&name), status.to_string());
            let (control, listen) = (format!("http://{console}"), proxy.to_string());
            let own = [
                "--role",
                "gateway",
                "--control",
                &control,
                "--data",
                &data,
                "--status",
                &status_text,
                "--listen",
                &listen,
                "--workers",
                "1",
            ];
            let process = start(&name, bench.pinning.gateway, &[&own[..], flags].concat())?;
            wait_until_ready(&name, status)?;
            Ok(Gateway { process, proxy })
        });
        Ok(Self {
            process,
            gateways: started.collect::<Result<_>>()?,
            admin,
            console,
        })
    }

    /// Waits until every gateway answers this path with status 200.
    ///
    /// # Errors
    /// One does not in time.
    pub fn wait_until_served(&self, path: &str) -> Result<()> {
        let mut gateways = self.gateways.iter();
        gateways.try_for_each(|gateway| wait_until_served(gateway.proxy, path))
    }
}

/// Has something go before all else on its core, if the system permits it.
pub fn first<T>(work: impl FnOnce() -> T) -> T {
    let _refused = rustix::process::setpriority_process(None, FIRST);
    let done = work();
    let _unchanged = rustix::process::setpriority_process(None, 0);
    done
}

/// Waits until a process says on its status address that it is ready.
///
/// # Errors
/// It does not in time.
pub fn wait_until_ready(what: &str, status: SocketAddr) -> Result<()> {
    wait_for(what, || {
        client::get(status, "/status/ready", &[]).is_ok_and(|it| it.status == 200)
    })
}

/// Waits until a gateway answers this path with status 200.
///
/// # Errors
/// It does not in time.
pub fn wait_until_served(proxy: SocketAddr, path: &str) -> Result<()> {
    wait_for(path, || {
        client::get(proxy, path, &[]).is_ok_and(|it| it.status == 200)
    })
}

fn wait_for(what: &str, holds: impl Fn() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !holds() {
        if begun.elapsed() > TIMEOUT {
            bail!("{what}: not after {} s", TIMEOUT.as_secs());
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// One call of an API with a JSON body, which has to go well.
///
/// # Errors
/// It is not answered in time, or not with status 200 or 201.
pub fn call(address: SocketAddr, method: &str, path: &str, body: &str) -> Result<Response> {
    let headers = [
        ("Connection", "close".to_owned()),
        ("Content-Type", "application/json".to_owned()),
        ("Content-Length", body.len().to_string()),
    ];
    let mut bytes = request(method, path, address, &headers);
    bytes.extend_from_slice(body.as_bytes());
    let answer = client::exchange(address, &bytes, TIMEOUT)?;
    match answer.status {
        200 | 201 => Ok(answer),
        _ => bail!("{method} {path}: {}", answer.summary()),
    }
}
