//! What the tests over the whole share.
