//! A real fleet on this machine: one control plane on one core, some gateways on another, a relay between each gateway
//! and the control plane that counts bytes. It measures what single things cost; it draws no conclusions.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::model::Change;
use crate::bench::Bench;
use crate::client::request;
use crate::control_plane::{call, wait_until_ready, wait_until_served};
use crate::cpu::{Clock, CpuTime};
use crate::gateway::StopSignal;
use crate::loopback::LoopbackServer;
use crate::process::{Process, StartOptions, free_addresses};
use crate::procfs::resident_kib;
use crate::sender::{LoadPlan, send};
use crate::upstream::Upstream;

/// The load ends by itself after this long, if a change is never served.
const LONGEST: Duration = Duration::from_secs(180);
/// Memory is read after this long without work.
const SETTLE: Duration = Duration::from_secs(2);
/// Changes that are made one after the other.
const CHANGES: u32 = 60;
const CONNECTIONS: usize = 20;
const SERVICE: &str = "5f3e1c80-0000-4000-8000-000000000001";

/// What is asked of a real fleet.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Gateways.
    pub gateways: u32,
    /// Routes.
    pub routes: u32,
    /// Consumers, each with one key.
    pub consumers: u32,
    /// Calls a second over all gateways, while changes are made.
    pub rate: u32,
}

/// What a real fleet showed. Bytes, and seconds.
#[derive(Debug, Clone)]
pub struct FleetCost {
    pub documents: f64,
    pub control_memory: f64,
    pub gateway_memory: f64,
    pub store_bytes: f64,
    /// Until all gateways served that were started at once.
    pub first_read: f64,
    /// CPU of the control plane for it, for each gateway.
    pub first_read_control: f64,
    pub first_read_bytes: f64,
    /// Changes with the time until the last gateway served them.
    pub changes: Vec<Change>,
    /// Bytes on all streams for one change.
    pub change_bytes: f64,
    pub control_cpu: f64,
    /// CPU of one gateway for one change, calls taken off.
    pub gateway_cpu: f64,
    pub call_cpu: f64,
    pub failed_calls: u64,
}

struct Gateway {
    process: Process,
    proxy: SocketAddr,
    received: Arc<AtomicU64>,
    _relay: LoopbackServer,
}

struct Fleet {
    control: Process,
    gateways: Vec<Gateway>,
    admin: SocketAddr,
    clock: Clock,
    store: PathBuf,
}

/// Starts a fleet of this size, measures it and ends it.
///
/// # Errors
/// A process does not start, a write is refused, or a change is not served in time.
pub fn run(bench: &Bench, program: &Path, upstream: &Upstream, size: Size, name: &str) -> Result<FleetCost> {
    let directory = bench.directory(name)?;
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
    let [status, admin, console] = free_addresses()?;
    let store = directory.join("control");
    let control = start(
        "control",
        bench.pinning.upstream,
        &[
            "--role",
            "control",
            "--data",
            &store.to_string_lossy(),
            "--status",
            &status.to_string(),
            "--kong-admin-config",
            "--kong-admin",
            &admin.to_string(),
            "--console",
            &console.to_string(),
        ],
    )?;
    wait_until_ready("the control plane", status)?;
    call(admin, "POST", "/config", &configuration(upstream.address, size))?;
    thread::sleep(SETTLE);
    let clock = bench.clock;
    let before = seconds(&control, clock);
    let begun = Instant::now();
    let mut gateways = Vec::new();
    for number in 0..size.gateways {
        let [of_gateway, proxy] = free_addresses()?;
        let received = Arc::new(AtomicU64::new(0));
        let relay = relay(console, Arc::clone(&received))?;
        let name = format!("gateway-{number}");
        let process = start(
            &name,
            bench.pinning.gateway,
            &[
                "--role",
                "gateway",
                "--control",
                &format!("http://{}", relay.address),
                "--data",
                &directory.join(&name).to_string_lossy(),
                "--status",
                &of_gateway.to_string(),
                "--listen",
                &proxy.to_string(),
                "--workers",
                "1",
            ],
        )?;
        gateways.push(Gateway {
            process,
            proxy,
            received,
            _relay: relay,
        });
    }
    let last = path(size.routes - 1, 0);
    for gateway in &gateways {
        wait_until_served(gateway.proxy, &last)?;
    }
    let first_read = begun.elapsed().as_secs_f64();
    let each = f64::from(size.gateways);
    let first_read_control = (seconds(&control, clock) - before) / each;
    thread::sleep(SETTLE);
    let fleet = Fleet {
        control,
        gateways,
        admin,
        clock,
        store,
    };
    let first_read_bytes = fleet.received() / each;
    let call_cpu = fleet.cost_of_calls(size.rate)?;
    let during = fleet.changes(size, call_cpu)?;
    Ok(FleetCost {
        documents: f64::from(size.routes) + 2.0 * f64::from(size.consumers),
        control_memory: memory(&fleet.control),
        gateway_memory: fleet.gateways.iter().map(|it| memory(&it.process)).sum::<f64>() / each,
        store_bytes: folder_bytes(&fleet.store)?,
        first_read,
        first_read_control,
        first_read_bytes,
        call_cpu,
        ..during
    })
}

impl Fleet {
    fn received(&self) -> f64 {
        self.gateways
            .iter()
            .map(|it| it.received.load(Ordering::Relaxed) as f64)
            .sum()
    }

    fn gateway_seconds(&self) -> f64 {
        self.gateways
            .iter()
            .map(|it| seconds(&it.process, self.clock))
            .sum()
    }

