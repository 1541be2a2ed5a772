//! The coders: each compresses one body as it passes.

use super::Coding;
use brotli::CompressorWriter;
use brotli::Decompressor;
use brotli::enc::BrotliEncoderParams;
use flate2::read::MultiGzDecoder;
use flate2::{Compress, Compression, FlushCompress, Status};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use weir_plugin::BodyFilter;

/// Binary logarithm of gzip's window, the largest.
const WINDOW_BITS: u8 = 15;
/// So many coders are kept for the next response; each takes about 300 KB.
const SPARE_CODERS: usize = 8;
/// Room that is made for the output at least, in bytes.
const ROOM: usize = 4096;

/// Gzip coders that are not in use.
pub(super) struct GzipPool {
    level: Compression,
    spare: Mutex<Vec<Compress>>,
}

impl GzipPool {
    pub(super) fn new(level: u8) -> Self {
        Self {
            level: Compression::new(u32::from(level)),
            spare: Mutex::default(),
        }
    }

    fn take(&self) -> Compress {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| Compress::new_gzip(self.level, WINDOW_BITS))
    }

    fn give(&self, mut coder: Compress) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE_CODERS {
            coder.reset();
            spare.push(coder);
        }
    }
}

/// The plain bytes of a compressed body. `None`: it is no such stream, or has more than so many.
pub(crate) fn unpacked(coding: Coding, body: &[u8], most: usize) -> Option<Vec<u8>> {
    let most = most as u64;
    let mut plain = Vec::new();
    let read = match coding {
        Coding::Gzip => MultiGzDecoder::new(body).take(most + 1).read_to_end(&mut plain),
        Coding::Brotli => Decompressor::new(body, ROOM)
            .take(most + 1)
            .read_to_end(&mut plain),
    };
    read.ok().filter(|_| plain.len() as u64 <= most).map(|_| plain)
}

/// Compresses with gzip.
pub(super) struct Gzip {
    /// `None` once it has been given back.
    coder: Option<Compress>,
    pool: Arc<GzipPool>,
    /// Whether anything has been put in since the last flush.
    has_pending: bool,
}

impl Gzip {
    pub(super) fn new(pool: &Arc<GzipPool>) -> Self {
        Self {
            coder: Some(pool.take()),
            pool: Arc::clone(pool),
            has_pending: false,
        }
    }

    fn run(&mut self, mut data: &[u8], flush: FlushCompress, out: &mut Vec<u8>) {
        let Some(coder) = &mut self.coder else { return };
        loop {
            out.reserve(ROOM.max(data.len() / 2));
            let before = coder.total_in();
            // This fails only if the coder is used incorrectly.
            let Ok(status) = coder.compress_vec(data, out, flush) else {
                return;
            };
            data = &data[(coder.total_in() - before) as usize..];
            let has_room = out.len() < out.capacity();
            if status == Status::StreamEnd || (data.is_empty() && has_room && flush != FlushCompress::Finish)
            {
                return;
            }
        }
    }
}

impl BodyFilter for Gzip {
    fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
        self.has_pending = true;
        self.run(data, FlushCompress::None, out);
    }

    fn pause(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.has_pending) {
            self.run(&[], FlushCompress::Sync, out);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.run(&[], FlushCompress::Finish, out);
    }
}

impl Drop for Gzip {
    fn drop(&mut self) {
        if let Some(coder) = self.coder.take() {
            self.pool.give(coder);
        }
    }
}

/// Compresses with brotli.
pub(super) struct Brotli {
    /// `None` once the body has ended.
    coder: Option<CompressorWriter<Vec<u8>>>,
    has_pending: bool,
}

impl Brotli {
    pub(super) fn new(level: u8, window_bits: u8) -> Self {
        let parameters = BrotliEncoderParams {
            quality: i32::from(level),
            lgwin: i32::from(window_bits),
            ..BrotliEncoderParams::default()
        };
        Self {
            coder: Some(CompressorWriter::with_params(Vec::new(), ROOM, &parameters)),
            has_pending: false,
        }
    }
}

impl BodyFilter for Brotli {
    fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
        if let Some(coder) = &mut self.coder {
            self.has_pending = true;
            // Writing to memory does not fail.
            let _written = coder.write_all(data);
            out.append(coder.get_mut());
        }
    }

    fn pause(&mut self, out: &mut Vec<u8>) {
        if let Some(coder) = self
            .coder
            .as_mut()
            .filter(|_| std::mem::take(&mut self.has_pending))
        {
            let _flushed = coder.flush();
            out.append(coder.get_mut());
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(coder) = self.coder.take() {
            out.append(&mut coder.into_inner());
        }
    }
}
