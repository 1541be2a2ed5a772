//! A client that looks at the certificate that it is shown, and takes any.

use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use weir_model::Model;
use weir_snapshot::PersistentState;

/// The certificate that a client is shown who asks for this name; `None`: there was no handshake.
pub fn presented_certificate(port: u16, name: &str) -> Option<Vec<u8>> {
    // As the gateway meets servers whose certificates need not be good.
    let compiled = weir_snapshot::compile(
        &Model::default(),
        &weir_plugins::registry(),
        &PersistentState::default(),
    );
    let (snapshot, _) = compiled.expect("an empty model");
    let config = Arc::clone(&snapshot.ad_hoc_tls.tls(false).expect("TLS").config);
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let mut tls = ClientConnection::new(config, name).expect("a client");
    let mut tcp = TcpStream::connect(("127.0.0.1", port)).ok()?;
    tcp.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    while tls.is_handshaking() {
        tls.complete_io(&mut tcp).ok()?;
    }
    tls.peer_certificates()?.first().map(|shown| shown.to_vec())
}

/// Whether the authority has signed it, and for this name.
pub fn is_signed(certificate: &[u8], name: &str) -> bool {
    let has = |text: &[u8]| certificate.windows(text.len()).any(|part| part == text);
    has(b"Pebble Intermediate CA") && has(name.as_bytes())
}
