//! Interfaces that are empty or denied: the environment, exits, files and sockets.

use wasmtime::component::{Linker, LinkerInstance, Resource, ResourceType, Val};
use wasmtime::{Result, StoreContextMut};

use super::{Refusal, denied, interface};
use crate::host::Host;

/// Resources that no guest ever gets a handle of.
enum Descriptor {}
enum DirectoryEntryStream {}
enum ResolveAddressStream {}
enum TcpSocket {}
enum UdpSocket {}
enum IncomingDatagramStream {}
enum OutgoingDatagramStream {}
/// The network, which exists but reaches no host.
enum Network {}

/// Methods of files and directories.
const OF_DESCRIPTORS: [&str; 27] = [
    "read-via-stream",
    "write-via-stream",
    "append-via-stream",
    "advise",
    "sync-data",
    "get-flags",
    "get-type",
    "set-size",
    "set-times",
    "read",
    "write",
    "read-directory",
    "sync",
    "create-directory-at",
    "stat",
    "stat-at",
    "set-times-at",
    "link-at",
    "open-at",
    "readlink-at",
    "remove-directory-at",
    "rename-at",
    "symlink-at",
    "unlink-file-at",
    "is-same-object",
    "metadata-hash",
    "metadata-hash-at",
];

/// Methods of TCP sockets.
const OF_TCP_SOCKETS: [&str; 28] = [
    "start-bind",
    "finish-bind",
    "start-connect",
    "finish-connect",
    "start-listen",
    "finish-listen",
    "accept",
    "local-address",
    "remote-address",
    "is-listening",
    "address-family",
    "set-listen-backlog-size",
    "keep-alive-enabled",
    "set-keep-alive-enabled",
    "keep-alive-idle-time",
    "set-keep-alive-idle-time",
    "keep-alive-interval",
    "set-keep-alive-interval",
    "keep-alive-count",
    "set-keep-alive-count",
    "hop-limit",
    "set-hop-limit",
    "receive-buffer-size",
    "set-receive-buffer-size",
    "send-buffer-size",
    "set-send-buffer-size",
    "subscribe",
    "shutdown",
];

/// Methods of UDP sockets.
const OF_UDP_SOCKETS: [&str; 13] = [
    "start-bind",
    "finish-bind",
    "stream",
    "local-address",
    "remote-address",
    "address-family",
    "unicast-hop-limit",
    "set-unicast-hop-limit",
    "receive-buffer-size",
    "set-receive-buffer-size",
    "send-buffer-size",
    "set-send-buffer-size",
    "subscribe",
];

/// Adds `environment`, `exit`, and the interfaces for files and sockets.
pub(super) fn add(linker: &mut Linker<Host>) -> Result<()> {
    let mut environment = interface(linker, "cli/environment")?;
    environment.func_wrap("get-environment", |_, (): ()| Ok((Vec::<(String, String)>::new(),)))?;
    environment.func_wrap("get-arguments", |_, (): ()| Ok((Vec::<String>::new(),)))?;
    environment.func_wrap("initial-cwd", |_, (): ()| Ok((None::<String>,)))?;
    let mut exit = interface(linker, "cli/exit")?;
    exit.func_wrap("exit", |_, (status,): (Result<(), ()>,)| -> Result<()> {
        Err(wasmtime::Error::new(Refusal::Exit(u8::from(status.is_err()))))
    })?;
    exit.func_wrap("exit-with-code", |_, (status,): (u8,)| -> Result<()> {
        Err(wasmtime::Error::new(Refusal::Exit(status)))
    })?;
    add_files(linker)?;
    add_network(linker)?;
    add_sockets(linker)
}

fn add_files(linker: &mut Linker<Host>) -> Result<()> {
    let mut types = interface(linker, "filesystem/types")?;
    types.resource("descriptor", ResourceType::host::<Descriptor>(), |_, _| Ok(()))?;
    types.resource(
        "directory-entry-stream",
        ResourceType::host::<DirectoryEntryStream>(),
        |_, _| Ok(()),
    )?;
    unreachable(&mut types, "descriptor", &OF_DESCRIPTORS)?;
    unreachable(&mut types, "directory-entry-stream", &["read-directory-entry"])?;
    nothing(&mut types, "filesystem-error-code")?;
    let mut preopens = interface(linker, "filesystem/preopens")?;
    preopens.func_wrap("get-directories", |_, (): ()| {
        Ok((Vec::<(Resource<Descriptor>, String)>::new(),))
    })
}

