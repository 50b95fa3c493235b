//! Each row is bound to all before it, by a hash that a shell can compute.

use proto::Digest;
use sha2::{Digest as _, Sha256};

/// The end of the chain: how many records there are, and a hash over them all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The number of the last record; 0 where there is none.
    pub count: u64,
    /// SHA-256 over the hash before it in hexadecimal, a line feed, and the last row's text.
    pub hash: Digest,
}

impl Head {
    /// Before the first record.
    pub fn empty() -> Self {
        Self {
            count: 0,
            hash: Digest::from_bytes([0; 32]),
        }
    }

    /// The head once a record of this text was appended.
    pub fn and(&self, text: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.hash.as_str());
        hash.update("\n");
        hash.update(text);
        Self {
            count: self.count + 1,
            hash: Digest::from_bytes(hash.finalize().into()),
        }
    }
}

/// A hash over texts, each ended by a line feed.
#[derive(Debug, Default)]
pub(crate) struct Sum(Sha256);

impl Sum {
    pub(crate) fn add(&mut self, text: &str) {
        self.0.update(text);
        self.0.update("\n");
    }

    pub(crate) fn hash(&self) -> Digest {
        Digest::from_bytes(self.0.clone().finalize().into())
    }
}

/// What a content is known by once it is gone.
pub(crate) fn digest(content: &str) -> Digest {
    Digest::from_bytes(Sha256::digest(content).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256sum_says_the_same() {
        let first = Head::empty().and("{\"id\":1}");
        let script = format!(
            "printf '%s\\n%s' {} '{{\"id\":1}}' | sha256sum",
            "0".repeat(64)
        );
        let said = std::process::Command::new("sh")
            .args(["-c", &script])
            .output()
            .unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        assert_eq!(said.split(' ').next(), Some(first.hash.as_str()));
        assert_eq!(first.count, 1);
    }
}
