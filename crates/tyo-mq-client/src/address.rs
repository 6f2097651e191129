//! Where a broker is: the parts of its URL that a client needs.

use std::fmt;
use std::str::FromStr;

use tokio_tungstenite::tungstenite::http::Uri;

/// The port of a broker whose URL names none.
const DEFAULT_PORT: u16 = 17352;

/// The port of TLS, which a proxy before the broker speaks.
const DEFAULT_TLS_PORT: u16 = 443;

/// The path of Engine.IO where the URL names none.
const DEFAULT_PATH: &str = "/socket.io/";

/// The address of a broker, as `http://host:port` or `ws://host:port`; with TLS, as `https://host:port` or `wss://host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    is_secure: bool,
    host: String,
    port: u16,
    path: String,
}

/// Why a text is no address that this client can use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// No URL.
    #[error("{0:?} is not a url such as http://localhost:17352")]
    Malformed(String),
    /// Another scheme.
    #[error("{0:?} is not a scheme that a broker has; http, https, ws and wss are")]
    Scheme(String),
}

impl Address {
    /// The host: a name, an address, or an IPv6 address in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether TLS is spoken there.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// What a socket is opened to.
    pub(crate) fn target(&self) -> (&str, u16) {
        let host = self.host.strip_prefix('[').unwrap_or(&self.host);
        (host.strip_suffix(']').unwrap_or(host), self.port)
    }

    /// The URL of the WebSocket.
    pub(crate) fn websocket_url(&self) -> String {
        let Self {
            is_secure,
            host,
            port,
            path,
        } = self;
        let scheme = if *is_secure { "wss" } else { "ws" };
        format!("{scheme}://{host}:{port}{path}?EIO=4&transport=websocket")
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(url: &str) -> Result<Self, AddressError> {
        let malformed = || AddressError::Malformed(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| malformed())?;
        let is_secure = match uri.scheme_str() {
            Some("http" | "ws") => false,
            Some("https" | "wss") => true,
            Some(other) => return Err(AddressError::Scheme(other.to_owned())),
            None => return Err(malformed()),
        };
        let authority = uri.authority().ok_or_else(malformed)?;
        let host = authority.host();
        if host.is_empty() || authority.as_str().contains('@') {
            return Err(malformed());
        }
        let path = match uri.path() {
            "/" => DEFAULT_PATH,
            other => other,
        };
        let default_port = if is_secure {
            DEFAULT_TLS_PORT
        } else {
            DEFAULT_PORT
        };
        Ok(Self {
            is_secure,
            host: host.to_owned(),
            port: authority.port_u16().unwrap_or(default_port),
            path: path.to_owned(),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)?;
        if self.path != DEFAULT_PATH {
            f.write_str(&self.path)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expected: &str) {
        let address: Address = url.parse().unwrap();
        let expected = format!("{expected}?EIO=4&transport=websocket");
        assert_eq!(address.websocket_url(), expected);
        assert_eq!(address.to_string().parse(), Ok(address));
    }

    #[test]
    fn addresses() {
        check("http://localhost", "ws://localhost:17352/socket.io/");
        check("ws://localhost:1/", "ws://localhost:1/socket.io/");
        check("http://[::1]:80/mq/", "ws://[::1]:80/mq/");
        check("https://broker", "wss://broker:443/socket.io/");
        check("wss://[::1]:17352/mq/", "wss://[::1]:17352/mq/");
        let address: Address = "http://[::1]:80".parse().unwrap();
        assert_eq!(address.target(), ("::1", 80));
    }

    #[test]
    fn what_is_no_address() {
        for url in [
            "",
            "localhost",
            "http://",
            "http://u:p@h/",
            "h:1/x",
            "http://a b",
        ] {
            let refused = url.parse::<Address>();
            assert!(
                matches!(
                    refused,
                    Err(AddressError::Malformed(_) | AddressError::Scheme(_))
                ),
                "{url}"
            );
        }
    }
}
