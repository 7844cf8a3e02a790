//! Kubeconfigs with the token of a service account.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use k8s_openapi::ByteString;
use kube::Config;
use serde_json::{Value, json};

use bulkhead_server::private_file::Replacement;

/// Name of the cluster and of the context.
const CONTEXT: &str = "control-plane";
/// Length of a line of PEM, in characters.
const PEM_LINE: usize = 64;

/// Access of one user to one API server.
#[derive(Default)]
pub(crate) struct Access<'a> {
    /// URL of the API server.
    pub(crate) server: &'a str,
    /// Name of the user.
    pub(crate) user: &'a str,
    /// Bearer token.
    pub(crate) token: &'a str,
    /// Certificates that the server may present.
    pub(crate) trust: Trust,
    /// Name in the server's certificate, if it is not that of the URL.
    pub(crate) tls_server_name: Option<String>,
    /// Proxy in front of the server.
    pub(crate) proxy_url: Option<String>,
}

/// Certificates that an API server may present.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Trust {
    /// Those of the authorities that the client's system trusts.
    #[default]
    System,
    /// Those of the authorities in this PEM text.
    Bundle(Vec<u8>),
    /// Any certificate.
    Any,
}

impl Trust {
    /// Returns the certificates that a client with this configuration accepts.
    ///
    /// # Errors
    ///
    /// The file with the authorities cannot be read.
    pub(crate) fn of(config: &Config) -> anyhow::Result<Self> {
        if config.accept_invalid_certs {
            return Ok(Self::Any);
        }
        if let Some(path) = &config.root_cert_file {
            let bundle = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
            return Ok(Self::Bundle(bundle));
        }
        let Some(certificates) = &config.root_cert else {
            return Ok(Self::System);
        };
        let mut bundle = String::new();
        for certificate in certificates {
            bundle.push_str(&pem(certificate)?);
        }
        Ok(Self::Bundle(bundle.into_bytes()))
    }
}

/// Formats a certificate as PEM.
fn pem(der: &[u8]) -> anyhow::Result<String> {
    let encoded = serde_json::to_value(ByteString(der.to_vec()))?;
    let mut rest = encoded.as_str().unwrap_or_default();
    let mut out = String::from("-----BEGIN CERTIFICATE-----\n");
    while !rest.is_empty() {
        let (line, left) = rest.split_at(rest.len().min(PEM_LINE));
        out.push_str(line);
        out.push('\n');
        rest = left;
    }
    out.push_str("-----END CERTIFICATE-----\n");
    Ok(out)
}

/// Place of a kubeconfig. It is prepared before any object is created, so that an unwritable path fails first.
pub(crate) struct Destination<'a> {
    path: &'a Path,
    file: Replacement,
}

impl<'a> Destination<'a> {
    /// Prepares the file. An old one is unchanged until `write` replaces it.
    pub(crate) fn open(path: &'a Path) -> anyhow::Result<Self> {
        let file = Replacement::new(path).with_context(|| format!("opening {} for a kubeconfig", path.display()))?;
        Ok(Self { path, file })
    }

    /// Writes the kubeconfig. Only its owner can read it.
    pub(crate) fn write(self, access: &Access<'_>) -> anyhow::Result<()> {
        let Self { path, file } = self;
        let about = || format!("writing the kubeconfig {}", path.display());
        file.write(&serde_json::to_vec_pretty(&kubeconfig(access)).with_context(about)?)
            .with_context(about)
    }
}

fn kubeconfig(access: &Access<'_>) -> Value {
    let Access {
        server,
        user,
        token,
        trust,
        tls_server_name,
        proxy_url,
    } = access;
    let mut cluster = json!({"server": server.trim_end_matches('/')});
    match trust {
        Trust::System => {}
        Trust::Bundle(bundle) => cluster["certificate-authority-data"] = json!(ByteString(bundle.clone())),
        Trust::Any => cluster["insecure-skip-tls-verify"] = json!(true),
    }
    if let Some(name) = tls_server_name {
        cluster["tls-server-name"] = json!(name);
    }
    if let Some(url) = proxy_url {
        cluster["proxy-url"] = json!(url);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": user}}],
        "current-context": CONTEXT,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use kube::config::{KubeConfigOptions, Kubeconfig};

    use super::*;

    #[test]
    fn a_kubeconfig_over_a_file_that_all_can_read_is_read_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.kubeconfig");
        fs::write(
            &path,
            "an older kubeconfig, which is longer than the new one".repeat(99),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let destination = Destination::open(&path).unwrap();
        assert!(
            fs::read_to_string(&path).unwrap().starts_with("an older kubeconfig"),
            "a failure keeps it"
        );
        let access = Access {
            server: "https://hub:6443/",
            user: "bulkhead",
            token: "secret",
            ..Access::default()
        };
        destination.write(&access).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let written: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(written, kubeconfig(&access));
        assert_eq!(written["clusters"][0]["cluster"], json!({"server": "https://hub:6443"}));
    }

    #[tokio::test]
    async fn the_trust_of_a_configuration_survives_the_way_through_a_kubeconfig() {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["hub".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let mut config = Config::new("https://hub:6443".parse().unwrap());
        config.root_cert = Some(vec![certificate.der().to_vec(), certificate.der().to_vec()]);
        let written = async |config: &Config| {
            let trust = Trust::of(config).unwrap();
            let access = Access {
                server: "https://hub:6443",
                user: "bulkhead",
                trust,
                ..Access::default()
            };
            let file: Kubeconfig = serde_json::from_value(kubeconfig(&access)).unwrap();
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .unwrap()
        };
        assert_eq!(written(&config).await.root_cert, config.root_cert);
        config.accept_invalid_certs = true;
        assert!(written(&config).await.accept_invalid_certs);
        let plain = Config::new("https://hub:6443".parse().unwrap());
        let read = written(&plain).await;
        assert!(read.root_cert.is_none() && !read.accept_invalid_certs);
    }
}