    /// CPU seconds of a gateway for one call, without changes.
    fn cost_of_calls(&self, rate: u32) -> Result<f64> {
        let before = self.gateway_seconds();
        let record = self.send(rate, Duration::from_secs(5), &AtomicBool::new(false))?;
        if record.failed() > 0 {
            bail!("calls: {}", record.failures());
        }
        Ok((self.gateway_seconds() - before) / record.calls as f64)
    }

    /// Calls to the first gateway; the others are equal, and a load for each would share the core with the control plane.
    fn send(&self, rate: u32, length: Duration, stop: &AtomicBool) -> Result<crate::sender::Record> {
        let target = self.gateways.first().context("a fleet without gateways")?.proxy;
        let plan = LoadPlan {
            target,
            requests: vec![request("GET", "/hello", target, &[])],
            rate: (rate / self.gateways.len() as u32).max(1),
            connections: CONNECTIONS,
            warm_up: Duration::ZERO,
            length,
        };
        send(&plan, stop)
    }

    /// Makes changes one after the other, each when all gateways serve the one before, under the load of one gateway.
    fn changes(&self, size: Size, call_cpu: f64) -> Result<FleetCost> {
        let stop = AtomicBool::new(false);
        let begun = (
            seconds(&self.control, self.clock),
            self.gateway_seconds(),
            self.received(),
        );
        let (changes, record) = thread::scope(|scope| {
            let load = scope.spawn(|| self.send(size.rate, LONGEST, &stop));
            let changes: Result<Vec<Change>> =
                (1..=CHANGES).map(|number| self.change(size, number)).collect();
            stop.store(true, Ordering::Relaxed);
            let record = load.join().map_err(|_| anyhow::anyhow!("the load panicked"))?;
            anyhow::Ok((changes?, record?))
        })?;
        let made = f64::from(CHANGES);
        let of_gateways = self.gateway_seconds() - begun.1 - record.calls as f64 * call_cpu;
        Ok(FleetCost {
            changes,
            change_bytes: (self.received() - begun.2) / made,
            control_cpu: (seconds(&self.control, self.clock) - begun.0) / made,
            gateway_cpu: (of_gateways / made / self.gateways.len() as f64).max(0.0),
            failed_calls: record.failed(),
            documents: 0.0,
            control_memory: 0.0,
            gateway_memory: 0.0,
            store_bytes: 0.0,
            first_read: 0.0,
            first_read_control: 0.0,
            first_read_bytes: 0.0,
            call_cpu,
        })
    }

    fn change(&self, size: Size, number: u32) -> Result<Change> {
        let at = number.wrapping_mul(2_654_435_761) % size.routes;
        let path = path(at, number);
        let body = json!({"paths": [path], "service": {"id": SERVICE}}).to_string();
        let begun = Instant::now();
        call(self.admin, "PUT", &format!("/routes/{}", id(at)), &body)?;
        let commit = begun.elapsed().as_secs_f64();
        for gateway in &self.gateways {
            wait_until_served(gateway.proxy, &path)?;
        }
        Ok(Change {
            commit,
            serve: begun.elapsed().as_secs_f64() - commit,
        })
    }
}

/// Passes bytes between a gateway and the control plane and counts those that the gateway receives.
fn relay(control: SocketAddr, received: Arc<AtomicU64>) -> Result<LoopbackServer> {
    LoopbackServer::start("relay", move |from_gateway| {
        let to_control = TcpStream::connect(control).context("connecting to the control plane")?;
        to_control.set_nodelay(true).context("setting TCP_NODELAY")?;
        from_gateway.set_nodelay(true).context("setting TCP_NODELAY")?;
        let (mut up_from, mut up_to) = (from_gateway.try_clone()?, to_control.try_clone()?);
        thread::spawn(move || {
            let copied = std::io::copy(&mut up_from, &mut up_to);
            let _ = up_to.shutdown(Shutdown::Write);
            copied
        });
        let (mut from, mut to) = (to_control, from_gateway);
        let mut piece = vec![0; 64 << 10];
        loop {
            let length = from.read(&mut piece)?;
            if length == 0 {
                return to.shutdown(Shutdown::Both).context("closing");
            }
            received.fetch_add(length as u64, Ordering::Relaxed);
            to.write_all(&piece[..length])?;
        }
    })
}

fn seconds(process: &Process, clock: Clock) -> f64 {
    CpuTime::of(process.pid(), clock).total.as_secs_f64()
}

fn memory(process: &Process) -> f64 {
    resident_kib(process.pid()) as f64 * 1024.0
}

fn folder_bytes(folder: &Path) -> Result<f64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes as f64)
}

/// Ids that are far from each other, as random ones are.
fn id(at: u32) -> String {
    format!("{:08x}-1234-4000-8000-{at:012x}", at.wrapping_mul(2_654_435_761))
}

/// The path of a route after a change of this number.
fn path(at: u32, number: u32) -> String {
    format!("/routes/{at}/{number}")
}

fn configuration(upstream: SocketAddr, size: Size) -> String {
    let hello = json!({"id": id(u32::MAX), "paths": ["/hello"], "strip_path": false});
    let route = |at| json!({"id": id(at), "paths": [path(at, 0)]});
    let routes: Vec<Value> = (0..size.routes).map(route).chain([hello]).collect();
    let consumer = |at: u32| {
        let key = format!("key-of-consumer-{at:08}");
        json!({"username": format!("consumer-{at}"), "keyauth_credentials": [{"key": key}]})
    };
    let consumers: Vec<Value> = (0..size.consumers).map(consumer).collect();
    let service =
        json!({"id": SERVICE, "name": "api", "url": format!("http://{upstream}"), "routes": routes});
    json!({"_format_version": "3.0", "services": [service], "consumers": consumers}).to_string()
}
