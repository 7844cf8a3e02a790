//! Certificates of servers on loopback, from an authority of their own.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// Certificate of a server, its key, and the certificate of its authority.
pub(crate) struct Issued {
    pub(crate) authority: rcgen::Certificate,
    pub(crate) certificate: rcgen::Certificate,
    pub(crate) key: KeyPair,
}

/// Issues a certificate for 127.0.0.1.
pub(crate) fn issue() -> anyhow::Result<Issued> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, "authority of a test");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.signed_by(&key, &authority)?;
    Ok(Issued {
        authority: authority.as_ref().clone(),
        certificate,
        key,
    })
}
