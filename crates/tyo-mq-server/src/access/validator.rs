//! Asks a validator elsewhere over HTTP: once, within a time and a size, following nobody.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tyo_mq_auth::external::{
    ExternalRequest, ExternalResponse, ExternalUnavailable, MAX_RESPONSE_BYTES, TIMEOUT_MS,
};

pub(super) async fn ask(request: ExternalRequest) -> Result<ExternalResponse, ExternalUnavailable> {
    let timeout = Duration::from_millis(TIMEOUT_MS);
    tokio::time::timeout(timeout, post(request))
        .await
        .unwrap_or(Err(ExternalUnavailable))
}

async fn post(request: ExternalRequest) -> Result<ExternalResponse, ExternalUnavailable> {
    let mut post = Request::post(&request.url).header(header::CONTENT_TYPE, "application/json");
    if let Some(secret) = &request.secret {
        post = post.header("x-mq-auth-secret", secret.expose());
    }
    let body = Full::new(Bytes::copy_from_slice(request.body.expose().as_bytes()));
    let post = post.body(body).map_err(unavailable)?;
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_webpki_roots()
        .https_or_http()
        .enable_http1()
        .build();
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let response = client.request(post).await.map_err(unavailable)?;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES)
        .collect()
        .await
        .map_err(unavailable)?;
    Ok(ExternalResponse {
        status,
        body: body.to_bytes().to_vec(),
    })
}

/// Why there is no answer is for the operator; the client learns only that.
fn unavailable(error: impl std::fmt::Display) -> ExternalUnavailable {
    tracing::warn!(%error, "a validator did not answer");
    ExternalUnavailable
}
