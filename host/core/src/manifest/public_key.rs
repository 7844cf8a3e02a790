//! Public keys in PEM, read without cryptography, so that admission and processes agree about them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// Start of the DER of every public key of the curve P-256, before its uncompressed point.
pub const P256_START: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// Length of an uncompressed point, in bytes.
const POINT_BYTES: usize = 65;
/// First byte of an uncompressed point.
const UNCOMPRESSED: u8 = 4;
/// First and last line of the PEM.
const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const END: &str = "-----END PUBLIC KEY-----";

/// Returns the uncompressed point of an ECDSA key of the curve P-256 in PEM (`PUBLIC KEY`), as cosign and OpenSSL write
/// it.
///
/// # Errors
///
/// It is not PEM, or another kind of key.
pub fn p256_point(pem: &str) -> Result<Vec<u8>, String> {
    let not_pem = |cause: &str| format!("is not a public key in PEM (BEGIN PUBLIC KEY): {cause}");
    let (_, rest) = pem.split_once(BEGIN).ok_or_else(|| not_pem("it has no first line"))?;
    let (body, _) = rest.split_once(END).ok_or_else(|| not_pem("it has no last line"))?;
    let digits: String = body.split_ascii_whitespace().collect();
    let der = BASE64_STANDARD
        .decode(digits)
        .map_err(|error| not_pem(&error.to_string()))?;
    match der.strip_prefix(&P256_START) {
        Some(point) if point.len() == POINT_BYTES && point.first() == Some(&UNCOMPRESSED) => Ok(point.to_vec()),
        _ => Err("is not an ECDSA key of the curve P-256, which `cosign generate-key-pair` makes".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem(der: &[u8]) -> String {
        let text = BASE64_STANDARD.encode(der);
        let (first, second) = text.split_at(text.len() / 2);
        format!("{BEGIN}\n{first}\n{second}\n{END}\n")
    }

    fn key(point: &[u8]) -> Vec<u8> {
        [&P256_START[..], point].concat()
    }

    #[test]
    fn a_key_has_the_start_of_its_curve_and_an_uncompressed_point() {
        let point = [[UNCOMPRESSED].as_slice(), &[7; POINT_BYTES - 1]].concat();
        assert_eq!(p256_point(&pem(&key(&point))), Ok(point.clone()));
        assert_eq!(
            p256_point(&format!("a comment\n{}", pem(&key(&point)))),
            Ok(point.clone())
        );
        let check = |pem: &str, part: &str| {
            let message = p256_point(pem).unwrap_err();
            assert!(message.contains(part), "no {part:?} in: {message}");
        };
        check("text", "is not a public key in PEM (BEGIN PUBLIC KEY)");
        check(BEGIN, "it has no last line");
        check(&format!("{BEGIN}\n?\n{END}"), "is not a public key in PEM");
        let other = "is not an ECDSA key of the curve P-256";
        check(&pem(&key(&point[1..])), other);
        check(&pem(&key(&[2; POINT_BYTES])), other);
        check(&pem(&[&key(&point)[..], &[0]].concat()), other);
        check(&pem(&[1; 91]), other);
    }
}
