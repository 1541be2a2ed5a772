//! Members of etcd on loopback, which live as long as the test.
//!
//! They are Debian's `etcd-server`, or whatever `etcd` is in `PATH`.

use crate::fixture::TIMEOUT;
use crate::ports::free_port;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use weir_store::Store;
use weir_store::etcd::EtcdStore;

/// A cluster with a folder for its data.
pub struct Cluster {
    members: Vec<Member>,
    /// What the location ends with; empty without TLS.
    query: String,
    /// After the members, so that it goes after them.
    _folder: TempDir,
}

struct Member {
    command: Vec<String>,
    client: u16,
    process: Option<Child>,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Member {
    fn start(&mut self) {
        let process = Command::new("etcd")
            .args(&self.command)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.process = Some(process.expect("etcd starts (Debian's package etcd-server, in PATH)"));
    }

    /// As if its machine had fallen.
    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it is killed");
            process.wait().expect("it ends");
        }
    }
}

impl Cluster {
    /// Starts so many members and waits until they serve.
    pub async fn start(count: usize, options: &[&str]) -> Self {
        Self::start_with(count, options, "").await
    }

    /// The same with TLS, if there is a query: what a location needs for it.
    pub async fn start_with(count: usize, options: &[&str], query: &str) -> Self {
        // Another process may take a port before the member does.
        for _ in 0..5 {
            let mut cluster = Self::new(count, options, query);
            cluster.members.iter_mut().for_each(Member::start);
            if cluster.serves(Duration::from_secs(20)).await {
                return cluster;
            }
        }
        panic!("etcd does not serve");
    }

    fn new(count: usize, options: &[&str], query: &str) -> Self {
        let scheme = if query.is_empty() { "http" } else { "https" };
        let folder = tempfile::tempdir().expect("a folder");
        let ports: Vec<(u16, u16)> = (0..count).map(|_| (free_port(), free_port())).collect();
        let peer = |(number, (_, peer)): (usize, &(u16, u16))| format!("m{number}=http://127.0.0.1:{peer}");
        let peers: Vec<String> = ports.iter().enumerate().map(peer).collect();
        let member = |(number, (client, peer)): (usize, &(u16, u16))| {
            let data = folder.path().join(format!("m{number}"));
            let command = [
                ("name", format!("m{number}")),
                ("data-dir", data.display().to_string()),
                ("listen-client-urls", format!("{scheme}://127.0.0.1:{client}")),
                ("advertise-client-urls", format!("{scheme}://127.0.0.1:{client}")),
                ("listen-peer-urls", format!("http://127.0.0.1:{peer}")),
                ("initial-advertise-peer-urls", format!("http://127.0.0.1:{peer}")),
                ("initial-cluster", peers.join(",")),
                ("heartbeat-interval", "50".into()),
                ("election-timeout", "500".into()),
            ];
            let command = command.map(|(name, value)| format!("--{name}={value}"));
            let options = options.iter().map(|option| (*option).to_owned());
            Member {
                command: command.into_iter().chain(options).collect(),
                client: *client,
                process: None,
            }
        };
        Self {
            members: ports.iter().enumerate().map(member).collect(),
            query: query.to_owned(),
            _folder: folder,
        }
    }

    async fn serves(&self, timeout: Duration) -> bool {
        let store = EtcdStore::connect(&self.location()).expect("a location");
        let begun = Instant::now();
        while begun.elapsed() < timeout {
            if store.read("").await.is_ok() {
                return true;
            }
        }
        false
    }

    /// The addresses of the members.
    pub fn location(&self) -> String {
        self.location_of(&(0..self.members.len()).collect::<Vec<_>>())
    }

    /// Where some of the members are.
    pub fn location_of(&self, numbers: &[usize]) -> String {
        let address = |number: &usize| format!("127.0.0.1:{}", self.members[*number].client);
        let addresses: Vec<String> = numbers.iter().map(address).collect();
        let scheme = if self.query.is_empty() { "etcd" } else { "etcds" };
        format!("{scheme}://{}/test{}", addresses.join(","), self.query)
    }

    pub fn kill(&mut self, number: usize) {
        self.members[number].kill();
    }

    pub fn restart(&mut self, number: usize) {
        self.members[number].start();
    }

    /// Calls the API of a member as another program would, with JSON, and returns the answer.
    pub fn call(&self, number: usize, path: &str, body: &str) -> String {
        self.try_call(number, path, body).expect("it answers")
    }

    fn try_call(&self, number: usize, path: &str, body: &str) -> std::io::Result<String> {
        let address = ("127.0.0.1", self.members[number].client);
        let mut connection = std::net::TcpStream::connect(address)?;
        let length = body.len();
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: etcd\r\nContent-Length: {length}\r\nConnection: close");
        write!(connection, "{head}\r\n\r\n{body}")?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// The leader, once all members are there and know it.
    pub fn leader(&self) -> usize {
        let field = |text: &str, name: &str| {
            let at = text.find(&format!("\"{name}\":\""))? + name.len() + 4;
            Some(text[at..].split('"').next()?.to_owned())
        };
        let status = |number| self.try_call(number, "/v3/maintenance/status", "{}");
        let begun = Instant::now();
        while begun.elapsed() < TIMEOUT {
            let all: Result<Vec<String>, _> = (0..self.members.len()).map(status).collect();
            let all = all.unwrap_or_default();
            let leader = all.first().and_then(|first| field(first, "leader"));
            let agreed =
                leader.filter(|leader| all.iter().all(|it| field(it, "leader").as_ref() == Some(leader)));
            if let Some(leader) = agreed {
                let is_leader = |text: &String| field(text, "member_id").as_ref() == Some(&leader);
                return all.iter().position(is_leader).expect("it is a member");
            }
        }
        panic!("the members find no leader");
    }
}
