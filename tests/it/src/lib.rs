//! Integration tests live in `tests/it`: whole federations on virtual time, one binary.
