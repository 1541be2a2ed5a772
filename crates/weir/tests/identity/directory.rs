//! `ldap-auth` with OpenLDAP's server.

use crate::ports::free_port;
use crate::weir::Weir;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The longest that anything may take that is waited for.
const TIMEOUT: Duration = Duration::from_secs(30);
const SLAPD: &str = "/usr/sbin/slapd";

const ENTRIES: &str = "\
dn: dc=example,dc=com
objectClass: dcObject
objectClass: organization
o: example
dc: example

dn: ou=people,dc=example,dc=com
objectClass: organizationalUnit
ou: people

dn: uid=alice,ou=people,dc=example,dc=com
objectClass: inetOrgPerson
uid: alice
cn: Alice
sn: A
userPassword: wonder
seeAlso: cn=admins,ou=groups,dc=example,dc=com
seeAlso: cn=staff,ou=groups,dc=example,dc=com
seeAlso: cn=root,ou=people,dc=example,dc=com

dn: uid=b\\,c,ou=people,dc=example,dc=com
objectClass: inetOrgPerson
uid: b,c
cn: B
sn: B
userPassword: comma

dn: cn=Twin One,ou=people,dc=example,dc=com
objectClass: inetOrgPerson
uid: twin
cn: Twin One
sn: T
userPassword: twin

dn: cn=Twin Two,ou=people,dc=example,dc=com
objectClass: inetOrgPerson
uid: twin
cn: Twin Two
sn: T
userPassword: twin
";

/// A running directory.
pub struct Directory {
    child: Child,
    folder: TempDir,
    pub port: u16,
}

impl Directory {
    /// `None`: it is not installed.
    pub fn start() -> Option<Self> {
        if !Path::new(SLAPD).exists() {
            crate::tools::report_missing("slapd");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().display();
        std::fs::create_dir(folder.path().join("db")).expect("a folder");
        let configuration = format!(
            "include /etc/ldap/schema/core.schema\ninclude /etc/ldap/schema/cosine.schema\n\
             include /etc/ldap/schema/inetorgperson.schema\nmodulepath /usr/lib/ldap\nmoduleload back_mdb\n\
             pidfile {path}/pid\ndatabase mdb\nsuffix \"dc=example,dc=com\"\n\
             rootdn \"cn=admin,dc=example,dc=com\"\nrootpw service\ndirectory {path}/db\n"
        );
        std::fs::write(folder.path().join("slapd.conf"), configuration).expect("written");
        std::fs::write(folder.path().join("entries.ldif"), ENTRIES).expect("written");
        let added = Command::new(SLAPD)
            .args(["-T", "add", "-f", "slapd.conf", "-l", "entries.ldif"])
            .current_dir(folder.path())
            .stderr(Stdio::null())
            .status();
        assert!(added.expect("it runs").success(), "the entries are added");
        let port = free_port();
        let child = Self::spawn(&folder, port);
        let directory = Self { child, folder, port };
        directory.listens();
        Some(directory)
    }

    fn spawn(folder: &TempDir, port: u16) -> Child {
        Command::new(SLAPD)
            .args([
                "-d",
                "0",
                "-f",
                "slapd.conf",
                "-h",
                &format!("ldap://127.0.0.1:{port}"),
            ])
            .current_dir(folder.path())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs")
    }

    fn listens(&self) {
        until("the directory listens", || {
            TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
    }

    fn stop(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    fn start_again(&mut self) {
        self.child = Self::spawn(&self.folder, self.port);
        self.listens();
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // It may have been stopped.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < TIMEOUT, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A server that answers each request with its head.
pub fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else {
                return;
            };
            std::thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") {
                    if !matches!(stream.read(&mut byte), Ok(1)) {
                        return;
                    }
                    head.push(byte[0]);
                }
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                    head.len()
                );
                // The gateway may have gone.
                let _is_sent = stream.write_all(&[answer.as_bytes(), &head].concat());
            });
        }
    });
    port
}

