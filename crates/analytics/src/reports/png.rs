//! Writes pictures of few colours as PNG (ISO/IEC 15948): a byte a pixel, which is a place in a palette.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;

/// The first bytes of every PNG.
const MAGIC: [u8; 8] = [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n'];

/// The PNG of a picture: lines of `width` pixels, and the colours that they stand for.
pub fn write(width: u32, pixels: &[u8], palette: &[[u8; 3]]) -> Vec<u8> {
    let height = pixels.len() as u32 / width.max(1);
    let mut head = Vec::new();
    head.extend_from_slice(&width.to_be_bytes());
    head.extend_from_slice(&height.to_be_bytes());
    // Eight bits, by a palette, deflated, filtered line by line, not interlaced.
    head.extend_from_slice(&[8, 3, 0, 0, 0]);
    let mut lines = Vec::with_capacity(pixels.len() + height as usize);
    for line in pixels.chunks_exact(width.max(1) as usize) {
        // Without a filter: lines of few colours compress well as they are.
        lines.push(0);
        lines.extend_from_slice(line);
    }
    let mut out = MAGIC.to_vec();
    chunk(&mut out, *b"IHDR", &head);
    chunk(&mut out, *b"PLTE", palette.as_flattened());
    chunk(&mut out, *b"IDAT", &deflated(&lines));
    chunk(&mut out, *b"IEND", &[]);
    out
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(bytes);
    debug_assert!(written.is_ok(), "a Vec takes everything");
    encoder.finish().unwrap_or_default()
}

fn chunk(out: &mut Vec<u8>, kind: [u8; 4], content: &[u8]) {
    out.extend_from_slice(&(content.len() as u32).to_be_bytes());
    let start = out.len();
    out.extend_from_slice(&kind);
    out.extend_from_slice(content);
    let checksum = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&checksum.to_be_bytes());
}
