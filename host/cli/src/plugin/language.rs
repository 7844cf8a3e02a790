//! Programming languages of plugins.

use clap::ValueEnum;
use serde::Deserialize;

/// Language that a plugin is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Language {
    /// WebAssembly component in Rust, with a copy of the SDK.
    Rust,
    /// Lua script.
    Lua,
    /// WebAssembly component in Python, made by componentize-py.
    Python,
    /// WebAssembly component in JavaScript, made by componentize-js.
    #[value(name = "javascript")]
    JavaScript,
    /// WebAssembly component in TypeScript, made by componentize-js.
    #[value(name = "typescript")]
    TypeScript,
    /// WebAssembly component in C, made by the C compiler of Zig.
    C,
    /// WebAssembly component in Go, made by the standard compiler.
    Go,
}

impl Language {
    /// Returns the folder of a plugin that has its copy of the contract.
    pub(super) fn wit_folder(self) -> &'static str {
        match self {
            // A folder `vendor` has a meaning of its own in Go.
            Self::Go => "bulkhead/wit",
            // The crate contains the contract.
            Self::Rust => "vendor/plugins/sdk/wit",
            _ => "vendor/wit",
        }
    }
}
