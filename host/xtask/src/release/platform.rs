//! Platforms of a release.

use clap::ValueEnum;

/// Platform that a static program is built for, by the name of its Rust target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Platform {
    /// Linux on 64-bit x86.
    #[value(name = "x86_64-unknown-linux-musl")]
    X86,
    /// Linux on 64-bit Arm.
    #[value(name = "aarch64-unknown-linux-musl")]
    Arm,
}

impl Platform {
    /// Returns the Rust target.
    pub(crate) fn triple(self) -> &'static str {
        match self {
            Self::X86 => "x86_64-unknown-linux-musl",
            Self::Arm => "aarch64-unknown-linux-musl",
        }
    }

    /// Returns the architecture in the names of Go, as images and krew use it.
    pub(crate) fn architecture(self) -> &'static str {
        match self {
            Self::X86 => "amd64",
            Self::Arm => "arm64",
        }
    }

    /// Returns the platform whose programs this machine runs, if a release has it.
    pub(crate) fn native() -> Option<Self> {
        match (std::env::consts::OS, std::env::consts::ARCH) {
            ("linux", "x86_64") => Some(Self::X86),
            ("linux", "aarch64") => Some(Self::Arm),
            _ => None,
        }
    }
}
