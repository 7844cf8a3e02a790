//! Expiry of certificates.

use anyhow::{Context as _, bail};
use bulkhead_core::time::Time;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Returns the expiry of the first certificate of a chain, which is the one presented; the rest are authorities.
pub fn of_chain(pem: &[u8]) -> anyhow::Result<Time> {
    all(pem)?.first().copied().context("it contains no certificate")
}

/// Returns the latest expiry in a bundle of authorities.
pub fn of_bundle(pem: &[u8]) -> anyhow::Result<Time> {
    all(pem)?.into_iter().max().context("it contains no certificate")
}

fn all(pem: &[u8]) -> anyhow::Result<Vec<Time>> {
    CertificateDer::pem_slice_iter(pem)
        .map(|der| of_der(&der.context("it is not PEM")?))
        .collect()
}

/// Returns the expiry of a certificate in DER.
pub fn of_der(der: &[u8]) -> anyhow::Result<Time> {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else {
        bail!("it is not an X.509 certificate")
    };
    Ok(Time::from_millis(
        certificate.validity().not_after.timestamp().saturating_mul(1000),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(year: i32) -> String {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["a".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 2, 3);
        params.self_signed(&key).unwrap().pem()
    }

    #[test]
    fn a_chain_ends_with_its_first_and_a_bundle_with_its_last() {
        let pem = made(2031) + &made(2035);
        assert_eq!(of_chain(pem.as_bytes()).unwrap().to_string(), "2031-02-03T00:00:00Z");
        assert_eq!(of_bundle(pem.as_bytes()).unwrap().to_string(), "2035-02-03T00:00:00Z");
        assert!(of_chain(b"").unwrap_err().to_string().contains("no certificate"));
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(of_chain(broken.as_bytes()).unwrap_err().to_string().contains("X.509"));
    }
}
