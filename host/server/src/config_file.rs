//! Argument that names a configuration file.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

/// Path of a configuration file.
#[derive(Clone, Debug)]
pub struct ConfigFile(pub PathBuf);

impl FromStr for ConfigFile {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(PathBuf::from(text)))
    }
}
