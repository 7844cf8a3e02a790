//! Empty standard input, and standard output and error as log lines.

use bulkhead_plugin::{Level, Lines};
use wasmtime::Result;
use wasmtime::component::{ComponentType, Linker, Lower, Resource, ResourceType};

use super::clock::ready;
use super::{denied, interface};
use crate::host::Host;

/// Maximum number of bytes per write; WASI's own limit for one blocking write.
const WRITE_BYTES_MAX: u64 = 4096;
/// Maximum number of bytes of a line that are kept until it ends; the log truncates lines much earlier.
const LINE_BYTES_MAX: usize = 4096;

/// Standard input.
pub(super) enum InputStream {}
/// Standard output or error, distinguished by the handle.
pub(super) enum OutputStream {}
/// Error of a stream. None ever exists.
pub(super) enum StreamFailure {}

const OUT: u32 = 0;
const ERR: u32 = 1;

#[derive(ComponentType, Lower)]
#[component(variant)]
enum StreamError {
    #[component(name = "last-operation-failed")]
    #[expect(dead_code, reason = "the variant has to be of the type that WASI says")]
    LastOperationFailed(Resource<StreamFailure>),
    #[component(name = "closed")]
    Closed,
}

/// Written text without a line end.
#[derive(Debug, Default)]
pub(crate) struct Console {
    out: Vec<u8>,
    err: Vec<u8>,
}

impl Console {
    fn write(&mut self, stream: u32, bytes: &[u8], lines: &mut Lines) {
        let (pending, level) = if stream == ERR {
            (&mut self.err, Level::Warn)
        } else {
            (&mut self.out, Level::Info)
        };
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_BYTES_MAX.saturating_sub(pending.len());
            pending.extend(part.iter().take(room).copied().filter(|byte| *byte != b'\n'));
            if part.ends_with(b"\n") {
                lines.push(level, pending);
                pending.clear();
            }
        }
    }

    /// Logs the text without a line end, for example after a panic in a guest.
    pub(crate) fn finish(&mut self, lines: &mut Lines) {
        for stream in [OUT, ERR] {
            let pending = if stream == ERR { &self.err } else { &self.out };
            if !pending.is_empty() {
                self.write(stream, b"\n", lines);
            }
        }
    }
}

type Write<T> = (Result<T, StreamError>,);

fn write(host: &mut Host, stream: Resource<OutputStream>, bytes: &[u8]) -> Write<()> {
    host.console.write(stream.rep(), bytes, &mut host.lines);
    (Ok(()),)
}

/// Adds `stdin`, `stdout`, `stderr`, their missing terminals, and their streams.
pub(super) fn add(linker: &mut Linker<Host>) -> Result<()> {
    let mut error = interface(linker, "io/error")?;
    error.resource("error", ResourceType::host::<StreamFailure>(), |_, _| Ok(()))?;
    error.func_wrap(
        "[method]error.to-debug-string",
        |_, (_,): (Resource<StreamFailure>,)| -> Result<(String,)> { Err(denied("error.to-debug-string")) },
    )?;
    add_input(linker)?;
    add_output(linker)?;
    let mut stdin = interface(linker, "cli/stdin")?;
    stdin.func_wrap("get-stdin", |mut call, (): ()| {
        call.data_mut().note_handle();
        Ok((Resource::<InputStream>::new_own(0),))
    })?;
    for (path, name, stream) in [("cli/stdout", "get-stdout", OUT), ("cli/stderr", "get-stderr", ERR)] {
        interface(linker, path)?.func_wrap(name, move |mut call, (): ()| {
            call.data_mut().note_handle();
            Ok((Resource::<OutputStream>::new_own(stream),))
        })?;
    }
    add_terminals(linker)
}

