//! The connection to the control plane.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bulkhead_controllers::{Answers, WritePermit, connect};
use bulkhead_core::time::Time;
use clap::Args;
use k8s_openapi::ByteString;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::News;
use super::endpoint::State;
use super::reload::Reloading;
use super::trouble::Trouble;

/// First pause before a control plane that did not answer is asked again; doubles from there.
const RETRY_BASE: Duration = Duration::from_secs(1);
/// Longest pause between attempts.
const RETRY_MAX: Duration = Duration::from_secs(15);

/// Where the control plane is.
#[derive(Args, Clone)]
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
    pub(crate) version: String,
    /// How requests to it are answered, by code.
    pub(super) answers: Arc<Answers>,
    /// What the clients were made of, and how to make them anew.
    pub(super) reloading: Reloading,
}

impl Hub {
    /// Connects, and asks for the version so that what is wrong is said now.
    ///
    /// # Errors
    ///
    /// A [`Trouble`] when there is a kubeconfig and the control plane cannot be used.
    pub(crate) async fn connect(arguments: &HubArguments, permit: &WritePermit) -> anyhow::Result<Self> {
        let config = arguments.config().await?;
        let address = config.cluster_url.to_string();
        if let Some(trouble) = expired(&config, Time::new(super::now())) {
            return Err(trouble.into());
        }
        let answers = Arc::<Answers>::default();
        let made = || format!("connecting to the control plane {address}");
        let first = connect(config.clone(), &WritePermit::unlimited(), &answers).with_context(made)?;
        let version = first.apiserver_version().await.map_err(|error| Trouble::of(&address, &error))?;
        let reloading = Reloading::new(arguments.clone(), config, permit, &answers)?;
        let (client, unguarded) = (reloading.client(), reloading.unguarded());
        Ok(Self { client, unguarded, address, version: version.git_version, answers, reloading })
    }

    /// Connects as soon as that is possible, and says what it is waiting for.
    ///
    /// # Errors
    ///
    /// What waiting would not mend.
    pub(super) async fn connect_in_time(
        arguments: &HubArguments,
        permit: &WritePermit,
        state: &State,
    ) -> anyhow::Result<Self> {
        let (mut news, mut pause) = (News::default(), RETRY_BASE);
        loop {
            let error = match Self::connect(arguments, permit).await {
                Ok(hub) => return Ok(hub),
                Err(error) => error,
            };
            if !error.downcast_ref::<Trouble>().is_some_and(|trouble| trouble.mends) {
                return Err(error);
            }
            state.set_stage(format!("connecting to the control plane: {error:#}"));
            news.say(format!("waiting: {error:#}"));
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_MAX);
        }
    }
}

/// What a kubeconfig says, by its current context unless another one is named. `what` is what errors call the file.
pub(crate) async fn config_in(what: &str, path: &Path, context: Option<String>) -> anyhow::Result<Config> {
    let about = || format!("reading {what} {}", path.display());
    let file = Kubeconfig::read_from(path).with_context(about)?;
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(file, &options).await.with_context(about)
}

/// The client certificate of a configuration in PEM, with where it is kept.
pub(crate) fn client_certificate(config: &Config) -> Option<(String, anyhow::Result<Vec<u8>>)> {
    let auth = &config.auth_info;
    if let Some(data) = &auth.client_certificate_data {
        let decoded = serde_json::from_value::<ByteString>(serde_json::Value::from(data.as_str()));
        let pem = decoded.map(|bytes| bytes.0).context("it is not base64");
        return Some(("client-certificate-data of the kubeconfig".to_owned(), pem));
    }
    let path = auth.client_certificate.as_ref()?;
    Some((path.clone(), std::fs::read(path).with_context(|| format!("reading {path}"))))
}

/// Whether the client certificate has ended: the API server would only say that it does not know us.
fn expired(config: &Config, now: Time) -> Option<Trouble> {
    let (place, pem) = client_certificate(config)?;
    let ends = crate::expiry::of_chain(&pem.ok()?).ok()?;
    (ends <= now).then(|| {
        let what = format!("the client certificate in {place} ended at {ends}");
        Trouble::lasting(what, "renew the client certificate of the kubeconfig")
    })
}

impl HubArguments {
    /// A control plane whose kubeconfig is known.
    pub(super) fn of_file(kubeconfig: PathBuf) -> Self {
        Self { kubeconfig: Some(kubeconfig), context: None }
    }

    /// What the kubeconfig or the service account says.
    pub(crate) async fn config(&self) -> anyhow::Result<Config> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_certificate_that_has_ended_is_told_before_anybody_is_asked() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["a".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2031, 2, 3);
        let pem = params.self_signed(&key).unwrap().pem();
        let mut config = Config::new("https://hub".parse().unwrap());
        let data = serde_json::to_value(ByteString(pem.into_bytes())).unwrap();
        config.auth_info.client_certificate_data = data.as_str().map(str::to_owned);
        let at = |text: &str| Time::new(text.parse().unwrap());
        assert_eq!(expired(&config, at("2031-02-02T00:00:00Z")), None);
        let trouble = expired(&config, at("2031-02-04T00:00:00Z")).unwrap();
        assert!(!trouble.mends && trouble.what.contains("ended at 2031-02-03T00:00:00Z"), "{trouble}");
    }
}
