//! Each fault of a registry has its own name, and no fault passes for content.

use std::time::Duration;

use bulkhead_oci::artifact::layer;
use bulkhead_oci::manifest::IMAGE_MANIFEST;
use bulkhead_oci::{Cause, Client, RegistryError};

use super::registry::{Authentication, Fault, Registry};
use super::{access, artifact, client, image, run};

/// Pushes a plugin, injects a fault into its download, and returns the error.
fn failure(part: &str, fault: Fault) -> RegistryError {
    let registry = Registry::start(Authentication::None);
    // Only silence needs a short limit; a busy machine may be slower than that.
    let mut limited = access(&registry, "{}");
    if matches!(fault, Fault::Silent) {
        limited.limits.idle = Duration::from_millis(200);
    }
    let (pusher, client, image) = (client(&registry), Client::new(limited).unwrap(), image(&registry));
    run(async {
        artifact().push(&pusher, &image).await.unwrap();
        registry.fail(part, fault, 1);
        let pulled = client.manifest(&image).await?;
        let (_, layer) = layer(&pulled.manifest).unwrap();
        client.blob(&image, layer).await
    })
    .unwrap_err()
}

#[test]
fn each_fault_has_its_name() {
    let check = |part: &str, fault: Fault, reason: &str, text: &str| {
        let error = failure(part, fault.clone());
        let message = error.to_string();
        assert_eq!(error.cause.reason(), reason, "{part} {fault:?}: {message}");
        assert!(message.starts_with("cannot pull 127.0.0.1:"), "{message}");
        assert!(message.contains(text), "{part} {fault:?}: no {text:?} in: {message}");
    };
    let (manifest, blob) = ("GET /v2/plugins/hold/manifests/", "GET /v2/plugins/hold/blobs/");
    for part in [manifest, blob] {
        check(
            part,
            Fault::Status(403),
            "RegistryForbidden",
            "do not permit it (403): DENIED on purpose",
        );
        check(part, Fault::Status(404), "ImageNotFound", "does not have it (404)");
        check(
            part,
            Fault::Status(429),
            "RegistryTooManyRequests",
            "limits requests (429); try later",
        );
        check(
            part,
            Fault::Limited(7),
            "RegistryTooManyRequests",
            "try again after 7 s",
        );
        check(part, Fault::Status(503), "RegistryServerError", "has failed (503)");
        check(part, Fault::Status(418), "RegistryUnexpectedAnswer", "418");
        check(part, Fault::Silent, "RegistryTimeout", "did not answer in time");
    }
    check(manifest, Fault::Truncated(3), "BlobTruncated", "3 of ");
    check(blob, Fault::Truncated(3), "BlobTruncated", "3 of 20 bytes arrived");
    check(blob, Fault::Changed, "DigestMismatch", "the content has digest sha256:");
    let elsewhere = Fault::Redirect("http://127.0.0.1:9/blob".to_owned());
    check(
        blob,
        elsewhere,
        "RegistryRedirect",
        "http://127.0.0.1:9/blob is not reached over TLS",
    );
    assert_eq!(
        failure(blob, Fault::Limited(7)).cause.retry_after(),
        Some(Duration::from_secs(7))
    );
}

