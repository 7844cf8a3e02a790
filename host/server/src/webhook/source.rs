//! Source and renewal of the endpoint's certificate.
//!
//! Without user-provided files, a certificate is created and kept in a Secret, so that all processes share it.
//! Before it expires, the first process to notice renews it. The previous authority stays trusted, so that reviews
//! keep working while other processes still use the old certificate.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::civil::Date;
use k8s_openapi::jiff::{ToSpan, tz::TimeZone};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;

use super::certificate::Certificate;

/// Name of the Secret with the certificate that all processes share.
pub const SECRET: &str = "bulkhead-webhook";
/// Annotations of the Secret: host and last day of the certificate.
const HOST: &str = "bulkhead.dev/host";
const LAST_DAY: &str = "bulkhead.dev/last-day";
/// Validity of a new certificate, in days.
const VALID_DAYS: i32 = 90;
/// Remaining validity below which the certificate is renewed, in days.
const RENEW_DAYS: i32 = 30;
/// Polling interval of the files and the Secret.
pub(super) const RELOAD: Duration = Duration::from_secs(30);

/// Source of the certificate.
pub(crate) enum Source {
    /// Directory with files that are renewed externally.
    Directory(PathBuf),
    /// Secret managed by Bulkhead.
    Own {
        /// API of the Secrets in its namespace.
        secrets: Box<Api<Secret>>,
        /// Host name or address that API servers use.
        host: String,
    },
}

impl Source {
    /// Creates the source for a Secret in a namespace.
    pub(crate) fn own(client: Client, namespace: &str, host: String) -> Self {
        Self::Own {
            secrets: Box::new(Api::namespaced(client, namespace)),
            host,
        }
    }

    /// Returns the current certificate; creates or renews it if necessary.
    pub(super) async fn current(&self) -> anyhow::Result<Certificate> {
        match self {
            Self::Directory(path) => Certificate::from_directory(path),
            Self::Own { secrets, host } => own(secrets, host).await,
        }
    }
}

async fn own(secrets: &Api<Secret>, host: &str) -> anyhow::Result<Certificate> {
    let about = || format!("the Secret {SECRET} with the certificate of the webhook");
    let today = crate::now().to_zoned(TimeZone::UTC).date();
    let existing = secrets
        .get_opt(SECRET)
        .await
        .with_context(|| format!("reading {}", about()))?;
    let kept = existing.as_ref().and_then(read);
    if let Some((certificate, _, _)) = kept
        .as_ref()
        .filter(|(_, for_host, last)| for_host == host && is_good(*last, today))
    {
        return Ok(certificate.clone());
    }
    let last_day = today.saturating_add(VALID_DAYS.days());
    let before = kept
        .as_ref()
        .filter(|(_, for_host, _)| for_host == host)
        .map(|(before, _, _)| before.own_authority());
    let made = Certificate::self_made(host, last_day, before)?;
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {
            "name": SECRET,
            "annotations": {HOST: host, LAST_DAY: last_day.to_string()},
            "resourceVersion": existing.as_ref().and_then(|existing| existing.metadata.resource_version.clone()),
        },
        "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": made.chain_pem, "tls.key": made.key_pem, "ca.crt": made.ca_pem},
    }))?;
    let written = match existing {
        None => secrets.create(&PostParams::default(), &secret).await,
        Some(_) => secrets.replace(SECRET, &PostParams::default(), &secret).await,
    };
    match written {
        Ok(_) => Ok(made),
        // Another process wrote it concurrently; its certificate is used.
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let theirs = secrets
                .get(SECRET)
                .await
                .with_context(|| format!("reading {}", about()))?;
            let theirs = read(&theirs).with_context(|| format!("{} contains no certificate", about()))?;
            Ok(theirs.0)
        }
        Err(error) => Err(error).with_context(|| format!("writing {}", about())),
    }
}

/// Reads certificate, host and last day, if the Secret has all of them.
fn read(secret: &Secret) -> Option<(Certificate, String, Date)> {
    let text = |name: &str| String::from_utf8(secret.data.as_ref()?.get(name)?.0.clone()).ok();
    let certificate = Certificate {
        chain_pem: text("tls.crt")?,
        key_pem: text("tls.key")?,
        ca_pem: text("ca.crt")?,
    };
    let annotation = |name: &str| secret.metadata.annotations.as_ref()?.get(name);
    Some((
        certificate,
        annotation(HOST)?.clone(),
        annotation(LAST_DAY)?.parse().ok()?,
    ))
}

fn is_good(last_day: Date, today: Date) -> bool {
    today <= last_day.saturating_sub(RENEW_DAYS.days())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::civil::date;

    use super::*;

    #[test]
    fn a_certificate_is_renewed_a_month_before_its_end() {
        let last_day = date(2026, 12, 31);
        assert!(is_good(last_day, date(2026, 10, 2)));
        assert!(is_good(last_day, date(2026, 12, 1)));
        assert!(!is_good(last_day, date(2026, 12, 2)));
        assert!(!is_good(last_day, date(2027, 1, 1)));
    }
}
