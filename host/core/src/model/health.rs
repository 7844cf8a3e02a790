use serde::{Deserialize, Serialize};

/// Health of an object in a member cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Health {
    /// The object works as intended.
    Healthy,
    /// The object has failed.
    Unhealthy,
    /// The health cannot be determined; never a reason to evict.
    Unknown,
}

impl Health {
    /// Returns the wire spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Unhealthy => "Unhealthy",
            Self::Unknown => "Unknown",
        }
    }
}
