//! Authentication and the request for a token.

use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use tyo_mq_protocol::events;

use crate::task::Command;
use crate::{CallError, Client, Refusal, RequestError};

/// What a client says to be admitted. `Debug` shows no secret.
#[derive(Clone, Default, Serialize)]
pub struct Credentials {
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    realm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

/// What the broker admits us to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Granted {
    /// The realm.
    pub realm: String,
    /// The role in it.
    pub role: String,
}

impl Credentials {
    /// A token: configured, approved, or a JSON web token.
    #[must_use]
    pub fn token(token: &str) -> Self {
        Self {
            token: Some(token.to_owned()),
            ..Self::default()
        }
    }

    /// A realm and role without a token.
    #[must_use]
    pub fn realm(realm: &str, role: &str) -> Self {
        Self {
            realm: Some(realm.to_owned()),
            role: Some(role.to_owned()),
            ..Self::default()
        }
    }

    /// The realm's pre-shared key.
    #[must_use]
    pub fn with_key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("realm", &self.realm)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Authenticates the connection, and those that follow when it is lost.
    ///
    /// # Errors
    /// When the broker refuses, or does not answer.
    pub async fn authenticate(&self, credentials: &Credentials) -> Result<Granted, RequestError> {
        let patience = self.options().call_timeout;
        let mut heard = self.events();
        self.emit(events::AUTHENTICATION, credentials).await?;
        let verdict = heard.next_named(&[events::AUTH_OK, events::AUTH_FAIL]);
        let verdict = timeout(patience, verdict)
            .await
            .map_err(|_| CallError::Timeout(patience))?
            .ok_or(CallError::Lost)?;
        if verdict.name == events::AUTH_FAIL {
            let refusal: RefusalFields = verdict.parse().ok_or(CallError::Answer)?;
            return Err(refusal.into());
        }
        let granted = verdict.parse().ok_or(CallError::Answer)?;
        let payload = serde_json::to_string(credentials).map_err(CallError::from)?;
        self.command(Command::Authenticated { payload }).await?;
        Ok(granted)
    }
}

#[derive(Deserialize)]
struct RefusalFields {
    code: i32,
    #[serde(default)]
    message: String,
}

impl From<RefusalFields> for RequestError {
    fn from(RefusalFields { code, message }: RefusalFields) -> Self {
        Refusal { code, message }.into()
    }
}
