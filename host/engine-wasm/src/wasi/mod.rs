//! WASI 0.2 for guests whose toolchain imports it whatever they do: everything is there, and nothing leads anywhere.
//!
//! The clocks stand at the time of the call, random numbers follow from its seed, the environment and the folders are
//! empty, standard output and error become lines of the log, sockets are denied, and to exit is to trap. So a guest
//! learns nothing here that it could not learn from `context`, and the same call still has the same answer.
//!
//! What no handle can be had of (files, sockets) is denied by a trap: its functions cannot be reached. Interfaces of
//! WASI that are not here, such as HTTP, are refused like any other import. The types are those of WASI 0.2.12, and
//! wasmtime links them to guests that were built for any 0.2.

mod chance;
mod clock;
mod closed;
mod console;

use wasmtime::component::{Linker, LinkerInstance};
use wasmtime::{Error, Result};

pub(crate) use self::chance::Chance;
pub(crate) use self::console::Console;
use crate::host::Host;

/// The interfaces that are here, by package.
const INTERFACES: [(&str, &[&str]); 6] = [
    (
        "cli",
        &[
            "environment",
            "exit",
            "stdin",
            "stdout",
            "stderr",
            "terminal-input",
            "terminal-output",
            "terminal-stdin",
            "terminal-stdout",
            "terminal-stderr",
        ],
    ),
    ("io", &["error", "poll", "streams"]),
    ("clocks", &["monotonic-clock", "wall-clock", "timezone"]),
    ("random", &["random", "insecure", "insecure-seed"]),
    ("filesystem", &["types", "preopens"]),
    (
        "sockets",
        &["network", "instance-network", "ip-name-lookup", "tcp", "tcp-create-socket", "udp", "udp-create-socket"],
    ),
];

/// Whether an import is one of the closed interfaces, in any version 0.2.
pub(crate) fn offers(import: &str) -> bool {
    let parts = || {
        let (path, version) = import.strip_prefix("wasi:")?.split_once('@')?;
        let (package, interface) = path.split_once('/')?;
        let patch = version.strip_prefix("0.2.")?;
        Some((package, interface, patch))
    };
    parts().is_some_and(|(package, interface, patch)| {
        !patch.is_empty()
            && patch.bytes().all(|digit| digit.is_ascii_digit())
            && INTERFACES.iter().any(|(name, interfaces)| *name == package && interfaces.contains(&interface))
    })
}

/// Makes the closed interfaces available to components that import them.
pub(crate) fn add_to_linker(linker: &mut Linker<Host>) -> Result<()> {
    closed::add(linker)?;
    console::add(linker)?;
    clock::add(linker)?;
    chance::add(linker)
}

/// One of the interfaces, to be filled.
fn interface<'a>(linker: &'a mut Linker<Host>, path: &str) -> Result<LinkerInstance<'a, Host>> {
    linker.instance(&format!("wasi:{path}@0.2.12"))
}

/// What a guest cannot do with the closed interfaces.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// It ended itself.
    #[error("exited with status {0}")]
    Exit(u8),
    /// It asked for what no plugin gets.
    #[error("called {0} of WASI, which no plugin may")]
    Denied(&'static str),
}

fn denied(what: &'static str) -> Error {
    Error::new(Refusal::Denied(what))
}

#[cfg(test)]
mod tests {
    use super::offers;

    #[test]
    fn closed_interfaces_are_known_by_package_name_and_version() {
        assert!(offers("wasi:cli/environment@0.2.0"));
        assert!(offers("wasi:io/streams@0.2.12"));
        assert!(!offers("wasi:http/types@0.2.0"));
        assert!(!offers("wasi:cli/streams@0.2.0"));
        assert!(!offers("wasi:cli/environment@0.3.0"));
        assert!(!offers("wasi:cli/environment@0.2.0-rc-2023-11-10"));
        assert!(!offers("wasi:cli/environment@0.2."));
        assert!(!offers("wasi:cli/environment"));
        assert!(!offers("wasi_snapshot_preview1"));
    }
}
