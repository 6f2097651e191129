//! Byte streams to a broker: TCP, and TLS on it where the address says so. It knows nothing of what is said on them.

use std::fmt;
use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::{Address, ConnectError, TlsError, Trust};

/// Opens streams to one address.
#[derive(Clone)]
pub struct Connector {
    address: Address,
    tls: Option<Tls>,
}

/// What is read from and written to.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A stream, plain or not.
pub type Stream = Box<dyn Duplex>;

#[derive(Clone)]
struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Connector {
    /// Reads the certificates of those who are trusted, if the address needs TLS.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn new(address: Address, trust: &Trust) -> Result<Self, ConnectError> {
        let tls = if address.is_secure() {
            Some(Tls::new(&address, trust.clone()).await?)
        } else {
            None
        };
        Ok(Self { address, tls })
    }

    /// Where the streams go.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Opens a stream.
    ///
    /// # Errors
    /// When nobody listens there, or it is not who it should be.
    pub async fn open(&self) -> Result<Stream, ConnectError> {
        let tcp = TcpStream::connect(self.address.target()).await?;
        tcp.set_nodelay(true)?;
        let Some(Tls { connector, name }) = &self.tls else {
            return Ok(Box::new(tcp));
        };
        match connector.connect(name.clone(), tcp).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(TlsError::of_handshake(self.address.host(), &error).into()),
        }
    }
}

impl Tls {
    async fn new(address: &Address, trust: Trust) -> Result<Self, ConnectError> {
        let (host, _) = address.target();
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| TlsError::Name(host.to_owned()))?;
        let loaded = tokio::task::spawn_blocking(move || trust.load()).await;
        let config = loaded.map_err(io::Error::other)??;
        Ok(Self {
            connector: TlsConnector::from(config),
            name,
        })
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connector").field(&self.address).finish()
    }
}
