//! Fresh random numbers for the engine, which has none of its own.

use std::fs::File;
use std::io::{self, Read};

/// Random bytes that are fetched at once.
const POOL_BYTES: usize = 4096;
const NONCE_BYTES: usize = 8;

/// Random numbers of the kernel, fetched a few hundred at a time.
#[derive(Debug)]
pub struct Nonces {
    source: File,
    pool: Box<[u8; POOL_BYTES]>,
    used: usize,
}

impl Nonces {
    /// Opens the kernel's source.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open() -> io::Result<Self> {
        let mut nonces = Self {
            source: File::open("/dev/urandom")?,
            pool: Box::new([0; POOL_BYTES]),
            used: 0,
        };
        nonces.fill()?;
        Ok(nonces)
    }

    /// The next number.
    ///
    /// # Errors
    /// The source cannot be read any more.
    pub fn fresh(&mut self) -> io::Result<u64> {
        if self.used + NONCE_BYTES > POOL_BYTES {
            self.fill()?;
        }
        let mut bytes = [0; NONCE_BYTES];
        bytes.copy_from_slice(&self.pool[self.used..self.used + NONCE_BYTES]);
        self.used += NONCE_BYTES;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn fill(&mut self) -> io::Result<()> {
        self.source.read_exact(&mut self.pool[..])?;
        self.used = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_come_twice() {
        let mut nonces = Nonces::open().expect("/dev/urandom");
        let drawn: std::collections::BTreeSet<u64> =
            (0..2000).map(|_| nonces.fresh().expect("random")).collect();
        assert_eq!(drawn.len(), 2000);
    }
}
