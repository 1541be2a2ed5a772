//! Kong's Admin API over a store in memory, for clients to be tried against. It forwards no calls.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use weir_kong::admin::{Admin, AdminOptions, Listener};
use weir_store::memory::MemoryStore;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args().nth(1).map_or(Ok(0), |port| port.parse())?;
    let listener = tokio::net::TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
    println!("{}", listener.local_addr()?);
    let mut options = AdminOptions::default();
    options.node.listeners = vec![Listener {
        ip: "127.0.0.1".to_owned(),
        port: 8000,
        is_tls: false,
    }];
    let admin = Admin::open(Arc::new(MemoryStore::new()), options).await?;
    axum::serve(listener, admin.router()).await?;
    Ok(())
}
