//! Alert about a certificate that ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::trial::Trial;
use crate::soundness::wait_for_line;

/// Days until the end of the first certificate, less than the week of the alert, and of the renewed one.
const SOON_DAYS: u64 = 3;
const RENEWED_DAYS: u64 = 365;

/// Kubeconfig with a client certificate, and the process that uses it.
pub(super) struct Renewal {
    kubeconfig: PathBuf,
    process: usize,
}

/// Starts a process whose kubeconfig has a client certificate that ends within a week, besides the token that the API
/// server reads. `process` is its number in start order.
pub(super) async fn near_its_end(trial: &mut Trial<'_>, process: usize) -> anyhow::Result<Renewal> {
    let kubeconfig = trial.federation.logs().join("kubeconfig-with-a-certificate");
    let renewal = Renewal { kubeconfig, process };
    renewal.write(&trial.federation.hub.kubeconfig(), SOON_DAYS)?;
    let webhook = "--webhook-bind-address=127.0.0.1:0";
    trial.federation.start_bulkhead_with(&renewal.kubeconfig, &[webhook])?;
    wait_for_line(&mut trial.federation, process, "holds the lease").await?;
    Ok(renewal)
}

impl Renewal {
    /// Waits until the alert fires, and renews the certificate.
    pub(super) async fn raise(&self, trial: &mut Trial<'_>) -> anyhow::Result<()> {
        let labels = [("certificate", "kubeconfig")];
        let section = trial.fires_with("BulkheadCertificateEnds", &labels).await?;
        let kubeconfig = self.kubeconfig.display().to_string();
        let doctor = section.code("bulkhead doctor")?;
        let doctor = format!("{doctor} --kubeconfig {kubeconfig} --mode all");
        let (_, said) = trial.federation.shell(&doctor)?;
        ensure!(said.contains("certificate"), "{doctor} names no certificate: {said}");
        section.says("renew it in the Secret with the kubeconfig")?;
        self.write(&trial.federation.hub.kubeconfig(), RENEWED_DAYS)?;
        let replaced = "the credentials of the control plane were replaced";
        wait_for_line(&mut trial.federation, self.process, replaced).await
    }

    /// Writes the kubeconfig of an administrator with a client certificate that ends after some days.
    #[expect(
        clippy::disallowed_methods,
        reason = "the process compares the end with the time of the machine"
    )]
    fn write(&self, administrator: &Path, days: u64) -> anyhow::Result<()> {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let key = rcgen::KeyPair::generate()?;
        let mut parameters = rcgen::CertificateParams::new(vec!["bulkhead".to_owned()])?;
        parameters.not_after = rcgen::date_time_ymd(1970, 1, 1) + since_1970 + Duration::from_hours(24 * days);
        let (certificate_path, key_path) = (
            self.kubeconfig.with_extension("crt"),
            self.kubeconfig.with_extension("key"),
        );
        fs::write(&certificate_path, parameters.self_signed(&key)?.pem())?;
        fs::write(&key_path, key.serialize_pem())?;
        let mut config: Value = serde_json::from_slice(&fs::read(administrator)?)?;
        let user = config
            .pointer_mut("/users/0/user")
            .context("the kubeconfig has no user")?;
        user["client-certificate"] = json!(certificate_path);
        user["client-key"] = json!(key_path);
        fs::write(&self.kubeconfig, config.to_string()).context("writing the kubeconfig")
    }
}
