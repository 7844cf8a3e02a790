//! Plugins that are pushed can be pulled.

use std::fs;

use bulkhead_core::policy::EngineKind;
use bulkhead_oci::artifact::layer;
use bulkhead_oci::manifest::{Descriptor, IMAGE_MANIFEST};
use bulkhead_oci::signature::{PublicKey, SigningKey, verify};
use bulkhead_oci::{Access, Client, Digest, Reference};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_ECDSA_P256_SHA256};

use super::registry::{Authentication, REFRESH_TOKEN, Registry};
use super::{CODE, access, artifact, client, image, run};

async fn pull(client: &Client, image: &Reference) -> (EngineKind, Digest, Vec<u8>) {
    let pulled = client.manifest(image).await.unwrap_or_else(|error| panic!("{error}"));
    let (engine, layer) = layer(&pulled.manifest).unwrap();
    let code = client
        .blob(image, layer)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    (engine, pulled.digest, code.to_vec())
}

#[test]
fn a_plugin_is_pushed_and_pulled_with_each_authentication() {
    let refresh = format!(r#"{{"identitytoken": "{REFRESH_TOKEN}"}}"#);
    let basic = r#"{"username": "user", "password": "password"}"#;
    let cases = [
        (Authentication::None, "{}"),
        (Authentication::Basic, basic),
        (Authentication::Token, basic),
        (Authentication::Token, refresh.as_str()),
    ];
    for (authentication, auth) in cases {
        let registry = Registry::start(authentication);
        let client = Client::new(access(&registry, auth)).unwrap();
        let image = image(&registry);
        run(async {
            let digest = artifact().push(&client, &image).await;
            let digest = digest.unwrap_or_else(|error| panic!("{authentication:?} {auth}: {error}"));
            let expected = (EngineKind::Lua, digest.clone(), CODE.to_vec());
            assert_eq!(pull(&client, &image).await, expected, "{authentication:?}");
            assert_eq!(
                pull(&client, &image.with_digest(digest)).await,
                expected,
                "{authentication:?}"
            );
        });
    }
}

#[test]
fn a_blob_that_the_registry_has_is_not_uploaded_again() {
    let registry = Registry::start(Authentication::None);
    let (client, image) = (client(&registry), image(&registry));
    run(async {
        let one = artifact().push(&client, &image).await.unwrap();
        let uploads = registry.count("PUT /v2/plugins/hold/blobs/uploads/");
        assert_eq!(uploads, 2, "code and configuration");
        let other = artifact().push(&client, &image).await.unwrap();
        assert_eq!(one, other);
        assert_eq!(registry.count("PUT /v2/plugins/hold/blobs/uploads/"), uploads);
    });
}

#[test]
fn a_large_component_is_pulled() {
    let registry = Registry::start(Authentication::Token);
    let (client, image) = (client(&registry), image(&registry));
    let code: Vec<u8> = (0..35_u32 << 20).map(|at| (at % 251) as u8).collect();
    let artifact =
        bulkhead_oci::artifact::Artifact::of(EngineKind::Wasm, code.clone().into(), &Default::default()).unwrap();
    run(async {
        let digest = artifact.push(&client, &image).await.unwrap();
        let (engine, found, pulled) = pull(&client, &image).await;
        assert_eq!((engine, found), (EngineKind::Wasm, digest));
        assert!(pulled == code);
    });
}

#[test]
fn signatures_are_added_and_found() {
    let registry = Registry::start(Authentication::Token);
    let (client, image) = (client(&registry), image(&registry));
    let pairs = [(); 2].map(|()| KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap());
    run(async {
        let digest = artifact().push(&client, &image).await.unwrap();
        assert_eq!(client.signatures(&image, &digest).await.unwrap(), []);
        for pair in &pairs {
            let key = SigningKey::parse("key.pem", &pair.serialize_pem()).unwrap();
            let signature = key.sign(&image, &digest).unwrap();
            client.push_signature(&image, &digest, signature).await.unwrap();
        }
        let signatures = client.signatures(&image, &digest).await.unwrap();
        assert_eq!(signatures.len(), 2);
        for pair in &pairs {
            let key = PublicKey::parse("team", "key.pub", &pair.public_key_pem()).unwrap();
            assert_eq!(verify(&signatures, &digest, std::slice::from_ref(&key)), Ok(&key));
        }
        let tag = format!("sha256-{}.sig", digest.hex());
        assert!(registry.manifest("plugins/hold", &tag).is_some());
    });
}

#[test]
fn attestations_are_added_and_found_with_and_without_a_list_of_referrers() {
    for lists in [true, false] {
        let registry = Registry::start(Authentication::Token);
        if lists {
            registry.list_referrers();
        }
        let (client, image) = (client(&registry), image(&registry));
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let key = SigningKey::parse("key.pem", &pair.serialize_pem()).unwrap();
        run(async {
            let digest = artifact().push(&client, &image).await.unwrap();
            let subject = Descriptor::of(IMAGE_MANIFEST, &artifact().manifest.text);
            assert_eq!(subject.digest, digest);
            let mut all = Vec::new();
            for kind in ["https://sigstore.dev/cosign/sign/v1", "https://example.com/other"] {
                let signature = key.attest(&digest, kind, &serde_json::json!({})).unwrap();
                client
                    .push_attestation(&image, subject.clone(), &signature, &key.hint())
                    .await
                    .unwrap();
                all.push(signature);
            }
            let mut found = client.signatures(&image, &digest).await.unwrap();
            found.sort_by(|one, other| {
                all.iter()
                    .position(|known| known == one)
                    .cmp(&all.iter().position(|known| known == other))
            });
            assert_eq!(found, all, "lists: {lists}");
            let public = PublicKey::parse("team", "key.pub", &pair.public_key_pem()).unwrap();
            assert_eq!(verify(&found, &digest, std::slice::from_ref(&public)), Ok(&public));
            let fallback = registry.manifest("plugins/hold", &format!("sha256-{}", digest.hex()));
            assert_eq!(fallback.is_none(), lists);
        });
    }
}

/// Certificates of an authority: for the registry and for a client.
struct Certificates {
    folder: tempfile::TempDir,
    server: rustls::ServerConfig,
}

fn certificates() -> Certificates {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let issue = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &authority).unwrap(), key)
    };
    let ((server, server_key), (client, client_key)) = (issue("127.0.0.1"), issue("client"));
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("ca.pem", authority.pem()),
        ("client.pem", client.pem()),
        ("client.key", client_key.serialize_pem()),
    ];
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        rustls::server::WebPkiClientVerifier::builder_with_provider(roots.into(), std::sync::Arc::clone(&provider));
    let server = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![server.der().clone()],
            rustls_pki_types::PrivatePkcs8KeyDer::from(server_key.serialize_der()).into(),
        )
        .unwrap();
    Certificates { folder, server }
}

