//! Registry of the CNCF project distribution, and the step `registry` of `cargo xtask full`: plugins are pushed, signed
//! and pulled through it with the tools of other projects.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::distribution::Distribution;
use crate::publish::ORAS;
use crate::release::COSIGN;
use crate::tools::{GoTool, Tool};
use crate::{BUILD, guests, sh};

const REGISTRY: GoTool = GoTool {
    name: "registry",
    folder: "host/xtask/go/registry",
    package: "github.com/distribution/distribution/v3/cmd/registry",
};
/// Client of the Bytecode Alliance for components in registries. Its build takes longer than all other tools together.
const WKG: Tool = Tool {
    name: "wkg",
    version: "0.16.1",
    features: &[],
};
/// Variable with the path of `wkg`.
const WKG_VARIABLE: &str = "WKG";

/// Starts a registry without TLS on a free port, and builds it if it is missing. `folder` gets its data and its log.
///
/// # Errors
///
/// It cannot be built, or does not accept connections in time.
pub(crate) fn start(root: &Path, folder: &Path) -> anyhow::Result<Distribution> {
    let program = REGISTRY.ensure(root)?;
    let address = {
        let free = TcpListener::bind("127.0.0.1:0").context("finding a free port")?;
        free.local_addr()?.to_string()
    };
    Distribution::start(&program, folder, &address, None)
}

/// Builds the tools that are missing, and runs the end-to-end tests of registries with them.
///
/// # Errors
///
/// A tool cannot be built, or a test fails.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    guests::build(root)?;
    sh::cargo(root, BUILD)?;
    let mut values = vec![
        ("--program", root.join("target/debug/bulkhead")),
        ("--root", root.to_path_buf()),
        ("registry", REGISTRY.ensure(root)?),
        ("--oras", ORAS.ensure(root)?),
        ("--cosign", COSIGN.ensure(root)?),
    ];
    match wkg(root) {
        Some(program) => values.push(("--wkg", program)),
        None => println!(
            "skipped: the tests with wkg, which is missing; run `{}`, or set ${WKG_VARIABLE} to the program",
            WKG.installation()
        ),
    }
    let arguments: Vec<_> = values
        .iter()
        .flat_map(|(name, value)| [(*name).to_owned(), value.display().to_string()])
        .collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    sh::run(root, &root.join("target/debug/bulkhead-e2e"), &arguments)
}

/// Returns the program `wkg` that the environment names, or the one in `target/tools`.
fn wkg(root: &Path) -> Option<PathBuf> {
    let given = std::env::var_os(WKG_VARIABLE).map(PathBuf::from);
    given.or_else(|| WKG.installed(root))
}
