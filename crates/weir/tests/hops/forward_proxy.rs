//! `forward-proxy` through the whole binary: the proxy is the test's own, and does as much of RFC 9110 and 9112 as a
//! proxy needs for these calls.

use crate::{ask, gateway, head, values};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, generate_simple_self_signed};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);
/// A name that no name server has: only the proxy knows where it is.
const NAME: &str = "api.invalid";
/// `user` and `secret` (RFC 7617).
const USER: &str = "Basic dXNlcjpzZWNyZXQ=";

/// A proxy that knows where one name is, and records the heads that it gets.
fn proxy(upstream: SocketAddr) -> (SocketAddr, Receiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("bound");
    let (tell, heads) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let tell = tell.clone();
            std::thread::spawn(move || serve(stream.expect("a connection"), upstream, &tell));
        }
    });
    (address, heads)
}

/// Serves one request, and then what is in its tunnel. `None`: the connection has ended.
fn serve(client: TcpStream, upstream: SocketAddr, tell: &Sender<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(client.try_clone().ok()?);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut client = client;
    tell.send(lines.clone()).ok()?;
    if values(&lines, "proxy-authorization") != [USER] {
        let refused =
            "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return client.write_all(refused.as_bytes()).ok();
    }
    let mut words = lines[0].split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let mut server = TcpStream::connect(upstream).ok()?;
    if method == "CONNECT" {
        assert_eq!(target, format!("{NAME}:{}", upstream.port()));
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").ok()?;
    } else {
        let origin = format!("http://{NAME}:{}", upstream.port());
        let path = target.strip_prefix(&origin).expect("the target in absolute form");
        let mut forwarded = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for line in lines[1..]
            .iter()
            .filter(|line| !line.starts_with("Proxy-Authorization"))
        {
            forwarded.push_str(&format!("{line}\r\n"));
        }
        forwarded.push_str("\r\n");
        server.write_all(forwarded.as_bytes()).ok()?;
    }
    // All the rest goes both ways as it comes.
    let mut up = (reader, server.try_clone().ok()?);
    std::thread::spawn(move || std::io::copy(&mut up.0, &mut up.1));
    std::io::copy(&mut server, &mut client).ok()?;
    client.shutdown(std::net::Shutdown::Both).ok()
}

/// A gateway whose service is behind the proxy.
fn document(scheme: &str, port: u16, config: &str) -> String {
    format!(
        "
_format_version: '3.0'
services:
- name: s
  url: {scheme}://{NAME}:{port}
  retries: 0
  routes:
  - {{name: r, paths: [/]}}
  plugins:
  - name: forward-proxy
    config: {{{config}}}
"
    )
}

fn of_proxy(proxy: SocketAddr, more: &str) -> String {
    format!(
        "http_proxy_host: 127.0.0.1, http_proxy_port: {}, auth_username: user, auth_password: secret{more}",
        proxy.port()
    )
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("bound");
    (listener, address)
}

#[test]
fn services_in_the_clear_are_named_to_the_proxy() {
    let (upstream, address) = listener();
    let (proxy, seen) = proxy(address);
    for (x_headers, forwarded) in [
        ("append", vec!["192.0.2.1, 127.0.0.1"]),
        ("transparent", vec!["192.0.2.1"]),
        ("delete", vec![]),
    ] {
        let config = of_proxy(proxy, &format!(", x_headers: {x_headers}"));
        let (_folder, weir) = gateway(&document("http", address.port(), &config), &upstream);
        let mut client = ask(
            &weir,
            "POST /a?b=1 HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 192.0.2.1\r\nProxy-Authorization: mine\r\nContent-Length: 4\r\n\r\nbody",
        );
        let (mut called, _) = upstream.accept().expect("the proxy calls");
        called.set_read_timeout(Some(TIMEOUT)).expect("a time");
        let mut reader = BufReader::new(called.try_clone().expect("a stream"));
        let mut got = Vec::new();
        while got.last().is_none_or(|line: &String| !line.is_empty()) {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a line");
            got.push(line.trim_end().to_owned());
        }
        let mut body = [0; 4];
        reader.read_exact(&mut body).expect("the body");
        assert_eq!((got[0].as_str(), &body), ("POST /a?b=1 HTTP/1.1", b"body"));
        assert_eq!(values(&got, "host"), [format!("{NAME}:{}", address.port())]);
        assert_eq!(values(&got, "x-forwarded-for"), forwarded, "{x_headers}");
        assert_eq!(
            values(&got, "x-real-ip").is_empty(),
            x_headers != "append",
            "{x_headers}"
        );
        let asked = seen.recv_timeout(TIMEOUT).expect("the proxy is asked");
        assert_eq!(
            asked[0],
            format!("POST http://{NAME}:{}/a?b=1 HTTP/1.1", address.port())
        );
        assert_eq!(values(&asked, "proxy-authorization"), [USER]);
        called
            .write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            .expect("answered");
        drop((called, reader));
        assert_eq!(head(&client)[0], "HTTP/1.1 201 Created");
        client.shutdown(std::net::Shutdown::Both).expect("ended");
        let _rest = client.read(&mut [0; 16]);
    }
}

