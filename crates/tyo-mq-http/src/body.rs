//! Reads the body of a request: as much as is allowed, as long as is allowed.

use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::timeout;

use crate::Refused;

/// The largest body, in bytes. A larger one is answered 400.
pub(crate) const MAX_BODY_BYTES: usize = 64 * 1024;

/// A body must have come by then, or the answer is 408.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The whole body as text.
pub(crate) async fn read<B>(body: B) -> Result<String, Refused>
where
    B: Body<Data = Bytes> + Unpin,
{
    let read = timeout(BODY_TIMEOUT, collect(body)).await;
    let bytes = read.map_err(|_| Refused::new(408, "the body did not come in time"))??;
    String::from_utf8(bytes).map_err(|_| Refused::new(400, "the body is not UTF-8"))
}

async fn collect<B>(mut body: B) -> Result<Vec<u8>, Refused>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Refused::new(400, "the body broke off"))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if bytes.len() + data.len() > MAX_BODY_BYTES {
            return Err(Refused::new(400, "the body is too large"));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}
