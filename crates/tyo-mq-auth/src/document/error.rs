//! What can be wrong with the auth settings.

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// A value has another type or form than it must have.
    #[error("{path} must be {expected}")]
    Wrong {
        /// The way to it, with dots.
        path: String,
        /// What it must be.
        expected: &'static str,
    },
    /// Not JSON.
    #[error("auth settings are not JSON: {0}")]
    Json(#[from] crate::json::JsonError),
}

impl DocumentError {
    pub(crate) fn wrong(path: &str, expected: &'static str) -> Self {
        Self::Wrong {
            path: path.to_owned(),
            expected,
        }
    }

    /// The same error, further out.
    #[must_use]
    pub(crate) fn under(self, outer: &str) -> Self {
        match self {
            Self::Wrong { path, expected } => Self::Wrong {
                path: if path.is_empty() {
                    outer.to_owned()
                } else {
                    format!("{outer}.{path}")
                },
                expected,
            },
            error @ Self::Json(_) => error,
        }
    }
}
