use bulkhead_core::manifest::trust::identity::TrustIdentity;
use serde_json::{Value, json};

use super::*;
use crate::signature::authority::{Authority, ISSUER, SUBJECT, Signing};
use crate::signature::{Identity, NotSigned, Signers, bundle};

fn wanted(issuer: &str, subject: &str) -> Identity {
    Identity::new(TrustIdentity {
        issuer: issuer.to_owned(),
        subject: Some(subject.to_owned()),
        subject_regex: None,
    })
    .unwrap()
}

fn pattern(pattern: &str) -> Identity {
    Identity::new(TrustIdentity {
        issuer: ISSUER.to_owned(),
        subject: None,
        subject_regex: Some(pattern.to_owned()),
    })
    .unwrap()
}

fn accepting(root: &Value, identities: Vec<Identity>) -> Signers {
    let root = TrustedRoot::parse("root.json", &root.to_string());
    Signers::default().with_identities(identities, root)
}

fn image() -> Digest {
    Digest::of(b"manifest")
}

fn verified(bundle: &Value, signers: &Signers) -> Result<String, NotSigned> {
    let signatures = bundle::parse(bundle.to_string().as_bytes());
    assert_eq!(signatures.len(), 1, "{bundle}");
    signers.verify(&signatures, &image())
}

#[test]
fn a_signature_with_a_certificate_counts_for_its_identity() {
    let authority = Authority::new();
    let recorded = |subject: &str| Ok(format!("{subject} ({ISSUER})"));
    let check = |signing: &Signing, identity: Identity| {
        let bundle = authority.bundle(signing, &image());
        let signers = accepting(&authority.root(), vec![wanted(ISSUER, "other@example.com"), identity]);
        assert_eq!(verified(&bundle, &signers), recorded(&signing.subject));
    };
    check(&Signing::default(), wanted(ISSUER, SUBJECT));
    check(
        &Signing::default(),
        pattern(r"https://git\.example\.com/acme/.*@refs/tags/v\d+"),
    );
    let of_person = Signing {
        subject: "team@example.com".to_owned(),
        issuer_extension: 1,
        ..Signing::default()
    };
    check(&of_person, wanted(ISSUER, "team@example.com"));
}

/// Each mistake in a bundle, with a part of the refusal.
#[test]
fn a_bundle_with_a_mistake_is_refused_with_its_condition() {
    let (authority, other) = (Authority::new(), Authority::new());
    let signers = accepting(&authority.root(), vec![wanted(ISSUER, SUBJECT)]);
    let check = |bundle: &Value, condition: &str| {
        let message = verified(bundle, &signers).unwrap_err().to_string();
        assert!(
            message.ends_with(&format!("({condition})")),
            "no {condition}: {message}"
        );
    };
    let whole = || authority.bundle(&Signing::default(), &image());
    let signed = |signing: Signing| authority.bundle(&signing, &image());
    assert!(verified(&whole(), &signers).is_ok());
    check(
        &signed(Signing {
            subject: "https://git.example.com/fork/hold@refs/tags/v1".to_owned(),
            ..Signing::default()
        }),
        "IdentityMismatch",
    );
    check(
        &signed(Signing {
            issuer: "https://other.example.com".to_owned(),
            ..Signing::default()
        }),
        "IssuerMismatch",
    );
    check(
        &authority.bundle(&Signing::default(), &Digest::of(b"x")),
        "SignatureOfAnother",
    );
    let mut of_other = other.bundle(&Signing::default(), &image());
    check(&of_other, "LogEntryInvalid");
    // The logs are trusted, and the authority is not.
    let mut root = other.root();
    root["certificateAuthorities"] = authority.root()["certificateAuthorities"].clone();
    let trusts_logs = accepting(&root, vec![wanted(ISSUER, SUBJECT)]);
    let message = verified(&of_other, &trusts_logs).unwrap_err().to_string();
    assert!(message.ends_with("(CertificateUntrusted)"), "{message}");
    of_other["verificationMaterial"]["tlogEntries"] = whole()["verificationMaterial"]["tlogEntries"].clone();
    check(&of_other, "CertificateUntrusted");
    for seconds in [-13 * 3600, 13 * 3600] {
        check(
            &signed(Signing {
                seconds_after_noon: seconds,
                ..Signing::default()
            }),
            "CertificateExpired",
        );
    }
    check(
        &signed(Signing {
            is_logged: false,
            ..Signing::default()
        }),
        "CertificateNotLogged",
    );
    let changed = |path: &str, value: Value| {
        let mut bundle = whole();
        *bundle.pointer_mut(path).unwrap() = value;
        bundle
    };
    let entry = "/verificationMaterial/tlogEntries/0";
    check(
        &changed("/verificationMaterial/tlogEntries", json!([])),
        "LogEntryMissing",
    );
    let mut without_proof = whole();
    let fields = without_proof.pointer_mut(entry).unwrap().as_object_mut().unwrap();
    fields.remove("inclusionProof");
    check(&without_proof, "LogEntryMissing");
    let mut without_promise = whole();
    let fields = without_promise.pointer_mut(entry).unwrap().as_object_mut().unwrap();
    fields.remove("inclusionPromise");
    check(&without_promise, "LogEntryMissing");
    check(
        &changed(&format!("{entry}/integratedTime"), json!("1748779201")),
        "LogEntryInvalid",
    );
    let of_another_signature = whole()["verificationMaterial"]["tlogEntries"][0].clone();
    check(&changed(entry, of_another_signature), "LogEntryInvalid");
    let mut forged = whole();
    forged["dsseEnvelope"]["signatures"] = whole()["dsseEnvelope"]["signatures"].clone();
    check(&forged, "SignatureInvalid");
    let older = json!("application/vnd.dev.sigstore.bundle+json;version=0.2");
    check(&changed("/mediaType", older), "BundleInvalid");
}

