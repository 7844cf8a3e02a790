//! Private keys as cosign encrypts them: PEM with JSON inside, which names a key derivation (scrypt), a cipher
//! (secretbox of NaCl) and their parameters (go-securesystemslib: `encrypted/encrypted.go`).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use crypto_secretbox::aead::{Aead as _, KeyInit as _};
use crypto_secretbox::{Key, Nonce, XSalsa20Poly1305};
use serde::Deserialize;

/// Labels of the PEM: of cosign 2 and later, and of cosign 1.
const LABELS: [&str; 2] = ["ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY"];
/// Length of the key of the cipher, and of its nonce, in bytes.
const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
/// Maximum memory of the key derivation in bytes. Cosign's keys need 32 or 64 MiB.
const MEMORY_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of passes of the key derivation, which takes about 0.1 s for one.
const PASSES_MAX: u32 = 16;

#[derive(Deserialize)]
struct Encrypted {
    kdf: Kdf,
    cipher: Cipher,
    ciphertext: String,
}

#[derive(Deserialize)]
struct Kdf {
    name: String,
    params: Params,
    salt: String,
}

#[derive(Deserialize)]
struct Params {
    #[serde(rename = "N")]
    cost: u64,
    r: u32,
    p: u32,
}

#[derive(Deserialize)]
struct Cipher {
    name: String,
    nonce: String,
}

/// Returns true if a PEM is a key that cosign has encrypted.
pub(super) fn is_encrypted(pem: &str) -> bool {
    LABELS.iter().any(|label| pem.contains(&format!("BEGIN {label}")))
}

/// Decrypts a key with its password. Returns its PKCS #8, or the cause and a remedy.
pub(super) fn decrypt(pem: &str, password: &str) -> Result<Vec<u8>, String> {
    let block = ::pem::parse(pem).map_err(|error| format!("is not PEM: {error}"))?;
    if !LABELS.contains(&block.tag()) {
        return Err(format!("is not an encrypted key of cosign, but a {:?}", block.tag()));
    }
    let Encrypted {
        kdf,
        cipher,
        ciphertext,
    } = serde_json::from_slice(block.contents())
        .map_err(|error| format!("does not have the JSON of an encrypted key of cosign: {error}"))?;
    for (found, supported) in [(&kdf.name, "scrypt"), (&cipher.name, "nacl/secretbox")] {
        if found != supported {
            let found = bulkhead_plugin::one_line(found, super::bundle::SHOWN_CHARS_MAX);
            return Err(format!("is encrypted with {found}, and only {supported} is supported"));
        }
    }
    let nonce = decode("cipher.nonce", &cipher.nonce)?;
    if nonce.len() != NONCE_BYTES {
        return Err(format!(
            "cipher.nonce has {} bytes, and must have {NONCE_BYTES}",
            nonce.len()
        ));
    }
    let key = derive(&kdf, password)?;
    let opener = XSalsa20Poly1305::new(Key::from_slice(&key));
    let opened = opener.decrypt(Nonce::from_slice(&nonce), decode("ciphertext", &ciphertext)?.as_slice());
    opened.map_err(|_| "cannot be decrypted: the password is not its own, or the file is damaged".to_owned())
}

/// Returns the key of the cipher.
fn derive(kdf: &Kdf, password: &str) -> Result<[u8; KEY_BYTES], String> {
    let Params { cost, r, p } = kdf.params;
    let invalid = || format!("kdf.params N={cost} r={r} p={p} are not parameters of scrypt");
    // The cost is a power of two, and 128 * cost * r is the memory.
    let memory_bytes = cost
        .checked_mul(u64::from(r))
        .and_then(|product| product.checked_mul(128));
    if !cost.is_power_of_two() || memory_bytes.is_none_or(|bytes| bytes > MEMORY_BYTES_MAX) || p > PASSES_MAX {
        return Err(invalid());
    }
    let log_cost = u8::try_from(cost.ilog2()).map_err(|_| invalid())?;
    let params = scrypt::Params::new(log_cost, r, p, KEY_BYTES).map_err(|_| invalid())?;
    let mut key = [0; KEY_BYTES];
    let salt = decode("kdf.salt", &kdf.salt)?;
    scrypt::scrypt(password.as_bytes(), &salt, &params, &mut key).map_err(|_| invalid())?;
    Ok(key)
}

