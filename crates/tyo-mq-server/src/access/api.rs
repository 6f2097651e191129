//! The HTTP API's way to the door: what is served, to whom, and realms created over HTTP.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tyo_mq_auth::Refusal;
use tyo_mq_auth::secret::SecretHash;
use tyo_mq_http::{Host, Offer, Provision, Refused};

use super::Access;
use crate::limits::{OverLimit, ProvisioningLimits, client_address};
use crate::now_ms;
use crate::settings::HttpApi;

/// What the API has of its own.
#[derive(Debug, Default)]
pub(super) struct ApiState {
    settings: Mutex<HttpApi>,
    provisioning: ProvisioningLimits,
}

/// A door as the API sees it.
pub(crate) struct ApiHost(pub(crate) Arc<Access>);

impl Access {
    fn http_api(&self) -> HttpApi {
        let settings = self.api.settings.lock();
        *settings.unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the API serves this.
    pub(crate) fn set_http_api(&self, settings: HttpApi) {
        let mut current = self
            .api
            .settings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *current = settings;
    }

    fn check_provisioner(
        &self,
        bearer: Option<&str>,
        client: IpAddr,
    ) -> Result<SecretHash, Refused> {
        let checked = self.state().check_provisioner(bearer, client, now_ms());
        let token = checked.map_err(|refusal| self.refused(refusal))?;
        if let Some(limits) = self.limits() {
            let admitted = self.api.provisioning.admit(&limits, client, now_ms());
            admitted.map_err(|over| self.too_often(over))?;
        }
        Ok(token)
    }

    fn provision(&self, token: SecretHash, body: &str) -> Result<String, Refused> {
        let _order = self.in_order();
        let provisioned = self.state().provision(token, body, now_ms());
        self.carry_out(provisioned.effects);
        provisioned.answer.map_err(|refusal| self.refused(refusal))
    }

    fn refused(&self, refusal: Refusal) -> Refused {
        if matches!(refusal.code, 401 | 429) {
            self.metrics.auth_failed(refusal.code);
        }
        Refused::new(refusal.code, refusal.message)
    }

    fn too_often(&self, over: OverLimit) -> Refused {
        self.metrics.rate_limited(&over);
        Refused {
            status: 429,
            message: format!("over the limit {}", over.reason),
            retry_after_secs: Some(over.retry_after_secs),
        }
    }
}

impl Host for ApiHost {
    fn offer(&self) -> Offer {
        let settings = self.0.http_api();
        Offer {
            enabled: settings.enabled,
            health: settings.health,
            metrics: settings.metrics,
            metrics_auth: settings.metrics_auth,
            stats: settings.stats,
        }
    }

    fn client(&self, peer: IpAddr, forwarded: &[&str]) -> IpAddr {
        client_address(peer, forwarded, &self.0.proxies())
    }

    fn check_admin(&self, bearer: Option<&str>, client: IpAddr) -> Result<(), Refused> {
        let checked = self.0.state().check_admin_bearer(bearer, client, now_ms());
        checked.map_err(|refusal| self.0.refused(refusal))
    }

    fn stats(&self) -> String {
        self.0.stats().to_json()
    }

    fn metrics(&self) -> String {
        self.0.metrics.text(&self.0.broker)
    }

    fn provisioner(&self, bearer: Option<&str>, client: IpAddr) -> Result<Provision, Refused> {
        let token = self.0.check_provisioner(bearer, client)?;
        let access = self.0.clone();
        Ok(Box::new(move |body| access.provision(token, body)))
    }
}