fn add_input(linker: &mut Linker<Host>) -> Result<()> {
    let mut streams = interface(linker, "io/streams")?;
    streams.resource("input-stream", ResourceType::host::<InputStream>(), |_, _| Ok(()))?;
    for name in ["read", "blocking-read"] {
        let name = format!("[method]input-stream.{name}");
        streams.func_wrap(
            &name,
            |_, (_, _): (Resource<InputStream>, u64)| -> Result<Write<Vec<u8>>> { Ok((Err(StreamError::Closed),)) },
        )?;
    }
    for name in ["skip", "blocking-skip"] {
        let name = format!("[method]input-stream.{name}");
        streams.func_wrap(&name, |_, (_, _): (Resource<InputStream>, u64)| -> Result<Write<u64>> {
            Ok((Err(StreamError::Closed),))
        })?;
    }
    streams.func_wrap(
        "[method]input-stream.subscribe",
        |mut call, (_,): (Resource<InputStream>,)| Ok((ready(call.data_mut()),)),
    )
}

fn add_output(linker: &mut Linker<Host>) -> Result<()> {
    let mut streams = interface(linker, "io/streams")?;
    streams.resource("output-stream", ResourceType::host::<OutputStream>(), |_, _| Ok(()))?;
    streams.func_wrap(
        "[method]output-stream.check-write",
        |_, (_,): (Resource<OutputStream>,)| -> Result<Write<u64>> { Ok((Ok(WRITE_BYTES_MAX),)) },
    )?;
    for name in ["write", "blocking-write-and-flush"] {
        let name = format!("[method]output-stream.{name}");
        streams.func_wrap(&name, |mut call, (stream, bytes): (Resource<OutputStream>, Vec<u8>)| {
            call.data_mut().charge(bytes.len())?;
            Ok(write(call.data_mut(), stream, &bytes))
        })?;
    }
    for name in ["flush", "blocking-flush"] {
        let name = format!("[method]output-stream.{name}");
        streams.func_wrap(&name, |_, (_,): (Resource<OutputStream>,)| -> Result<Write<()>> {
            Ok((Ok(()),))
        })?;
    }
    // Zeros are control characters, which the log drops.
    for name in ["write-zeroes", "blocking-write-zeroes-and-flush"] {
        let name = format!("[method]output-stream.{name}");
        streams.func_wrap(&name, |_, (_, _): (Resource<OutputStream>, u64)| -> Result<Write<()>> {
            Ok((Ok(()),))
        })?;
    }
    // The only input is at its end.
    for name in ["splice", "blocking-splice"] {
        let name = format!("[method]output-stream.{name}");
        streams.func_wrap(
            &name,
            |_, (_, _, _): (Resource<OutputStream>, Resource<InputStream>, u64)| -> Result<Write<u64>> {
                Ok((Err(StreamError::Closed),))
            },
        )?;
    }
    streams.func_wrap(
        "[method]output-stream.subscribe",
        |mut call, (_,): (Resource<OutputStream>,)| Ok((ready(call.data_mut()),)),
    )
}

/// Input or output of a terminal. None ever exists.
enum TerminalInput {}
enum TerminalOutput {}

fn add_terminals(linker: &mut Linker<Host>) -> Result<()> {
    let mut input = interface(linker, "cli/terminal-input")?;
    input.resource("terminal-input", ResourceType::host::<TerminalInput>(), |_, _| Ok(()))?;
    let mut output = interface(linker, "cli/terminal-output")?;
    output.resource("terminal-output", ResourceType::host::<TerminalOutput>(), |_, _| Ok(()))?;
    let mut stdin = interface(linker, "cli/terminal-stdin")?;
    stdin.func_wrap("get-terminal-stdin", |_, (): ()| Ok((None::<Resource<TerminalInput>>,)))?;
    let mut stdout = interface(linker, "cli/terminal-stdout")?;
    stdout.func_wrap("get-terminal-stdout", |_, (): ()| {
        Ok((None::<Resource<TerminalOutput>>,))
    })?;
    let mut stderr = interface(linker, "cli/terminal-stderr")?;
    stderr.func_wrap("get-terminal-stderr", |_, (): ()| {
        Ok((None::<Resource<TerminalOutput>>,))
    })
}
