//! What a certificate's responder says of it, as clients get it in the handshake. The responder is a server of the test
//! that has OpenSSL answer, and the client is OpenSSL, too. A machine without it tests nothing here.

use crate::TIMEOUT;
use crate::server::Gateway;
use crate::tools::program;
use serde_json::json;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tempfile::TempDir;

/// The number of all certificates.
const SERIAL: &str = "4096";

/// How a responder answers for one certificate.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    /// Whose key signs: of `ca`, of `responder` (whom the authority has made one), or of `stranger`.
    signer: &'static str,
    is_revoked: bool,
    skip_verify: bool,
    /// The answer to the client.
    printed: &'static str,
}

const NOTHING: &str = "OCSP response: no response sent";

/// An authority, a responder of it and a stranger, with what OpenSSL keeps of the certificates that were made.
struct Authority {
    openssl: PathBuf,
    folder: TempDir,
}

impl Authority {
    fn new(openssl: PathBuf) -> Self {
        let own = Self {
            openssl,
            folder: tempfile::tempdir().unwrap(),
        };
        for name in ["ca", "stranger"] {
            own.run(&format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN={name} -keyout {name}.key -out {name}.pem"
            ));
        }
        own.make("responder", "extendedKeyUsage=OCSPSigning", "77");
        own.write(
            "V.txt",
            &format!("V\t301231235959Z\t\t{:X}\tunknown\t/CN=a\n", 4096),
        );
        own.write(
            "R.txt",
            &format!("R\t301231235959Z\t260101000000Z\t{:X}\tunknown\t/CN=a\n", 4096),
        );
        own
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    fn run(&self, arguments: &str) {
        let output = Command::new(&self.openssl)
            .args(arguments.split(' '))
            .current_dir(self.path())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{arguments}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// Makes a certificate with these extensions, and its key.
    fn make(&self, name: &str, extensions: &str, serial: &str) {
        self.write(&format!("{name}.cnf"), extensions);
        self.run(&format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"
        ));
        self.run(&format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -set_serial {serial} -days 30 -extfile {name}.cnf -out {name}.pem"
        ));
    }

    /// An entry of a configuration: a certificate for a name, whose responder is there.
    fn certificate_entry(&self, case: Case, responder: SocketAddr) -> serde_json::Value {
        let name = case.name;
        let extensions =
            format!("subjectAltName=DNS:{name}\nauthorityInfoAccess=OCSP;URI:http://{responder}/{name}");
        self.make(name, &extensions, SERIAL);
        let chain = self.read(&format!("{name}.pem")) + &self.read("ca.pem");
        json!({
            "names": [name],
            "key_pairs": [{"certificate": chain, "key": self.read(&format!("{name}.key"))}],
            "ocsp_stapling": {"skip_verify": case.skip_verify},
        })
    }

    /// What is answered to a question.
    fn answer(&self, case: Case, question: &[u8]) -> Vec<u8> {
        let (name, signer) = (case.name, case.signer);
        std::fs::write(self.path().join(format!("{name}.req")), question).unwrap();
        let index = if case.is_revoked { "R.txt" } else { "V.txt" };
        self.run(&format!(
            "ocsp -index {index} -CA ca.pem -rsigner {signer}.pem -rkey {signer}.key -nmin 60 -reqin {name}.req -respout {name}.res"
        ));
        std::fs::read(self.path().join(format!("{name}.res"))).unwrap()
    }
}

/// A responder: what it is asked for by name, and when it may answer.
struct Responder {
    address: SocketAddr,
    cases: Arc<Mutex<HashMap<String, Case>>>,
    let_go: Sender<()>,
}

impl Responder {
    fn start(authority: Arc<Authority>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let cases = Arc::new(Mutex::new(HashMap::new()));
        let (let_go, may_answer) = channel();
        let known = Arc::clone(&cases);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), &authority, &known, &may_answer);
            }
        });
        Self {
            address,
            cases,
            let_go,
        }
    }

    fn know(&self, case: Case) {
        self.cases.lock().unwrap().insert(case.name.to_owned(), case);
    }
}

/// Answers one question, once it may.
fn serve(
    stream: TcpStream,
    authority: &Authority,
    cases: &Mutex<HashMap<String, Case>>,
    may_answer: &Receiver<()>,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut lines: Vec<String> = Vec::new();
    while lines.last().is_none_or(|line| !line.is_empty()) {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        lines.push(line.trim_end().to_ascii_lowercase());
    }
    let header = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name));
    assert_eq!(header("content-type: "), Some("application/ocsp-request"));
    let mut question = vec![0; header("content-length: ").unwrap().parse().unwrap()];
    reader.read_exact(&mut question).unwrap();
    let name = lines[0]
        .strip_prefix("post /")
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    let case = cases.lock().unwrap()[name];
    may_answer.recv().unwrap();
    let answer = authority.answer(case, &question);
    let mut stream = stream;
    // The client may have gone.
    let _gone = write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/ocsp-response\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        answer.len()
    );
    let _gone = stream.write_all(&answer);
}

