//! A small Sigstore for tests: an authority with an intermediate certificate, a log of certificates, and a
//! transparency log with one entry.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CustomExtension, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData as _, SanType, SerialNumber, SigningKey as _, date_time_ymd,
};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::statement::{IN_TOTO, in_toto};
use super::{Signature, bundle};
use crate::Digest;

/// Issuer and subject of the tests.
pub(crate) const ISSUER: &str = "https://token.example.com";
pub(crate) const SUBJECT: &str = "https://git.example.com/acme/hold@refs/tags/v1";
/// Noon of the day on which certificates of signers are valid, 2025-06-01, in seconds.
const NOON: i64 = 1_748_779_200;
/// Type of the statement of cosign that an image is signed.
const SIGNED: &str = "https://sigstore.dev/cosign/sign/v1";
/// Extension with a signed certificate timestamp.
const SCT: &[u64] = &[1, 3, 6, 1, 4, 1, 11129, 2, 4, 2];
/// Name of the transparency log.
const LOG: &str = "log.example.com";

/// Keys of all parts.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    issuer_key: Vec<u8>,
    /// Intermediate certificate and root certificate.
    chain: Vec<Certificate>,
    certificate_log: KeyPair,
    log: KeyPair,
}

/// Content of a signature.
#[derive(Clone)]
pub(crate) struct Signing {
    pub(crate) issuer: String,
    /// Email address, or URI.
    pub(crate) subject: String,
    /// Object identifier of the extension with the issuer.
    pub(crate) issuer_extension: u64,
    pub(crate) predicate_type: String,
    pub(crate) predicate: Value,
    /// Time of the entry in the transparency log, in seconds after noon.
    pub(crate) seconds_after_noon: i64,
    /// True if the certificate has a signed certificate timestamp.
    pub(crate) is_logged: bool,
}

impl Default for Signing {
    fn default() -> Self {
        Self {
            issuer: ISSUER.to_owned(),
            subject: SUBJECT.to_owned(),
            issuer_extension: 8,
            predicate_type: SIGNED.to_owned(),
            predicate: json!({}),
            seconds_after_noon: 0,
            is_logged: true,
        }
    }
}

fn key() -> KeyPair {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap()
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    digest(&SHA256, bytes).as_ref().to_vec()
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// Encodes a value of DER.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut bytes = vec![tag];
    match length {
        0..=0x7f => bytes.push(length as u8),
        0x80..=0xff => bytes.extend([0x81, length as u8]),
        _ => bytes.extend([0x82, (length >> 8) as u8, length as u8]),
    }
    bytes.extend(content);
    bytes
}

/// Encodes bytes of TLS with their length in two bytes.
fn sized(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat()
}

fn ca(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    (params.not_before, params.not_after) = (date_time_ymd(2025, 1, 1), date_time_ymd(2035, 1, 1));
    params
}

impl Authority {
    pub(crate) fn new() -> Self {
        let (root_params, root_key) = (ca("root"), key());
        let root = root_params.self_signed(&root_key).unwrap();
        let (params, issuer_key) = (ca("intermediate"), key());
        let intermediate = params
            .signed_by(&issuer_key, &Issuer::new(root_params, root_key))
            .unwrap();
        Self {
            issuer_key: issuer_key.subject_public_key_info(),
            issuer: Issuer::new(params, issuer_key),
            chain: vec![intermediate, root],
            certificate_log: key(),
            log: key(),
        }
    }

