//! The connection to the control plane.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bulkhead_controllers::{WritePermit, connect};
use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Where the control plane is.
#[derive(Args)]
pub(crate) struct HubArguments {
    /// Kubeconfig of the control plane; without it $KUBECONFIG, ~/.kube/config or the pod's service account.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig, in place of its current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// A control plane that answered.
pub(crate) struct Hub {
    /// For the controllers: writes need the permit.
    pub(crate) client: Client,
    /// For leader election and registration, which happen before there is a permit.
    pub(crate) unguarded: Client,
    /// Its URL.
    pub(crate) address: String,
    /// Its Kubernetes version.
    pub(super) version: String,
}

impl Hub {
    /// Connects, and asks for the version so that what is wrong is said now.
    pub(crate) async fn connect(arguments: &HubArguments, permit: &WritePermit) -> anyhow::Result<Self> {
        let config = arguments.config().await?;
        let address = config.cluster_url.to_string();
        let unguarded = connect(config.clone(), &WritePermit::unlimited())
            .with_context(|| format!("connecting to the control plane {address}"))?;
        let version = unguarded.apiserver_version().await;
        let version = version.with_context(|| format!("asking the control plane {address} for its version"))?;
        let client = connect(config, permit)?;
        Ok(Self { client, unguarded, address, version: version.git_version })
    }
}

/// What a kubeconfig says, by its current context unless another one is named. `what` is what errors call the file.
pub(crate) async fn config_in(what: &str, path: &Path, context: Option<String>) -> anyhow::Result<Config> {
    let about = || format!("reading {what} {}", path.display());
    let file = Kubeconfig::read_from(path).with_context(about)?;
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(file, &options).await.with_context(about)
}

impl HubArguments {
    async fn config(&self) -> anyhow::Result<Config> {
        match &self.kubeconfig {
            Some(path) => config_in("the kubeconfig", path, self.context.clone()).await,
            None if self.context.is_some() => {
                let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
                Config::from_kubeconfig(&options).await.context("reading the kubeconfig of the environment")
            }
            None => Config::infer().await.context("there is no kubeconfig; name one with --kubeconfig"),
        }
    }
}