/// What OpenSSL says of a handshake in which it has asked for what the responder says.
fn handshake(authority: &Authority, weir: &Gateway, name: &str) -> String {
    let output = Command::new(&authority.openssl)
        .args([
            "s_client",
            "-status",
            "-connect",
            &weir.tls(),
            "-servername",
            name,
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn gateway(certificates: &[serde_json::Value]) -> Gateway {
    let document = json!({"weir": 1, "certificates": certificates});
    let flags = ["--listen-tls", "127.0.0.1:0", "--webhook-allow", "127.0.0.0/8"];
    Gateway::with("weir.yaml", &document, &flags)
}

/// Who uploads a certificate chooses its responder: it leads to no server of the operator's own.
#[test]
fn responders_that_are_not_public_are_only_asked_where_the_operator_allows_it() {
    let Some(openssl) = program("openssl") else { return };
    let authority = Authority::new(openssl);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let case = Case {
        name: "a.test",
        signer: "ca",
        is_revoked: false,
        skip_verify: false,
        printed: NOTHING,
    };
    let shown = authority.certificate_entry(case, listener.local_addr().unwrap());
    let document = json!({"weir": 1, "certificates": [shown]});
    let weir = Gateway::with("weir.yaml", &document, &["--listen-tls", "127.0.0.1:0"]);
    let began = Instant::now();
    let failed = "weir_ocsp_responses_total{result=\"failed\"} 1";
    while !weir.scrape("/metrics").lines().any(|line| line == failed) {
        assert!(began.elapsed() < TIMEOUT, "{}", weir.scrape("/metrics"));
    }
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "the responder was not called");
    let response = handshake(&authority, &weir, case.name);
    assert!(response.contains(case.printed), "{response}");
}

#[test]
fn handshakes_do_not_wait_and_then_have_the_answer() {
    let Some(openssl) = program("openssl") else { return };
    let authority = Arc::new(Authority::new(openssl));
    let responder = Responder::start(Arc::clone(&authority));
    let case = Case {
        name: "a.test",
        signer: "ca",
        is_revoked: false,
        skip_verify: false,
        printed: "Cert Status: good",
    };
    responder.know(case);
    let weir = gateway(&[authority.certificate_entry(case, responder.address)]);
    let response = handshake(&authority, &weir, case.name);
    assert!(response.contains(NOTHING), "{response}");
    responder.let_go.send(()).unwrap();
    let began = Instant::now();
    loop {
        let response = handshake(&authority, &weir, case.name);
        if response.contains(case.printed) {
            break;
        }
        assert!(began.elapsed() < TIMEOUT, "{response}");
    }
}

#[test]
fn only_good_answers_of_the_right_responder_are_passed_on() {
    let Some(openssl) = program("openssl") else { return };
    let authority = Arc::new(Authority::new(openssl));
    let responder = Responder::start(Arc::clone(&authority));
    let case = |name, signer, is_revoked, skip_verify, expected| Case {
        name,
        signer,
        is_revoked,
        skip_verify,
        printed: expected,
    };
    let cases = [
        case("own.test", "ca", false, false, "Cert Status: good"),
        case("made.test", "responder", false, false, "Cert Status: good"),
        case("other.test", "stranger", false, false, NOTHING),
        case("back.test", "ca", true, false, NOTHING),
        case("unchecked.test", "stranger", false, true, "Cert Status: good"),
        case("unchecked-back.test", "ca", true, true, "Cert Status: revoked"),
    ];
    let certificates = cases.map(|case| {
        responder.know(case);
        responder.let_go.send(()).unwrap();
        authority.certificate_entry(case, responder.address)
    });
    let weir = gateway(&certificates);
    let began = Instant::now();
    let count = |result: &str| -> u64 {
        let start = format!("weir_ocsp_responses_total{{result=\"{result}\"}} ");
        let text = weir.scrape("/metrics");
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(&start)?.parse().ok());
        value.unwrap_or(0)
    };
    while (count("taken"), count("unusable"), count("failed")) != (4, 2, 0) {
        assert!(began.elapsed() < TIMEOUT, "{}", weir.scrape("/metrics"));
    }
    for case in cases {
        let response = handshake(&authority, &weir, case.name);
        assert!(response.contains(case.printed), "{}: {response}", case.name);
    }
}