    /// Returns the trusted root.
    pub(crate) fn root(&self) -> Value {
        let valid = json!({"start": "2025-01-01T00:00:00Z"});
        let log = |key: &KeyPair| {
            let raw = key.subject_public_key_info();
            json!({
                "baseUrl": format!("https://{LOG}"),
                "hashAlgorithm": "SHA2_256",
                "publicKey": {"rawBytes": base64(&raw), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": valid},
                "logId": {"keyId": base64(sha256(&raw))},
            })
        };
        let chain: Vec<_> = self
            .chain
            .iter()
            .map(|certificate| json!({"rawBytes": base64(certificate.der())}))
            .collect();
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log(&self.log)],
            "certificateAuthorities": [{
                "subject": {"organization": "example", "commonName": "authority"},
                "uri": "https://fulcio.example.com",
                "certChain": {"certificates": chain},
                "validFor": valid,
            }],
            "ctlogs": [log(&self.certificate_log)],
            "timestampAuthorities": [],
        })
    }

    /// Returns the bundle of a signature of an image.
    pub(crate) fn bundle(&self, signing: &Signing, image: &Digest) -> Value {
        let signer = key();
        let certificate = self.certificate(signing, &signer);
        let payload = in_toto(image, &signing.predicate_type, &signing.predicate);
        let unsigned = Signature {
            payload: payload.clone(),
            signature: String::new(),
            payload_type: Some(IN_TOTO.to_owned()),
            bundle: None,
        };
        let signature = base64(signer.sign(&unsigned.signed_bytes()).unwrap());
        let entry = self.entry(signing, &payload, &signature, &certificate);
        json!({
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {
                "certificate": {"rawBytes": base64(certificate.der())},
                "tlogEntries": [entry],
            },
            "dsseEnvelope": {
                "payload": base64(payload),
                "payloadType": IN_TOTO,
                "signatures": [{"sig": signature}],
            },
        })
    }

    /// Returns the signatures of one bundle of an image.
    pub(crate) fn sign(&self, signing: &Signing, image: &Digest) -> Vec<Signature> {
        bundle::parse(self.bundle(signing, image).to_string().as_bytes())
    }

    fn certificate(&self, signing: &Signing, signer: &KeyPair) -> Certificate {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.serial_number = Some(SerialNumber::from(7));
        (params.not_before, params.not_after) = (date_time_ymd(2025, 6, 1), date_time_ymd(2025, 6, 2));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        let subject = signing.subject.as_str().try_into().unwrap();
        params.subject_alt_names = vec![if signing.subject.contains("://") {
            SanType::URI(subject)
        } else {
            SanType::Rfc822Name(subject)
        }];
        let issuer = match signing.issuer_extension {
            1 => signing.issuer.clone().into_bytes(),
            _ => der(0x0c, signing.issuer.as_bytes()),
        };
        let oid = [1, 3, 6, 1, 4, 1, 57264, 1, signing.issuer_extension];
        params.custom_extensions = vec![CustomExtension::from_oid_content(&oid, issuer)];
        let logged = params.signed_by(signer, &self.issuer).unwrap();
        if !signing.is_logged {
            return logged;
        }
        let (_, parsed) = x509_parser::parse_x509_certificate(logged.der()).unwrap();
        let timestamp = self.certificate_timestamp(parsed.tbs_certificate.as_ref());
        params
            .custom_extensions
            .push(CustomExtension::from_oid_content(SCT, timestamp));
        params.signed_by(signer, &self.issuer).unwrap()
    }

    /// Returns the content of the extension with the signed timestamp of a certificate (RFC 6962, section 3.2).
    fn certificate_timestamp(&self, unlogged: &[u8]) -> Vec<u8> {
        let time = (NOON as u64 * 1000).to_be_bytes();
        let length = &(unlogged.len() as u32).to_be_bytes()[1..];
        let signed = [
            &[0, 0][..],
            &time,
            &[0, 1],
            &sha256(&self.issuer_key),
            length,
            unlogged,
            &[0, 0],
        ]
        .concat();
        let signature = self.certificate_log.sign(&signed).unwrap();
        let log = sha256(&self.certificate_log.subject_public_key_info());
        let timestamp = [&[0][..], &log, &time, &[0, 0], &[4, 3], &sized(&signature)].concat();
        der(0x04, &sized(&sized(&timestamp)))
    }

    /// Returns the entry of the transparency log, with promise and proof. The tree has no other entry.
    fn entry(&self, signing: &Signing, payload: &str, signature: &str, certificate: &Certificate) -> Value {
        let body = json!({
            "apiVersion": "0.0.1",
            "kind": "dsse",
            "spec": {
                "envelopeHash": {"algorithm": "sha256", "value": Digest::of(b"envelope").hex()},
                "payloadHash": {"algorithm": "sha256", "value": Digest::of(payload.as_bytes()).hex()},
                "signatures": [{"signature": signature, "verifier": base64(certificate.pem())}],
            },
        })
        .to_string();
        let time = NOON + signing.seconds_after_noon;
        let log_key = self.log.subject_public_key_info();
        let log = sha256(&log_key);
        let promise = format!(
            r#"{{"body":"{}","integratedTime":{time},"logID":"{}","logIndex":0}}"#,
            base64(&body),
            Digest::of(&log_key).hex()
        );
        let root = base64(sha256(&[&[0][..], body.as_bytes()].concat()));
        let note = format!("{LOG}\n1\n{root}\n");
        let signed_note = [&log[..4], &self.log.sign(note.as_bytes()).unwrap()].concat();
        json!({
            "logIndex": "0",
            "logId": {"keyId": base64(&log)},
            "kindVersion": {"kind": "dsse", "version": "0.0.1"},
            "integratedTime": time.to_string(),
            "inclusionPromise": {"signedEntryTimestamp": base64(self.log.sign(promise.as_bytes()).unwrap())},
            "inclusionProof": {
                "logIndex": "0",
                "rootHash": root,
                "treeSize": "1",
                "hashes": [],
                "checkpoint": {"envelope": format!("{note}\n\u{2014} {LOG} {}\n", base64(signed_note))},
            },
            "canonicalizedBody": base64(&body),
        })
    }
}
