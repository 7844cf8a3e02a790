//! A release tried as a user would: the step `install` of `cargo xtask full`.
//!
//! The program of the archive gives a first verdict. A registry on this machine gets image and chart, both signed. The
//! end-to-end tests then install from the registry on real control planes. There is no container runtime: the image is
//! pulled by its digest, unpacked, and its program started in its own root folder as the image's user.

mod image;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::publish::{self, ORAS};
use crate::release::{self, CHECKSUMS, Finished, Platform, Signer};
use crate::upgrade::{Checkout, PREVIOUS};
use crate::{BUILD, registry, sh};

/// Folder of the files of a run.
const FOLDER: &str = "target/install";
/// Bound of the time from the archive to a verdict.
const VERDICT_MAX: Duration = Duration::from_mins(1);

/// Tries the release of this commit; makes it for this machine if it is missing.
///
/// # Errors
///
/// A step fails, or the user is not root, whom the root folders of the processes need.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let native = Platform::native().context("a release has no program for this machine")?;
    let release = release::of_commit(root, native)?;
    println!(
        "release {} ({}) in {}",
        release.version,
        release.commit,
        release.folder.display()
    );
    let folder = root.join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    let made = |name: &str| -> anyhow::Result<PathBuf> {
        let path = folder.join(name);
        fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        Ok(path)
    };
    let program = first_verdict(&release, native, &made("archive")?)?;

    let registry = registry::start(root, &made("registry")?)?;
    let signer = Signer::with_new_key(root, &made("key")?)?;
    let signed = made("signed")?;
    fs::copy(release.folder.join(CHECKSUMS), signed.join(CHECKSUMS)).context("copying the checksums")?;
    signer.files(&signed)?;
    let published = publish::push(root, &release, &publish::to_local(registry.address()), Some(&signer))?;
    println!("published and signed {} and {}", published.image, published.chart);

    let oras = ORAS.ensure(root)?;
    let current = image::pull(root, &oras, &published.image, native, &made("current")?)?;
    let checkout = Checkout::of(root, PREVIOUS)?;
    let previous = image::with_program(&current, &checkout.build()?, &made("previous")?)?;
    sh::cargo(root, BUILD)?;
    let text = |path: &Path| path.display().to_string();
    let values = [
        ("--program", text(&program)),
        ("--root", text(root)),
        ("install", text(&release.folder)),
        ("--tag", release.version.clone()),
        ("--image", published.image.clone()),
        ("--image-files", text(&current)),
        ("--chart", format!("oci://{}/charts/bulkhead", registry.address())),
        ("--previous", text(&previous)),
        ("--previous-root", text(checkout.folder())),
    ];
    let arguments: Vec<_> = values
        .iter()
        .flat_map(|(name, value)| [*name, value.as_str()])
        .collect();
    sh::run(root, &root.join("target/debug/bulkhead-e2e"), &arguments)
}

/// Takes the program out of the archive, lets it write a plugin and test it. Returns the program.
fn first_verdict(release: &Finished, platform: Platform, folder: &Path) -> anyhow::Result<PathBuf> {
    let start = Instant::now();
    let (archive, path) = release.archive(platform);
    release::verify::open(&archive)?
        .unpack(folder)
        .with_context(|| format!("unpacking {}", archive.display()))?;
    let program = folder.join(path);
    let mode = fs::metadata(&program)
        .context("reading the program")?
        .permissions()
        .mode();
    ensure!(
        mode & 0o111 == 0o111,
        "the program in {} has the mode {mode:o}",
        archive.display()
    );
    for arguments in [
        &["plugin", "new", "mine", "--kind", "health", "--lang", "lua"][..],
        &["plugin", "test", "mine"],
    ] {
        let output = Command::new(&program)
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .env("HOME", folder)
            .output()
            .context("starting the program of the archive")?;
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        ensure!(
            output.status.success(),
            "bulkhead {} failed: {text}",
            arguments.join(" ")
        );
    }
    let took = start.elapsed();
    println!("archive to verdict: {} ms", took.as_millis());
    ensure!(took <= VERDICT_MAX, "a first verdict took {} s", took.as_secs());
    Ok(program)
}
