//! One GET to the broker's HTTP API.

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tyo_mq_auth::secret::Secret;
use tyo_mq_client::{Address, ConnectError};

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
    let address: Address = app.target.url.parse().map_err(ConnectError::Address)?;
    let got = timeout(app.patience, exchange(&address, path, token)).await;
    let got = got.map_err(|_| format!("no answer within {:?}", app.patience));
    got.and_then(|got| got)
        .map_err(|what| Failure::Unreachable(format!("{}: {what}", app.target.url)))
}

async fn exchange(
    address: &Address,
    path: &str,
    token: Option<&Secret>,
) -> Result<Response, String> {
    let told = |error: &dyn std::error::Error| error.to_string();
    let host = address.host().trim_matches(['[', ']']);
    let tcp = TcpStream::connect((host, address.port())).await;
    let tcp = tcp.map_err(|error| told(&error))?;
    let shaken = hyper::client::conn::http1::handshake(TokioIo::new(tcp)).await;
    let (mut sender, connection) = shaken.map_err(|error| told(&error))?;
    let connection = tokio::spawn(connection);
    let authority = format!("{}:{}", address.host(), address.port());
    let mut request = Request::get(path).header(HOST, authority);
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {}", token.expose()));
    }
    let request = request
        .body(Empty::<Bytes>::new())
        .map_err(|error| told(&error))?;
    let response = sender.send_request(request).await;
    let response = response.map_err(|error| told(&error))?;
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_BODY_BYTES);
    let body = body.collect().await.map_err(|error| error.to_string())?;
    connection.abort();
    Ok(Response {
        status,
        body: String::from_utf8_lossy(&body.to_bytes()).into_owned(),
    })
}