#[test]
fn missing_and_rejected_credentials_differ() {
    for authentication in [Authentication::Basic, Authentication::Token] {
        let registry = Registry::start(authentication);
        let error = |auth: &str| {
            let client = Client::new(access(&registry, auth)).unwrap();
            run(async { client.manifest(&image(&registry)).await.unwrap_err() })
        };
        let missing = error("{}");
        assert!(
            matches!(
                missing.cause,
                Cause::Unauthorized {
                    had_credentials: false,
                    ..
                }
            ),
            "{authentication:?}: {missing}"
        );
        assert!(
            missing.to_string().contains("to the auths of the Docker configuration"),
            "{missing}"
        );
        let rejected = error(r#"{"username": "user", "password": "wrong"}"#);
        assert!(
            matches!(
                rejected.cause,
                Cause::Unauthorized {
                    had_credentials: true,
                    ..
                }
            ),
            "{authentication:?}: {rejected}"
        );
        assert!(!rejected.to_string().contains("wrong"), "{rejected}");
    }
}

#[test]
fn a_redirect_to_a_store_of_blobs_is_followed_without_credentials() {
    let registry = Registry::start(Authentication::Basic);
    let store = Registry::start(Authentication::None);
    let mut access = access(&registry, r#"{"username": "user", "password": "password"}"#);
    access.plain_http.insert(store.address.to_string());
    let (client, image) = (Client::new(access).unwrap(), image(&registry));
    run(async {
        artifact().push(&client, &image).await.unwrap();
        let pulled = client.manifest(&image).await.unwrap();
        let (_, layer) = layer(&pulled.manifest).unwrap();
        let url = format!("http://{}/v2/any/blobs/{}", store.address, layer.digest);
        store.put_blob(layer.digest.as_str(), super::CODE);
        registry.fail("GET /v2/plugins/hold/blobs/", Fault::Redirect(url), 1);
        assert_eq!(client.blob(&image, layer).await.unwrap(), super::CODE);
    });
    assert_eq!(store.count("GET /v2/any/blobs/"), 1);
}

#[test]
fn plain_http_is_for_named_hosts_only() {
    let registry = Registry::start(Authentication::None);
    let client = Client::new(bulkhead_oci::Access::default()).unwrap();
    let error = run(client.manifest(&image(&registry))).unwrap_err();
    assert_ne!(error.cause.reason(), "ImageNotFound", "{error}");
    assert_eq!(registry.count(""), 0, "no request arrived");
}

#[test]
fn an_unreachable_registry_is_named() {
    let registry = Registry::start(Authentication::None);
    let (client, image) = (client(&registry), image(&registry));
    drop(registry);
    let error = run(client.manifest(&image)).unwrap_err();
    assert_eq!(error.cause.reason(), "RegistryUnreachable", "{error}");
}

#[test]
fn sizes_are_bounded() {
    let registry = Registry::start(Authentication::None);
    let mut access = access(&registry, "{}");
    access.limits.layer_bytes_max = 10;
    let client = Client::new(access.clone()).unwrap();
    access.limits.manifest_bytes_max = 10;
    let tight = Client::new(access).unwrap();
    let image = image(&registry);
    run(async {
        artifact().push(&client, &image).await.unwrap();
        let error = tight.manifest(&image).await.unwrap_err();
        assert_eq!(error.cause.reason(), "ImageTooLarge", "{error}");
        let pulled = client.manifest(&image).await.unwrap();
        let (_, layer) = layer(&pulled.manifest).unwrap();
        let error = client.blob(&image, layer).await.unwrap_err();
        assert!(error.to_string().ends_with("it is larger than 10 bytes"), "{error}");
        assert_eq!(
            registry.count("GET /v2/plugins/hold/blobs/"),
            0,
            "the size in the manifest is enough"
        );
        // A blob that is larger than its manifest says is not read to its end.
        registry.put_blob(layer.digest.as_str(), vec![0; 1 << 20]);
        let lying = super::client(&registry).blob(&image, layer).await.unwrap_err();
        assert_eq!(lying.cause.reason(), "ImageTooLarge", "{lying}");
    });
}

#[test]
fn a_manifest_under_a_digest_must_have_it() {
    let registry = Registry::start(Authentication::None);
    let (client, image) = (client(&registry), image(&registry));
    let artifact = artifact();
    let digest = bulkhead_oci::Digest::of(b"another");
    registry.put_manifest(
        "plugins/hold",
        digest.as_str(),
        IMAGE_MANIFEST,
        artifact.manifest.text.clone(),
    );
    let error = run(client.manifest(&image.with_digest(digest))).unwrap_err();
    assert_eq!(error.cause.reason(), "DigestMismatch", "{error}");
    registry.put_manifest("plugins/hold", "1", IMAGE_MANIFEST, "<html>");
    assert_eq!(run(client.manifest(&image)).unwrap_err().cause.reason(), "ImageInvalid");
}
