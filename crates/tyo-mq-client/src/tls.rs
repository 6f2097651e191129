//! TLS: whose certificates are trusted, and what went wrong in words. It knows nothing of brokers.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls_native_certs::load_native_certs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{self, CertificateError, ClientConfig, RootCertStore};

/// The largest file of authorities that is read, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Whose certificates are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trust {
    /// Those of the authorities that the system trusts, or that `SSL_CERT_FILE` and `SSL_CERT_DIR` name.
    #[default]
    System,
    /// Those of the authorities in this PEM file, and no others.
    File(PathBuf),
}

/// Why a broker is not reached over TLS.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The file of authorities cannot be used.
    #[error("{}: {reason}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The system trusts nobody.
    #[error("this system has no list of the certificate authorities that it trusts")]
    NoAuthorities,
    /// The host's name cannot be in a certificate.
    #[error("{0:?} is no name that a certificate can be for")]
    Name(String),
    /// Whoever issued the certificate is not trusted.
    #[error("certificate of {host} is issued by an authority that is not trusted")]
    UnknownIssuer {
        /// The host that was asked for.
        host: String,
    },
    /// The certificate is somebody else's.
    #[error("certificate is for {names}, not for {host}")]
    WrongHost {
        /// The host that was asked for.
        host: String,
        /// Those that the certificate is for.
        names: String,
    },
    /// The certificate is not good any more, or not yet.
    #[error("certificate of {host} is out of date, or this machine's clock is wrong")]
    OutOfDate {
        /// The host that was asked for.
        host: String,
    },
    /// The certificate is one that issues others.
    #[error("certificate of {host} is an authority's; the host needs one that issues no others")]
    IsAuthority {
        /// The host that was asked for.
        host: String,
    },
    /// The certificate is not good for another reason.
    #[error("certificate of {host} is not good: {reason}")]
    Certificate {
        /// The host that was asked for.
        host: String,
        /// Why not.
        reason: String,
    },
    /// TLS was begun with somebody who does not speak it.
    #[error("{host} does not speak TLS; where it is plain, the url begins with http")]
    NotSpoken {
        /// The host that was asked for.
        host: String,
    },
    /// Plain HTTP was spoken to somebody who expects something else.
    #[error("{host} does not take plain HTTP; where it is TLS, the url begins with https")]
    Expected {
        /// The host that was asked for.
        host: String,
    },
    /// Both sides did not come to terms.
    #[error("no TLS with {host}: {reason}")]
    Handshake {
        /// The host that was asked for.
        host: String,
        /// Why not.
        reason: String,
    },
}

impl Trust {
    /// Reads the certificates.
    pub(crate) fn load(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let mut roots = RootCertStore::empty();
        match self {
            Self::System => {
                // What cannot be read of a system's list is missing from it, and no more.
                roots.add_parsable_certificates(load_native_certs().certs);
                if roots.is_empty() {
                    return Err(TlsError::NoAuthorities);
                }
            }
            Self::File(path) => add_file(&mut roots, path).map_err(|reason| {
                let path = path.clone();
                TlsError::Authorities { path, reason }
            })?,
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has suites for the default versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Arc::new(config))
    }
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    let told = |error: &dyn std::error::Error| error.to_string();
    let length = std::fs::metadata(path).map_err(|error| told(&error))?.len();
    if length > MAX_FILE_BYTES {
        return Err(format!("longer than {MAX_FILE_BYTES} bytes"));
    }
    let text = std::fs::read(path).map_err(|error| told(&error))?;
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| told(&error))?;
        roots.add(certificate).map_err(|error| told(&error))?;
    }
    if roots.is_empty() {
        return Err("there is no certificate in PEM form in it".to_owned());
    }
    Ok(())
}

impl TlsError {
    /// Whether the body of an answer with status 400 says that it answers plain HTTP where TLS is expected.
    #[must_use]
    pub fn is_told_by(body: &str) -> bool {
        ["HTTPS", "SSL", "TLS"]
            .iter()
            .any(|word| body.contains(word))
    }

    /// What an error of the handshake means.
    pub(crate) fn of_handshake(host: &str, error: &io::Error) -> Self {
        let host = host.to_owned();
        let inner = error.get_ref().and_then(|error| error.downcast_ref());
        match inner {
            Some(rustls::Error::InvalidCertificate(error)) => Self::of_certificate(host, error),
            Some(rustls::Error::InvalidMessage(_)) => Self::NotSpoken { host },
            Some(other) => {
                let reason = other.to_string();
                Self::Handshake { host, reason }
            }
            None if error.kind() == io::ErrorKind::UnexpectedEof => Self::NotSpoken { host },
            None => {
                let reason = error.to_string();
                Self::Handshake { host, reason }
            }
        }
    }

    fn of_certificate(host: String, error: &CertificateError) -> Self {
        match error {
            // An authority of the same name with another key is another authority.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                Self::UnknownIssuer { host }
            }
            CertificateError::NotValidForNameContext { presented, .. } => {
                let names: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
                let names = match names.as_slice() {
                    [] => "nobody".to_owned(),
                    names => names.join(", "),
                };
                Self::WrongHost { host, names }
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Self::OutOfDate { host },
            CertificateError::Other(error) if error.to_string().contains(IS_AUTHORITY) => {
                Self::IsAuthority { host }
            }
            other => {
                let reason = other.to_string();
                Self::Certificate { host, reason }
            }
        }
    }
}

/// How the verifier names an authority's certificate in the place of a host's.
const IS_AUTHORITY: &str = "CaUsedAsEndEntity";

/// A name as it stands in a certificate, without its kind: `DnsName("a")` is `a`.
fn bare(name: &str) -> &str {
    let inner = name
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}
