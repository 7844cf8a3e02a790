//! Certificates of the endpoints of queries and of the console, which the process makes itself.
//!
//! They are kept beside the journal: a leader that is restarted, and not the leader any more, still answers for its
//! decisions with the certificate that the Lease names.

use std::path::Path;

use k8s_openapi::jiff::ToSpan as _;
use k8s_openapi::jiff::civil::Date;
use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::private_file;
use crate::webhook::certificate::Certificate;

/// Name of the file of the endpoint of queries in the directory of the journal.
pub(crate) const QUERIES: &str = ".query-certificate.json";
/// Name of the file of the console.
pub(crate) const CONSOLE: &str = ".console-certificate.json";
/// Validity of a new certificate, in years.
const VALID_YEARS: i32 = 10;
/// Remaining validity below which a certificate is replaced at a start, in years.
const REPLACED_YEARS: i32 = 5;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    host: String,
    last_day: String,
    chain: String,
    key: String,
    ca: String,
}

/// Returns the certificate for a host: the one in this file beside the journal, or a new one, which is kept there.
pub(crate) fn certificate(host: &str, today: Date, journal: Option<&Path>, file: &str) -> anyhow::Result<Certificate> {
    let path = journal.map(|journal| journal.join(file));
    if let Some(kept) = path.as_deref().and_then(|path| read(path, host, today)) {
        return Ok(kept);
    }
    let last_day = today.saturating_add(VALID_YEARS.years());
    let made = Certificate::self_made(host, last_day, None)?;
    if let Some(path) = path {
        let kept = Kept {
            host: host.to_owned(),
            last_day: last_day.to_string(),
            chain: made.chain_pem.clone(),
            key: made.key_pem.clone(),
            ca: made.ca_pem.clone(),
        };
        // Without the file, a restart changes the certificate; everything else works.
        let written = serde_json::to_vec(&kept).map_err(std::io::Error::other);
        if let Err(error) = written.and_then(|content| private_file::replace(&path, &content)) {
            warn!(
                "cannot keep the certificate of an endpoint in {}: {error}",
                path.display()
            );
        }
    }
    Ok(made)
}

/// Reads the certificate, if it is for this host and valid for long enough.
fn read(path: &Path, host: &str, today: Date) -> Option<Certificate> {
    let kept: Kept = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    let last_day: Date = kept.last_day.parse().ok()?;
    let certificate = Certificate {
        chain_pem: kept.chain,
        key_pem: kept.key,
        ca_pem: kept.ca,
    };
    let is_good = kept.host == host
        && today <= last_day.saturating_sub(REPLACED_YEARS.years())
        && certificate.server_config(None).is_ok();
    is_good.then_some(certificate)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use k8s_openapi::jiff::civil::date;

    use super::*;

    #[test]
    fn a_restart_keeps_the_certificate_and_another_host_or_a_near_end_replaces_it() {
        let folder = tempfile::tempdir().unwrap();
        let today = date(2026, 11, 27);
        let made = |host: &str, today: Date| {
            certificate(host, today, Some(folder.path()), QUERIES)
                .unwrap()
                .chain_pem
        };
        let first = made("10.0.0.1", today);
        assert_eq!(made("10.0.0.1", today), first);
        assert_eq!(made("10.0.0.1", date(2031, 11, 27)), first);
        let moved = made("10.0.0.2", today);
        assert_ne!(moved, first);
        assert_ne!(made("10.0.0.2", date(2031, 11, 28)), moved);
        let file = folder.path().join(QUERIES);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&file, "{").unwrap();
        assert!(!made("10.0.0.2", today).is_empty());
        assert!(certificate("10.0.0.1", today, None, QUERIES).is_ok());
        let missing = folder.path().join("missing");
        assert!(
            certificate("10.0.0.1", today, Some(&missing), CONSOLE).is_ok(),
            "only a warning"
        );
    }
}
