//! One call at a time, each over a new connection, as `curl` measures it: from before the connection is opened until
//! the whole answer is there.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hdrhistogram::Histogram;

use crate::client::connect;
use crate::schedule::ResponseReader;

/// A round makes no more calls than this: each leaves a closed connection behind for a minute.
const MAX_CALLS: u64 = 2_000;

/// Sends `request` to `target` again and again for `duration`; the times of the calls in nanoseconds.
///
/// # Errors
/// A call fails.
pub fn call(target: SocketAddr, request: &[u8], duration: Duration) -> Result<Histogram<u64>> {
    let mut times = Histogram::new_with_bounds(100, 60_000_000_000, 3).context("making a histogram")?;
    let mut buffer = vec![0; 64 << 10];
    let start = Instant::now();
    while start.elapsed() < duration && times.len() < MAX_CALLS {
        let before = Instant::now();
        call_once(target, request, &mut buffer)?;
        let nanoseconds = u64::try_from(before.elapsed().as_nanos()).unwrap_or(u64::MAX);
        times.saturating_record(nanoseconds);
    }
    Ok(times)
}

fn call_once(target: SocketAddr, request: &[u8], buffer: &mut [u8]) -> Result<()> {
    let mut stream = connect(target)?;
    stream.write_all(request).context("sending a call")?;
    let mut reader = ResponseReader::default();
    loop {
        let length = stream.read(buffer).context("reading an answer")?;
        if length == 0 {
            bail!("the connection closed inside an answer");
        }
        match reader.take(&buffer[..length])? {
            Some(200) => return Ok(()),
            Some(status) => bail!("status {status}"),
            None => {}
        }
    }
}
