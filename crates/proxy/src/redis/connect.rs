//! Opening a connection to a Redis: finding the server, TLS, and who uses which database.

use super::RedisContext;
use super::resp::{self, MAX_REPLY, Value};
use crate::buffer::Inbox;
use crate::halves::{ReadHalf, WriteHalf};
use crate::pool::dial;
use rustls::pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use weir_plugin::{RedisAddress, RedisServer, RedisTopology};

/// The least time that each sentinel gets for its answer.
const SENTINEL_TIMEOUT: Duration = Duration::from_millis(50);

/// A connection that is ready for commands.
pub struct ReadyConnection {
    pub read: ReadHalf,
    pub write: WriteHalf,
    pub inbox: Inbox,
}

impl ReadyConnection {
    /// Sends a command and reads the reply to it.
    pub async fn ask(&mut self, around: &RedisContext, command: &[&[u8]]) -> io::Result<Value> {
        self.write.write_all(&resp::command(command)).await?;
        loop {
            let parsed = resp::parse(self.inbox.bytes());
            match parsed.map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))? {
                Some((value, size)) => {
                    self.inbox.consume(size);
                    match value {
                        Value::Push => {}
                        Value::Error(words) => return Err(io::Error::other(words)),
                        value => return Ok(value),
                    }
                }
                None => {
                    let Self { read, inbox, .. } = self;
                    let fill = |context: &mut std::task::Context<'_>| {
                        inbox.poll_fill(&mut *read, context, &around.buffers, MAX_REPLY)
                    };
                    if std::future::poll_fn(fill).await? == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
            }
        }
    }

    /// Logs in, if the server needs it.
    async fn log_in(
        &mut self,
        around: &RedisContext,
        username: Option<&str>,
        password: Option<&str>,
    ) -> io::Result<()> {
        let Some(password) = password else { return Ok(()) };
        let mut command: Vec<&[u8]> = vec![b"AUTH"];
        command.extend(username.map(str::as_bytes));
        command.push(password.as_bytes());
        match self.ask(around, &command).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Other => Err(unquoted(&error.to_string())),
            Err(error) => Err(error),
        }
    }
}

/// That a server does not take the user. A server that does not know the command quotes it, the password too, and the
/// error is logged: only its code is shown.
fn unquoted(words: &str) -> io::Error {
    let code = words.split(' ').next().unwrap_or_default();
    let is_code = code.bytes().all(|byte| byte.is_ascii_uppercase());
    let code = if is_code { code } else { "no code" };
    io::Error::other(format!("the user is refused ({code})"))
}

/// Connects to the server at this address, as the configuration says; `None`: to the master, which sentinels know.
pub async fn connect(
    around: &RedisContext,
    server: &RedisServer,
    address: Option<&RedisAddress>,
) -> io::Result<ReadyConnection> {
    let (address, is_master) = match address {
        Some(address) => (address.clone(), false),
        None => (find_master(around, server).await?, true),
    };
    let mut line = open(around, server, &address).await?;
    let (username, password) = (server.username.as_deref(), server.password.as_deref());
    line.log_in(around, username, password).await?;
    if server.database != 0 && !matches!(server.place, RedisTopology::Cluster(_)) {
        let number = server.database.to_string();
        line.ask(around, &[b"SELECT", number.as_bytes()]).await?;
    }
    if is_master {
        let role = line.ask(around, &[b"ROLE"]).await?;
        if role.list().first().and_then(Value::text) != Some(b"master") {
            return Err(io::Error::other("the server that sentinels name is not a master"));
        }
    }
    // One that takes connections and does not answer is not ready.
    line.ask(around, &[b"PING"]).await?;
    Ok(line)
}

async fn open(
    around: &RedisContext,
    server: &RedisServer,
    address: &RedisAddress,
) -> io::Result<ReadyConnection> {
    let host = address.host.trim_start_matches('[').trim_end_matches(']');
    let ip = match host.parse() {
        Ok(ip) => ip,
        Err(_) => {
            let resolved = around.resolver.resolve(host, Instant::now()).await;
            resolved.map_err(|_| io::Error::new(io::ErrorKind::NotFound, "the name cannot be resolved"))?
        }
    };
    let tls = match &server.tls {
        None => None,
        Some(tls) => {
            let name = tls.server_name.as_deref().unwrap_or(host).to_owned();
            let name = ServerName::try_from(name).map_err(|_| io::ErrorKind::InvalidInput)?;
            let published = around.shared.published.load();
            let rules = published.snapshot.ad_hoc_tls.tls(tls.verify)?;
            Some((rules.config.clone(), name))
        }
    };
    let (read, write) = dial(SocketAddr::new(ip, address.port), tls).await?;
    Ok(ReadyConnection {
        read,
        write,
        inbox: Inbox::default(),
    })
}

/// Asks the sentinels, one after the other, for the master's address.
async fn find_master(around: &RedisContext, server: &RedisServer) -> io::Result<RedisAddress> {
    let RedisTopology::Sentinel {
        sentinels,
        master,
        username,
        password,
    } = &server.place
    else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // One that is silent must leave time for the others.
    let share = server.connect_timeout / (sentinels.len() as u32 + 1);
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "there is no sentinel");
    for sentinel in sentinels {
        let asked = async {
            let mut line = open(around, server, sentinel).await?;
            line.log_in(around, username.as_deref(), password.as_deref())
                .await?;
            let command: [&[u8]; 3] = [b"SENTINEL", b"get-master-addr-by-name", master.as_bytes()];
            line.ask(around, &command).await
        };
        let answer = tokio::time::timeout(share.max(SENTINEL_TIMEOUT), asked).await;
        match answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(value) => match read_address(value.list()) {
                Some(address) => return Ok(address),
                None => failure = io::Error::new(io::ErrorKind::NotFound, "sentinels know no such master"),
            },
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn read_address(parts: &[Value]) -> Option<RedisAddress> {
    let text = |part: &Value| Some(std::str::from_utf8(part.text()?).ok()?.to_owned());
    let [host, port] = parts else { return None };
    Some(RedisAddress {
        host: text(host)?,
        port: text(port)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_refusal_quotes_no_password() {
        for (words, message) in [
            (
                "ERR unknown command 'AUTH', with args beginning with: 'secret'",
                "the user is refused (ERR)",
            ),
            ("WRONGPASS invalid password", "the user is refused (WRONGPASS)"),
            ("secret is wrong", "the user is refused (no code)"),
        ] {
            assert_eq!(unquoted(words).to_string(), message, "{words}");
        }
    }
}
