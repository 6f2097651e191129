//! The client behind a proxy that speaks TLS: what is trusted, what is not, and in which words.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use rcgen::{BasicConstraints, IsCa};
use tempfile::TempDir;
use tyo_mq_client::{
    Client, ConnectError, Event, Options, Produce, Reconnect, Subscribe, TlsError, Trust,
};

use crate::server::{PATIENCE, Running};
use crate::tls_proxy::{Authority, Certificate, Proxy};

/// A broker, a proxy before it, and a file with the authority that it is trusted for.
struct Stage {
    broker: Running,
    proxy: Proxy,
    folder: TempDir,
}

impl Stage {
    async fn new(authority: &Authority, certificate: Certificate) -> Self {
        Self::trusting(authority.pem(), certificate).await
    }

    async fn trusting(pem: &str, certificate: Certificate) -> Self {
        let broker = Running::start().await;
        let proxy = Proxy::start(broker.addr, certificate);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), pem).unwrap();
        Self {
            broker,
            proxy,
            folder,
        }
    }

    fn options(&self) -> Options {
        Options {
            trust: Trust::File(self.folder.path().join("ca.pem")),
            connect_timeout: PATIENCE,
            call_timeout: PATIENCE,
            ..Options::default()
        }
    }

    async fn connect(&self, scheme: &str, host: &str) -> Result<Client, ConnectError> {
        let url = format!("{scheme}://{host}:{}", self.proxy.port());
        Client::connect(&url, self.options()).await
    }
}

