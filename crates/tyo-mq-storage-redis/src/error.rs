//! Redis's errors in the store's terms. What they say about the address is left out.

use fred::error::{Error, ErrorKind};
use tyo_mq_core::store::StoreError;

pub(crate) fn store_error(error: &Error) -> StoreError {
    let details = error.details();
    match error.kind() {
        ErrorKind::Timeout => StoreError::Unavailable("redis did not answer in time".to_owned()),
        ErrorKind::IO | ErrorKind::Canceled => {
            StoreError::Unavailable("the connection to redis is away".to_owned())
        }
        ErrorKind::Auth => StoreError::Unavailable("redis refused the credentials".to_owned()),
        ErrorKind::Parse | ErrorKind::Protocol => unexpected(),
        _ => told(details),
    }
}

/// What the server or a script said.
pub(crate) fn told(details: &str) -> StoreError {
    if details.contains("OOM ") || details.contains("MISCONF") {
        StoreError::Full(details.to_owned())
    } else if details.contains("WRONGTYPE") {
        StoreError::Damaged(details.to_owned())
    } else {
        StoreError::Unavailable(details.to_owned())
    }
}

/// The connection or the server is away for a while; nothing is wrong with the command.
pub(crate) fn is_away(error: &Error) -> bool {
    let passing = [
        "LOADING",
        "READONLY",
        "MASTERDOWN",
        "CLUSTERDOWN",
        "TRYAGAIN",
        "BUSY ",
    ];
    matches!(
        error.kind(),
        ErrorKind::IO | ErrorKind::Canceled | ErrorKind::Cluster | ErrorKind::Sentinel
    ) || passing
        .iter()
        .any(|prefix| error.details().starts_with(prefix))
}

/// The server does not know the script yet, or forgot it.
pub(crate) fn is_unknown_script(error: &Error) -> bool {
    error.details().starts_with("NOSCRIPT")
}

/// An answer of another shape than the command has.
pub(crate) fn unexpected() -> StoreError {
    StoreError::Damaged("redis gave an answer of an unknown shape".to_owned())
}
