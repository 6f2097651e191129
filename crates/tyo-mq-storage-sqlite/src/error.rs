//! SQLite's errors in the store's terms.

use rusqlite::{Error, ErrorCode, ffi};
use tyo_mq_core::store::StoreError;

pub(crate) fn store_error(error: Error) -> StoreError {
    let text = error.to_string();
    match error {
        Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DiskFull | ErrorCode::OutOfMemory | ErrorCode::TooBig => {
                StoreError::Full(text)
            }
            // The shared index of the log could not grow.
            ErrorCode::SystemIoFailure if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => {
                StoreError::Full(text)
            }
            ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch => StoreError::Damaged(text),
            _ => StoreError::Unavailable(text),
        },
        Error::SqlInputError { .. }
        | Error::FromSqlConversionFailure(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::InvalidColumnType(..)
        | Error::InvalidColumnIndex(_)
        | Error::InvalidColumnName(_) => StoreError::Damaged(text),
        _ => StoreError::Unavailable(text),
    }
}

/// Another connection holds a lock.
pub(crate) fn is_locked(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}
