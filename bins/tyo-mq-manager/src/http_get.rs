//! One GET to the broker's HTTP API.

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use tyo_mq_auth::secret::Secret;
use tyo_mq_client::{Address, ConnectError, Connector, TlsError};

use crate::app::App;
use crate::exit::Failure;

/// The largest answer that is read, in bytes.
const MAX_BODY_BYTES: usize = 64 << 20;

/// What was answered.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) body: String,
}

/// Gets a path, with a bearer token if there is one.
pub(crate) async fn get(
    app: &App,
    path: &str,
    token: Option<&Secret>,
) -> Result<Response, Failure> {
    let target = &app.target;
    let address: Address = target.url.parse().map_err(ConnectError::Address)?;
    let connector = Connector::new(address, &target.trust).await?;
    let got = timeout(app.patience, exchange(&connector, path, token)).await;
    let got = got.unwrap_or_else(|_| {
        let what = format!("no answer within {:?}", app.patience);
        Err(Failure::Unreachable(what))
    });
    got.map_err(|failure| failure.of_broker(&target.url))
}

async fn exchange(
    connector: &Connector,
    path: &str,
    token: Option<&Secret>,
) -> Result<Response, Failure> {
    let stream = TokioIo::new(connector.open().await?);
    let address = connector.address();
    let failed = |error| failure(address, &error);
    let shaken = hyper::client::conn::http1::handshake(stream).await;
    let (mut sender, connection) = shaken.map_err(failed)?;
    let connection = tokio::spawn(connection);
    let authority = format!("{}:{}", address.host(), address.port());
    let mut request = Request::get(path).header(HOST, authority);
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {}", token.expose()));
    }
    let request = request
        .body(Empty::<Bytes>::new())
        .map_err(|error| Failure::Local(error.to_string()))?;
    let response = sender.send_request(request).await.map_err(failed)?;
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_BODY_BYTES);
    let body = body.collect().await;
    let body = body.map_err(|error| Failure::Unreachable(error.to_string()))?;
    connection.abort();
    let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    if status == StatusCode::BAD_REQUEST && !address.is_secure() && TlsError::is_told_by(&body) {
        return Err(expects_tls(address));
    }
    Ok(Response { status, body })
}

/// Why there is no answer. TLS answers plain HTTP with something that is none, or with nothing.
fn failure(address: &Address, error: &hyper::Error) -> Failure {
    if (error.is_parse() || error.is_incomplete_message()) && !address.is_secure() {
        return expects_tls(address);
    }
    Failure::Unreachable(error.to_string())
}

fn expects_tls(address: &Address) -> Failure {
    let host = address.host().to_owned();
    ConnectError::from(TlsError::Expected { host }).into()
}
