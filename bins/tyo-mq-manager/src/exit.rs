//! How a command can fail, and the exit code that says so. The codes are an interface: scripts rely on them.

use std::process::ExitCode;

use tyo_mq_auth::json::Object;
use tyo_mq_client::{CallError, ConnectError, Refusal, RequestError, TlsError};

/// Why a command did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The broker says no.
    #[error("refused by the broker: {message} ({code})")]
    Refused {
        /// The broker's code.
        code: i32,
        /// The broker's words.
        message: String,
    },
    /// No broker was reached, or it did not answer.
    #[error("{0}")]
    Unreachable(String),
    /// The command line asks for what does not go together.
    #[error("{0}")]
    Usage(String),
    /// There is nothing to sign with.
    #[error("{0}")]
    NoSecret(String),
    /// The user did not agree, or could not be asked.
    #[error("{0}")]
    Declined(String),
    /// This broker does not have it.
    #[error("{0}")]
    Unsupported(String),
    /// There is no such thing here.
    #[error("{0}")]
    NotFound(String),
    /// There is such a thing here already.
    #[error("{0}")]
    Exists(String),
    /// Something on this machine.
    #[error("{0}")]
    Local(String),
}

/// What the exit codes mean, for `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0  done
  1  failed for another reason
  2  the command line is wrong
  3  no broker reached, or no answer in time
  4  not permitted: no secret, a wrong one, or one that may not do this
  5  no such thing
  6  there is such a thing already, or it is in use
  7  the broker cannot read the request
  8  this broker does not have the command
  9  the broker is over its limits, or its store is down; try again later
 10  not confirmed";

/// The name and exit code of each kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Failed = 1,
    Usage = 2,
    Unreachable = 3,
    NotPermitted = 4,
    NotFound = 5,
    Conflict = 6,
    Malformed = 7,
    Unsupported = 8,
    Overloaded = 9,
    Declined = 10,
}

impl Failure {
    /// The exit code.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.kind() as u8)
    }

    /// Says which broker is not reached.
    #[must_use]
    pub(crate) fn of_broker(self, url: &str) -> Self {
        match self {
            Self::Unreachable(what) => Self::Unreachable(format!("{url}: {what}")),
            other => other,
        }
    }

    /// Says what was being done.
    #[must_use]
    pub(crate) fn during(self, step: &str) -> Self {
        let told = |what: String| format!("{step}: {what}");
        match self {
            Self::Unreachable(what) => Self::Unreachable(told(what)),
            Self::Refused { code, message } => Self::Refused {
                code,
                message: told(message),
            },
            other => other,
        }
    }

    /// As `--json` shows it.
    pub(crate) fn to_object(&self) -> Object {
        let (code, message) = match self {
            Self::Refused { code, message } => (u64::try_from(*code).ok(), message.clone()),
            other => (None, other.to_string()),
        };
        let kind = self.kind();
        let mut out = Object::new()
            .with("ok", false)
            .with("kind", kind.name())
            .with("exit", kind as u64);
        if let Some(code) = code {
            out.set("code", code);
        }
        out.with("message", message)
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Refused { code, .. } => Kind::of_code(*code),
            Self::Unreachable(_) => Kind::Unreachable,
            Self::Usage(_) => Kind::Usage,
            Self::NoSecret(_) => Kind::NotPermitted,
            Self::Declined(_) => Kind::Declined,
            Self::Unsupported(_) => Kind::Unsupported,
            Self::NotFound(_) => Kind::NotFound,
            Self::Exists(_) => Kind::Conflict,
            Self::Local(_) => Kind::Failed,
        }
    }
}

impl Kind {
    const fn of_code(code: i32) -> Self {
        match code {
            400 | 413 => Self::Malformed,
            401 | 403 => Self::NotPermitted,
            404 => Self::NotFound,
            409 => Self::Conflict,
            429 | 503 | 507 => Self::Overloaded,
            501 => Self::Unsupported,
            _ => Self::Failed,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::Unreachable => "unreachable",
            Self::NotPermitted => "not_permitted",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Malformed => "malformed",
            Self::Unsupported => "unsupported",
            Self::Overloaded => "overloaded",
            Self::Declined => "declined",
        }
    }
}

impl From<Refusal> for Failure {
    fn from(Refusal { code, message }: Refusal) -> Self {
        Self::Refused { code, message }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Address(error) => Self::Usage(error.to_string()),
            ConnectError::Tls(error @ TlsError::Authorities { .. }) => {
                Self::Local(error.to_string())
            }
            ConnectError::Tls(
                error @ (TlsError::UnknownIssuer { .. } | TlsError::NoAuthorities),
            ) => Self::Unreachable(format!("{error}; --ca-file names one to trust")),
            other => Self::Unreachable(other.to_string()),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Unreachable(error.to_string())
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Refused(refusal) => refusal.into(),
            RequestError::Call(error) => error.into(),
            other => Self::Local(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(failure: &Failure, exit: u8, kind: &str) {
        let shown = failure.to_object();
        assert_eq!(
            shown.get("exit").unwrap().as_number(),
            Some(f64::from(exit))
        );
        assert_eq!(shown.get("kind").unwrap().as_str(), Some(kind));
        assert!(
            HELP.contains(&format!("\n{exit:>3}  ")),
            "{exit} is documented"
        );
    }

    #[test]
    fn codes_are_an_interface() {
        for (code, exit, kind) in [
            (400, 7, "malformed"),
            (401, 4, "not_permitted"),
            (403, 4, "not_permitted"),
            (404, 5, "not_found"),
            (409, 6, "conflict"),
            (413, 7, "malformed"),
            (429, 9, "overloaded"),
            (500, 1, "failed"),
            (501, 8, "unsupported"),
            (503, 9, "overloaded"),
        ] {
            let message = String::new();
            check(&Failure::Refused { code, message }, exit, kind);
        }
        check(&Failure::Usage(String::new()), 2, "usage");
        check(&Failure::Unreachable(String::new()), 3, "unreachable");
        check(&Failure::Declined(String::new()), 10, "declined");
    }
}
