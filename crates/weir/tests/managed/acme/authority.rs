//! Pebble, an ACME authority for tests, with a name server that knows every name as this machine.

use crate::ports::free_port;
use crate::support::until;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The name of the key for accounts that exist already, and the key.
pub const EXTERNAL: [&str; 2] = [
    "kid-1",
    "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W",
];

/// What the authority is like.
pub struct Authority {
    /// Seconds that its certificates are good.
    pub life: u64,
    /// Whether only accounts that exist already are taken.
    pub is_closed: bool,
    /// The ports at which it checks names over HTTP, and over TLS.
    pub ports: [u16; 2],
}

/// A running authority.
pub struct Pebble {
    programs: Vec<Child>,
    port: u16,
    /// Who has signed its own certificate, in PEM.
    pub authorities: String,
}

impl Pebble {
    /// Starts it in a folder; `None`: it is not installed.
    pub fn start(folder: &Path, authority: &Authority) -> Option<Self> {
        let (pebble, names) = (
            crate::tools::program("pebble")?,
            crate::tools::program("pebble-challtestsrv")?,
        );
        let (port, management, dns, dns_management) = (free_port(), free_port(), free_port(), free_port());
        let local = |port: u16| format!("127.0.0.1:{port}");
        let authorities = certificate(folder);
        let config = json!({"pebble": {
            "listenAddress": local(port),
            "managementListenAddress": local(management),
            "certificate": "pebble.crt",
            "privateKey": "pebble.key",
            "httpPort": authority.ports[0],
            "tlsPort": authority.ports[1],
            "externalAccountBindingRequired": authority.is_closed,
            "externalAccountMACKeys": {EXTERNAL[0]: EXTERNAL[1]},
            "keyAlgorithm": "ecdsa",
            "retryAfter": {"authz": 1, "order": 1},
            "profiles": {"default": {"description": "", "validityPeriod": authority.life}},
        }});
        std::fs::write(folder.join("pebble.json"), config.to_string()).expect("written");
        let run = |command: &mut Command| {
            command
                .current_dir(folder)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("it runs")
        };
        let mut command = Command::new(names);
        command.args(["-dnsserver", &local(dns), "-management", &local(dns_management)]);
        for unused in ["-http01", "-https01", "-tlsalpn01", "-doh", "-defaultIPv6"] {
            command.args([unused, ""]);
        }
        let name_server = run(&mut command);
        let mut command = Command::new(pebble);
        command
            .args(["-config", "pebble.json", "-dnsserver", &local(dns)])
            .env("PEBBLE_VA_NOSLEEP", "1")
            // By itself it refuses some good nonces by chance, at times more in a row than its client tries.
            .env("PEBBLE_WFE_NONCEREJECT", "0");
        let started = Self {
            programs: vec![name_server, run(&mut command)],
            port,
            authorities,
        };
        for port in [dns_management, port] {
            until("the authority listens", || {
                TcpStream::connect(("127.0.0.1", port)).is_ok()
            });
        }
        Some(started)
    }

    /// Its directory.
    pub fn directory(&self) -> String {
        format!("https://localhost:{}/dir", self.port)
    }

    /// An entry of `acme` for these names.
    pub fn entry(&self, hosts: &[&str]) -> Value {
        json!({
            "name": "main",
            "hosts": hosts,
            "directory": self.directory(),
            "authorities": self.authorities,
            "terms_accepted": true,
            "contact": ["mailto:ops@a.test"],
        })
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for program in &mut self.programs {
            // It may have ended by itself.
            let _ended = program.kill();
            let _ended = program.wait();
        }
    }
}

/// Writes the certificate of the authority's own server, and gives who has signed it.
fn certificate(folder: &Path) -> String {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = params.self_signed(&key).expect("signed").pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().expect("a key");
    let names = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    let signed = names.signed_by(&key, &issuer).expect("signed");
    for (name, text) in [("pebble.crt", signed.pem()), ("pebble.key", key.serialize_pem())] {
        std::fs::write(folder.join(name), text).expect("written");
    }
    authority
}
