//! A call made of arbitrary parts.

use arbitrary::Arbitrary;
use std::net::SocketAddr;
use weir_plugin::Exchange;

/// The parts. Texts that cannot stand where they are put are left out by the exchange itself.
#[derive(Debug, Arbitrary)]
pub struct Call<'a> {
    pub method: &'a [u8],
    pub path: &'a [u8],
    pub query: Option<&'a [u8]>,
    pub host: &'a [u8],
    pub host_port: Option<u16>,
    pub headers: Vec<(&'a [u8], &'a [u8])>,
    pub body: Option<&'a [u8]>,
    pub peer: SocketAddr,
}

impl Call<'_> {
    pub fn exchange(&self) -> Exchange {
        let mut exchange = Exchange::new(|| 1_700_000_000_000, 1);
        let request = &mut exchange.request;
        request.method = self.method.to_vec();
        request.raw_path = self.path.to_vec();
        request.path = self.path.to_vec();
        if let Some(query) = self.query {
            request.set_query(query);
        }
        request.host = self.host.to_vec();
        request.host_port = self.host_port;
        for (name, value) in self.headers.iter().take(16) {
            request.headers.append(name, value);
        }
        request.body = self.body.map(<[u8]>::to_vec);
        request.has_body = request.body.is_some();
        request.peer = self.peer;
        request.client = self.peer.ip();
        exchange
    }
}
