//! Kubeconfig of the embedded control plane, for users.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::ByteString;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::private_file;

/// Name of the context of the control plane; members' contexts have the members' names.
pub(super) const CONTEXT: &str = "bulkhead";

/// Time within which a control plane of this machine answers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Refuses the file of a control plane that is running: its users would reach another one.
pub(super) async fn refuse_running(path: &Path) -> anyhow::Result<()> {
    let Ok(existing) = Kubeconfig::read_from(path) else {
        return Ok(());
    };
    let Ok(config) = Config::from_custom_kubeconfig(existing, &KubeConfigOptions::default()).await else {
        return Ok(());
    };
    let url = config.cluster_url.clone();
    let Ok(client) = Client::try_from(config) else {
        return Ok(());
    };
    if let Ok(Ok(_)) = tokio::time::timeout(ANSWER_TIMEOUT, client.apiserver_version()).await {
        bail!(
            "{} is the kubeconfig of a running control plane at {url}; name another file with --write-kubeconfig",
            path.display()
        );
    }
    Ok(())
}

/// Writes a kubeconfig that only its owner can read. `clusters` are pairs of name and URL, the control plane first.
pub(super) fn write(path: &Path, clusters: &[(String, String)], ca_pem: &str, token: &str) -> anyhow::Result<()> {
    let about = || format!("writing the kubeconfig {}", path.display());
    let text = serde_saphyr::to_string(&kubeconfig(clusters, ca_pem, token)).with_context(about)?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(about)?;
    private_file::replace(path, text.as_bytes()).with_context(about)
}

fn kubeconfig(clusters: &[(String, String)], ca_pem: &str, token: &str) -> Value {
    let ca = ByteString(ca_pem.as_bytes().to_vec());
    let cluster = |(name, url): &(String, String)| json!({"name": name, "cluster": {"server": url, "certificate-authority-data": ca}});
    let context = |(name, _): &(String, String)| json!({"name": name, "context": {"cluster": name, "user": CONTEXT, "namespace": "default"}});
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": clusters.first().map(|(name, _)| name),
        "clusters": clusters.iter().map(cluster).collect::<Vec<_>>(),
        "contexts": clusters.iter().map(context).collect::<Vec<_>>(),
        "users": [{"name": CONTEXT, "user": {"token": token}}],
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_its_owner_may_read_the_kubeconfig() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/kubeconfig");
        let clusters = [(CONTEXT, ""), ("member1", "/members/member1")];
        let clusters = clusters.map(|(name, path)| (name.to_owned(), format!("https://127.0.0.1:1{path}")));
        write(&path, &clusters, "certificate", "secret").unwrap();
        let read = kube::config::Kubeconfig::read_from(&path).unwrap();
        assert_eq!(read.current_context.as_deref(), Some(CONTEXT));
        assert_eq!(read.contexts.len(), 2);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
