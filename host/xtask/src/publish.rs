//! `cargo xtask publish`: the image and the chart of a release in a registry, by the digests that the release names.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::release::{Finished, Signer};
use crate::sh;
use crate::tools::GoTool;

/// Copies images between layouts and registries.
pub(crate) const ORAS: GoTool = GoTool {
    name: "oras",
    folder: "host/xtask/go/oras",
    package: "oras.land/oras/cmd/oras",
};
/// Pushes charts; the version of the end-to-end tests.
const HELM: GoTool = GoTool {
    name: "helm",
    folder: "tests/e2e/servers",
    package: "helm.sh/helm/v4/cmd/helm",
};

/// Options of `cargo xtask publish`.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Arguments {
    /// Folder of a release.
    #[arg(long, value_name = "DIR", default_value = "target/release-package")]
    release: PathBuf,
    /// Repository for the image [default: the one that the chart names].
    #[arg(long, value_name = "REPOSITORY")]
    image: Option<String>,
    /// Repository for charts, such as registry.example.com/charts; the chart is REPOSITORY/bulkhead.
    #[arg(long, value_name = "REPOSITORY")]
    charts: String,
    /// Key of cosign that signs image and chart, as a file or as a URI of a key service. The variable COSIGN_PASSWORD
    /// has the password of a file.
    #[arg(long, value_name = "KEY")]
    sign_key: Option<String>,
    /// Use HTTP without TLS, for a registry on this machine.
    #[arg(long)]
    plain_http: bool,
}

/// References of a published release, each with a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Published {
    /// Image for all platforms, `REPOSITORY@sha256:…`.
    pub(crate) image: String,
    /// Chart, `REPOSITORY@sha256:…`.
    pub(crate) chart: String,
}

/// Publishes a release, and prints the references.
///
/// # Errors
///
/// See [`push`].
pub(crate) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let release = Finished::read(&root.join(&arguments.release))?;
    let signer = arguments.sign_key.as_ref().map(|key| Signer::ensure(root, key));
    let published = push(root, &release, arguments, signer.transpose()?.as_ref())?;
    println!("image {}\nchart {}", published.image, published.chart);
    Ok(())
}

/// Returns the arguments that publish into a registry on this machine.
pub(crate) fn to_local(registry: &str) -> Arguments {
    Arguments {
        image: Some(format!("{registry}/bulkhead")),
        charts: format!("{registry}/charts"),
        plain_http: true,
        ..Arguments::default()
    }
}

/// Pushes the image and the chart of a release, and signs both.
///
/// # Errors
///
/// The registry refuses them, has another digest than the chart names, or a signature does not verify.
pub(crate) fn push(
    root: &Path,
    release: &Finished,
    arguments: &Arguments,
    signer: Option<&Signer>,
) -> anyhow::Result<Published> {
    let (oras, helm) = (ORAS.ensure(root)?, HELM.ensure(root)?);
    let repository = arguments.image.as_ref().unwrap_or(&release.repository);
    ensure!(
        repository.contains('/'),
        "the chart names the image {repository} without a registry; make the release with --image REPOSITORY, or add --image"
    );
    let path = |name: String| release.folder.join(name).display().to_string();
    let layout = format!(
        "{}:{}",
        path(format!("bulkhead-{}-image.tar", release.version)),
        release.version
    );
    let target = format!("{repository}:{}", release.version);
    let copy: &[&str] = &["copy", "--from-oci-layout", &layout, &target];
    let http: &[&str] = if arguments.plain_http {
        &["--to-plain-http"]
    } else {
        &[]
    };
    sh::run(root, &oras, &[copy, http].concat())?;
    let resolve: &[&str] = &["resolve", &target];
    let http: &[&str] = if arguments.plain_http { &["--plain-http"] } else { &[] };
    let printed = output(&oras, &[resolve, http].concat())?;
    ensure!(
        printed.lines().any(|line| line == release.digest),
        "{target} has another digest in the registry than the chart names, {}: {printed}",
        release.digest
    );
    let chart = path(format!("bulkhead-{}.tgz", release.version));
    let push = ["push", &chart, &format!("oci://{}", arguments.charts)];
    let printed = output(&helm, &[&push[..], http].concat())?;
    let digest = pushed(&printed).with_context(|| format!("helm push printed no digest: {printed}"))?;
    let published = Published {
        image: format!("{repository}@{}", release.digest),
        chart: format!("{}/bulkhead@{digest}", arguments.charts),
    };
    if let Some(signer) = signer {
        signer.image(&published.image, arguments.plain_http)?;
        signer.image(&published.chart, arguments.plain_http)?;
    }
    Ok(published)
}

/// Returns the digest that `helm push` printed.
fn pushed(printed: &str) -> Option<&str> {
    let digests = printed.lines().filter_map(|line| line.strip_prefix("Digest: "));
    digests.map(str::trim).find(|digest| digest.starts_with("sha256:"))
}

/// Runs a program, and returns its output and errors.
fn output(program: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.with_context(|| format!("starting {}", program.display()))?;
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let shown = program.file_name().unwrap_or_default().display();
    ensure!(
        output.status.success(),
        "{shown} {} failed: {text}",
        arguments.join(" ")
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_chart_is_the_one_that_helm_prints() {
        let printed = "Pushed: 127.0.0.1:5000/charts/bulkhead:0.1.0\nDigest: sha256:0123\n";
        assert_eq!(pushed(printed), Some("sha256:0123"));
        assert_eq!(pushed("Pushed: 127.0.0.1:5000/charts/bulkhead:0.1.0\n"), None);
    }
}
