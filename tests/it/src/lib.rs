//! Placeholder crate. The integration tests are in `tests/it`: whole federations on virtual time, in one binary.