/// The status and the body of a call.
fn call(address: &str, path: &str, credentials: Option<&str>) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let authorization = credentials.map_or(String::new(), |pair| {
        format!("Authorization: Basic {}\r\n", STANDARD.encode(pair))
    });
    let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{authorization}\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("read");
    let status = answer
        .get(9..12)
        .and_then(|status| status.parse().ok())
        .expect("a status");
    (status, answer)
}

#[test]
fn users_of_a_directory_are_recognised() {
    let Some(mut directory) = Directory::start() else {
        return;
    };
    let (port, upstream) = (directory.port, echo());
    let folder = tempfile::tempdir().expect("a folder");
    let rules = format!(
        "host: 127.0.0.1, port: {port}, base_dn: \"ou=people,dc=example,dc=com\", attribute: uid, cache_seconds: 0, timeout_ms: 3000"
    );
    let groups =
        "attribute: seeAlso, base_dn: \"ou=groups,dc=example,dc=com\", name_attribute: cn, header: X-Groups";
    let document = format!(
        "weir: 1\nservices:\n  - name: api\n    url: http://127.0.0.1:{upstream}\n    routes:\n\
         \x20     - {{name: open, paths: [/open]}}\n\
         \x20     - name: bind\n        paths: [/bind]\n        plugins: [{{ldap-auth: {{{rules}}}}}]\n\
         \x20     - name: search\n        paths: [/search]\n        plugins:\n\
         \x20         - ldap-auth: {{{rules}, search: {{bind_dn: \"cn=admin,dc=example,dc=com\", password: service}}}}\n\
         \x20     - name: groups\n        paths: [/groups]\n        plugins:\n\
         \x20         - ldap-auth: {{{rules}, groups: {{{groups}, required: [admins staff]}}}}\n\
         \x20     - name: found\n        paths: [/found]\n        plugins:\n\
         \x20         - ldap-auth: {{{rules}, groups: {{{groups}, required: [admins]}}, search: {{bind_dn: \"cn=admin,dc=example,dc=com\", password: service}}}}\n"
    );
    let file = folder.path().join("weir.yaml");
    std::fs::write(&file, document).expect("written");
    let weir = Weir::start(folder.path(), &["-c", "weir.yaml"]);
    let proxy = weir.proxy();
    for path in ["/bind", "/search"] {
        for (credentials, expected) in [
            (None, 401),
            (Some("alice:wonder"), 200),
            (Some("alice:wrong"), 401),
            (Some("alice:wonder"), 200),
            (Some("alice:"), 401),
            (Some("b,c:comma"), 200),
            (Some("unknown:x"), 401),
            (Some("a*)(uid=*:wonder"), 401),
            (Some("*:wonder"), 401),
            (Some("alice,ou=people,dc=example,dc=com:wonder"), 401),
            (Some("x+uid=alice:wonder"), 401),
            (Some("twin:twin"), 401),
        ] {
            let (status, answer) = call(&proxy, path, credentials);
            assert_eq!(status, expected, "{path} {credentials:?} {answer}");
        }
        let (_, answer) = call(&proxy, path, Some("alice:wonder"));
        assert!(
            answer.to_lowercase().contains("x-credential-identifier: alice"),
            "{answer}"
        );
    }
    // Groups are those of the directory, and only those below the entry of groups.
    for path in ["/groups", "/found"] {
        let (status, answer) = call(&proxy, path, Some("alice:wonder"));
        assert_eq!(status, 200, "{path} {answer}");
        assert!(
            answer.to_lowercase().contains("x-groups: admins, staff\r\n"),
            "{path} {answer}"
        );
        assert_eq!(call(&proxy, path, Some("b,c:comma")).0, 403, "{path}");
        assert_eq!(call(&proxy, path, Some("alice:wrong")).0, 401, "{path}");
    }
    directory.stop();
    let start = Instant::now();
    assert_eq!(call(&proxy, "/bind", Some("alice:wonder")).0, 500);
    assert!(start.elapsed() < Duration::from_secs(4));
    assert_eq!(call(&proxy, "/open", None).0, 200);
    directory.start_again();
    until("users are recognised again", || {
        call(&proxy, "/bind", Some("alice:wonder")).0 == 200
    });
    until("users are found again", || {
        call(&proxy, "/search", Some("alice:wonder")).0 == 200
    });
}