/// A server over TLS whose certificate no authority has signed; each connection gets one answer.
fn secure_server(listener: TcpListener) {
    let made = generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a configuration");
    answer_securely(listener, config);
}

/// Gives each connection over TLS one answer.
fn answer_securely(listener: TcpListener, config: rustls::ServerConfig) {
    let config = Arc::new(config);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).expect("a connection");
            let mut stream = rustls::StreamOwned::new(connection, stream.expect("a stream"));
            let mut bytes = [0; 4096];
            // A client that does not trust the certificate goes.
            if matches!(stream.read(&mut bytes), Ok(1..)) {
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecure";
                let _gone = stream.write_all(answer);
                stream.conn.send_close_notify();
                let _gone = stream.flush();
            }
        }
    });
}

#[test]
fn services_over_tls_are_reached_through_a_tunnel() {
    let (upstream, address) = listener();
    let (proxy, seen) = proxy(address);
    let (nothing, _) = listener();
    secure_server(upstream);
    for (verify, status) in [("false", "200"), ("true", "502")] {
        let config = of_proxy(proxy, &format!(", https_verify: {verify}"));
        let (_folder, weir) = gateway(&document("https", address.port(), &config), &nothing);
        let client = ask(&weir, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
        let line = head(&client)[0].clone();
        assert_eq!(line.split(' ').nth(1), Some(status), "{line}");
        let asked = seen.recv_timeout(TIMEOUT).expect("the proxy is asked");
        assert_eq!(asked[0], format!("CONNECT {NAME}:{} HTTP/1.1", address.port()));
        // What is said in the tunnel is not for the proxy.
        assert_eq!(asked.len(), 3, "{asked:?}");
    }
}

#[test]
fn calls_never_go_past_the_proxy() {
    let (upstream, address) = listener();
    let (away, _) = listener();
    let gone = away.local_addr().expect("bound");
    let (proxy, seen) = proxy(address);
    drop(away);
    let wrong = of_proxy(proxy, "").replace("secret", "other");
    for (scheme, config, status) in [
        ("http", of_proxy(gone, ""), "502"),
        ("https", of_proxy(gone, ""), "502"),
        // Of the proxy itself.
        ("http", wrong.clone(), "407"),
        ("https", wrong, "502"),
    ] {
        let (_folder, weir) = gateway(&document(scheme, address.port(), &config), &upstream);
        let client = ask(&weir, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
        let line = head(&client)[0].clone();
        assert_eq!(line.split(' ').nth(1), Some(status), "{scheme} {config}: {line}");
    }
    assert_eq!(seen.try_iter().count(), 2);
    upstream.set_nonblocking(true).expect("set");
    assert!(upstream.accept().is_err(), "the service was not called");
}

/// A server that shows a certificate of the authority, and takes only clients that show one of it, too.
fn exacting_server(
    listener: TcpListener,
    authority: &CertificateDer<'static>,
    own: (CertificateDer<'static>, KeyPair),
) {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.clone()).expect("an authority");
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let key = PrivateKeyDer::try_from(own.1.serialize_der()).expect("a key");
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(clients.build().expect("a verifier"))
        .with_single_cert(vec![own.0], key)
        .expect("a configuration");
    answer_securely(listener, config);
}

/// The plugin changes whether the service's certificate is checked, and nothing else of its rules.
#[test]
fn authorities_and_the_certificate_of_the_service_hold_behind_the_proxy() {
    const ID: &str = "11111111-1111-4111-8111-111111111111";
    let mut params = CertificateParams::new([]).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = params.self_signed(&key).expect("an authority");
    let issuer = Issuer::new(params, key);
    let made = || {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new([NAME.to_owned()]).expect("a name");
        (params.signed_by(&key, &issuer).expect("signed"), key)
    };
    let (upstream, address) = listener();
    let (proxy, _seen) = proxy(address);
    let (nothing, _) = listener();
    let (of_server, key) = made();
    exacting_server(upstream, authority.der(), (of_server.der().clone(), key));
    let (of_client, key) = made();
    let entities = format!(
        "ca_certificates:\n- {{id: {ID}, cert: {:?}}}\ncertificates:\n- {{id: {ID}, cert: {:?}, key: {:?}}}\n",
        authority.pem(),
        of_client.pem(),
        key.serialize_pem()
    );
    for (service_verifies, proxy_verifies, authorities, status) in [
        (true, true, true, "200"),
        (true, false, true, "200"),
        (false, true, true, "200"),
        (false, true, false, "502"),
        (true, true, false, "502"),
    ] {
        let config = of_proxy(proxy, &format!(", https_verify: {proxy_verifies}"));
        let mut rules =
            format!("  retries: 0\n  client_certificate: {ID}\n  tls_verify: {service_verifies}\n");
        if authorities {
            rules.push_str(&format!("  ca_certificates: [{ID}]\n"));
        }
        let document = document("https", address.port(), &config).replace("  retries: 0\n", &rules);
        let (_folder, weir) = gateway(&(document + &entities), &nothing);
        let client = ask(&weir, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
        let line = head(&client)[0].clone();
        assert_eq!(
            line.split(' ').nth(1),
            Some(status),
            "{service_verifies} {proxy_verifies} {authorities}: {line}"
        );
    }
}

/// What fails is the proxy: that is nothing against the target, which other routes reach without it.
#[test]
fn failures_of_the_proxy_say_nothing_of_the_target() {
    let (upstream, address) = listener();
    let (away, gone) = listener();
    drop(away);
    let (refusing, _seen) = proxy(address);
    std::thread::spawn(move || {
        for stream in upstream.incoming() {
            let mut stream = stream.expect("a stream");
            head(&stream);
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _gone = stream.write_all(answer);
        }
    });
    let document = format!(
        "
_format_version: '3.0'
upstreams:
- name: u
  targets: [{{target: 'localhost:{}'}}]
  healthchecks: {{passive: {{unhealthy: {{tcp_failures: 1, http_failures: 1, http_statuses: [407]}}}}}}
services:
- name: s
  url: http://u
  retries: 0
  routes:
  - name: proxied
    paths: [/proxied]
    plugins:
    - {{name: forward-proxy, config: {{http_proxy_host: 127.0.0.1, http_proxy_port: {}}}}}
  - name: refused
    paths: [/refused]
    plugins:
    - {{name: forward-proxy, config: {{http_proxy_host: 127.0.0.1, http_proxy_port: {}}}}}
  - {{name: direct, paths: [/direct]}}
",
        address.port(),
        gone.port(),
        refusing.port(),
    );
    let (nothing, _) = listener();
    let (_folder, weir) = gateway(&document, &nothing);
    for (path, status) in [
        ("/direct", "200"),
        ("/proxied", "502"),
        ("/proxied", "502"),
        ("/direct", "200"),
        // The proxy wants a user.
        ("/refused", "407"),
        ("/refused", "407"),
        ("/direct", "200"),
    ] {
        let client = ask(&weir, &format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"));
        let line = head(&client)[0].clone();
        assert_eq!(line.split(' ').nth(1), Some(status), "{path}: {line}");
    }
}