/// Why there is no TLS.
#[track_caller]
fn refused(connected: Result<Client, ConnectError>) -> TlsError {
    match connected {
        Err(ConnectError::Tls(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn messages_go_through() {
    let authority = Authority::new("ours");
    for (scheme, host) in [("https", "127.0.0.1"), ("wss", "localhost")] {
        let stage = Stage::new(&authority, authority.certificate(host)).await;
        let client = stage.connect(scheme, host).await.unwrap();
        let consumer = client.consumer("page").await.unwrap();
        let subscribe = Subscribe::new("shop", "order");
        let mut orders = consumer.subscribe(subscribe).await.unwrap();
        let shop = client.producer("shop").await.unwrap();
        let large = "x".repeat(300_000);
        shop.produce("order", &large).await.unwrap();
        let order = orders.next().await.unwrap();
        assert_eq!(order.message.get().len(), large.len() + 2);
        client.close().await;
        stage.broker.stop().await;
    }
}

#[tokio::test]
async fn a_connection_that_was_cut_comes_back() {
    let authority = Authority::new("ours");
    let stage = Stage::new(&authority, authority.certificate("127.0.0.1")).await;
    let options = Options {
        reconnect: Some(Reconnect {
            first_delay: Duration::from_millis(1),
            ..Reconnect::default()
        }),
        ..stage.options()
    };
    let url = format!("https://127.0.0.1:{}", stage.proxy.port());
    let client = Client::connect(&url, options).await.unwrap();
    let mut events = client.events();
    stage.proxy.cut();
    while !matches!(events.next().await.unwrap(), Event::Reconnected) {}
    client.producer("shop").await.unwrap();
    let order = Produce::new("shop", "order", &1).unwrap();
    client.produce_confirmed(&order).await.unwrap();
    client.close().await;
}

#[tokio::test]
async fn whose_certificate_is_not_good() {
    let authority = Authority::new("ours");
    let host = "127.0.0.1".to_owned();
    // The second has the name of ours and another key.
    for stranger in ["theirs", "ours"] {
        let certificate = Authority::new(stranger).certificate(&host);
        let stage = Stage::new(&authority, certificate).await;
        let error = refused(stage.connect("https", &host).await);
        assert_eq!(error, TlsError::UnknownIssuer { host: host.clone() });
    }

    for other in ["broker.example", "127.0.0.2"] {
        let stage = Stage::new(&authority, authority.certificate(other)).await;
        let said = refused(stage.connect("https", &host).await).to_string();
        let expected = format!("certificate is for {other}, not for 127.0.0.1");
        assert_eq!(said, expected);
    }

    let stage = Stage::new(&authority, authority.old_certificate(&host)).await;
    let error = refused(stage.connect("https", &host).await);
    assert_eq!(error, TlsError::OutOfDate { host });
}

#[tokio::test]
async fn a_certificate_that_signs_itself() {
    let host = "127.0.0.1".to_owned();
    let (certificate, pem) = Authority::self_signed(&host, IsCa::ExplicitNoCa);
    let stage = Stage::trusting(&pem, certificate).await;
    stage.connect("https", &host).await.unwrap().close().await;

    let (certificate, pem) = Authority::self_signed(&host, AUTHORITY);
    let stage = Stage::trusting(&pem, certificate).await;
    let error = refused(stage.connect("https", &host).await);
    assert_eq!(error, TlsError::IsAuthority { host });
}

const AUTHORITY: IsCa = IsCa::Ca(BasicConstraints::Unconstrained);

#[tokio::test]
async fn plain_and_not_plain_are_told_apart() {
    let authority = Authority::new("ours");
    let host = "127.0.0.1".to_owned();
    let stage = Stage::new(&authority, authority.certificate(&host)).await;
    let error = refused(stage.connect("http", &host).await);
    assert_eq!(error, TlsError::Expected { host: host.clone() });

    let url = format!("https://{}", stage.broker.addr);
    let error = refused(Client::connect(&url, stage.options()).await);
    assert_eq!(error, TlsError::NotSpoken { host: host.clone() });

    // A proxy that tells in HTTP that it expects TLS.
    let addr = answering(b"HTTP/1.1 400 Bad Request\r\n\r\nan HTTP request to an HTTPS port");
    let connected = Client::connect(&format!("http://{addr}"), Options::default()).await;
    assert_eq!(
        refused(connected),
        TlsError::Expected { host: host.clone() }
    );
    // One that tells nothing.
    let addr = answering(b"");
    let connected = Client::connect(&format!("http://{addr}"), Options::default()).await;
    assert_eq!(refused(connected), TlsError::Expected { host });
    // One that has another reason.
    let addr = answering(b"HTTP/1.1 400 Bad Request\r\n\r\n{\"code\":3}");
    let connected = Client::connect(&format!("http://{addr}"), Options::default()).await;
    assert!(
        matches!(connected, Err(ConnectError::WebSocket(_))),
        "{connected:?}"
    );
}

#[tokio::test]
async fn files_of_authorities() {
    let folder = tempfile::tempdir().unwrap();
    let check = async |name: &str, text: Option<&str>, expected: &str| {
        let path = folder.path().join(name);
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        let options = Options {
            trust: Trust::File(path.clone()),
            ..Options::default()
        };
        let error = refused(Client::connect("https://127.0.0.1:1", options).await);
        let said = error.to_string();
        assert!(said.starts_with(&path.display().to_string()), "{said}");
        assert!(said.contains(expected), "{said}");
    };
    check("nowhere", None, "No such file").await;
    check("empty", Some(""), "no certificate").await;
    check("words", Some("hello"), "no certificate").await;
    let cut = "-----BEGIN CERTIFICATE-----\nMIIB";
    check("cut", Some(cut), "section").await;
    let wrong = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    check("wrong", Some(wrong), "certificate").await;
}

#[tokio::test]
async fn a_name_that_nobody_can_have() {
    let url = "https://-a-:1";
    let error = refused(Client::connect(url, Options::default()).await);
    assert_eq!(error, TlsError::Name("-a-".to_owned()));
}

/// Somebody who answers one connection with these bytes, whatever it says.
fn answering(answer: &'static [u8]) -> SocketAddr {
    use std::io::{Read, Write};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut tcp, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        assert!(tcp.read(&mut request).unwrap() > 0);
        tcp.write_all(answer).unwrap();
    });
    addr
}
