//! A realm gets another name: the broker's realm, its sockets, its limits. The realm's settings and tokens follow.

use tyo_mq_auth::json::{Object, Value};
use tyo_mq_auth::{Answer, RealmName, Refusal};
use tyo_mq_core::engine::RenameError;

use super::Access;
use super::keeper::KeeperError;
use crate::limits::LimitConfig;

impl Access {
    /// Answers how many sockets went along.
    pub(super) async fn rename_realm(&self, from: &RealmName, to: &RealmName) -> Answer {
        if let Err(error) = self.broker.rename_realm(from.as_str(), to.as_str()).await {
            return Answer::Refused(refusal(&error));
        }
        Answer::Value(Value::from(self.rename_sockets(from, to)))
    }

    /// Sockets and limits follow the broker's realm.
    fn rename_sockets(&self, from: &RealmName, to: &RealmName) -> usize {
        let _order = self.in_order();
        let moved = self.sockets.in_realm(from.as_str()).len();
        for socket in self.sockets.all() {
            socket.auth().rename_realm(from, to);
        }
        if let Err(error) = self.rename_limits(from.as_str(), to.as_str()) {
            tracing::error!(%error, "cannot keep a realm's limits under its new name");
        }
        moved
    }

    fn rename_limits(&self, from: &str, to: &str) -> Result<(), KeeperError> {
        let mut keeper = self.keeper();
        let block = keeper.setting("limits").and_then(Value::as_object).cloned();
        let Some(block) = block.and_then(|block| renamed(block, from, to)) else {
            return Ok(());
        };
        let text = Value::from(block.clone()).to_json();
        let parsed = serde_json::from_str(&text).unwrap_or_default();
        self.set_limits(LimitConfig::from_settings(&parsed));
        keeper.write_setting("limits", Value::from(block))
    }
}

/// The limits with those of a realm under its new name, if it has any.
fn renamed(mut block: Object, from: &str, to: &str) -> Option<Object> {
    let mut realms = block.get("realms")?.as_object()?.clone();
    let own = realms.get(from)?.clone();
    realms.remove(from);
    realms.set(to, own);
    block.set("realms", Value::from(realms));
    Some(block)
}

fn refusal(error: &RenameError) -> Refusal {
    let code = match error {
        RenameError::Reserved(_) => 400,
        RenameError::Exists(_) | RenameError::Busy(_) => 409,
        RenameError::Limit(_) => 429,
        _ => 503,
    };
    Refusal::new(code, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_a_realm_go_along() {
        let check = |block: &str, expected: Option<&str>| {
            let block = Value::parse(block).unwrap();
            let block = renamed(block.as_object().unwrap().clone(), "a", "b");
            let text = block.map(|block| Value::from(block).to_json());
            assert_eq!(text.as_deref(), expected);
        };
        check(
            r#"{"enabled":true,"realms":{"a":{"message_burst":3},"c":{}}}"#,
            Some(r#"{"enabled":true,"realms":{"c":{},"b":{"message_burst":3}}}"#),
        );
        check(r#"{"realms":{"c":{}}}"#, None);
        check("{}", None);
    }
}