fn add_network(linker: &mut Linker<Host>) -> Result<()> {
    let mut network = interface(linker, "sockets/network")?;
    network.resource("network", ResourceType::host::<Network>(), |_, _| Ok(()))?;
    nothing(&mut network, "network-error-code")?;
    let mut instance = interface(linker, "sockets/instance-network")?;
    instance.func_wrap("instance-network", |mut call, (): ()| {
        call.data_mut().note_handle();
        Ok((Resource::<Network>::new_own(0),))
    })?;
    let mut lookup = interface(linker, "sockets/ip-name-lookup")?;
    lookup.resource(
        "resolve-address-stream",
        ResourceType::host::<ResolveAddressStream>(),
        |_, _| Ok(()),
    )?;
    unreachable(
        &mut lookup,
        "resolve-address-stream",
        &["resolve-next-address", "subscribe"],
    )?;
    access_denied(&mut lookup, "resolve-addresses")
}

fn add_sockets(linker: &mut Linker<Host>) -> Result<()> {
    let mut tcp = interface(linker, "sockets/tcp")?;
    tcp.resource("tcp-socket", ResourceType::host::<TcpSocket>(), |_, _| Ok(()))?;
    unreachable(&mut tcp, "tcp-socket", &OF_TCP_SOCKETS)?;
    access_denied(
        &mut interface(linker, "sockets/tcp-create-socket")?,
        "create-tcp-socket",
    )?;
    let mut udp = interface(linker, "sockets/udp")?;
    udp.resource("udp-socket", ResourceType::host::<UdpSocket>(), |_, _| Ok(()))?;
    udp.resource(
        "incoming-datagram-stream",
        ResourceType::host::<IncomingDatagramStream>(),
        |_, _| Ok(()),
    )?;
    udp.resource(
        "outgoing-datagram-stream",
        ResourceType::host::<OutgoingDatagramStream>(),
        |_, _| Ok(()),
    )?;
    unreachable(&mut udp, "udp-socket", &OF_UDP_SOCKETS)?;
    unreachable(&mut udp, "incoming-datagram-stream", &["receive", "subscribe"])?;
    unreachable(
        &mut udp,
        "outgoing-datagram-stream",
        &["check-send", "send", "subscribe"],
    )?;
    access_denied(
        &mut interface(linker, "sockets/udp-create-socket")?,
        "create-udp-socket",
    )
}

/// Adds methods of a resource that no guest has a handle of.
fn unreachable(instance: &mut LinkerInstance<'_, Host>, resource: &str, methods: &[&'static str]) -> Result<()> {
    methods.iter().try_for_each(|method| {
        let method = *method;
        instance.func_new(&format!("[method]{resource}.{method}"), move |_, _, _, _| {
            Err(denied(method))
        })
    })
}

/// Adds a function that always returns none.
fn nothing(instance: &mut LinkerInstance<'_, Host>, name: &str) -> Result<()> {
    instance.func_new(name, |call, _, params, results| {
        answer(call, params, results, Val::Option(None))
    })
}

/// Adds a function that fails with WASI's error code for denied access.
fn access_denied(instance: &mut LinkerInstance<'_, Host>, name: &str) -> Result<()> {
    instance.func_new(name, |call, _, params, results| {
        let code = Val::Enum("access-denied".to_owned());
        answer(call, params, results, Val::Result(Err(Some(Box::new(code)))))
    })
}

/// Returns a value, whose type wasmtime compares with the guest's declaration, and releases the handles that the
/// guest lent: untyped functions have to do so themselves.
fn answer(mut call: StoreContextMut<'_, Host>, params: &[Val], results: &mut [Val], value: Val) -> Result<()> {
    for param in params {
        if let Val::Resource(lent) = param {
            lent.resource_drop(&mut call)?;
        }
    }
    if let [result] = results {
        *result = value;
    }
    Ok(())
}