fn decode(field: &str, text: &str) -> Result<Vec<u8>, String> {
    BASE64_STANDARD
        .decode(text)
        .map_err(|error| format!("{field} is not base64: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{PublicKey, SigningKey, verify};
    use super::*;
    use crate::Digest;

    /// A key of the format, encrypted with libsodium and OpenSSL, with a cost that takes no time.
    const FAST: &str = include_str!("../../tests/data/encrypted-key-fast.json");
    const PUBLIC: &str = include_str!("../../tests/data/encrypted-key.pub");
    const PASSWORD: &str = "correct horse";

    fn armored(label: &str, json: &str) -> String {
        let body = BASE64_STANDARD.encode(json.trim_end());
        let lines: Vec<_> = body.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
        with_label(label, &lines.join("\n"))
    }

    fn with_label(label: &str, body: &str) -> String {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", body.trim_end())
    }

    fn signs(pem: &str) {
        assert!(SigningKey::is_encrypted(pem));
        let key = SigningKey::decrypt("team.key", pem, PASSWORD).unwrap();
        let (image, digest) = ("r.io/a:1".parse().unwrap(), Digest::of(b"manifest"));
        let signature = key.sign(&image, &digest).unwrap();
        let public = PublicKey::parse("team", "team.pub", PUBLIC).unwrap();
        assert_eq!(
            verify(&[signature], &digest, std::slice::from_ref(&public)),
            Ok(&public)
        );
    }

    #[test]
    fn a_key_of_each_version_of_cosign_signs() {
        for label in LABELS {
            signs(&armored(label, FAST));
        }
    }

    /// The cost that cosign chooses: 64 MiB.
    #[test]
    fn a_key_with_the_cost_of_cosign_signs() {
        signs(&with_label(
            LABELS[0],
            include_str!("../../tests/data/encrypted-key.b64"),
        ));
    }

    #[test]
    fn a_mistake_is_named() {
        let check = |pem: &str, password: &str, part: &str| {
            let message = SigningKey::decrypt("team.key", pem, password).unwrap_err().to_string();
            assert!(
                message.starts_with("team.key: ") && message.contains(part),
                "no {part:?} in: {message}"
            );
            assert!(!message.contains(PASSWORD), "{message}");
        };
        let pem = armored(LABELS[0], FAST);
        for password in ["wrong", ""] {
            check(&pem, password, "cannot be decrypted: the password is not its own");
        }
        check("", PASSWORD, "is not PEM");
        check(&armored("PUBLIC KEY", "{}"), PASSWORD, "but a \"PUBLIC KEY\"");
        check(
            &armored(LABELS[1], "{}"),
            PASSWORD,
            "does not have the JSON of an encrypted key",
        );
        let changed = |field: &str, value: Value| {
            let mut json: Value = serde_json::from_str(FAST).unwrap();
            *json.pointer_mut(field).unwrap() = value;
            armored(LABELS[0], &json.to_string())
        };
        let changes = [
            ("/kdf/name", json!("argon2"), "argon2, and only scrypt is supported"),
            (
                "/cipher/name",
                json!("aes"),
                "aes, and only nacl/secretbox is supported",
            ),
            (
                "/kdf/params/N",
                json!(1000),
                "N=1000 r=8 p=1 are not parameters of scrypt",
            ),
            ("/kdf/params/N", json!(1_u64 << 40), "are not parameters of scrypt"),
            ("/kdf/params/r", json!(0), "are not parameters of scrypt"),
            ("/kdf/params/p", json!(1_000_000), "are not parameters of scrypt"),
            (
                "/cipher/nonce",
                json!("AAAA"),
                "cipher.nonce has 3 bytes, and must have 24",
            ),
            ("/kdf/salt", json!("?"), "kdf.salt is not base64"),
            ("/ciphertext", json!("AAAA"), "cannot be decrypted"),
        ];
        for (field, value, part) in changes {
            check(&changed(field, value), PASSWORD, part);
        }
    }
}
