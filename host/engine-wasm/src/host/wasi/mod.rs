//! WASI 0.2 for guests whose toolchain always imports it: all interfaces exist, but none gives access to the system.
//!
//! The clocks show the time of the call, random numbers follow from its seed, the environment and the file system are
//! empty, standard output and error become log lines, sockets are denied, and an exit is a trap. So a guest gets no
//! information beyond `context`, and the same call still has the same answer.
//!
//! Functions of resources without handles (files, sockets) cannot be reached; they trap. Other interfaces of WASI,
//! such as HTTP, are rejected like any other import. The types are those of WASI 0.2.12, and wasmtime links them to
//! guests built for any 0.2.

mod clock;
mod console;
mod random;
mod stubs;

use wasmtime::component::{Linker, LinkerInstance};
use wasmtime::{Error, Result};

pub(crate) use self::console::Console;
pub(crate) use self::random::RandomNumbers;
use crate::host::Host;

/// Available interfaces by package.
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
        &[
            "network",
            "instance-network",
            "ip-name-lookup",
            "tcp",
            "tcp-create-socket",
            "udp",
            "udp-create-socket",
        ],
    ),
];

/// Returns true if an import is one of the stubbed interfaces, in any version 0.2.
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
            && INTERFACES
                .iter()
                .any(|(name, interfaces)| *name == package && interfaces.contains(&interface))
    })
}

/// Makes the stubbed interfaces available to components that import them.
pub(crate) fn add_to_linker(linker: &mut Linker<Host>) -> Result<()> {
    stubs::add(linker)?;
    console::add(linker)?;
    clock::add(linker)?;
    random::add(linker)
}

/// Returns one of the interfaces, to add functions to.
fn interface<'a>(linker: &'a mut Linker<Host>, path: &str) -> Result<LinkerInstance<'a, Host>> {
    linker.instance(&format!("wasi:{path}@0.2.12"))
}

/// Error for an operation that a guest must not perform.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The guest exited.
    #[error("exited with status {0}")]
    Exit(u8),
    /// The guest called a function that is denied to all plugins.
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
    fn stubbed_interfaces_are_known_by_package_name_and_version() {
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
