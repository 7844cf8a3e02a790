//! Container image for all platforms, as an OCI image layout, made without a container runtime.
//!
//! The image has the static program, certificates of public authorities and a user without rights. It has no shell
//! and no package manager.

use std::collections::BTreeMap;

use anyhow::Context as _;
use pem::{EncodeConfig, LineEnding, Pem};
use serde_json::{Value, json};

use super::pack::{self, Archive, FILE, PROGRAM};
use super::platform::Platform;
use super::source::Source;

/// User and group of the program, as in `host/deploy`.
pub(crate) const USER: u64 = 65532;
/// Path of the program.
pub(crate) const PATH: &str = "usr/local/bin/bulkhead";

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// Content of the image that does not depend on the platform.
pub(crate) struct Texts<'t> {
    /// Licence of Bulkhead.
    pub(crate) licence: &'t str,
    /// Licences of its dependencies.
    pub(crate) third_party: &'t str,
}

/// Image layout.
pub(crate) struct Image {
    /// Digest of the index over all platforms, `sha256:…`. A registry that the image is pushed to has it under the
    /// same digest.
    pub(crate) digest: String,
    /// Layout as an archive, as `skopeo`, `podman` and `ctr` read it.
    pub(crate) archive: Vec<u8>,
}

/// Returns the image with one program for each platform.
///
/// # Errors
///
/// Packing fails.
pub(crate) fn of(programs: &BTreeMap<Platform, Vec<u8>>, texts: &Texts, source: &Source) -> anyhow::Result<Image> {
    let mut blobs = Blobs::default();
    let base = Layer::of(&base()?, source)?;
    let mut manifests = Vec::new();
    for (platform, program) in programs {
        let layers = [&base, &Layer::of(&program_files(program, texts)?, source)?];
        let config = blobs.json(CONFIG, &configuration(*platform, &layers, source)?);
        let layers: Vec<_> = layers.map(|layer| blobs.add(LAYER, layer.gzip.clone())).into();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": layers,
            "annotations": annotations(source)?,
        });
        let mut descriptor = blobs.json(MANIFEST, &manifest);
        descriptor["platform"] = of_platform(*platform);
        manifests.push(descriptor);
    }
    let index = json!({
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": manifests,
        "annotations": annotations(source)?,
    });
    let mut descriptor = blobs.json(INDEX, &index);
    let digest = descriptor["digest"].as_str().unwrap_or_default().to_owned();
    descriptor["annotations"] = json!({"org.opencontainers.image.ref.name": source.version});
    let top = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor]});
    let mut layout = Archive::default();
    layout.file("oci-layout", FILE, r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    layout.file("index.json", FILE, top.to_string())?;
    for (digest, content) in blobs.0 {
        layout.file(&format!("blobs/sha256/{digest}"), FILE, content)?;
    }
    let archive = layout.tar(source.epoch_s)?;
    Ok(Image { digest, archive })
}

/// Contents of an image by SHA-256.
#[derive(Default)]
struct Blobs(BTreeMap<String, Vec<u8>>);

impl Blobs {
    /// Adds content. Returns its descriptor.
    fn add(&mut self, media_type: &str, content: Vec<u8>) -> Value {
        let (digest, size) = (pack::sha256(&content), content.len());
        self.0.insert(digest.clone(), content);
        json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size})
    }

    fn json(&mut self, media_type: &str, content: &Value) -> Value {
        self.add(media_type, content.to_string().into_bytes())
    }
}

/// Layer of an image.
struct Layer {
    gzip: Vec<u8>,
    /// SHA-256 of the archive before compression.
    diff_id: String,
}

impl Layer {
    fn of(files: &Archive, source: &Source) -> anyhow::Result<Self> {
        let tar = files.tar(source.epoch_s)?;
        Ok(Self {
            diff_id: pack::sha256(&tar),
            gzip: pack::gzip(&tar)?,
        })
    }
}

/// Returns the files below every program: users, certificates, a folder for temporary files.
fn base() -> anyhow::Result<Archive> {
    let mut files = Archive::default();
    let users = format!(
        "root:x:0:0:root:/root:/sbin/nologin\nbulkhead:x:{USER}:{USER}:bulkhead:/home/bulkhead:/sbin/nologin\n"
    );
    files.file("etc/passwd", FILE, users)?;
    files.file("etc/group", FILE, format!("root:x:0:\nbulkhead:x:{USER}:\n"))?;
    files.file("etc/ssl/certs/ca-certificates.crt", FILE, certificates())?;
    files.folder("home/bulkhead", 0o700, USER)?;
    files.folder("tmp", 0o1777, 0)?;
    Ok(files)
}

/// Returns the certificates of Mozilla's root program as PEM.
fn certificates() -> String {
    let blocks: Vec<_> = webpki_root_certs::TLS_SERVER_ROOT_CERTS
        .iter()
        .map(|certificate| Pem::new("CERTIFICATE", certificate.to_vec()))
        .collect();
    pem::encode_many_config(&blocks, EncodeConfig::new().set_line_ending(LineEnding::LF))
}

fn program_files(program: &[u8], texts: &Texts) -> anyhow::Result<Archive> {
    let mut files = Archive::default();
    files.file(PATH, PROGRAM, program)?;
    files.file("usr/share/doc/bulkhead/LICENSE", FILE, texts.licence)?;
    files.file("usr/share/doc/bulkhead/THIRD-PARTY-LICENSES", FILE, texts.third_party)?;
    Ok(files)
}

fn configuration(platform: Platform, layers: &[&Layer], source: &Source) -> anyhow::Result<Value> {
    let created = source.timestamp().context("time of the image")?;
    let digests: Vec<_> = layers.iter().map(|layer| format!("sha256:{}", layer.diff_id)).collect();
    let history = ["users and certificates", "bulkhead"]
        .map(|content| json!({"created": created, "created_by": format!("cargo xtask release: {content}")}));
    let mut configuration = json!({
        "created": created,
        "config": {
            "User": format!("{USER}:{USER}"),
            "Entrypoint": [format!("/{PATH}")],
            "Cmd": ["--help"],
            "Env": ["PATH=/usr/local/bin", "HOME=/home/bulkhead"],
            "WorkingDir": "/",
            "Labels": annotations(source)?,
        },
        "rootfs": {"type": "layers", "diff_ids": digests},
        "history": history,
    });
    if let (Value::Object(fields), Value::Object(platform)) = (&mut configuration, of_platform(platform)) {
        fields.extend(platform);
    }
    Ok(configuration)
}

fn of_platform(platform: Platform) -> Value {
    match platform {
        Platform::X86 => json!({"architecture": platform.architecture(), "os": "linux"}),
        Platform::Arm => json!({"architecture": platform.architecture(), "os": "linux", "variant": "v8"}),
    }
}

fn annotations(source: &Source) -> anyhow::Result<Value> {
    Ok(json!({
        "org.opencontainers.image.title": "bulkhead",
        "org.opencontainers.image.description": "Failover runtime for Karmada-style multi-cluster Kubernetes",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": source.version,
        "org.opencontainers.image.revision": source.commit,
        "org.opencontainers.image.created": source.timestamp()?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificates_are_pem_with_lines_of_64_characters() {
        let text = certificates();
        let count = text.matches("-----BEGIN CERTIFICATE-----\n").count();
        assert_eq!(count, webpki_root_certs::TLS_SERVER_ROOT_CERTS.len());
        assert!(count > 100, "only {count}");
        assert!(text.lines().all(|line| line.len() <= 64) && text.ends_with("-----END CERTIFICATE-----\n"));
    }
}
