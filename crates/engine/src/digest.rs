//! The hashes of DESIGN 2: SHA-256 over length-prefixed parts.

use proto::{Digest, Label, RoleName};
use sha2::{Digest as _, Sha256};

fn over(parts: &[&[u8]]) -> Digest {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    Digest::from_bytes(hash.finalize().into())
}

/// What was asked.
pub fn fingerprint(tool: &str, arguments: &str) -> Digest {
    over(&[tool.as_bytes(), arguments.as_bytes()])
}

/// What a tool says it is.
pub fn definition(name: &str, description: &str, input_schema: &str) -> Digest {
    over(&[
        name.as_bytes(),
        description.as_bytes(),
        input_schema.as_bytes(),
    ])
}

/// What a person approves.
pub fn approved(
    runner: &RoleName,
    definition: &Digest,
    tool: &str,
    arguments: &str,
    label: Label,
) -> Digest {
    let trust = if label.untrusted {
        "untrusted"
    } else {
        "trusted"
    };
    over(&[
        runner.as_str().as_bytes(),
        definition.as_str().as_bytes(),
        tool.as_bytes(),
        arguments.as_bytes(),
        label.class.as_str().as_bytes(),
        trust.as_bytes(),
    ])
}