#[test]
fn a_trusted_root_that_does_not_cover_the_signature_is_named() {
    let authority = Authority::new();
    let check = |change: &dyn Fn(&mut Value), expected: Result<(), &str>| {
        let mut root = authority.root();
        change(&mut root);
        let bundle = authority.bundle(&Signing::default(), &image());
        let found = verified(&bundle, &accepting(&root, vec![wanted(ISSUER, SUBJECT)]));
        match (found, expected) {
            (Ok(_), Ok(())) => {}
            (Err(cause), Err(part)) => assert!(cause.to_string().contains(part), "no {part:?} in: {cause}"),
            (found, _) => panic!("{found:?}, not {expected:?}"),
        }
    };
    let other = Authority::new();
    check(
        &|root| {
            root["certificateAuthorities"][0]["validFor"] =
                json!({"start": "2025-01-01T00:00:00Z", "end": "2025-02-01T00:00:00Z"});
        },
        Err("(TrustedRootExpired)"),
    );
    check(
        &|root| root["tlogs"][0]["publicKey"]["validFor"]["end"] = json!("2025-02-01T00:00:00Z"),
        Err("(LogEntryInvalid)"),
    );
    check(
        &|root| root["ctlogs"] = other.root()["ctlogs"].clone(),
        Err("(CertificateNotLogged)"),
    );
    // Without logs of certificates in the root, no certificate needs one.
    check(&|root| root["ctlogs"] = json!([]), Ok(()));
    // An object may have a root whose certificates cannot be read.
    check(
        &|root| {
            root["certificateAuthorities"][0]["certChain"]["certificates"] = json!([{"rawBytes": "MEUC"}]);
        },
        Err("root.json: is not a valid trusted root"),
    );
    check(
        &|root| root["mediaType"] = json!("text/plain"),
        Err("(TrustedRootInvalid)"),
    );
}

#[test]
fn a_rule_without_identities_names_the_signer() {
    let authority = Authority::new();
    let bundle = authority.bundle(&Signing::default(), &image());
    let message = verified(&bundle, &Signers::default()).unwrap_err().to_string();
    let expected = format!("it is signed with a certificate for {SUBJECT} ({ISSUER}), and the rule has no identities");
    assert!(
        message.starts_with(&expected) && message.ends_with("(IdentityNotConfigured)"),
        "{message}"
    );
}

#[test]
fn the_statement_that_counts_is_the_one_that_was_verified() {
    let authority = Authority::new();
    let signers = accepting(&authority.root(), vec![wanted(ISSUER, SUBJECT)]);
    let attested = Signing {
        predicate_type: "https://slsa.dev/provenance/v1".to_owned(),
        ..Signing::default()
    };
    let signatures = authority.sign(&attested, &image());
    assert_eq!(signers.verify(&signatures, &image()), Err(NotSigned::Missing));
    // A record that was changed in the cache says that the image is signed.
    let payload = authority.sign(&Signing::default(), &image())[0].payload.clone();
    let changed = Signature {
        payload,
        ..signatures[0].clone()
    };
    let message = signers.verify(&[changed], &image()).unwrap_err().to_string();
    assert!(message.ends_with("(BundleInvalid)"), "{message}");
}

#[test]
fn the_nearest_of_several_signatures_is_named() {
    let authority = Authority::new();
    let signers = accepting(&authority.root(), vec![wanted(ISSUER, SUBJECT)]);
    let of = |issuer: &str, subject: &str| {
        let signing = Signing {
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
            ..Signing::default()
        };
        authority.sign(&signing, &image())
    };
    let mut all = Authority::new().sign(&Signing::default(), &image());
    all.extend(of("https://other.example.com", SUBJECT));
    all.extend(of(ISSUER, "other@example.com"));
    let message = signers.verify(&all, &image()).unwrap_err().to_string();
    assert!(message.ends_with("(IssuerMismatch)"), "{message}");
    all.extend(of(ISSUER, SUBJECT));
    assert!(signers.verify(&all, &image()).is_ok());
}
