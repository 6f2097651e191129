//! A proxy that speaks TLS before a broker that does not, with certificates that are made for a test.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto};

/// Somebody who issues certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate and its key.
pub(crate) struct Certificate {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

/// The proxy; it ends when it is dropped.
pub(crate) struct Proxy {
    addr: SocketAddr,
    cuts: watch::Sender<u32>,
    _stop: oneshot::Sender<()>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// Its own certificate, as a client wants it.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for a host that no authority issued, and its PEM form. It may issue others, or not.
    pub(crate) fn self_signed(host: &str, is_ca: IsCa) -> (Certificate, String) {
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        params.is_ca = is_ca;
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let pem = certificate.pem();
        (Certificate::new(&certificate, &key), pem)
    }

    /// A certificate for a host's name or address.
    pub(crate) fn certificate(&self, host: &str) -> Certificate {
        self.signed(CertificateParams::new([host.to_owned()]).unwrap())
    }

    /// A certificate that was good once.
    pub(crate) fn old_certificate(&self, host: &str) -> Certificate {
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        params.not_after = date_time_ymd(2001, 1, 1);
        self.signed(params)
    }

    fn signed(&self, params: CertificateParams) -> Certificate {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Certificate::new(&certificate, &key)
    }
}

impl Certificate {
    fn new(certificate: &rcgen::Certificate, key: &KeyPair) -> Self {
        Self {
            certificate: certificate.der().clone(),
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        }
    }
}

impl Proxy {
    /// Listens on a free port, and carries what comes there to a broker.
    pub(crate) fn start(broker: SocketAddr, certificate: Certificate) -> Self {
        let acceptor = acceptor(certificate);
        let (tell, told) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let (cuts, cut) = watch::channel(0);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                tokio::select! {
                    () = accept(&listener, &acceptor, broker, &cut) => {}
                    // A test that ends ends its proxy.
                    _ = stopped => {}
                }
            });
        });
        Self {
            addr: told.recv().unwrap(),
            cuts,
            _stop: stop,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.addr.port()
    }

    /// Ends all connections that there are.
    pub(crate) fn cut(&self) {
        self.cuts.send_modify(|count| *count += 1);
    }
}

fn acceptor(certificate: Certificate) -> TlsAcceptor {
    let Certificate { certificate, key } = certificate;
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn accept(
    listener: &TcpListener,
    acceptor: &TlsAcceptor,
    broker: SocketAddr,
    cut: &watch::Receiver<u32>,
) {
    loop {
        let (tcp, _) = listener.accept().await.unwrap();
        let (acceptor, mut cut) = (acceptor.clone(), cut.clone());
        cut.mark_unchanged();
        tokio::spawn(async move {
            let carried = async {
                let mut client = acceptor.accept(tcp).await?;
                let mut server = TcpStream::connect(broker).await?;
                tokio::io::copy_bidirectional(&mut client, &mut server).await
            };
            tokio::select! {
                // How it ends is the peers' matter.
                _ = carried => {}
                _ = cut.changed() => {}
            }
        });
    }
}