#[test]
fn a_private_authority_and_a_client_certificate_are_used() {
    let Certificates { folder, server } = certificates();
    let registry = Registry::start_with(Authentication::None, Some(server));
    let image = image(&registry);
    let file = |name: &str| folder.path().join(name);
    let reason = |access: Access| {
        let client = Client::new(access).unwrap();
        run(async { client.manifest(&image).await.unwrap_err().cause.reason() })
    };
    assert_eq!(reason(Access::default()), "RegistryCertificateInvalid");
    let without_certificate = Access {
        ca_file: Some(file("ca.pem")),
        ..Access::default()
    };
    // The alert of the server may be lost with its connection.
    let refused = reason(without_certificate.clone());
    assert!(
        ["RegistryCertificateInvalid", "RegistryUnreachable"].contains(&refused),
        "{refused}"
    );
    let access = Access {
        client_certificate: Some((file("client.pem"), file("client.key"))),
        ..without_certificate
    };
    let client = Client::new(access).unwrap();
    run(async {
        artifact().push(&client, &image).await.unwrap();
        assert_eq!(pull(&client, &image).await.2, CODE);
    });
    let invalid = Access {
        ca_file: Some(file("client.key")),
        ..Access::default()
    };
    let message = Client::new(invalid).unwrap_err().to_string();
    assert!(message.contains("client.key: has no certificate in PEM"), "{message}");
}
