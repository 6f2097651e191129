//! The reference's scripts, by their names: the same output, and exit code 1 for whatever goes wrong.

use tyo_mq_auth::json::Value;

use crate::app::App;
use crate::call::Request;
use crate::cli::{LegacyManager, LegacyRequest};
use crate::exit::Failure;
use crate::output::print;

use super::{auth, submit};

/// `admin-auth`: `AUTH_OK {…}` or `AUTH_FAIL {…}`.
pub(super) async fn admin_auth(app: &App) -> Result<(), Failure> {
    match auth::verify_with_token(app).await {
        Ok(mut granted) => {
            granted.remove("ok");
            print(&format!("AUTH_OK {}", Value::from(granted).to_json()));
            Ok(())
        }
        Err(Failure::Refused { code, message }) => {
            let code = u64::try_from(code).unwrap_or_default();
            let refusal = tyo_mq_auth::json::Object::new()
                .with("code", code)
                .with("message", message.as_str());
            print(&format!("AUTH_FAIL {}", Value::from(refusal).to_json()));
            Err(Failure::Local("the token is not good".to_owned()))
        }
        Err(other) => Err(plain(other)),
    }
}

/// `auth-request`: `{ok, request_id, status, client_token}`.
pub(super) async fn auth_request(app: &App, args: LegacyRequest) -> Result<(), Failure> {
    let answer = submit::once(app, &args.submit).await.map_err(plain)?;
    print(&Value::from(answer).to_pretty_json());
    Ok(())
}

/// `auth-manager`: the broker's answer.
pub(super) async fn auth_manager(app: &App, command: LegacyManager) -> Result<(), Failure> {
    let request = match command {
        LegacyManager::Next => Request::next().with_some("realm", app.realm()),
        LegacyManager::Approve { id, role } => Request::decide(&id, true).with_some("role", role),
        LegacyManager::Reject { id, reason } => {
            Request::decide(&id, false).with_some("reason", reason)
        }
    };
    let answer = app.ask(&request).await.map_err(plain)?;
    print(&Value::from(answer).to_pretty_json());
    Ok(())
}

fn plain(failure: Failure) -> Failure {
    Failure::Local(failure.to_string())
}
