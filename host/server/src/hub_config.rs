//! Configuration of the connection to the control plane.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use bulkhead_controllers::flags::GoDuration;
use clap::Args;
use k8s_openapi::ByteString;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tower::BoxError;

use crate::help;

/// Connection arguments of the control plane.
#[derive(Args, Clone)]
pub struct HubArguments {
    /// Kubeconfig of the control plane; defaults to $KUBECONFIG, ~/.kube/config or the pod's service account.
    #[arg(long, value_name = "FILE", help_heading = help::CONTROL_PLANE)]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig, overriding the current context.
    #[arg(long, visible_alias = "karmada-context", value_name = "NAME", help_heading = help::CONTROL_PLANE)]
    context: Option<String>,
}

impl HubArguments {
    /// Returns true if an argument selects the control plane.
    pub(crate) fn is_given(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// Creates arguments with a given kubeconfig.
    pub(super) fn of_file(kubeconfig: PathBuf) -> Self {
        Self {
            kubeconfig: Some(kubeconfig),
            context: None,
        }
    }

    /// Reads the configuration from the kubeconfig or the service account.
    pub async fn config(&self) -> anyhow::Result<Config> {
        match &self.kubeconfig {
            Some(path) => config_in("the kubeconfig", path, self.context.clone()).await,
            None if self.context.is_some() => {
                let options = KubeConfigOptions {
                    context: self.context.clone(),
                    ..KubeConfigOptions::default()
                };
                Config::from_kubeconfig(&options)
                    .await
                    .context("reading the kubeconfig of the environment")
            }
            None => Config::infer()
                .await
                .context("there is no kubeconfig; name one with --kubeconfig"),
        }
    }
}

/// Time limit of each request of an interactive command.
#[derive(Args, Clone, Copy)]
pub struct RequestTimeout {
    /// Time limit of each request to an API server; more than 0.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = limit,
          help_heading = help::CONTROL_PLANE)]
    request_timeout: GoDuration,
}

impl RequestTimeout {
    /// Returns the limit, which is more than 0.
    pub fn limit(self) -> Duration {
        self.request_timeout.0
    }
}

/// Parses a time limit.
///
/// # Errors
///
/// The text is not a duration, or it is 0, which would be no limit for kubectl.
fn limit(text: &str) -> Result<GoDuration, String> {
    let limit: GoDuration = text.parse()?;
    if limit.0.is_zero() {
        Err("must be greater than 0, such as 10s".to_owned())
    } else {
        Ok(limit)
    }
}

/// Unwraps the error of the inner client, for callers that match on its type.
pub(super) fn unwrapped(error: kube::Error) -> BoxError {
    match error {
        kube::Error::Service(error) => error,
        error => error.into(),
    }
}

/// Reads a kubeconfig with the given or the current context. `what` names the file in errors.
pub async fn config_in(what: &str, path: &Path, context: Option<String>) -> anyhow::Result<Config> {
    let about = || format!("reading {what} {}", path.display());
    let file = Kubeconfig::read_from(path).with_context(about)?;
    let options = KubeConfigOptions {
        context,
        ..KubeConfigOptions::default()
    };
    Config::from_custom_kubeconfig(file, &options).await.with_context(about)
}

/// Returns the client certificate of a configuration in PEM, with its location.
pub fn client_certificate(config: &Config) -> Option<(String, anyhow::Result<Vec<u8>>)> {
    let auth = &config.auth_info;
    if let Some(data) = &auth.client_certificate_data {
        let decoded = serde_json::from_value::<ByteString>(serde_json::Value::from(data.as_str()));
        let pem = decoded.map(|bytes| bytes.0).context("it is not base64");
        return Some(("client-certificate-data of the kubeconfig".to_owned(), pem));
    }
    let path = auth.client_certificate.as_ref()?;
    Some((
        path.clone(),
        std::fs::read(path).with_context(|| format!("reading {path}")),
    ))
}
