//! All that decides who may do what, in one value: the settings and what is remembered from one request to the next.

use std::fmt;
use std::net::IpAddr;

use crate::audit::AuditLog;
use crate::document::AuthDocument;
use crate::enrolment::Requests;
use crate::entropy::Entropy;
use crate::external::Validations;
use crate::nonce::NonceWindow;
use crate::refusal::Refusal;
use crate::throttle::Throttle;

/// The state of authentication and administration.
pub struct AuthState {
    pub(crate) document: AuthDocument,
    pub(crate) nonces: NonceWindow,
    pub(crate) requests: Requests,
    pub(crate) audit: AuditLog,
    pub(crate) throttle: Throttle,
    pub(crate) validations: Validations,
    pub(crate) entropy: Box<dyn Entropy>,
    pub(crate) has_store: bool,
}

impl AuthState {
    /// A state from settings, the nonces that are remembered, and a source of random bytes.
    #[must_use]
    pub fn new(document: AuthDocument, nonces: NonceWindow, entropy: Box<dyn Entropy>) -> Self {
        Self {
            document,
            nonces,
            requests: Requests::default(),
            audit: AuditLog::default(),
            throttle: Throttle::default(),
            validations: Validations::default(),
            entropy,
            has_store: false,
        }
    }

    /// Says whether an auth store keeps realms and tokens, so that the settings file need not.
    pub const fn set_has_store(&mut self, has_store: bool) {
        self.has_store = has_store;
    }

    /// Whether an auth store keeps realms and tokens.
    #[must_use]
    pub const fn has_store(&self) -> bool {
        self.has_store
    }

    /// The settings.
    #[must_use]
    pub const fn document(&self) -> &AuthDocument {
        &self.document
    }

    /// Takes over settings that were read anew, and tells what that changes. The store, if there is one, is to be
    /// written from the rows.
    pub fn adopt_settings(&mut self, settings: AuthDocument) -> crate::document::Applied {
        self.validations.forget();
        self.document.adopt(settings, self.has_store)
    }

    /// Puts the admin's token from the environment in the place of an earlier one.
    pub fn set_environment_admin(
        &mut self,
        token: &crate::secret::Secret,
    ) -> crate::document::Applied {
        self.document.set_environment_admin(token)
    }

    /// The requests for admission.
    #[must_use]
    pub const fn requests(&self) -> &Requests {
        &self.requests
    }

    /// The requests for admission, for restoring them.
    pub const fn requests_mut(&mut self) -> &mut Requests {
        &mut self.requests
    }

    /// The nonces that are spent and could still be used again.
    pub fn nonces(&self) -> impl Iterator<Item = crate::nonce::UsedNonce> {
        self.nonces.iter()
    }

    /// What managers did lately.
    #[must_use]
    pub const fn audit(&self) -> &AuditLog {
        &self.audit
    }

    /// Whether a bearer token of HTTP is the global admin's. Failures are counted.
    ///
    /// # Errors
    /// The refusal.
    pub fn check_admin_bearer(
        &mut self,
        presented: Option<&str>,
        peer: IpAddr,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        if !self.document.is_enabled() {
            return Ok(());
        }
        self.check_throttle(peer, now_ms)?;
        let is_admin = presented.is_some_and(|token| self.document.is_admin_bearer(token));
        if is_admin {
            return Ok(());
        }
        let refusal = Refusal::unauthenticated("an admin's token is needed");
        Err(self.count_failure(refusal, peer, now_ms))
    }

    pub(crate) fn check_throttle(&self, peer: IpAddr, now_ms: u64) -> Result<(), Refusal> {
        let per_minute = self.document.flags().max_failures_per_minute;
        self.throttle
            .check(peer, per_minute, now_ms)
            .map_err(|seconds| {
                Refusal::too_many(format!(
                    "too many failed attempts, try again in {seconds} s"
                ))
            })
    }

    pub(crate) fn count_failure(&mut self, refusal: Refusal, peer: IpAddr, now_ms: u64) -> Refusal {
        if refusal.code == 401 {
            let per_minute = self.document.flags().max_failures_per_minute;
            self.throttle.fail(peer, per_minute, now_ms);
        }
        refusal
    }
}

impl fmt::Debug for AuthState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthState")
            .field("realms", &self.document.realm_count())
            .field("tokens", &self.document.token_count())
            .finish_non_exhaustive()
    }
}
