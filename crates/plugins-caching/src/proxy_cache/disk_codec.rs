//! The form that responses have on a disk: written from what is kept in memory, and read back with every length checked.

use super::entry::{CacheEntry, Slot, Times};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_plugin::Headers;

/// What stands first in the form of a response, and of a list of headers by which responses differ.
const RESPONSE: u8 = 1;
const VARY: u8 = 2;

/// What goes on the disk; `None`: it does not belong there.
pub(super) fn write(slot: &Slot) -> Option<Vec<u8>> {
    match slot {
        Slot::Pass { .. } => None,
        Slot::Vary { names, salt, .. } => {
            let mut out = vec![VARY];
            out.extend_from_slice(&salt.to_le_bytes());
            put_count(names.len(), &mut out)?;
            for name in names.iter() {
                put_text(name.as_bytes(), &mut out)?;
            }
            Some(out)
        }
        Slot::Response { entry, .. } => {
            let mut out = Vec::with_capacity(entry.bytes());
            out.push(RESPONSE);
            out.extend_from_slice(&entry.status.to_le_bytes());
            let times = &entry.times;
            for number in [
                times.stored,
                times.age,
                times.fresh,
                times.keep,
                times.while_revalidate,
                times.if_error,
                u64::from(times.never_stale) | u64::from(times.always_ask) << 1,
            ] {
                out.extend_from_slice(&number.to_le_bytes());
            }
            put_count(entry.headers.len(), &mut out)?;
            for header in entry.headers.iter() {
                put_text(header.name, &mut out)?;
                put_text(header.value, &mut out)?;
            }
            out.extend_from_slice(&entry.body);
            Some(out)
        }
    }
}

fn put_count(count: usize, out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(&u32::try_from(count).ok()?.to_le_bytes());
    Some(())
}

fn put_text(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    put_count(text.len(), out)?;
    out.extend_from_slice(text);
    Some(())
}

/// What was on the disk; `None`: it is not of this form.
pub(super) fn read(data: &[u8]) -> Option<Slot> {
    let (kind, rest) = data.split_first()?;
    let mut rest = DiskReader(rest);
    match *kind {
        VARY => {
            let salt = rest.number()?;
            let count = rest.count()?;
            let names: Option<Vec<String>> = (0..count)
                .map(|_| String::from_utf8(rest.text()?.to_vec()).ok())
                .collect();
            Some(Slot::Vary {
                names: names?.into(),
                salt,
                latest: None,
            })
        }
        RESPONSE => {
            let status = u16::from_le_bytes(rest.take(2)?.try_into().ok()?);
            let mut times = Times {
                stored: rest.number()?,
                age: rest.number()?,
                fresh: rest.number()?,
                keep: rest.number()?,
                while_revalidate: rest.number()?,
                if_error: rest.number()?,
                ..Times::default()
            };
            let flags = rest.number()?;
            times.never_stale = flags & 1 != 0;
            times.always_ask = flags & 2 != 0;
            let mut headers = Headers::default();
            for _ in 0..rest.count()? {
                let name = rest.text()?;
                headers.append(name, rest.text()?);
            }
            let entry = Arc::new(CacheEntry {
                status,
                headers: Arc::new(headers),
                body: rest.0.into(),
                times,
            });
            let used = AtomicBool::new(true);
            Some(Slot::Response { entry, used })
        }
        _ => None,
    }
}

/// What has not been read yet.
struct DiskReader<'d>(&'d [u8]);

impl<'d> DiskReader<'d> {
    fn take(&mut self, count: usize) -> Option<&'d [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn count(&mut self) -> Option<usize> {
        let count = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
        usize::try_from(count).ok()
    }

    fn text(&mut self) -> Option<&'d [u8]> {
        let count = self.count()?;
        self.take(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut headers = Headers::default();
        headers.append(b"ETag", b"\"e\"");
        let entry = CacheEntry {
            status: 203,
            headers: Arc::new(headers),
            body: b"body".as_slice().into(),
            times: Times {
                stored: 1,
                age: 2,
                fresh: 3,
                keep: 4,
                while_revalidate: 5,
                if_error: 6,
                never_stale: true,
                always_ask: false,
            },
        };
        let slot = Slot::Response {
            entry: Arc::new(entry),
            used: AtomicBool::new(false),
        };
        let written = write(&slot).expect("it is kept");
        let Some(Slot::Response { entry: found, .. }) = read(&written) else {
            panic!("it is a response");
        };
        let Slot::Response { entry, .. } = slot else {
            unreachable!()
        };
        assert_eq!(
            (found.status, &found.body, found.times),
            (203, &entry.body, entry.times)
        );
        assert_eq!(found.headers.get(b"etag"), Some(&b"\"e\""[..]));
        for length in 0..written.len() - 4 {
            assert!(read(&written[..length]).is_none(), "{length}");
        }
        let names = Slot::Vary {
            names: ["accept".to_owned()].as_slice().into(),
            salt: 9,
            latest: None,
        };
        let written = write(&names).expect("it is kept");
        assert!(matches!(read(&written), Some(Slot::Vary { salt: 9, .. })));
        assert!(read(&written[..written.len() - 1]).is_none() && read(b"\x07").is_none());
    }
}
