//! From the errors of SQLite to those of the store.

use std::io;
use std::path::Path;

use rusqlite::{Error, ErrorCode, ffi};

use crate::store::StoreError;

/// A lock cannot be taken or asked for, though nobody has it.
const LOCKS: [i32; 5] = [
    ffi::SQLITE_IOERR_LOCK,
    ffi::SQLITE_IOERR_RDLOCK,
    ffi::SQLITE_IOERR_UNLOCK,
    ffi::SQLITE_IOERR_CHECKRESERVEDLOCK,
    ffi::SQLITE_IOERR_SHMLOCK,
];

/// The error of an operation on the database file.
pub(super) fn store_error(path: &Path, error: Error) -> StoreError {
    let Error::SqliteFailure(failure, _) = &error else {
        let what = match error {
            // Without the statement, which says nothing to a reader.
            Error::SqlInputError { msg, .. } => msg,
            // Without the name of the column, which may be a statement.
            Error::InvalidColumnType(..) | Error::IntegralValueOutOfRange(..) => {
                "a value of another type than was written".to_owned()
            }
            other => other.to_string(),
        };
        return StoreError::damaged(path, what);
    };
    match failure.code {
        ErrorCode::DiskFull => StoreError::Full { path: path.to_owned() },
        // The shared memory file cannot grow.
        ErrorCode::SystemIoFailure if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => {
            StoreError::Full { path: path.to_owned() }
        }
        ErrorCode::SystemIoFailure if LOCKS.contains(&failure.extended_code) => StoreError::NoLocks {
            dir: path.parent().unwrap_or(path).to_owned(),
            source: io::Error::other(error),
        },
        ErrorCode::NotADatabase => StoreError::NotAStore { path: path.to_owned() },
        // `Unknown`: a table or column is not there.
        ErrorCode::DatabaseCorrupt | ErrorCode::Unknown | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch => {
            StoreError::damaged(path, error.to_string())
        }
        _ => StoreError::io(path, io::Error::other(error)),
    }
}

/// Whether another connection was in the way.
pub(super) fn is_busy(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}
