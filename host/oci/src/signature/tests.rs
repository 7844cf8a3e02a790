use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384};

use super::*;

fn keys(name: &str) -> (SigningKey, PublicKey) {
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let signing = SigningKey::parse("key.pem", &pair.serialize_pem()).unwrap();
    let public = PublicKey::parse(name, "key.pub", &pair.public_key_pem()).unwrap();
    (signing, public)
}

fn image() -> Reference {
    "r.io/plugins/hold:1".parse().unwrap()
}

#[test]
fn a_signature_counts_for_its_image_and_its_key() {
    let ((signing, public), (_, other)) = (keys("team"), keys("other"));
    let digest = Digest::of(b"manifest");
    let signature = signing.sign(&image(), &digest).unwrap();
    let keys = [other.clone(), public.clone()];
    assert_eq!(verify(std::slice::from_ref(&signature), &digest, &keys), Ok(&public));
    assert_eq!(verify(&[], &digest, &keys), Err(NotSigned::Missing));
    let of_other = verify(std::slice::from_ref(&signature), &digest, std::slice::from_ref(&other));
    assert_eq!(of_other, Err(NotSigned::ByOthers(1, "other".to_owned())));
    let of_another = verify(std::slice::from_ref(&signature), &Digest::of(b"x"), &keys);
    assert_eq!(
        of_another,
        Err(NotSigned::OfAnother("team".to_owned(), digest.to_string()))
    );
    let forged = Signature {
        payload: signature.payload.replace("cosign container", "cosign  container"),
        ..signature
    };
    assert!(matches!(
        verify(&[forged], &digest, &keys),
        Err(NotSigned::ByOthers(1, _))
    ));
}

#[test]
fn a_manifest_of_signatures_is_that_of_cosign() {
    let (signing, _) = keys("team");
    let digest = Digest::of(b"manifest");
    let signature = signing.sign(&image(), &digest).unwrap();
    let (manifest, blobs) = tag::to_manifest(std::slice::from_ref(&signature));
    let payload: serde_json::Value = serde_json::from_slice(&blobs[1]).unwrap();
    assert_eq!(payload["critical"]["identity"]["docker-reference"], "r.io/plugins/hold");
    assert_eq!(payload["critical"]["type"], "cosign container image signature");
    let layer = &manifest.layers[0];
    assert_eq!(layer.media_type, "application/vnd.dev.cosign.simplesigning.v1+json");
    assert_eq!(
        layer.annotations["dev.cosignproject.cosign/signature"],
        signature.signature
    );
    assert_eq!(tag::payloads(&manifest).count(), 1);
}

/// End of the first line of a key. The whole line would look like a secret of this repository.
const KEY: &str = "PRIVATE KEY-----";

#[test]
fn other_keys_are_refused_with_the_remedy() {
    let p384 = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
    let public = |pem: &str| PublicKey::parse("k", "key.pub", pem).unwrap_err().to_string();
    let private = |pem: &str| SigningKey::parse("key.pem", pem).err().unwrap().to_string();
    let check = |message: String, part: &str| assert!(message.contains(part), "no {part:?} in: {message}");
    check(
        public(&p384.public_key_pem()),
        "key.pub: is not an ECDSA key of the curve P-256",
    );
    check(public("text"), "key.pub: is not a public key in PEM");
    check(
        private(&p384.serialize_pem()),
        "key.pem: is not a valid ECDSA key of the curve P-256",
    );
    check(
        private(&format!("-----BEGIN ENCRYPTED SIGSTORE {KEY}")),
        "is an encrypted key",
    );
    check(
        private(&format!("-----BEGIN EC {KEY}")),
        "openssl pkcs8 -topk8 -nocrypt",
    );
    check(private(""), "is not a private key in PEM");
}

#[test]
fn a_bundle_of_cosign_counts_and_an_attestation_does_not_sign() {
    let (signing, public) = keys("team");
    let (digest, keys) = (Digest::of(b"manifest"), [public.clone()]);
    let subject = crate::manifest::Descriptor::of("application/json", b"manifest");
    let attest = |kind: &str| signing.attest(&digest, kind, &serde_json::json!({})).unwrap();
    let signed = attest("https://sigstore.dev/cosign/sign/v1");
    assert_eq!(verify(std::slice::from_ref(&signed), &digest, &keys), Ok(&public));
    let (manifest, blobs) = bundle::to_manifest(subject, &signed, &signing.hint()).unwrap();
    assert_eq!(manifest.subject.as_ref().map(|subject| &subject.digest), Some(&digest));
    assert_eq!(bundle::layers(&manifest).count(), 1);
    assert_eq!(bundle::parse(&blobs[1]), std::slice::from_ref(&signed));
    let bundle: serde_json::Value = serde_json::from_slice(&blobs[1]).unwrap();
    assert_eq!(bundle["mediaType"], "application/vnd.dev.sigstore.bundle.v0.3+json");
    assert_eq!(bundle["verificationMaterial"]["publicKey"]["hint"], signing.hint());
    assert_eq!(bundle["dsseEnvelope"]["payloadType"], "application/vnd.in-toto+json");
    // The type of the payload is signed with it.
    let retyped = Signature {
        payload_type: Some("text/plain".to_owned()),
        ..signed
    };
    assert!(verify(&[retyped], &digest, &keys).is_err());
    let attested = verify(&[attest("https://slsa.dev/provenance/v1")], &digest, &keys);
    assert_eq!(attested, Err(NotSigned::Missing));
    assert_eq!(bundle::parse(b"{}"), []);
}

/// A bundle whose envelope the package `dsse` of go-securesystemslib has signed, which cosign calls.
#[test]
fn a_bundle_of_another_implementation_is_verified() {
    let signatures = bundle::parse(include_bytes!("../../tests/data/bundle.json"));
    let public = PublicKey::parse("team", "bundle.pub", include_str!("../../tests/data/bundle.pub")).unwrap();
    let keys = std::slice::from_ref(&public);
    assert_eq!(verify(&signatures, &Digest::of(b"manifest"), keys), Ok(&public));
    let other = verify(&signatures, &Digest::of(b"other"), keys);
    assert_eq!(
        other,
        Err(NotSigned::OfAnother(
            "team".to_owned(),
            Digest::of(b"manifest").to_string()
        ))
    );
}

#[test]
fn a_bundle_with_a_certificate_is_kept_whole() {
    let authority = authority::Authority::new();
    let digest = Digest::of(b"manifest");
    let bundle = authority.bundle(&authority::Signing::default(), &digest).to_string();
    let [signature] = &bundle::parse(bundle.as_bytes())[..] else {
        panic!("one signature")
    };
    let subject = crate::manifest::Descriptor::of("application/json", b"manifest");
    let (manifest, blobs) = bundle::to_manifest(subject, signature, "").unwrap();
    assert_eq!(
        blobs[1], bundle,
        "a layout has the certificate and the entry of the log"
    );
    assert_eq!(bundle::layers(&manifest).count(), 1);
    let record = serde_json::to_string(signature).unwrap();
    assert_eq!(serde_json::from_str::<Signature>(&record).unwrap(), *signature);
}
